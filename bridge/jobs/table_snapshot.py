"""A table's files for builds and reports, from the same kind of snapshot that queries see."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bridge.config import Config
from bridge.index.listed import Listed, ListFiles, list_snapshot
from bridge.storage.port import Storage
from bridge.table.directory_lister import DirectoryLister
from bridge.table.freshness import Live
from bridge.table.model import Catalog, Table
from bridge.table.read_version import NEWEST
from bridge.table.registry import table_format
from bridge.table.snapshot import TableContext


@contextmanager
def table_files(
    config: Config, storage: Storage, catalog: Catalog, table: Table
) -> Iterator[ListFiles]:
    """Opens the newest snapshot at each call; partitions without a directory count as empty.

    Errors (of each call): MetastoreUnavailable, StorageFailure and others.
    """
    lister = DirectoryLister(
        storage,
        config.integer("planner.listing_threads"),
        recursive=config.flag("planner.recursive"),
    )
    context = TableContext(storage, catalog, lister, None, lambda _: None, Live(), True)

    def files() -> Listed:
        return list_snapshot(table_format(table).snapshot(table, NEWEST, context))

    try:
        yield files
    finally:
        lister.close()
