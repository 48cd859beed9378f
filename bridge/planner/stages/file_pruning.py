"""Drops slices that hidden columns or an index exclude, in one vectorised pass per index.

Each index is evaluated only on the slices that earlier ones kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Protocol

import numpy as np

from bridge.expression.nodes import BoundExpression, BoundFalse, BoundTrue
from bridge.expression.residual import references
from bridge.expression.statistics import Mask
from bridge.index.kinds.kind import Ordinals
from bridge.planner.attributes import keep_by_attributes, split_by_source
from bridge.planner.file_pruner import Index
from bridge.planner.own_indexes import any_unknown
from bridge.planner.partitions import PARTITION_COLUMN, partition_residual, split_by_keys
from bridge.planner.scan_context import ScanContext
from bridge.table.slices import SliceBatch


class _Keep(Protocol):
    def __call__(
        self, batch: SliceBatch, predicate: BoundExpression, *, positions: Ordinals | None
    ) -> Mask | None:
        """False where a slice of the batch, or at the positions, is dropped; None keeps all."""
        ...


def prune_files(context: ScanContext, batches: Iterator[SliceBatch]) -> Iterator[SliceBatch]:
    """The slices that may hold a matching row, with their paths materialised."""
    for batch in batches:
        kept = prune_batch(context, batch, context.predicate, count=True)
        context.counters.files_kept += len(kept)
        if len(kept):
            yield from kept.pieces()


def prune_batch(
    context: ScanContext, batch: SliceBatch, predicate: BoundExpression, *, count: bool = False
) -> SliceBatch:
    """The slices of a batch that may hold a row that satisfies the predicate."""
    if isinstance(predicate, BoundTrue) or not len(batch):
        if count:
            context.unknown.add(batch)
        return batch
    parts, counters = split_by_source(predicate), context.counters
    kept = batch
    if not isinstance(parts.attributes, BoundTrue):
        started = time.perf_counter()
        keep = keep_by_attributes(batch.files, parts.attributes, context.request.semantics)
        if keep is not None and batch.merged is not None:
            keep = keep | batch.merged  # the path of a merged row may be that of a log
        kept = batch.filter(keep)
        if count:
            counters.attributes.count(batch, kept, started)
    if count:  # of the files that were asked for: perhaps one, by its path
        context.unknown.add(kept)
    data = parts.data
    if context.table.partition_keys:
        kept, data = _by_partitions(context, kept, data)
    pruner = context.pruner(batch)
    indexes: list[Index] = [] if pruner is None else pruner.indexes
    for index in indexes:
        if not len(kept):
            break
        if not index.concerns(data):
            continue
        assert pruner is not None
        before, started = kept, time.perf_counter()
        kept = before.filter(_keep(context, before, data, partial(pruner.keep, index=index)))
        if count:
            context.counter(index, data).count(before, kept, started)
    if not context.own_indexes or not any_unknown(kept):
        return kept
    for own in context.own_indexes:
        own.ask(data)
    for own in context.own_indexes:
        if not any_unknown(kept) or not own.concerns(data):
            continue
        before, started = kept, time.perf_counter()
        kept = before.filter(_keep(context, before, data, own.keep))
        if count:
            context.counter(own, data).count(before, kept, started)
    return kept


def _by_partitions(
    context: ScanContext, batch: SliceBatch, predicate: BoundExpression
) -> tuple[SliceBatch, BoundExpression]:
    """The slices of partitions that may match, and the conjuncts that are still to evaluate."""
    if not any(r.partition or r.path[0] == PARTITION_COLUMN for r in references(predicate)):
        return batch, predicate
    wrong = context.exclude(batch.partitions, predicate)
    left = batch.filter(~wrong[batch.partition]) if wrong.any() else batch
    return left, split_by_keys(predicate)[1]


def _keep(
    context: ScanContext,
    batch: SliceBatch,
    predicate: BoundExpression,
    keep_of: _Keep,
) -> Mask | None:
    """Prunes partition by partition where their values leave different residual predicates."""
    if not any(r.partition or r.path[0] == PARTITION_COLUMN for r in references(predicate)):
        return keep_of(batch, predicate, positions=None)
    residuals = _residuals(context, batch, predicate)
    same = all(r == residuals[0] for r in residuals[1:])
    if same and not isinstance(residuals[0], BoundFalse):
        return keep_of(batch, residuals[0], positions=None)
    keep = np.ones(len(batch), np.bool_)
    for i, left in enumerate(residuals):
        inside = np.flatnonzero(batch.partition == i)
        if isinstance(left, BoundFalse):
            keep[inside] = False
            continue
        mask = keep_of(batch, left, positions=inside)
        if mask is not None:
            keep[inside] = mask
    return keep


def _residuals(
    context: ScanContext, batch: SliceBatch, predicate: BoundExpression
) -> list[BoundExpression]:
    keys = context.table.partition_keys
    return [
        partition_residual(predicate, keys, p.name, context.values_of(p)) for p in batch.partitions
    ]
