"""Clusters a table: schedules plans, executes them, shows and cancels them."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from bridge.clustering.commands.advice import (
    NO_INSTANT,
    Advisor,
    TableListing,
)
from bridge.clustering.execution import Rewriter, RunReport, ThreadRewriter, execute
from bridge.clustering.hudi import run as cluster_hudi
from bridge.clustering.plan import ClusteringPlan, PlannedGroup
from bridge.clustering.planning.outlook import outlook
from bridge.clustering.planning.scheduling import (
    Strategy,
    alike_plans,
    check_table,
    make_plan,
    pending_files,
    with_usual,
)
from bridge.clustering.rewriting.rewrite import Effort, GroupResult
from bridge.clustering.timeline import PlanState, Timeline, new_instant, no_plan
from bridge.index.building.collect import Collector
from bridge.index.generations.manifest import Shard
from bridge.index.generations.replacements import DIRECTORY, FileState, location_before_publishing
from bridge.index.generations.store import IndexStore
from bridge.indexing.table import Progress, Say, collector_of, index_table, open_indexed_table
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    BridgeError,
    FileCorrupt,
    FileUnreadable,
    InvalidRequest,
    StorageFull,
)
from bridge.runtime.compose import storage_options
from bridge.runtime.spark_log_filter import filter_spark_log
from bridge.storage.port import Storage
from bridge.storage.uri import join
from bridge.table.model import CatalogTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMED = 10


def schedule(
    config: Config,
    table: str,
    strategy: Strategy,
    say: Say,
    *,
    dry: bool = False,
    refresh: bool = True,
    begin: bool = False,
    local: bool = False,
    before: Sequence[str] = (),
    apart: Collection[FileState] = (),
    judged: bool = True,
    listing: TableListing | None = None,
    indexing: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """Plans what is worth a rewrite, and saves the plan. The index is brought up to date first.

    Args:
        refresh: False takes the index as it is.
        begin: the caller executes the plan at once. If it dies before, the plan counts as begun.
        local: and does so without Spark, which Hudi's plans need.
        before: instants whose files, old and new ones, are left out.
        apart: files that are left out besides.
        judged: leaves out files of which queries would cost more in this order, as measured.
        listing: of the caller, which makes several plans; None: the table is listed.
        indexing: gets files that are indexed, and how many there are.
        dry: only tells what the plan would bring; nothing is written, the index neither.

    Returns:
        The plan as plain values, and how many groups and files are left for later plans;
        ``instant`` is None if there is nothing to do. ``left_out``: files that would be planned,
        had earlier plans not refused them, and why. ``damaged``: why plans cannot be executed, by
        instant. With ``dry``, what a whole run would do by partition.

    Errors:
        UnsupportedTable, ColumnNotFound, InvalidRequest, InvalidConfiguration.
        IndexConflict, StorageFailure and others.
    """
    listing = listing or TableListing()
    with listing.open_table(config, table) as (storage, _, found, _):
        if cluster_hudi.is_hudi(found):
            _refuse(found, {"--dry-run": dry, "--local": local})
            return cluster_hudi.schedule(config, storage, found, strategy)
        check_table(found)
    strategy = with_usual(strategy)
    if refresh and not dry:
        index_table(config, table, local=True, progress=indexing, say=say)
    with listing.open_table(config, table) as (storage, catalog, found, store):
        advisor = Advisor.open(config, storage, catalog, found, store, listing=listing)
        timeline = Timeline(storage, store.root)
        waiting = timeline.list_unfinished(advisor.index.manifest)
        for each, reason in waiting.damaged.items():
            say(
                f"{table}: plan {each} is left out: {reason}\n"
                f"  -> skipbridge cluster cancel {shlex.quote(table)} {each} removes it"
            )
        pending = pending_files(waiting)
        pending += [f for each in before for g in timeline.plan(each).groups for f in g.files]
        pending += apart
        chosen: dict[str, Any] = {"damaged": dict(waiting.damaged)}
        alike: set[str] = set()
        if strategy.depth is not None:
            alike = alike_plans(timeline, advisor.index.manifest, strategy)
        unlimited = replace(strategy.limits, most_groups=sys.maxsize)
        every = replace(strategy, limits=unlimited)
        order = strategy.layout, strategy.columns, strategy.limits.target
        refused = {} if strategy.again else timeline.list_refused(order if judged else None)
        chosen["left_out"] = _left_out(found, advisor, every, pending, refused)
        if chosen["left_out"]:
            say(
                f"{table}: {len(chosen['left_out'])} files are left out, since an earlier plan "
                "could not keep them exactly, or not cheaper to read; --again tries once more"
            )
        for each in chosen["left_out"][:_NAMED]:
            say(f"left where it is: {each['path']}: {each['reason']}")
        pending += refused
        while True:
            plan = make_plan(
                new_instant(),
                found,
                advisor.listed,
                advisor.index,
                every,
                pending,
                alike,
                before,
            )
            if dry:
                chosen["by_partition"] = [
                    asdict(each) for each in outlook(plan, advisor.listed, advisor.index)
                ]
                return {**_planned(plan), **chosen}
            most = strategy.limits.most_groups
            left = plan.groups[most:]
            chosen["left_groups"] = len(left)
            chosen["left_files"] = sum(len(group.files) for group in left)
            plan = replace(plan, groups=plan.groups[:most])
            if begin and plan.groups:
                timeline.begin(plan.instant)
            if not plan.groups or timeline.request(plan):
                return {**_planned(plan), **chosen}


def _left_out(
    table: CatalogTable,
    advisor: Advisor,
    strategy: Strategy,
    pending: Sequence[FileState],
    refused: Mapping[FileState, str],
) -> list[dict[str, str]]:
    """Those of the refused files that are still there as they were, and worth a rewrite."""
    if not refused:
        return []
    limits = replace(strategy.limits, fewest_files=1)
    every = replace(strategy, grouping="size", filters=(), limits=limits)
    plan = make_plan(NO_INSTANT, table, advisor.listed, advisor.index, every, pending)
    files = [file for group in plan.groups for file in group.files if file in refused]
    return [{"path": file.path, "reason": refused[file]} for file in files]


def _refuse(found: CatalogTable, given: Mapping[str, bool]) -> None:
    """Errors: InvalidRequest: an option was given that Hudi's clustering cannot do."""
    for option in (name for name, is_given in given.items() if is_given):
        raise InvalidRequest(
            f"{found.name} is a Hudi table, whose clustering cannot do {option}",
            "leave it out: Hudi plans and executes by itself, in Spark",
        )


def _oldest(timeline: Timeline, store: IndexStore, found: CatalogTable, table: str) -> str:
    """The oldest plan that waits and can be executed. Errors: InvalidRequest: none waits."""
    waiting = timeline.list_unfinished(store.latest())
    instants = [plan.instant for _, plan in waiting.plans if plan.location == found.location]
    instants += [plan.instant for _, plan in waiting.plans]  # executing it tells what is wrong
    instants += waiting.damaged
    if not instants:
        raise InvalidRequest(
            f"no clustering plan of {found.name} waits",
            f"skipbridge cluster schedule {table}, or skipbridge cluster run {table} --now",
        )
    return instants[0]


def run(
    config: Config,
    table: str,
    instant: str | None = None,
    *,
    local: bool = False,
    spark: SparkSession | None = None,
    judged: bool = True,
    listing: TableListing | None = None,
    progress: Progress,
) -> dict[str, Any]:
    """Executes a plan, or what an earlier run has left of it.

    If storage is full, the plan is cancelled, and what was written for it is deleted.

    Args:
        instant: None: the oldest plan that waits.
        local: rewrites with threads of this process instead of Spark.
        spark: a session of the caller, which stays open; takes precedence over ``local``.
        judged: refuses new files that queries would read at a higher cost than the old ones.
        listing: of the caller; None: the table is listed when it is to be judged.

    Errors:
        InvalidRequest: no such plan, none waits, or it was cancelled.
        GenerationNotFound, IndexCorrupt, IndexConflict, StorageFailure, StorageFull.
    """
    listing = listing or TableListing()
    with listing.open_table(config, table) as (storage, catalog, found, store):
        if cluster_hudi.is_hudi(found):
            _refuse(found, {"--local": local})
            return cluster_hudi.run(config, storage, found, instant)
        timeline = Timeline(storage, store.root)
        instant = instant or _oldest(timeline, store, found, table)
        plan = timeline.plan(instant)
        began = time.monotonic()

        def judge(
            groups: Sequence[tuple[PlannedGroup, Sequence[FileState]]], shards: tuple[Shard, ...]
        ) -> dict[int, str]:
            advisor = Advisor.open(config, storage, catalog, found, store, listing=listing)
            return advisor.dearer(plan, groups, shards)

        with _workers(config, storage, local, spark) as (rewriter, collector):
            try:
                report = execute(
                    plan,
                    found,
                    store,
                    timeline,
                    catalog=catalog,
                    rewriter=rewriter,
                    collector=collector,
                    progress=progress,
                    judge=judge if judged else None,
                )
            except StorageFull:
                _give_back(storage, timeline, plan)
                raise
        seconds = time.monotonic() - began
    return {**report_of(found, report), "seconds": round(seconds, 3)}


def report_of(table: CatalogTable, report: RunReport) -> dict[str, Any]:
    """What a run did, as plain values."""
    return {
        "table": str(table.name),
        **asdict(report),
        "rejected": [{"group": id, "reason": reason} for id, reason in report.rejected],
        "aside": [{"group": id, "path": path, "reason": why} for id, path, why in report.aside],
    }


def _give_back(storage: Storage, timeline: Timeline, plan: ClusteringPlan) -> None:
    """Cancels a plan and deletes what was written for it, unless another run commits it.

    If there is no room even to say so, the plan waits for the next run, which goes on with it.
    """
    with suppress(BridgeError):
        if timeline.end(plan.instant, "cancelled") == "cancelled":
            # By what lies there: a group may have ended without a record of it.
            written = join(location_before_publishing(plan.location), f"{DIRECTORY}/{plan.instant}")
            for path in storage.list_all(written, recursive=True).paths.to_pylist():
                storage.delete(path)


def _effort(config: Config) -> Effort:
    return Effort(2, config.size("clustering.memory"), config.flag("clustering.verify"))


@contextmanager
def _workers(
    config: Config, storage: Storage, local: bool, spark: SparkSession | None
) -> Iterator[tuple[Rewriter, Collector]]:
    if spark is None and local:
        with collector_of(config, storage, True, None) as collector:
            yield ThreadRewriter(storage, _effort(config)), collector
        return
    # PySpark is an extra, needed only to work with Spark.
    from bridge.clustering.rewriting.spark_rewrite import SparkRewriter
    from bridge.runtime.spark_session import open_session

    session = spark
    if session is None:
        with filter_spark_log():
            session = open_session(name="skipbridge cluster run")
    try:
        with collector_of(config, storage, False, session) as collector:
            yield SparkRewriter(session, storage_options(config), _effort(config)), collector
    finally:
        if spark is None:
            session.stop()


def oldest_begun_plan(
    config: Config, table: str, listing: TableListing | None = None, besides: Collection[str] = ()
) -> str | None:
    """The oldest plan that a run has begun and not ended; None: there is none that can be executed.

    Of a Hudi table none is continued unasked: Hudi first deletes what the other run has written.

    Args:
        besides: instants that do not count.
    """
    with (listing or TableListing()).open_table(config, table) as (storage, _, found, store):
        if cluster_hudi.is_hudi(found):
            return None
        for state, plan in Timeline(storage, store.root).list_unfinished(store.latest()).plans:
            here = plan.location == found.location  # or the table has moved: nobody can end it
            if state != "requested" and here and plan.instant not in besides:
                return plan.instant
        return None


def show(config: Config, table: str, instant: str | None = None) -> list[dict[str, Any]]:
    """The plans of a table, the oldest first; with an instant, that plan with its groups.

    Each also tells what was written for it up to now: ``written_files`` and so on. Only a plan that
    is completed has replaced files by them.

    Errors:
        InvalidRequest: there is no such plan.
    """
    with open_indexed_table(config, table) as (storage, _, found, store):
        if cluster_hudi.is_hudi(found):
            return cluster_hudi.show(config, storage, found, instant)
        timeline = Timeline(storage, store.root)
        states = timeline.states(store.latest())
        if instant is not None:
            timeline.plan(instant)
            state = next(s for s in states if s.instant == instant)
            return [_shown(timeline, state, whole=True)]
        return [_shown(timeline, s) for s in states]


def _shown(timeline: Timeline, found: PlanState, *, whole: bool = False) -> dict[str, Any]:
    """One plan in a list. A damaged one must not hide the others: it has to be cancelled."""
    try:
        plan = timeline.plan(found.instant)
        ids = [group.id for group in plan.groups] if found.groups_done else []
        known = timeline.results(found.instant, ids) if ids else {}
        told = {**_planned(plan, whole=whole), **_written(known)}
        for group in told.get("plan", ()):
            done = known.get(group["id"])
            group["written"] = None if done is None else asdict(done)
            if done is not None:
                del group["written"]["gathered"]
    except (FileCorrupt, FileUnreadable, InvalidRequest) as error:  # or it was cleaned up meanwhile
        told = {"instant": found.instant, "problem": error.message}
    return {**told, "state": found.state, "groups_done": found.groups_done}


def _written(results: Mapping[int, GroupResult | None]) -> dict[str, int]:
    done = [result for result in results.values() if result is not None]
    new = [state for result in done for state in result.new]
    return {
        "written_files": len(new),
        "written_bytes": sum(state.size for state in new),
        "written_rows": sum(result.rows for result in done if not result.rejected),
        "rejected_groups": sum(bool(result.rejected) for result in done),
    }


def cancel(config: Config, table: str, instant: str) -> dict[str, Any]:
    """Cancels a plan that is not completed. Its new files are never read.

    Errors:
        InvalidRequest: no such plan, or it is completed or about to be.
    """
    with open_indexed_table(config, table) as (storage, _, found, store):
        if cluster_hudi.is_hudi(found):
            cluster_hudi.refuse_cancel(found, instant)
        timeline = Timeline(storage, store.root)
        states = timeline.states(store.latest())
        state = next((s for s in states if s.instant == instant), None)
        if state is None:  # a damaged plan is cancelled, too
            raise no_plan(instant)
        ended = state.state
        if ended in ("requested", "inflight"):
            ended = timeline.end(instant, "cancelled")
        if ended != "cancelled":
            raise InvalidRequest(
                f"plan {instant} of {found.name} is {ended}, and cannot be cancelled",
                f"skipbridge cluster run {table} {instant} completes one that is committing",
            )
        return {"table": str(found.name), "instant": instant, "state": ended}


def _planned(plan: ClusteringPlan, *, whole: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {
        "table": plan.table,
        "instant": plan.instant if plan.groups else None,
        "layout": plan.layout,
        "columns": list(plan.columns),
        "grouping": plan.grouping,
        "groups": len(plan.groups),
        "partitions": len({group.partition for group in plan.groups}),
        "old_files": sum(len(group.files) for group in plan.groups),
        "new_files": sum(group.outputs for group in plan.groups),
        "bytes": sum(group.num_bytes for group in plan.groups),
    }
    if whole:
        found["plan"] = [asdict(group) for group in plan.groups]
    return found
