"""Times that PyIceberg shows wrongly: it reads INT96 as nanoseconds, which wrap round, and cuts
nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence, Set

from bridge.formats.parquet.stored_file import StoredFile, StoredSchema
from bridge.iceberg_rest.footers import Footers, Leaves, TimesOfFile
from bridge.iceberg_rest.layout import IcebergLayout
from bridge.kernel.errors import UnsupportedTable
from bridge.storage.port import FileStat


def require_near_times(
    layout: IcebergLayout,
    wanted: Set[str] | None,
    files: Sequence[FileStat],
    stored: Sequence[StoredFile],
    footers: Footers,
) -> None:
    """Refuses a file with an INT96 out of the range of nanoseconds, or finer times than micros.

    Values are read of the files of which no index tells.

    Args:
        wanted: top-level columns that are read, in lower case; None: all of them.

    Errors:
        UnsupportedTable: with the name of the column; as `Footers.far_leaves`.
    """
    leaves: dict[StoredSchema, Leaves] = {}
    asked: list[TimesOfFile] = []
    schemas: list[StoredSchema] = []
    for file, one in zip(files, stored, strict=True):
        if one.schema not in leaves:
            leaves[one.schema] = _times(layout, one.schema, wanted)
        if one.far is not None:
            _require_none(layout, file, one.schema, [i for i in one.far if i in leaves[one.schema]])
        elif leaves[one.schema]:
            asked.append((file, leaves[one.schema]))
            schemas.append(one.schema)
    told = footers.far_leaves(layout.table.name, asked)
    for (file, _), schema, far in zip(asked, schemas, told, strict=True):
        _require_none(layout, file, schema, far)


def _times(layout: IcebergLayout, schema: StoredSchema, wanted: Set[str] | None) -> Leaves:
    found = ((i, schema.columns[i]) for i in schema.nanoseconds)
    return tuple(
        i
        for i, column in found
        if layout.reads(column) and (wanted is None or column.path[0].lower() in wanted)
    )


def _require_none(
    layout: IcebergLayout, file: FileStat, schema: StoredSchema, far: Sequence[int]
) -> None:
    if far:
        column = schema.columns[far[0]]
        what = "INT96 times before 1677-09-21 or after 2262-04-11, which it takes for others"
        if column.type.physical != "INT96":
            what = "times that are no whole microseconds, which it cuts"
        raise UnsupportedTable(
            f"{layout.table.name}: PyIceberg would not read {file.uri} rightly: the column "
            f"{'.'.join(column.path)} has {what}",
            "select other columns (selected_fields), leave the file out by a filter, write it with "
            "times in microseconds, or read it with Trino or Hive",
        )
