"""Leaves out whole partitions by what the index knows of their files, before they are fetched.

The law: a partition is left out only if the scan's file set is that of the index's generation, the
index knows files of the partition, and the entry of each of them proves that no row satisfies the
predicate. Under any other freshness a partition may hold files that the index does not know, and
only a listing tells. Nor does an entry of a file that does not describe itself prove anything: the
partition's record, which is not fetched, may say by now how to read it in another way.

Partition keys prove nothing here: `bridge.planner.partitions` has pruned by them.
"""

from __future__ import annotations

import time

import numpy as np

from bridge.expression.nodes import BoundReference, BoundTrue
from bridge.expression.residual import keep_decided
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.planner.scan_context import ScanContext
from bridge.table.snapshot import HasFileSet


def prune_by_files(context: ScanContext, names: list[str]) -> list[str]:
    """The partitions that may hold a matching row, in the same order."""
    if not context.table.partition_keys:
        return names  # to leave out the only one would save nothing
    snapshot = context.snapshot
    index = snapshot.file_set if isinstance(snapshot, HasFileSet) else None
    data = keep_decided(context.predicate, _in_entries)
    if not isinstance(index, IndexSnapshot) or isinstance(data, BoundTrue) or not names:
        return names
    started = time.perf_counter()
    minmax = context.pruner_of(index).minmax
    if minmax is None:
        return names
    never = minmax.over_all(data)
    if never is None or not len(never):
        return names
    known = never & index.trusted
    if any(index.recipes):
        known &= np.array([not digest for digest in index.recipes], np.bool_)[index.recipe]
    alive = np.zeros(len(index.owners), np.bool_)
    alive[index.partition[~known]] = True
    left_out = {name for owners in index.owners for name in owners}
    for owner in np.flatnonzero(alive).tolist():
        left_out.difference_update(index.owners[owner])
    kept = [name for name in names if name not in left_out]
    counter = context.counters.bounded_partitions
    counter.columns = minmax.columns(data)
    counter.add(len(names), len(kept), 0, time.perf_counter() - started)
    return kept


def _in_entries(column: BoundReference) -> bool:
    """Not a partition key nor a hidden column: no file has these."""
    return not column.partition and not column.path[0].startswith("$")
