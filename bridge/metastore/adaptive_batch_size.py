"""How many partitions to ask for in one call, learnt from how long calls take.

A call costs about ``a + b * n`` seconds for n partitions: a of them whatever its size (20 to 50 ms
on the databases measured), b for each. Both are fitted to the calls made, the latest counting most.
From them follow two sizes: ``a / b``, below which a call is mostly overhead, so that to split
further loads the metastore and gains nothing; and the size of a call that lasts the time aimed at,
which no batch exceeds unless it would be mostly overhead.
"""

from __future__ import annotations

import math
import threading

_DECAY = 0.8
# Before two sizes were seen: a tenth of the first call is taken to depend on its size.
_PRIOR_SHARE = 0.1
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

    def took(self, count: int, seconds: float) -> None:
        """A call for ``count`` partitions took that long."""
        with self._lock:
            self._weight = self._weight * _DECAY + 1.0
            self._n = self._n * _DECAY + count
            self._t = self._t * _DECAY + seconds
            self._nn = self._nn * _DECAY + count * count
            self._nt = self._nt * _DECAY + count * seconds

    def size(self, remaining: int, parallelism: int, least: int, most: int) -> int:
        """The size of the next batch when ``remaining`` partitions are still to be asked for.

        They are shared out among ``parallelism`` calls, within the sizes above and within
        ``least`` and ``most``; a rest smaller than that size joins the batch.
        """
        with self._lock:
            fitted = self._fit()
        if fitted is None:
            return least
        fixed, each = fitted
        shortest = max(least, min(most, int(fixed / each)))
        # Where the overhead alone is longer than the target, small batches would only add to it.
        longest = max(shortest, min(most, int((self._target - fixed) / each)))
        size = max(shortest, min(longest, math.ceil(remaining / parallelism)))
        rest = remaining - size
        return remaining if 0 < rest < shortest and remaining <= most else size

    def _fit(self) -> tuple[float, float] | None:
        """Seconds of a call, and of each partition in it."""
        if not self._weight:
            return None
        n, t = self._n / self._weight, self._t / self._weight
        spread = self._nn / self._weight - n * n
        prior = max(t * _PRIOR_SHARE / n, _LEAST)
        each = prior
        if spread > 0.01 * n * n:
            # Noise can turn the line; a partition costs something, and not more than its call.
            slope = (self._nt / self._weight - n * t) / spread
            each = max(min(max(slope, prior / 10), t / n), _LEAST)
        return max(t - each * n, 0.0), each
