"""The table format of Hive-style directories."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from bridge.kernel.errors import ReadVersionUnsupported, SnapshotExpired
from bridge.storage.port import Storage
from bridge.table.directory.discovered import Discovered, list_directories
from bridge.table.directory.freshness import Cached, Indexed, Live
from bridge.table.directory.snapshot import (
    CachedSnapshot,
    DirectorySnapshot,
    IndexedSnapshot,
    LiveSnapshot,
)
from bridge.table.model import CatalogTable
from bridge.table.read_version import NEWEST, ReadVersion
from bridge.table.snapshot import TableContext

_GENERATION = re.compile(r"generation:(\d{1,12})")


class DirectoryFormat:
    """Implements `TableFormat`; a directory table has only its newest version."""

    name = "directory"
    versioned = False

    def recognises(self, properties: Mapping[str, str], input_format: str) -> bool:
        """Always true: a table that no other format claims is a directory table."""
        return True

    def snapshot(
        self, table: CatalogTable, read: ReadVersion, context: TableContext, id: str = ""
    ) -> DirectorySnapshot:
        """The file set, obtained as the freshness requires.

        Errors:
            ReadVersionUnsupported: a version other than the newest was requested.
            SnapshotExpired: a listing cannot be repeated.
        """
        if replace(read, read_optimized=False, max_age=None, fresh=False) != NEWEST:
            raise ReadVersionUnsupported(
                f"{table.name} keeps no older versions, {str(read)!r} was asked for",
                "read its newest version; a directory of files has no other",
            )
        generation = _GENERATION.fullmatch(id)
        if generation is not None:
            index = context.index_at(int(generation[1]))
            if index is not None:
                return IndexedSnapshot(table, context, index)
        if id:
            raise SnapshotExpired(
                f"the files of {table.name} that this query saw ({id}) are no longer held",
                "run the query again",
            )
        return _open(table, context)

    def discover(self, location: str, storage: Storage, threads: int = 16) -> Discovered:
        """Lists the whole directory tree below the location."""
        return list_directories(storage, location, threads=threads)


def _open(table: CatalogTable, context: TableContext) -> DirectorySnapshot:
    match context.freshness:
        case Indexed() if context.index is not None and context.index.complete:
            return IndexedSnapshot(table, context, context.index)
        case Cached():
            return CachedSnapshot(table, context)
        case Live() | Indexed():
            # Without a usable index, only storage knows the files.
            return LiveSnapshot(table, context)


TABLE_FORMAT = DirectoryFormat()
