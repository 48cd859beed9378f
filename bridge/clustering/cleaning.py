"""Cleaning: deletes what clustering and publishing have left, after a retention.

Deleted are: new files of ended plans that no generation's replacements name; files of directories
that a partition was published from, exactly those whose rows the present directory got; and what
attempts to publish that failed have written, or runs that died while they brought a late file;
records of plans that ended, see `old_plans`. Old generations of the index go first.

The law: nothing is deleted that a generation's replacements, a pending plan or a location of the
metastore reads; nothing that no record names, such as a late file; nothing outside of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bridge.clustering.old_plans import OldPlans
from bridge.clustering.publications import (
    Publication,
    Publications,
    Records,
    by_path,
    knows,
    states_of,
)
from bridge.clustering.publishing import Places, lies_in
from bridge.clustering.timeline import PlanState, Timeline
from bridge.errors import GenerationNotFound
from bridge.index.manifest import Manifest
from bridge.index.replacements import DIRECTORY, FileState, home, read_replacements
from bridge.index.store import IndexStore, now_micros
from bridge.storage.local import resolved
from bridge.storage.port import data_files, same_state
from bridge.storage.uri import join, relative
from bridge.table.model import Table

_INSTANT = re.compile(r"\d{17}")
_DRAFT = re.compile(r"\.[0-9a-f]{32}(\.tmp|-late-[0-9a-f]{12}-.*)")
"""Names of files that are being written, which become late files."""
_DEAD = 3_600_000_000
"""Microseconds after which who has written a draft counts as dead."""


@dataclass(slots=True)
class CleanReport:
    """What was deleted, or would be.

    Attributes:
        generations: of the index.
        rewritten: new files that nobody reads, of plans that ended.
        replaced: files of directories that partitions were published from.
        attempts: files of failed attempts to publish, and drafts of late files whose run died.
        plans: that ended, of which the records were deleted.
        bytes: of all these but the generations and the records.
        unknown: plans below the table that this index does not know; they are left alone.
        shared: other tables that lie in the same place. What they may read is left alone.
        unreadable: other tables of which the metastore does not tell all places. They may read
            the files of directories that were published from, so these are left alone.
        withheld: files that are left alone for that reason.
        unasked: other tables with more partitions than are looked at.
    """

    generations: int = 0
    rewritten: int = 0
    replaced: int = 0
    attempts: int = 0
    plans: int = 0
    bytes: int = 0
    unknown: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    withheld: int = 0
    unasked: list[str] = field(default_factory=list)


class Cleaner:
    """Cleans one table.

    Args:
        places: None for a table that no metastore knows: it cannot have been published.
        before: microseconds since the epoch: what ended later is kept.
        records_before: the same of the records of plans; None: as all else.
        elsewhere: names of other tables that have no files below this one's location, whatever
            the metastore does not tell of them.
        dry_run: only tells.
    """

    def __init__(
        self,
        table: Table,
        store: IndexStore,
        places: Places | None,
        before: int,
        *,
        records_before: int | None = None,
        recursive: bool = False,
        elsewhere: Iterable[str] = (),
        dry_run: bool = False,
    ) -> None:
        self._elsewhere = {name.lower() for name in elsewhere}
        self._storage, self._store, self._places = store.storage, store, places
        self._records_before = before if records_before is None else min(before, records_before)
        self._before, self._recursive, self._dry_run = before, recursive, dry_run
        self._home, self._table = home(table.location), str(table.name)
        self._timeline = Timeline(store.storage, store.root)
        self._states: list[PlanState] = []
        self._publications = Publications(store.storage, table.location)
        self._spared: set[str] = set()
        self._present: dict[str, str] = {}
        self._locations: set[str] = set()  # without links
        self._real: dict[str, str] = {}
        self.report = CleanReport()

    def run(self) -> CleanReport:
        """Errors: IndexCorrupt, FileCorrupt: what must be kept cannot be told; nothing is deleted.
        StorageFailure, MetastoreUnavailable: run it again.
        """
        newest = self._store.latest()
        records = self._publications.load()
        self._states = self._timeline.states(newest)
        kept = self._generations()
        self._spare(kept)
        self._present = {} if self._places is None else self._places.all()
        self._locations = {resolved(place) for place in self._present.values()}
        if records:
            self._look_for_others()
        with_files = self._rewritten()
        for name, held in records.items():
            self._published(name, held)
        old = OldPlans(self._storage, self._timeline, self._records_before, dry_run=self._dry_run)
        self.report.plans = old.forget(self._states, with_files)
        return self.report

    def _look_for_others(self) -> None:
        """Collects other tables and partitions of them in the same place."""
        ours, mine = resolved(self._home), frozenset(self._locations)

        def is_above(place: str) -> bool:
            # Engines that read subdirectories read all that is below a location.
            return self._recursive and relative(place, ours) is not None

        def near(location: str) -> bool:
            place = resolved(location)
            # A location of ours may be a link to it.
            linked = any(lies_in(each, place) for each in mine)
            return linked or lies_in(place, ours) or is_above(place)

        for other in [] if self._places is None else self._places.others(near):
            if other.unreadable and other.name.lower() not in self._elsewhere:
                self.report.unreadable.append(other.name)
            if other.unasked:
                self.report.unasked.append(other.name)
            if other.partitions or near(other.location):
                self.report.shared.append(other.name)
            real = map(resolved, (other.location, *other.partitions))
            self._locations |= {ours if is_above(place) else place for place in real}

    def _generations(self) -> list[Manifest]:
        """Deletes generations that were followed by another one long ago; returns the others."""
        numbers = self._store.generations()
        manifests = []
        for number in numbers:
            try:
                manifests.append(self._store.manifest(number))
            except GenerationNotFound:  # cleaned up since it was listed
                continue
        ended = [m.created for m in manifests[1:]]
        kept = [m for m, end in zip(manifests, ended, strict=False) if end >= self._before]
        kept += manifests[-1:]
        self.report.generations = len(manifests) - len(kept)
        if self.report.generations and not self._dry_run:
            self._store.clean(keep=len(kept), older_than=_age(self._before))
            kept = [self._store.manifest(n) for n in self._store.generations()]
        return kept

    def _spare(self, kept: Iterable[Manifest]) -> None:
        """Collects the files that generations and pending plans name."""
        blobs = set()
        for manifest in kept:
            if manifest.clustering is not None:
                name = manifest.clustering.replacements.name
                if name not in blobs:
                    blobs.add(name)
                    named = read_replacements(self._store, manifest)
                    self._spared |= set(named["path"].to_pylist())
        for state in self._states:
            if not state.pending:
                continue
            for group in self._timeline.plan(state.instant).groups:
                self._spared |= {file.path for file in group.files}
                result = self._timeline.result(state.instant, group.id)
                if result is not None:
                    self._spared |= {file.path for file in result.new}

    def _rewritten(self) -> set[str]:
        """New files of plans that ended. Returns the plans that had some before."""
        states = {state.instant: state for state in self._states}
        with_files = set()
        root = join(self._home, DIRECTORY)
        for directory in self._storage.list_directories(root):
            instant = directory.rstrip("/").rpartition("/")[2]
            if not _INSTANT.fullmatch(instant):
                continue
            if instant not in states:
                self.report.unknown.append(instant)
                continue
            if states[instant].pending:
                continue
            for state in states_of(self._storage.list_all(directory, recursive=True)):
                with_files.add(instant)
                if state.modified < self._before and self._delete(state):
                    self.report.rewritten += 1
        return with_files

    def _published(self, name: str, held: Records) -> None:
        """Directories that a partition was published from, and those of failed attempts."""
        orphans = set(held.names) - {attempt.number for attempt in held.attempts} - {0}
        for number in orphans if not self._dry_run else ():
            self._publications.forget(held, number)
        present = self._present.get(name)
        chain = [] if present is None else held.chain(present)
        held.only(present or "")
        for attempt in held.attempts:
            if attempt.since >= self._before or attempt in chain:
                continue
            if self._failed(attempt):
                empty = self._attempt(attempt)
            else:  # its partition was dropped or moved, but its files may be wanted
                continue
            if empty and not self._dry_run:
                self._publications.forget(held, attempt.number)
        # A record is the way to the directories before it, where late files may appear.
        drafts = [attempt for attempt in chain if not self._without_drafts(attempt.new)]
        emptied = not drafts
        for attempt in reversed(chain):
            if attempt.since >= self._before or not self._is_at(name):
                break
            emptied = self._replaced(attempt, held) and emptied
            if emptied and not self._dry_run:
                self._publications.forget(held, attempt.number)

    def _is_at(self, name: str) -> bool:
        """Whether the partition still lies where it lay when this run began."""
        return self._places is not None and self._places.of(name) == self._present[name]

    def _failed(self, attempt: Publication) -> bool:
        """Whether an attempt that is not in force may be ended as failed, or has been."""
        if attempt.state == "open":
            return self._dry_run or self._publications.end(attempt, "abandoned")
        if attempt.state == "switching":
            # It died before the switch, or was taken back by hand. If both directories are as they
            # were, the new one holds nothing but copies. Of another table, nothing is known.
            mine = attempt.table == self._table or not (attempt.table or self.report.shared)
            same = mine and self._present.get(attempt.partition) == attempt.old
            same = same and self._holds(attempt.old, attempt.covered, exactly=False)
            if not same or not self._holds(attempt.new, attempt.files, exactly=True):
                return False
            if not self._dry_run:
                self._publications.undo(attempt)
        return True

    def _holds(self, directory: str, files: Sequence[FileState], *, exactly: bool) -> bool:
        found = states_of(self._storage.list_all(directory, recursive=True))
        now = {state.path: state for state in found}
        same = all(s.path in now and same_state(s, now[s.path]) for s in files)
        return same and (not exactly or len(now) == len(files))

    def _attempt(self, attempt: Publication) -> bool:
        """Deletes what a failed attempt has written; True if nothing is left.

        Nobody else ever knew the directory. If it was in force for a moment, files that are not
        recorded stay.
        """
        recorded = {state.path: state for state in attempt.files}
        left = False
        for state in states_of(self._storage.list_all(attempt.new, recursive=True)):
            known = recorded.get(state.path)
            ours = attempt.state in ("open", "abandoned")
            ours = ours or (known is not None and same_state(known, state))
            if ours and state.modified < self._before and self._delete(state):
                self.report.attempts += 1
            else:
                left = True
        return not left

    def _without_drafts(self, directory: str) -> bool:
        """Deletes drafts in a directory that is or was in force; True if none is left."""
        before, left = min(self._before, now_micros() - _DEAD), False
        for state in states_of(self._storage.list_all(directory, recursive=False)):
            if not _DRAFT.fullmatch(state.path.rpartition("/")[2]):
                continue
            if state.modified < before and self._delete(state):
                self.report.attempts += 1
            else:
                left = True
        return not left

    def _replaced(self, attempt: Publication, held: Records) -> bool:
        """Deletes the files of an old directory whose rows the new one has; True if none is left.

        A late file has the retention to itself.
        """
        late = [state for state in held.late if state.modified < self._before]
        covered = by_path([*attempt.covered, *late])
        found = self._storage.list_all(attempt.old, recursive=self._recursive)
        listed = {state.path: state for state in states_of(data_files(found, attempt.old))}
        ours = [state for state in listed.values() if knows(covered, state)]
        if ours and self.report.unreadable:
            self.report.withheld += len(ours)
            return False
        if ours and attempt.missing is None and not self._dry_run:
            self._publications.clean(attempt, held.missing(attempt, listed))
            if not self._is_at(attempt.partition):  # it was switched back since
                return False
        gone = [state for state in ours if self._delete(state)]
        self.report.replaced += len(gone)
        return len(gone) == len(listed)

    def _delete(self, state: FileState) -> bool:
        path = state.path
        if path in self._spared or relative(self._home, path) is None or self._is_read(path):
            return False
        self.report.bytes += state.size
        if not self._dry_run:
            self._storage.delete(path)
        return True

    def _is_read(self, path: str) -> bool:
        """Whether an engine that lists a location of the metastore may read a file.

        Also if a link leads out of the table: nobody knows who reads what lies there.
        """
        parent, _, name = path.rpartition("/")
        if parent not in self._real:
            self._real[parent] = resolved(parent)
        inner, directory = f"/{name}", self._real[parent]
        ours = resolved(self._home)
        while lies_in(directory, ours):
            if directory in self._locations:
                return "/." not in inner and "/_" not in inner
            directory, _, name = directory.rpartition("/")
            inner = f"/{name}{inner}"
        return not lies_in(self._real[parent], ours)


def _age(before: int) -> float:
    return max(0.0, (now_micros() - before) / 1e6)
