"""Batch sizes for the next scan, derived from the calls of earlier scans.

A call for n partitions takes about ``a + b * n`` seconds: ``a`` is its overhead (20 to 50 ms on the
databases measured), ``b`` the cost of each partition. Both are fitted to the calls made; recent
calls count most. Two sizes follow from them: a call of ``a / b`` partitions is half overhead, so
smaller calls only add load; and the largest call that still takes no longer than the target.
"""

from __future__ import annotations

import math
import threading

_DECAY = 0.8
# Until calls of two sizes were made, a tenth of a call's time is assumed to depend on its size.
_PRIOR_SHARE = 0.1
# The first call may exceed its overhead by this share: the planner waits for it.
_FIRST_SHARE = 0.1
_LEAST = 1e-9


class AdaptiveBatchSize:
    """Learns from all scans of one metastore; thread-safe.

    Args:
        target: seconds that a call should last at most.
    """

    def __init__(self, target: float) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._weight = self._n = self._t = self._nn = self._nt = 0.0
        self._slope: float | None = None

    def took(self, count: int, seconds: float) -> None:
        """Records that a call for ``count`` partitions took this long."""
        with self._lock:
            self._weight = self._weight * _DECAY + 1.0
            self._n = self._n * _DECAY + count
            self._t = self._t * _DECAY + seconds
            self._nn = self._nn * _DECAY + count * count
            self._nt = self._nt * _DECAY + count * seconds
            n, t = self._n / self._weight, self._t / self._weight
            spread = self._nn / self._weight - n * n
            # Calls of one size do not determine the slope, so the last known one stays.
            if spread > 0.01 * n * n:
                self._slope = (self._nt / self._weight - n * t) / spread

    def first_and_cap(
        self, count: int, parallelism: int, start: int, cap: int, largest: int
    ) -> tuple[int, int]:
        """The first size and the cap for a scan of ``count`` partitions.

        Law: ``start <= first <= cap <= the new cap <= largest``. The new cap is large enough that
        calls are not mostly overhead, and no larger than an equal share of the partitions for each
        of ``parallelism`` connections, or than the target allows.

        Args:
            start, cap: values without measurements; results are never lower than these.
        """
        with self._lock:
            if not self._weight:
                return start, cap
            overhead, each = self._fit()
        half_overhead = max(cap, min(largest, int(overhead / each)))
        # If the overhead alone exceeds the target, small batches would only add to it.
        within_target = max(half_overhead, min(largest, int((self._target - overhead) / each)))
        first = min(cap, start + int(overhead * _FIRST_SHARE / each))
        return first, max(half_overhead, min(within_target, math.ceil(count / parallelism)))

    def _fit(self) -> tuple[float, float]:
        """Seconds per call, and per partition in it."""
        n, t = self._n / self._weight, self._t / self._weight
        each = prior = t * _PRIOR_SHARE / n
        if self._slope is not None:
            # Noise can tilt the line: keep a partition's cost above 0 and below that of its call.
            each = min(max(self._slope, prior / 10), t / n)
        each = max(each, _LEAST)
        return max(t - each * n, 0.0), each
