"""Keys of Hudi's metadata table: hashes of names, as Hudi's ``HashID`` makes them.

A record of the partition ``column_stats`` has the key hash(column) + hash(partition) + hash(file),
one of ``bloom_filters`` the same without the column: XXH64 with a seed of Hudi's own for column and
partition, MD5 for the file, each in Base64.

>>> column_statistics_key("id", "2024-01-02", "x")[:12]
b'sLZoasJosec='
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

_SEED = 0xFFFFFFFFDABADABA
_MASK = (1 << 64) - 1
_1, _2, _3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_4, _5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_STRIPE = 32


def column_statistics_key(column: str, partition: str, file: str) -> bytes:
    """The key of the bounds of one column in one file.

    Args:
        partition: its path; ``.`` where the table has none.
        file: its name without directory.
    """
    return _hash(column) + bloom_filter_key(partition, file)


def bloom_filter_key(partition: str, file: str) -> bytes:
    """The key of the bloom filter of one file, named as above."""
    digest = hashlib.md5(file.encode(), usedforsecurity=False).digest()
    return _hash(partition) + base64.b64encode(digest)


@lru_cache(4096)
def _hash(name: str) -> bytes:
    return base64.b64encode(xxh64(name.encode(), _SEED).to_bytes(8, "big"))


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 of some bytes, as its specification says (doc/xxhash_spec.md of xxHash).

    >>> hex(xxh64(b"", 0)), hex(xxh64(b"abc", 0))
    ('0xef46db3751d8e999', '0x44bc2cf5ad770999')
    """
    at = 0
    if len(data) >= _STRIPE:
        lanes = [seed + _1 + _2, seed + _2, seed, seed - _1]
        while at + _STRIPE <= len(data):
            for i in range(4):
                word = int.from_bytes(data[at + 8 * i : at + 8 * i + 8], "little")
                lanes[i] = _round(lanes[i] & _MASK, word)
            at += _STRIPE
        found = sum(_rotate(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _1 + _4) & _MASK
    else:
        found = seed + _5
    found = (found + len(data)) & _MASK
    while at + 8 <= len(data):
        word = int.from_bytes(data[at : at + 8], "little")
        found = (_rotate(found ^ _round(0, word), 27) * _1 + _4) & _MASK
        at += 8
    if at + 4 <= len(data):
        word = int.from_bytes(data[at : at + 4], "little")
        found = (_rotate(found ^ (word * _1 & _MASK), 23) * _2 + _3) & _MASK
        at += 4
    for byte in data[at:]:
        found = _rotate(found ^ (byte * _5 & _MASK), 11) * _1 & _MASK
    found = (found ^ (found >> 33)) * _2 & _MASK
    found = (found ^ (found >> 29)) * _3 & _MASK
    return found ^ (found >> 32)


def _round(lane: int, word: int) -> int:
    return _rotate((lane + word * _2) & _MASK, 31) * _1 & _MASK


def _rotate(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & _MASK
