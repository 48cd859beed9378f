"""The retry of this program: growing pauses between attempts, until attempts or time run out."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator


class Backoff:
    """Pauses between attempts; iterate over it to try: ``for _ in Backoff(0.1, attempts=3)``.

    Args:
        first: seconds of the first pause at most; pauses have jitter, for clients that failed
            together must not all come back together.
        growth: how many times as long each pause is as the one before.
        longest: seconds of a pause at most.
        attempts: after so many failures in a row there is no other attempt.
        deadline: seconds since the last progress after which no attempt starts.
        stop: ends a pause early; the next attempt finds out why.
    """

    def __init__(
        self,
        first: float,
        *,
        growth: float = 2.0,
        longest: float = float("inf"),
        attempts: int = sys.maxsize,
        deadline: float = float("inf"),
        stop: threading.Event | None = None,
    ) -> None:
        self._first, self._growth, self._longest = first, growth, longest
        self._attempts, self._deadline = attempts, deadline
        self._sleep = time.sleep if stop is None else stop.wait
        self.reset()

    def reset(self) -> None:
        """Counts anew, because there was progress."""
        self._failures, self._since = 0, time.monotonic()

    def pause(self, failures: int = 1) -> bool:
        """Waits before the next attempt; False at once if there is none.

        Args:
            failures: more than one if attempts were made below this one.
        """
        self._failures += failures
        if self._failures >= self._attempts:
            return False
        longest = min(self._longest, self._first * self._growth ** (self._failures - 1))
        pause = longest * random.uniform(0.5, 1.0)
        if time.monotonic() + pause - self._since >= self._deadline:
            return False
        self._sleep(pause)
        return True

    def __iter__(self) -> Iterator[int]:
        """The numbers of the attempts, from 0, with a pause before each but the first."""
        yield 0
        while self.pause():
            yield self._failures
