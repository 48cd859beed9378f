"""Values that have broken readers and indexes, by kind; files and literals are drawn from them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

_US = dt.timedelta(microseconds=1)
INF = math.inf
INTS = (-5, -2, -1, 0, 1, 2, 3, 5, 7, 9, 10, 42, 100, 126, 127, -128, -127)
WIDER = (128, 255, 256, 1000, 32766, 32767, -32768, 40000, 65535, 65536)
WIDEST = (2**31 - 1, -(2**31), 2**24, 2**24 + 1, 10**9)
LONGS = (2**31, -(2**31) - 1, 2**53, 2**53 + 1, 10**18, 2**63 - 2, 2**63 - 1, -(2**63), 10**15)
FLOATS = (-0.0, 0.0, 1.5, 5.0, -1.5, 3.4028234663852886e38, math.nan, INF, -INF)
FLOATS = (*FLOATS, 0.10000000149011612, 1.401298464324817e-45)
DOUBLES = (*FLOATS, 0.1, 0.30000000000000004, 5e-324, 1.7976931348623157e308, -1e300)
# What LIKE, escapes and cut bounds stumble over, and what orders and case mappings do.
MARKED = (
    *(
        "",
        " ",
        "a",
        "A",
        "a ",
        "ab",
        "abc",
        "abcd",
        "abcde",
        "abcdef",
        "100%",
        "50% off",
        "_",
        "a_b",
    ),
    *("%", "\\", "C:\\dir", "C:\\dir\\x", "x\\b", "b\\", "\\%", "it's", 'say "hi"', "z\t", "a\n"),
)
WORLDLY = (
    *("a", "ABC", "b", "z", "za", "Zürich", "zürich", "été", "日本", "日本語", "ﬀ", "￿", "😀"),
    *("😀smile", "a😀", "𐍈", "\U0010ffff", "a\U0010ffff", "\ud7ff", "İ", "ß", "null", "NULL"),
    *("12", "-5", "1.5", "2024-02-29", "\x7f", "x" * 40, "x" * 40 + "y", "x" * 80),
)
DATES = (
    *(dt.date(1, 1, 1), dt.date(1000, 2, 28), dt.date(1582, 10, 4), dt.date(1582, 10, 15)),
    *(dt.date(1899, 12, 31), dt.date(1900, 1, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1)),
    *(dt.date(2000, 2, 29), dt.date(2023, 12, 31), dt.date(2024, 1, 1), dt.date(2024, 1, 31)),
    *(dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(2024, 6, 15), dt.date(9999, 12, 31)),
)
TIMES = (
    *(dt.datetime(d.year, d.month, d.day) for d in DATES),
    *(dt.datetime(2024, 1, 1, 9, 59, 59, us) for us in (0, 123456, 999499, 999700, 999999)),
    *(dt.datetime(2024, 1, 1, 10, 0, 0, us) for us in (0, 1, 123000, 123456, 123500, 500000)),
    *(dt.datetime(2024, 1, 31, 23, 59, 59, 999999), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    *(dt.datetime(1899, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 3, 10, 2, 30)),
)
BYTES = (b"", b"\x00", b"\x00\x05", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"abc", b"abd")


@dataclass(frozen=True, slots=True)
class Sort:
    """How the values of a column are spelled in SQL.

    Attributes:
        name: ``int``, ``float``, ``double``, ``decimal``, ``text``, ``char``, ``date``, ``time``,
            ``bool`` or ``binary``.
        pool: values to draw from, sorted as far as they can be.
        precision, scale: of decimals; precision is the length of texts that are cut, else 0.
    """

    name: str
    pool: tuple[Any, ...]
    precision: int = 0
    scale: int = 0


def _decimals(precision: int, scale: int) -> tuple[Decimal, ...]:
    unit = Decimal(1).scaleb(-scale)
    digits = min(precision, 38)
    most = Decimal(f"{'9' * (digits - scale) or '0'}.{'9' * scale or '0'}")
    found = [Decimal(n) for n in (0, 1, -1, 2, 5, -5, 10, 99, 100, -128, 255)]
    found += [
        unit,
        unit.copy_negate(),
        most,
        most.copy_negate(),
        Decimal("1.5"),
        Decimal("2.25"),
        Decimal("999.99"),
    ]
    long = Decimal("1234567890123456789012345678.9012345678")
    found += [long, long.copy_negate(), Decimal("12345678901234567890123456789012345678")]
    return tuple(d for d in (fitted(d, precision, scale) for d in found) if d is not None)


def fitted(value: Decimal, precision: int, scale: int) -> Decimal | None:
    """The value with so many digits after the point, None if it does not fit."""
    with decimal.localcontext() as context:
        context.prec = 80
        cut = value.quantize(Decimal(1).scaleb(-scale), rounding=decimal.ROUND_DOWN)
        return cut if abs(cut) < Decimal(10) ** (precision - scale) else None


def _sorted(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(sorted(set(values), key=lambda v: (v != v, v, str(v))))


def _floats(values: Sequence[float]) -> tuple[float, ...]:
    found = {repr(v): v for v in values}
    return tuple(sorted(found.values(), key=lambda v: (v != v, v, repr(v))))


def ints(bits: int) -> Sort:
    every = (*INTS, *WIDER, *WIDEST, *LONGS)
    half = 2 ** (bits - 1)
    return Sort("int", _sorted([v for v in every if -half <= v < half]), bits)


def decimals(precision: int, scale: int) -> Sort:
    return Sort("decimal", _sorted(_decimals(precision, scale)), precision, scale)


FLOAT = Sort("float", _floats(FLOATS))
DOUBLE = Sort("double", _floats(DOUBLES))
TEXT = Sort("text", _sorted(MARKED))
OTHER_TEXT = Sort("text", _sorted(WORLDLY))
DATE = Sort("date", _sorted(DATES))
TIME = Sort("time", _sorted(TIMES))
BOOL = Sort("bool", (False, True))
BINARY = Sort("binary", _sorted(BYTES))
DEGREES = Sort("double", _floats([float(v) for v in range(-80, 81, 8)]))
