"""Requests to the metastore, cut by size in bytes.

A metastore turns a request into statements of its database, and a statement that is too long fails
as a whole: MySQL limits packets to ``max_allowed_packet``, Derby parses long lists recursively, and
the text of an event must fit its column. A batch is therefore limited in bytes and in number.

If the metastore refuses a batch, the batch is halved until the refused partitions are alone: an
event of 200 partitions is too long for the metastore of Hive 2.3 on Derby, one of 20 is not. The
others are written, however many are refused. Only if nothing at all is accepted, and refusals take
long, as they do where the metastore tries again for itself, are the rest not sent.

Larger batches are not faster. The metastore of Hive 4.0 writes all rows of a batch in one INSERT,
and Derby's time for it is quadratic: a partition costs 1 ms in batches of 50 to 200, 1.9 ms in a
batch of 1,000 and 3 to 4 ms in a batch of 2,000. On PostgreSQL, and with Hive 2.3, the size makes
no difference.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from bridge.kernel.errors import MetastoreFailure, UnsupportedTable
from bridge.kernel.threads import Threads
from bridge.metastore.calls import RolledBack
from bridge.storage.batches import batches

T = TypeVar("T")
_MOST_FAILURES = 50
_PROBES = 20
_PATIENCE = 600.0  # seconds


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of one request.

    Attributes:
        bytes: size on the wire.
        count: partitions.
    """

    bytes: int = 1 << 20
    count: int = 200


@dataclass(slots=True)
class Batches(Generic[T]):
    """Sends items in batches, several concurrently.

    Args:
        name: of an item.
        send: sends a batch, and returns the names of what it did.

    Attributes:
        failed: the items that were refused, or not sent in the end, each with the reason.
        met: the last refusal of a change that was rolled back for another's.
    """

    name: Callable[[T], str]
    send: Callable[[Sequence[T]], list[str]]
    limits: BatchLimits
    parallelism: int = 1
    progress: Callable[[int], None] = lambda done: None
    failed: list[tuple[str, str]] = field(default_factory=list)
    met: RolledBack | None = None
    _some: Sequence[T] = ()
    _early: dict[str, None] = field(default_factory=dict)
    _count: int = 0
    _proven: bool = False
    _spent: float = 0.0
    _over: str = ""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def run(self, items: Sequence[T], size: Callable[[T], int]) -> list[str]:
        """Sends all items; returns the names of what was done, in order."""
        self._count = self.limits.count
        self._some = items[:: max(1, len(items) // _PROBES)]
        done: list[str] = []
        ahead: deque[Future[list[str]]] = deque()
        with Threads(self.parallelism, "sync") as pool:
            try:
                for batch in batches(items, size, self.limits.bytes, self.limits.count):
                    while len(ahead) >= self.parallelism:
                        done += self._finished(ahead.popleft())
                    ahead.append(pool.submit(self._sent, batch))
                while ahead:
                    done += self._finished(ahead.popleft())
            except BaseException:
                for future in ahead:
                    future.cancel()
                raise
        return [*self._early, *done]

    def _finished(self, future: Future[list[str]]) -> list[str]:
        names = future.result()
        self.progress(len(names))
        return names

    def _sent(self, batch: Sequence[T]) -> list[str]:
        done: list[str] = []
        self._send(batch, done)
        return done

    def _send(self, batch: Sequence[T], done: list[str]) -> bool:
        """Adds the names of what was done; False if an item was refused."""
        if self._early:
            batch = [item for item in batch if self.name(item) not in self._early]
        if self._over:
            self.failed += [(self.name(item), self._over) for item in batch]
            return False
        step, started = self._count, time.monotonic()
        try:
            if len(batch) <= step:
                done += self.send(batch)
                self._proven = True
                return True
        except (MetastoreFailure, UnsupportedTable) as error:
            self._spent += time.monotonic() - started
            if len(batch) == 1:
                self._refused(batch[0], error)
                return False
            step = (len(batch) + 1) // 2
        parts = [batch[i : i + step] for i in range(0, len(batch), step)]
        whole = True
        for part in parts:
            whole &= self._send(part, done)
        if not whole:
            return False
        with self._lock:  # refused for their number alone
            self._count = min(self._count, step)
        return True

    def _refused(self, item: T, error: MetastoreFailure | UnsupportedTable) -> None:
        """Notes a refusal, and gives up if all items seem to be refused, each after long."""
        if isinstance(error, RolledBack):
            self.met = error
            return
        with self._lock:
            self.failed.append((self.name(item), error.message))
            few = len(self.failed) < _MOST_FAILURES or self._spent < _PATIENCE
            if self._proven or self._over or few:
                return
            for each in self._some:
                try:
                    self._early |= dict.fromkeys(self.send([each]))
                except (MetastoreFailure, UnsupportedTable):
                    continue
                self._proven = True
                return
            self._over = f"not sent, as {len(self.failed)} others were refused: {error.message}"
