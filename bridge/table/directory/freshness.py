"""Freshness: how current the file set of a directory table must be.

- `Live` lists storage for each query, so a file written a moment ago is read.
- `Cached` lists at most once in ``ttl`` seconds; partitions may be ``ttl`` seconds old, too.
- `Indexed` uses the file set of the index's generation. It is correct only if every writer updates
  the index, so it must be requested. A partition that has moved since is listed.

The request option ``fresh`` means `Live` without any cached metastore data. A table sets its
freshness in the property `PROPERTY`; every report shows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bridge.kernel.config import parse_seconds
from bridge.kernel.errors import InvalidConfiguration

FRESH = "fresh"
PROPERTY = "skipbridge.freshness"
_CACHED = re.compile(r"cached\(([^)]+)\)")


@dataclass(frozen=True, slots=True)
class Live:
    """Lists storage for each query."""

    def __str__(self) -> str:
        return "live"


@dataclass(frozen=True, slots=True)
class Cached:
    """Reuses a listing for ``ttl`` seconds."""

    ttl: float

    def __str__(self) -> str:
        return f"cached({self.ttl:g}s)"


@dataclass(frozen=True, slots=True)
class Indexed:
    """Uses the file set of the index's generation."""

    def __str__(self) -> str:
        return "snapshot"


Freshness = Live | Cached | Indexed


def max_age(freshness: Freshness) -> float:
    """Maximum age of a catalog answer, in seconds."""
    return freshness.ttl if isinstance(freshness, Cached) else 0.0


def at_most(freshness: Freshness, seconds: float) -> Freshness:
    """The freshness with no cached listing older than so many seconds."""
    return Cached(min(freshness.ttl, seconds)) if isinstance(freshness, Cached) else freshness


def bypasses_caches(text: str | None) -> bool:
    """Whether a request forbids cached data."""
    return text is not None and text.strip().lower() == FRESH


def parse_freshness(text: str) -> Freshness:
    """Parses ``live``, ``cached(60s)``, ``snapshot`` and ``fresh``, which counts as ``live``.

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
