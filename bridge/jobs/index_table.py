"""Builds and refreshes the index of one table, wherever its catalogue is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bridge.config import Config
from bridge.errors import UnsupportedTable
from bridge.jobs.compose import index_store, resolve, storage_of
from bridge.table.model import Partition

Progress = Callable[[int, int], None]
Say = Callable[[str], None]


def index_table(
    config: Config,
    table: str,
    *,
    nan: str = "footer",
    local: bool = False,
    full: bool = False,
    progress: Progress,
    say: Say,
) -> dict[str, Any]:
    """Indexes new and changed files and forgets vanished ones; commits one new generation.

    Args:
        nan: ``footer`` or ``scan``, see `bridge.index.build`.
        local: threads of this process instead of Spark.
        full: read every file again.

    Errors:
        TableNotFound, UnsupportedTable, IndexConflict, StorageFull, EnvironmentMissing (no Spark).
    """
    started = time.monotonic()
    storage = storage_of(config)
    catalog, name = resolve(config, table, storage)
    found = catalog.table(name)
    if found.format != "parquet":
        raise UnsupportedTable(
            f"{name} is stored as {found.format}", "skipbridge indexes Parquet tables"
        )
    partitions: list[Partition] = []
    for batch in catalog.partitions(found, catalog.partition_names(found)):
        partitions.extend(batch.partitions)
    store = index_store(config, storage, found)
    raise NotImplementedError
