"""Which texts a typed CSV table casts: the rule of the connector, which is Trino's TRY_CAST."""

from __future__ import annotations

import calendar
import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from zoneinfo import ZoneInfo

from bridge.kernel.types import INTEGER_RANGE, Kind, Type

_INTEGER = re.compile(r"([-+]?)0*(\d{1,20})")
_DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,10})?")
_DOUBLE = re.compile(
    r"[-+]?(NaN|Infinity|(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?"
    r"|0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][-+]?[0-9]+)[fFdD]?)"
)
_DATE = re.compile(r"[-+]?(\d{1,9})-(\d{1,2})-(\d{1,2})")
_TIMESTAMP = re.compile(
    r"[-+]?(\d{4,9})-(\d{1,2})-(\d{1,2})"
    r"(?: (?:(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,18}))?)?)?\s*(.+)?)?",
    re.ASCII,
)
_OFFSET = re.compile(r"[-+](\d{1,2})(:?\d{2}(:?\d{2})?)?", re.ASCII)
_FLAGS = frozenset({"T", "1", "TRUE", "F", "0", "FALSE"})
_TRIMMED = "".join(map(chr, range(33)))
"""What Java trims: all up to a space."""


def castable(text: str, type: Type) -> bool:
    """Whether a text is a value of a type; otherwise it is read as NULL.

    >>> from bridge.kernel.types import BIGINT
    >>> castable(" 12 ", BIGINT), castable("1e3", BIGINT), castable("", BIGINT)
    (True, False, False)
    """
    kind = type.kind
    if kind is Kind.BOOLEAN:
        return text.isascii() and text.upper() in _FLAGS
    if type.is_integer:
        whole = _INTEGER.fullmatch(text.strip(_TRIMMED))
        low, high = INTEGER_RANGE[kind]
        return whole is not None and low <= int(whole[1] + whole[2]) <= high
    if type.is_floating:
        return bool(_DOUBLE.fullmatch(text.strip(_TRIMMED)))
    if kind is Kind.DECIMAL:
        return bool(_DECIMAL.fullmatch(text)) and _fits(text, type)
    if kind is Kind.DATE:
        found = _DATE.fullmatch(text.strip())
        return found is not None and _is_day(*map(int, found.groups()))
    if kind is Kind.TIMESTAMP:
        return _is_time(text.strip())
    return True


def _fits(text: str, type: Type) -> bool:
    try:
        exact = Decimal(text)
        if exact and exact.adjusted() >= type.precision:
            return False
        with localcontext() as context:
            context.prec = 100
            scaled = exact.quantize(Decimal(1).scaleb(-type.scale), ROUND_HALF_UP)
        return abs(scaled) < Decimal(10) ** (type.precision - type.scale)
    except (InvalidOperation, OverflowError):
        return False


def _is_day(year: int, month: int, day: int) -> bool:
    if not 1 <= month <= 12:
        return False
    return 1 <= day <= calendar.monthrange(year % 400 + 400, month)[1]


def _is_time(text: str) -> bool:
    found = _TIMESTAMP.fullmatch(text)
    if found is None or not _is_day(*(int(found[i]) for i in (1, 2, 3))):
        return False
    hour, minute, second = (int(found[i] or 0) for i in (4, 5, 6))
    return hour < 24 and minute < 60 and second < 60 and _is_zone(found[8])


def _is_zone(name: str | None) -> bool:
    if name is None or name in ("Z", "UTC", "GMT", "UT") or _OFFSET.fullmatch(name):
        return True
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return False
    return True
