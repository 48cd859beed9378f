"""Clusters a table: schedules plans, executes them, shows and cancels them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bridge.clustering.execution import Rewriter, ThreadRewriter, execute
from bridge.clustering.plan import Plan
from bridge.clustering.scheduling import Strategy, check_table, make_plan
from bridge.clustering.timeline import PlanState, Timeline, new_instant, no_plan
from bridge.config import Config
from bridge.errors import FileCorrupt, InvalidRequest
from bridge.index.collect import Collector
from bridge.index.snapshot import IndexSnapshot
from bridge.jobs.compose import index_limits, local_index_cache, storage_options
from bridge.jobs.index_table import Progress, Say, collector_of, index_table, newest, opened
from bridge.jobs.spark_log_filter import filter_spark_log
from bridge.jobs.table_snapshot import table_files
from bridge.storage.port import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def schedule(config: Config, table: str, strategy: Strategy, say: Say) -> dict[str, Any]:
    """Plans what is worth a rewrite, and saves the plan. The index is brought up to date first.

    Returns:
        The plan as plain values; ``instant`` is None if there is nothing to do.

    Errors:
        UnsupportedTable, ColumnNotFound, InvalidRequest, InvalidConfiguration.
        IndexConflict, StorageFailure and others.
    """
    with opened(config, table) as (_, _, found, _):
        check_table(found)
    index_table(config, table, local=True, progress=lambda *_: None, say=say)
    with opened(config, table) as (storage, catalog, found, store):
        manifest = newest(store, found, table)
        limits = index_limits(config)
        index = IndexSnapshot.open(manifest, store, local_index_cache(config), limits)
        timeline = Timeline(storage, store.root)
        pending = [
            file
            for each in timeline.states(manifest)
            if each.pending
            for group in timeline.plan(each.instant).groups
            for file in group.files
        ]
        with table_files(config, storage, catalog, found) as list_files:
            listed = list_files()
        while True:
            plan = make_plan(new_instant(), found, listed, index, strategy, pending)
            if not plan.groups or timeline.request(plan):
                return _planned(plan)


def run(
    config: Config,
    table: str,
    instant: str | None = None,
    *,
    local: bool = False,
    spark: SparkSession | None = None,
    progress: Progress,
) -> dict[str, Any]:
    """Executes a plan, or what an earlier run has left of it.

    Args:
        instant: None: the oldest plan that waits.
        local: rewrites with threads of this process instead of Spark.
        spark: a session of the caller, which stays open; takes precedence over ``local``.

    Errors:
        InvalidRequest: no such plan, none waits, or it was cancelled.
        GenerationNotFound, IndexCorrupt, IndexConflict, StorageFailure, StorageFull.
    """
    with opened(config, table) as (storage, catalog, found, store):
        timeline = Timeline(storage, store.root)
        if instant is None:
            waiting = [s.instant for s in timeline.states(store.latest()) if s.pending]
            if not waiting:
                raise InvalidRequest(
                    f"no clustering plan of {found.name} waits",
                    f"skipbridge cluster schedule {table}, or run {table} --now",
                )
            instant = waiting[0]
        plan = timeline.plan(instant)
        with _workers(config, storage, local, spark) as (rewriter, collector):
            report = execute(
                plan,
                found,
                store,
                timeline,
                catalog=catalog,
                rewriter=rewriter,
                collector=collector,
                progress=progress,
            )
    return {
        "table": str(found.name),
        **asdict(report),
        "rejected": [{"group": id, "reason": reason} for id, reason in report.rejected],
    }


@contextmanager
def _workers(
    config: Config, storage: Storage, local: bool, spark: SparkSession | None
) -> Iterator[tuple[Rewriter, Collector]]:
    if spark is None and local:
        with collector_of(config, storage, True, None) as collector:
            yield ThreadRewriter(storage), collector
        return
    # PySpark is an extra, needed only to work with Spark.
    from bridge.spark.rewrite_groups import SparkRewriter
    from bridge.spark.session import open_session

    session = spark
    if session is None:
        with filter_spark_log():
            session = open_session(name="skipbridge cluster run")
    try:
        with collector_of(config, storage, False, session) as collector:
            yield SparkRewriter(session, storage_options(config)), collector
    finally:
        if spark is None:
            session.stop()


def show(config: Config, table: str, instant: str | None = None) -> list[dict[str, Any]]:
    """The plans of a table, the oldest first; with an instant, that plan with its groups.

    Errors:
        InvalidRequest: there is no such plan.
    """
    with opened(config, table) as (storage, _, _, store):
        timeline = Timeline(storage, store.root)
        states = timeline.states(store.latest())
        if instant is not None:
            plan = _planned(timeline.plan(instant), whole=True)
            state = next(s for s in states if s.instant == instant)
            return [{**plan, "state": state.state, "groups_done": state.groups_done}]
        return [_shown(timeline, s) for s in states]


def _shown(timeline: Timeline, found: PlanState) -> dict[str, Any]:
    """One plan in a list. A damaged one must not hide the others: it has to be cancelled."""
    try:
        plan = _planned(timeline.plan(found.instant))
    except FileCorrupt as error:
        plan = {"instant": found.instant, "problem": error.message}
    return {**plan, "state": found.state, "groups_done": found.groups_done}


def cancel(config: Config, table: str, instant: str) -> dict[str, Any]:
    """Cancels a plan that is not completed. Its new files are never read.

    Errors:
        InvalidRequest: no such plan, or it is completed or about to be.
    """
    with opened(config, table) as (storage, _, found, store):
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


def _planned(plan: Plan, *, whole: bool = False) -> dict[str, Any]:
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
