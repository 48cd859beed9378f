"""Cleaning: deletes what only clustering and publishing have written, after a retention.

Deleted are: new files of ended plans that no generation's replacements name; what attempts to
publish that failed have written; records of plans that ended, see `old_plans`. Old generations of
the index go first. Files that writers have written are never deleted: `publication.originals` lists
those that nobody needs.

The law: nothing is deleted that a generation's replacements, a pending plan or a location of the
metastore reads; nothing that no record names; nothing outside of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bridge.clustering.old_plans import OldPlans
from bridge.clustering.publication.places import Places, lies_in
from bridge.clustering.publication.switches import Switch, Switches
from bridge.clustering.timeline import PlanState, Timeline
from bridge.index.generations.manifest import Manifest
from bridge.index.generations.replacements import (
    DIRECTORY,
    FileState,
    location_before_publishing,
    read_replacements,
    states_of,
)
from bridge.index.generations.store import IndexStore, now_micros
from bridge.kernel.errors import GenerationNotFound
from bridge.storage.local_disk.local import resolve_links
from bridge.storage.port import same_state
from bridge.storage.uri import join, relative
from bridge.table.model import CatalogTable

_INSTANT = re.compile(r"\d{17}")


@dataclass(slots=True)
class CleanReport:
    """What was deleted, or would be.

    Attributes:
        generations: of the index.
        rewritten: new files that nobody reads, of plans that ended.
        attempts: files of attempts to publish that failed.
        plans: that ended, of which the records were deleted.
        bytes: of all these but the generations and the records.
        unknown: plans below the table that this index does not know; they are left alone.
        shared: other tables that lie in the same place. What they may read is left alone.
    """

    generations: int = 0
    rewritten: int = 0
    attempts: int = 0
    plans: int = 0
    bytes: int = 0
    unknown: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)


class Cleaner:
    """Cleans one table.

    Args:
        places: None for a table that no metastore knows: it cannot have been published.
        before: microseconds since the epoch: what ended later is kept.
        records_before: the same of the records of plans; None: as all else.
        dry_run: only tells.
    """

    def __init__(
        self,
        table: CatalogTable,
        store: IndexStore,
        places: Places | None,
        before: int,
        *,
        records_before: int | None = None,
        dry_run: bool = False,
    ) -> None:
        self._storage, self._store, self._places = store.storage, store, places
        self._records_before = before if records_before is None else min(before, records_before)
        self._before, self._dry_run = before, dry_run
        self._home = location_before_publishing(table.location)
        self._timeline = Timeline(store.storage, store.root)
        self._states: list[PlanState] = []
        self._switches = Switches(store.storage, table.location)
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
        records = self._switches.load()
        self._states = self._timeline.states(newest)
        kept = self._generations()
        self._spare(kept)
        self._present = {} if self._places is None else self._places.all()
        self._locations = {resolve_links(place) for place in self._present.values()}
        if records:
            self._look_for_others()
        with_files = self._rewritten()
        for name, held in records.items():
            self._failed(name, held)
        old = OldPlans(self._storage, self._timeline, self._records_before, dry_run=self._dry_run)
        self.report.plans = old.forget(self._states, with_files)
        return self.report

    def _look_for_others(self) -> None:
        """Collects other tables and partitions of them in the same place."""
        ours = resolve_links(self._home)

        def near(location: str) -> bool:
            return lies_in(resolve_links(location), ours)

        for other in [] if self._places is None else self._places.others(near):
            if other.partitions or near(other.location):
                self.report.shared.append(other.name)
            self._locations |= {resolve_links(each) for each in (other.location, *other.partitions)}

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

    def files_in_use(self) -> set[str]:
        """The files that generations and plans that wait name. Deletes nothing."""
        newest = self._store.latest()
        self._states = self._timeline.states(newest)
        numbers = self._store.generations()
        self._spare(self._store.manifest(number) for number in numbers)
        return self._spared

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

    def _failed(self, name: str, held: Sequence[Switch]) -> None:
        """Directories of attempts that never were in force."""
        present = self._present.get(name)
        in_use = {present, *(each.old for each in held)}
        for each in held:
            if each.back or each.new in in_use or each.since >= self._before:
                continue
            if each.state == "open" and not self._dry_run:
                self._switches.abandon(each)  # who still works at it finds out
                continue  # and may have made it ready just now
            if each.state not in ("open", "abandoned", "undone"):
                continue
            wrote = {state.path: state for state in each.wrote}
            for state in states_of(self._storage.list_all(each.new, recursive=True)):
                known = wrote.get(state.path)
                ours = not each.ended or (known is not None and same_state(known, state))
                if ours and state.modified < self._before and self._delete(state):
                    self.report.attempts += 1

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
            self._real[parent] = resolve_links(parent)
        inner, directory = f"/{name}", self._real[parent]
        ours = resolve_links(self._home)
        while lies_in(directory, ours):
            if directory in self._locations:
                return "/." not in inner and "/_" not in inner
            directory, _, name = directory.rpartition("/")
            inner = f"/{name}{inner}"
        return not lies_in(self._real[parent], ours)


def _age(before: int) -> float:
    return max(0.0, (now_micros() - before) / 1e6)
