"""For writers that cooperate: whether a waiting plan rewrites the files that they replace.

Nothing is lost if a writer does not ask. A group one of whose files changed is not committed, and
one that was committed before is read from its listed files from then on. Asking saves the work.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bridge.clustering.timeline import Timeline
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.replacements import read_replacements, replacements_of
from bridge.index.generations.store import IndexStore
from bridge.kernel.errors import ClusteringPending, InvalidRequest

STRATEGIES = ("reject", "allow")


@dataclass(frozen=True, slots=True)
class PendingGroup:
    """A group of a plan that is neither completed nor ended.

    Attributes:
        group: its number in the plan.
        file: one of its files that the writer replaces, or of which it rewrites the rows.
        committing: its files are about to be replaced.
    """

    instant: str
    group: int
    file: str
    committing: bool


def pending_groups(
    timeline: Timeline, store: IndexStore, files: Collection[str]
) -> list[PendingGroup]:
    """The groups of waiting plans that rewrite some files, or clustered files with their rows.

    A damaged plan has none: nobody can execute it.

    Args:
        files: canonical URIs.

    Errors:
        IndexCorrupt, StorageFailure.
    """
    manifest = store.latest()
    waiting = timeline.list_unfinished(manifest).plans
    if not waiting or not files:
        return []
    origin = {**_rewritten(store, manifest, files), **{path: path for path in files}}
    found = []
    for state, plan in waiting:
        cancelled = timeline.cancelled_groups(plan.instant)
        for group in plan.groups:
            hit = next((origin[s.path] for s in group.files if s.path in origin), None)
            if hit is not None and group.id not in cancelled:
                found.append(PendingGroup(plan.instant, group.id, hit, state == "committing"))
    return found


def _rewritten(
    store: IndexStore, manifest: Manifest | None, files: Collection[str]
) -> dict[str, str]:
    """Clustered files that hold rows of some files, each with one of these."""
    if manifest is None or manifest.clustering is None:
        return {}
    found: dict[str, str] = {}
    for group in replacements_of(read_replacements(store, manifest)):
        hit = next((state.path for state in group.old if state.path in files), None)
        if hit is not None:
            found.update((state.path, hit) for state in group.new)
    return found


def check_write(
    timeline: Timeline, store: IndexStore, files: Collection[str], strategy: str
) -> list[PendingGroup]:
    """Refuses a write to files that a plan rewrites, or cancels these groups of the plan.

    Args:
        files: canonical URIs of what the writer is about to replace or delete.
        strategy: ``reject`` or ``allow``.

    Returns:
        The groups that are cancelled; those that are committing cannot be any more, and are read
        from their listed files once the writer has written.

    Errors:
        ClusteringPending: the strategy is ``reject``, and a plan rewrites one of the files.
        InvalidRequest: no such strategy.
        IndexCorrupt, StorageFailure.
    """
    if strategy not in STRATEGIES:
        raise InvalidRequest(f"no strategy {strategy!r}", f"one of {', '.join(STRATEGIES)}")
    found = pending_groups(timeline, store, files)
    if found and strategy == "reject":
        first = found[0]
        raise ClusteringPending(
            f"{first.file} is being clustered by group {first.group} of plan {first.instant}",
            "write after the plan has ended, cancel it, or use the strategy allow",
        )
    for each in found:
        if not each.committing:
            timeline.cancel_group(each.instant, each.group, each.file)
    return [each for each in found if not each.committing]
