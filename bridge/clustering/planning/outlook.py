"""What a plan will do to each partition: files and bytes before and after, and what is read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridge.clustering.plan import ClusteringPlan, PlannedGroup
from bridge.index.building.listed import Listed
from bridge.index.reading.snapshot import IndexSnapshot


@dataclass(frozen=True, slots=True)
class PartitionOutlook:
    """What becomes of one partition.

    Attributes:
        files, num_bytes: that readers see today.
        old_files, old_bytes: that are read and replaced; about as many bytes are written at most.
        new_files: that replace them; more where old files differ in their schemas.
        groups: that are sorted each by itself.
        depth: how many of the groups share a value of the sort columns at most; 1: none does.
    """

    partition: str
    files: int
    num_bytes: int
    old_files: int
    old_bytes: int
    new_files: int
    groups: int
    depth: int


def outlook(plan: ClusteringPlan, listed: Listed, index: IndexSnapshot) -> list[PartitionOutlook]:
    """The partitions that a plan touches, in its order."""
    owners = listed.owners.to_pylist()
    names = {name: i for i, name in enumerate(dict.fromkeys(owners))}
    place = np.array([names[name] for name in owners], np.int32)
    count = np.bincount(place, minlength=len(names))
    size = np.bincount(place, listed.files.sizes, minlength=len(names))
    clustered = index.clustered
    found = None if clustered is None else clustered.find_replaced(index.match(listed.files), place)
    if clustered is not None and found is not None:
        replaced, new, where = found
        count -= np.bincount(place[replaced], minlength=len(names))
        size -= np.bincount(place[replaced], listed.files.sizes[replaced], minlength=len(names))
        count += np.bincount(where, minlength=len(names))
        files = clustered.index
        assert isinstance(files, IndexSnapshot)
        size += np.bincount(where, files.sizes[new], minlength=len(names))
    planned: dict[str, list[PlannedGroup]] = {}
    for group in plan.groups:
        planned.setdefault(group.partition, []).append(group)
    made = []
    for name, mine in planned.items():
        made.append(
            PartitionOutlook(
                name,
                int(count[names[name]]),
                int(size[names[name]]),
                sum(len(group.files) for group in mine),
                sum(group.num_bytes for group in mine),
                sum(group.outputs for group in mine),
                len(mine),
                max(group.depth for group in mine),
            )
        )
    return made
