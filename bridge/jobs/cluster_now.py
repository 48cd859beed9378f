"""Clusters a table plan after plan, until nothing of it is worth a rewrite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bridge.clustering.lease import lease
from bridge.clustering.scheduling import Strategy, check_table
from bridge.config import Config
from bridge.jobs import cluster_hudi
from bridge.jobs.cluster import begun, run, schedule
from bridge.jobs.cluster_advice import Auto
from bridge.jobs.index_table import Progress, Say, opened

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SUMMED = ("groups", "resumed", "old_files", "new_files", "rows", "old_bytes", "new_bytes")


def run_now(
    config: Config,
    table: str,
    strategy: Strategy,
    say: Say,
    *,
    auto: Auto | None = None,
    why: str = "",
    refresh: bool = True,
    local: bool = False,
    spark: SparkSession | None = None,
    judged: bool = True,
    progress: Progress,
    planned: Callable[[dict[str, Any]], None] = lambda made: None,
    told: Callable[[dict[str, Any]], None] = lambda report: None,
) -> dict[str, Any]:
    """Makes plans and executes them, one commit each; those that a run has begun come first.

    A file that this run could not rewrite is not planned again by it. A run that was stopped is
    repeated. Of a Hudi table one plan is made: Hudi's own planner says what is worth a rewrite.

    Args:
        auto: takes the layout that gains most, in place of the strategy's.
        why: a trigger that is said of each plan.
        refresh: False takes the index as it is.
        judged: refuses new files that queries would read at a higher cost than the old ones.
        planned, told: get each plan, and the report of each.

    Returns:
        The reports of `run` as ``plans``, and their sums; if nothing is worth a rewrite, what
        `schedule` returns.

    Errors:
        ClusteringPending: another process clusters the table.
        Those of `schedule` and `run`.
    """
    with opened(config, table) as (storage, _, found, store):
        if cluster_hudi.is_hudi(found):
            made = schedule(config, table, strategy, say, auto=auto, begin=True, local=local)
            if made["instant"] is None:
                return made
            planned(made)
            done = run(config, table, made["instant"], local=local, spark=spark, progress=progress)
            told(done)
            return done
        check_table(found)
        with lease(storage, store.root, "run"):
            reports: list[dict[str, Any]] = []
            unfinished: list[str] = []
            while True:
                instant, left = begun(config, table), 0
                if instant is not None and instant not in [each["instant"] for each in reports]:
                    say(f"{table}: plan {instant}, which was begun before, is continued")
                else:
                    made = schedule(
                        config,
                        table,
                        strategy,
                        say,
                        auto=auto,
                        refresh=refresh,
                        begin=True,
                        before=unfinished,
                        judged=judged,
                    )
                    instant, left = made["instant"], made.get("left_groups", 0)
                    if instant is None:
                        return _sum(reports) if reports else made
                    if auto is not None:
                        strategy = replace(
                            strategy,
                            layout=made["layout"],
                            columns=tuple(made["columns"]),
                            grouping=made["grouping"],
                        )
                        auto = None
                    planned(made)
                    if why:
                        say(f"{table}: clustered after {why}, by plan {instant}")
                before = sum(each["groups"] for each in reports)

                def tick(done: int, total: int, before: int = before, left: int = left) -> None:
                    progress(before + done, before + total + left)

                report = run(
                    config,
                    table,
                    instant,
                    local=local,
                    spark=spark,
                    judged=judged,
                    progress=tick,
                )
                told(report)
                reports.append(report)
                whole = not report["rejected"] and not report["aside"]
                if strategy.again or strategy.depth is not None or not whole:
                    unfinished.append(instant)


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
    if "effect" in first and "effect" in last:
        before, measured = first["effect"]["before"], last["effect"]["measured"]
        saved = 1 - measured["kept"]["cost"] / max(before["kept"]["cost"], 1)
        found["effect"] = {"before": before, "measured": measured, "measured_gain": saved}
    return found
