"""Dates and timestamps as text, in the proleptic Gregorian calendar for all int32 days.

Python's ``datetime`` covers only the years 1 to 9999, and tables hold dates outside them. The
algorithms are Howard Hinnant's (chrono-compatible low-level date algorithms).
"""

from __future__ import annotations

import re

MICROS_PER_DAY = 86_400_000_000
_DATE = re.compile(r"([+-]?\d{4,7})-(\d{2})-(\d{2})")
_TIMESTAMP = re.compile(
    r"([+-]?\d{4,7}-\d{2}-\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?)?"
)

_ZONED = re.compile(r"(.*?\d) ?(?:Z|UTC|([+-])(\d{2}):(\d{2}))")


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01."""
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return (
        era * 146097
        + year_of_era * 365
        + year_of_era // 4
        - year_of_era // 100
        + (day_of_year - 719468)
    )


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719468, 146097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_index = (5 * day_of_year + 2) // 153
    month = month_index + (3 if month_index < 10 else -9)
    year = year_of_era + era * 400 + (month <= 2)
    return year, month, day_of_year - (153 * month_index + 2) // 5 + 1


def parse_date(text: str) -> int | None:
    """Days since 1970-01-01 of an ISO date; None if the text is not an ISO date.

    >>> parse_date("2024-03-01"), parse_date("2024-02-30"), parse_date("2024-3-1")
    (19783, None, None)
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups())
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return None
    days = days_from_civil(year, month, day)
    return days if civil_from_days(days) == (year, month, day) else None


def parse_timestamp(text: str) -> int | None:
    """Microseconds since the epoch of an ISO timestamp without zone, or of a date's midnight.

    None if the text is neither, or has more than six fractional digits.
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    days = parse_date(match[1])
    hour, minute, second = (int(part or 0) for part in match.group(2, 3, 4))
    if days is None or hour > 23 or minute > 59 or second > 59:
        return None
    micros = int((match[5] or "").ljust(6, "0"))
    return days * MICROS_PER_DAY + (hour * 3600 + minute * 60 + second) * 1_000_000 + micros


def parse_instant(text: str) -> int | None:
    """Microseconds since the epoch, UTC, of an ISO timestamp with its offset, Z or UTC.

    >>> parse_instant("1970-01-01 02:00:00 UTC") == parse_instant("1970-01-01T03:00:00+01:00")
    True
    """
    match = _ZONED.fullmatch(text)
    if match is None:
        return None
    micros = parse_timestamp(match[1])
    if micros is None or match[2] is None:
        return micros
    hours, minutes = int(match[3]), int(match[4])
    if hours > 18 or minutes > 59:
        return None
    offset = (hours * 60 + minutes) * 60_000_000
    return micros - offset if match[2] == "+" else micros + offset


def format_date(days: int) -> str:
    """The ISO form. Years outside 0 to 9999 have a sign."""
    year, month, day = civil_from_days(days)
    text = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{text}-{month:02d}-{day:02d}"


def format_timestamp(micros: int) -> str:
    """The ISO form with a space, and only as many fractional digits as needed."""
    days, rest = divmod(micros, MICROS_PER_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    time = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    tail = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{format_date(days)} {time}{tail}"
