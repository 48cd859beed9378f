"""Answers a question by a plan's statistics alone: lists, prunes, adds up, reads no file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.expression.nodes import BoundTrue
from bridge.expression.prune import prune
from bridge.planner.answers import (
    Group,
    NotAnswered,
    Question,
    Tally,
    check_groups,
    group_values,
    require_always,
)
from bridge.planner.table_statistics import indexed
from bridge.types import Value

if TYPE_CHECKING:
    from bridge.planner.listed import FileBatch
    from bridge.planner.planner import ScanPlan


@dataclass(frozen=True, slots=True)
class Answer:
    """What statistics said.

    Attributes:
        enforced: every row of every file left satisfies the whole predicate.
        rows: ``group_by`` then aggregates; None if there is no exact answer.
        reason: why not, a code.
        files: that the answer speaks of.
    """

    enforced: bool
    rows: tuple[tuple[Value | None, ...], ...] | None = None
    reason: str = ""
    files: int = 0


def answer(plan: ScanPlan, question: Question) -> Answer:
    """Draws the plan to its end, unless less tells that there is no answer.

    Without aggregates and groups only `Answer.enforced` is found out; partition values may tell
    that without a listing.
    """
    asked = bool(question.aggregates or question.group_by)
    tally = Tally(question)
    if not plan.request.pruning or plan.request.dropped:
        return Answer(False, None, "DISABLED" if not plan.request.pruning else "NOT_ENFORCED")
    enforced = plan.partitions_match()
    if enforced and not asked:
        return Answer(True)
    reason = _hopeless(plan, question)
    if reason:
        return Answer(enforced, None, reason)
    for batch in plan.batches():
        known = plan.known(batch)
        try:
            require_always(plan.predicate, known, plan.request.semantics)
        except NotAnswered as refused:
            return Answer(False, None, refused.reason, tally.files)
        if not asked or reason:
            continue
        try:
            tally.add(known, _groups(plan, batch, question))
        except NotAnswered as refused:
            reason = refused.reason
    if not asked:
        return Answer(True)
    try:
        rows = tally.rows() if not reason else []
    except NotAnswered as refused:
        reason = refused.reason
    if reason:
        return Answer(True, None, reason, tally.files)
    return Answer(True, tuple((*group, *values) for group, values in rows), "", tally.files)


def _hopeless(plan: ScanPlan, question: Question) -> str:
    """Why there is no answer, as far as the index alone tells; empty if there may be one.

    Most questions end here, before storage is listed for them. A file that has vanished since may
    end one that could be answered: that is only slower.
    """
    if plan.view.serving is None:
        return "NO_INDEX"
    semantics = plan.request.semantics
    known = indexed(plan.table, plan.view, semantics)
    try:
        check_groups(question.group_by)
        if isinstance(plan.predicate, BoundTrue):
            left = known
        else:
            answers = prune(plan.predicate, known, semantics)
            if not bool((answers.never | answers.always).all()):
                return "NOT_ENFORCED"
            left = known.chosen(np.flatnonzero(~answers.never))
        trial = Tally(replace(question, group_by=()))
        trial.add(left, [((), np.arange(left.num_files, dtype=np.int64))])
        trial.rows()
    except NotAnswered as refused:
        return refused.reason
    return ""


def _groups(
    plan: ScanPlan, batch: FileBatch, question: Question
) -> Iterator[tuple[Group, npt.NDArray[np.int64]]]:
    owner = batch.files.partition
    if not question.group_by:
        yield (), np.arange(len(owner), dtype=np.int64)
        return
    order = np.argsort(owner, kind="stable").astype(np.int64)
    edges = np.searchsorted(owner[order], np.arange(len(batch.partitions) + 1)).tolist()
    keys = {k.name: i for i, k in enumerate(plan.table.partition_keys)}
    for i, partition in enumerate(batch.partitions):
        if edges[i] == edges[i + 1]:
            continue
        typed = plan.values_of(partition)
        name = partition.name.encode("utf-8", "surrogateescape")
        values = [typed[keys[r.path[0]]] if r.partition else name for r in question.group_by]
        yield group_values(values), order[edges[i] : edges[i + 1]]
