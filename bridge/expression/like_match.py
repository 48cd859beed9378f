"""Trino's LIKE over columns of text, with the backslash as the pattern's escape.

The law: a text matches here exactly when it matches in Trino (rule 25). ``%`` stands for any text
and ``_`` for one code point, line ends included; a pattern whose escape stands before anything but
``%``, ``_`` or the backslash is invalid, and the answer is None.

Arrow's LIKE is not used: it takes an escaped backslash literally where a pattern begins or ends
with ``%``.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_ESCAPE = "\\"
_SPECIAL = frozenset("\\.+*?()|[]{}^$")


class Wildcard(Enum):
    """What stands in a pattern beside literal text."""

    ONE = "_"
    MANY = "%"


Part = str | Wildcard


def like_parts(pattern: str) -> list[Part] | None:
    """The literal texts and wildcards of a pattern; None for one that has no meaning.

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
    """Which texts match, null for null; None where the pattern means nothing or is too large.

    Args:
        texts: of type string or large_string, so valid UTF-8.
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
    except pa.ArrowInvalid:  # larger than the matcher takes
        return None


def _expression(part: Any) -> str:
    """One part as RE2 has it, where a dot is a code point."""
    match part:
        case Wildcard.ONE:
            return "."
        case Wildcard.MANY:
            return ".*"
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in part)
