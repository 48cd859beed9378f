"""Logs one line per plan and updates the counters by table."""

from __future__ import annotations

import logging
import time

from bridge.kernel import telemetry
from bridge.planner.answers.skippable_files import SkippableFiles
from bridge.planner.reports.report import PruneReport
from bridge.planner.reports.text import human_bytes
from bridge.planner.request import ScanRequest
from bridge.planner.scan_plan import ScanPlan
from bridge.planner.splits.source import SplitSource

log = logging.getLogger("bridge.plans")


def plan_opened(request: ScanRequest, seconds: float) -> None:
    """Counts a plan; ``seconds`` is the time it took to open."""
    table = telemetry.table_label(str(request.table))
    telemetry.PLANS.labels(request.engine, table).inc()
    telemetry.PLAN_SECONDS.labels(table).observe(seconds)


def plan_ended(source: SplitSource, outcome: str) -> PruneReport:
    """Counts and logs the end of a plan once, even if its last batch is requested again.

    Args:
        outcome: ``done``, or ``closed early`` if the engine needed no more splits.
    """
    report = source.report()
    if not source.end_once():
        return report
    request = source.plan.request
    table = telemetry.table_label(str(request.table))
    telemetry.FILES.labels("kept", table).inc(report.files_kept)
    telemetry.FILES.labels("skipped", table).inc(report.files_total - report.files_kept)
    telemetry.SPLITS.labels(table).inc(report.splits.count)
    if log.isEnabledFor(logging.INFO):
        log.info(
            "query %s by %s: %s @ %s: %s, %d splits, %s; planned in %.1f ms, %s after %.1f ms",
            request.query_id or "-",
            report.engine,
            report.table,
            report.generation if report.generation >= 0 else "no index",
            _stages(report),
            report.splits.count,
            human_bytes(report.splits.bytes),
            sum(s.millis for s in report.stages) + report.splits.millis,
            outcome,
            (time.perf_counter() - source.opened) * 1000.0,
        )
    return report


def _stages(report: PruneReport) -> str:
    stages = (
        f"{s.name} {s.index if s.name == 'files' else ''}".rstrip()
        + f" {s.total} -> {s.kept}"
        + (f" in {s.requests} requests" if s.requests else "")
        for s in report.stages
    )
    return ", ".join(stages) or "no stage"


def files_planned(plan: ScanPlan, seconds: float) -> None:
    """The same for a client that takes all files at once."""
    report, request = plan.report(), plan.request
    plan_opened(request, seconds)
    table = telemetry.table_label(str(request.table))
    telemetry.FILES.labels("kept", table).inc(report.files_kept)
    telemetry.FILES.labels("skipped", table).inc(report.files_total - report.files_kept)
    log.info(
        "query by %s: %s @ %s: %s; planned in %.1f ms",
        report.engine,
        report.table,
        report.generation if report.generation >= 0 else "no index",
        _stages(report),
        seconds * 1000.0,
    )


def selection_made(request: ScanRequest, found: SkippableFiles, seconds: float) -> None:
    """The same for an engine that lists storage itself and requests only skippable files."""
    plan_opened(request, seconds)
    table = telemetry.table_label(str(request.table))
    skipped = len(found.paths)
    telemetry.FILES.labels("kept", table).inc(found.known - skipped)
    telemetry.FILES.labels("skipped", table).inc(skipped)
    log.info(
        "query %s by %s: %s @ %s: indexed files %d -> %d%s; selected in %.1f ms",
        request.query_id or "-",
        request.engine,
        request.table,
        found.generation if found.generation >= 0 else "no index",
        found.known,
        found.known - skipped,
        "".join(f", {name} -{count}" for name, count in found.by_index),
        seconds * 1000.0,
    )
