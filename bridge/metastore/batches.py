"""Fetches partitions in batches that grow exponentially: 10, 20, 40, 80, 100, 100, and so on.

A call to the metastore has a high fixed cost, so batches should be large. But the planner starts
on the first partitions while the rest is fetched, so the first batch should be small. Batch sizes
therefore double from a small start up to a cap. Earlier calls to the same metastore may raise the
first size and the cap (`bridge.metastore.adaptive_batch_size`); the sizes still double. A scan of
thousands of partitions outgrows the cap: there a batch may hold a fifth of what came before it.

A few threads fetch batches ahead of the reader, and batches arrive in order. At most
``parallelism`` batches are in flight or waiting, so a reader that stops early wastes little work.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, TypeVar

from bridge.kernel.threads import Threads
from bridge.metastore.adaptive_batch_size import AdaptiveBatchSize
from bridge.metastore.client import FoundPartitions, MetastoreClient
from bridge.metastore.connection import Cancellation

T = TypeVar("T")
FetchBatch = Callable[[Sequence[str], Cancellation], T]
_LATER_SHARE = 5
"""A reader that stops early thus wastes no more than it used, with four such batches in flight."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The sizes of batches.

    Attributes:
        start: partitions in the first batch.
        growth: factor between one batch and the next.
        cap: maximum size of a batch.
        parallelism: maximum number of calls in flight.
        adapt: lets the latency of earlier calls raise the first size, at most to the cap, and
            raise the cap; lets the batches of a long scan outgrow the cap.
        largest: limit for a raised cap, and for the batches of a long scan.
        target: maximum seconds that a call should take, once the cap is raised.
    """

    start: int = 10
    growth: float = 2.0
    cap: int = 100
    parallelism: int = 4
    adapt: bool = True
    target: float = 0.1
    largest: int = 1000


def batch_sizes(
    start: int = 10, growth: float = 2.0, cap: int = 100, largest: int = 0
) -> Iterator[int]:
    """An endless sequence of batch sizes.

    Args:
        largest: limit for batches above the cap, each at most a fifth of those before it.

    >>> from itertools import islice
    >>> list(islice(batch_sizes(), 6))
    [10, 20, 40, 80, 100, 100]
    """
    size, asked = float(start), 0
    while True:
        batch = max(min(int(size), cap), min(asked // _LATER_SHARE, largest))
        yield batch
        asked += batch
        size = min(size * growth, float(cap))


class BatchStream(Generic[T]):
    """Answers to batches of names, prefetched and in order; an iterator and a context manager.

    Nothing is fetched before the first answer is requested. The first batch is then fetched alone,
    so that nothing delays it. An error is raised at its position and ends the stream. `close`
    cancels the calls in flight and returns at once. Another thread may call it; it then also ends
    an iteration that waits.

    Args:
        adaptive: measurements of earlier calls; this stream's calls are added to them.
    """

    def __init__(
        self,
        fetch: FetchBatch[T],
        names: Sequence[str],
        settings: BatchSettings,
        adaptive: AdaptiveBatchSize | None = None,
    ) -> None:
        self._fetch = fetch
        self._names = names
        self._begin = 0
        self._parallelism = settings.parallelism
        self._adaptive = adaptive if settings.adapt else None
        first, cap = settings.start, settings.cap
        if self._adaptive is not None:
            first, cap = self._adaptive.first_and_cap(
                len(names), self._parallelism, first, cap, max(cap, settings.largest)
            )
        later = settings.largest if settings.adapt else 0
        self._sizes = batch_sizes(first, settings.growth, cap, later)
        self._cancellation = Cancellation()
        self._threads: Threads | None = None
        self._ahead: deque[Future[T]] = deque()

    def __iter__(self) -> BatchStream[T]:
        return self

    def __next__(self) -> T:
        try:
            self._fetch_ahead(1)
            if not self._ahead:
                raise StopIteration
            answer = self._ahead.popleft().result()
            # Start the next calls first, so that they run while the caller uses this answer.
            self._fetch_ahead(self._parallelism)
        except CancelledError:
            raise StopIteration from None
        except BaseException:
            self.close()
            raise
        return answer

    def close(self) -> None:
        self._cancellation.cancel()
        if self._threads is not None:
            self._threads.close()

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
                self._threads = Threads(self._parallelism, "partitions")
            try:
                future = self._threads.submit(self._timed, batch)
            except RuntimeError:  # another thread called close
                raise CancelledError from None
            self._ahead.append(future)

    def _next_batch(self) -> Sequence[str]:
        batch = self._names[self._begin : self._begin + next(self._sizes)]
        self._begin += len(batch)
        return batch

    def _timed(self, batch: Sequence[str]) -> T:
        started = time.perf_counter()
        answer = self._fetch(batch, self._cancellation)
        if self._adaptive is not None:
            self._adaptive.took(len(batch), time.perf_counter() - started)
        return answer


def fetch_partitions(
    client: MetastoreClient,
    database: str,
    table: str,
    names: Sequence[str],
    settings: BatchSettings | None = None,
) -> BatchStream[FoundPartitions]:
    """The metastore's own records of these partitions, in batches.

    Errors (while iterating):
        those of `MetastoreClient.get_partitions_by_names`.
    """

    def fetch(batch: Sequence[str], cancellation: Cancellation) -> FoundPartitions:
        return client.get_partitions_by_names(database, table, batch, cancellation)

    return BatchStream(fetch, names, settings if settings is not None else BatchSettings())
