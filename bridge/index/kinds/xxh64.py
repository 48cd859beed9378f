"""XXH64 with seed 0 of many values at once, as Parquet's bloom filters require.

Implements the specification of xxHash (github.com/Cyan4973/xxHash, doc/xxhash_spec.md). Values of
equal length are hashed together, with one numpy operation per step. A library would need one call
per value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
_Word = Callable[[int, str], Hashes]
_1 = np.uint64(0x9E3779B185EBCA87)
_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_3 = np.uint64(0x165667B19E3779F9)
_4 = np.uint64(0x85EBCA77C2B2AE63)
_5 = np.uint64(0x27D4EB2F165667C5)
_ROWS = 1 << 16
"""Values hashed at once, so that the data stays in the processor's caches."""


def hash_fixed(data: npt.NDArray[np.uint8]) -> Hashes:
    """Hashes of the rows of a byte matrix."""

    def word(at: int, dtype: str) -> Hashes:
        part = np.ascontiguousarray(data[:, at : at + np.dtype(dtype).itemsize])
        return part.view(dtype)[:, 0].astype(np.uint64)

    return _hash(data.shape[0], data.shape[1], word)


def hash_bytes(values: pa.Array) -> Hashes:
    """Hashes of a large_binary array without nulls."""
    count = len(values)
    result = np.empty(count, np.uint64)
    if not count:
        return result
    offsets = np.frombuffer(values.buffers()[1], np.int64, count + 1, values.offset * 8)
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    longest = int(lengths.max())
    # numpy sorts 16-bit integers by counting.
    order = np.argsort(lengths.astype(np.uint16) if longest < 2**16 else lengths, kind="stable")
    edges = np.flatnonzero(np.diff(lengths[order])) + 1
    for group in np.split(order, edges):
        width = int(lengths[group[0]])
        for i in range(0, len(group), _ROWS):
            some = group[i : i + _ROWS]
            result[some] = _hash(len(some), width, _words(data, offsets[some]))
    return result


def hash_numbers(values: npt.NDArray[Any]) -> Hashes:
    """Hashes of the little-endian bytes of numbers."""
    raw = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return hash_fixed(raw.view(np.uint8).reshape(len(raw), raw.itemsize))


def ascending(hashes: Hashes) -> Hashes:
    """Distinct hashes, sorted. Several times faster than numpy's ``unique``, which hashes again."""
    found = np.sort(hashes)
    if len(found) < 2:
        return found
    first = np.empty(len(found), np.bool_)
    first[0] = True
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return found if first.all() else found[first]


def least(hashes: Hashes, count: int) -> Hashes:
    """The ``count`` least distinct hashes, ascending, mostly without sorting all."""
    likely = 4 * count
    if len(hashes) > 2 * likely:  # hashes are uniform unless few values repeat often
        found = ascending(hashes[hashes < np.uint64(2**64 // len(hashes) * likely)])
        if len(found) >= count:
            return found[:count]
    return ascending(hashes)[:count]


def _words(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64]) -> _Word:
    """Reads numbers at an offset from each start, aligned or not."""

    def word(at: int, dtype: str) -> Hashes:
        places = len(data) - np.dtype(dtype).itemsize + 1
        overlapping: Any = np.ndarray((places,), dtype, data, 0, (1,))
        return np.asarray(overlapping[starts + at].astype(np.uint64, copy=False))

    return word


def _hash(count: int, width: int, word: _Word) -> Hashes:
    """Hashes of values of equal length; ``word`` reads the numbers at an offset into new arrays."""
    with np.errstate(over="ignore"):
        at = width // 32 * 32
        state = _stripes(count, at, word) if at else np.full(count, _5, np.uint64)
        state += np.uint64(width)
        while at + 8 <= width:
            state ^= _round(word(at, "<u8"))
            _rotate(state, 27)
            state *= _1
            state += _4
            at += 8
        if at + 4 <= width:
            lane = word(at, "<u4")
            lane *= _1
            state ^= lane
            _rotate(state, 23)
            state *= _2
            state += _3
            at += 4
        while at < width:
            lane = word(at, "u1")
            lane *= _5
            state ^= lane
            _rotate(state, 11)
            state *= _1
            at += 1
        for bits, factor in ((33, _2), (29, _3)):
            state ^= state >> np.uint64(bits)
            state *= factor
        state ^= state >> np.uint64(32)
        return state


def _stripes(count: int, end: int, word: _Word) -> Hashes:
    starts = (_1 + _2, _2, np.uint64(0), np.uint64(0) - _1)
    lanes = [np.full(count, start, np.uint64) for start in starts]
    for at in range(0, end, 32):
        for i, lane in enumerate(lanes):
            more = word(at + 8 * i, "<u8")
            more *= _2
            lane += more
            _rotate(lane, 31)
            lane *= _1
    state = np.zeros(count, np.uint64)
    for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True):
        turned = lane.copy()
        _rotate(turned, bits)
        state += turned
    for lane in lanes:
        state ^= _round(lane)
        state *= _1
        state += _4
    return state


def _round(lane: Hashes) -> Hashes:
    lane *= _2
    _rotate(lane, 31)
    lane *= _1
    return lane


def _rotate(values: Hashes, bits: int) -> None:
    """Rotates in place, because new arrays would cost more than the arithmetic."""
    high = values >> np.uint64(64 - bits)
    values <<= np.uint64(bits)
    values |= high
