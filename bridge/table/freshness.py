"""Freshness: how sure a scan of a directory table is that it sees every file.

- `Live` lists storage for each query, so a file written a moment ago is read.
- `Cached` lists at most once in ``ttl`` seconds, and takes partitions as they were at most ``ttl``
  seconds ago.
- `Indexed` takes the file set of the index's generation. It is right only where nothing writes
  without the index, so it must be asked for. A partition that was moved since is listed.

The word ``fresh`` of a single request is `Live` without anything that the planner remembers of the
metastore. A table sets its freshness in the property `PROPERTY`; every report tells it.
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
class Live:
    """Storage is listed for each query."""

    def __str__(self) -> str:
        return "live"


@dataclass(frozen=True, slots=True)
class Cached:
    """A listing serves for ``ttl`` seconds."""

    ttl: float

    def __str__(self) -> str:
        return f"cached({self.ttl:g}s)"


@dataclass(frozen=True, slots=True)
class Indexed:
    """The index's generation tells the files."""

    def __str__(self) -> str:
        return "snapshot"


Freshness = Live | Cached | Indexed


def max_age(freshness: Freshness) -> float:
    """For how many seconds an answer of the catalogue may be reused."""
    return freshness.ttl if isinstance(freshness, Cached) else 0.0


def bypasses_caches(text: str | None) -> bool:
    """Whether a request asks that nothing remembered be used."""
    return text is not None and text.strip().lower() == FRESH


def parse_freshness(text: str) -> Freshness:
    """Parses ``live``, ``cached(60s)``, ``snapshot``, and ``fresh``, which is ``live`` here.

    >>> str(parse_freshness("cached(2m)"))
    'cached(120s)'

    Errors:
        InvalidConfiguration.
    """
    word = text.strip().lower()
    if word in ("live", FRESH):
        return Live()
    if word == "snapshot":
        return Indexed()
    match = _CACHED.fullmatch(word)
    if match is None:
        raise InvalidConfiguration(
            f"{text!r} is not a freshness", "give live, cached(60s), snapshot or fresh"
        )
    return Cached(parse_seconds(match[1], PROPERTY, "value"))
