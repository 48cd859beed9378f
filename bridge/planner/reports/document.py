"""A PruneReport as JSON-ready values: for ``--output json``, the wire and the logs."""

from __future__ import annotations

from typing import Any

from bridge.planner.reports.remedies import remedy_text
from bridge.planner.reports.report import PruneReport


def report_document(report: PruneReport, *, files: bool = False) -> dict[str, Any]:
    """The report as JSON-ready values; ``files`` adds the kept files' canonical URIs."""
    kept: dict[str, Any] = {"total": report.files_total, "kept": report.files_kept}
    if files:
        kept["paths"] = report.paths.to_pylist() if report.paths is not None else []
    return {
        "table": report.table,
        "engine": report.engine,
        "generation": report.generation if report.generation >= 0 else None,
        "freshness": report.freshness,
        "predicate": report.predicate,
        "dropped": list(report.dropped),
        "stages": [
            {
                "name": s.name,
                "index": s.index,
                "columns": list(s.columns),
                "total": s.total,
                "kept": s.kept,
                "bytes": s.bytes if s.bytes >= 0 else None,
                "millis": round(s.millis, 3),
                "requests": s.requests,
            }
            for s in report.stages
        ],
        "files": kept,
        "splits": {
            "count": report.splits.count,
            "weight": round(report.splits.weight, 3),
            "bytes": report.splits.bytes,
        },
        "not_used": [
            {
                "index": n.index,
                "reason": n.reason,
                "detail": n.detail,
                "remedy": remedy_text(n.remedy),
            }
            for n in report.not_used
        ],
        "complete": report.complete,
    }
