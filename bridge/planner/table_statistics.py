"""Table and column statistics for an engine's optimiser, from the index alone.

Estimates, never answers: as of the index's generation, over the files that the predicate leaves.
Neither storage nor the catalogue is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.expression.nodes import BoundReference, BoundTrue
from bridge.expression.prune import prune
from bridge.expression.statistics import ColumnStatistics, Mask
from bridge.planner.composite_statistics import CompositePruningStatistics, exact_statistics, select
from bridge.planner.files import take
from bridge.planner.index_view import IndexView
from bridge.table.model import FileList, Table
from bridge.table.partition import typed_values
from bridge.types import Kind, Semantics, Type

if TYPE_CHECKING:
    from bridge.planner.planner import ScanPlan

_MAX_COLUMNS = 500


@dataclass(frozen=True, slots=True)
class ColumnEstimate:
    """What is known of one column; None where it is not.

    Attributes:
        low, high: as numbers: days of a date, microseconds of a timestamp.
    """

    nulls_fraction: float | None = None
    distinct: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows of the table, and columns by name; None and none of them without an index."""

    rows: float | None = None
    columns: dict[str, ColumnEstimate] = field(default_factory=dict)


def row_estimate(view: IndexView) -> float | None:
    """Rows of the whole table; nothing but the index's list of files is looked at."""
    serving = view.serving
    if serving is None:
        return None
    return _rows(serving.rows[view.owned()[0]] if view.shared else serving.rows)


def estimate(plan: ScanPlan) -> Estimate:
    """Statistics of the rows in files that the plan's predicate leaves."""
    serving = plan.view.serving
    if serving is None:
        return Estimate()
    known = indexed(plan.table, plan.view, plan.request.semantics)
    left: npt.NDArray[np.int64] | None = None
    if not isinstance(plan.predicate, BoundTrue):
        kept = ~prune(plan.predicate, known, plan.request.semantics).never
        left = None if kept.all() else np.flatnonzero(kept)
    rows = _rows(known.rows if left is None else known.rows[left])
    if rows is None:
        return Estimate()
    columns: dict[str, ColumnEstimate] = {}
    for name, type, is_key in _columns(plan.table):
        reference = BoundReference((name,), type, is_key)
        found = known.column(reference)
        if found is None:
            continue
        if left is not None:
            found = select(found, left)
        distinct = _distinct_keys(found) if is_key else serving.distinct_values(name)
        columns[name] = _column(found, rows, distinct)
    return Estimate(rows, columns)


def indexed(table: Table, view: IndexView, semantics: Semantics) -> CompositePruningStatistics:
    """What is known of all indexed files; partitions as the index names them.

    A file is there once for each partition that owns it.
    """
    serving = view.serving
    assert serving is not None
    ordinals, owner, names = view.owned()
    values = [()] * len(names)
    if table.partition_keys:
        values = list(zip(*typed_values(names, table.partition_keys), strict=True))
    files = FileList(
        serving.paths, serving.sizes, serving.modified, serving.partition, serving.etags
    )
    if view.shared:
        files = replace(take(files, ordinals), partition=owner)
    return CompositePruningStatistics(
        files,
        ordinals,
        exact_statistics(table, view, semantics),
        serving.rows,
        (table.partition_keys, names, values),
        whole=not view.shared,
    )


def _columns(table: Table) -> Sequence[tuple[str, Type, bool]]:
    data = [(c.name, c.type, False) for c in table.columns if not c.type.is_nested]
    keys = [(c.name, c.type, True) for c in table.partition_keys]
    return keys + data[:_MAX_COLUMNS]


def _rows(counts: npt.NDArray[np.int64]) -> float | None:
    """The sum; files that are not counted are taken as average ones."""
    counted = counts[counts >= 0]
    if not len(counted):
        return None if len(counts) else 0.0
    return float(counted.sum()) * len(counts) / len(counted)


def _distinct_keys(found: ColumnStatistics) -> float | None:
    """Partition values are told by their bounds."""
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
