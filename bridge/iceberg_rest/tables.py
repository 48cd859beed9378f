"""Describes tables to clients: what ``loadTable`` answers. Nothing is listed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bridge.formats.parquet.stored_file import StoredColumn, StoredSchema
from bridge.iceberg_rest.clients import Client
from bridge.iceberg_rest.layout import IcebergLayout, layout_of
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import InvalidRequest, TableNotFound, UnsupportedTable
from bridge.planner.index_view import IndexView
from bridge.planner.planner import Planner
from bridge.table.catalog_statistics import RecordedSize, recorded_size
from bridge.table.directory.freshness import Indexed
from bridge.table.model import CatalogTable, TableName
from bridge.table.registry import DIRECTORY

_MOST_TABLES = 1000
_MOST_COLUMNS = 100_000
"""Of all layouts that are held: each takes 1.3 kB."""
_MOST_SCHEMAS = 64
_UNKNOWN_BYTES = 1 << 40
"""Of a table of which nothing is known: Spark must not broadcast it."""
_BYTES_PER_ROW = 64
_OPEN_COST = 64 << 10
_DEFAULT_OPEN_COST = 4 << 20
_GENERATION_BITS = 32
RELOAD = "run REFRESH TABLE, or load_table in PyIceberg"
_REFUSED = "skipbridge-read-only://refused"
"""Writers fail on it before they write a byte."""


_Identity = tuple[TableName, int]
_Schemas = tuple[StoredSchema, ...]
"""Those that were met in a table's files."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A layout, and what it was made from."""

    table: CatalogTable
    met: _Schemas
    layout: IcebergLayout


class Tables:
    """The tables of a planner, as Iceberg's clients see them; all threads share it.

    Args:
        schemes: of paths that clients read under another scheme, by the planner's.
    """

    def __init__(self, planner: Planner, schemes: Mapping[str, str] | None = None) -> None:
        self.planner = planner
        self._schemes = dict(schemes or {})
        self._met: BoundedCache[_Identity, _Schemas] = BoundedCache(_MOST_TABLES)
        self._layouts: BoundedCache[tuple[_Identity, int, bool, Client], _Held] = BoundedCache(
            capacity=_MOST_COLUMNS, weigh=lambda held: len(held.layout.columns)
        )

    def spell(self, uri: str) -> str:
        """A path as clients are told it."""
        scheme, colon, rest = uri.partition(":")
        return f"{self._schemes.get(scheme, scheme)}{colon}{rest}"

    def layout(
        self, table: CatalogTable, view: IndexView, client: Client, *, learnt: bool = True
    ) -> IcebergLayout:
        """How a table appears to a client.

        Args:
            learnt: with what files say that no index describes.

        Errors:
            UnsupportedTable: the client cannot read the table rightly.
        """
        key = (_identity(table), view.generation, learnt, client)
        held = self._layouts.get(key)
        met = self._met.get(key[0], ()) if learnt else ()
        if held is None or held.table != table or held.met is not met:
            schemas = dict.fromkeys((*met, *_indexed_schemas(view)))
            files = [column for schema in schemas for column in schema.columns]
            layout = layout_of(table, _indexed_columns(view), files, client)
            self._layouts.put(key, _Held(table, met, layout))
        else:
            layout = held.layout
        if client is Client.OTHER and layout.dated:
            raise UnsupportedTable(
                f"{table.name} is served to PyIceberg and Iceberg's Java library alone, because of "
                f"the column {layout.dated[0]}: clients want dates of keys in different forms",
                "read it with one of them, or with Trino, Hive or the Python API",
            )
        return layout

    def note_schemas(
        self, table: CatalogTable, schemas: set[StoredSchema], *, alone: bool = False
    ) -> None:
        """Keeps schemas of files: the next client that loads the table knows their names.

        Args:
            alone: they are those of all files, and others are forgotten.
        """
        key = _identity(table)
        with self._met.lock:
            before = () if alone else self._met.get(key, ())
            room = _MOST_SCHEMAS - len(before)
            more = sorted(schemas.difference(before), key=repr)[:room] if room else []
            if more or alone:
                self._met.put(key, (*before, *more))

    def load(self, name: TableName, client: Client) -> dict[str, Any]:
        """What ``loadTable`` answers.

        Errors:
            SchemaNotFound, TableNotFound, UnsupportedTable, MetastoreUnavailable and others.
        """
        table = self.planner.table(name)
        view = self.planner.views.view(table)
        if table.table_format != DIRECTORY:
            table = self.planner.describe(name).table  # its own schema counts
        layout = self.layout(table, view, client)
        snapshot = self.snapshot_id(table, layout, view)
        index = view.index
        size = _size_of(table, view)
        changed = 1
        if index is not None and index.num_files:
            changed = max(1, int(index.modified.max()) // 1000)
        whole = {
            "snapshot-id": snapshot,
            "sequence-number": 1,
            "timestamp-ms": changed,
            "schema-id": 0,
            "manifest-list": f"{self.spell(table.location)}/.skipbridge-has-no-manifests",
            "summary": {
                "operation": "append",
                "total-records": str(size.rows),
                "total-files-size": str(size.bytes),
                "total-data-files": str(size.files),
                "total-delete-files": "0",
            },
        }
        properties = {
            "schema.name-mapping.default": layout.mapping,
            "write.data.path": _REFUSED,
            "write.metadata.path": _REFUSED,
            "read.split.open-file-cost": str(_open_cost(size)),
        }
        if comment := table.properties.get("comment"):
            properties["comment"] = comment
        metadata = {
            "format-version": 2,
            "table-uuid": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {table.created}")),
            "location": self.spell(table.location),
            "last-sequence-number": 1,
            "last-updated-ms": changed,
            "last-column-id": layout.last_id,
            "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": layout.fields}],
            "default-spec-id": 0,
            "partition-specs": layout.specs,
            "last-partition-id": 999 + len(table.partition_keys),
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": properties,
            "current-snapshot-id": snapshot,
            "refs": {"main": {"type": "branch", "snapshot-id": snapshot}},
            "snapshots": [whole],
            "snapshot-log": [],
            "metadata-log": [],
            "statistics": [],
            "partition-statistics": [],
        }
        return {"metadata": metadata, "config": {"scan-planning-mode": "server"}}

    def exists(self, name: TableName) -> None:
        """Errors: SchemaNotFound, TableNotFound."""
        if name.table not in self.planner.catalog.tables(name.schema):
            raise TableNotFound(f"there is no table {name}", "check the name")

    def snapshot_id(self, table: CatalogTable, layout: IcebergLayout, view: IndexView) -> int:
        """63 bits: a check of what the client holds, and the generation that it reads, plus 1.

        0 in place of a generation: the newest state is read.
        """
        pinned = isinstance(self.planner.freshness_of(table), Indexed)
        pinned = pinned and table.table_format == DIRECTORY
        generation = view.generation + 1 if pinned else 0
        return (layout.digest << _GENERATION_BITS | generation) or 1


def _identity(table: CatalogTable) -> _Identity:
    """A table that was dropped and made again is another one."""
    return table.name, table.created


def generation_in(snapshot_id: int | None) -> int | None:
    """The generation that a snapshot id pins; None: the newest state.

    Errors:
        InvalidRequest: it is no id of this catalog.
    """
    if snapshot_id is None:
        return None
    if not 0 < snapshot_id < 2**63:
        raise InvalidRequest(f"there is no snapshot {snapshot_id}", RELOAD)
    return (snapshot_id & (1 << _GENERATION_BITS) - 1) - 1 if snapshot_id & 0xFFFFFFFF else None


def require_same(table: CatalogTable, layout: IcebergLayout, snapshot_id: int | None) -> None:
    """Refuses a plan for a client that holds another schema, or other names, than the files have.

    Errors:
        InvalidRequest.
    """
    if snapshot_id is not None and snapshot_id >> _GENERATION_BITS != layout.digest:
        raise InvalidRequest(f"{table.name} has changed since the client loaded it", RELOAD)


def _indexed_columns(view: IndexView) -> list[StoredColumn]:
    if view.index is None:
        return []
    return [
        StoredColumn(each.path, each.type)
        for each in view.index.stored_columns
        if each.position is None
    ]


def _indexed_schemas(view: IndexView) -> list[StoredSchema]:
    """Those of the indexed files, which also name what lies below lists and maps; not all."""
    if view.index is None:
        return []
    return [file.schema for file in view.index.stored_files[:_MOST_SCHEMAS]]


def _size_of(table: CatalogTable, view: IndexView) -> RecordedSize:
    """By the index, else by the metastore, else so large that Spark does not broadcast it."""
    index = view.index
    if index is None:
        found = recorded_size(table)
        size = found.bytes or found.rows * _BYTES_PER_ROW or _UNKNOWN_BYTES
        return RecordedSize(found.rows or size // _BYTES_PER_ROW, size, found.files or 1)
    known = (index.rows >= 0).all()
    rows = int(index.rows.sum()) if known else index.total_bytes // _BYTES_PER_ROW
    return RecordedSize(rows, index.total_bytes, index.num_files)


def _open_cost(size: RecordedSize) -> int:
    """Small files are packed into few splits; large ones keep Iceberg's own cost."""
    return min(_DEFAULT_OPEN_COST, max(_OPEN_COST, size.bytes // max(1, size.files)))
