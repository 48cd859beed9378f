"""PruneReport: what each stage was given, what it kept, and why an index was not used.

A report is provisional until the plan's last batch was made; after that it is a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the funnel.

    Attributes:
        name: ``partitions``, ``files``.
        index: what pruned: a column list for partitions, an index kind for files.
        total, kept: how many came in and stayed.
        bytes: of the kept files; -1 where not known yet.
        millis: time spent, summed over batches.
        columns: the columns that the stage looked at.
    """

    name: str
    index: str
    total: int
    kept: int
    bytes: int
    millis: float
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexNotUsed:
    """Why an index (or a part of the predicate) did not prune; ``reason`` is a code."""

    index: str
    reason: str
    detail: str
    remedy: str = ""


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
        """How a notebook shows it: the funnel as a table; `bridge.report.html` has the page."""
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

    def to_dict(self, *, files: bool = False) -> dict[str, Any]:
        """The report as JSON-ready values; ``files`` adds the kept files' canonical URIs."""
        kept: dict[str, Any] = {"total": self.files_total, "kept": self.files_kept}
        if files:
            kept["paths"] = self.paths.to_pylist() if self.paths is not None else []
        return {
            "table": self.table,
            "engine": self.engine,
            "generation": self.generation if self.generation >= 0 else None,
            "freshness": self.freshness,
            "predicate": self.predicate,
            "dropped": list(self.dropped),
            "stages": [
                {
                    "name": s.name,
                    "index": s.index,
                    "columns": list(s.columns),
                    "total": s.total,
                    "kept": s.kept,
                    "bytes": s.bytes if s.bytes >= 0 else None,
                    "millis": round(s.millis, 3),
                }
                for s in self.stages
            ],
            "files": kept,
            "splits": {
                "count": self.splits.count,
                "weight": round(self.splits.weight, 3),
                "bytes": self.splits.bytes,
            },
            "not_used": [
                {"index": n.index, "reason": n.reason, "detail": n.detail, "remedy": n.remedy}
                for n in self.not_used
            ],
            "complete": self.complete,
        }


class StageCounter:
    """Sums one stage over the batches of a plan; used by one thread at a time."""

    __slots__ = ("bytes", "columns", "index", "kept", "millis", "name", "total")

    def __init__(self, name: str, index: str, columns: tuple[str, ...] = ()) -> None:
        self.name = name
        self.index = index
        self.columns = columns
        self.total = 0
        self.kept = 0
        self.bytes = 0
        self.millis = 0.0

    def add(self, total: int, kept: int, size: int, seconds: float) -> None:
        self.total += total
        self.kept += kept
        self.bytes += size
        self.millis += seconds * 1000.0

    def freeze(self) -> Stage:
        return Stage(
            self.name, self.index, self.total, self.kept, self.bytes, self.millis, self.columns
        )
