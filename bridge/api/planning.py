"""The one place where the API asks the planner.

A change of the planner's classes touches this module and no other of `bridge.api`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from bridge.jobs.explain import explain
from bridge.planner.planner import Planner
from bridge.planner.report import PruneReport
from bridge.planner.request import ScanRequest
from bridge.splits.coalesce import SplitSettings
from bridge.table.model import FileList, Partition, Table


@dataclass(frozen=True, slots=True)
class PlannedFiles:
    """Files to read, as the planner has them; ``files.partition`` is the place in
    ``partitions``.
    """

    files: FileList
    partitions: tuple[Partition, ...]


class OpenScan:
    """One plan; drawn by one thread.

    Attributes:
        table: as the plan sees it.
    """

    def __init__(self, planner: Planner, request: ScanRequest) -> None:
        self._plan = planner.plan(request)
        self.table: Table = self._plan.table

    def batches(self) -> Iterator[PlannedFiles]:
        """The files that may hold a row, batch by batch; closing the iterator ends the plan.

        Errors:
            as `ScanPlan.batches` has them.
        """
        with closing(self._plan):
            for batch in self._plan.batches():
                yield PlannedFiles(batch.files, batch.partitions)


def explained(planner: Planner, request: ScanRequest, settings: SplitSettings) -> PruneReport:
    """The complete report of a scan, with the paths of the files kept."""
    return explain(planner, request, settings)
