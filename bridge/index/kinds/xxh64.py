"""XXH64 with seed 0 over many values at once, as Parquet's bloom filters ask for.

After the specification of xxHash (github.com/Cyan4973/xxHash, doc/xxhash_spec.md): values of equal
length are hashed side by side, a numpy operation a step. A library hashes one value a call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
_1 = np.uint64(0x9E3779B185EBCA87)
_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_3 = np.uint64(0x165667B19E3779F9)
_4 = np.uint64(0x85EBCA77C2B2AE63)
_5 = np.uint64(0x27D4EB2F165667C5)
_AT_ONCE = 1 << 22


def hash_fixed(data: npt.NDArray[np.uint8]) -> Hashes:
    """Hashes of the rows of a matrix of bytes."""
    count, width = data.shape
    with np.errstate(over="ignore"):
        at = 0
        if width >= 32:
            state = _stripes(np.ascontiguousarray(data[:, : width // 32 * 32]), count)
            at = width // 32 * 32
        else:
            state = np.full(count, _5, np.uint64)
        state = state + np.uint64(width)
        while at + 8 <= width:
            lane = _words(data, at, 8, "<u8")
            state = _rotate(state ^ _round(np.zeros(1, np.uint64), lane), 27) * _1 + _4
            at += 8
        if at + 4 <= width:
            lane = _words(data, at, 4, "<u4")
            state = _rotate(state ^ (lane * _1), 23) * _2 + _3
            at += 4
        while at < width:
            state = _rotate(state ^ (data[:, at].astype(np.uint64) * _5), 11) * _1
            at += 1
        state = (state ^ (state >> np.uint64(33))) * _2
        state = (state ^ (state >> np.uint64(29))) * _3
        return np.asarray(state ^ (state >> np.uint64(32)))


def hash_bytes(values: pa.Array) -> Hashes:
    """Hashes of a large_binary array without nulls."""
    count = len(values)
    result = np.empty(count, np.uint64)
    if not count:
        return result
    offsets = np.frombuffer(values.buffers()[1], np.int64, count + 1, values.offset * 8)
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    order = np.argsort(lengths, kind="stable")
    edges = np.flatnonzero(np.diff(lengths[order])) + 1
    for group in np.split(order, edges):
        width = int(lengths[group[0]])
        step = max(1, _AT_ONCE // max(width, 1))
        for i in range(0, len(group), step):
            some = group[i : i + step]
            rows = data[offsets[some][:, None] + np.arange(width)]
            result[some] = hash_fixed(rows.reshape(len(some), width))
    return result


def ascending(hashes: Hashes) -> Hashes:
    """Distinct hashes, sorted; several times faster than numpy's ``unique``, which hashes again."""
    found = np.sort(hashes)
    if len(found) < 2:
        return found
    first = np.empty(len(found), np.bool_)
    first[0] = True
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return found if first.all() else found[first]


def hash_numbers(values: npt.NDArray[Any]) -> Hashes:
    """Hashes of the little-endian bytes of numbers."""
    raw = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return hash_fixed(raw.view(np.uint8).reshape(len(raw), raw.itemsize))


def _words(data: npt.NDArray[np.uint8], at: int, width: int, dtype: str) -> Hashes:
    part = np.ascontiguousarray(data[:, at : at + width])
    return part.view(dtype)[:, 0].astype(np.uint64)


def _stripes(data: npt.NDArray[np.uint8], count: int) -> Hashes:
    with np.errstate(over="ignore"):
        starts = (_1 + _2, _2, np.uint64(0), np.uint64(0) - _1)
        lanes = [np.full(count, start, np.uint64) for start in starts]
        words = data.view("<u8")
        for stripe in range(0, words.shape[1], 4):
            lanes = [_round(lanes[i], words[:, stripe + i]) for i in range(4)]
        state = (
            _rotate(lanes[0], 1)
            + _rotate(lanes[1], 7)
            + _rotate(lanes[2], 12)
            + _rotate(lanes[3], 18)
        )
        for lane in lanes:
            state = (state ^ _round(np.zeros(1, np.uint64), lane)) * _1 + _4
        return state


def _round(state: Hashes, lane: Hashes) -> Hashes:
    return _rotate(state + lane.astype(np.uint64) * _2, 31) * _1


def _rotate(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))
