"""The stage that ends a plan early: of the survivors only those that a limit or a top-N needs.

`bridge.planner.early_stop` has the laws; this drives them over partition batches. A plan with a
limit does not narrow: rows that were counted on must not be taken away by a filter that comes
later.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bridge.expression.prune import prune
from bridge.expression.statistics import Mask
from bridge.planner import early_stop
from bridge.planner.composite_statistics import CompositePruningStatistics
from bridge.planner.directory_lister import concat
from bridge.planner.files import take
from bridge.planner.listed import FileBatch
from bridge.planner.table_statistics import indexed
from bridge.planner.unchanged import unchanged
from bridge.table.model import Partition

if TYPE_CHECKING:
    from bridge.planner.planner import ScanPlan

_MOST_STATS = 8


def stops_early(plan: ScanPlan) -> bool:
    """Whether the plan may leave out files that hold matching rows."""
    return plan.request.limit is not None and plan.request.pruning


def sufficient(plan: ScanPlan, batches: Iterator[FileBatch]) -> Iterator[FileBatch]:
    """The batches, without files that the request does not need."""
    if not stops_early(plan):
        return batches
    return _first(plan, batches) if plan.request.order else _enough(plan, batches)


def always(plan: ScanPlan, known: CompositePruningStatistics) -> Mask:
    """Files of which every row satisfies the plan's predicate."""
    return prune(plan.predicate, known, plan.request.semantics).always


def _enough(plan: ScanPlan, batches: Iterator[FileBatch]) -> Iterator[FileBatch]:
    assert plan.request.limit is not None
    wanted = plan.request.limit
    few = _unlisted(plan, wanted)
    if few is not None:
        yield few
        return
    for batch in batches:
        started = time.perf_counter()
        known = plan.known(batch)
        sure = always(plan, known)
        chosen = early_stop.enough(sure, known.rows, batch.files.sizes, wanted)
        left = batch if chosen is None else _choose(batch, chosen)
        _count(plan, batch, left, started)
        yield left
        if chosen is not None:
            return
        wanted -= int(known.rows[sure & (known.rows > 0)].sum())


def _unlisted(plan: ScanPlan, wanted: int) -> FileBatch | None:
    """A few files that the index says suffice, if each is there just as the index knows it.

    A limit needs no other file, so the directory need not be listed. None where that does not help
    or cannot be told: where partitions come and go, or files lie elsewhere than the table does.
    """
    serving = plan.view.serving
    if serving is None or plan.freshness.mode != "live" or plan.table.partition_keys:
        return None
    if plan.view.shared:  # of a table that had partitions when it was indexed
        return None
    started = time.perf_counter()
    known = indexed(plan.table, plan.view, plan.request.semantics)
    sure = always(plan, known) & serving.trusted
    chosen = early_stop.enough(sure, known.rows, serving.sizes, wanted)
    if chosen is None or len(chosen) > _MOST_STATS:
        return None
    files = known.chosen(chosen).files
    if not unchanged(plan, files).all():
        return None
    count = serving.num_files
    plan.index_listed(count)
    plan.stop_stage.add(count, len(chosen), int(files.sizes.sum()), time.perf_counter() - started)
    owner = np.zeros(len(files), np.int32)
    partition = Partition("", (), plan.table.location)
    return FileBatch(replace(files, partition=owner), chosen, (partition,))


def first_of(plan: ScanPlan, batch: FileBatch) -> FileBatch:
    """The files of a batch that may hold one of the first rows, if there were no other files."""
    ranked = _ranked(plan, [batch])
    return batch if ranked.keep.all() else _choose(batch, np.flatnonzero(ranked.keep))


def _ranked(plan: ScanPlan, batches: list[FileBatch]) -> early_stop.Ranked:
    request = plan.request
    assert request.limit is not None
    key = request.order[0]
    reference = plan.resolve(key.column)
    known = [plan.known(batch) for batch in batches]
    return early_stop.first(
        [(k.column(reference), always(plan, k), k.rows) for k in known], key, request.limit
    )


def _first(plan: ScanPlan, batches: Iterator[FileBatch]) -> Iterator[FileBatch]:
    held = list(batches)
    started = time.perf_counter()
    ranked = _ranked(plan, held)
    if ranked.keep.all():
        for batch in held:
            _count(plan, batch, batch, started)
            yield batch
        return
    kept: list[FileBatch] = []
    best = []
    begin = 0
    for batch in held:
        keep = ranked.keep[begin : begin + len(batch.files)]
        left = _choose(batch, np.flatnonzero(keep))
        _count(plan, batch, left, started)
        started = time.perf_counter()
        if len(left.files):
            kept.append(left)
            best.append(ranked.best[begin : begin + len(batch.files)][keep])
        begin += len(batch.files)
    if kept:
        yield _choose(_joined(kept), np.argsort(-np.concatenate(best), kind="stable"))


def _choose(batch: FileBatch, positions: early_stop.Positions) -> FileBatch:
    return replace(batch, files=take(batch.files, positions), ordinals=batch.ordinals[positions])


def _joined(batches: list[FileBatch]) -> FileBatch:
    if len(batches) == 1:
        return batches[0]
    files = concat([b.files for b in batches])
    offsets = np.cumsum([0, *(len(b.partitions) for b in batches[:-1])])
    owner = [b.files.partition + offset for b, offset in zip(batches, offsets, strict=True)]
    return replace(
        batches[0],
        files=replace(files, partition=np.concatenate(owner).astype(np.int32)),
        ordinals=np.concatenate([b.ordinals for b in batches]),
        partitions=tuple(p for b in batches for p in b.partitions),
    )


def _count(plan: ScanPlan, before: FileBatch, after: FileBatch, started: float) -> None:
    plan.stop_stage.add(
        len(before.files),
        len(after.files),
        int(after.files.sizes.sum()),
        time.perf_counter() - started,
    )
