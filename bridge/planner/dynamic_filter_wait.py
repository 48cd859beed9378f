"""How long it pays to wait for a scan's dynamic filters before its splits are handed out.

A wait pays by the reading that a filter saves: the files of a table without partitions, the
partitions and their listing otherwise. Both are known from the index before anything is listed.

A filter that skips no file still drops rows, before their other columns are read and the join sees
them. Trino applies to the rows of a split only what is known when the split starts, so a split that
starts too soon is read without the filter. Such a wait costs little: where the join is broadcast,
the scan could not go on before the filter's side is read anyway.

The advice is an estimate; an engine may ignore it, and rows never depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bridge.expression.nodes import BoundReference, BoundTrue
from bridge.expression.prune import MANY_FILES, prune
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.planner.answers.composite_statistics import CompositePruningStatistics
from bridge.planner.answers.table_statistics import all_indexed
from bridge.planner.scan_context import ScanContext

_LONGEST_MS = 20_000
_UNKNOWN_MS = 1_000
"""For filters on partition keys of a table without an index."""
_SECONDS_PER_FILE = 0.0005
_BYTES_PER_SECOND = 100e6
_SHARE = 0.25
"""A wait in vain costs at most this share of what the filter could have saved."""
_LEAST_MS = 10
_SECONDS_PER_ROW = 50e-9
"""What a dropped row would have cost: a probe of the join and the decoding of other columns."""
_LEAST_ROWS_MS = 50
"""Less than this is lost again while the engine hands the filter from the join to the scan."""
_ROWS_MS = 1_000
_SAMPLED_FILES = 4096
"""So many files tell enough of a column; a plan must not pay for a million."""
_USEFUL = 0.9
"""A filter counts as useless if this share of the table lies around any value of its column."""


@dataclass(frozen=True, slots=True)
class FilterWait:
    """How long to wait, in milliseconds, and for which columns' filters.

    Attributes:
        columns: those whose filters can skip files; empty if the wait is for all, for their rows.
    """

    millis: int = 0
    columns: tuple[str, ...] = ()

    def beside(self, queries: float) -> FilterWait:
        """The same where other queries are in progress.

        They delay the filter as much as the work that it saves. A wait that ends too soon makes
        each of many queries read what its filter was about to skip.

        Args:
            queries: in progress for each core, this one among them.
        """
        return replace(self, millis=min(int(self.millis * max(queries, 1.0)), _LONGEST_MS))


def filter_wait(context: ScanContext) -> FilterWait:
    """The advice for a scan; calls neither storage nor metastore."""
    request, table, index = context.request, context.table, context.view.index
    asked = request.dynamic_filter_columns
    if not asked or not request.pruning or context.stops_early:
        return FilterWait()
    keys = tuple(k.name.lower() for k in table.partition_keys if k.name.lower() in asked)
    if index is None:
        return FilterWait(_UNKNOWN_MS, keys) if keys else FilterWait()
    if _millis(_seconds(index.num_files, int(index.sizes.sum()))) < _LEAST_MS:
        return FilterWait()
    work = _work(context, index)
    left = {name: _left(context, index, work.known, name) for name in sorted(asked)}
    useful = {name: share for name, share in left.items() if share < _USEFUL}
    millis = _millis(work.seconds * (1 - min(useful.values(), default=1.0)))
    if millis >= _LEAST_MS:
        return FilterWait(min(millis, _LONGEST_MS), tuple(useful))
    if 1000 * work.rows * _SECONDS_PER_ROW < _LEAST_ROWS_MS:
        return FilterWait()
    return FilterWait(_ROWS_MS)


@dataclass(frozen=True, slots=True)
class _Work:
    """What the scan's own predicate leaves: seconds to read it, its rows, and all files' bounds."""

    seconds: float
    rows: float
    known: CompositePruningStatistics | None


def _millis(saved: float) -> int:
    return int(1000 * saved * _SHARE)


def _work(context: ScanContext, index: IndexSnapshot) -> _Work:
    sizes, rows = index.sizes, index.rows
    known: CompositePruningStatistics | None = None
    if index.num_files <= MANY_FILES:  # else the saving is large in any case
        known = all_indexed(context)
        sizes, rows = known.batch.files.sizes, known.rows
        if not isinstance(context.predicate, BoundTrue):
            kept = ~prune(context.predicate, known, context.request.semantics).never
            sizes, rows = sizes[kept], rows[kept]
    return _Work(_seconds(len(sizes), int(sizes.sum())), float(rows[rows > 0].sum()), known)


def _seconds(files: int, size: int) -> float:
    return files * _SECONDS_PER_FILE + size / _BYTES_PER_SECOND


def _left(
    context: ScanContext,
    index: IndexSnapshot,
    known: CompositePruningStatistics | None,
    name: str,
) -> float:
    """The share of the files that a filter for one value of a column leaves; 1 if none is lost."""
    if any(name == k.name.lower() for k in context.table.partition_keys):
        return 1 / max(len(index.owners), 1)
    if any(kind.definition.on.lower() == name for kind in index.kinds):
        return 0.5  # what a bloom filter or a value list leaves depends on the values
    column = next((c for c in context.table.columns if c.name.lower() == name), None)
    if column is None or column.type.is_nested or index.num_files < 2:
        return 1.0
    source = known or context.pruner_of(index).statistics
    found = None if source is None else source.column(BoundReference((column.name,), column.type))
    if found is None:
        return 1.0
    lower, upper = found.lower, found.upper
    if not isinstance(lower, np.ndarray):
        return 1.0 if len(lower.unique()) < 2 else 0.5
    assert isinstance(upper, np.ndarray)
    every = slice(None, None, -(-len(lower) // _SAMPLED_FILES))
    lower, upper = lower[every].astype(np.float64), upper[every].astype(np.float64)
    sure = np.isfinite(lower) & np.isfinite(upper)
    for mask in (found.lower_known, found.upper_known):
        sure &= True if mask is None else mask[every]
    some = np.flatnonzero(sure)
    if not len(some):
        return 1.0
    low, high = lower[some], upper[some]
    # Values that present files hold; a file counts for each that its bounds enclose.
    probes = np.quantile(low, np.linspace(0.05, 0.95, 19), method="nearest")
    inside = (low[:, None] <= probes) & (probes <= high[:, None])
    return float(inside.mean()) * len(some) / len(lower) + 1 - len(some) / len(lower)
