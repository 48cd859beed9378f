"""Partition names such as ``month=1/city=New%20York``, and their values.

The law (rule 18): split on '/', then on the first '=', and only THEN unescape, once.
``__HIVE_DEFAULT_PARTITION__`` is NULL, compared after decoding. A value that does not parse as the
key's type is unknown, and an unknown value keeps its partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

from bridge.kernel.types import INTEGER_RANGE, Kind, Type, Value
from bridge.table.model import Column

NULL_MARKER = "__HIVE_DEFAULT_PARTITION__"
# The characters that Hive escapes in partition directory names.
_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{[]^") | {chr(c) for c in range(1, 32)}
_CODE = re.compile("%([0-9A-Fa-f]{2})")
_EPOCH = date(1970, 1, 1)
_EPOCH_TIME = datetime(1970, 1, 1, tzinfo=UTC)
# Spellings that every engine parses alike. Some engines reject others or read them as NULL.
# Python's parsers accept more (weeks, digits of other scripts, underscores), so these filter first.
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:\.([0-9]{1,9}))?)?"
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")


class UnparsableValue:
    """A partition value that does not parse as its key's type; nothing is known about it."""


UNPARSABLE = UnparsableValue()


def escape(value: str) -> str:
    """Escapes one name or value as Hive does; the inverse of `unescape`."""
    return "".join(f"%{ord(c):02X}" if c in _ESCAPED else c for c in value)


def unescape(text: str) -> str:
    """Undoes `escape` once.

    >>> unescape("a%2525b")
    'a%25b'
    """
    return _CODE.sub(lambda m: chr(int(m[1], 16)), text) if "%" in text else text


def partition_name(keys: Sequence[str], values: Sequence[str | None]) -> str:
    """The escaped name of a partition: ``partition_name(["a"], ["x/y"])`` is ``a=x%2Fy``."""
    return "/".join(
        f"{escape(k)}={NULL_MARKER if v is None or v == '' else escape(v)}"
        for k, v in zip(keys, values, strict=True)
    )


def parse_partition_name(name: str) -> tuple[tuple[str, str | None], ...]:
    """The key and the unescaped value (None is NULL) of each level of a name.

    >>> parse_partition_name("a=x%2Fy/b=__HIVE_DEFAULT_PARTITION__")
    (('a', 'x/y'), ('b', None))
    """
    pairs: list[tuple[str, str | None]] = []
    for level in name.split("/"):
        key, _, raw = level.partition("=")
        value = unescape(raw)
        pairs.append((unescape(key), None if value == NULL_MARKER else value))
    return tuple(pairs)


def parse_value(text: str | None, type_: Type) -> Value | UnparsableValue | None:
    """The canonical value of a partition value's text; None is NULL, UNPARSABLE is unknown.

    '01' and '1' are the same int: typed values are compared, never names.
    """
    if text is None:
        return None
    parser = _PARSERS.get(type_.kind)
    if parser is None:
        return UNPARSABLE
    try:
        return parser(text, type_)
    except (ValueError, ArithmeticError):
        return UNPARSABLE


def _integer(text: str, type_: Type) -> Value | UnparsableValue:
    if not _INTEGER.fullmatch(text):
        return UNPARSABLE
    value = int(text)
    low, high = INTEGER_RANGE[type_.kind]
    return value if low <= value <= high else UNPARSABLE


def _boolean(text: str, _type: Type) -> Value | UnparsableValue:
    return {"true": True, "false": False}.get(text.lower(), UNPARSABLE)


def _decimal(text: str, type_: Type) -> Value | UnparsableValue:
    if not _NUMBER.fullmatch(text):
        return UNPARSABLE
    # Work on digits: Decimal arithmetic would round to 28 digits.
    sign, digits, exponent = Decimal(text).as_tuple()
    unscaled = "".join(map(str, digits)).lstrip("0")
    if not unscaled:
        return 0
    shift = int(exponent) + type_.scale
    zeros = len(unscaled) - len(unscaled.rstrip("0"))
    if len(unscaled) + shift > type_.precision or -shift > zeros:
        return UNPARSABLE  # the type's precision or scale is too small
    value = int(unscaled[:shift] if shift < 0 else unscaled + "0" * shift)
    return -value if sign else value


def _date(text: str, _type: Type) -> Value | UnparsableValue:
    if not _DATE.fullmatch(text):
        return UNPARSABLE
    return (date.fromisoformat(text) - _EPOCH).days


def _timestamp(text: str, _type: Type) -> Value | UnparsableValue:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return UNPARSABLE
    year, month, day, hour, minute, second = (int(g or 0) for g in match.groups()[:6])
    fraction = (match[7] or "").ljust(6, "0")
    if len(fraction) > 6 and fraction[6:].strip("0"):
        return UNPARSABLE
    moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    return (moment - _EPOCH_TIME) // timedelta(microseconds=1) + int(fraction[:6])


def _text(text: str, type_: Type) -> Value | UnparsableValue:
    if type_.kind is Kind.VARCHAR and len(text) > type_.length:
        return UNPARSABLE  # Hive truncates it, Trino rejects it
    return text.encode("utf-8", "surrogateescape")


_PARSERS: dict[Kind, Callable[[str, Type], Value | UnparsableValue]] = {
    Kind.BOOLEAN: _boolean,
    Kind.TINYINT: _integer,
    Kind.SMALLINT: _integer,
    Kind.INTEGER: _integer,
    Kind.BIGINT: _integer,
    Kind.DECIMAL: _decimal,
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.STRING: _text,
    Kind.VARCHAR: _text,
}


def typed_values(
    names: Sequence[str], keys: Sequence[Column]
) -> list[list[Value | UnparsableValue | None]]:
    """Typed values by key (outer) and partition (inner).

    A name with missing levels is unparsable.
    """
    levels = [_known_levels(k.name.lower(), k.type) for k in keys]
    if len(levels) == 1:
        return [[levels[0][name] for name in names]]
    missing = [_INCOMPLETE] * len(keys)
    rows = (name.split("/") for name in names)
    whole = [row if len(row) == len(keys) else missing for row in rows]
    columns = zip(*whole, strict=True) if whole else [()] * len(keys)
    return [[known[t] for t in texts] for known, texts in zip(levels, columns, strict=True)]


_MOST_LEVELS = 1 << 17
_INCOMPLETE = "/"  # no level of a name contains it


class _Levels(dict[str, Value | UnparsableValue | None]):
    """Typed values of one key by level (``month=1``), parsed once."""

    def __init__(self, name: str, type: Type) -> None:
        super().__init__()
        self._name, self._type = name, type

    def __missing__(self, level: str) -> Value | UnparsableValue | None:
        key, _, raw = level.partition("=")
        value: Value | UnparsableValue | None = UNPARSABLE
        if "/" not in level and unescape(key).lower() == self._name:
            text = unescape(raw)
            value = None if text == NULL_MARKER else parse_value(text, self._type)
        if len(self) >= _MOST_LEVELS:
            self.clear()
        self[level] = value
        return value


@lru_cache(16)
def _known_levels(name: str, type: Type) -> _Levels:
    return _Levels(name, type)
