"""Compares several ways to run one query: files opened, bytes read, and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bridge.planner.reports.text import human_bytes, human_millis


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run a query.

    Attributes:
        title: a description.
        millis: median time of the runs.
        files: number of files opened.
        bytes: bytes read from storage, as counted by the engine.
        splits: number of splits given to the engine.
    """

    title: str
    millis: float
    files: int
    bytes: int
    splits: int


FOOTNOTE = "* as the engine counts it: without the footers of files that it opened and then skipped"


def describe_saving(ways: Sequence[Way]) -> str:
    """Compares the first way with the last in one sentence."""
    ours, other = ways[0], ways[-1]
    bits = [f"{other.files - ours.files:,} of {other.files:,} files not opened"]
    if other.bytes > ours.bytes:
        bits.append(f"{human_bytes(other.bytes - ours.bytes)} not read")
    if other.splits > ours.splits:
        bits.append(f"{other.splits - ours.splits:,} splits fewer")
    return f"beside {other.title}: {', '.join(bits)}"


def comparison(ways: Sequence[Way]) -> str:
    """A table with one line per way."""
    rows = [("", "median", "files opened", "data read*", "splits")]
    rows += [
        (
            way.title,
            human_millis(way.millis),
            f"{way.files:,}",
            human_bytes(way.bytes),
            f"{way.splits:,}",
        )
        for way in ways
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = [
        "  ".join(
            [f"{row[0]:<{widths[0]}}"]
            + [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in rows
    ]
    return "\n".join([*lines, FOOTNOTE, describe_saving(ways)])
