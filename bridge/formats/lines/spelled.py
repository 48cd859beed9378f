"""Values from text, where their spelling leaves no doubt.

Parsers differ in spaces, signs, leading zeros, exponents, hexadecimal digits, and dates that do not
exist. Here only the spellings that every engine writes are values: ``-12``, ``0.5``, ``true``,
``2024-02-29``, ``2024-02-29 12:30:00.125``. Any other spelling makes its column doubtful.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.types import INTEGER_RANGE, Kind, Type

_ARROW = {
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
}
_PLAIN = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,3})?$"
_EXACT = 15
"""Digits that fit a double exactly, and are the same after a detour through one."""
_LONGEST = 25
_LOOSE_DOUBLE, _LOOSE_FLOAT = 1e-12, 1e-6
"""Hive's own parser of doubles errs in the last bits, and some parsers of floats round twice. These
relative errors are far larger."""
_FROM = pa.scalar(-25_567, pa.int32()).cast(pa.date32())
"""1900-01-01. Calendars and time zones differ before it."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The values of a column; ``loose``: the relative error by which engines may differ."""

    values: pa.Array
    loose: float = 0.0


def parse(values: pa.Array, declared: Type, *, empty_is_null: bool) -> Parsed | None:
    """Text as values of a declared type; None if one of them is doubtful.

    Args:
        empty_is_null: engines read empty text as NULL where the type is a number or a timestamp.
            Elsewhere empty text is doubtful.
    """
    kind = declared.kind
    if kind is Kind.STRING:
        return Parsed(values)
    if kind is Kind.VARCHAR:
        longest = pc.max(pc.utf8_length(values)).as_py() or 0
        return Parsed(values) if longest <= declared.length else None
    if kind is Kind.BOOLEAN:
        return _boolean(values)
    if empty_is_null and kind not in (Kind.DATE, Kind.DECIMAL):
        values = pc.if_else(pc.equal(values, ""), pa.scalar(None, values.type), values)
    try:
        if declared.is_integer:
            return _integer(values, declared)
        if declared.is_floating:
            return _floating(values, declared)
        if kind is Kind.DECIMAL:
            return _decimal(values, declared)
        if kind is Kind.DATE:
            return _date(values)
        if kind is Kind.TIMESTAMP:
            return _timestamp(values)
    except pa.ArrowInvalid:  # out of range, more digits than the type has, or no such day
        return None
    return None


def first_doubtful(values: pa.Array, read: Callable[[pa.Array], Parsed | None]) -> str:
    """The first of the values for which the reader returns None, as a message has room for it."""
    while len(values) > 1:
        first = values.slice(0, len(values) // 2)
        values = first if read(first) is None else values.slice(len(first))
    return f"{str(values[0])[:100]!r}"


def _all(mask: pa.Array) -> bool:
    """Whether a condition holds for all values that are not NULL."""
    return pc.all(mask).as_py() is not False


def _integer(values: pa.Array, declared: Type) -> Parsed | None:
    numbers = values.cast(pa.int64())
    if not _all(pc.equal(numbers.cast(values.type), values)):
        return None
    low, high = INTEGER_RANGE[declared.kind]
    found = pc.min_max(numbers).as_py()
    if found["min"] is not None and not low <= found["min"] <= found["max"] <= high:
        return None
    return Parsed(numbers.cast(_ARROW[declared.kind]))


def _floating(values: pa.Array, declared: Type) -> Parsed | None:
    longest = pc.max(pc.binary_length(values)).as_py() or 0
    if longest > _LONGEST or not _all(pc.match_substring_regex(values, _PLAIN)):
        return None
    numbers = values.cast(pa.float64())
    if declared.kind is Kind.FLOAT:
        return as_float(numbers, sure=longest <= _EXACT)
    return Parsed(numbers, _LOOSE_DOUBLE if longest > _EXACT else 0.0)


def as_float(numbers: pa.Array, *, sure: bool) -> Parsed | None:
    """Doubles as floats; None if one is too large or too small for a float.

    Args:
        sure: engines agree on the doubles. Doubles that are floats are then not rounded.
    """
    narrow = numbers.cast(pa.float32(), safe=False)
    size = pc.abs(narrow)
    normal = pc.and_(pc.less(size, 1e38), pc.greater(size, 1e-37))
    if not _all(pc.or_(normal, pc.equal(numbers, 0.0))):
        return None
    exact = sure and _all(pc.equal(narrow.cast(pa.float64()), numbers))
    return Parsed(narrow, 0.0 if exact else _LOOSE_FLOAT)


def _decimal(values: pa.Array, declared: Type) -> Parsed | None:
    if not _all(pc.match_substring_regex(values, _PLAIN)):
        return None
    return Parsed(values.cast(pa.decimal128(declared.precision, declared.scale)))


def exact_decimals(values: pa.Array) -> bool:
    """Whether decimals fit their type, and stay the same on a detour through doubles.

    Arrow's JSON reader does not check that a number fits after it was scaled.
    """
    found = pc.min_max(values).as_py()
    if found["min"] is None:
        return True
    most = Decimal(10) ** (min(_EXACT, values.type.precision) - values.type.scale)
    return bool(max(abs(found["min"]), abs(found["max"])) < most)


def _boolean(values: pa.Array) -> Parsed | None:
    true = pc.equal(values, "true")
    return Parsed(true) if _all(pc.or_(true, pc.equal(values, "false"))) else None


def _date(values: pa.Array) -> Parsed | None:
    if not _all(pc.match_substring_regex(values, _DATE)):
        return None
    days = values.cast(pa.date32())
    return Parsed(days) if _all(pc.greater_equal(days, _FROM)) else None


def _timestamp(values: pa.Array) -> Parsed | None:
    if not _all(pc.match_substring_regex(values, _TIME)):
        return None
    micros = values.cast(pa.timestamp("us"))
    floor = pa.scalar(np.datetime64("1900-01-01", "us")).cast(pa.timestamp("us"))
    return Parsed(micros) if _all(pc.greater_equal(micros, floor)) else None
