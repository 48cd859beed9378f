"""The first stage: fetches the partitions that survive pruning, and lists their slices.

Dynamic filters on partition keys prune the names before anything is fetched or listed, and so do
the index's entries where it has the scan's file set. A filter that arrives late still prunes the
partitions that follow.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import compress

import numpy as np

from bridge.expression.nodes import BoundExpression, BoundFalse, BoundTrue
from bridge.expression.statistics import Mask
from bridge.planner.partitions import PartitionSelection, exclude_partitions, select_partitions
from bridge.planner.reports.report import StageCounter
from bridge.planner.scan_context import ScanContext
from bridge.planner.similar_keys import warn_of_similar
from bridge.planner.stages.partition_bounds import prune_by_files
from bridge.storage.reading.requests import tally_requests
from bridge.table.model import Partition, PartitionBatch
from bridge.table.slices import SliceBatch

_FIRST_LISTED = 64
"""Directories listed at first while a dynamic filter on a key is awaited; doubles each time."""


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
    if context.request.strict and selection.total and not selection.names:
        warn_of_similar(snapshot.partition_names(), context.table.partition_keys, predicate)
    none = isinstance(predicate, BoundFalse)
    counters.partitions.columns = selection.columns
    counters.partitions.add(selection.total, 0 if none else len(selection.names), 0, seconds)
    if none:
        return
    _count_views(context)
    left = replace(selection, names=prune_by_files(context, selection.names))
    for batch in _partitions(context, left):
        listed = snapshot.slices(batch, context.columns)
        while True:
            started = time.perf_counter()
            with tally_requests(counters.listing.requests):
                found = next(listed, None)
            if found is None or context.cancelled:
                break
            seconds = time.perf_counter() - started
            counters.listing.add(len(found), len(found), found.num_bytes, seconds)
            yield found


def _count_views(context: ScanContext) -> None:
    """Tells of each view how many files of the facts its files stand for."""
    for use in context.view_uses():
        if use.segments:
            counter = StageCounter("files", f"view({use.view})")
            counter.add(use.facts, use.files, use.bytes, 0.0)
            context.counters.views.append(counter)


def _partitions(context: ScanContext, selection: PartitionSelection) -> Iterator[PartitionBatch]:
    """Batches of the selected partitions, as far as the dynamic filters leave them."""
    filters = _KeyFilters(context, selection)
    names = filters.narrow(selection.names)
    while names:
        fetch = context.fetch(partial(context.snapshot.partitions, names))
        if fetch is None:
            return
        done: set[str] = set()
        for batch in fetch:
            done.update(batch.missing)
            for piece in _pieces(context, batch):
                if context.cancelled:
                    return
                done.update(p.name for p in piece)
                context.note_values(piece, selection.values)
                left = filters.drop_never(piece)
                if left:
                    yield PartitionBatch(left)
            if filters.outdated:
                rest = [name for name in names if name not in done]
                names = filters.narrow(rest)
                if len(names) < len(rest):
                    fetch.close()
                    break
        else:
            return


def _pieces(context: ScanContext, batch: PartitionBatch) -> Iterator[tuple[Partition, ...]]:
    """The batch as one piece, or in growing ones while a filter on a key is awaited."""
    begin, size = 0, _FIRST_LISTED
    while begin < len(batch.partitions):
        end = begin + size if context.awaits_key_filters else len(batch.partitions)
        yield batch.partitions[begin:end]
        begin, size = end, 2 * size


class _KeyFilters:
    """Applies the dynamic filters that partition values alone decide, and counts."""

    def __init__(self, context: ScanContext, selection: PartitionSelection) -> None:
        self._context = context
        self._values = selection.values
        self._total = len(selection.names)
        self._dropped = 0
        self._applied: BoundExpression = BoundTrue()

    @property
    def outdated(self) -> bool:
        """Whether a filter has arrived since names were last narrowed."""
        return self._applied is not self._context.key_filters

    def narrow(self, names: list[str]) -> list[str]:
        """The names of partitions that may hold a row."""
        self._applied = self._context.key_filters
        never = self._never(names, self._applied)
        return names if never is None else list(compress(names, ~never))

    def drop_never(self, partitions: tuple[Partition, ...]) -> tuple[Partition, ...]:
        """The partitions that may hold a row."""
        filters = self._context.key_filters
        if filters is self._applied:
            return partitions  # their names were narrowed
        never = self._never([p.name for p in partitions], filters)
        return partitions if never is None else tuple(compress(partitions, ~never))

    def _never(self, names: list[str], filters: BoundExpression) -> Mask | None:
        if isinstance(filters, BoundTrue) or not names:
            return None
        started, context = time.perf_counter(), self._context
        values = [self._values.get(name, ()) for name in names]
        keys, semantics = context.table.partition_keys, context.request.semantics
        never = exclude_partitions(names, values, keys, filters, semantics)
        self._dropped += int(np.count_nonzero(never))
        counter = context.counters.filtered_partitions
        counter.total, counter.kept = self._total, self._total - self._dropped
        counter.millis += (time.perf_counter() - started) * 1000.0
        return never
