"""Partitions fetched in batches that grow.

A call to the metastore costs much whatever its size, so batches ought to be large; but the planner
can begin with the files of the first partitions while the rest is fetched, so the first batch ought
to be small. Hence a ladder: 10, 20, 40, 80, 100, 100, ... Its steps are fixed, or, by default,
after the first batch of 10 as large as the calls made so far advise
(`bridge.metastore.adaptive_batch_size`).

Batches are fetched by a few threads ahead of the reader and handed on in order: never more than
``parallelism`` batches are under way or waiting, so a reader that stops early has cost little.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, TypeVar

from bridge.errors import InvalidConfiguration
from bridge.metastore.adaptive_batch_size import AdaptiveBatchSize
from bridge.metastore.client import FoundPartitions, MetastoreClient
from bridge.metastore.connection import Cancellation

T = TypeVar("T")
Fetch = Callable[[Sequence[str], Cancellation], T]


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The ladder.

    Attributes:
        start: partitions in the first batch.
        growth: each batch is that many times the one before,
        cap: up to this size.
        parallelism: calls under way at once.
        adapt: sizes after the first follow the measured latency, up to the cap; no growth then.
        target: seconds that an adapted call should last at most.
    """

    start: int = 10
    growth: float = 2.0
    cap: int = 1000
    parallelism: int = 4
    adapt: bool = True
    target: float = 0.1

    def __post_init__(self) -> None:
        if self.start < 1 or self.cap < self.start or self.growth < 1 or self.parallelism < 1:
            raise InvalidConfiguration(
                f"no ladder of batches: {self}", "1 <= start <= cap, growth >= 1, parallelism >= 1"
            )
        if self.target <= 0:
            raise InvalidConfiguration(f"no time for a call: {self.target} s", "target > 0")


def batch_sizes(start: int = 10, growth: float = 2.0, cap: int = 100) -> Iterator[int]:
    """The sizes, without end.

    >>> from itertools import islice
    >>> list(islice(batch_sizes(), 6))
    [10, 20, 40, 80, 100, 100]
    """
    size = float(start)
    while True:
        yield min(int(size), cap)
        size = min(size * growth, float(cap))


class BatchStream(Generic[T]):
    """Answers to batches of names, in order, fetched ahead; an iterator and a context manager.

    Nothing is fetched before the first answer is asked for; the first batch is then alone under
    way, so that nothing holds it up. An error comes in its place in the order and ends the stream.
    `close` cuts off the calls under way and returns at once; it may be called from another thread,
    and then ends an iteration that waits.

    Args:
        pace: learns from the calls and advises sizes; one of its own by default.
    """

    def __init__(
        self,
        fetch: Fetch[T],
        names: Sequence[str],
        settings: BatchSettings,
        pace: AdaptiveBatchSize | None = None,
    ) -> None:
        self._fetch = fetch
        self._names = names
        self._begin = 0
        self._settings = settings
        self._ladder = batch_sizes(settings.start, settings.growth, settings.cap)
        self._pace = pace if pace is not None else AdaptiveBatchSize(settings.target)
        self._cancellation = Cancellation()
        self._threads: ThreadPoolExecutor | None = None
        self._ahead: deque[Future[T]] = deque()

    def __iter__(self) -> BatchStream[T]:
        return self

    def __next__(self) -> T:
        try:
            self._fetch_ahead(1)
            if not self._ahead:
                raise StopIteration
            answer = self._ahead.popleft().result()
            # The next calls start before the answer is handed on: they run while it is used.
            self._fetch_ahead(self._settings.parallelism)
        except CancelledError:
            raise StopIteration from None
        except BaseException:
            self.close()
            raise
        return answer

    def close(self) -> None:
        self._cancellation.cancel()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> BatchStream[T]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _fetch_ahead(self, calls: int) -> None:
        if self._cancellation.cancelled:
            raise CancelledError
        while self._begin < len(self._names) and len(self._ahead) < calls:
            batch = self._next_batch()
            if self._threads is None:
                self._threads = ThreadPoolExecutor(
                    self._settings.parallelism, "skipbridge-partitions"
                )
            try:
                future = self._threads.submit(self._timed, batch)
            except RuntimeError:  # closed by another thread in between
                raise CancelledError from None
            self._ahead.append(future)

    def _next_batch(self) -> Sequence[str]:
        settings = self._settings
        size = next(self._ladder)
        if settings.adapt and self._begin:
            size = self._pace.size(
                len(self._names) - self._begin,
                settings.parallelism - len(self._ahead),
                settings.start,
                settings.cap,
            )
        batch = self._names[self._begin : self._begin + size]
        self._begin += len(batch)
        return batch

    def _timed(self, batch: Sequence[str]) -> T:
        started = time.perf_counter()
        answer = self._fetch(batch, self._cancellation)
        self._pace.took(len(batch), time.perf_counter() - started)
        return answer


def fetch_partitions(
    client: MetastoreClient,
    database: str,
    table: str,
    names: Sequence[str],
    settings: BatchSettings | None = None,
    pace: AdaptiveBatchSize | None = None,
) -> BatchStream[FoundPartitions]:
    """The metastore's own records of these partitions, in batches.

    Errors (while iterating):
        those of `MetastoreClient.get_partitions_by_names`.
    """

    def fetch(batch: Sequence[str], cancellation: Cancellation) -> FoundPartitions:
        return client.get_partitions_by_names(database, table, batch, cancellation)

    return BatchStream(fetch, names, settings if settings is not None else BatchSettings(), pace)
