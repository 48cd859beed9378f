"""Explains a scan: runs the same pipeline as an engine's scan to its end."""

from __future__ import annotations

from bridge.kernel.threads import Threads
from bridge.planner.planner import Planner
from bridge.planner.reports.report import PruneReport
from bridge.planner.request import ScanRequest
from bridge.planner.splits.coalesce import SplitSettings
from bridge.planner.splits.source import SplitSource

_WAIT = 60.0


def explain(planner: Planner, request: ScanRequest, settings: SplitSettings) -> PruneReport:
    """The complete report of one scan, with the paths of the kept files."""
    with Threads(1, "explain") as pool:
        source = SplitSource(planner.plan(request), pool, settings, keep_paths=True)
        try:
            token, finished = 0, False
            while not finished:
                batch = source.next(token, 1_000_000, _WAIT)
                token, finished = batch.next_token, batch.finished
            return source.report()
        finally:
            source.close()
