"""Emits files that survived index pruning before a large listing completes.

The law: such a file is in exactly the state that the index knows, checked on the file itself, and
is emitted once. The listing still decides which files exist; new and changed files come with it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.nodes import BoundTrue
from bridge.planner.scan_context import ScanContext
from bridge.planner.stages.file_pruning import prune_batch
from bridge.planner.stages.top_n_pruning import rank
from bridge.table.model import Partition
from bridge.table.slices import SliceBatch

MIN_FILES = 4096
"""For fewer files the listing ends before checks of single files pay off."""
MAX_LOOKS = 16
"""Each check is a request to an object store; all fit in one round of the lister's threads."""


def emit_early_survivors(
    context: ScanContext, batches: Iterator[SliceBatch]
) -> Iterator[SliceBatch]:
    """The batches, preceded by the few survivors that are unchanged in storage."""
    early = _early(context)
    if early is None or not len(early):
        yield from batches
        return
    yield early
    yield from _without(batches, early)


def _early(context: ScanContext) -> SliceBatch | None:
    """The few files that survive index pruning and are unchanged in storage.

    For a top-N, the files that would come first if there were no new files; new files can only
    reduce the need. None where this does not help or cannot be decided: in a partitioned table,
    whose partitions may come and go, and under a limit, which may need less than all survivors.
    """
    request = context.request
    if (
        context.table.partition_keys
        or request.enforced
        or (request.limit is not None and not request.order)
        or (isinstance(context.predicate, BoundTrue) and not request.order)
    ):
        return None
    held = context.snapshot.indexed_slices(Partition("", (), context.table.location))
    if held is None or held.index is None or held.index.num_files < MIN_FILES:
        return None
    left = prune_batch(context, held, context.predicate)
    if context.stops_early:
        left = left.filter(rank(context, [left]).keep)
    if not 0 < len(left) <= MAX_LOOKS or (left.ordinals < 0).any():
        return None
    (left,) = left.pieces()
    context.snapshot.begin()  # the listing runs while the files are checked
    return left.filter(context.snapshot.find_unchanged(left))


def _without(batches: Iterator[SliceBatch], emitted: SliceBatch) -> Iterator[SliceBatch]:
    """The batches without the files already emitted, even if one has changed since."""
    ordinals = np.sort(emitted.ordinals)
    paths = emitted.files.paths
    for batch in batches:
        again = np.isin(batch.ordinals, ordinals)
        unknown = np.flatnonzero(batch.ordinals < 0)
        if len(unknown):
            names = batch.files.paths.take(pa.array(unknown))
            found = pc.is_in(names, value_set=paths.cast(names.type))
            again[unknown] = found.to_numpy(zero_copy_only=False)
        left = batch.filter(~again)
        if len(left):
            yield left
