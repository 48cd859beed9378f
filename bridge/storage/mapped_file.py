"""A file mapped into memory, and the advice to the kernel about which of its pages come next.

A page fault waits for the disk. Advice does not: the kernel reads the pages of many requests at
once while the caller goes on. Advice never changes a result.
"""

from __future__ import annotations

import mmap

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_STEP = 1024 * 1024
"""Bytes in one request: the kernel ignores what exceeds its read-ahead limit."""
_GAP = 4
"""Two wanted pages that are at most this far apart are requested as one range."""


class MappedFile:
    """A file in memory, read-only. Errors: OSError; ValueError if it is empty.

    Attributes:
        buffer: the bytes; arrays made of it keep the file mapped.
    """

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.buffer = pa.py_buffer(self._map)

    def will_need(self, start: int, stop: int) -> None:
        """Begins to read a range of bytes; does not wait."""
        if not hasattr(mmap, "MADV_WILLNEED"):  # not on Windows
            return
        for at in range(start - start % mmap.PAGESIZE, stop, _STEP):
            self._map.madvise(mmap.MADV_WILLNEED, at, min(_STEP, stop - at))

    def will_need_items(self, array: pa.Buffer, offsets: npt.NDArray[np.int64]) -> None:
        """Begins to read bytes at some offsets of an array that lies in the file; does not wait."""
        begin = array.address - self.buffer.address
        pages = np.unique((begin + offsets[offsets < array.size]) // mmap.PAGESIZE)
        for run in np.split(pages, np.flatnonzero(np.diff(pages) > _GAP) + 1):
            if len(run):
                self.will_need(int(run[0]) * mmap.PAGESIZE, (int(run[-1]) + 1) * mmap.PAGESIZE)
