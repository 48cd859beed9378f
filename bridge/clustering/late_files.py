"""Late files: writers put them into a directory after its partition was published elsewhere.

The law: each is copied into the published directory once, whole, and not before it is old enough
for its writer to have deleted the files that it replaces. In a directory in which files were
overwritten or deleted, late files may hold rows that were published already: they are named, and
not copied. A late file that is written again replaces its copy at once. One that was copied, and
turns out to hold just the rows of files that were deleted since, is taken back
(`bridge.clustering.compactions`).

A run announces the files before it copies them. So the next run knows copies of a run that died,
whatever became of their sources since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import uuid4

from bridge.clustering.compactions import compacted
from bridge.clustering.publications import (
    Publication,
    Publications,
    Records,
    by_path,
    knows,
    late_name,
)
from bridge.clustering.whole_files import unfinished
from bridge.index.replacements import FileState
from bridge.index.store import now_micros
from bridge.storage.port import FileStat, Storage, same_state
from bridge.storage.uri import join

Listing = dict[str, FileState]
_DEAD = 3_600_000_000
"""Microseconds after which a run that has announced files counts as dead."""


class Present(Protocol):
    """What of the metastore is needed here; see `bridge.clustering.publishing.Places`."""

    def of(self, partition: str) -> str | None: ...

    def distrust(self, partition: str) -> None: ...


@dataclass(slots=True)
class LateReport:
    """What became of late files.

    Attributes:
        late: how many were brought over, or brought over again.
        waiting: too young, or their writers have not ended; a later run brings them over.
        overwritten: files of old directories that were written again after the switch, and whose
            rows stay as they were published.
        withheld: late files of directories in which files were overwritten or deleted: they may
            hold the same rows, as those of INSERT OVERWRITE and of compaction do.
        taken_back: late files that were brought over, and held the rows of files which a writer
            deleted afterwards. Their copies were deleted.
        doubtful: other late files that were brought over before files of their directory were
            deleted or overwritten. Their rows may be there twice.
    """

    late: int = 0
    waiting: list[str] = field(default_factory=list)
    overwritten: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    taken_back: list[str] = field(default_factory=list)
    doubtful: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Left:
    """One old directory.

    Attributes:
        listed: its data files.
        new: late files that nobody has copied.
        again: late files that were written again, and the copy that each of them replaces.
        spoiled: writers have overwritten or deleted files there.
    """

    attempt: Publication
    listed: Listing
    new: list[FileState] = field(default_factory=list)
    again: list[tuple[FileState, str]] = field(default_factory=list)
    overwritten: list[str] = field(default_factory=list)
    spoiled: bool = False


class LateFiles:
    """Brings late files of one table over. Two at once are safe.

    Args:
        listed: lists the data files of a directory.
        settled: seconds for which a late file must not have changed.
        format: of the table's files.
        memory: bytes of rows that are held at once, about, where rows are compared.
    """

    def __init__(
        self,
        storage: Storage,
        places: Present,
        publications: Publications,
        listed: Callable[[str], Listing],
        settled: float,
        format: str,
        memory: int = 1 << 30,
    ) -> None:
        self._storage, self._places, self._publications = storage, places, publications
        self._format, self._memory = format, memory
        self._listed, self._settled = listed, int(settled * 1e6)
        self.report = LateReport()

    def bring(self, name: str, present: str, held: Records) -> None:
        """Brings late files of one partition over.

        Args:
            present: the partition's location.
        """
        held.only(present)
        brought = self._adopted(held)
        held.late += brought
        held.copies += brought.values()
        left = [
            self._look(each, present, held) for each in held.chain(present) if each.old != present
        ]
        for directory in left:
            if directory.spoiled:
                self._compacted(name, present, held, directory)
        wanted = {join(present, late_name(state)): state for each in left for state in each.new}
        wanted |= {target: state for each in left for state, target in each.again}
        wanted = self._ready(wanted)
        if wanted or brought:
            announced = self._publications.bringing(name, present, wanted)
            brought |= self._copy(wanted, left, name)
            # If the location was switched meanwhile, the next run brings them to the new one.
            if brought and self._places.of(name) == present:
                self._places.distrust(name)
                self._publications.bring(name, present, brought, announced)
                self._restore(name, present, brought)
                self.report.late += len(brought)
        for each in held.bringing:
            if each.since < now_micros() - _DEAD and self._places.of(name) == present:
                self._storage.delete(each.uri)

    def _adopted(self, held: Records) -> dict[FileState, FileState]:
        """Files that a run has copied which died before it recorded them, and the copies."""
        recorded, copies = by_path(held.late), by_path(held.copies)
        found: dict[FileState, FileState] = {}
        for each in held.bringing:
            for state, target in each.files:
                made = None if knows(recorded, state) else self._state(target)
                if made is not None and made.size == state.size and not knows(copies, made):
                    found[state] = made
        return found

    def _look(self, attempt: Publication, present: str, held: Records) -> _Left:
        covered = by_path([s for each in held.chain(present) for s in each.covered])
        late, copies = by_path(held.late), by_path(held.copies)
        made = _Left(attempt, self._listed(attempt.old))
        for path, state in made.listed.items():
            if knows(covered, state) or knows(late, state):
                continue
            if path in late and path not in covered:
                targets = {join(present, late_name(before)) for before in late[path]}
                there = [
                    target
                    for target in targets & copies.keys()
                    if (now := self._state(target)) is not None and knows(copies, now)
                ]
                if there:
                    made.again.append((state, there[0]))
                    continue
            if path in covered or path in late:
                made.overwritten.append(path)
            else:
                made.new.append(state)
        made.spoiled = bool(made.overwritten or held.missing(attempt, made.listed))
        if made.spoiled:
            made.overwritten += [state.path for state, _ in made.again]
            self.report.withheld += [state.path for state in made.new]
            made.new, made.again = [], []
        self.report.overwritten += made.overwritten
        return made

    def _compacted(self, name: str, present: str, held: Records, left: _Left) -> None:
        """Takes late files back whose rows are there twice; names those that are in doubt."""
        late = by_path(held.late)
        here: dict[str, FileState] = {}
        taken: list[FileState] = []
        for path in sorted(late.keys() & left.listed.keys() - set(left.overwritten)):
            state = left.listed[path]
            copy = self._copy_of(state, present, held)
            if copy is not None:
                here[path] = copy
            elif not _was_brought(state, present, held):
                self.report.doubtful.append(path)  # it was published with others since
            elif self._state(join(present, late_name(state))) is None:
                taken.append(state)
        back = self._recognised(name, present, held, left, here, taken)
        if back and self._places.of(name) == present:
            self._places.distrust(name)
            for path in back:
                self._storage.delete(here.pop(path).path)
            self.report.taken_back += back
        self.report.doubtful += sorted(here)

    def _recognised(
        self,
        name: str,
        present: str,
        held: Records,
        left: _Left,
        here: Mapping[str, FileState],
        taken: Sequence[FileState],
    ) -> list[str]:
        """Late files that hold just the rows of files that were deleted in their directory.

        Args:
            here: the copies of all late files there that may be such.
            taken: late files that were taken back, also by a run that died before it had taken
                back all that belong together.
        """
        attempt = left.attempt
        if not here or left.overwritten or attempt.missing is not None or attempt.new != present:
            return []
        gone = held.missing(attempt, left.listed)
        covered = {state.path for state in attempt.covered}
        copies = [
            self._copy_of(state, present, held)
            for state in held.late
            if state.path in gone and state.path not in covered
        ]
        seen = repr((sorted(gone), sorted(here.items()), taken))
        state = hashlib.sha256(seen.encode()).hexdigest()
        if state in held.looked or None in copies:
            return []
        there = [*attempt.files, *(copy for copy in copies if copy is not None)]
        rest = [each for each in attempt.covered if each.path in left.listed]
        suspects = list(here.values())
        found = compacted(self._storage, self._format, there, rest, taken, suspects, self._memory)
        if not found:
            self._publications.looked(name, state)
        return sorted(path for path, copy in here.items() if copy in found)

    def _copy_of(self, state: FileState, present: str, held: Records) -> FileState | None:
        """The copy of a late file, if it is there as it was made."""
        now = self._state(join(present, late_name(state)))
        return now if now is not None and knows(by_path(held.copies), now) else None

    def _ready(self, wanted: Mapping[str, FileState]) -> dict[str, FileState]:
        """Those that are old enough, and whole."""
        now = now_micros()
        young = [s for s in wanted.values() if self._settled and now - s.modified < self._settled]
        held_back = {state.path for state in young}
        rest = [state for state in wanted.values() if state.path not in held_back]
        held_back |= {state.path for state in unfinished(self._storage, rest)}
        self.report.waiting += sorted(held_back)
        return {target: s for target, s in wanted.items() if s.path not in held_back}

    def _copy(
        self, wanted: Mapping[str, FileState], left: Iterable[_Left], name: str
    ) -> dict[FileState, FileState]:
        """Copies files; takes those back in whose directories files were deleted meanwhile.

        Returns:
            The copies by files, without those that somebody has deleted since.
        """
        again = {target for each in left for _, target in each.again}
        brought: dict[str, FileState] = {}
        mine: dict[str, bool] = {}
        for target, state in wanted.items():
            before = self._state(target)
            # A whole copy is there if another run was quicker.
            if before is not None and before.size == state.size and target not in again:
                brought[target] = state
                mine[target] = False
            elif self._copy_whole(state, target):
                brought[target] = state
                if before is None:
                    mine[target] = True
        kept = self._kept(brought, mine, left, name) if brought else {}
        made = {state: self._state(target) for target, state in kept.items()}
        return {state: copy for state, copy in made.items() if copy is not None}

    def _restore(self, name: str, present: str, brought: Mapping[FileState, FileState]) -> None:
        """Copies files again whose copies another run has withdrawn before they were recorded.

        That run looks for a record after it has deleted a copy, and this one for the copy after it
        has made the record: so one of them sees the other.
        """
        again = {
            state: made
            for state, copy in brought.items()
            if state.path not in self.report.taken_back
            and self._state(copy.path) is None
            and self._copy_whole(state, copy.path)
            and (made := self._state(copy.path)) is not None
        }
        if again:
            self._publications.bring(name, present, again)

    def _copy_whole(self, state: FileState, target: str) -> bool:
        """Copies a file, or leaves the target as it was. Returns False if the file has changed."""
        source = FileStat(*_parts(state))
        if self._storage.has_directories(target):
            return self._storage.copy(source, target)
        # An object store may write a changed file over the target, and then delete it.
        directory, _, name = target.rpartition("/")
        draft = f"{directory}/.{uuid4().hex}-{name}"
        if not self._storage.copy(source, draft):
            return False
        try:
            made = self._storage.stat(draft)
            return made is not None and self._storage.copy(made, target)
        finally:
            self._storage.delete(draft)

    def _kept(
        self,
        brought: Mapping[str, FileState],
        mine: Mapping[str, bool],
        left: Iterable[_Left],
        name: str,
    ) -> dict[str, FileState]:
        """Files whose directories are as they were before the copies were made.

        A copy is deleted only if its source is still there, and nobody has recorded it. That of
        another run is left to that run, which sees the same or has recorded it before; if it has
        died, its announcement is there.

        Args:
            mine: of new copies, whether this run has made them.
        """
        copied = {state.path for state in brought.values()}
        spoiled: set[str] = set()
        for each in left:
            now = self._listed(each.attempt.old)
            growing = {state.path for state in each.new} - copied
            if any(
                path not in now or not (path in growing or same_state(state, now[path]))
                for path, state in each.listed.items()
            ):
                spoiled |= now.keys()
        kept = {}
        for target, state in brought.items():
            if state.path not in spoiled or target not in mine or self._is_recorded(name, state):
                kept[target] = state
                continue
            if not mine[target]:
                self.report.waiting.append(state.path)
                continue
            self._storage.delete(target)
            if self._is_recorded(name, state):  # by another run, in between
                self._copy_whole(state, target)
                kept[target] = state
            else:
                self.report.waiting.append(state.path)
        return kept

    def _is_recorded(self, name: str, state: FileState) -> bool:
        records = self._publications.load([name]).get(name, Records())
        return knows(by_path(records.late), state)

    def _state(self, uri: str) -> FileState | None:
        now = self._storage.stat(uri)
        return None if now is None else FileState.of(now)


def _was_brought(state: FileState, present: str, held: Records) -> bool:
    """Whether a late file was brought over to the directory that is in force."""
    return any(to == present and knows(by_path(late), state) for to, late, _ in held.batches)


def _parts(state: FileState) -> tuple[str, int, int, str | None]:
    return state.path, state.size, state.modified, state.etag
