"""Trino's LIKE on text columns, with the backslash as escape.

The law: a text matches here exactly if it matches in Trino (rule 25). ``%`` matches any text and
``_`` one code point, including line ends. If the escape precedes anything but ``%``, ``_`` or the
backslash, the pattern is invalid and the result is None.

Arrow's LIKE is not used, because it takes an escaped backslash literally in patterns that begin or
end with ``%``.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_ESCAPE = "\\"
_SPECIAL = frozenset("\\.+*?()|[]{}^$")


class Wildcard(Enum):
    """The wildcards of a pattern."""

    ONE = "_"
    MANY = "%"


Part = str | Wildcard


def like_parts(pattern: str) -> list[Part] | None:
    """The literal texts and wildcards of a pattern; None if it is invalid.

    >>> like_parts("a\\\\%b%%_")
    ['a%b', <Wildcard.MANY: '%'>, <Wildcard.ONE: '_'>]
    """
    parts: list[Part] = []
    literal: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character in "%_":
            if literal:
                parts.append("".join(literal))
                literal = []
            found = Wildcard(character)
            if found is Wildcard.ONE or parts[-1:] != [found]:
                parts.append(found)
            continue
        if character == _ESCAPE:
            character = next(characters, "")
            if not character or character not in "%_\\":
                return None
        literal.append(character)
    if literal:
        parts.append("".join(literal))
    return parts


def like_mask(texts: pa.Array, pattern: str) -> pa.Array | None:
    """Which texts match (null for null); None if the pattern is invalid or too large.

    Args:
        texts: string or large_string, hence valid UTF-8.
    """
    match like_parts(pattern):
        case None:
            return None
        case []:
            return pc.equal(texts, pa.scalar("", texts.type))
        case [str(whole)]:
            return pc.equal(texts, pa.scalar(whole, texts.type))
        case [Wildcard.MANY]:
            return pc.equal(texts, texts)
        case [str(start), Wildcard.MANY]:
            return pc.starts_with(texts, pattern=start)
        case [Wildcard.MANY, str(end)]:
            return pc.ends_with(texts, pattern=end)
        case [Wildcard.MANY, str(middle), Wildcard.MANY]:
            return pc.match_substring(texts, pattern=middle)
        case parts:
            return _by_expression(texts, parts)


def _by_expression(texts: pa.Array, parts: list[Part]) -> pa.Array | None:
    expression = "".join(map(_expression, parts))
    try:
        return pc.match_substring_regex(texts, pattern=rf"(?s)\A{expression}\z")
    except pa.ArrowInvalid:  # too large for the matcher
        return None


def _expression(part: Any) -> str:
    """One part as an RE2 expression, where a dot matches a code point."""
    match part:
        case Wildcard.ONE:
            return "."
        case Wildcard.MANY:
            return ".*"
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in part)
