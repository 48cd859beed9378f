"""Clusters a table plan after plan, until nothing of it is worth a rewrite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bridge.clustering.commands.advice import TableListing
from bridge.clustering.commands.run import oldest_begun_plan, report_of, run, schedule
from bridge.clustering.execution import GroupsFailed, RunReport
from bridge.clustering.hudi import run as cluster_hudi
from bridge.clustering.lease import lease
from bridge.clustering.plan import ClusteringPlan
from bridge.clustering.planning.scheduling import Strategy, check_table
from bridge.clustering.timeline import Timeline
from bridge.index.generations.replacements import FileState
from bridge.indexing.table import Progress, Say
from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError, InvalidRequest, StorageFailure
from bridge.table.model import CatalogTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUMMED = ("groups", "resumed", "old_files", "new_files", "rows", "old_bytes", "new_bytes")


def run_now(
    config: Config,
    table: str,
    strategy: Strategy,
    say: Say,
    *,
    why: str = "",
    refresh: bool = True,
    local: bool = False,
    spark: SparkSession | None = None,
    judged: bool = True,
    progress: Progress,
    indexing: Progress = lambda done, total: None,
    planned: Callable[[dict[str, Any]], None] = lambda made: None,
    told: Callable[[dict[str, Any]], None] = lambda report: None,
) -> dict[str, Any]:
    """Makes plans and executes them, one commit each; those that a run has begun come first.

    A file that this run could not rewrite is not planned again by it; others of its group may be.
    Plans go on after one that storage failed, which a later run continues, and after one that was
    cancelled, whose files are left alone.
    A run that was stopped is repeated. Of a Hudi table one plan is made: Hudi's own planner says
    what is worth a rewrite.

    Args:
        why: a trigger that is said of each plan.
        refresh: False takes the index as it is.
        judged: refuses new files that queries would read at a higher cost than the old ones.
        progress: gets old files that are done, and those of all plans.
        indexing: gets files that are indexed before the first plan, and how many there are.
        planned, told: get each plan, and the report of each.

    Returns:
        The reports of `run` as ``plans``, and their sums; if nothing is worth a rewrite, what
        `schedule` returns.

    Errors:
        ClusteringPending: another process clusters the table.
        StorageFailure: of the first plan, if storage failed all of them.
        Others of `schedule` and `run`.
    """
    listing = TableListing()
    with listing.open_table(config, table) as (storage, _, found, store):
        if cluster_hudi.is_hudi(found):
            made = schedule(config, table, strategy, say, begin=True, local=local)
            if made["instant"] is None:
                return made
            planned(made)
            done = run(config, table, made["instant"], local=local, spark=spark, progress=progress)
            told(done)
            return done
        check_table(found)
        with lease(storage, store.root, "run"):
            timeline = Timeline(storage, store.root)
            reports: list[dict[str, Any]] = []
            whole: list[str] = []
            apart: list[FileState] = []
            left_out: list[dict[str, str]] | None = None
            damaged: dict[str, str] = {}
            failures: list[StorageFailure] = []
            before = 0  # files of plans that were tried
            while True:
                tried = [each["instant"] for each in reports]
                instant, left = oldest_begun_plan(config, table, listing, tried), 0
                if instant is not None:
                    say(f"{table}: plan {instant}, which was begun before, is continued")
                else:
                    made = schedule(
                        config,
                        table,
                        strategy,
                        say if left_out is None else _unsaid,
                        refresh=refresh and left_out is None,
                        begin=True,
                        before=whole,
                        apart=apart,
                        judged=judged,
                        listing=listing,
                        indexing=indexing,
                    )
                    if left_out is None:
                        left_out, damaged = made.get("left_out", []), made["damaged"]
                    instant, left = made["instant"], made.get("left_files", 0)
                    if instant is None and len(failures) == len(reports) > 0:
                        raise failures[0]
                    if instant is None and reports:
                        return {**_sum(reports), "left_out": left_out, "damaged": damaged}
                    if instant is None:
                        return made
                    planned(made)
                    if why:
                        say(f"{table}: clustered after {why}, by plan {instant}")

                def tick(done: int, total: int, before: int = before, left: int = left) -> None:
                    progress(before + done, before + total + left)

                try:
                    report = run(
                        config,
                        table,
                        instant,
                        local=local,
                        spark=spark,
                        judged=judged,
                        listing=listing,
                        progress=tick,
                    )
                except (StorageFailure, InvalidRequest) as error:
                    ended = timeline.outcome(instant)
                    if isinstance(error, StorageFailure):  # its files wait for a later run
                        failures.append(error)
                    elif ended not in ("cancelled", "rejected"):
                        raise
                    report = _undone(found, timeline.plan(instant), ended or "inflight", error)
                told(report)
                reports.append(report)
                before += sum(len(group.files) for group in timeline.plan(instant).groups)
                if strategy.again or strategy.depth is not None:
                    whole.append(instant)
                elif report["rejected"] or report["state"] == "cancelled":
                    # Of a group with files set aside, the others may join those of another one.
                    partly = {each["group"] for each in report["aside"]}
                    stay = {each["group"] for each in report["rejected"]} - partly
                    for group in timeline.plan(instant).groups:
                        if group.id in stay or report["state"] == "cancelled":
                            apart += group.files


def _undone(
    table: CatalogTable, plan: ClusteringPlan, state: str, error: BridgeError
) -> dict[str, Any]:
    """The report of a plan that a later run continues, or that somebody else has ended."""
    every = {group.id: f"{error.code}: {error.message}" for group in plan.groups}
    reasons = error.reasons if isinstance(error, GroupsFailed) else every
    count = len(plan.groups)
    report = RunReport(plan.instant, state, -1, count, 0, 0, 0, 0, tuple(reasons.items()))
    return {**report_of(table, report), "seconds": 0.0}


def _unsaid(_: str) -> None:
    """What was said of the first plan holds for all."""


def _sum(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first, last = reports[0], reports[-1]
    if len(reports) == 1:
        return {**first, "plans": list(reports)}
    found = {**last, "plans": list(reports)}
    found.update({key: sum(each[key] for each in reports) for key in _SUMMED})
    found["seconds"] = round(sum(each["seconds"] for each in reports), 3)
    if any(each["state"] == "completed" for each in reports):
        found["state"] = "completed"
    found["generation"] = max(each["generation"] for each in reports)
    for key in ("rejected", "aside"):
        found[key] = [{"instant": r["instant"], **each} for r in reports for each in r[key]]
    return found
