"""A file mapped into memory, with advice to the kernel about the pages that are needed next.

A page fault waits for the disk. Advice does not: the kernel reads the pages of many requests at
once while the caller continues. Advice never changes a result.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_STEP = 1024 * 1024
"""Bytes per request. The kernel ignores what exceeds its read-ahead limit."""
_GAP = 4
"""Two pages at most this far apart are requested as one range."""


class MappedFile:
    """A file in memory, read-only; it holds no file descriptor.

    Args:
        shared: other writers of the file are seen.

    Errors:
        OSError; ValueError if it is empty.

    Attributes:
        buffer: the bytes. Arrays on it keep the file mapped.
    """

    def __init__(self, path: str, *, shared: bool = False) -> None:
        self._path = path
        size = Path(path).stat().st_size
        if not size:
            raise ValueError(f"{path} is empty")
        # Python's own mmap duplicates the descriptor for as long as the map lives. Arrow's map
        # outlives its file. Arrow requests the pages of what is read from it: here one.
        with pa.memory_map(path, "r+" if shared else "r") as source:
            size = min(size, source.size())
            first = source.read_buffer(1)
        self.buffer = pa.foreign_buffer(first.address, size, first)

    def will_need(self, start: int, stop: int) -> None:
        """Starts to read a byte range, without waiting."""
        self._advise([(start, stop)])

    def will_need_items(self, array: pa.Buffer, offsets: npt.NDArray[np.int64]) -> None:
        """Starts to read items of an array in the file by byte offset, without waiting."""
        begin = array.address - self.buffer.address
        pages = np.unique((begin + offsets[offsets < array.size]) // _PAGE)
        runs = np.split(pages, np.flatnonzero(np.diff(pages) > _GAP) + 1)
        self._advise((int(r[0]) * _PAGE, (int(r[-1]) + 1) * _PAGE) for r in runs if len(r))

    def _advise(self, ranges: Iterable[tuple[int, int]]) -> None:
        if not hasattr(os, "posix_fadvise"):  # not on Windows and macOS
            return
        with suppress(OSError):  # deleted since it was mapped, or no descriptor is left
            descriptor = os.open(self._path, os.O_RDONLY)
            try:
                for start, stop in ranges:
                    for at in range(start - start % _PAGE, stop, _STEP):
                        length = min(_STEP, stop - at)
                        os.posix_fadvise(descriptor, at, length, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(descriptor)
