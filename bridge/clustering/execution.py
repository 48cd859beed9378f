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
    with Gathered() as gathered:
        return _execute(
            plan, table, store, timeline, catalog, rewriter, collector, progress, judge, gathered
        )


def _execute(
    plan: ClusteringPlan,
    table: CatalogTable,
    store: IndexStore,
    timeline: Timeline,
    catalog: Catalog,
    rewriter: Rewriter,
    collector: Collector,
    progress: Progress | None,
    judge: Judge | None,
    gathered: Gathered,
) -> RunReport:
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
    known = timeline.results(plan.instant, [group.id for group in plan.groups])
    results = {id: result for id, result in known.items() if result is not None}
    resumed = len(results)
    if held is not None:
        return _report(plan, "completed", held.generation, resumed, results)
    timeline.begin(plan.instant)
    outside = _outside(plan, table, catalog, clustered_now(store))
    outside.update(_cancelled(timeline, plan))
    reading = _reading(plan, store)
    missing = [
        _task(plan, group, table, reading)
        for group in plan.groups
        if group.id not in results and group.id not in outside
    ]
    files = _FilesDone(plan, progress)
    files.end(results)
    try:
        # Closed before an error is handled: whoever cleans up finds all that was written.
        with closing(rewriter.rewrite(missing, files.add)) as rewritten:
            for result in rewritten if missing else ():
                results[result.id] = _record(store.storage, timeline, plan, result, gathered)
                files.end(results)
    except GroupsFailed as error:
        if not any(not result.rejected for result in results.values()):
            raise
        outside.update(error.reasons)
    now = _states_now(
        store.storage,
        [f for g in plan.groups if g.id not in outside for f in (*g.files, *results[g.id].new)],
    )
    outside.update(_cancelled(timeline, plan))
    good: list[tuple[PlannedGroup, GroupResult]] = []
    for group in plan.groups:
        problem = outside.get(group.id, "")
        if not problem:
            result = results[group.id]
            problem = result.rejected or _misplaced(plan, result)
            problem = problem or _outdated(now, (*result.without_aside(group.files), *result.new))
        if problem:
            aside = () if group.id in outside else result.aside
            results[group.id] = GroupResult(group.id, rejected=problem, aside=aside)
        else:
            good.append((replace(group, files=result.without_aside(group.files)), result))
    refused: dict[FileState, str] = {}
    for group in plan.groups:
        refused.update(_refused(group, results[group.id]))
    if refused:
        timeline.refuse(plan.instant, refused)
    if not good:
        timeline.reject(plan.instant)
        return _report(plan, "rejected", -1, resumed, results)
    ended = timeline.end(plan.instant, "committing")
    if ended != "committing":
        return _report(plan, ended, -1, resumed, results)
    # Clean deletes how a plan ended last: if that was gone, the request is.
    if not timeline.is_recorded(plan.instant):
        raise no_plan(plan.instant)
    ready = ReadyCollector(collector, reading, _ready(good, gathered))
    shards, failed_files = _entries(table, store, ready, good)
    for group, result in list(good):
        problem = next((failed_files[s.path] for s in result.new if s.path in failed_files), "")
        if problem:  # they would not be indexed: the old files are
            results[group.id] = GroupResult(group.id, rejected=problem, aside=result.aside)
            good.remove((group, result))
    dearer: dict[int, str] = {}
    if judge is not None and good:
        dearer = judge([(group, result.new) for group, result in good], shards)
    if dearer:
        reasons = {f: dearer[g.id] for g, _ in good if g.id in dearer for f in g.files}
        timeline.refuse(plan.instant, reasons, dearer=order_of(plan))
        for group, result in list(good):
            if group.id in dearer:
                problem = dearer[group.id]
                results[group.id] = GroupResult(group.id, rejected=problem, aside=result.aside)
                good.remove((group, result))
    if not good:
        timeline.reject(plan.instant)
        return _report(plan, "rejected", -1, resumed, results)
    replacements = [Replacement(group.partition, group.files, result.new) for group, result in good]
    manifest = commit_replacements(store, table, plan.instant, replacements, shards)
    return _report(plan, "completed", manifest.generation, resumed, results)


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


def _report(
    plan: ClusteringPlan, state: str, generation: int, resumed: int, results: dict[int, GroupResult]
) -> RunReport:
    good = [
        replace(g, files=results[g.id].without_aside(g.files))
        for g in plan.groups
        if g.id in results and not results[g.id].rejected
    ]
    return RunReport(
        plan.instant,
        state,
        generation,
        len(plan.groups),
        resumed,
        sum(len(g.files) for g in good),
        sum(len(results[g.id].new) for g in good),
        sum(results[g.id].rows for g in good),
        tuple((id, r.rejected) for id, r in sorted(results.items()) if r.rejected),
        sum(g.num_bytes for g in good),
        sum(state.size for g in good for state in results[g.id].new),
        tuple((id, *each) for id, r in sorted(results.items()) for each in r.aside),
    )
