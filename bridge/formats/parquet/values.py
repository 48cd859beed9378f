"""Reads values of some columns, by a footer that was parsed before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.formats.parquet.statistics import Footer
from bridge.formats.rows import all_rows, expect_rows

_ROWS = 1_000_000
"""Files with more rows are read in batches."""
_BATCH = 128 * 1024


def read_leaves(source: Any, footer: Footer, leaves: list[int]) -> Iterator[pa.Table]:
    """All values of some leaves, each row once. Errors: FileCorrupt, those of Arrow."""
    reader, metadata = pq.core.ParquetReader(), footer.metadata
    if footer.rows <= _ROWS:
        coded = [footer.leaves[i].column.path[0] for i in leaves if _coded(footer, i)]
        reader.open(source, metadata=metadata, read_dictionary=coded)
        table = reader.read_all(column_indices=leaves, use_threads=False)
        expect_rows(table.num_rows, footer.rows, footer.uri)
        yield table
        return
    reader.open(source, metadata=metadata)
    groups = list(range(metadata.num_row_groups))
    read = reader.iter_batches(_BATCH, groups, column_indices=leaves, use_threads=False)
    for batch in all_rows(read, footer.rows, footer.uri):
        yield pa.Table.from_batches([batch])


def filled_groups(footer: Footer) -> list[int]:
    """The numbers of the row groups that have rows."""
    stored = footer.metadata
    return [n for n in range(stored.num_row_groups) if stored.row_group(n).num_rows]


def read_runs(
    source: Any, footer: Footer, leaves: list[int], runs: Sequence[list[int]], rows: int
) -> Iterator[Iterator[pa.RecordBatch]]:
    """The leaves' values in batches of so many rows, for each run of row groups by number."""
    reader = pq.core.ParquetReader()
    reader.open(source, metadata=footer.metadata)
    for run in runs:
        yield reader.iter_batches(rows, run, column_indices=leaves, use_threads=False)


def _coded(footer: Footer, leaf: int) -> bool:
    """Whether text is stored with dictionaries so small that most values repeat.

    False for nested fields, because Arrow cannot combine their dictionaries across row groups.
    """
    column = footer.leaves[leaf].column
    if column.type.physical != "BYTE_ARRAY" or len(column.path) > 1 or "." in column.path[0]:
        return False
    for _, chunks in footer.groups:
        chunk = chunks[leaf]
        if chunk.dictionary <= 0 or not 0 < chunk.data - chunk.dictionary <= chunk.values:
            return False
    return True
