"""Partitions for many scans at once: scans that wait for the same partitions share the calls.

The law: a scan is answered only by calls that began after its first request. When a call begins, it
serves every scan of the table that waits for one of its names; a scan that comes later asks again.
Sixteen scans of the same partitions thus cost little more than two.

A bounded number of calls is in flight. Scans take turns in order of arrival, each with its next few
names; a call that had to wait takes the names of others along. Batches grow as in
`bridge.metastore.batches`, and a scan asks only a few batches ahead of its reader. Where several
scans of a table wait, each call is as large as allowed: a call of the embedded metastore costs as
much processor time as 400 partitions in it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.kernel.errors import BridgeError, MetastoreUnavailable
from bridge.kernel.threads import Threads
from bridge.metastore.adaptive_batch_size import AdaptiveBatchSize
from bridge.metastore.batches import BatchSettings, batch_sizes
from bridge.metastore.connection import Cancellation
from bridge.table.model import Partition, PartitionBatch

PartitionAnswers = Mapping[str, Partition | BridgeError]
"""By name: a partition, or why it cannot be read. A name that is not in it does not exist."""
FetchPartitions = Callable[[Sequence[str], Cancellation], PartitionAnswers]

_AT_ONCE = 8


class PartitionCalls:
    """The calls of one metastore; all threads share it.

    Args:
        at_once: maximum number of calls in flight, for all scans together.
    """

    def __init__(self, settings: BatchSettings, at_once: int = _AT_ONCE) -> None:
        self.settings = settings
        self.adaptive = AdaptiveBatchSize(settings.target) if settings.adapt else None
        self.lock = threading.Lock()
        self._scans: dict[Hashable, list[SharedFetch]] = {}
        self._queue: deque[SharedFetch] = deque()
        self._closed = False
        self._threads = Threads(
            max(at_once, settings.parallelism) if at_once > 1 else 1, "partitions"
        )

    def fetch(self, key: Hashable, names: Sequence[str], ask: FetchPartitions) -> SharedFetch:
        """The partitions of these names, in this order; nothing is asked before the first batch.

        Args:
            key: the table; scans with the same key share calls.
            ask: makes one call.
        """
        return SharedFetch(self, key, names, ask)

    @property
    def waiting(self) -> int:
        """Scans that wait for partitions."""
        with self.lock:
            return sum(map(len, self._scans.values()))

    def close(self) -> None:
        """Fails all scans and cancels the calls in flight: what they lack is not absent."""
        with self.lock:
            self._closed = True
            for scan in [s for scans in self._scans.values() for s in scans]:
                scan.end(_closed())
        self._threads.close()

    # callers of these hold the lock

    def join(self, scan: SharedFetch) -> bool:
        if not self._closed:
            self._scans.setdefault(scan.key, []).append(scan)
        return not self._closed

    def leave(self, scan: SharedFetch) -> None:
        scans = self._scans.get(scan.key, [])
        if scan in scans:
            scans.remove(scan)
            if not scans:
                del self._scans[scan.key]

    def crowded(self, key: Hashable) -> bool:
        return len(self._scans.get(key, ())) > 1

    def enqueue(self, scan: SharedFetch) -> None:
        self._queue.append(scan)
        self._threads.submit(self._call)

    # the pool's threads

    def _call(self) -> None:
        with self.lock:
            call = self._begin()
        if call is None:
            return
        started = time.perf_counter()
        found: PartitionAnswers | BaseException
        try:
            found = call.ask(call.names, call.cancellation)
        except BaseException as error:  # every exception reaches the scans
            found = error
        else:
            if self.adaptive is not None:
                self.adaptive.took(len(call.names), time.perf_counter() - started)
        with self.lock:
            call.end(found)

    def _begin(self) -> _Call | None:
        """The next call: of the scan that has waited longest, filled up by those behind it."""
        if not self._queue:  # taken along by an earlier call
            return None
        first = self._queue.popleft()
        call = _Call(first.ask, first.take(), [first])
        if not first.alone:
            for other in list(self._queue):
                if len(call.names) >= first.largest:
                    break
                if other.key == first.key and not other.alone:
                    self._queue.remove(other)
                    call.names += other.take(known=call.names)
                    call.owners.append(other)
        names = set(call.names)
        for scan in [first] if first.alone else self._scans.get(first.key, ()):
            if not scan.alone or scan is first:
                scan.expect(call, names)
        call.shared = len(call.served) > 1
        if not names:
            call.end({})
            return None
        return call


@dataclass(slots=True, eq=False)
class _Call:
    """A call in flight.

    Attributes:
        owners: the scans whose turn it was.
        served: the scans that get its answers, each with the names it waits for.
        shared: it began for several scans.
    """

    ask: FetchPartitions
    names: list[str]
    owners: list[SharedFetch]
    served: dict[SharedFetch, set[str]] = field(default_factory=dict)
    cancellation: Cancellation = field(default_factory=Cancellation)
    shared: bool = False

    def end(self, found: PartitionAnswers | BaseException) -> None:
        # A partition that only one of several scans wants may have failed the call.
        apart = (
            self.shared
            and isinstance(found, BaseException)
            and not isinstance(found, MetastoreUnavailable)
        )
        for scan, names in self.served.items():
            if isinstance(found, BaseException):
                scan.fail(self, names, found, apart)
            else:
                scan.receive(self, names, found)
        for scan in self.owners:
            scan.turn_ended()


class SharedFetch:
    """One scan's partitions; an iterator of batches, a context manager and a `PartitionFetch`.

    Another thread may call `close`; that ends an iteration that waits. An error is raised at its
    position and ends the scan.

    Errors (while iterating):
        MetastoreUnavailable: also if the calls were closed before the last batch.
    """

    def __init__(
        self, calls: PartitionCalls, key: Hashable, names: Sequence[str], ask: FetchPartitions
    ) -> None:
        self.key = key
        self.ask = ask
        self.alone = False
        """Shares no calls: one that it shared has failed."""
        self._calls = calls
        self._names = names
        self._changed = threading.Condition(calls.lock)
        self._wanted: set[str] = set()
        self._answers: dict[str, Partition | BaseException | None] = {}
        self._in_flight: list[_Call] = []
        self._drawn = self._asked = 0
        self._queued = self._turns = 0
        self._joined = self._ended = False
        self._failure: BaseException | None = None

    def __iter__(self) -> SharedFetch:
        return self

    def __next__(self) -> PartitionBatch:
        names = self._names
        with self._changed:
            self._join()
            self._changed.wait_for(
                lambda: (
                    self._ended or self._drawn == len(names) or names[self._drawn] in self._answers
                )
            )
            if self._ended or self._drawn == len(names):
                self.end()
                if self._failure is not None:
                    raise self._failure
                raise StopIteration
            found: list[Partition] = []
            missing: list[str] = []
            position = self._drawn
            while position < len(names) and names[position] in self._answers:
                answer = self._answers[names[position]]
                if isinstance(answer, BaseException):
                    if position > self._drawn:
                        break
                    self.end()
                    raise answer
                if answer is None:
                    missing.append(names[position])
                else:
                    found.append(answer)
                position += 1
            self._drawn = position
            # The next calls begin now, so that they run while the reader uses this batch.
            self._enqueue()
        return PartitionBatch(tuple(found), tuple(missing))

    def close(self) -> None:
        """Ends the scan; a call that no other scan waits for is cancelled."""
        with self._changed:
            self.end()

    # callers of these hold the lock

    def _join(self) -> None:
        if self._joined:
            return
        self._joined = True
        s, adaptive = self._calls.settings, self._calls.adaptive
        first, self.largest = s.start, s.cap
        if adaptive is not None:
            first, self.largest = adaptive.first_and_cap(
                len(self._names), s.parallelism, first, s.cap, max(s.cap, s.largest)
            )
        self._sizes = batch_sizes(first, s.growth, self.largest, s.largest if s.adapt else 0)
        self._size = next(self._sizes)
        self._wanted = set(self._names)
        if not self._ended and not self._calls.join(self):
            self.end(_closed())
        self._enqueue()

    def _enqueue(self) -> None:
        """Asks for as many turns as the reader's position allows."""
        parallelism = self._calls.settings.parallelism
        # The first call runs alone, so that nothing delays it.
        most = parallelism if self._drawn else 1
        while (
            not self._ended
            and self._wanted
            and self._turns < most
            and self._asked + self._queued * self._size < self._drawn + parallelism * self._size
            and self._asked + self._queued * self._size < len(self._names)
        ):
            self._turns += 1
            self._queued += 1
            self._calls.enqueue(self)

    def take(self, known: Sequence[str] = ()) -> list[str]:
        """The names of this scan's turn, without those that it need not ask for."""
        self._queued -= 1
        taken: list[str] = []
        already = set(known)
        most = self._size
        if self._calls.crowded(self.key):
            most = max(most, self.largest)
        while self._asked < len(self._names) and len(taken) < most and not self._ended:
            name = self._names[self._asked]
            self._asked += 1
            if name in self._wanted and name not in already:
                taken.append(name)
        self._size = next(self._sizes)
        return taken

    def expect(self, call: _Call, names: set[str]) -> None:
        mine = names & self._wanted
        if mine:
            self._wanted -= mine
            self._in_flight.append(call)
            call.served[self] = mine

    def receive(self, call: _Call, names: set[str], found: PartitionAnswers) -> None:
        self._in_flight.remove(call)
        for name in names:
            self._answers[name] = found.get(name)
        self._changed.notify_all()

    def fail(self, call: _Call, names: set[str], error: BaseException, apart: bool) -> None:
        self._in_flight.remove(call)
        if apart:
            self.alone = True
            self._wanted |= names
            self._asked = self._drawn
            self._enqueue()
        else:
            self._answers.update(dict.fromkeys(names, error))
        self._changed.notify_all()

    def turn_ended(self) -> None:
        self._turns -= 1
        self._enqueue()

    def end(self, failure: BaseException | None = None) -> None:
        if self._ended:
            return
        self._ended, self._failure = True, failure
        self._wanted.clear()
        self._calls.leave(self)
        for call in self._in_flight:
            del call.served[self]
            if not call.served:
                call.cancellation.cancel()
        self._in_flight.clear()
        self._changed.notify_all()


def _closed() -> MetastoreUnavailable:
    return MetastoreUnavailable(
        "the connection to the metastore was closed during a scan", "run the query again"
    )
