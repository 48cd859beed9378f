"""Top-N: selects the files that may hold one of the first n rows of an order.

The law, over the rows that satisfy the predicate: every row that may be among the first n, ties
included, is in a file that stays. Let T be the greatest value such that n counted rows are known
to come no later than T. A file whose best possible row comes after T is left out. The engine sorts.

Only files whose row count is known and in which ALL rows satisfy the predicate (ALWAYS) count.
NULLs come first or last as the request says. The position of NaN is not relied on: NaN rows never
count, and their files stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.statistics import ColumnStatistics, Counts, Mask
from bridge.planner.request import SortKey

_BEST = 2**62
_WORST = -(2**62)


@dataclass(frozen=True, slots=True)
class Ranked:
    """Files, ranked by how early their rows may come.

    Attributes:
        keep: files that may hold one of the first rows.
        best: rank of the file's best possible row; greater means earlier.
    """

    keep: Mask
    best: npt.NDArray[np.int64]


def files_with_first_rows(
    columns: Iterable[tuple[ColumnStatistics | None, Mask, Counts]], key: SortKey, count: int
) -> Ranked:
    """Files that may hold one of the first ``count`` rows by one key.

    Args:
        columns: for each batch of files: the key's statistics, the files in which all rows satisfy
            the predicate, and the files' row counts.
    """
    parts = list(columns)
    low, high = _codes([column for column, _, _ in parts if column is not None])
    best: list[npt.NDArray[np.int64]] = []
    codes: list[npt.NDArray[np.int64]] = []
    counts: list[Counts] = []
    start = 0
    for column, always, rows in parts:
        if column is None:
            best.append(np.where(rows == 0, _WORST - 2, _BEST))
            continue
        end = start + len(rows)
        reach = _reach(column, always, rows, (low[start:end], high[start:end]), key)
        start = end
        best.append(reach.best)
        codes += reach.codes
        counts += reach.counts
    ranks = np.concatenate(best) if best else np.empty(0, np.int64)
    return Ranked(ranks >= _threshold(codes, counts, count), ranks)


def _threshold(codes: list[npt.NDArray[np.int64]], counts: list[Counts], wanted: int) -> int:
    """The greatest rank that ``wanted`` counted rows reach; below every rank if too few rows."""
    if not codes:
        return _WORST - 1
    code, held = np.concatenate(codes), np.concatenate(counts)
    order = np.argsort(-code, kind="stable")
    sums = np.cumsum(held[order])
    at = int(np.searchsorted(sums, wanted))
    return int(code[order[at]]) if at < len(sums) else _WORST - 1


@dataclass(frozen=True, slots=True)
class _Reach:
    """The best rank of each file, and row counts that are known to have at least a rank."""

    best: npt.NDArray[np.int64]
    codes: list[npt.NDArray[np.int64]]
    counts: list[Counts]


def _reach(
    column: ColumnStatistics,
    always: Mask,
    rows: Counts,
    ends: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]],
    key: SortKey,
) -> _Reach:
    low, high = ends
    known_low, known_high = _known(column, low, high)
    if key.descending:
        near, far, near_known, far_known = high, low, known_high, known_low
    else:
        near, far, near_known, far_known = -low, -high, known_low, known_high
    null = _BEST - 1 if key.nulls_first else _WORST
    nulls, nans = column.null_count, column.nan_count
    if not column.type.is_floating:
        nans = np.zeros(len(rows), np.int64)
    counted = (rows >= 0) & (nulls >= 0)
    only_null = counted & (nulls == rows)
    if column.all_null is not None:
        only_null = only_null | column.all_null
    best = np.where(only_null, _WORST - 2, np.where(near_known, near, _BEST))
    best = np.where(nulls != 0, np.maximum(best, null), best)
    best = np.where((nans != 0) & ~only_null, _BEST, best)
    best = np.where(rows == 0, _WORST - 2, best)
    sure = counted & always
    values = np.where(sure & (nans >= 0) & far_known, rows - nulls - nans, 0)
    blanks = np.where(sure, nulls, 0)
    return _Reach(best, [far, np.full(len(rows), null)], [np.maximum(values, 0), blanks])


def _known(
    column: ColumnStatistics, low: npt.NDArray[np.int64], high: npt.NDArray[np.int64]
) -> tuple[Mask, Mask]:
    """Which bounds are reliable: known, not NaN (rule 1) and not contradictory (rule 13)."""
    every = np.ones(len(low), np.bool_)
    known_low = every if column.lower_known is None else column.lower_known
    known_high = every if column.upper_known is None else column.upper_known
    if column.type.is_floating:
        known_low, known_high = (
            known_low & ~np.isnan(column.lower),
            known_high & ~np.isnan(column.upper),
        )
    corrupt = known_low & known_high & (low > high)
    return known_low & ~corrupt, known_high & ~corrupt


def _codes(
    columns: list[ColumnStatistics],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Bounds of all batches as numbers in one order; the number of an unknown bound is void."""
    sides: list[Any] = [c.lower for c in columns] + [c.upper for c in columns]
    if not sides:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if isinstance(sides[0], np.ndarray):
        # NaN is not a bound: it counts as unknown, and its number is never used.
        _, codes = np.unique(np.concatenate(sides), return_inverse=True)
        codes = codes.astype(np.int64)
    else:
        whole = pa.chunked_array(sides).combine_chunks()
        codes = pc.rank(whole, tiebreaker="dense").to_numpy().astype(np.int64)
    half = len(codes) // 2
    return codes[:half], codes[half:]
