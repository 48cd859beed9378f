"""The version of a table that a scan reads.

The text form is used on the wire and in handles::

    ""                        the newest version, merged
    "time:1716199200000"      as of a time, in milliseconds since the epoch
    "version:41"              as of a version, in the table format's own spelling
    "changes:40..41"          rows changed after version 40, up to and including 41
    "...;read_optimized"      only base files, logs are not merged
    "...;segments=3,5"        only these segments
    "...;max_age=1500"        nothing that is older than so many milliseconds
    "...;fresh"               nothing that was known before, whatever the table's freshness
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf

from bridge.kernel.errors import InvalidRequest

_CHANGES = re.compile(r"changes:([^;]*?)\.\.([^;]*)")


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest version at the query's first request."""

    def __str__(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class AsOfTime:
    """The version that was newest at a time, in milliseconds since the epoch."""

    millis: int

    def __str__(self) -> str:
        return f"time:{self.millis}"


@dataclass(frozen=True, slots=True)
class AsOfVersion:
    """A version, by its name in the table format."""

    version: str

    def __str__(self) -> str:
        return f"version:{self.version}"


@dataclass(frozen=True, slots=True)
class ChangesBetween:
    """Rows changed after one version, up to and including another; an empty end is open."""

    after: str
    until: str = ""

    def __str__(self) -> str:
        return f"changes:{self.after}..{self.until}"


Point = Newest | AsOfTime | AsOfVersion | ChangesBetween


@dataclass(frozen=True, slots=True)
class ReadVersion:
    """Which part of a table's history is read, and how.

    Attributes:
        point: a version, or the changes between two versions.
        read_optimized: reads only base files; logs are not merged. Means nothing to a table without
            logs.
        segments: the segments to read; empty: all.
        max_age: the table's definition, partitions and listings are at most so old, in
            milliseconds; None: as its freshness allows. Not shown: it names no version.
        fresh: nothing of the table was known before, not even by its index. Not shown.
    """

    point: Point = Newest()
    read_optimized: bool = False
    segments: tuple[str, ...] = ()
    max_age: int | None = None
    fresh: bool = False

    @property
    def seconds(self) -> float:
        """The greatest age that it allows, in seconds."""
        if self.fresh:
            return 0.0
        return inf if self.max_age is None else self.max_age / 1000

    def __str__(self) -> str:
        parts = [str(self.point)]
        if self.read_optimized:
            parts.append("read_optimized")
        if self.segments:
            parts.append(f"segments={','.join(self.segments)}")
        return ";".join(parts)


NEWEST = ReadVersion()


def parse_read_version(text: str) -> ReadVersion:
    """Parses the text form.

    >>> str(parse_read_version("version:41;segments=3,5"))
    'version:41;segments=3,5'

    Errors:
        InvalidRequest.
    """
    head, *flags = text.split(";")
    optimized = False
    segments: tuple[str, ...] = ()
    age: int | None = None
    fresh = False
    for flag in flags:
        name, _, value = flag.partition("=")
        if flag == "read_optimized":
            optimized = True
        elif flag == "fresh":
            fresh = True
        elif name == "segments" and value:
            segments = tuple(value.split(","))
        elif name == "max_age" and re.fullmatch(r"\d{1,15}", value):
            age = int(value)
        else:
            raise _malformed(text)
    return ReadVersion(_point(head, text), optimized, segments, age, fresh)


def _point(head: str, text: str) -> Point:
    kind, _, value = head.partition(":")
    changes = _CHANGES.fullmatch(head)
    if not head:
        return Newest()
    if kind == "time" and re.fullmatch(r"-?\d{1,18}", value):
        return AsOfTime(int(value))
    if kind == "version" and value:
        return AsOfVersion(value)
    if changes:
        return ChangesBetween(changes[1], changes[2])
    raise _malformed(text)


def _malformed(text: str) -> InvalidRequest:
    return InvalidRequest(
        f"{text[:200]!r} is not a read version",
        "give time:MILLIS, version:NAME or changes:AFTER..UNTIL, or nothing for the newest",
    )
