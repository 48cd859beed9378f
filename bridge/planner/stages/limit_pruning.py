"""LIMIT pruning: keeps only as many slices as the limit needs.

The law, over the rows that satisfy the predicate: if slices are left out, the remaining ones hold
at least as many rows as the limit. Only slices whose row count is known and in which ALL rows
satisfy the predicate (ALWAYS) count. Dynamic filters do not apply: a later filter must not remove
rows that were already counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from bridge.expression.statistics import Counts, Mask
from bridge.planner.scan_context import ScanContext
from bridge.table.model import Partition
from bridge.table.slices import Int64Array, SliceBatch

_MOST_LOOKS = 8
"""Number of files that are checked one by one instead of listing their directory."""


def prune_by_limit(context: ScanContext, batches: Iterator[SliceBatch]) -> Iterator[SliceBatch]:
    """The batches, as many as the limit needs."""
    if context.request.limit is None:
        yield from batches
        return
    wanted = context.request.limit
    few = _without_listing(context, wanted)
    if few is not None:
        yield few
        return
    for batch in batches:
        started = time.perf_counter()
        known = context.statistics(batch)
        sure = context.always(known)
        chosen = slices_for_limit(sure, known.rows, batch.files.sizes, wanted)
        left = batch if chosen is None else batch.take(chosen)
        context.counters.stop.count(batch, left, started)
        yield left
        if chosen is not None:
            return
        wanted -= int(known.rows[sure & (known.rows > 0)].sum())


def slices_for_limit(always: Mask, rows: Counts, sizes: Counts, limit: int) -> Int64Array | None:
    """Positions of few slices that certainly hold ``limit`` matching rows; None: too few rows.

    Args:
        always: slices in which every row satisfies the predicate.
        rows: row counts; -1 if unknown.
        sizes: in bytes; among slices that suffice alone, the smallest is chosen.
    """
    counted = np.flatnonzero(always & (rows > 0))
    held = rows[counted]
    if int(held.sum()) < limit:
        return None
    alone = counted[held >= limit]
    if len(alone):
        return alone[[int(np.argmin(sizes[alone]))]]
    largest = counted[np.argsort(-held, kind="stable")]
    needed = int(np.searchsorted(np.cumsum(rows[largest]), limit)) + 1
    return np.sort(largest[:needed])


def _without_listing(context: ScanContext, wanted: int) -> SliceBatch | None:
    """A few indexed slices that satisfy the limit, or None.

    Each must be in storage in exactly its indexed state. The limit then needs no other file, so the
    directory is not listed.
    """
    if context.table.partition_keys:
        return None
    held = context.snapshot.indexed_slices(Partition("", (), context.table.location))
    if held is None:
        return None
    started = time.perf_counter()
    known = context.statistics(held)
    chosen = slices_for_limit(context.always(known), known.rows, held.files.sizes, wanted)
    if chosen is None or len(chosen) > _MOST_LOOKS:
        return None
    few = held.take(chosen)
    if not context.snapshot.find_unchanged(few).all():
        return None
    counters, count = context.counters, len(held)
    # The index's file set replaces the listing.
    counters.listing.index = "index"
    counters.listing.add(count, count, held.num_bytes, 0.0)
    counters.files_kept += count
    counters.stop.count(held, few, started)
    return few
