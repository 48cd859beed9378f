"""The result of a sync or a dry run: as a diff for people and as JSON for schedulers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from bridge.kernel.errors import FileChanged
from bridge.planner.reports.text import count_files, old_entries, read_files

_SHOWN = 20
_REMEDY = "queries that read it fail -> restore it, write it again, or move it out of the table"


@dataclass(slots=True)
class SyncReport:
    """One run for one table.

    Attributes:
        outcome: ``in step`` (nothing to do), ``synced``, ``planned`` (dry run).
        compared: ``all`` partitions, or only ``changes`` since the last run.
        table_changes: one line each, as in a diff.
        added, updated, dropped: partition names; updates also say what changes.
        kept: registered partitions left as they are, with location and reason.
        unparsable: directories that are not partitions, with the reason.
        collisions: partition names, with the directories that claim them.
        failed: partitions that the metastore refused, with its reason.
        waiting: partitions without data that are not dropped yet, with location and reason.
        held: how many of them wait because too many would be dropped at once.
        unregistered: directories whose rows are in no partition, collisions apart.
        doubled: partitions at the place of another one, and its name.
        unreadable: inspected files that are not of the table's format.
        left_out: columns, and members of columns, whose type Hive does not have.
        index: report of the index job, if it ran.
        rounds: number of comparisons; more than one if another job wrote meanwhile.
        left: lines on files in directories that partitions were published from; no engine reads
            them.
        views: reports of other records of the same table, as Hudi has them.
    """

    table: str
    location: str
    outcome: str = "in step"
    compared: str = "all"
    created: bool = False
    adopted: bool = False
    directories: int = 0
    partitions: int = 0
    table_changes: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    updated: list[tuple[str, str]] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    unchanged: int = 0
    kept: list[tuple[str, str, str]] = field(default_factory=list)
    unparsable: list[tuple[str, str]] = field(default_factory=list)
    collisions: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)
    waiting: list[tuple[str, str, str]] = field(default_factory=list)
    held: int = 0
    unregistered: list[str] = field(default_factory=list)
    doubled: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    index: dict[str, Any] | None = None
    rounds: int = 1
    seconds: float = 0.0
    left: list[str] = field(default_factory=list)
    views: list[SyncReport] = field(default_factory=list)

    @property
    def problems(self) -> int:
        """Number of partitions that differ from storage or that the index job could not list, of
        columns that are left out, of files that could not be read, and of lines on files that no
        engine reads: a person should check them.
        """
        own = len(self.collisions) + len(self.failed) + len(self.left) + self.held
        own += len(self.unregistered) + len(self.doubled) + len(self.left_out)
        unreadable = {file for file, _ in self.unreadable} | {*unindexed_files(self.index)}
        own += len(unreadable) + (len(self.index["refused"]) if self.index else 0)
        return own + sum(view.problems for view in self.views)

    def to_dict(self) -> dict[str, Any]:
        found = self._own()
        if self.views:
            found["views"] = [view.to_dict() for view in self.views]
        return found

    def _own(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "location": self.location,
            "outcome": self.outcome,
            "problems": self.problems,
            "created": self.created,
            "adopted": self.adopted,
            "compared": self.compared,
            "directories": self.directories,
            "partitions": self.partitions,
            "counts": {
                "added": len(self.added),
                "updated": len(self.updated),
                "dropped": len(self.dropped),
                "unchanged": self.unchanged,
                "kept": len(self.kept),
                "unparsable": len(self.unparsable),
                "collisions": len(self.collisions),
                "failed": len(self.failed),
                "waiting": len(self.waiting),
                "unregistered": len(self.unregistered),
                "doubled": len(self.doubled),
                "unreadable": len(self.unreadable),
            },
            "table_changes": self.table_changes,
            "added": self.added,
            "updated": [{"partition": n, "change": c} for n, c in self.updated],
            "dropped": self.dropped,
            "kept": [{"partition": n, "location": where, "reason": r} for n, where, r in self.kept],
            "unparsable": [{"directory": d, "reason": r} for d, r in self.unparsable],
            "collisions": [{"partition": n, "directories": list(d)} for n, d in self.collisions],
            "failed": [{"partition": n, "reason": r} for n, r in self.failed],
            "waiting": [
                {"partition": n, "location": where, "reason": r} for n, where, r in self.waiting
            ],
            "held": self.held,
            "unregistered": self.unregistered,
            "doubled": [{"partition": n, "as": other} for n, other in self.doubled],
            "unreadable": [{"file": f, "reason": r} for f, r in self.unreadable],
            "left_out": self.left_out,
            "left": self.left,
            "index": self.index,
            "rounds": self.rounds,
            "seconds": round(self.seconds, 3),
        }


def summary(report: SyncReport) -> str:
    """The result in one line, after those of the report's views."""
    verb = {"in step": "in step", "synced": "synced", "planned": "would be synced"}
    if report.created:
        verb = {"in step": "in step", "synced": "created", "planned": "would be created"}
    columns = sum(change.startswith("+ column") for change in report.table_changes)
    counts = (
        ("column" if columns == 1 else "columns", columns if report.created else 0),
        (f"partition{'s' * (len(report.added) != 1)} added", len(report.added)),
        ("updated", len(report.updated)),
        ("dropped", len(report.dropped)),
        ("unchanged", report.unchanged),
        ("kept", len(report.kept)),
        ("unparsable", len(report.unparsable)),
        ("colliding", len(report.collisions)),
        ("failed", len(report.failed)),
        ("waiting", len(report.waiting)),
        ("unregistered", len(report.unregistered)),
        ("doubled", len(report.doubled)),
    )
    told = ", ".join(f"{n:,} {word}" for word, n in counts if n)
    line = f"{report.table} {verb[report.outcome]}{told and ': '}{told} ({report.seconds:.1f} s)"
    return "\n".join([*map(summary, report.views), line])


def unindexed_files(index: Mapping[str, Any] | None) -> list[str]:
    """Files that the index job could not read, those apart that changed while it read them."""
    failed = index["failed"] if index else ()
    return [f["file"] for f in failed if not f["reason"].startswith(FileChanged.code)]


def index_line(index: Mapping[str, Any] | None) -> str:
    """The result of a run's index job; None means that it had nothing to do."""
    if index is None:
        return "index in step"
    return (
        f"index @ generation {index['generation']}: {count_files(index['files'])}, "
        f"{read_files(index['read'], len(index['failed']))}, {old_entries(index['removed'])}"
    )


def diff_text(report: SyncReport, *, shown: int = _SHOWN) -> str:
    """The diff: ``+`` added, ``~`` altered, ``-`` dropped, ``!`` to be checked.

    Shows at most ``shown`` lines of a kind; 0 shows all.
    """
    lines = [f"{report.table}  {report.location}", *_own_changes(report, shown)]
    lines += _some([f"+ partition {n}" for n in report.added], shown)
    lines += _some([f"~ partition {n}  {change}" for n, change in report.updated], shown)
    lines += _some([f"- partition {n}" for n in report.dropped], shown)
    lines += _own_warnings(report, shown)
    return "\n".join([*(diff_text(view, shown=shown) for view in report.views), *lines])


def table_changes(report: SyncReport, *, shown: int = _SHOWN) -> list[str]:
    """Changes of the table itself, one line each; at most ``shown`` of a kind, 0 for all."""
    return [line for one in (*report.views, report) for line in _own_changes(one, shown)]


def _own_changes(report: SyncReport, shown: int) -> list[str]:
    lines: list[str] = []
    for _, several in groupby(report.table_changes, lambda line: line.split(" ")[:2]):
        lines += _some(list(several), shown)
    return lines


def warnings(report: SyncReport, *, shown: int = _SHOWN) -> list[str]:
    """Findings that the run left alone, one line each."""
    return [line for one in (*report.views, report) for line in _own_warnings(one, shown)]


def _own_warnings(report: SyncReport, shown: int) -> list[str]:
    lines = _some([f"! kept {n} at {where}: {why}" for n, where, why in report.kept], shown)
    lines += _some([f"! not a partition: {d or '.'}: {why}" for d, why in report.unparsable], shown)
    lines += _some(
        [f"! collision: {n} is claimed by {', '.join(d)}" for n, d in report.collisions], shown
    )
    lines += _some([f"! failed: {n}: {why}" for n, why in report.failed], shown)
    lines += _some([f"! waiting: {n} at {where}: {why}" for n, where, why in report.waiting], shown)
    if report.waiting:
        lines.append(
            "! until they are dropped, Trino's Hive connector fails over a partition whose "
            "directory is gone, unless hive.ignore-absent-partitions is set; --drop-now drops them"
        )
    lines += _some(
        [
            f"! doubled: {n} lies where {one} does: its rows are read twice"
            for n, one in report.doubled
        ],
        shown,
    )
    lines += _some([f"! unreadable: {why}; {_REMEDY}" for _, why in report.unreadable], shown)
    lines += _some([f"! {each}" for each in report.left], shown)
    lines += _some(
        [f"! left out: column {c}, whose type Hive does not have" for c in report.left_out], shown
    )
    return lines


def _some(lines: Sequence[str], shown: int) -> list[str]:
    return list(_head(lines, shown))


def _head(lines: Sequence[str], shown: int) -> Iterator[str]:
    if not shown or len(lines) <= shown:
        yield from lines
        return
    yield from lines[:shown]
    yield f"{lines[0][0]} ... and {len(lines) - shown:,} more"
