"""How much min/max keeps of a column: ``none``, ``counts``, ``truncate(n)`` or ``full``.

``none`` records only that the column exists. ``counts`` adds the numbers of NULL and NaN.
``truncate(n)`` adds bounds of at most n code points or bytes (correctness 3). ``full`` keeps all.
The existence must be recorded, because a file without an entry for a column counts as lacking it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bridge.formats.statistics import LeafStatistics
from bridge.kernel.errors import InvalidConfiguration

_TRUNCATE = re.compile(r"truncate\((\d{1,4})\)")
FULL = -1
NONE = -2
COUNTS = -3


def parse_mode(text: str) -> int:
    """Parses a mode: `FULL`, `NONE`, `COUNTS`, or the length to which bounds are truncated.

    Errors:
        InvalidConfiguration.
    """
    plain = {"full": FULL, "none": NONE, "counts": COUNTS}.get(text)
    if plain is not None:
        return plain
    match = _TRUNCATE.fullmatch(text)
    if match is None or not int(match[1]):
        raise InvalidConfiguration(
            f"{text!r} is no mode of min/max", "one of none, counts, truncate(16), full"
        )
    return int(match[1])


class Modes:
    """The modes of a table's columns, applied to statistics of footers and scans."""

    def __init__(self, modes: Iterable[tuple[str, str]]) -> None:
        self._modes = {column: parse_mode(mode) for column, mode in modes}
        self._other = self._modes.pop("*", FULL)
        self._known: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._modes) or self._other != FULL

    def of(self, path: tuple[str, ...]) -> int:
        """The mode of a leaf: its own, that of an enclosing struct, or the table's."""
        for end in range(len(path), 0, -1):
            found = self._modes.get(".".join(path[:end]).lower())
            if found is not None:
                return found
        return self._other

    def apply(self, leaf: LeafStatistics) -> None:
        """Removes the statistics that the column's mode does not keep, in place."""
        mode = self._known.get(leaf.key)
        if mode is None:
            mode = self._known[leaf.key] = self.of(leaf.column.path)
        if mode == FULL:
            return
        if mode in (NONE, COUNTS):
            leaf.lower = leaf.upper = None
            leaf.exact = False
            if mode == NONE:
                leaf.nulls = leaf.nans = None
        elif leaf.column.type.holds == "bytes":
            _truncate(leaf, mode)


def _truncate(leaf: LeafStatistics, length: int) -> None:
    text = leaf.column.type.logical == "string"
    if leaf.lower is not None:
        lower = truncate(leaf.lower, length, text)
        leaf.exact = leaf.exact and lower == leaf.lower
        leaf.lower = lower
    if leaf.upper is not None:
        upper = truncate(leaf.upper, length, text)
        if upper != leaf.upper:
            leaf.exact = False
            leaf.upper = next_prefix(upper, text)


def truncate(value: bytes, length: int, text: bool) -> bytes:
    """A prefix of at most ``length`` code points (text) or bytes."""
    if not text:
        return value[:length]
    try:
        return value.decode()[:length].encode()
    except UnicodeDecodeError:
        return value  # invalid UTF-8 is not truncated


def next_prefix(value: bytes, text: bool) -> bytes | None:
    """The least prefix above all values that start with ``value``; None if none exists (rule 3).

    >>> next_prefix("a\\U0010ffff".encode(), True), next_prefix("\\ud7ff".encode(), True)
    (b'b', b'\\xee\\x80\\x80')
    """
    if not text:
        stripped = value.rstrip(b"\xff")
        return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
    points = [ord(c) for c in value.decode()]
    while points and points[-1] == 0x10FFFF:
        points.pop()
    if not points:
        return None
    points[-1] = 0xE000 if points[-1] == 0xD7FF else points[-1] + 1
    return "".join(map(chr, points)).encode()
