"""When a table is clustered by itself: after so many commits, small files, or so much time.

Nothing is due if the table has not changed since the last clustering: what a plan has written is
not taken up again by itself, so no trigger rewrites a table, or a lone file of it, for ever.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from bridge.clustering.plan import ClusteringPlan
from bridge.clustering.planning.depth import is_written
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.timeline import Timeline
from bridge.index.building.listed import Listed
from bridge.index.generations.manifest import Manifest
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.errors import FileCorrupt, InvalidRequest


@dataclass(frozen=True, slots=True)
class Triggers:
    """What makes a clustering due; None does not.

    Attributes:
        commits: generations of the index since the last plan was made.
        small_files: files that are small, not clustered, and not alone in their partition.
        seconds: since the last plan was made, if there was a commit.
    """

    commits: int | None = None
    small_files: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Since:
    """What has happened since the last plan that was completed was made.

    Attributes:
        seconds: None: no plan was completed yet.
    """

    commits: int
    small_files: int
    seconds: float | None


def completed_plans(timeline: Timeline, manifest: Manifest) -> list[ClusteringPlan]:
    """The completed plans that can still be read, the oldest first."""
    found = []
    for each in timeline.states(manifest):
        if each.state == "completed":
            try:
                found.append(timeline.plan(each.instant))
            except (FileCorrupt, InvalidRequest):
                continue  # damaged, or cleaned away
    return found


def changes_since_clustering(
    plans: Sequence[ClusteringPlan],
    generation: int,
    small_files: int,
    now: dt.datetime,
    own: Collection[int] = (),
) -> Since:
    """What has happened since the last clustering.

    Args:
        plans: those that were completed, the oldest first.
        generation: the newest one of the index.
        now: in UTC.
        own: generations that publishing has committed.
    """
    if not plans:
        return Since(generation, small_files, None)
    last = plans[-1]
    # Each plan that was completed since has committed one generation.
    mine = sum(plan.generation >= last.generation for plan in plans)
    mine += sum(last.generation < each <= generation for each in own)
    made = dt.datetime.strptime(last.instant + "000", "%Y%m%d%H%M%S%f").replace(tzinfo=dt.UTC)
    commits = max(0, generation - last.generation - mine)
    return Since(commits, small_files, max(0.0, (now - made).total_seconds()))


def due(triggers: Triggers, held: Since) -> str:
    """Why a clustering is due; empty if it is not."""
    if not held.commits:
        return ""
    if triggers.commits is not None and held.commits >= triggers.commits:
        return f"{held.commits} commits"
    if triggers.small_files is not None and held.small_files >= triggers.small_files:
        return f"{held.small_files} small files"
    if triggers.seconds is not None and (held.seconds is None or held.seconds >= triggers.seconds):
        return "no clustering yet" if held.seconds is None else f"{held.seconds:.0f} s"
    return ""


def small_files(listed: Listed, index: IndexSnapshot, limits: Limits) -> int:
    """Files that a plan by size would take up: small, in the index, and not clustered."""
    ordinals = index.match(listed.files)
    wanted = (ordinals >= 0) & limits.eligible(listed.files.sizes)
    wanted &= np.array([not is_written(path) for path in listed.files.paths.to_pylist()], np.bool_)
    owners = listed.owners.to_pylist()
    if index.clustered is not None:
        names = {name: i for i, name in enumerate(dict.fromkeys(owners))}
        place = np.array([names[name] for name in owners], np.int32)
        replaced = index.clustered.find_replaced(ordinals, place)
        if replaced is not None:
            wanted &= ~replaced[0]
    counts = Counter(owners[i] for i in np.flatnonzero(wanted).tolist())
    return sum(count for count in counts.values() if count >= limits.fewest_files)
