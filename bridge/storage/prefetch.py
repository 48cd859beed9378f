"""Asking the kernel for pages of mapped files before they are touched.

A fault brings one page and waits for it, or as many as the device's read-ahead says (megabytes
where few bytes are wanted). Who knows what it will look at asks for all of that at once: requests
are many and none is waited for. Elsewhere than on Linux nothing is asked, and all is as right.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Places = npt.NDArray[np.int64]
_PAGE = mmap.PAGESIZE
_STEP = 1024 * 1024
"""Bytes a request: of more the kernel takes only the first part."""
_GAP = 4
"""Pages between two that are wanted that cost less to read than a request of their own."""
_SMALL = 32 * _PAGE
_FEW = 32
_AGAIN = 1.0
_ARRAYS = 4096
_found: dict[int, float] = {}
_places: dict[tuple[int, bytes], float] = {}
_asked: dict[int, tuple[float, npt.NDArray[np.bool_]]] = {}
"""By an array's address: since when, and which of its pages were asked for."""
_LIBC: Any = None
if sys.platform == "linux":
    _LIBC = ctypes.CDLL(None)
    _LIBC.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    _LIBC.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


def whole(array: Any) -> None:
    """All of a numpy array will be looked at. Does not wait."""
    if _LIBC is None or array.strides != (array.itemsize,) or array.nbytes < _SMALL:
        return
    begin = array.ctypes.data
    first, last = begin // _PAGE, -(-(begin + array.nbytes) // _PAGE)
    if _lately(begin):
        return
    if not _absent(first, last).any():
        _found[begin] = time.monotonic()
        return
    for at in range(first * _PAGE, last * _PAGE, _STEP):
        _LIBC.madvise(at, min(_STEP, last * _PAGE - at), mmap.MADV_WILLNEED)


def some(array: Any, places: Places) -> None:
    """Some elements of a numpy array, at places from 0 on, will be looked at. Does not wait."""
    if _LIBC is None or array.strides != (array.itemsize,) or array.nbytes < _SMALL:
        return
    begin = array.ctypes.data
    if not len(places) or _lately(begin) or (len(places) <= _FEW and _same(begin, places)):
        return
    pages = _not_asked(begin, array.nbytes, (begin + places * array.itemsize) // _PAGE)
    if not len(pages):
        return
    if len(pages) > _FEW:  # a call to learn which are here costs less than so many in vain
        missing = _absent(int(pages[0]), int(pages[-1]) + 1)
        pages = pages[missing[pages - pages[0]]]
        if not len(pages):
            _found[begin] = time.monotonic()
            return
    cuts = np.flatnonzero(np.diff(pages) > _GAP) + 1
    starts = pages[np.concatenate([[0], cuts])]
    ends = pages[np.concatenate([cuts - 1, [len(pages) - 1]])] + 1
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        for at in range(start * _PAGE, end * _PAGE, _STEP):
            _LIBC.madvise(at, min(_STEP, end * _PAGE - at), mmap.MADV_WILLNEED)


def texts(array: Any, places: Places) -> None:
    """Some texts of an Arrow array with offsets, will be looked at."""
    if not isinstance(array, pa.Array) or array.type not in (pa.large_string(), pa.large_binary()):
        return
    _, starts, data = array.buffers()
    if data is None:
        return
    offsets = np.frombuffer(starts, np.int64, len(array) + 1, array.offset * 8)
    # Arrow's take looks at the ends too, to guess how long its texts will be.
    some(offsets, np.concatenate([places, places + 1, [0, len(array)]]))
    begins, ends = offsets[places], offsets[places + 1]  # a text may reach into the next page
    some(np.frombuffer(data, np.uint8), np.concatenate([begins, np.maximum(begins, ends - 1)]))


def forget() -> None:
    """What was there need not be there any more: pages were dropped, as benchmarks do."""
    _found.clear()
    _asked.clear()
    _places.clear()


def _not_asked(begin: int, size: int, pages: Places) -> Places:
    """Which pages, in order, nobody asked for in the last moment: a request in vain costs what a
    warm look-up does.
    """
    now = time.monotonic()
    held = _asked.get(begin)
    first, last = begin // _PAGE, (begin + size - 1) // _PAGE
    if held is None or now - held[0] >= _AGAIN or len(held[1]) != last - first + 1:
        if len(_asked) > _ARRAYS:
            _asked.clear()
        held = now, np.zeros(last - first + 1, np.bool_)
        _asked[begin] = held
    done = held[1]
    pages = pages[pages <= last]  # an empty text may begin where the last page ends
    fresh = np.sort(pages[~done[pages - first]])
    done[fresh - first] = True
    return fresh


def _same(begin: int, places: Places) -> bool:
    """Whether these very places were asked for in the last moment."""
    now = time.monotonic()
    key = begin, places.tobytes()
    if now - _places.get(key, -_AGAIN) < _AGAIN:
        return True
    if len(_places) > _ARRAYS:
        _places.clear()
    _places[key] = now
    return False


def _lately(address: int) -> bool:
    """Whether all that was asked for of an array was there a moment ago, and so will be now."""
    if len(_found) > _ARRAYS:
        _found.clear()
    return time.monotonic() - _found.get(address, -_AGAIN) < _AGAIN


def _absent(first: int, last: int) -> npt.NDArray[np.bool_]:
    """Which pages of memory are not there, from the first up to the last; all if not told."""
    found = np.empty(last - first, np.uint8)
    failed = _LIBC.mincore(first * _PAGE, (last - first) * _PAGE, found.ctypes.data)
    if failed:
        return np.ones(last - first, np.bool_)
    return np.asarray((found & 1) == 0)
