"""FairLock: CPU-bound requests run one at a time, in FIFO order.

Python computes in one thread at a time anyway. Where sixteen plans are made at once, each step of
one that gives the interpreter away (every call into Arrow or NumPy does) puts it behind fifteen
others, and most of the time goes into the changes between threads.

What asks a metastore is done before a turn is taken. Nobody waits for ever: a call whose turn does
not come in time, since one before it waits for a store after all, goes on without.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class FairLock:
    """First come, first served.

    Args:
        patience: seconds after which a call goes on without a turn.
    """

    def __init__(self, patience: float = 1.0) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._free = True
        self._waiting: deque[threading.Lock] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        held = self._take()
        try:
            yield
        finally:
            if held:
                self._hand_on()

    def _take(self) -> bool:
        with self._lock:
            if self._free:
                self._free = False
                return True
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append(mine)
        if mine.acquire(timeout=self._patience):
            return True
        with self._lock:
            if mine in self._waiting:
                self._waiting.remove(mine)
                return False
        return True  # it was handed on in the very moment that patience ended

    def _hand_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free = True
