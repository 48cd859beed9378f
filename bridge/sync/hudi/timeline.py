"""Which partitions of a Hudi table to look at: those of the commits since the last sync.

The law: a partition that gained or lost its last file since then is among them. Where the timeline
cannot tell, every partition is compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace

from bridge.table.hudi.timeline.commit_metadata import CommitMetadata
from bridge.table.hudi.timeline.instant import Instant
from bridge.table.hudi.timeline.timeline import HudiTimeline

_VERSION = 1


@dataclass(frozen=True, slots=True)
class HudiSyncState:
    """The last sync after which the metastore matched the timeline.

    Attributes:
        last: requested time of the newest completed write; empty without any.
        completion: the latest completion time of a write; empty before table version 8.
        modified: of the latest file of a completed write, microseconds since the epoch.
        pending: requested time of the oldest write that was pending; empty if there was none.
        names: digest of the registered partitions' names.
        table: digest of what the record says of columns, keys, location and classes.
        reading: the extractor, if one was chosen.
        partitions: number of registered partitions.
        compared: time of the last full comparison, seconds since the epoch.
    """

    last: str
    completion: str
    modified: int
    pending: str
    names: str
    table: str
    reading: str
    partitions: int
    compared: int
    hudi: int = _VERSION

    def to_text(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    def but_for_time(self) -> HudiSyncState:
        """The same state without the time of comparison."""
        return replace(self, compared=0)


def parse_hudi_state(text: str | None) -> HudiSyncState | None:
    """Parses the text; None if it is missing, broken or of another kind or version."""
    if not text:
        return None
    try:
        found = HudiSyncState(**json.loads(text))
    except (ValueError, TypeError):
        return None
    numbers = (found.modified, found.partitions, found.compared)
    texts = (found.last, found.completion, found.pending)
    whole = all(isinstance(n, int) for n in numbers) and all(isinstance(t, str) for t in texts)
    return found if whole and found.hudi == _VERSION else None


@dataclass(frozen=True, slots=True)
class Position:
    """How far a timeline has come; for the fields see `HudiSyncState`."""

    last: str
    completion: str
    modified: int
    pending: str

    @staticmethod
    def of(timeline: HudiTimeline) -> Position:
        last = timeline.last
        writes = [i.requested for i in timeline.pending if i.is_write]
        return Position(
            last.requested if last is not None else "",
            timeline.last_completion,
            max((i.modified for i in timeline.completed.values()), default=0),
            min(writes, default=""),
        )

    def is_reached(self, state: HudiSyncState, completes: bool) -> bool:
        """Whether the last sync has seen all completed writes."""
        if self.last != state.last or self.completion != state.completion:
            return False
        if state.pending and not "" < self.pending <= state.pending:
            return False  # it has ended, and may be archived already
        return completes or self.modified == state.modified


def commits_since(
    timeline: HudiTimeline, state: HudiSyncState, completes: bool
) -> list[Instant] | None:
    """The writes completed since the last sync; None if the timeline does not tell.

    It does not tell if the last synced write, or one that was pending then, was archived or undone.
    A write may complete after a later one: until version 8 its file's time tells.
    """
    if not state.last or state.last not in timeline.completed:
        return None
    if state.pending and state.pending < timeline.first_active:
        return None

    def is_new(instant: Instant) -> bool:
        if instant.requested > state.last:
            return True
        if completes:
            return (instant.completion or "") > state.completion
        return instant.modified >= state.modified

    return [i for _, i in sorted(timeline.completed.items()) if is_new(i)]


@dataclass(slots=True)
class TouchedPartitions:
    """The partitions of some commits.

    Attributes:
        written: paths that hold files, with the number and bytes of the files written.
        emptied: paths whose files were replaced and not written since; they may hold others.
    """

    written: dict[str, tuple[int, int]] = field(default_factory=dict)
    emptied: set[str] = field(default_factory=set)


def touched_partitions(commits: Iterable[CommitMetadata]) -> TouchedPartitions:
    """The partitions of commits in the order of their instants."""
    found = TouchedPartitions()
    for commit in commits:
        at = 0
        for path, count in zip(commit.partitions, commit.counts, strict=True):
            files, size = found.written.get(path, (0, 0))
            sizes = sum(commit.sizes[at : at + count])
            found.written[path] = (files + count, size + sizes)
            at += count
        found.emptied.difference_update(commit.partitions)
        found.emptied.update(set(commit.replaced).difference(commit.partitions))
    for path in found.emptied:
        found.written.pop(path, None)
    return found
