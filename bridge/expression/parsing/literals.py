"""Literals converted exactly to the canonical values of a column's type.

A literal of another type often lies between two values of the column: 5.5 between the integers 5
and 6. A `Placement` holds the values around it, so that every comparison can be rewritten on the
column's own values without loss (rules 8, 10 and 16): ``x > 5.5`` is ``x >= 6``.

Some engines compare in a floating type that cannot hold the column's or the literal's value, so the
comparison itself rounds. The placement is then inexact and spans all values that may round to the
same number. Rounding is always outward.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bridge.expression.nodes import Literal
from bridge.expression.parsing.calendar import (
    MICROS_PER_DAY,
    parse_date,
    parse_instant,
    parse_timestamp,
)
from bridge.kernel.errors import InvalidPredicate
from bridge.kernel.types import (
    INTEGER_RANGE,
    TIMESTAMP,
    TIMESTAMP_TZ,
    Kind,
    Type,
    Value,
    decimal,
)

_TO_THE_MINUTE = re.compile(rb"\d[ T]\d\d:\d\d$")
_NANOSECONDS = re.compile(r":\d\d\.\d{7}")
_MICROS_END = 2**63 - MICROS_PER_DAY
_EXACT_INTEGERS = {Kind.FLOAT: 2**24, Kind.DOUBLE: 2**53}


@dataclass(frozen=True, slots=True)
class Placement:
    """The position of a literal among a column's values.

    A value equal to the literal is in [low, high]. A lesser value is at most high, and a greater
    value at least low. If low > high, the literal is between two neighbours and equals no value.
    Both may be beyond a decimal's `domain`: files may hold more digits than their table declares.

    Attributes:
        low: None if the literal exceeds every value that a column of the type can hold.
        high: None if every such value exceeds the literal.
        exact: whether these conditions are also sufficient, not only necessary.
    """

    low: Value | None
    high: Value | None
    exact: bool = True

    @property
    def point(self) -> bool:
        """Whether the literal is exactly one value of the column's type."""
        return self.exact and self.low is not None and self.low == self.high


def domain(type: Type) -> tuple[int, int] | None:
    """The least and greatest value that a type declares; None if it has no limits.

    No column holds an integer beyond it. Trino and Spark show decimals of more digits.
    """
    if type.kind in INTEGER_RANGE:
        return INTEGER_RANGE[type.kind]
    if type.kind is Kind.DECIMAL:
        return 1 - 10**type.precision, 10**type.precision - 1
    return (0, 1) if type.kind is Kind.BOOLEAN else None


def is_nan(literal: Literal) -> bool:
    return isinstance(literal.value, float) and math.isnan(literal.value)


def place(literal: Literal, type: Type, *, reads_minutes: bool = True) -> Placement | None:
    """Places a literal, neither NULL nor NaN, among the values of a column's type.

    Args:
        reads_minutes: as `Semantics.reads_minutes`.

    Returns:
        None if engines compare the two types differently, or if the engine's order is not the
        order of bounds (char, rule 11). Such a comparison prunes nothing.
    """
    value = literal.value
    assert value is not None
    if type.is_integer or type.kind is Kind.DECIMAL:
        return _among_numbers(literal, type)
    if type.is_floating:
        number = exact_number(literal)
        return None if number is None else _among_floats(number, type.kind is Kind.FLOAT)
    given = literal.type
    match type.kind:
        case Kind.BOOLEAN if given.kind is Kind.BOOLEAN:
            return _at(value)
        case Kind.STRING | Kind.VARCHAR if given.kind in (Kind.STRING, Kind.VARCHAR):
            return _at(value)
        case Kind.BINARY if given.kind is type.kind:
            return _at(value)
        case Kind.TIMESTAMP_TZ if given.kind is type.kind and isinstance(value, int):
            return _held(value)
        case Kind.DATE | Kind.TIMESTAMP:
            if not reads_minutes and isinstance(value, bytes) and _TO_THE_MINUTE.search(value):
                return None
            return _among_dates(literal, type)
    return None


def exact_number(literal: Literal) -> Fraction | float | None:
    """The exact value of a numeric literal. Infinities stay floats. None if not a number."""
    value, type = literal.value, literal.type
    if type.kind is Kind.DECIMAL and isinstance(value, int):
        return Fraction(value, 10**type.scale)
    if type.is_integer and isinstance(value, int):
        return Fraction(value)
    if type.is_floating and isinstance(value, float):
        return value if math.isinf(value) else Fraction(value)
    return None


def parse_decimal(text: str) -> Literal | None:
    """Parses a decimal and keeps its digits; None if it has more than 38 or is not a decimal.

    >>> parse_decimal("-1.50").type.precision, parse_decimal("-1.50").value
    (3, -150)
    """
    sign = -1 if text.startswith("-") else 1
    whole, _, fraction = text.lstrip("+-").partition(".")
    digits = whole + fraction
    if not (digits.isascii() and digits.isdigit()):
        return None
    precision = max(len(whole.lstrip("0")) + len(fraction), 1)
    if precision > 38:
        return None
    return Literal(sign * int(digits.lstrip("0") or "0"), decimal(precision, len(fraction)))


def parse_moment(text: str, type: Type, *, zoned: bool) -> Literal | None:
    """Parses a timestamp of the type; None if the text is none.

    Args:
        zoned: a text with an offset is a timestamp with a zone, whatever the type.

    Errors:
        InvalidPredicate: it has nanoseconds, which are not compared here.
    """
    if _NANOSECONDS.search(text):
        raise InvalidPredicate(
            f"{text!r} has more than six digits of a second, and microseconds are compared",
            "write at most six digits; instead of the end of a day: < the day after",
        )
    micros = None if type.kind is Kind.TIMESTAMP_TZ else parse_timestamp(text)
    if micros is not None:
        return Literal(micros, TIMESTAMP)
    instant = parse_instant(text) if zoned or type.kind is Kind.TIMESTAMP_TZ else None
    return None if instant is None else Literal(instant, TIMESTAMP_TZ)


def parse_float(text: str, *, single: bool) -> float:
    """The double or float nearest to a decimal text, or a NaN or infinity given by name.

    A float is rounded once, from the text. Rounding the double again may miss the nearest float.

    Errors:
        ValueError: the text is not a number.
    """
    value = float(text)
    if not single or not math.isfinite(value) or value == 0:
        return value
    number = Fraction(text)
    low, high = neighbor_floats(number, single=True)
    if low == high:
        return low
    if not (math.isfinite(low) and math.isfinite(high)):
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    below, above = number - Fraction(low), Fraction(high) - number
    if below == above:  # round half to even
        return float(np.float32(value))
    return low if below < above else high


def _at(value: Value) -> Placement:
    return Placement(value, value)


def _among_numbers(literal: Literal, type: Type) -> Placement | None:
    edges = domain(type)
    if edges is None:
        return None
    least, greatest = edges
    value = literal.value
    integers = type.is_integer and literal.type.is_integer and isinstance(value, int)
    if integers and least <= value <= greatest:  # type: ignore[operator]
        return _at(value)  # type: ignore[arg-type]  # fast path
    number = exact_number(literal)
    if number is None:
        return None
    if isinstance(number, float):
        more = int(type.kind is Kind.DECIMAL)
        if number > 0:
            return Placement(None, greatest + more)
        return Placement(least - more, None)
    scale = 10**type.scale if type.kind is Kind.DECIMAL else 1
    below = above = number
    exact = True
    if literal.type.is_floating and (
        type.kind is Kind.DECIMAL or abs(number) >= _EXACT_INTEGERS[literal.type.kind]
    ):
        # The engine compares in the literal's type, to which several of the column's values round.
        # All values between the literal's neighbours may equal it.
        below, above = _neighbours(number, literal.type.kind is Kind.FLOAT)
        exact = False
    low, high = math.ceil(below * scale), math.floor(above * scale)
    if type.kind is Kind.DECIMAL:
        return Placement(low, high, exact)
    return Placement(
        None if low > greatest else max(low, least),
        None if high < least else min(high, greatest),
        exact,
    )


def _among_floats(number: Fraction | float, single: bool) -> Placement:
    if isinstance(number, float):
        return _at(number)
    low, high = neighbor_floats(number, single)
    # If low and high differ, the engine's rounding decides which of them the literal equals.
    return Placement(low + 0.0, high + 0.0, exact=low == high)


def neighbor_floats(number: Fraction, single: bool) -> tuple[float, float]:
    """The nearest floats below and above a number; both equal it if it is a float."""
    try:
        near = float(number)
    except OverflowError:
        near = math.inf if number > 0 else -math.inf
    if single:
        with np.errstate(over="ignore"):
            near = float(np.float32(near))
    if math.isinf(near):
        inner = _step(near, -near, single)
        return (inner, near) if near > 0 else (near, inner)
    exact = Fraction(near)
    if exact == number:
        return near, near
    if exact > number:
        return _step(near, -math.inf, single), near
    return near, _step(near, math.inf, single)


def _neighbours(number: Fraction, single: bool) -> tuple[Fraction, Fraction]:
    """The floats next to a float, as exact numbers."""
    value = float(number)
    below, above = (_step(value, to, single) for to in (-math.inf, math.inf))
    # Numbers up to half a step beyond the largest float round to it.
    edge = Fraction(value) * 2
    return (
        Fraction(below) if math.isfinite(below) else edge,
        Fraction(above) if math.isfinite(above) else edge,
    )


def _step(value: float, to: float, single: bool) -> float:
    if single:
        with np.errstate(over="ignore"):  # larger values become infinite
            return float(np.nextafter(np.float32(value), np.float32(to)))
    return math.nextafter(value, to)


def _held(value: int) -> Placement | None:
    """A date or timestamp; None beyond 64 bits, where engines clamp or fail."""
    return _at(value) if -(2**63) <= value < 2**63 else None


def _among_dates(literal: Literal, type: Type) -> Placement | None:
    value, given = literal.value, literal.type.kind
    if given in (Kind.STRING, Kind.VARCHAR) and isinstance(value, bytes):
        parse = parse_date if type.kind is Kind.DATE else parse_timestamp
        parsed = parse(value.decode("utf-8", "replace"))
        return None if parsed is None else _held(parsed)
    if not isinstance(value, int):
        return None
    if given is type.kind:
        return _held(value)
    if type.kind is Kind.TIMESTAMP and given is Kind.DATE:
        return _held(value * MICROS_PER_DAY)
    if type.kind is Kind.DATE and given is Kind.TIMESTAMP:
        if abs(value) >= _MICROS_END:
            return None  # engines clamp dates beyond the range of timestamps
        day, rest = divmod(value, MICROS_PER_DAY)
        return Placement(day + 1, day) if rest else _at(day)
    return None
