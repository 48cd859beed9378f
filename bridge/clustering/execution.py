"""Executes plans: groups are rewritten side by side, and one generation of the index commits them.

A run that dies is repeated: groups that were recorded as done are not done again, and files that
nobody recorded are never read. Several runs of one plan may race; one commits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from bridge.clustering import registry
from bridge.clustering.entries import Gathered, Ready, ReadyCollector, reading_of
from bridge.clustering.plan import ClusteringPlan, PlannedGroup
from bridge.clustering.rewriting.rewrite import (
    CountFiles,
    Effort,
    GroupResult,
    GroupTask,
    delete_files,
    rewrite_group,
)
from bridge.clustering.rewriting.shuffle import Room
from bridge.clustering.timeline import Timeline, no_plan, order_of
from bridge.formats.parquet.bloom_types import stored_types
from bridge.index.building.collect import Collector, Reading
from bridge.index.building.draft import write_entries
from bridge.index.building.listed import Listed
from bridge.index.generations.manifest import Manifest, Shard
from bridge.index.generations.replacements import (
    DIRECTORY,
    FileState,
    Replacement,
    clustered_now,
    commit_replacements,
    is_clustered,
    location_before_publishing,
)
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.definition import IndexSettings
from bridge.kernel.errors import InvalidRequest, StorageFailure, StorageFull
from bridge.kernel.threads import Threads
from bridge.kernel.types import Field
from bridge.storage.port import FileStat, FileTable, Storage, same_state
from bridge.storage.reading.ahead import ask_all
from bridge.storage.uri import is_unusual, join, relative
from bridge.table.model import Catalog, CatalogTable

Progress = Callable[[int, int], None]
Judge = Callable[
    [Sequence[tuple[PlannedGroup, Sequence[FileState]]], tuple[Shard, ...]], dict[int, str]
]
"""Gets groups with their new files, and the entries of these. Says why queries are better off with
the old files, by the number of each group of which they are."""
_WAITING = 4
"""Groups of a remote store that a thread has under way."""
_LASTING = ("UNSUPPORTED", "VERIFICATION", "FileCorrupt", "FILE_CORRUPT", "Arrow")
"""How reasons begin that stay as long as the files do."""


class GroupsFailed(StorageFailure):
    """Storage failed some groups.

    Attributes:
        reasons: by the number of each group.
    """

    def __init__(self, errors: Mapping[int, StorageFailure]) -> None:
        first = next(iter(errors.values()))
        super().__init__(first.message, first.hint)
        self.reasons = {id: f"{each.code}: {each.message}" for id, each in errors.items()}


class Rewriter(Protocol):
    """Distributes the rewriting of groups over threads or machines."""

    def rewrite(
        self, tasks: Sequence[GroupTask], seen: CountFiles
    ) -> Generator[GroupResult, None, None]:
        """Yields the results in any order; each task appears once.

        Args:
            seen: is told of old files as they are read, as far as it is known here.

        Errors:
            GroupsFailed: storage failed some groups; all other results were yielded.
            StorageFull.
        """
        ...


class ThreadRewriter:
    """Rewrites in this process.

    Args:
        effort: of all groups together; those that run at the same time share its threads and its
            memory. Of those in a remote store more run than there are threads, as most of them wait
            for answers.
    """

    def __init__(self, storage: Storage, effort: Effort | None = None) -> None:
        self._storage, self._effort = storage, effort or Effort(threads=2)

    def rewrite(
        self, tasks: Sequence[GroupTask], seen: CountFiles = lambda count: None
    ) -> Generator[GroupResult, None, None]:
        remote = bool(tasks) and self._storage.is_remote(tasks[0].directory)
        at_once = max(1, min(self._effort.threads * (_WAITING if remote else 1), len(tasks)))
        effort = replace(self._effort, threads=max(1, self._effort.threads // at_once))
        room = Room(effort.memory)
        running: dict[Future[GroupResult], int] = {}
        try:
            with Threads(at_once, "rewrite") as pool:
                for task in tasks:
                    each = pool.submit(run_task, task, self._storage, effort, room, seen)
                    running[each] = task.id
                yield from yield_results(running)
        finally:
            for each in running:  # that nobody has asked for
                if not each.cancelled() and each.exception() is None:
                    delete_files(self._storage, [state.path for state in each.result().new])


def yield_results(
    running: dict[Future[GroupResult], int], meanwhile: Callable[[], None] | None = None
) -> Generator[GroupResult, None, None]:
    """Results as they come. Groups that wait are not begun once the caller stops.

    Args:
        running: the number of each group. Is emptied, so that no result is kept.
        meanwhile: is called every second.

    Errors:
        GroupsFailed: raised after the results of all other groups.
        Any other error of a group, at once.
    """
    failed: dict[int, StorageFailure] = {}
    try:
        while running:
            pause = None if meanwhile is None else 1.0
            ended = wait(running, pause, FIRST_COMPLETED).done
            if meanwhile is not None:
                meanwhile()
            for each in ended:
                group = running.pop(each)
                try:
                    yield each.result()
                except StorageFailure as error:
                    failed[group] = error
        if failed:
            raise GroupsFailed(failed)
    finally:
        for each in running:
            each.cancel()


def run_task(
    task: GroupTask, storage: Storage, effort: Effort, room: Room, seen: CountFiles
) -> GroupResult:
    """Rewrites one group in the layout that the task names."""
    layout = registry.layout(task.layout, len(task.columns))
    return rewrite_group(task, storage, layout, effort, room, seen)


class _FilesDone:
    """How many old files of a plan are read, or belong to groups that have ended.

    All of them count only once the last group has ended, since new files are written after that.
    """

    def __init__(self, plan: ClusteringPlan, progress: Progress | None) -> None:
        self._sizes = {group.id: len(group.files) for group in plan.groups}
        self._total = sum(self._sizes.values())
        self._seen = self._ended = 0
        self._progress, self._lock = progress or (lambda done, total: None), threading.Lock()

    def add(self, count: int) -> None:
        """So many more files are read."""
        with self._lock:
            self._seen += count
            self._tell()

    def end(self, groups: Collection[int]) -> None:
        """These groups have ended."""
        with self._lock:
            self._ended = sum(self._sizes[id] for id in groups)
            self._seen = max(self._seen, self._ended)
            self._tell()

    def _tell(self) -> None:
        most = self._total - (self._ended < self._total)
        self._progress(min(self._seen, most), self._total)


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a run did.

    Attributes:
        state: of the plan after it: ``completed``, ``cancelled`` or ``rejected``.
        generation: of the index that completed the plan; -1 without one.
        resumed: groups that an earlier run had done.
        rejected: number and reason of each group whose old files stay.
        aside: number of the group, path and reason of each file that stays alone.
    """

    instant: str
    state: str
    generation: int
    groups: int
    resumed: int
    old_files: int
    new_files: int
    rows: int
    rejected: tuple[tuple[int, str], ...]
    old_bytes: int = 0
    new_bytes: int = 0
    aside: tuple[tuple[int, str, str], ...] = ()


def execute(
    plan: ClusteringPlan,
    table: CatalogTable,
    store: IndexStore,
    timeline: Timeline,
    *,
    catalog: Catalog,
    rewriter: Rewriter,
    collector: Collector,
    progress: Progress | None = None,
    judge: Judge | None = None,
) -> RunReport:
    """Executes a plan, or what is left of it.

    Args:
        judge: is asked before the commit; None: nobody is.
        progress: gets old files that are done, and how many there are.
        catalog: tells where the partitions are. A plan is a file that others can write: nothing
            outside of them is read.

    Errors:
        InvalidRequest: it was cancelled or its records are gone, or the table has moved since.
        GenerationNotFound, IndexCorrupt: the index is gone or damaged; build it, then run again.
        GroupsFailed: storage failed each group that could be rewritten; run it again. If it failed
            some only, these are rejected, and the others commit.
        IndexConflict, StorageFailure, StorageFull: run it again.
    """
    if plan.location != table.location:
        raise InvalidRequest(
            f"plan {plan.instant} is of {plan.location}, and {table.name} lies at {table.location}",
            "cancel it and schedule another one",
        )
    held = _committed(store, plan.instant)
    if held is None and timeline.outcome(plan.instant) in ("cancelled", "rejected"):
        raise InvalidRequest(
            f"plan {plan.instant} was {timeline.outcome(plan.instant)}",
            "schedule another one: skipbridge cluster schedule",
        )
    with Gathered() as gathered:
        run = _Run(plan, table, store, timeline, gathered)
        if held is not None:
            return run.report("completed", held.generation)
        timeline.begin(plan.instant)
        outside = _outside(plan, table, catalog, clustered_now(store))
        outside.update(_cancelled(timeline, plan))
        outside.update(run.rewrite(rewriter, outside, progress))
        run.check(outside)
        if not run.good():
            timeline.reject(plan.instant)
            return run.report("rejected")
        ended = timeline.end(plan.instant, "committing")
        if ended != "committing":
            return run.report(ended)
        # Clean deletes how a plan ended last: if that was gone, the request is.
        if not timeline.is_recorded(plan.instant):
            raise no_plan(plan.instant)
        shards = run.index(collector)
        if judge is not None:
            run.ask(judge, shards)
        good = run.good()
        if not good:
            timeline.reject(plan.instant)
            return run.report("rejected")
        replacements = [Replacement(group.partition, group.files, done.new) for group, done in good]
        manifest = commit_replacements(store, table, plan.instant, replacements, shards)
        return run.report("completed", manifest.generation)


class _Run:
    """The groups of a plan in one run, and what has become of them."""

    def __init__(
        self,
        plan: ClusteringPlan,
        table: CatalogTable,
        store: IndexStore,
        timeline: Timeline,
        gathered: Gathered,
    ) -> None:
        self._plan, self._table, self._store, self._timeline = plan, table, store, timeline
        self._gathered, self._reading = gathered, _reading(plan, store)
        known = timeline.results(plan.instant, [group.id for group in plan.groups])
        self._results = {id: result for id, result in known.items() if result is not None}
        self._resumed = len(self._results)

    def good(self) -> list[tuple[PlannedGroup, GroupResult]]:
        """The groups that are done and not rejected, without files that were set aside."""
        done = [(g, self._results[g.id]) for g in self._plan.groups if g.id in self._results]
        return [(replace(g, files=r.without_aside(g.files)), r) for g, r in done if not r.rejected]

    def reject(self, reasons: Mapping[int, str], *, aside: bool = True) -> None:
        """The old files of groups stay.

        Args:
            aside: False: nothing is said of files that were set aside.
        """
        for id, reason in reasons.items():
            left = self._results[id].aside if aside else ()
            self._results[id] = GroupResult(id, rejected=reason, aside=left)

    def rewrite(
        self, rewriter: Rewriter, outside: Collection[int], progress: Progress | None
    ) -> dict[int, str]:
        """Rewrites the groups that are left. Returns why storage failed some.

        Args:
            outside: groups that are not rewritten.

        Errors:
            GroupsFailed: no group is good.
        """
        missing = [
            _task(self._plan, group, self._table, self._reading)
            for group in self._plan.groups
            if group.id not in self._results and group.id not in outside
        ]
        files = _FilesDone(self._plan, progress)
        files.end(self._results)
        try:
            # Closed before an error is handled: whoever cleans up finds all that was written.
            with closing(rewriter.rewrite(missing, files.add)) as rewritten:
                for result in rewritten if missing else ():
                    self._results[result.id] = _record(
                        self._store.storage, self._timeline, self._plan, result, self._gathered
                    )
                    files.end(self._results)
        except GroupsFailed as error:
            if not self.good():
                raise
            return error.reasons
        return {}

    def check(self, outside: Mapping[int, str]) -> None:
        """Rejects groups whose files are not as they were, and notes files that stay refused.

        Args:
            outside: why groups were not rewritten.
        """
        self.reject(outside, aside=False)
        good = self.good()
        now = _states_now(self._store.storage, [f for g, r in good for f in (*g.files, *r.new)])
        cancelled = _cancelled(self._timeline, self._plan)
        problems = {
            g.id: _misplaced(self._plan, r) or _outdated(now, (*g.files, *r.new)) for g, r in good
        }
        self.reject({id: problem for id, problem in problems.items() if problem})
        self.reject(cancelled, aside=False)
        refused: dict[FileState, str] = {}
        for group in self._plan.groups:
            refused.update(_refused(group, self._results[group.id]))
        if refused:
            self._timeline.refuse(self._plan.instant, refused)

    def index(self, collector: Collector) -> tuple[Shard, ...]:
        """The entries of the new files. Rejects groups with files that could not be indexed."""
        good = self.good()
        ready = ReadyCollector(collector, self._reading, _ready(good, self._gathered))
        shards, failed = _entries(self._table, self._store, ready, good)
        problems = {g.id: [failed[s.path] for s in r.new if s.path in failed] for g, r in good}
        self.reject({id: found[0] for id, found in problems.items() if found})
        return shards

    def ask(self, judge: Judge, shards: tuple[Shard, ...]) -> None:
        """Rejects groups with which queries are worse off."""
        good = self.good()
        dearer = judge([(group, done.new) for group, done in good], shards) if good else {}
        if dearer:
            reasons = {f: dearer[g.id] for g, _ in good if g.id in dearer for f in g.files}
            self._timeline.refuse(self._plan.instant, reasons, dearer=order_of(self._plan))
            self.reject(dearer)

    def report(self, state: str, generation: int = -1) -> RunReport:
        good = self.good()
        every = sorted(self._results.items())
        return RunReport(
            self._plan.instant,
            state,
            generation,
            len(self._plan.groups),
            self._resumed,
            sum(len(group.files) for group, _ in good),
            sum(len(done.new) for _, done in good),
            sum(done.rows for _, done in good),
            tuple((id, result.rejected) for id, result in every if result.rejected),
            sum(group.num_bytes for group, _ in good),
            sum(file.size for _, done in good for file in done.new),
            tuple((id, *each) for id, result in every for each in result.aside),
        )


def _refused(group: PlannedGroup, result: GroupResult) -> dict[FileState, str]:
    """The files of a group that later plans leave out as long as they stay as they are, and why."""
    if result.aside:
        why = dict(result.aside)
        return {file: why[file.path] for file in group.files if file.path in why}
    lasting = result.rejected.startswith(_LASTING)
    return dict.fromkeys(group.files, result.rejected) if lasting else {}


def _committed(store: IndexStore, instant: str) -> Manifest | None:
    held = store.latest()
    if held is None or held.clustering is None or instant not in held.clustering.instants:
        return None
    return held


def _outside(
    plan: ClusteringPlan,
    table: CatalogTable,
    catalog: Catalog,
    clustered: Mapping[str, Replacement],
) -> dict[int, str]:
    """Why groups are not rewritten: their files are not where their partition is today.

    Args:
        clustered: the group of each file that replaces others.
    """
    names = list(dict.fromkeys(group.partition for group in plan.groups))
    with closing(catalog.partitions(table, names)) as batches:
        location = {p.name: p.location for batch in batches for p in batch.partitions}
    found = {}
    for group in plan.groups:
        root = location.get(group.partition)
        if root is None:
            found[group.id] = f"FILE_CHANGED: there is no partition {group.partition}"
            continue
        for state in group.files:
            held = clustered.get(state.path)
            if held is not None and (
                held.partition == group.partition  # or it was renamed
                or all(relative(root, old.path) is not None for old in held.old)
            ):
                continue
            inner = relative(root, state.path)
            if inner is not None and inner.partition("/")[0] == DIRECTORY:
                found[group.id] = f"FILE_CHANGED: {state.path} is not read any more"
            elif inner is None or is_unusual(f"/{inner}"):
                found[group.id] = f"FILE_CHANGED: {state.path} is not in {root}"
    return found


def _cancelled(timeline: Timeline, plan: ClusteringPlan) -> dict[int, str]:
    """Why groups are not committed: a writer is about to replace files of them."""
    return dict.fromkeys(
        timeline.cancelled_groups(plan.instant), "CANCELLED: a writer replaces files of it"
    )


def _misplaced(plan: ClusteringPlan, result: GroupResult) -> str:
    """Why the recorded new files of a group are not its own; empty if they are."""
    for state in result.new:
        if not is_clustered(state.path, plan.location):
            return f"FILE_UNREADABLE: {state.path} is not in {DIRECTORY}"
    return ""


def _reading(plan: ClusteringPlan, store: IndexStore) -> Reading:
    """What the index needs of the new files."""
    held = store.latest()
    settings = IndexSettings() if held is None else held.settings
    return reading_of(settings, sum(group.outputs for group in plan.groups))


def _ready(good: Sequence[tuple[PlannedGroup, GroupResult]], gathered: Gathered) -> Ready:
    """What was gathered of new files in their tasks; all others are read once more."""
    return [(partial(gathered.get, result.id), result.new) for _, result in good]


def _task(
    plan: ClusteringPlan, group: PlannedGroup, table: CatalogTable, reading: Reading
) -> GroupTask:
    return GroupTask(
        group.id,
        group.partition,
        group.files,
        group.outputs,
        plan.layout,
        plan.columns,
        join(
            location_before_publishing(plan.location),
            "/".join(filter(None, (DIRECTORY, plan.instant, group.partition))),
        ),
        plan.compression,
        plan.row_group_bytes,
        group.format,
        plan.bloom,
        stored_types(Field(column.name, column.type) for column in table.columns),
        reading,
    )


def _record(
    storage: Storage,
    timeline: Timeline,
    plan: ClusteringPlan,
    result: GroupResult,
    gathered: Gathered,
) -> GroupResult:
    try:
        created = timeline.record_group(plan.instant, result)
    except StorageFull:  # nobody will read them, and a record of the end needs room
        delete_files(storage, [state.path for state in result.new])
        raise
    if created:
        if result.gathered:
            gathered.put(result.id, result.gathered)
        return replace(result, gathered=b"")
    other = timeline.result(plan.instant, result.id)
    return result if other is None else other


def _states_now(storage: Storage, files: Sequence[FileState]) -> dict[str, FileStat | None]:
    """The present states of files by path, asked for side by side."""
    paths = sorted({state.path for state in files})
    if not paths:
        return {}
    return dict(zip(paths, ask_all(storage, storage.stat, paths, paths[0]), strict=True))


def _outdated(now: Mapping[str, FileStat | None], files: Iterable[FileState]) -> str:
    """Why the files of a group are no longer as they were; empty if they are."""
    for state in files:
        stat = now[state.path]
        if stat is None:
            return f"FILE_CHANGED: {state.path} was deleted"
        if not same_state(state, stat):
            return f"FILE_CHANGED: {state.path} was written again"
    return ""


def _entries(
    table: CatalogTable,
    store: IndexStore,
    collector: Collector,
    good: Sequence[tuple[PlannedGroup, GroupResult]],
) -> tuple[tuple[Shard, ...], dict[str, str]]:
    """The entries of the new files, and why files could not be read, by path."""
    held = store.latest()
    settings = None if held is None else held.settings
    pairs = sorted(
        ((state, group) for group, result in good for state in result.new),
        key=lambda pair: pair[0].path.encode(),
    )
    states = [state for state, _ in pairs]
    etags = [state.etag for state in states]
    files = FileTable(
        pa.array([state.path for state in states], pa.large_string()),
        np.array([state.size for state in states], np.int64),
        np.array([state.modified for state in states], np.int64),
        pa.array(etags, pa.large_string()) if any(etags) else None,
    )
    formats = sorted({group.format for _, group in pairs})
    listed = Listed(
        files,
        pa.array([group.partition for _, group in pairs], pa.large_string()),
        tuple(formats),
        np.array([formats.index(group.format) for _, group in pairs], np.int32),
    )
    shards, failed = write_entries(table, listed, store, collector=collector, settings=settings)
    return shards, dict(failed)
