"""File objects for pyarrow: small files are read whole, large ones by ranges."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from bridge.storage.port import Range, Storage

WHOLE = 8 * 1024 * 1024
"""Files up to this size are read in one request."""
TAIL = 64 * 1024
"""Bytes of the first request to a Parquet file. Most footers are shorter."""


class _Reads(Protocol):
    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]: ...


def is_passing(error: BaseException) -> bool:
    """Whether a reader's error is the machine's fault, not the file's: no memory, or an OS error.

    >>> is_passing(MemoryError()), is_passing(OSError("Corrupt snappy compressed data"))
    (True, False)
    """
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and bool(error.errno))


def is_gap(error: BaseException) -> bool:
    """Whether a reader's library lacks what the file needs, and so says nothing about the file.

    >>> is_gap(pa.ArrowNotImplementedError("Codec LZO")), is_gap(pa.ArrowInvalid("bad page"))
    (True, False)
    """
    return isinstance(error, NotImplementedError) or "out of range for nanosec" in str(error)


def open_source(storage: Storage, uri: str, size: int) -> Any:
    """A file object for pyarrow's readers.

    Args:
        size: the file's size, as listed.

    Errors:
        FileUnreadable, StorageFailure: for large files raised later, by reads.
    """
    if size <= WHOLE:
        return pa.BufferReader(storage.read(uri))
    return pa.PythonFile(RangeSource(storage, uri, size), mode="r")


class SeekableFile(io.RawIOBase):
    """A readable file of known size and its position; ``read`` is a subclass's."""

    def __init__(self, size: int) -> None:
        self._size, self._at = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at


class RangeSource(SeekableFile):
    """A file that is read by ranges, of a storage or of anything with its ``read_ranges``."""

    def __init__(self, storage: _Reads, uri: str, size: int) -> None:
        super().__init__(size)
        self._storage, self._uri = storage, uri

    def read(self, count: int = -1) -> bytes:
        end = self._size if count is None or count < 0 else min(self._size, self._at + count)
        if end <= self._at:
            return b""
        (part,) = self._storage.read_ranges(self._uri, [(self._at, end)])
        self._at = end
        return part
