"""PruneReport: what each stage received and kept, and why an index was not used.

A report is provisional until the last batch of its plan; then it no longer changes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from html import escape

import pyarrow as pa

from bridge.storage.reading.requests import RequestCount
from bridge.table.slices import SliceBatch


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the pruning funnel.

    Attributes:
        name: ``partitions``, ``files``.
        index: what pruned: a column list for partitions, an index kind for files.
        total, kept: number of items before and after the stage.
        bytes: size of the kept files; -1 if not known yet.
        millis: time spent, summed over batches.
        columns: the columns that the stage evaluated.
        requests: to HDFS or an object store. A listing that scans share counts for the one that
            made it.
    """

    name: str
    index: str
    total: int
    kept: int
    bytes: int
    millis: float
    columns: tuple[str, ...] = ()
    requests: int = 0


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would let an index prune; `bridge.planner.reports.remedies` formats the command.

    Attributes:
        action: a verb of ``skipbridge index``, or ``sql``; empty if no command helps.
        table: the table as commands name it.
        options: arguments after the table; of ``sql`` the statement.
        text: a sentence, if there is no command.
    """

    action: str = ""
    table: str = ""
    options: tuple[str, ...] = ()
    text: str = ""


NO_REMEDY = Remedy()


@dataclass(frozen=True, slots=True)
class IndexNotUsed:
    """Why an index (or a part of the predicate) did not prune; ``reason`` is a code."""

    index: str
    reason: str
    detail: str
    remedy: Remedy = NO_REMEDY


@dataclass(frozen=True, slots=True)
class SplitTotals:
    count: int = 0
    files: int = 0
    weight: float = 0.0
    bytes: int = 0
    millis: float = 0.0


@dataclass(frozen=True, slots=True)
class PruneReport:
    """The funnel of one scan."""

    table: str
    engine: str
    generation: int
    freshness: str
    predicate: str
    dropped: tuple[str, ...]
    stages: tuple[Stage, ...]
    files_total: int
    files_kept: int
    splits: SplitTotals
    not_used: tuple[IndexNotUsed, ...]
    complete: bool
    paths: pa.Array | None = None

    def _repr_html_(self) -> str:
        """The funnel as a table for notebooks; `reports.html` makes the full page."""
        head = f"{self.table} @ {self.generation}: {self.predicate}"
        rows = [
            (f"{s.name} {s.index}", f"{s.total:,}", f"{s.kept:,}", f"{s.millis:.1f} ms")
            for s in self.stages
        ]
        rows.append(("splits", f"{self.files_kept:,}", f"{self.splits.count:,}", ""))
        cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
        notes = (
            f"<br>not used: {escape(n.index)}, {escape(n.reason)}: {escape(n.detail)}"
            for n in self.not_used
        )
        return (
            f"<table><caption>{escape(head)}</caption>"
            "<tr><th>stage</th><th>of</th><th>kept</th><th>time</th></tr>"
            f"{''.join(f'<tr>{row}</tr>' for row in cells)}</table>{''.join(notes)}"
        )


class StageCounter:
    """Sums one stage over the batches of a plan; used by one thread at a time."""

    __slots__ = ("bytes", "columns", "index", "kept", "millis", "name", "requests", "total")

    def __init__(self, name: str, index: str, columns: tuple[str, ...] = ()) -> None:
        self.name = name
        self.index = index
        self.columns = columns
        self.total = 0
        self.kept = 0
        self.bytes = 0
        self.millis = 0.0
        self.requests = RequestCount()

    def add(self, total: int, kept: int, size: int, seconds: float) -> None:
        self.total += total
        self.kept += kept
        self.bytes += size
        self.millis += seconds * 1000.0

    def count(self, before: SliceBatch, after: SliceBatch, started: float) -> None:
        """Adds one batch: slices before, slices after, and the time since ``started``."""
        seconds = time.perf_counter() - started
        self.add(len(before), len(after), int(after.files.sizes.sum()), seconds)

    def freeze(self) -> Stage:
        return Stage(
            self.name,
            self.index,
            self.total,
            self.kept,
            self.bytes,
            self.millis,
            self.columns,
            self.requests.count,
        )
