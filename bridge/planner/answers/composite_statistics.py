"""Statistics of slices from all sources: the index, partition values and the listing.

`FilePruner` covers all indexed files; this class covers the files of one batch. It knows data
columns, partition keys and hidden columns alike, so a whole predicate can be tested for ALWAYS. A
file that is not indexed in exactly its present state is unknown in every data column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import ColumnStatistics, Counts, Mask, Places, PruningStatistics
from bridge.planner.attributes import HIDDEN_COLUMNS, FileAttributes
from bridge.planner.partitions import PARTITION_COLUMN, PartitionStatistics, Typed
from bridge.table.model import Column
from bridge.table.slices import SliceBatch

_HIDDEN = frozenset(c.name for c in HIDDEN_COLUMNS)
_LOW, _HIGH = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class CompositePruningStatistics:
    """Implements `PruningStatistics` over the slices of a batch.

    Slices with logs are unknown in every data column, and so is their row count: merging may
    change any value and remove any row.

    Args:
        index: statistics over all files of the batch's index; None if there are no bounds.
        indexed_rows: row counts by ordinal, -1 if unknown; None if there is no index.
        keys: the table's partition keys.
        values: typed key values, one entry per partition of the batch.
    """

    def __init__(
        self,
        batch: SliceBatch,
        index: PruningStatistics | None,
        indexed_rows: Counts | None,
        keys: Sequence[Column],
        values: Sequence[Typed],
    ) -> None:
        self.batch = batch
        self._index = index
        self._indexed_rows = indexed_rows
        self._keys, self._values = keys, values
        self._whole = batch.is_whole_index and batch.logs is None
        merged = batch.merged
        self._ordinals = batch.ordinals if merged is None else np.where(merged, -1, batch.ordinals)
        self._cache: dict[BoundReference, ColumnStatistics | None] = {}
        if indexed_rows is None or not len(indexed_rows):
            self.rows: Counts = np.full(len(batch), -1, np.int64)
        elif self._whole:
            self.rows = indexed_rows
        else:
            self.rows = np.where(self._ordinals < 0, -1, indexed_rows[self._ordinals])

    @property
    def num_files(self) -> int:
        return len(self.batch)

    def take(self, positions: npt.NDArray[np.int64]) -> CompositePruningStatistics:
        """Statistics of the slices at these positions."""
        if len(positions) == len(self.batch):
            return self
        return CompositePruningStatistics(
            self.batch.take(positions), self._index, self._indexed_rows, self._keys, self._values
        )

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        if reference not in self._cache:
            self._cache[reference] = self._column(reference)
        return self._cache[reference]

    def _column(self, reference: BoundReference) -> ColumnStatistics | None:
        name = reference.path[0]
        if name == PARTITION_COLUMN or reference.partition:
            names = [p.name for p in self.batch.partitions]
            columns = [[values[i] for values in self._values] for i in range(len(self._keys))]
            found = PartitionStatistics(names, self._keys, columns).column(reference)
            if found is None:
                return None
            return self.by_partition(found)
        if name in _HIDDEN:
            if self.batch.logs is not None:
                return None  # the path of a merged row may be that of a log
            found = FileAttributes(self.batch.files).column(reference)
            return None if found is None else self._constant(found)
        if self._index is None:
            return None
        found = self._index.column(reference)
        return found if found is None or self._whole else select(found, self._ordinals)

    def by_partition(self, column: ColumnStatistics) -> ColumnStatistics:
        """Statistics of the files, from those of the batch's partitions."""
        return self._constant(select(column, self.batch.partition.astype(np.int64)))

    def _constant(self, column: ColumnStatistics) -> ColumnStatistics:
        """Every file holds one value: either all of its rows are NULL, or none."""
        nulls = np.where(column.null_count == 1, self.rows, column.null_count)
        return replace(column, null_count=nulls, row_count=self.rows)


def select(column: ColumnStatistics, ordinals: npt.NDArray[np.int64]) -> ColumnStatistics:
    """The statistics of the files at these ordinals; unknown where an ordinal is -1."""
    absent = ordinals < 0
    some = bool(absent.any())
    present = ~absent

    def mask(known: Mask | None) -> Mask | None:
        if known is None:
            return present if some else None
        return known[ordinals] & present if some else known[ordinals]

    def counts(values: Counts) -> Counts:
        return np.where(absent, -1, values[ordinals]) if some else values[ordinals]

    def bounds(values: Any, *, lower: bool) -> Any:
        if not isinstance(values, np.ndarray):
            return values.take(pa.array(ordinals, mask=absent if some else None))
        if not some:
            return values[ordinals]
        if values.dtype == np.float64:
            return np.where(absent, -np.inf if lower else np.inf, values[ordinals])
        return np.where(absent, _LOW if lower else _HIGH, values[ordinals])

    if not len(column.row_count):
        return _nothing(column, len(ordinals))
    return ColumnStatistics(
        type=column.type,
        lower=bounds(column.lower, lower=True),
        upper=bounds(column.upper, lower=False),
        lower_known=mask(column.lower_known),
        upper_known=mask(column.upper_known),
        exact=mask(column.exact),
        null_count=counts(column.null_count),
        nan_count=counts(column.nan_count),
        row_count=counts(column.row_count),
        all_null=None if column.all_null is None else column.all_null[ordinals] & present,
    )


def join_statistics(
    parts: Sequence[tuple[ColumnStatistics | None, Places]],
) -> ColumnStatistics | None:
    """The statistics of files of several indexes, one after another.

    Args:
        parts: an index's statistics of the column, None if it has none, and ordinals of files.
    """
    like = next((column for column, _ in parts if column is not None), None)
    if like is None:
        return None
    chosen = [
        _nothing(like, len(places)) if column is None else select(column, places)
        for column, places in parts
    ]

    def mask(name: str, usual: bool) -> Mask | None:
        held = [(getattr(each, name), len(each.row_count)) for each in chosen]
        if all(found is None for found, _ in held):
            return None
        return np.concatenate([np.full(n, usual) if f is None else f for f, n in held])

    def bounds(name: str) -> Any:
        held = [getattr(each, name) for each in chosen]
        if all(isinstance(each, np.ndarray) for each in held):
            return np.concatenate(held)
        return pa.chunked_array(held).combine_chunks()

    def counts(name: str) -> Counts:
        return np.concatenate([getattr(each, name) for each in chosen])

    return ColumnStatistics(
        like.type,
        bounds("lower"),
        bounds("upper"),
        mask("lower_known", True),
        mask("upper_known", True),
        mask("exact", True),
        counts("null_count"),
        counts("nan_count"),
        counts("row_count"),
        mask("all_null", False),
    )


def _nothing(column: ColumnStatistics, count: int) -> ColumnStatistics:
    """Statistics for ``count`` files when the index holds none: everything is unknown."""
    none = np.zeros(count, np.bool_)
    unknown = np.full(count, -1, np.int64)

    def bounds(values: Any, edge: float) -> Any:
        if not isinstance(values, np.ndarray):
            return pa.nulls(count, values.type)
        if values.dtype == np.float64:
            return np.full(count, np.inf * edge)
        return np.full(count, _LOW if edge < 0 else _HIGH)

    return replace(
        column,
        lower=bounds(column.lower, -1.0),
        upper=bounds(column.upper, 1.0),
        lower_known=none,
        upper_known=none,
        exact=none,
        null_count=unknown,
        nan_count=unknown,
        row_count=unknown,
        all_null=None,
    )
