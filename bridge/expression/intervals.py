"""Files as intervals in the order of their lower bounds: answers long IN lists by binary search.

Lower bounds are sorted, and ``reach`` is the greatest upper bound so far. The files that may hold v
lie between the first whose reach is v or more and the last whose lower bound is v or less: two
binary searches per value. This pays where few files overlap; `none_of` declines where many do.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bridge.expression.statistics import Mask

MIN_FILES = 50_000
MIN_VALUES = 16


class Intervals:
    """Bounds of one column over all files; sorted at the second question, unless they are already.

    Sorting costs as much as a dozen answers, too much for a single question. Thread-safe.

    Args:
        lower, upper: int64 or float64, unknown ones infinite.
        ascending: both are in ascending order already.
    """

    def __init__(self, lower: npt.NDArray[Any], upper: npt.NDArray[Any], ascending: bool) -> None:
        self._upper = upper
        self._order: npt.NDArray[np.int64] | None = None
        self._sorted: tuple[npt.NDArray[Any], ...] | None = None
        self._lower = lower
        if ascending:
            self._sorted = (lower, upper, upper)
        self._lock = threading.Lock()
        self._asked = False

    def none_of(self, values: Sequence[Any]) -> Mask | None:
        """Files whose bounds enclose none of the values; None if looking at each is no worse."""
        count = len(self._upper)
        if count < MIN_FILES or len(values) < MIN_VALUES:
            return None
        first, self._asked = not self._asked, True
        if first and self._sorted is None:
            return None
        lower, upper, reach = self._ordered()
        sought = np.asarray(values, lower.dtype)
        stop = np.searchsorted(lower, sought, side="right")
        start = np.minimum(np.searchsorted(reach, sought, side="left"), stop)
        widths = stop - start
        total = int(widths.sum())
        if total > count // 8:
            return None
        ends = np.cumsum(widths)
        at = np.arange(total) + np.repeat(start - (ends - widths), widths)
        at = at[upper[at] >= np.repeat(sought, widths)]
        never = np.ones(count, np.bool_)
        never[at if self._order is None else self._order[at]] = False
        return never

    def _ordered(self) -> tuple[npt.NDArray[Any], ...]:
        if self._sorted is None:
            with self._lock:
                if self._sorted is None:
                    self._order = np.argsort(self._lower, kind="stable")
                    upper = self._upper[self._order]
                    self._sorted = (self._lower[self._order], upper, np.maximum.accumulate(upper))
        return self._sorted
