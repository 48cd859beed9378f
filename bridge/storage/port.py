"""The storage port: the operations that skipbridge needs of a file system or object store.

Every path in arguments and results is a canonical URI (`bridge.storage.uri`). Listings are columns,
without an object per file. They are sorted by path as unsigned UTF-8 bytes on every store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Int64 = npt.NDArray[np.int64]
Range = tuple[int, int]
"""A byte range of a file: start, end (exclusive)."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """One file as it is now.

    Attributes:
        size: bytes.
        modified: microseconds since the epoch, rounded down.
        etag: the store's version tag; None on local files and HDFS.
    """

    uri: str
    size: int
    modified: int
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class FileTable:
    """Files as columns, without an object per file. Listings are sorted by path.

    Attributes:
        paths: Arrow large_string, canonical URIs. May be lazy in a `SliceBatch`.
        sizes: bytes.
        modified: microseconds since the epoch.
        etags: Arrow large_string, or None where the store has none.
    """

    paths: pa.Array
    sizes: Int64
    modified: Int64
    etags: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.paths)

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


def concatenate(listings: Iterable[FileTable]) -> FileTable:
    """All files of the listings, sorted by path.

    Sorting is skipped if the parts are already in order, like the ranges of one prefix.
    """
    parts = [part for part in listings if len(part)]
    if not parts:
        return EMPTY
    if len(parts) == 1:
        return parts[0]
    etags = None
    if all(part.etags is not None for part in parts):
        etags = pa.concat_arrays([part.etags for part in parts])
    whole = FileTable(
        pa.concat_arrays([part.paths for part in parts]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.modified for part in parts]),
        etags,
    )
    edges = [(part.paths[0].as_py(), part.paths[-1].as_py()) for part in parts]
    if all(left[1] < right[0] for left, right in pairwise(edges)):
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
                parallel ranges between some of them. The result is the same. Not allowed together
                with ``start_after``.
        """
        ...

    def list_all(
        self, prefix: str, *, recursive: bool = True, hints: pa.Array | None = None
    ) -> FileTable:
        """All pages as one listing."""
        ...

    def list_directories(self, prefix: str) -> list[str]:
        """The direct subdirectories, sorted; empty if the directory does not exist."""
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

    def put(self, uri: str, content: bytes) -> None:
        """Writes a file atomically, and replaces an existing one. Errors: StorageFull."""
        ...

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        """Creates a file atomically; False if it exists. Of concurrent calls only one succeeds.

        After StorageFailure the file may exist: check before retrying.
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
