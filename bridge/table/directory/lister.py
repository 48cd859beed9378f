"""Lists partition directories; caches listings only as long as the freshness allows.

A large directory is handed on in chunks while the rest is still being listed.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import BridgeError, PartitionAbsent
from bridge.kernel.threads import Threads
from bridge.storage.port import (
    EMPTY,
    DirectoryListings,
    FileStat,
    FileTable,
    Storage,
    data_files,
    data_files_of,
)
from bridge.storage.reading.requests import carry_count
from bridge.storage.uri import join
from bridge.table.directory.freshness import Cached, Freshness
from bridge.table.directory.root_listing import (
    RootListing,
    RootRequest,
    TableTree,
    common_root,
    plan_root_listing,
    take_all,
)
from bridge.table.directory.shared_listings import Listing, ListingStream, SharedListings
from bridge.table.model import Partition

T = TypeVar("T")
_MAX_REMEMBERED_FILES = 4_000_000
_FIRST_CHUNK = 1 << 13
_CHUNK = 1 << 16


class DirectoryLister:
    """Lists directories for all queries of a process; safe for threads.

    Queries share listings (`shared_listings`); a cached listing is reused within its time to live.
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
        self.recursive = recursive
        self._pool = Threads(threads, "list")
        # Apart: work ahead may wait for a slow store or metastore, and other tables are listed.
        self._ahead = Threads(threads, "ahead")
        self._threads = threads
        self._shared = SharedListings()
        self._streams: weakref.WeakValueDictionary[str, ListingStream] = (
            weakref.WeakValueDictionary()
        )
        self._cache: BoundedCache[Listing, Listing] = BoundedCache(
            capacity=_MAX_REMEMBERED_FILES, weigh=_weight
        )
        self._lock = threading.Lock()

    def each(
        self,
        partitions: Sequence[Partition],
        freshness: Freshness,
        since: float,
        hints: pa.Array | None = None,
        tree: TableTree | None = None,
    ) -> dict[str, Listing | ListingStream]:
        """Listings that hold each partition's data files, by location.

        A single directory is listed lazily, as its chunks are drawn. Several are listed at once, on
        object stores by a listing of their root if that takes fewer requests. It is part of the
        answer, under a name of its own: it serves further partitions as long as it is held.

        Args:
            partitions: of different locations.
            since: monotonic time in seconds; listings that began later may be shared. A cached
                listing may be older by its time to live.
            hints: paths known from the index; a paging store is listed in parallel between them.
            tree: the table that the partitions belong to.

        Errors:
            StorageFailure, FileUnreadable: a directory cannot be listed. The scan fails, because an
                empty listing would lose rows.
        """
        directories = [p.location for p in partitions]
        found: dict[str, Listing | ListingStream] = {}
        started = time.monotonic()
        if isinstance(freshness, Cached):
            since = started - freshness.ttl
        if tree is not None and not self.storage.has_directories(tree.root):
            below = self._below_root(directories, since, tree)
            if isinstance(freshness, Cached):
                empty = _empty_before(below, started)
                for directory in empty:
                    del below[directory]
                if len(empty) > self._threads:
                    below |= self._below_root(empty, started, tree)
            found.update(below)
            directories = [d for d in directories if d not in found]
        if isinstance(freshness, Cached):
            found.update(self._cached(directories, since))
            self._remember(of for of in found.values() if isinstance(of, Listing) and of.shared)
        elif len(directories) == 1 and not found:
            (directory,) = directories
            found[directory] = self._stream(directory, since, hints)
        else:
            found.update(self._get(directories, since))
        return found

    def require(self, partitions: Sequence[Partition]) -> None:
        """Checks partitions without files.

        Errors:
            PartitionAbsent: a directory does not exist. Object stores cannot tell.
        """
        if self._ignore_absent or not partitions:
            return
        exist = self._side_by_side(
            self.storage.directory_exists, [partition.location for partition in partitions]
        )
        for partition, exists in zip(partitions, exist, strict=True):
            if exists:
                continue
            whose = f"partition {partition.name}" if partition.name else "the table"
            raise PartitionAbsent(
                f"the directory of {whose} does not exist: {partition.location}",
                "restore it, or drop what is registered there (`skipbridge sync` does so for its "
                "tables); planner.ignore_absent_partitions treats such partitions as empty",
            )

    def look_at(self, uris: Sequence[str]) -> list[FileStat | None]:
        """The present state of single files; None if a file is absent. Errors: StorageFailure."""
        return self._side_by_side(self.storage.stat, uris)

    def background(self, work: Callable[[], None]) -> None:
        """Runs work ahead of need; a failure surfaces when its result is needed."""
        with contextlib.suppress(RuntimeError):  # the lister is closed
            self._ahead.submit(carry_count(lambda _: work()), None)

    def close(self) -> None:
        self._ahead.close()
        self._pool.close()

    def _side_by_side(self, look: Callable[[str], T], uris: Sequence[str]) -> list[T]:
        if len(uris) < 2 or _is_local(uris[0]):  # threads would gain nothing
            return [look(uri) for uri in uris]
        return list(self._pool.map(carry_count(look), uris))

    def _get(self, directories: Sequence[str], since: float) -> dict[str, Listing]:
        if not directories:
            return {}
        return self._shared.get(directories, since, self._list, waits=_is_local(directories[0]))

    def _list(self, listing: Listing) -> None:
        directories = list(listing.directories)
        found = self.storage.list_many(directories, self._pool, recursive=self.recursive)
        listing.empty = frozenset(np.flatnonzero(found.counts == 0).tolist())
        listing.found = data_files_of(found, directories)

    def _below_root(
        self, directories: Sequence[str], since: float, tree: TableTree
    ) -> dict[str, Listing]:
        """What one listing of a common root tells of the directories.

        Holds the listing itself even if it was given up, so that the query does not repeat it.
        """
        above = join(tree.root, "")
        inside = [d for d in directories if d == tree.root or d.startswith(above)]
        if not inside:
            return {}
        root = common_root(inside)
        listing = self._listed_root(root, since, tree)
        if listing is None:
            request = plan_root_listing(tree, root, len(inside), self._threads)
            if request is None:
                return {}
            make = partial(self._list_root, request)
            (listing,) = self._shared.get([_below(root)], since, make, waits=False).values()
        (key,) = listing.directories
        if listing.root is None:
            return {key: listing}
        every = listing.root.of(inside)
        made = Listing.of(inside, data_files_of(every, inside), listing.began)
        made.empty = frozenset(np.flatnonzero(every.counts == 0).tolist())
        return {**dict.fromkeys(inside, made), key: listing}

    def _listed_root(self, root: str, since: float, tree: TableTree) -> Listing | None:
        """A listing of the root, or of a directory above it in the table, that is there already."""
        own = listing = self._shared.ended_listing(_below(root), since)
        top = tree.root.removesuffix("/")  # a bucket's root ends with a slash
        while (listing is None or listing.root is None) and len(root) > len(top):
            root = root.rpartition("/")[0]
            listing = self._shared.ended_listing(_below(root), since)
        return own if listing is None or listing.root is None else listing

    def _list_root(self, request: RootRequest, listing: Listing) -> None:
        """Leaves ``root`` empty if there are too many files, or some cannot be listed."""
        try:
            pages = self.storage.pages(request.root, recursive=True, hints=request.hints)
            files = take_all(pages, request.most)
        except BridgeError:  # perhaps of a directory that no partition needs
            files = None
        if files is not None:
            listing.root = RootListing(files, self.recursive)
        count = 0 if files is None else len(files)
        listing.found = DirectoryListings(files or EMPTY, np.array([0, count], np.int64))

    def _stream(self, directory: str, since: float, hints: pa.Array | None) -> ListingStream:
        with self._lock:
            held = self._streams.get(directory)
            if held is not None and not held.failed and (held.began is None or held.began > since):
                return held
            made = ListingStream(
                lambda: self._chunks(directory, hints), held, waits=_is_local(directory)
            )
            self._streams[directory] = made
            return made

    def _chunks(self, directory: str, hints: pa.Array | None) -> Iterator[FileTable]:
        size = _FIRST_CHUNK
        for page in self.storage.pages(directory, recursive=self.recursive, hints=hints):
            begin, n = 0, len(page)
            if n <= _CHUNK:
                size = _CHUNK
            while begin < n:
                yield data_files(page.slice(begin, begin + size), directory)
                begin += size
                size = _CHUNK

    def _cached(self, directories: list[str], since: float) -> dict[str, Listing]:
        started = time.monotonic()
        found = self._get(directories, since)
        empty = _empty_before(found, started)
        found.update(self._get(empty, started))
        return found

    def _remember(self, listings: Iterable[Listing]) -> None:
        with self._cache.lock:
            for listing in set(listings):
                if self._cache.get(listing) is None:
                    new = listing.directories.keys()
                    for old in [old for old in self._cache if old.directories.keys() <= new]:
                        self._cache.pop(old)
                    self._cache.put(listing, listing)


def _empty_before(found: Mapping[str, Listing], moment: float) -> list[str]:
    """Directories that were empty or absent before. A new partition may have one of them now."""
    return [d for d, of in found.items() if of.began <= moment and of.directories[d] in of.empty]


def _weight(listing: Listing) -> int:
    """Files, and directories, each of which takes about as much memory as two files."""
    return len(listing) + 2 * len(listing.directories)


def _below(root: str) -> str:
    """The name of a listing of all that lies below a directory."""
    return f"{root}/**"


def _is_local(uri: str) -> bool:
    return uri.startswith("file:")
