"""Partitions fetched in batches that grow: 10, 20, 40, 80, 100, 100, ...

A call to the metastore costs about the same whatever its size (40 ms on Derby), so batches ought to
be large; but the planner can begin with the files of the first partitions while the rest is
fetched, so the first batches ought to be small. Hence the ladder.

Batches are fetched by a few threads ahead of the reader and handed on in order: never more than
``parallelism`` batches are under way or waiting, so a reader that stops early has cost little.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, TypeVar

from bridge.errors import InvalidConfiguration
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
    """

    start: int = 10
    growth: float = 2.0
    cap: int = 100
    parallelism: int = 4

    def __post_init__(self) -> None:
        if self.start < 1 or self.cap < self.start or self.growth < 1 or self.parallelism < 1:
            raise InvalidConfiguration(
                f"no ladder of batches: {self}", "1 <= start <= cap, growth >= 1, parallelism >= 1"
            )


def batch_sizes(start: int = 10, growth: float = 2.0, cap: int = 100) -> Iterator[int]:
    """The sizes, without end.

    >>> list(itertools.islice(batch_sizes(), 6))
    [10, 20, 40, 80, 100, 100]
    """
    size = float(start)
    while True:
        yield min(int(size), cap)
        size = min(size * growth, float(cap))


def batches(names: Sequence[str], settings: BatchSettings) -> Iterator[Sequence[str]]:
    """Cuts names into batches of the ladder's sizes.

    >>> [len(b) for b in batches(["p=1"] * 35, BatchSettings())]
    [10, 20, 5]
    """
    begin = 0
    for size in batch_sizes(settings.start, settings.growth, settings.cap):
        if begin >= len(names):
            return
        yield names[begin : begin + size]
        begin += size


class BatchStream(Generic[T]):
    """Answers to batches of names, in order, fetched ahead; an iterator and a context manager.

    Nothing is fetched before the first answer is asked for. An error comes in its place in the
    order and ends the stream. `close` cuts off the calls under way and returns at once; it may be
    called from another thread, and then ends an iteration that waits.
    """

    def __init__(self, fetch: Fetch[T], names: Sequence[str], settings: BatchSettings) -> None:
        self._fetch = fetch
        self._remaining = batches(names, settings)
        self._parallelism = settings.parallelism
        self._cancellation = Cancellation()
        self._threads: ThreadPoolExecutor | None = None
        self._ahead: deque[Future[T]] = deque()

    def __iter__(self) -> BatchStream[T]:
        return self

    def __next__(self) -> T:
        try:
            self._fetch_ahead()
            if not self._ahead:
                raise StopIteration
            answer = self._ahead.popleft().result()
            # The next calls start before the answer is handed on: they run while it is used.
            self._fetch_ahead()
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

    def _fetch_ahead(self) -> None:
        if self._cancellation.cancelled:
            raise CancelledError
        for names in itertools.islice(self._remaining, self._parallelism - len(self._ahead)):
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self._parallelism, "skipbridge-partitions")
            try:
                future = self._threads.submit(self._fetch, names, self._cancellation)
            except RuntimeError:  # closed by another thread in between
                raise CancelledError from None
            self._ahead.append(future)


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
