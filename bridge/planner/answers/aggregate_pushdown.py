"""Answers aggregates from file statistics alone: lists and prunes, but reads no file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bridge.expression.nodes import BoundTrue
from bridge.expression.prune import prune
from bridge.expression.residual import references
from bridge.kernel.types import Value
from bridge.planner.answers.aggregates import (
    AggregateRequest,
    Group,
    NotAnswerable,
    Tally,
    check_groups,
    group_values,
    require_always,
)
from bridge.planner.answers.table_statistics import all_indexed
from bridge.planner.partitions import PARTITION_COLUMN, PartitionStatistics, select_partitions
from bridge.planner.scan_context import ScanContext
from bridge.planner.scan_plan import ScanPlan
from bridge.table.slices import SliceBatch


@dataclass(frozen=True, slots=True)
class AggregateResult:
    """The result of an aggregate request.

    Attributes:
        enforced: every row of every remaining file satisfies the whole predicate.
        rows: ``group_by`` values, then aggregates; None if there is no exact answer.
        reason: a code for why there is no answer.
        files: number of files that the answer covers.
    """

    enforced: bool
    rows: tuple[tuple[Value | None, ...], ...] | None = None
    reason: str = ""
    files: int = 0


def aggregate(plan: ScanPlan, request: AggregateRequest) -> AggregateResult:
    """Runs the plan to its end, unless the index or the partition values settle the answer first.

    Without aggregates and groups, only `AggregateResult.enforced` is computed; partition values may
    decide it without a listing.
    """
    asked = bool(request.aggregates or request.group_by)
    tally = Tally(request)
    if not plan.request.pruning or plan.request.dropped:
        return AggregateResult(
            False, None, "DISABLED" if not plan.request.pruning else "NOT_ENFORCED"
        )
    context = plan.context
    enforced = _partitions_match(context)
    if enforced and not asked:
        return AggregateResult(True)
    reason = _hopeless(context, request)
    if reason:
        return AggregateResult(enforced, None, reason)
    for batch in plan.batches():
        known = context.statistics(batch)
        try:
            require_always(context.predicate, known, plan.request.semantics)
        except NotAnswerable as refused:
            return AggregateResult(False, None, refused.reason, tally.files)
        if not asked or reason:
            continue
        try:
            tally.add(known, _groups(context, batch, request))
        except NotAnswerable as refused:
            reason = refused.reason
    if not asked:
        return AggregateResult(True)
    try:
        rows = tally.rows() if not reason else []
    except NotAnswerable as refused:
        reason = refused.reason
    if reason:
        return AggregateResult(True, None, reason, tally.files)
    return AggregateResult(
        True, tuple((*group, *values) for group, values in rows), "", tally.files
    )


def _hopeless(context: ScanContext, request: AggregateRequest) -> str:
    """Why the index alone rules out an answer; empty if an answer is still possible.

    Most requests end here, before storage is listed. A file that was deleted since the index was
    built may reject a request that could be answered; that costs only time.
    """
    if context.view.index is None:
        return "NO_INDEX"
    semantics = context.request.semantics
    known = all_indexed(context)
    try:
        check_groups(request.group_by)
        if isinstance(context.predicate, BoundTrue):
            left = known
        else:
            answers = prune(context.predicate, known, semantics)
            if not bool((answers.never | answers.always).all()):
                return "NOT_ENFORCED"
            left = known.take(np.flatnonzero(~answers.never))
        trial = Tally(replace(request, group_by=()))
        trial.add(left, [((), np.arange(left.num_files, dtype=np.int64))])
        trial.rows()
    except NotAnswerable as refused:
        return refused.reason
    return ""


def _groups(
    context: ScanContext, batch: SliceBatch, request: AggregateRequest
) -> Iterator[tuple[Group, npt.NDArray[np.int64]]]:
    owner = batch.partition
    if not request.group_by:
        yield (), np.arange(len(owner), dtype=np.int64)
        return
    order = np.argsort(owner, kind="stable").astype(np.int64)
    edges = np.searchsorted(owner[order], np.arange(len(batch.partitions) + 1)).tolist()
    keys = {k.name: i for i, k in enumerate(context.table.partition_keys)}
    for i, partition in enumerate(batch.partitions):
        if edges[i] == edges[i + 1]:
            continue
        typed = context.values_of(partition)
        name = partition.name.encode("utf-8", "surrogateescape")
        values = [typed[keys[r.path[0]]] if r.partition else name for r in request.group_by]
        yield group_values(values), order[edges[i] : edges[i + 1]]


def _partitions_match(context: ScanContext) -> bool:
    """Whether all remaining partitions satisfy the predicate by their values; lists no files."""
    keys, semantics = context.table.partition_keys, context.request.semantics
    asked = references(context.predicate)
    if not all(r.partition or r.path[0] == PARTITION_COLUMN for r in asked):
        return False
    names = context.snapshot.partition_names()
    found = select_partitions(names, keys, context.predicate, semantics)
    columns = [[found.values[n][i] for n in found.names] for i in range(len(keys))]
    known = PartitionStatistics(found.names, keys, columns)
    return bool(prune(context.predicate, known, semantics).always.all())
