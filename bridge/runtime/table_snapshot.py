"""A table's files for builds and reports, from the same kind of snapshot that queries see."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from bridge.index.building.listed import Listed, ListFiles, list_snapshot
from bridge.kernel.config import Config
from bridge.storage.port import Storage
from bridge.table.directory.freshness import Live
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Catalog, CatalogTable
from bridge.table.read_version import NEWEST
from bridge.table.registry import table_format
from bridge.table.snapshot import TableContext


@contextmanager
def table_files(
    config: Config,
    storage: Storage,
    catalog: Catalog,
    table: CatalogTable,
    *,
    refuse: bool = True,
    among: Collection[str] | None = None,
) -> Iterator[ListFiles]:
    """Opens the newest snapshot at each call; partitions without a directory count as empty.

    Args:
        refuse, among: as for `list_snapshot`.

    Errors (of each call): MetastoreUnavailable, StorageFailure and others.
    """
    lister = DirectoryLister(
        storage,
        recursive=config.flag("planner.recursive"),
    )
    context = TableContext(storage, catalog, lister, None, lambda _: None, Live(), True)

    def files() -> Listed:
        snapshot = table_format(table).snapshot(table, NEWEST, context)
        return list_snapshot(snapshot, refuse=refuse, among=among)

    try:
        yield files
    finally:
        lister.close()
