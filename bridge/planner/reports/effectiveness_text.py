"""The effectiveness report as text."""

from __future__ import annotations

from datetime import UTC, datetime

from bridge.planner.reports.effectiveness import Effectiveness
from bridge.planner.reports.text import count_files, human_bytes

_COLUMNS = (
    *("column", "known", "files a value", "most", "value", "1 %", "10 %", "size", "data"),
    *("distinct values", "asked"),
)


def effectiveness_text(found: Effectiveness) -> str:
    """Formats columns (best first), indexes and advice."""
    clustered = ""
    if found.clustered_files:
        clustered = f" ({found.clustered_files} clustered, for {found.replaced_files})"
    unknown = f", {found.unknown_files} not in it" if found.unknown_files else ""
    unknown += f", {found.failed_files} not readable" if found.failed_files else ""
    lines = [
        f"{found.table} @ generation {found.generation}   {count_files(found.files)}{clustered}"
        f"{unknown}, "
        f"{human_bytes(found.size)}, {_age(found.age_seconds)} old, {found.scans} logged scans",
        *_written(found),
        "",
    ]
    rows: list[tuple[str, ...]] = [_COLUMNS]
    rows += [
        (
            c.name,
            _percent(c.coverage),
            f"{c.depth:.1f}",
            str(c.deepest),
            *(_percent(k) for k in c.keeps),
            human_bytes(c.size),
            "-" if c.data < 0 else human_bytes(c.data),
            "-" if c.distinct is None else f"~{c.distinct:,.0f} ({c.distinct_source})",
            ", ".join(f"{op} {n}x" for op, n in c.asked.items()) or "-",
        )
        for c in sorted(found.columns, key=lambda c: (c.overlap, c.name))
    ]
    lines += _table(rows)
    if found.indexes:
        lines.append("")
        heads: list[tuple[str, ...]] = [("index", "knows", "size", "asked", "skipped", "")]
        heads += [
            (
                i.name,
                _percent(i.coverage),
                human_bytes(i.size),
                f"{i.scans}x",
                f"{i.skipped} of {i.seen}" if i.seen else "-",
                "" if i.visible else "invisible",
            )
            for i in found.indexes
        ]
        lines += _table(heads)
    for each in found.not_believed:
        writer = each.writer or "a writer without a name"
        files = count_files(each.files)
        lines += ["", f"not believed in {files} of {writer}: {', '.join(each.what)}"]
    if found.not_believed:
        lines.append("  -> skipbridge index build --nan scan counts NULLs in the values")
    for advice in found.advice:
        lines += ["", f"{advice.kind}: {advice.on}: {advice.why}"]
        if advice.how:
            lines.append(f"  -> {advice.how}")
    return "\n".join(lines)


def _written(found: Effectiveness) -> list[str]:
    if found.written is None:
        return []
    times = (datetime.fromtimestamp(micros / 1e6, UTC) for micros in found.written)
    oldest, newest = (time.strftime("%Y-%m-%d %H:%M:%S") for time in times)
    return [f"its files were written from {oldest} to {newest} UTC"]


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.995 else "100 %"


def _age(seconds: int) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
