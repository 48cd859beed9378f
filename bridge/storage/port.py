"""The storage port: the operations that skipbridge needs of a file system or object store.

Every path in arguments and results is a canonical URI (`bridge.storage.uri`). Listings are columns,
without an object per file. They are sorted by path as unsigned UTF-8 bytes on every store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.errors import InvalidUri

Int64 = npt.NDArray[np.int64]
Range = tuple[int, int]
"""A byte range of a file: start, end (exclusive)."""


UNKNOWN_TIME = -1
"""The modification time of a file that nobody has looked at."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """One file as it is now.

    Attributes:
        size: bytes.
        modified: microseconds since the epoch, rounded down.
        etag: the store's version tag as `one_spelling` has it; None on local files and HDFS.
    """

    uri: str
    size: int
    modified: int
    etag: str | None = None


class Seen(Protocol):
    """What is compared of a file: its size, its time and its etag, as in `FileStat`."""

    @property
    def size(self) -> int: ...

    @property
    def modified(self) -> int: ...

    @property
    def etag(self) -> str | None: ...


def one_spelling(etag: str | None) -> str | None:
    """An etag in quotes, as most stores tell it; None if it tells nothing.

    Listings and headers differ: Azure lists it bare, some gateways weak (``W/"..."``) or empty.
    """
    plain = (etag or "").strip().removeprefix("W/").strip('"')
    return f'"{plain}"' if plain else None


def same_state(seen: Seen, now: Seen) -> bool:
    """Whether a file is in the state in which it was seen before; any time equals an unknown one.

    Some stores list milliseconds, and answer a read in whole seconds. So equal etags and equal
    seconds are enough.
    """
    if seen.size != now.size:
        return False
    if seen.modified == UNKNOWN_TIME:
        return True
    if seen.etag and now.etag:
        seconds = seen.modified // 1_000_000 == now.modified // 1_000_000
        return seconds and one_spelling(seen.etag) == one_spelling(now.etag)
    return seen.modified == now.modified


@dataclass(frozen=True, slots=True)
class FileTable:
    """Files as columns, without an object per file. Listings are sorted by path.

    Attributes:
        paths: Arrow large_string, canonical URIs. May be lazy in a `SliceBatch`.
        sizes: bytes.
        modified: microseconds since the epoch; `UNKNOWN_TIME` where a table format records files
            without their times. Such files never change under their name.
        etags: Arrow large_string as in `FileStat`, or None where the store has none.
    """

    paths: pa.Array
    sizes: Int64
    modified: Int64
    etags: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.paths)

    def stats(self) -> list[FileStat]:
        """An object per file, for few of them."""
        etags = [None] * len(self) if self.etags is None else self.etags.to_pylist()
        columns = self.paths.to_pylist(), self.sizes.tolist(), self.modified.tolist(), etags
        return [FileStat(*each) for each in zip(*columns, strict=True)]

    def filter(self, keep: npt.NDArray[np.bool_]) -> FileTable:
        """The files whose slot is True; the same object if all are."""
        if keep.all():
            return self
        mask = pa.array(keep)
        etags = None if self.etags is None else self.etags.filter(mask)
        return FileTable(self.paths.filter(mask), self.sizes[keep], self.modified[keep], etags)

    def take(self, positions: Int64) -> FileTable:
        """The files at the given positions, in that order."""
        index = pa.array(positions)
        etags = None if self.etags is None else self.etags.take(index)
        return FileTable(
            self.paths.take(index), self.sizes[positions], self.modified[positions], etags
        )

    def slice(self, start: int, stop: int) -> FileTable:
        """Files start to stop, without copying."""
        length = stop - start
        etags = None if self.etags is None else self.etags.slice(start, length)
        return FileTable(
            self.paths.slice(start, length),
            self.sizes[start:stop],
            self.modified[start:stop],
            etags,
        )


EMPTY = FileTable(
    pa.nulls(0, pa.large_string()), np.empty(0, np.int64), np.empty(0, np.int64), None
)


@dataclass(frozen=True, slots=True)
class DirectoryListings:
    """The files of several directories as columns.

    Attributes:
        files: directory by directory, sorted by path within each.
        offsets: directory i has files ``offsets[i]`` to ``offsets[i + 1]``; int64[n + 1].
    """

    files: FileTable
    offsets: Int64

    @property
    def counts(self) -> Int64:
        """The number of files of each directory."""
        return np.diff(self.offsets)

    def filter(self, keep: npt.NDArray[np.bool_]) -> DirectoryListings:
        """The files whose slot is True; every directory stays."""
        if keep.all():
            return self
        before = np.concatenate(([0], np.cumsum(keep)))
        return DirectoryListings(self.files.filter(keep), before[self.offsets])


def join_listings(parts: Sequence[FileTable]) -> DirectoryListings:
    """The listings of several directories as one, in their order."""
    offsets = np.concatenate(([0], np.cumsum([len(part) for part in parts]))).astype(np.int64)
    return DirectoryListings(join_tables(parts), offsets)


def join_tables(tables: Sequence[FileTable]) -> FileTable:
    """Joins file tables in their order; unlike `concatenate` it does not sort."""
    # An empty listing has no etags; it must not hide those of the others.
    tables = [t for t in tables if len(t)]
    if not tables:
        return EMPTY
    if len(tables) == 1:
        return tables[0]
    etags = None
    if all(t.etags is not None for t in tables):
        etags = pa.concat_arrays([t.etags for t in tables])
    return FileTable(
        pa.concat_arrays([t.paths for t in tables]),
        np.concatenate([t.sizes for t in tables]),
        np.concatenate([t.modified for t in tables]),
        etags,
    )


def concatenate(listings: Iterable[FileTable]) -> FileTable:
    """All files of the listings, sorted by path.

    Sorting is skipped if no part reaches into another, like the pages of one prefix.
    """
    parts = [part for part in listings if len(part)]
    if not parts:
        return EMPTY
    if len(parts) == 1:
        return parts[0]
    bounds = [(part.paths[0].as_py(), part.paths[-1].as_py()) for part in parts]
    order = sorted(range(len(parts)), key=lambda i: bounds[i][0].encode())
    whole = join_tables([parts[i] for i in order])
    edges = [bounds[i] for i in order]
    if all(left[1].encode() < right[0].encode() for left, right in pairwise(edges)):
        return whole
    return sort(whole)


def sort(listing: FileTable) -> FileTable:
    order = pc.sort_indices(listing.paths)
    take = order.to_numpy()
    etags = None if listing.etags is None else listing.etags.take(order)
    return FileTable(listing.paths.take(order), listing.sizes[take], listing.modified[take], etags)


def _hidden_names(paths: pa.Array) -> Int64:
    """How many names in each path begin with ``_`` or ``.``, in one pass over the bytes."""
    _, starts, data = paths.buffers()
    offsets = np.frombuffer(starts, np.int64, len(paths) + 1, paths.offset * 8)
    text = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
    after = text[1:]
    begins = (text[:-1] == ord("/")) & ((after == ord("_")) | (after == ord(".")))
    owners = np.searchsorted(offsets, np.flatnonzero(begins) + offsets[0], side="right") - 1
    return np.bincount(owners, minlength=len(paths))


class LinkOutside(InvalidUri):
    """A link directly in a local directory leads out of it.

    Attributes:
        directories: the other subdirectories, sorted.
    """

    def __init__(self, message: str, hint: str, directories: list[str]) -> None:
        super().__init__(message, hint)
        self.directories = directories


class Storage(Protocol):
    """A file system or object store. Thread-safe.

    Errors of every method: InvalidUri; StorageFailure (the store or the connection failed; callers
    may retry).
    """

    def pages(
        self,
        prefix: str,
        *,
        start_after: str | None = None,
        recursive: bool = True,
        hints: pa.Array | None = None,
    ) -> Iterator[FileTable]:
        """Files below a directory, page by page in path order; none if there is no directory.

        Args:
            hints: sorted paths of an earlier listing. Stores with paged listings are listed in
                parallel ranges between some of them. The pages are of the same files, each in path
                order, and come in any order. Not allowed together with ``start_after``.
        """
        ...

    def list_all(
        self, prefix: str, *, recursive: bool = True, hints: pa.Array | None = None
    ) -> FileTable:
        """All pages as one listing."""
        ...

    def list_many(
        self, directories: Sequence[str], pool: Executor, *, recursive: bool = True
    ) -> DirectoryListings:
        """`list_all` of each directory, in their order.

        Args:
            pool: lists directories side by side where each is a request.
        """
        ...

    def has_directories(self, uri: str) -> bool:
        """False on object stores, which have only prefixes.

        There a listing of all that is below a prefix needs one request for 1,000 files, and
        listings of its directories need at least one request each.
        """
        ...

    def list_directories(self, prefix: str) -> list[str]:
        """The direct subdirectories, sorted; empty if the directory does not exist.

        Errors: LinkOutside: as `LinkOutside` says.
        """
        ...

    def directory_exists(self, uri: str) -> bool:
        """Whether a directory exists. Always True on object stores, which have only prefixes."""
        ...

    def stat(self, uri: str) -> FileStat | None:
        """The current state of a file; None if it does not exist."""
        ...

    def read(self, uri: str) -> bytes:
        """All of a file. Errors: FileUnreadable."""
        ...

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        """Byte ranges of a file.

        Errors:
            FileUnreadable: also if a range reaches past the end.
        """
        ...

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        """`read_ranges`, and the state of the file that the bytes are of; None if it is gone.

        The law: if the state is that of a listing, the bytes are those of the listed file. Object
        stores say it in the answer that holds the bytes. Elsewhere it is looked up after the read.
        """
        ...

    def is_remote(self, uri: str) -> bool:
        """Whether a request waits for a network, so that many requests at once pay."""
        ...

    def put(self, uri: str, content: bytes) -> None:
        """Writes a file atomically, and replaces an existing one. Errors: StorageFull."""
        ...

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        """Creates a file atomically; False if it exists. Of concurrent calls only one succeeds.

        After StorageFailure the file may exist: check before retrying.
        """
        ...

    def copy(self, source: FileStat, target: str) -> bool:
        """Copies a file within one store, and replaces an existing target; atomically.

        Object stores copy by themselves. Elsewhere the bytes pass through this process.

        Returns:
            False if the source is not in this state any more; there may then be no target.

        Errors: FileUnreadable, StorageFull.
        """
        ...

    def delete(self, uri: str) -> None:
        """Deletes a file; no error if it does not exist."""
        ...


def data_files(listing: FileTable, root: str) -> FileTable:
    """The files that engines read as data: not empty, without ``_`` or ``.`` names below the root.

    ``root`` itself may be below such a name, and a partition key may begin with ``_``. Pass the
    partition's location as root, as Hive and Trino do.
    """
    keep = listing.sizes > 0
    if len(listing):
        keep &= _hidden_names(listing.paths) <= root.count("/_") + root.count("/.")
    return listing.filter(keep)


def data_files_of(listings: DirectoryListings, roots: Sequence[str]) -> DirectoryListings:
    """`data_files` of each directory; ``roots`` are the directories."""
    keep = listings.files.sizes > 0
    if len(keep):
        allowed = np.fromiter((r.count("/_") + r.count("/.") for r in roots), np.int64, len(roots))
        keep &= _hidden_names(listings.files.paths) <= np.repeat(allowed, listings.counts)
    return listings.filter(keep)
