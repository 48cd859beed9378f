"""Batches of a plan: files that a Parquet reader shows rightly, and what an index says of them."""

from __future__ import annotations

import numpy as np

from bridge.formats.parquet.stored_file import StoredFile
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import UnsupportedTable
from bridge.table.model import TableName
from bridge.table.slices import SliceBatch


def require_plain(table: TableName, batch: SliceBatch) -> None:
    """Refuses files whose rows are not what a Parquet reader shows.

    Errors:
        UnsupportedTable.
    """
    example = batch.partitions[0].name if batch.partitions else ""
    has_logs = batch.merged is not None and batch.merged.any()
    if has_logs or (batch.has_base is not None and not batch.has_base.all()):
        raise UnsupportedTable(
            f"{table}: a partition such as {example!r} has logs that are not compacted",
            "read its read-optimised table, such as t_ro, compact it, or leave the partition out "
            "by a filter",
        )
    used = {0} if batch.reader is None else set(batch.reader.tolist())
    for reader in (batch.readers[i] for i in sorted(used)):
        if reader.format == "parquet" and not reader.base:
            continue
        raise UnsupportedTable(
            f"{table}: a partition such as {example!r} holds "
            + (
                "files whose columns were renamed, or have other types or units of time"
                if reader.base
                else f"{reader.format} files"
            ),
            "leave it out by a filter on the partition keys, or read the table with Trino or the "
            "Python API",
        )


def rows_and_columns_from_index(batch: SliceBatch) -> tuple[list[int], list[StoredFile | None]]:
    """Rows of each file that the index believes, else -1, and its columns, None if not known."""
    index = batch.index
    if not isinstance(index, IndexSnapshot) or not index.num_files:
        return [-1] * len(batch), [None] * len(batch)
    there = batch.ordinals >= 0
    at = np.where(there, batch.ordinals, 0)
    rows = np.where(there, index.counted_rows[at], -1)
    stored, held = np.where(there, index.stored[at], -1), index.stored_files
    return rows.tolist(), [None if i < 0 else held[i] for i in stored.tolist()]
