"""Times in statements and commands."""

from __future__ import annotations

from datetime import UTC, datetime

from bridge.kernel.errors import InvalidStatement


def parse_time(text: str) -> datetime:
    """A date, or a date and time; in UTC unless it has an offset.

    Errors:
        InvalidStatement.

    >>> parse_time("2019-09-11 12:05:06").isoformat()
    '2019-09-11T12:05:06+00:00'
    """
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as e:
        raise InvalidStatement(
            f"'{text[:60]}' is not a time", "write '2019-09-11' or '2019-09-11 12:05:06'"
        ) from e
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
