"""Clusters a table by itself, when a trigger says so: after a refresh, or at an interval."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bridge.clustering.commands.now import run_now
from bridge.clustering.commands.run import oldest_begun_plan
from bridge.clustering.hudi import run as cluster_hudi
from bridge.clustering.planning.scheduling import Strategy, check_table
from bridge.clustering.planning.triggers import (
    Triggers,
    changes_since_clustering,
    completed_plans,
    due,
    small_files,
)
from bridge.clustering.timeline import Timeline
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.indexing.table import Progress, Say, index_table, newest, open_indexed_table
from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidRequest
from bridge.runtime.compose import index_limits, local_index_cache
from bridge.runtime.table_snapshot import table_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Clock = Callable[[], dt.datetime]


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def cluster_if_due(
    config: Config,
    table: str,
    strategy: Strategy,
    triggers: Triggers,
    *,
    as_before: bool = False,
    local: bool = True,
    spark: SparkSession | None = None,
    progress: Progress,
    say: Say,
    clock: Clock = _now,
) -> dict[str, Any] | None:
    """Makes and executes plans if a trigger says so, or if one was begun.

    The index is taken as it is.

    Args:
        as_before: takes the layout, the columns and the grouping of the last plan that was
            completed, if there is one.
        clock: the time, in UTC.

    Returns:
        The report of the run; None if nothing was due, or nothing is worth a rewrite.

    Errors:
        UnsupportedTable, ColumnNotFound, InvalidRequest, IndexConflict, StorageFailure and others.
    """
    if _is_hudi(config, table):
        done = cluster_hudi.cluster_if_due(
            config, table, strategy, triggers, as_before=as_before, say=say
        )
        if done is not None:  # the index does not know the new files yet
            made = index_table(config, table, local=True, progress=_nobody, say=say, check=False)
            done["generation"] = made["generation"]
        return done
    chosen, why = strategy, ""
    if oldest_begun_plan(config, table) is None:
        chosen, why = _due(config, table, strategy, triggers, clock, as_before)
        if not why:
            return None
    report = run_now(
        config,
        table,
        chosen,
        say,
        why=why,
        refresh=False,
        local=local,
        spark=spark,
        progress=progress,
    )
    return report if report.get("plans") else None


def _is_hudi(config: Config, table: str) -> bool:
    with open_indexed_table(config, table) as (_, _, found, _):
        return cluster_hudi.is_hudi(found)


def _due(
    config: Config,
    table: str,
    strategy: Strategy,
    triggers: Triggers,
    clock: Clock,
    as_before: bool,
) -> tuple[Strategy, str]:
    """The strategy, and why a clustering is due; empty if it is not."""
    with open_indexed_table(config, table) as (storage, catalog, found, store):
        check_table(found)
        manifest = newest(store, found, table)
        timeline = Timeline(storage, store.root)
        plans = completed_plans(timeline, manifest)
        chosen = strategy
        if as_before and plans:
            last = plans[-1]
            chosen = replace(
                strategy,
                layout=last.layout,
                columns=last.columns,
                grouping=last.grouping,
                bloom=last.bloom,
            )
        small = 0
        if triggers.small_files is not None:
            cache, limits = local_index_cache(config), index_limits(config)
            index = IndexSnapshot.open(manifest, store, cache, limits)
            with table_files(config, storage, catalog, found) as list_files:
                small = small_files(list_files(), index, chosen.limits)
        held = changes_since_clustering(
            plans, manifest.generation, small, clock(), timeline.own_generations()
        )
        return chosen, due(triggers, held)


def watched_round(
    config: Config,
    table: str,
    strategy: Strategy,
    triggers: Triggers,
    *,
    local: bool = False,
    progress: Progress,
    say: Say,
    check: bool = True,
) -> dict[str, Any]:
    """One round of a watch: the index is brought up to date, then `cluster_if_due`.

    Args:
        check: verifies the whole index first.

    Returns:
        The report of the run; ``committed`` tells whether there was one.
    """
    if local and _is_hudi(config, table):
        raise InvalidRequest(
            f"{table} is a Hudi table, whose clustering cannot do --local", "leave it out"
        )
    index_table(config, table, local=True, progress=_nobody, say=say, check=check)
    report = cluster_if_due(
        config, table, strategy, triggers, local=local, progress=progress, say=say
    )
    return {"committed": report is not None, **(report or {})}


def _nobody(*_: object) -> None:
    return None
