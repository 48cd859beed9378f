"""The funnel as aligned text: one line per stage, unused parts of the predicate, and remedies."""

from __future__ import annotations

from bridge.planner.reports.remedies import remedy_text
from bridge.planner.reports.report import PruneReport, Stage

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def human_bytes(n: int) -> str:
    """Formats a size in bytes; '-' if unknown.

    >>> human_bytes(1536)
    '1.5 KiB'
    """
    if n < 0:
        return "-"
    value = float(n)
    for unit in _UNITS:
        if value < 1024 or unit == _UNITS[-1]:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def count_files(n: int) -> str:
    """How many files, in words.

    >>> count_files(1), count_files(2000)
    ('1 file', '2,000 files')
    """
    return count(n, "file")


def count(n: int, noun: str) -> str:
    """
    >>> count(1, "group"), count(1200, "group")
    ('1 group', '1,200 groups')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def read_files(tried: int, failed: int) -> str:
    """How many files a build has read, in words, and how many of them could not be.

    >>> read_files(2000, 0), read_files(4, 1)
    ('2,000 read', '4 read (1 failed)')
    """
    return f"{tried:,} read" + (f" ({failed:,} failed)" if failed else "")


def old_entries(n: int) -> str:
    """How many entries of an index a build has replaced or forgotten, in words.

    >>> old_entries(1), old_entries(2000)
    ('1 old entry removed', '2,000 old entries removed')
    """
    return f"{n:,} old {'entry' if n == 1 else 'entries'} removed"


def human_millis(millis: float) -> str:
    if millis >= 10_000:
        return f"{millis / 1000:.1f} s"
    return f"{millis:.1f} ms" if millis < 10 else f"{millis:.0f} ms"


def funnel(report: PruneReport) -> str:
    """The report as text."""
    generation = f"generation {report.generation}" if report.generation >= 0 else "no index"
    lines = [
        f"{report.table} @ {generation}   "
        + ("all rows" if report.predicate == "true" else report.predicate),
        f"asked by {report.engine}; freshness {report.freshness}"
        + (f"; dropped: {'; '.join(report.dropped)}" if report.dropped else ""),
    ]
    rows = [_row(stage) for stage in report.stages]
    splits = report.splits
    rows.append(
        (
            "splits",
            f"{report.files_kept} -> {splits.count}",
            "-",
            human_bytes(splits.bytes),
            human_millis(splits.millis),
            f"weight {splits.weight:.1f}",
        )
    )
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    for name, flow, skipped, size, time, note in rows:
        lines.append(
            f"{name:<{widths[0]}}  {flow:>{widths[1]}}  {skipped:>{widths[2]}}  "
            f"{size:>{widths[3]}}  {time:>{widths[4]}}  {note}".rstrip()
        )
    for missing in report.not_used:
        remedy = f" -> {command}" if (command := remedy_text(missing.remedy)) else ""
        lines.append(f"not used: {missing.index}  {missing.reason}, {missing.detail}{remedy}")
    if not report.complete:
        lines.append("provisional: the plan was not drawn to its end")
    return "\n".join(lines)


def _percent(part: int, whole: int) -> str:
    """A percentage in tenths. Only all is 100 %, and only nothing is 0 %.

    >>> _percent(9_998, 10_000), _percent(1, 10_000), _percent(4, 4)
    ('99.9 %', '0.1 %', '100.0 %')
    """
    tenths = round(1000 * part / whole)
    if 0 < part < whole:
        tenths = min(max(tenths, 1), 999)
    return f"{tenths / 10:.1f} %"


def _row(stage: Stage) -> tuple[str, str, str, str, str, str]:
    skipped = _percent(stage.total - stage.kept, stage.total) if stage.total else "-"
    name = f"{stage.name} {stage.index}" if stage.name == "files" else stage.name
    size = human_bytes(stage.bytes) if stage.name != "partitions" else "-"
    return (
        name,
        f"{stage.total} -> {stage.kept}",
        skipped,
        size,
        human_millis(stage.millis),
        _requests(stage.requests) or ", ".join(stage.columns),
    )


def _requests(count: int) -> str:
    """Text for a number of requests; empty for none.

    >>> _requests(1), _requests(40)
    ('1 request', '40 requests')
    """
    return f"{count} request{'s' if count > 1 else ''}" if count else ""
