"""A plan: a scan's context and its stages, as one value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from bridge.expression.nodes import Expression
from bridge.planner.index_view import IndexView
from bridge.planner.open_snapshots import OpenSnapshots
from bridge.planner.predicate_log import PredicateLog
from bridge.planner.reports.report import PruneReport, SplitTotals
from bridge.planner.reports.scan_report import report_of
from bridge.planner.request import ScanRequest
from bridge.planner.scan_context import ScanContext
from bridge.planner.stages import PlanStage
from bridge.planner.stages.dynamic_filtering import apply_dynamic_filters
from bridge.storage.reading.requests import tally_requests
from bridge.table.model import CatalogTable
from bridge.table.slices import SliceBatch
from bridge.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """One scan.

    One thread draws `batches`; any thread calls the other methods.

    Attributes:
        stages: in order; the first creates the batches.
        log: records the predicates of finished scans.
        snapshots: keeps the snapshot for other scans of the query; None if nothing does.
    """

    context: ScanContext
    stages: tuple[PlanStage, ...]
    log: PredicateLog | None = None
    snapshots: OpenSnapshots | None = None

    @property
    def request(self) -> ScanRequest:
        return self.context.request

    @property
    def snapshot(self) -> Snapshot:
        return self.context.snapshot

    @property
    def table(self) -> CatalogTable:
        return self.context.table

    @property
    def view(self) -> IndexView:
        return self.context.view

    @property
    def plans_without_io(self) -> bool:
        """Whether planning needs neither the metastore nor storage."""
        return self.context.snapshot.plans_without_io

    @property
    def awaits_key_filters(self) -> bool:
        """Whether a dynamic filter on a partition key is still to arrive."""
        return self.context.awaits_key_filters

    def begin(self) -> None:
        """Starts the first I/O, which no dynamic filter can make needless."""
        with tally_requests(self.context.counters.listing.requests):
            self.context.snapshot.begin()

    def batches(self) -> Iterator[SliceBatch]:
        """The slices that survive pruning, as many as the request needs.

        Errors:
            TableChanged: the engine dropped its filter, and a file may no longer match as a whole.
            MetastoreUnavailable, StorageFailure and others.
        """
        if self.snapshots is not None:
            self.snapshots.begin_scan(self.context.opened)
        flow: Iterator[SliceBatch] = iter(())
        for stage in self.stages:
            flow = stage(self.context, flow)
        try:
            yield from flow
        finally:
            self._end_scan()  # also when the engine stops early
        self.context.finish()

    def apply_dynamic_filter(self, predicate: Expression) -> None:
        """Conjoins a predicate for every batch not yet handed out.

        Errors:
            ColumnNotFound: the predicate names a column that the table does not have.
        """
        if self.request.pruning and not self.context.stops_early:
            self.context.add_dynamic_filter(predicate)

    def refine(self, batch: SliceBatch) -> SliceBatch:
        """Applies the dynamic filters that have arrived; called when the batch is handed out."""
        return apply_dynamic_filters(self.context, batch)

    def report(
        self, splits: SplitTotals | None = None, paths: pa.Array | None = None
    ) -> PruneReport:
        """The funnel so far; complete once `batches` has ended."""
        return report_of(self.context, splits, paths)

    def close(self) -> None:
        """Stops metastore calls in flight; `batches` ends at its next step."""
        if not self.context.cancel():
            return
        self._end_scan()  # an engine may read for long between the last batch and this call
        if self.log is not None and self.context.complete:
            self.log.record(self.context.predicate, self.report())

    def _end_scan(self) -> None:
        if self.snapshots is not None:
            self.snapshots.end_scan(self.context.opened)
