"""FairLock: CPU-bound requests run one at a time, in FIFO order.

Python computes in one thread at a time anyway. If sixteen plans are made at once, each plan queues
behind fifteen others whenever a call into Arrow or NumPy releases the interpreter lock, and most of
the time goes into thread switches.

Metastore calls are made before a turn is taken. No call waits forever: if its turn is late,
because an earlier request does I/O after all, the call proceeds without a turn.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from bridge.kernel.telemetry import QUEUED


class FairLock:
    """A lock that grants turns in FIFO order.

    Args:
        patience: seconds after which a call proceeds without a turn.
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
        QUEUED.inc()
        granted = mine.acquire(timeout=self._patience)
        QUEUED.dec()
        if granted:
            return True
        with self._lock:
            if mine in self._waiting:
                self._waiting.remove(mine)
                return False
        return True  # the turn was granted just as patience ended

    def _hand_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free = True
