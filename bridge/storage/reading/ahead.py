"""Reads many files with the requests of the next ones in flight, within bounded memory.

A job reads one file. It is a generator that yields what it will read next; meanwhile the requests
of other jobs are made. Threads only make requests. All else, such as decoding, is done by the
caller's thread, in an order that does not depend on the time that requests take.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa

from bridge.kernel.threads import Threads
from bridge.storage.port import FileStat, Range, Storage
from bridge.storage.reading.ranges import cut
from bridge.storage.reading.source import RangeSource

A = TypeVar("A")
T = TypeVar("T")
REQUESTS = 32
BYTES = 64 * 1024 * 1024
"""Bytes that jobs hold together, as far as more than one of them runs."""


class ReadFile:
    """One file while it is read: ``read`` and ``read_ranges`` of `Storage`, for this file only.

    What was fetched ahead is served from memory. The rest is read from the store.

    Attributes:
        states: the file's states as the store told them, one for each read.
    """

    def __init__(self, storage: Storage, uri: str, size: int) -> None:
        self._storage, self._uri, self._size = storage, uri, size
        self._parts: list[tuple[int, bytes]] = []
        self.states: list[FileStat | None] = []

    def missing(self, ranges: Sequence[Range]) -> list[Range]:
        """The ranges that are not in memory."""
        return [
            (start, end)
            for start, end in ranges
            if not any(at <= start and end <= at + len(part) for at, part in self._parts)
        ]

    def fetch(self, ranges: Sequence[Range]) -> None:
        """Reads ranges into memory. Errors: FileUnreadable, StorageFailure."""
        parts = self._read(ranges)
        self._parts += zip((start for start, _ in ranges), parts, strict=True)

    def read(self, uri: str) -> bytes:
        return self.read_ranges(uri, [(0, self._size)])[0]

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        held = [cut(self._parts, start, end) for start, end in ranges]
        missing = [r for r, part in zip(ranges, held, strict=True) if part is None]
        found = iter(self._read(missing) if missing else ())
        return [next(found) if part is None else part for part in held]

    def source(self) -> Any:
        """A file object for pyarrow. Errors: FileUnreadable, StorageFailure: raised by reads."""
        whole = cut(self._parts, 0, self._size)
        if whole is not None:
            return pa.BufferReader(whole)
        return pa.PythonFile(RangeSource(self, self._uri, self._size), mode="r")

    def _read(self, ranges: Sequence[Range]) -> list[bytes]:
        parts, state = self._storage.read_state(self._uri, ranges)
        self.states.append(state)
        return parts


@dataclass(frozen=True, slots=True)
class Fetch:
    """What a job reads next."""

    file: ReadFile
    ranges: Sequence[Range]

    @property
    def bytes(self) -> int:
        return sum(end - start for start, end in self.ranges)

    def make(self) -> None:
        self.file.fetch(self.ranges)


Job = Generator[Fetch, None, None]


@dataclass(slots=True)
class _Running:
    job: Job
    fetch: Fetch
    future: Future[None] | None = None
    bytes: int = 0


def ask_all(storage: Storage, ask: Callable[[A], T], items: Sequence[A], location: str) -> list[T]:
    """The answer for each item, in their order; asked at once if the location is remote.

    Errors: of the first item that fails.
    """
    if len(items) < 2 or not storage.is_remote(location):
        return [ask(item) for item in items]
    with Threads(min(REQUESTS, len(items)), "ask") as pool:
        return list(pool.map(ask, items))


def run_jobs(jobs: Iterable[Job], requests: int = REQUESTS, most: int = BYTES) -> None:
    """Runs all jobs. The errors of a fetch are raised in its job, at its ``yield``.

    Args:
        requests: most requests in flight; 1: no threads, each request is made in its turn.
        most: bytes that the jobs may hold together; a single job may hold more.

    Errors:
        Whatever a job raises. The other jobs are then closed.
    """
    if requests <= 1:
        for job in jobs:
            _run_alone(job)
        return
    pool = Threads(requests, "read")
    try:
        _Runner(pool, requests, most).run(jobs)
    finally:
        pool.close()


def _run_alone(job: Job) -> None:
    try:
        fetch = next(job)
        while True:
            try:
                fetch.make()
            except BaseException as error:
                fetch = job.throw(error)
            else:
                fetch = next(job)
    except StopIteration:
        return


class _Runner:
    def __init__(self, pool: Threads, requests: int, most: int) -> None:
        self._pool, self._requests, self._most = pool, requests, most
        self._running: deque[_Running] = deque()
        self._held = 0

    def run(self, jobs: Iterable[Job]) -> None:
        coming = iter(jobs)
        try:
            while True:
                while len(self._running) < self._requests and self._held < self._most:
                    job = next(coming, None)
                    if job is None:
                        break
                    self._begin(job)
                if not self._running:
                    return
                self._advance(self._running.popleft())
        finally:
            for each in self._running:
                each.job.close()

    def _begin(self, job: Job) -> None:
        fetch = next(job, None)
        if fetch is not None:
            self._fetch(_Running(job, fetch))

    def _fetch(self, running: _Running) -> None:
        size = running.fetch.bytes
        if self._held + size <= self._most:
            running.future = self._pool.submit(running.fetch.make)
        else:
            running.future = None  # read in its turn, when others have let go of theirs
        running.bytes += size
        self._held += size
        self._running.append(running)

    def _advance(self, running: _Running) -> None:
        job = running.job
        try:
            try:
                if running.future is None:
                    running.fetch.make()
                else:
                    running.future.result()
            except BaseException as error:
                running.fetch = job.throw(error)
            else:
                running.fetch = next(job)
        except StopIteration:
            self._held -= running.bytes
            return
        self._fetch(running)
