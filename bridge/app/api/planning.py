"""The one place where the API asks the planner.

A change of the planner's classes touches this module and no other of `bridge.app.api`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

from bridge.app.api.scan_report import ScanReport
from bridge.app.explain import explain
from bridge.expression.nodes import Expression
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.planner.splits.coalesce import SplitSettings
from bridge.table.model import CatalogTable
from bridge.table.slices import SliceBatch

Needed = Callable[[CatalogTable], frozenset[str] | None]
"""The columns that a scan of the table reads, in lower case; None: any."""


class OpenScan:
    """One plan; drawn by one thread.

    Attributes:
        table: as the plan sees it.
        row_filter: rows outside it do not belong to the version that is read.
        recorded: the version names its files; none of them may be another one now.
    """

    def __init__(self, planner: Planner, request: ScanRequest, needed: Needed) -> None:
        opened = planner.snapshot(request)
        self._plan = planner.open(replace(request, columns=needed(opened.snapshot.table)), opened)
        self.table: CatalogTable = self._plan.table
        self.row_filter: Expression = self._plan.snapshot.row_filter
        self.recorded: bool = self._plan.snapshot.committed

    def batches(self) -> Iterator[SliceBatch]:
        """The files that may hold a row, batch by batch; closing the iterator ends the plan.

        Errors:
            as `ScanPlan.batches` has them.
        """
        with closing(self._plan):
            yield from self._plan.batches()


def explain_scan(
    planner: Planner, request: ScanRequest, needed: Needed, settings: SplitSettings
) -> ScanReport:
    """The complete report of a scan, with the paths of the files kept."""
    table = planner.snapshot(request).snapshot.table
    return ScanReport.of(explain(planner, replace(request, columns=needed(table)), settings))
