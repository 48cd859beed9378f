"""Freshness: how sure a plan is that it sees every file; a property of the table, told in every
report.

``live`` lists storage for each query, so a file written a moment ago is read. ``cached(ttl)`` lists
at most once in ttl seconds, and takes partitions as they were at most ttl seconds ago. ``fresh``,
of one request, is ``live`` without anything that the planner remembers of the metastore.
``snapshot`` takes the file set of the index's generation: right only where nothing writes without
the index, which is why it must be asked for. A partition that was moved since is listed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bridge.config import parse_seconds
from bridge.errors import InvalidConfiguration

FRESH = "fresh"
PROPERTY = "skipbridge.freshness"
_CACHED = re.compile(r"cached\(([^)]+)\)")


@dataclass(frozen=True, slots=True)
class Freshness:
    """``mode`` is live, cached or snapshot; ``ttl`` seconds, of cached. Compared by value."""

    mode: str
    ttl: float = 0.0

    def __str__(self) -> str:
        return f"cached({self.ttl:g}s)" if self.mode == "cached" else self.mode


LIVE = Freshness("live")
SNAPSHOT = Freshness("snapshot")


def is_fresh(text: str | None) -> bool:
    """Whether a request asks that nothing remembered be used."""
    return text is not None and text.strip().lower() == FRESH


def parse_freshness(text: str) -> Freshness:
    """Parses ``live``, ``cached(60s)``, ``snapshot``, and ``fresh``, which is ``live`` here.

    >>> str(parse_freshness("cached(2m)"))
    'cached(120s)'
    """
    word = text.strip().lower()
    if word in ("live", "snapshot"):
        return Freshness(word)
    if word == FRESH:
        return LIVE
    match = _CACHED.fullmatch(word)
    if match is None:
        raise InvalidConfiguration(
            f"{text!r} is not a freshness", "give live, cached(60s), snapshot or fresh"
        )
    return Freshness("cached", parse_seconds(match[1], PROPERTY, "value"))
