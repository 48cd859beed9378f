"""The single pass over a file whose values are read as typed columns.

Formats without statistics of their own (CSV, JSON, text, Avro) yield their columns in batches; see
`bridge.formats.column_chunks`. Min/max and every other index take their part of each batch. A
column that turns out to be doubtful has no entry in any of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from bridge.formats.column_chunks import OTHER, ColumnChunks
from bridge.formats.leaf_scan import LeafScan, unscaled_digits
from bridge.formats.physical_column import PhysicalColumn
from bridge.formats.statistics import FileStatistics, LeafStatistics
from bridge.index.kinds.kind import Arrays, Gathering


class ColumnScan:
    """Gathers all indexes of one file."""

    def __init__(self, chunks: ColumnChunks, gatherings: Mapping[str, Gathering]) -> None:
        self._chunks = chunks
        self._gatherings = dict(gatherings)
        self._leaves = [
            LeafStatistics(c.key(), c, None, None, True, None, None, 0) for c in chunks.leaves
        ]
        self._scans = {
            i: LeafScan(i, leaf) for i, leaf in enumerate(self._leaves) if leaf.column.type != OTHER
        }
        self._rows = 0

    def run(self) -> tuple[FileStatistics, dict[str, Gathering]]:
        """Reads the file.

        Returns:
            Its statistics, and the gatherings whose columns are sure, by signature.

        Errors: those of `ColumnChunks.batches`.
        """
        for rows, batch in self._chunks.batches():
            self._rows += rows
            self._drop(set(self._scans) - set(batch))
            arrays = Arrays(batch)
            for number, scan in self._scans.items():
                scan.update(_Comparable(arrays))
                self._leaves[number].size += batch[number].nbytes
            for gathering in self._gatherings.values():
                gathering.update(arrays)
        loose = self._chunks.loose()
        for number, scan in self._scans.items():
            scan.finish()
            _settle(self._leaves[number], loose.get(number, 0.0))
        self._without_gatherings(set(loose))
        return FileStatistics(self._rows, None, self._leaves), self._gatherings

    def _drop(self, doubtful: set[int]) -> None:
        for number in doubtful:
            del self._scans[number]
            leaf = self._leaves[number]
            leaf.lower = leaf.upper = leaf.nulls = leaf.nans = None
        self._without_gatherings(doubtful)

    def _without_gatherings(self, doubtful: set[int]) -> None:
        if doubtful:
            self._gatherings = {
                signature: gathering
                for signature, gathering in self._gatherings.items()
                if not doubtful & set(gathering.leaves)
            }


class _Comparable:
    """Values in the types that `LeafScan` compares."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays

    def __getitem__(self, leaf: int) -> pa.ChunkedArray:
        values = self._arrays[leaf]
        return values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values


def _settle(leaf: LeafStatistics, loose: float) -> None:
    """Converts the bounds of a sure column for the index, and widens those that are not exact."""
    stored = leaf.column.type
    if leaf.nans is None and not stored.is_floating:
        leaf.nans = 0
    if leaf.lower is None:
        return
    if stored.logical == "decimal":
        leaf.lower, leaf.upper = (
            unscaled_digits(value, stored.scale).to_bytes(16, "big", signed=True)
            for value in (leaf.lower, leaf.upper)
        )
    if loose:
        leaf.exact = False
        leaf.lower = _widened(leaf.column, leaf.lower, -loose)
        leaf.upper = _widened(leaf.column, leaf.upper, loose)


def _widened(column: PhysicalColumn, bound: float, error: float) -> float:
    moved = bound + abs(bound) * error
    if column.type.logical == "float":
        narrow = np.float32(moved)
        toward = np.float32(math.copysign(math.inf, error))
        return float(np.nextafter(narrow, toward))
    return math.nextafter(moved, math.copysign(math.inf, error))
