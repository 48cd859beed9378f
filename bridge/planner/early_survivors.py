"""Survivors that the index names are handed on before the listing of a large directory ends.

The law: such a file is just as the index knows it, by a look at the file itself, and is handed out
once. The listing still says which files there are; what is new or was changed comes with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.nodes import BoundTrue
from bridge.planner.files import take
from bridge.planner.freshness import LIVE
from bridge.planner.listed import FileBatch
from bridge.planner.sufficient import first_of, stops_early
from bridge.planner.unchanged import unchanged
from bridge.table.model import Partition

if TYPE_CHECKING:
    from bridge.planner.planner import ScanPlan

_FILES = 4096
"""Below so many files a listing is over before a look at single ones pays."""
_MOST = 64
"""Each look is a request to an object store."""


def early_survivors(plan: ScanPlan) -> FileBatch | None:
    """The few files that the index leaves, those of them that storage has unchanged.

    Of a top-N those that would be first if nothing was new: what is new can only make fewer needed.
    None where that does not help or cannot be told: where the listing is there already, where
    partitions come and go, where a limit needs less than all survivors.
    """
    serving = plan.view.serving
    if (
        serving is None
        or serving.num_files < _FILES
        or plan.freshness != LIVE
        or plan.table.partition_keys
        or plan.request.enforced
        or (plan.request.limit is not None and not plan.request.order)
        or (isinstance(plan.predicate, BoundTrue) and not plan.request.order)
    ):
        return None
    partition = Partition("", (), plan.table.location)
    if plan.listed(partition):
        return None
    left = plan.by_index(partition)
    if stops_early(plan):
        left = first_of(plan, left)
    if not 0 < len(left.files) <= _MOST or (left.ordinals < 0).any():
        return None
    etags = serving.etags.take(pa.array(left.ordinals))
    files = replace(take(left.files, np.arange(len(left.files))), etags=etags)
    same = np.flatnonzero(unchanged(plan, files))
    return FileBatch(take(files, same), left.ordinals[same], left.partitions)


def without(batches: Iterator[FileBatch], handed_out: FileBatch) -> Iterator[FileBatch]:
    """The batches less the files that were handed out, also where one was changed since."""
    ordinals = np.sort(handed_out.ordinals)
    paths = handed_out.files.paths
    for batch in batches:
        again = np.isin(batch.ordinals, ordinals)
        unknown = np.flatnonzero(batch.ordinals < 0)
        if len(unknown):
            names = batch.files.paths.take(pa.array(unknown))
            found = pc.is_in(names, value_set=paths.cast(names.type))
            again[unknown] = found.to_numpy(zero_copy_only=False)
        if not again.any():
            yield batch
            continue
        left = np.flatnonzero(~again)
        if len(left):
            yield FileBatch(take(batch.files, left), batch.ordinals[left], batch.partitions)
