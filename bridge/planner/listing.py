"""Listings of partitions, remembered only as long as the freshness asked for allows."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from bridge.planner.freshness import Freshness
from bridge.storage.port import Storage, data_files
from bridge.table.model import FileList, Partition

_MAX_REMEMBERED_FILES = 4_000_000


class Listings:
    """Lists partitions in parallel; a cached listing is reused within its time to live.

    Memory is bounded by the number of files remembered; the least recently used go first.
    """

    def __init__(self, storage: Storage, threads: int = 16, *, recursive: bool = False) -> None:
        self._storage = storage
        self._recursive = recursive
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="skipbridge-list")
        self._cache: OrderedDict[str, tuple[float, FileList]] = OrderedDict()
        self._remembered = 0
        self._lock = threading.Lock()

    def each(
        self,
        partitions: Sequence[Partition],
        freshness: Freshness,
        hints: pa.Array | None = None,
    ) -> list[FileList]:
        """The data files of each partition, listed in parallel; see `concat`.

        Args:
            hints: paths known from the index; a store that pages is listed in parallel between
                them.

        Errors:
            StorageFailure, FileUnreadable: a directory that cannot be listed fails the scan: taking
            it as empty would lose rows. A directory that does not exist is empty, as in Hive.
        """
        if len(partitions) == 1:
            return [self._one(partitions[0].location, freshness, hints)]
        futures = [self._pool.submit(self._one, p.location, freshness) for p in partitions]
        try:
            return [f.result() for f in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _one(self, location: str, freshness: Freshness, hints: pa.Array | None = None) -> FileList:
        if freshness.mode == "cached":
            with self._lock:
                held = self._cache.get(location)
                if held is not None and time.monotonic() - held[0] <= freshness.ttl:
                    self._cache.move_to_end(location)
                    return held[1]
        started = time.monotonic()
        listing = data_files(
            self._storage.list_all(location, recursive=self._recursive, hints=hints), location
        )
        n = len(listing.paths)
        files = FileList(
            listing.paths, listing.sizes, listing.modified, np.zeros(n, np.int32), listing.etags
        )
        if freshness.mode == "cached":
            self._remember(location, started, files)
        return files

    def _remember(self, location: str, started: float, files: FileList) -> None:
        with self._lock:
            old = self._cache.pop(location, None)
            self._remembered += len(files) - (len(old[1]) if old else 0)
            self._cache[location] = (started, files)
            while self._remembered > _MAX_REMEMBERED_FILES and len(self._cache) > 1:
                _, (_, dropped) = self._cache.popitem(last=False)
                self._remembered -= len(dropped)


def concat(lists: Sequence[FileList]) -> FileList:
    """Joins the lists; the i-th list's files belong to partition i."""
    if not lists:
        return empty_files()
    if len(lists) == 1:
        return lists[0]
    etags = None
    if all(f.etags is not None for f in lists):
        etags = pa.concat_arrays([f.etags for f in lists])
    return FileList(
        paths=pa.concat_arrays([f.paths for f in lists]),
        sizes=np.concatenate([f.sizes for f in lists]),
        modified=np.concatenate([f.modified for f in lists]),
        partition=np.repeat(np.arange(len(lists), dtype=np.int32), [len(f) for f in lists]),
        etags=etags,
    )


def empty_files() -> FileList:
    return FileList(
        pa.array([], pa.large_string()),
        np.empty(0, np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.int32),
    )
