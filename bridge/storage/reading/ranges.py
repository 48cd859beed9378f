"""Byte ranges of a file: joining those that lie close together, and cutting bytes out of parts."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.kernel.errors import FileShort
from bridge.storage.port import Range

GAP = 256 * 1024
"""Bytes between two ranges that cost less than a request of their own."""


def join_ranges(ranges: Sequence[Range], gap: int = GAP) -> list[Range]:
    """The ranges sorted, without empty ones, and joined where at most ``gap`` bytes lie between.

    >>> join_ranges([(20, 30), (0, 10), (12, 15), (5, 5)], gap=2)
    [(0, 15), (20, 30)]
    """
    joined: list[Range] = []
    for start, end in sorted(r for r in ranges if r[1] > r[0]):
        if joined and start - joined[-1][1] <= gap:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def cut(parts: Sequence[tuple[int, bytes]], start: int, end: int) -> bytes | None:
    """Bytes ``start`` to ``end`` out of parts, each with its offset; None if none holds them all.

    >>> cut([(0, b"abc"), (10, b"xyz")], 11, 13), cut([(0, b"abc")], 2, 4)
    (b'yz', None)
    """
    for at, part in parts:
        if at <= start and end <= at + len(part):
            return part if len(part) == end - start else part[start - at : end - at]
    return None


def require_length(uri: str, start: int, end: int, length: int) -> None:
    """Errors: FileShort: bytes ``start`` to ``end`` were not all there."""
    if length != end - start:
        raise FileShort(
            f"{uri} ends before byte {end}", "the file was cut or rewritten: refresh the index"
        )
