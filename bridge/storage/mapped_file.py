"""A file mapped into memory, with advice to the kernel about the pages that are needed next.

A page fault waits for the disk. Advice does not: the kernel reads the pages of many requests at
once while the caller continues. Advice never changes a result.
"""

from __future__ import annotations

import mmap

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_STEP = 1024 * 1024
"""Bytes per request. The kernel ignores what exceeds its read-ahead limit."""
_GAP = 4
"""Two pages at most this far apart are requested as one range."""


class MappedFile:
    """A file in memory, read-only. Errors: OSError; ValueError if it is empty.

    Attributes:
        buffer: the bytes. Arrays on it keep the file mapped.
    """

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.buffer = pa.py_buffer(self._map)

    def will_need(self, start: int, stop: int) -> None:
        """Starts to read a byte range, without waiting."""
        if not hasattr(mmap, "MADV_WILLNEED"):  # not on Windows
            return
        for at in range(start - start % mmap.PAGESIZE, stop, _STEP):
            self._map.madvise(mmap.MADV_WILLNEED, at, min(_STEP, stop - at))

    def will_need_items(self, array: pa.Buffer, offsets: npt.NDArray[np.int64]) -> None:
        """Starts to read items of an array in the file by byte offset, without waiting."""
        begin = array.address - self.buffer.address
        pages = np.unique((begin + offsets[offsets < array.size]) // mmap.PAGESIZE)
        for run in np.split(pages, np.flatnonzero(np.diff(pages) > _GAP) + 1):
            if len(run):
                self.will_need(int(run[0]) * mmap.PAGESIZE, (int(run[-1]) + 1) * mmap.PAGESIZE)
