"""Parquet files as clustering reads and writes them; implements `DataFiles`.

Values are read and written as they are stored, without a calendar or time zone of this program, and
the footer's properties that tell engines how to read them are copied.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.clustering.checksum import checksum
from bridge.clustering.data_files import Rejected

_CODECS = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}
_OWN = (b"pandas", b"ARROW:schema")
"""Properties that describe one file's rows, or are made anew."""


class ParquetFile:
    """Implements `DataFile`."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.file = pq.ParquetFile(pa.BufferReader(content))

    @property
    def fingerprint(self) -> Hashable:
        found: Hashable = _fingerprint(self.file)
        return found

    @property
    def num_rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def read(self, places: Sequence[int] | None = None) -> pa.Table:
        if places is not None:
            return self._some(list(places))
        table = self.file.read()
        _check_int96(self.file, self.content, table)
        return table

    def _some(self, places: list[int]) -> pa.Table:
        names = self.file.schema_arrow.names
        wanted = [names[place] for place in places]
        # The reader finds columns by name, and treats a name with a dot as a path.
        if not wanted or any(names.count(name) > 1 or "." in name for name in wanted):
            return self.file.read().select(places)
        return self.file.read(columns=wanted).select(wanted)

    def batches(self) -> Iterator[pa.Table]:
        for group in range(self.file.num_row_groups):
            yield self.file.read_row_group(group)


class ParquetFiles:
    """Implements `DataFiles`."""

    suffix = "parquet"

    def open(self, content: bytes) -> ParquetFile:
        return ParquetFile(content)

    def encode(
        self,
        table: pa.Table,
        like: ParquetFile,
        compression: str | None,
        group_bytes: int,
        row_bytes: float,
    ) -> bytes:
        group_rows = int(min(max(group_bytes / row_bytes, 1), 64 * 1024**2))
        return _encode(table, like.file, compression, group_rows)

    def check(self, old: ParquetFile, new: ParquetFile) -> None:
        _check_schema(old.file, new.file)


def _check_int96(file: pq.ParquetFile, content: bytes, table: pa.Table) -> None:
    """Errors: Rejected: a timestamp is outside the years that nanoseconds can count."""
    if "INT96" not in {file.schema.column(i).physical_type for i in range(len(file.schema))}:
        return
    coarse = pq.ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us").read()
    # Not Table.equals, to which NaN differs from itself.
    if checksum(table.cast(coarse.schema, safe=False)) != checksum(coarse):
        raise Rejected("UNSUPPORTED: an INT96 timestamp is too far from 1970 to be kept exactly")


def _properties(file: pq.ParquetFile) -> dict[bytes, bytes]:
    """Properties of the footer that new files take over."""
    held = dict(file.metadata.metadata or {})
    return {key: value for key, value in held.items() if key not in _OWN}


def _leaves(file: pq.ParquetFile) -> tuple[Any, ...]:
    """How each leaf is stored, so that a reader of one file reads the other alike."""
    schema = file.schema
    return tuple(
        (
            column.physical_type,
            column.converted_type,
            column.length,
            column.precision,
            column.scale,
            column.max_definition_level,
            column.max_repetition_level,
        )
        for column in (schema.column(i) for i in range(len(schema)))
    )


def _fields(fields: Sequence[pa.Field]) -> tuple[Any, ...]:
    """Names, ids and nullability at every depth; inner names of lists do not matter."""
    found = []
    for field in fields:
        id = (field.metadata or {}).get(b"PARQUET:field_id")
        type, inner = field.type, []
        if pa.types.is_struct(type):
            inner = [type.field(i) for i in range(type.num_fields)]
        elif pa.types.is_map(type):
            inner = [type.key_field.with_name(""), type.item_field.with_name("")]
        elif hasattr(type, "value_field"):
            inner = [type.value_field.with_name("")]
        found.append((field.name, id, field.nullable, type.id, _fields(inner)))
    return tuple(found)


def _fingerprint(file: pq.ParquetFile) -> Any:
    properties = tuple(sorted(_properties(file).items()))
    schema = file.schema_arrow
    names = tuple(file.schema.column(i).path for i in range(len(file.schema)))
    return _fields(list(schema)), _leaves(file), names, properties, str(schema.remove_metadata())


def _encode(
    table: pa.Table, like: pq.ParquetFile, compression: str | None, group_rows: int
) -> bytes:
    physical = [like.schema.column(i).physical_type for i in range(len(like.schema))]
    decimals = {
        like.schema.column(i).physical_type
        for i in range(len(like.schema))
        if like.schema.column(i).converted_type == "DECIMAL"
    }
    sink = BytesIO()
    writer = pq.ParquetWriter(
        sink,
        table.schema.remove_metadata(),
        compression=compression or _codecs(like),
        use_deprecated_int96_timestamps="INT96" in physical,
        store_decimal_as_integer=bool(decimals & {"INT32", "INT64"}),
        store_schema=b"ARROW:schema" in (like.metadata.metadata or {}),
        version="2.6",
    )
    with writer:
        writer.write_table(table.replace_schema_metadata(None), row_group_size=group_rows)
        if properties := _properties(like):
            writer.add_key_value_metadata(properties)
    return sink.getvalue()


def _codecs(like: pq.ParquetFile) -> str | dict[str, str]:
    if not like.metadata.num_row_groups:
        return "snappy"
    group = like.metadata.row_group(0)
    found = {}
    for i in range(group.num_columns):
        codec = group.column(i).compression
        found[group.column(i).path_in_schema] = _CODECS.get(codec, codec.lower())
    return next(iter(found.values())) if len(set(found.values())) == 1 else found


def _check_schema(old: pq.ParquetFile, new: pq.ParquetFile) -> None:
    """Errors: Rejected: the new file stores a column in another way than the old one."""
    if _leaves(old) == _leaves(new) and _fields(list(old.schema_arrow)) == _fields(
        list(new.schema_arrow)
    ):
        return
    for i, (one, other) in enumerate(zip(_leaves(old), _leaves(new), strict=False)):
        if one != other:
            raise Rejected(
                f"UNSUPPORTED: {old.schema.column(i).path} is stored as {one[0]} {one[1]}, and "
                f"would be as {other[0]} {other[1]}"
            )
    raise Rejected("UNSUPPORTED: names, ids or nullability of columns would change")


FILES = ParquetFiles()
