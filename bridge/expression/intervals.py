"""Files as intervals sorted by lower bound, so that long IN lists use binary search.

``reach`` is the running maximum of the upper bounds. The files that may hold v are between the
first one with reach >= v and the last one with lower bound <= v: two binary searches per value.
This pays if few files overlap. `none_of` declines if many do.
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
    """Bounds of one column in all files, sorted on the second call. Thread-safe.

    Sorting costs as much as a dozen calls, too much for a single one.

    Args:
        lower, upper: int64 or float64; unknown bounds are infinite.
        ascending: both are already in ascending order.
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
        """Files whose bounds enclose none of the values; None if a scan of all is as fast."""
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
