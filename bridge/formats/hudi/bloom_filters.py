"""Bloom filters of keys, of the type ``DYNAMIC_V0``: Hadoop's dynamic filters in Base64.

A filter is rows of bits, all of one size; a key is in it if one row has all of the key's bits.
"""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct

_HEAD = Struct(">iibi")
"""Version, hashes of a key, their type, and bits of a row."""
_DYNAMIC = Struct(">iii")
"""Keys of a row, keys of the last row, and rows."""
_VERSION, _MURMUR = -1, 1
_MOST_HASHES = 1000
_M = 0x5BD1E995
_32 = 0xFFFFFFFF
_ENDS = (0xFFFFFF00, 0)
"""What a byte adds above its bits: Hadoop takes those from 128 on for negative numbers."""


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The keys of one file.

    Attributes:
        hashes: of each key.
        size: bits of a row.
    """

    hashes: int
    size: int
    rows: tuple[bytes, ...]

    @staticmethod
    def parse(text: bytes) -> BloomFilter:
        """Errors: ValueError: this is no such filter."""
        data = base64.b64decode(text, validate=True)
        try:
            head = _HEAD.unpack_from(data)
            version, hashes, kind, size = head
            *_, count = _DYNAMIC.unpack_from(data, _HEAD.size)
        except struct.error as error:
            raise ValueError(f"a bloom filter has {len(data)} bytes") from error
        width = (size + 7) // 8
        begin, step = _HEAD.size + _DYNAMIC.size, _HEAD.size + width
        starts = range(begin, len(data), step) if width > 0 else range(0)
        if (version, kind) != (_VERSION, _MURMUR) or not 0 < hashes <= _MOST_HASHES:
            raise ValueError(f"a bloom filter has version {version} and {hashes} hashes of {kind}")
        if count != len(starts) or begin + count * step != len(data) or not count:
            raise ValueError(f"a bloom filter of {count} rows of {size} bits has {len(data)} bytes")
        if any(_HEAD.unpack_from(data, at) != head for at in starts):
            raise ValueError("rows of a bloom filter differ in size")
        rows = (data[at + _HEAD.size : at + step] for at in starts)
        return BloomFilter(hashes, size, tuple(rows))


@lru_cache(1024)
def bits_of(key: bytes, hashes: int, size: int) -> tuple[int, ...]:
    """The bits that a row has if the key is in it; none of an empty key, which has no hash."""
    found, seed = [], 0
    if not key:
        return ()
    for _ in range(hashes):
        seed = murmur(key, seed)
        signed = seed - (1 << 32) if seed >> 31 else seed
        found.append(abs(signed) % size)
    return tuple(found)


def murmur(data: bytes, seed: int) -> int:
    """Hadoop's MurmurHash, whose last bytes are taken from the end and have signs."""
    found = seed ^ len(data)
    whole = len(data) & ~3
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        mixed = word * _M & _32
        mixed = (mixed ^ mixed >> 24) * _M & _32
        found = (found * _M & _32) ^ mixed
    left = len(data) - whole
    for place in range(left, 0, -1):
        byte = data[-place]
        found ^= (byte | _ENDS[byte < 128]) << 8 * (place - 1) & _32
    if left:
        found = found * _M & _32
    found = (found ^ found >> 13) * _M & _32
    return found ^ found >> 15
