"""Table and column statistics for an engine's optimiser, from the index alone.

These are estimates, never answers. They describe the files that survive pruning, as of the index's
generation. Neither storage nor the catalogue is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bridge.expression.nodes import BoundReference, BoundTrue
from bridge.expression.prune import prune
from bridge.expression.statistics import ColumnStatistics, Mask
from bridge.planner.composite_statistics import CompositePruningStatistics, select
from bridge.planner.index_view import IndexView
from bridge.planner.scan_context import ScanContext
from bridge.storage.port import FileTable
from bridge.table.model import Partition, Table
from bridge.table.partition import typed_values
from bridge.table.slices import ReaderSpec, SliceBatch
from bridge.types import Kind, Type

_MAX_COLUMNS = 500


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """Statistics of one column; None where unknown.

    Attributes:
        low, high: as numbers: days for a date, microseconds for a timestamp.
    """

    nulls_fraction: float | None = None
    distinct: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows of the table and columns by name; None and empty without an index."""

    rows: float | None = None
    columns: dict[str, ColumnEstimate] = field(default_factory=dict)


def row_estimate(view: IndexView) -> float | None:
    """Rows of the whole table, from the index's list of files alone."""
    index = view.index
    if index is None:
        return None
    return _rows(index.rows[index.owned()[0]] if index.shared else index.rows)


def estimate(context: ScanContext) -> Estimate:
    """Statistics of the rows in files that the scan's predicate keeps."""
    index = context.view.index
    if index is None:
        return Estimate()
    known = all_indexed(context)
    left: npt.NDArray[np.int64] | None = None
    if not isinstance(context.predicate, BoundTrue):
        kept = ~prune(context.predicate, known, context.request.semantics).never
        left = None if kept.all() else np.flatnonzero(kept)
    rows = _rows(known.rows if left is None else known.rows[left])
    if rows is None:
        return Estimate()
    columns: dict[str, ColumnEstimate] = {}
    for name, type, is_key in _columns(context.table):
        reference = BoundReference((name,), type, is_key)
        found = known.column(reference)
        if found is None:
            continue
        if left is not None:
            found = select(found, left)
        distinct = _distinct_keys(found) if is_key else index.distinct_values(name)
        columns[name] = _column(found, rows, distinct)
    return Estimate(rows, columns)


def all_indexed(context: ScanContext) -> CompositePruningStatistics:
    """What is known of all indexed files, with partitions as the index names them.

    A file appears once for each partition that owns it. The caller ensures that there is an index.
    """
    index, keys = context.view.index, context.table.partition_keys
    assert index is not None
    ordinals, owner, names = index.owned()
    values = list(zip(*typed_values(names, keys), strict=True)) if keys else [()] * len(names)
    files = FileTable(index.paths, index.sizes, index.modified, index.etags)
    batch = SliceBatch(
        files.take(ordinals) if index.shared else files,
        ordinals,
        owner,
        tuple(Partition(name, (), "") for name in names),
        (ReaderSpec(context.table.format),),
        index,
    )
    pruner = context.pruner_of(index)
    return CompositePruningStatistics(batch, pruner.statistics, index.rows, keys, values)


def _columns(table: Table) -> Sequence[tuple[str, Type, bool]]:
    data = [(c.name, c.type, False) for c in table.columns if not c.type.is_nested]
    keys = [(c.name, c.type, True) for c in table.partition_keys]
    return keys + data[:_MAX_COLUMNS]


def _rows(counts: npt.NDArray[np.int64]) -> float | None:
    """The sum of the counts; a file without a count contributes the average."""
    counted = counts[counts >= 0]
    if not len(counted):
        return None if len(counts) else 0.0
    return float(counted.sum()) * len(counts) / len(counted)


def _distinct_keys(found: ColumnStatistics) -> float | None:
    """The number of distinct partition values, from their bounds."""
    if not isinstance(found.lower, np.ndarray):
        return float(len(found.lower.unique()) - (1 if found.lower.null_count else 0))
    known: Mask | None = found.lower_known
    values = found.lower if known is None else found.lower[known]
    return float(len(np.unique(values)))


def _column(found: ColumnStatistics, rows: float, distinct: float | None) -> ColumnEstimate:
    nulls = None
    total = float(found.row_count.sum())
    if total > 0 and bool((found.null_count >= 0).all()) and bool((found.row_count >= 0).all()):
        nulls = float(found.null_count.sum()) / total
    low, high = _range(found)
    present = rows * (1.0 - (nulls or 0.0))
    return ColumnEstimate(nulls, None if distinct is None else min(distinct, present), low, high)


def _range(found: ColumnStatistics) -> tuple[float | None, float | None]:
    type = found.type
    numeric = (
        type.is_integer
        or type.is_floating
        or type.kind in (Kind.DATE, Kind.TIMESTAMP, Kind.DECIMAL)
    )
    if not numeric or not isinstance(found.lower, np.ndarray):
        return None, None
    upper = found.upper
    assert isinstance(upper, np.ndarray)
    present = np.ones(len(upper), np.bool_) if found.all_null is None else ~found.all_null
    present &= found.row_count != 0
    for mask in (found.lower_known, found.upper_known):
        if mask is not None and not mask[present].all():
            return None, None
    if not present.any():
        return None, None
    scale = 10.0**type.scale if type.kind is Kind.DECIMAL else 1.0
    return float(found.lower[present].min()) / scale, float(upper[present].max()) / scale
