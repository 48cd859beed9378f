"""ORDER BY with LIMIT: keeps only slices that may hold one of the first rows, best first.

`bridge.planner.stages.top_n` states the law. Dynamic filters do not apply: see `limit_pruning`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np

from bridge.planner.scan_context import ScanContext
from bridge.planner.stages import top_n
from bridge.table.slices import SliceBatch, join_slices


def prune_by_top_n(context: ScanContext, batches: Iterator[SliceBatch]) -> Iterator[SliceBatch]:
    """Draws all batches, ranks their slices, and emits those that may hold a first row."""
    held = list(batches)
    started = time.perf_counter()
    ranked = rank(context, held)
    if ranked.keep.all():
        for batch in held:
            context.counters.stop.count(batch, batch, started)
            yield batch
        return
    kept: list[SliceBatch] = []
    best = []
    begin = 0
    for batch in held:
        keep = ranked.keep[begin : begin + len(batch)]
        left = batch.filter(keep)
        context.counters.stop.count(batch, left, started)
        started = time.perf_counter()
        if len(left):
            kept.append(left)
            best.append(ranked.best[begin : begin + len(batch)][keep])
        begin += len(batch)
    for same in _by_index(kept):
        order = np.argsort(-np.concatenate([best[i] for i in same]), kind="stable")
        yield join_slices([kept[i] for i in same]).take(order)


def _by_index(batches: Sequence[SliceBatch]) -> list[list[int]]:
    """Positions of batches whose ordinals refer to the same index."""
    found: dict[int, list[int]] = {}
    for i, batch in enumerate(batches):
        found.setdefault(id(batch.index), []).append(i)
    return list(found.values())


def rank(context: ScanContext, batches: Sequence[SliceBatch]) -> top_n.Ranked:
    """Ranks slices by how early their rows may come, and marks those that may hold a first row."""
    request = context.request
    assert request.limit is not None
    key = request.order[0]
    reference = context.resolve(key.column)
    known = [context.statistics(batch) for batch in batches]
    return top_n.files_with_first_rows(
        [(k.column(reference), context.always(k), k.rows) for k in known], key, request.limit
    )
