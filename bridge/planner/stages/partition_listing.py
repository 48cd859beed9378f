"""The first stage: fetches the partitions that survive pruning, and lists their slices."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bridge.expression.nodes import BoundFalse
from bridge.planner.partitions import select_partitions
from bridge.planner.scan_context import ScanContext
from bridge.table.slices import SliceBatch


def list_partitions(context: ScanContext, _batches: Iterator[SliceBatch]) -> Iterator[SliceBatch]:
    """The slices of all partitions that may hold a matching row.

    Errors:
        MetastoreUnavailable, StorageFailure and others: the scan fails; a failure never counts
            as an empty listing.
    """
    started = time.perf_counter()
    snapshot, predicate, counters = context.snapshot, context.predicate, context.counters
    selection = select_partitions(
        snapshot.partition_names(),
        context.table.partition_keys,
        predicate,
        context.request.semantics,
    )
    seconds = time.perf_counter() - started
    none = isinstance(predicate, BoundFalse)
    counters.partitions.columns = selection.columns
    counters.partitions.add(selection.total, 0 if none else len(selection.names), 0, seconds)
    if none or not selection.names:
        return
    fetch = context.fetch(lambda: snapshot.partitions(selection.names))
    if fetch is None:
        return
    for batch in fetch:
        if context.cancelled:
            return
        context.note_values(batch.partitions, selection.values)
        listed = snapshot.slices(batch, context.request.columns)
        while True:
            started = time.perf_counter()
            found = next(listed, None)
            if found is None or context.cancelled:
                break
            seconds = time.perf_counter() - started
            counters.listing.add(len(found), len(found), found.num_bytes, seconds)
            yield found
