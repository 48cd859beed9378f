"""Dynamic filters: applied when a batch is handed out, so that a late filter still helps."""

from __future__ import annotations

import time

from bridge.planner.scan_context import ScanContext
from bridge.planner.stages.file_pruning import prune_batch
from bridge.table.slices import SliceBatch


def apply_dynamic_filters(context: ScanContext, batch: SliceBatch) -> SliceBatch:
    """The slices that may hold a row that satisfies all dynamic filters received so far."""
    filters = context.dynamic_filters
    if not filters or not len(batch):
        return batch
    started = time.perf_counter()
    left = batch
    for predicate in filters:
        left = prune_batch(context, left, predicate)
    context.counters.dynamic_filters.count(batch, left, started)
    return left
