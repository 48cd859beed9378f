"""Opens a table of segments for a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bridge.index.generations.store import IndexStore
from bridge.kernel.config import Config
from bridge.kernel.errors import FileCorrupt, InvalidRequest, OperationBlocked, UnsupportedTable
from bridge.runtime.compose import absolute_location, index_store, is_location, resolve, storage_of
from bridge.storage.port import Storage
from bridge.table.model import Catalog, CatalogTable, TableName
from bridge.table.segments.format import NAME, segment_table
from bridge.table.segments.log import SegmentLog
from bridge.table.segments.manifest import SegmentManifest


@dataclass(frozen=True, slots=True)
class OpenSegments:
    """A table of segments.

    Attributes:
        name: as the user spelled it.
        table: with the columns of the manifest.
        manifest: the newest version when it was opened.
    """

    config: Config
    name: str
    storage: Storage
    catalog: Catalog
    table: CatalogTable
    log: SegmentLog
    manifest: SegmentManifest

    @property
    def index(self) -> IndexStore:
        """The index of the fact files."""
        return index_store(self.config, self.storage, self.table)


@contextmanager
def open_segments(config: Config, table: str) -> Iterator[OpenSegments]:
    """Opens ``schema.table``, or the directory of a table of segments.

    Errors:
        TableNotFound.
        OperationBlocked: it is another kind of table.
        SegmentLogCorrupt, StorageFailure, MetastoreUnavailable.
    """
    storage = storage_of(config)
    catalog, name = resolve(config, table, storage)
    try:
        found = catalog.table(name)
    except (InvalidRequest, FileCorrupt, UnsupportedTable) as e:
        # A directory of other files, which need not be those of a table.
        if is_location(table) and not SegmentLog(storage, absolute_location(table)).versions():
            raise refusal(name, "directory") from e
        raise
    require_segments(found)
    log = SegmentLog(storage, found.location)
    manifest = log.latest()
    yield OpenSegments(
        config, table, storage, catalog, segment_table(found, manifest), log, manifest
    )


def require_segments(table: CatalogTable, operation: str = "segments") -> None:
    """Errors: OperationBlocked: the table is not one of segments."""
    if table.table_format != NAME:
        raise refusal(table.name, table.table_format)


def refusal(name: TableName, format: str) -> OperationBlocked:
    """The error for a table that has no segments."""
    return OperationBlocked(
        f"{name} is a table of the format {format!r}: it has no segments",
        "drop or alter it in Hive, Trino or Spark; skipbridge table create makes tables of "
        "segments",
    )
