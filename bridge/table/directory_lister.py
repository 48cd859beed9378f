"""Lists partition directories; caches listings only as long as the freshness allows.

A large directory is handed on in chunks while the rest is still being listed.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from bridge.errors import PartitionAbsent
from bridge.storage.port import EMPTY, FileStat, FileTable, Storage, data_files
from bridge.table.freshness import Cached, Freshness
from bridge.table.model import Partition
from bridge.table.slices import join_files

_MAX_REMEMBERED_FILES = 4_000_000
_FIRST_CHUNK = 1 << 13
_CHUNK = 1 << 16


class SharedListing:
    """The files of one directory, in chunks as they are listed; safe for threads.

    All scans that share a listing see the same files, whichever scan draws a chunk first. If it
    fails, it fails for all of them.
    """

    def __init__(self, chunks: Iterator[FileTable]) -> None:
        self._source: Iterator[FileTable] | None = chunks
        self._chunks: list[FileTable] = []
        self._mapped: set[int] = set()
        self._failure: BaseException | None = None
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Files held in memory so far, without those in columns mapped from the index."""
        return sum(
            len(chunk) for i, chunk in enumerate(list(self._chunks)) if i not in self._mapped
        )

    @property
    def failed(self) -> bool:
        return self._failure is not None

    @property
    def ended(self) -> bool:
        """Whether the listing has completed."""
        return self._source is None and self._failure is None

    def chunk(self, number: int) -> FileTable | None:
        """Chunk ``number``, from 0; None after the last. Errors: see `DirectoryLister`."""
        with self._lock:
            while number >= len(self._chunks):
                if self._failure is not None:
                    raise self._failure
                if self._source is None:
                    return None
                try:
                    found = next(self._source, None)
                except BaseException as e:
                    self._failure, self._source = e, None
                    raise
                if found is None:
                    self._source = None
                else:
                    self._chunks.append(found)
            return self._chunks[number]

    def replace(self, number: int, files: FileTable) -> None:
        """Replaces a chunk by equal columns mapped from the index, which take no memory."""
        with self._lock:
            self._chunks[number] = files
            self._mapped.add(number)

    def whole(self) -> FileTable:
        """All files. Errors: see `DirectoryLister`."""
        number = 0
        while self.chunk(number) is not None:
            number += 1
        return join_files(self._chunks) if self._chunks else EMPTY


class DirectoryLister:
    """Lists partitions in parallel; a cached listing is reused within its time to live.

    Memory is bounded by the number of cached files; the least recently used listings go first.
    """

    def __init__(
        self,
        storage: Storage,
        threads: int = 16,
        *,
        recursive: bool = False,
        ignore_absent: bool = False,
    ) -> None:
        self.storage = storage
        self._ignore_absent = ignore_absent
        self._recursive = recursive
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="skipbridge-list")
        self._cache: OrderedDict[str, tuple[float, FileTable]] = OrderedDict()
        self._remembered = 0
        self._lock = threading.Lock()

    def each(
        self,
        partitions: Sequence[Partition],
        freshness: Freshness,
        hints: pa.Array | None = None,
        *,
        absent_is_empty: bool = False,
    ) -> list[SharedListing]:
        """The data files of each partition; several partitions are listed in parallel.

        A single partition is listed lazily, as its chunks are drawn.

        Args:
            hints: paths known from the index; a paging store is listed in parallel between them.
            absent_is_empty: a directory that does not exist counts as empty.

        Errors:
            StorageFailure, FileUnreadable: a directory cannot be listed. The scan fails, because an
                empty listing would lose rows.
            PartitionAbsent: the directory does not exist. Object stores cannot tell.
        """
        check = not (absent_is_empty or self._ignore_absent)
        if len(partitions) == 1 and not isinstance(freshness, Cached):
            return [SharedListing(self._stream(partitions[0], hints, check))]
        futures = [self._pool.submit(self._one, p, freshness, check) for p in partitions]
        try:
            return [SharedListing(iter([f.result()])) for f in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def look_at(self, uris: Sequence[str]) -> list[FileStat | None]:
        """The present state of single files; None if a file is absent. Errors: StorageFailure."""
        if len(uris) < 2 or uris[0].startswith("file:"):  # threads would gain nothing
            return [self.storage.stat(uri) for uri in uris]
        return list(self._pool.map(self.storage.stat, uris))

    def background(self, work: Callable[[], None]) -> None:
        """Runs work ahead of need; a failure surfaces when its result is needed."""
        with contextlib.suppress(RuntimeError):  # the lister is closed
            self._pool.submit(work)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _stream(
        self, partition: Partition, hints: pa.Array | None, check: bool
    ) -> Iterator[FileTable]:
        location = partition.location
        size = _FIRST_CHUNK
        empty = True
        pages = self.storage.pages(location, recursive=self._recursive, hints=hints)
        for page in pages:
            begin, n = 0, len(page)
            if n <= _CHUNK:
                size = _CHUNK
            empty = empty and n == 0
            while begin < n:
                yield data_files(page.slice(begin, begin + size), location)
                begin += size
                size = _CHUNK
        if empty and check:
            self._require(partition)

    def _require(self, partition: Partition) -> None:
        """Raises if the directory does not exist; called only if the listing was empty."""
        if self.storage.directory_exists(partition.location):
            return
        whose = f"partition {partition.name}" if partition.name else "the table"
        raise PartitionAbsent(
            f"the directory of {whose} does not exist: {partition.location}",
            "restore it, or drop what is registered there (`skipbridge sync` does so for its "
            "tables); planner.ignore_absent_partitions treats such partitions as empty",
        )

    def _one(self, partition: Partition, freshness: Freshness, check: bool) -> FileTable:
        location = partition.location
        if isinstance(freshness, Cached):
            with self._lock:
                held = self._cache.get(location)
                if held is not None and time.monotonic() - held[0] <= freshness.ttl:
                    self._cache.move_to_end(location)
                    return held[1]
        started = time.monotonic()
        found = self.storage.list_all(location, recursive=self._recursive)
        if check and not len(found):
            self._require(partition)
        files = data_files(found, location)
        if isinstance(freshness, Cached) and (check or len(found)):
            self._remember(location, started, files)
        return files

    def _remember(self, location: str, started: float, files: FileTable) -> None:
        with self._lock:
            old = self._cache.pop(location, None)
            self._remembered += len(files) - (len(old[1]) if old else 0)
            self._cache[location] = (started, files)
            while self._remembered > _MAX_REMEMBERED_FILES and len(self._cache) > 1:
                _, (_, dropped) = self._cache.popitem(last=False)
                self._remembered -= len(dropped)
