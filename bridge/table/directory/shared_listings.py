"""Listings that several queries share, as a group commit shares one write.

The law: a query uses only listings that began after it arrived, so it sees every file that was
there when it arrived. While directories are being listed, queries that arrived after the listing
began wait for its end. The first of them then lists for all of them, so that any number of
concurrent queries costs one or two listings.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count

import numpy as np

from bridge.storage.port import (
    EMPTY,
    DirectoryListings,
    FileTable,
    Int64,
    join_tables,
)
from bridge.table.directory.root_listing import RootListing
from bridge.table.model import Partition
from bridge.table.slices import IndexFiles, SliceBatch

_LARGER = 4
"""A query does not wait for a listing of so many times as many directories as it needs."""
_FEW = 64
"""Nor do listings of so few directories matter."""
_HELD = 8
"""Listings held while queries wait; one that wakes late must find what the first one listed."""


class Listing:
    """One listing of some directories, with the result once it has ended.

    Attributes:
        directories: the position of each directory in ``found``.
        began: monotonic time, in seconds.
        beside: another listing of some of the directories was under way when this one began.
        found: the data files; None while the listing is under way, and if it failed.
        empty: positions of directories that hold no file at all, so that they may be absent.
        root: if all that lies below one directory was listed: its files by directory.
        shared: other queries may find it.
    """

    def __init__(self, directories: Iterable[str], beside: bool = False) -> None:
        self.directories = dict(zip(directories, count()))
        self.beside = beside
        self.began = time.monotonic()
        self.found: DirectoryListings | None = None
        self.empty: frozenset[int] = frozenset()
        self.root: RootListing | None = None
        self.shared = False
        self.failed = False
        self._matched: tuple[IndexFiles, Int64] | None = None
        self._matching = threading.Lock()

    @classmethod
    def of(cls, directories: Iterable[str], found: DirectoryListings, began: float) -> Listing:
        """A listing that has ended."""
        made = cls(directories)
        made.found, made.began = found, began
        return made

    def __len__(self) -> int:
        return 0 if self.found is None else len(self.found.files)

    @property
    def running(self) -> bool:
        return self.found is None and not self.failed

    def match(self, index: IndexFiles, *, whole: bool) -> Int64 | None:
        """Ordinals of all files, computed once for all queries with the same index.

        Args:
            whole: compute them now; else None is returned if they are not known yet.
        """
        assert self.found is not None
        with self._matching:
            if self._matched is None or self._matched[0] is not index:
                if not whole:
                    return None
                self._matched = (index, index.match(self.found.files))
            return self._matched[1]


def gather(
    directories: Sequence[str], held: Mapping[str, Listing], index: IndexFiles | None
) -> tuple[FileTable, Int64, Int64]:
    """The files of some directories from the listings that hold them.

    Returns:
        The files in the order of the directories, the ordinal of each in the index (-1 without
        one), and the number of files of each directory.
    """
    runs: list[tuple[Listing, int, int]] = []
    last, end = None, -1
    for directory in directories:
        listing = held[directory]
        number = listing.directories[directory]
        if listing is last and number == end:
            end += 1
            runs[-1] = (listing, runs[-1][1], end)
        else:
            last, end = listing, number + 1
            runs.append((listing, number, end))
    files: list[FileTable] = []
    ordinals: list[Int64 | None] = []
    counts: list[Int64] = []
    for listing, first, end in runs:
        found = listing.found
        assert found is not None
        begin, stop = int(found.offsets[first]), int(found.offsets[end])
        whole = stop - begin == len(found.files)
        files.append(found.files if whole else found.files.slice(begin, stop))
        counts.append(np.diff(found.offsets[first : end + 1]))
        if index is not None:
            matched = listing.match(index, whole=whole)
            ordinals.append(None if matched is None else matched[begin:stop])
    joined = join_tables(files)
    count = np.concatenate(counts)
    if index is None:
        return joined, np.full(len(joined), -1, np.int64), count
    known = [part for part in ordinals if part is not None]
    if len(known) < len(ordinals):
        return joined, index.match(joined), count
    return joined, known[0] if len(known) == 1 else np.concatenate(known), count


MakeListing = Callable[[Listing], None]


class SharedListings:
    """Finds or makes listings for queries; safe for threads.

    A listing is shared as long as a query or a cache holds it. This object holds a few itself while
    queries wait.

    Attributes:
        waiting: number of queries that wait for a listing of another query.
    """

    def __init__(self) -> None:
        self._newest: dict[str, weakref.ref[Listing]] = {}
        self._changed = threading.Condition()
        self.waiting = 0
        self._for_waiting: deque[Listing] = deque(maxlen=_HELD)

    def get(
        self, directories: Sequence[str], since: float, make: MakeListing, *, waits: bool = True
    ) -> dict[str, Listing]:
        """Listings of all directories that began after a time.

        Args:
            since: monotonic time in seconds: when the query arrived.
            make: lists directories and sets ``found``; called in this thread.
            waits: list nothing twice at a time. Otherwise a second listing may run beside the
                first, since a query should not wait for a slow store twice.

        Errors:
            whatever made the listing fail. A listing of another query that failed is repeated.
        """
        try:
            return self._get(list(dict.fromkeys(directories)), since, make, waits)
        finally:
            with self._changed:
                if not self.waiting:
                    self._for_waiting.clear()

    def ended_listing(self, directory: str, since: float) -> Listing | None:
        """A listing of a directory that began after a time and has succeeded."""
        ((listing, _),) = self._known([directory])
        if listing is None or listing.found is None or listing.began <= since:
            return None
        return listing

    def _get(
        self, wanted: Sequence[str], since: float, make: MakeListing, waits: bool
    ) -> dict[str, Listing]:
        found: dict[str, Listing] = {}
        while wanted:
            shared, own = self._claim(wanted, since, waits)
            if own is not None:
                self._run(own, make)
                shared.update(dict.fromkeys(own.directories, own))
            for listing in set(shared.values()):
                if not self._ended(listing):
                    alone = Listing(d for d, of in shared.items() if of is listing)
                    make(alone)
                    shared.update(dict.fromkeys(alone.directories, alone))
            found.update(shared)
            wanted = [d for d in wanted if d not in shared]
        return found

    def _claim(
        self, wanted: Sequence[str], since: float, waits: bool
    ) -> tuple[dict[str, Listing], Listing | None]:
        """Listings to share, and one that the caller must run for directories that have none.

        Waits while all that is wanted is under way in listings that began too early.
        """
        with self._changed:
            while True:
                shared: dict[str, Listing] = {}
                early: list[Listing] = []
                free: list[str] = []
                beside = False
                most = max(_LARGER * len(wanted), _FEW)
                for listing, those in self._known(wanted):
                    fits = listing is not None and len(listing.directories) <= most
                    if listing is None or listing.failed or (listing.running and not fits):
                        free += those
                    elif listing.began > since:
                        shared.update(dict.fromkeys(those, listing))
                    elif not listing.running:
                        free += those
                    elif waits or listing.beside:
                        early.append(listing)
                    else:
                        beside = True
                        free += those
                if free:
                    own = Listing(free, beside)
                    reference = weakref.ref(own, _Forget(self._newest, own.directories))
                    hash(reference)  # remembered: a dead reference cannot be hashed anew
                    self._newest.update(dict.fromkeys(free, reference))
                    own.shared = True
                    return shared, own
                if shared:
                    return shared, None
                self._wait_for(early)

    def _known(self, wanted: Sequence[str]) -> list[tuple[Listing | None, Sequence[str]]]:
        """The newest listing of each directory, with the directories it is the newest of."""
        references = list(map(self._newest.get, wanted))
        distinct = set(references)
        of = {reference: None if reference is None else reference() for reference in distinct}
        if len(of) == 1:
            return [(listing, wanted) for listing in of.values()]
        groups: dict[weakref.ref[Listing] | None, list[str]] = {r: [] for r in distinct}
        for directory, reference in zip(wanted, references, strict=True):
            groups[reference].append(directory)
        return [(of[reference], those) for reference, those in groups.items()]

    def _run(self, listing: Listing, make: MakeListing) -> None:
        try:
            make(listing)
        finally:
            with self._changed:
                listing.failed = listing.found is None
                if self.waiting:
                    self._for_waiting.append(listing)
                self._changed.notify_all()

    def _ended(self, listing: Listing) -> bool:
        """Waits for the end; whether the listing succeeded."""
        if listing.running:
            with self._changed:
                self._wait_for([listing])
        return not listing.failed

    def _wait_for(self, listings: Sequence[Listing]) -> None:
        """Waits for the end of one of them. Held: self._changed."""
        self.waiting += 1
        try:
            self._changed.wait_for(lambda: not all(each.running for each in listings))
        finally:
            self.waiting -= 1


class _Forget:
    """Removes a listing that nothing holds any more. Needs no lock: dict operations are atomic, and
    a listing that is removed too early is only not shared."""

    def __init__(
        self, newest: dict[str, weakref.ref[Listing]], directories: dict[str, int]
    ) -> None:
        self._newest, self._directories = newest, directories

    def __call__(self, reference: weakref.ref[Listing]) -> None:
        for directory in self._directories:
            if self._newest.get(directory) is reference:
                self._newest.pop(directory, None)


class ListingStream:
    """The files of one directory, in chunks as they are listed; safe for threads.

    All scans that share a listing see the same files, whichever scan draws a chunk first. If it
    fails, it fails for all of them. It begins when the first chunk is drawn.

    Args:
        before: the listing that other queries share until then. If a thread just draws a chunk of
            it, this one waits for that, so that more queries can join.
        waits: as in `SharedListings.get`.
    """

    def __init__(
        self,
        open: Callable[[], Iterator[FileTable]],
        before: ListingStream | None = None,
        *,
        waits: bool = True,
    ) -> None:
        self._open = open
        self._before = before
        self._waits = waits
        self._beside = False
        self._source: Iterator[FileTable] | None = None
        self._chunks: list[FileTable] = []
        self._mapped: set[int] = set()
        self._failure: BaseException | None = None
        self._lock = threading.Lock()
        self._slices: dict[int, SliceBatch] = {}
        self._matching = threading.Lock()
        self.began: float | None = None
        self.ended = False

    def __len__(self) -> int:
        """Files held in memory so far, without those in columns mapped from the index."""
        return sum(
            len(chunk) for i, chunk in enumerate(list(self._chunks)) if i not in self._mapped
        )

    @property
    def failed(self) -> bool:
        return self._failure is not None

    @property
    def empty(self) -> bool:
        """Whether the listing has ended without any file."""
        return self.ended and not any(map(len, self._chunks))

    def chunk(self, number: int) -> FileTable | None:
        """Chunk ``number``, from 0; None after the last. Errors: see `DirectoryLister`."""
        with self._lock:
            while number >= len(self._chunks):
                if self._failure is not None:
                    raise self._failure
                if self.ended:
                    return None
                try:
                    found = next(self._begun(), None)
                except BaseException as e:
                    self._failure, self._source = e, None
                    raise
                if found is None:
                    self.ended, self._source = True, None
                else:
                    self._chunks.append(found)
            return self._chunks[number]

    def _begun(self) -> Iterator[FileTable]:
        if self._source is None:
            before, self._before = self._before, None
            if before is not None:
                if self._waits or before._beside:
                    with before._lock:
                        pass
                else:
                    self._beside = before.began is not None and not (before.ended or before.failed)
            self.began = time.monotonic()
            self._source = self._open()
        return self._source

    def replace(self, number: int, files: FileTable) -> None:
        """Replaces a chunk by equal columns mapped from the index, which take no memory."""
        # Without the lock, which a thread holds that draws the next chunk.
        self._chunks[number] = files
        self._mapped.add(number)

    def slices(
        self,
        number: int,
        index: IndexFiles | None,
        partitions: tuple[Partition, ...],
        make: Callable[[], SliceBatch],
    ) -> SliceBatch:
        """The slices of a chunk, made once for all scans with the same index and partition."""
        with self._matching:
            held = self._slices.get(number)
            if held is None or held.index is not index or held.partitions != partitions:
                held = self._slices[number] = make()
            return held

    def whole(self) -> FileTable:
        """All files. Errors: see `DirectoryLister`."""
        number = 0
        while self.chunk(number) is not None:
            number += 1
        return join_tables(self._chunks) if self._chunks else EMPTY
