"""Clusters a Hudi table by Hudi's own clustering: schedules, executes and shows plans.

The timeline is Hudi's, and only Hudi writes to it. Before Spark is started, this program looks at
the timeline itself: what is not worth a plan, or cannot be executed, costs no Spark. What Hudi did
is read from the timeline, too. Two commands at one clustering are not kept apart here: Hudi rolls
back what the first one has written, and whoever runs them has to know.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

from bridge.clustering.hudi.planning import (
    check_hudi,
    kept_in_plan,
    layout_of_clustering,
    partition_options,
    plan_options,
    small_slices,
    strategy_options,
    table_options,
    with_usual_of_hudi,
)
from bridge.clustering.hudi.spark import HudiFailed, call_procedure
from bridge.clustering.planning.scheduling import Strategy
from bridge.clustering.planning.triggers import Since, Triggers, due
from bridge.formats.parquet.tail import count_rows
from bridge.indexing.table import Say, open_indexed_table
from bridge.kernel.config import Config
from bridge.kernel.errors import FileCorrupt, InvalidRequest, UnsupportedTable
from bridge.kernel.threads import Threads
from bridge.runtime.compose import index_root
from bridge.storage.port import Storage
from bridge.storage.uri import canonical, join
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.open_tables import OpenTable, OpenTables
from bridge.table.hudi.timeline.clusterings import SORT_COLUMNS, HudiClustering, clusterings
from bridge.table.model import CatalogTable

NAME = "hudi"
_READERS = 16
_KEPT = "clustering/hudi"
"""Below the index's root: a file for each plan that this program has scheduled."""
_CLOCKS = dt.timedelta(minutes=5)
"""By which the clocks of two writers may differ."""


def is_hudi(table: CatalogTable) -> bool:
    return table.table_format == NAME


@dataclass(slots=True)
class _Opened:
    """A Hudi table as it is now."""

    config: Config
    storage: Storage
    table: CatalogTable
    source: OpenTable
    view: FileSystemView
    plans: list[HudiClustering]

    @staticmethod
    def of(config: Config, storage: Storage, table: CatalogTable) -> _Opened:
        source = OpenTables().get(storage, table.location)
        found = _Opened(config, storage, table, source, source.view(), [])
        found.reload()
        return found

    def reload(self) -> None:
        self.view = self.source.view()
        root = join(index_root(self.config, self.table), _KEPT)
        held = set(self.storage.list_all(root, recursive=False).paths.to_pylist())
        self.plans = [
            replace(plan, extra={**self._kept(uri), **plan.extra}) if uri in held else plan
            for plan in clusterings(self.view)
            for uri in [f"{root}/{plan.instant.requested}.json"]
        ]

    def _kept(self, uri: str) -> dict[str, str]:
        """What `keep` has written of a plan. Errors: FileCorrupt."""
        try:
            return {str(k): str(v) for k, v in json.loads(self.storage.read(uri)).items()}
        except (ValueError, AttributeError) as error:
            raise FileCorrupt(
                f"{uri} cannot be read", "delete it: the plan has Hudi's usual layout, then"
            ) from error

    def keep(self, instant: str, kept: dict[str, str]) -> None:
        root = join(index_root(self.config, self.table), _KEPT)
        self.storage.put(f"{root}/{instant}.json", json.dumps(kept).encode())

    @property
    def slices(self) -> FileSlices:
        return self.source.slices(self.view)

    def plan(self, instant: str) -> HudiClustering:
        """Errors: InvalidRequest: there is no such plan."""
        for each in self.plans:
            if each.instant.requested == instant:
                return each
        raise InvalidRequest(
            f"the timeline of {self.table.name} has no clustering {instant}",
            f"skipbridge cluster show {self.table.name}",
        )

    def check(self) -> None:
        """Errors: UnsupportedTable."""
        history = self.source.schema_history(self.view)
        check_hudi(self.view, self.slices, history is not None and not history.is_stable)

    def call(self, operation: str, options: dict[str, str], **more: str) -> None:
        """Runs Hudi's clustering in Spark.

        Errors:
            EnvironmentMissing, InvalidConfiguration, InvalidRequest, HudiFailed.
        """
        every = {**table_options(self.view.config), **options}
        order = every.pop(SORT_COLUMNS, "")
        given = {"path": _hadoop(self.table.location), "op": operation, **more}
        if order:
            given["order"] = order
        given["options"] = ",".join(f"{key}={value}" for key, value in every.items())
        call_procedure(self.config.text("hudi.spark"), "run_clustering", given)


def schedule(
    config: Config, storage: Storage, table: CatalogTable, strategy: Strategy
) -> dict[str, Any]:
    """Has Hudi save a plan for the partitions that are worth one; see `commands.run.schedule`.

    Errors:
        UnsupportedTable, InvalidRequest, ColumnNotFound, InvalidConfiguration.
        EnvironmentMissing, HudiFailed, StorageFailure.
    """
    strategy = with_usual_of_hudi(strategy)
    found = _Opened.of(config, storage, table)
    found.check()
    names = _column_names(found.view)
    options = strategy_options(strategy, table, names)
    slices = found.slices
    chosen = small_slices(found.view, slices, strategy, found.plans)
    if not chosen:
        return _nothing(found.table, strategy)
    _check_clock(found.view)
    before = {plan.instant.requested for plan in found.plans}
    found.call("schedule", {**options, **partition_options(chosen, slices.partitions)})
    found.reload()
    made = [
        plan.instant.requested
        for plan in found.plans
        if plan.instant.requested not in before
        and {each.partition for each in plan.slices} <= set(chosen)
    ]
    if not made:  # Hudi, too, says what is worth a plan
        return _nothing(found.table, strategy)
    found.keep(made[-1], kept_in_plan(strategy, options))
    found.reload()
    return clustering_as_dict(found.table, found.plan(made[-1]))


def run(
    config: Config, storage: Storage, table: CatalogTable, instant: str | None
) -> dict[str, Any]:
    """Has Hudi execute a plan.

    A plan that is inflight is executed only if it is named, since another process may be at it:
    Hudi first deletes what that one has written.

    Args:
        instant: None: the oldest plan that waits.

    Errors:
        InvalidRequest: no such plan, or none waits.
        UnsupportedTable, FileCorrupt, EnvironmentMissing.
        HudiFailed: Spark failed, or the timeline does not show the clustering as completed.

    With `clustering.verify` the numbers of rows are compared afterwards.
    """
    found = _Opened.of(config, storage, table)
    plan = _oldest(found) if instant is None else found.plan(instant)
    instant = plan.instant.requested
    began = time.monotonic()
    old = _old_bytes(found.slices, plan)
    rows = 0
    if plan.commit is None:
        found.check()
        _check_places(found, plan)
        found.call("execute", plan_options(plan), instants=instant)
        found.reload()
        plan = found.plan(instant)
        if plan.commit is None:
            raise HudiFailed(
                f"Hudi has executed the clustering {instant} of {table.name}, and it is "
                f"{plan.state}",
                f"skipbridge cluster show {table.name}",
            )
        rows = _count_rows(found, plan)
    assert plan.commit is not None
    return {
        "table": str(table.name),
        "instant": instant,
        "state": plan.state,
        "generation": -1,
        "old_files": sum(map(len, plan.commit.replaced.values())),
        "new_files": len(plan.commit.names),
        "old_bytes": old,
        "new_bytes": sum(plan.commit.sizes),
        "rows": rows,
        "rejected": [],
        "seconds": round(time.monotonic() - began, 3),
    }


def show(
    config: Config, storage: Storage, table: CatalogTable, instant: str | None
) -> list[dict[str, Any]]:
    """The clusterings of the timeline; see `commands.run.show`."""
    found = _Opened.of(config, storage, table)
    if instant is None:
        return [clustering_as_dict(table, plan) for plan in found.plans]
    return [clustering_as_dict(table, found.plan(instant), storage)]


def refuse_cancel(table: CatalogTable, instant: str) -> None:
    """Errors: InvalidRequest: only Hudi takes back what is on its timeline."""
    raise InvalidRequest(
        f"{table.name} is a Hudi table, whose clustering {instant} only Hudi takes back",
        f"skipbridge cluster run {table.name} {instant} completes it. In Spark, CALL "
        f"rollback_to_instant(table => 'T', instant_time => '{instant}') rolls back that instant "
        "AND all commits that came later",
    )


def cluster_if_due(
    config: Config,
    table: str,
    strategy: Strategy,
    triggers: Triggers,
    *,
    as_before: bool,
    say: Say,
) -> dict[str, Any] | None:
    """Schedules and executes a plan if a trigger says so; see `commands.watch`.

    A plan that waits is not executed: another process may be about to do it, and neither knows of
    the other. Commits are those of the table's timeline.
    """
    with open_indexed_table(config, table) as (storage, _, target, _):
        strategy = with_usual_of_hudi(strategy)
        found = _Opened.of(config, storage, target)
        for plan in found.plans:
            if plan.state == "inflight" or (plan.state == "requested" and plan.extra):
                say(
                    f"{table}: clustering {plan.instant.requested} is {plan.state}; if no process "
                    f"is at it: skipbridge cluster run {table} {plan.instant.requested}"
                )
        done = [plan for plan in found.plans if plan.commit is not None]
        if as_before and done:
            last = layout_of_clustering(done[-1])
            strategy = replace(strategy, layout=last.layout, columns=last.columns)
        why = due(triggers, _since(found, strategy, done))
        if not why:
            return None
        made = schedule(config, storage, target, strategy)
        if made["instant"] is None:
            return None
        say(f"{table}: clustered after {why}, by plan {made['instant']}")
        return run(config, storage, target, made["instant"])


def _since(found: _Opened, strategy: Strategy, done: Sequence[HudiClustering]) -> Since:
    """What has happened since the last clustering that was completed."""
    own = {plan.instant.requested for plan in done}
    last = max(own, default="")
    commits = sum(i > last and i not in own for i in found.view.timeline.completed)
    small = sum(small_slices(found.view, found.slices, strategy, found.plans).values())
    if not done:
        return Since(commits, small, None)
    return Since(commits, small, max(0.0, time.time() - done[-1].instant.modified / 1e6))


def clustering_as_dict(
    table: CatalogTable, plan: HudiClustering, storage: Storage | None = None
) -> dict[str, Any]:
    """A clustering as plain values, in the form of `commands.run.show`.

    Args:
        storage: tells the sizes of files and their groups; None: they are left out.
    """
    order = layout_of_clustering(plan)
    slices, commit = plan.slices, plan.commit
    found: dict[str, Any] = {
        "table": str(table.name),
        "instant": plan.instant.requested,
        "layout": order.layout,
        "columns": list(order.columns),
        "grouping": "size",
        "groups": len(plan.groups),
        "partitions": len({each.partition for each in slices}),
        "old_files": len(slices),
        "new_files": len(commit.names) if commit else sum(g.outputs for g in plan.groups),
        "bytes": None,
        "state": plan.state,
        "groups_done": len(plan.groups) if commit else 0,
    }
    if storage is not None:
        sizes = {each.base: _size(storage, each.base) for each in slices if each.base}
        found["bytes"] = sum(sizes.values())
        found["plan"] = [
            {
                "id": number,
                "partition": group.slices[0].partition if group.slices else "",
                "outputs": group.outputs,
                "metrics": [],
                "files": [
                    {
                        "path": canonical(each.base) if each.base else each.file_id,
                        "size": sizes.get(each.base, 0),
                        "logs": each.logs,
                    }
                    for each in group.slices
                ],
            }
            for number, group in enumerate(plan.groups)
        ]
    return found


def _size(storage: Storage, uri: str) -> int:
    """Of a file; 0 if it was cleaned up."""
    found = storage.stat(canonical(uri))
    return 0 if found is None else found.size


def _nothing(table: CatalogTable, strategy: Strategy) -> dict[str, Any]:
    return {
        "table": str(table.name),
        "instant": None,
        "layout": strategy.layout,
        "columns": list(strategy.columns),
        "grouping": "size",
        **dict.fromkeys(("groups", "partitions", "old_files", "new_files", "bytes"), 0),
    }


def _oldest(found: _Opened) -> HudiClustering:
    """Errors: InvalidRequest: no plan waits."""
    for plan in found.plans:
        if plan.state == "requested":
            return plan
    name = found.table.name
    inflight = [plan.instant.requested for plan in found.plans if plan.state == "inflight"]
    if inflight:
        raise InvalidRequest(
            f"the clustering {inflight[0]} of {name} is inflight, and no other plan waits",
            f"if the process that executed it has died: skipbridge cluster run {name} "
            f"{inflight[0]}",
        )
    raise InvalidRequest(
        f"no clustering plan of {name} waits",
        f"skipbridge cluster schedule {name}, or skipbridge cluster run {name} --now",
    )


def _old_bytes(slices: FileSlices, plan: HudiClustering) -> int:
    """Of the base files that are replaced, as far as they are still there."""
    wanted = {(each.partition, each.file_id) for each in plan.slices}
    paths = (slices.partitions[i] for i in slices.partition.tolist())
    every = zip(paths, slices.file_ids.to_pylist(), slices.base_sizes.tolist(), strict=True)
    return sum(size for path, file_id, size in every if (path, file_id) in wanted)


def _count_rows(found: _Opened, plan: HudiClustering) -> int:
    """The rows of the new base files; with `clustering.verify`, those of the old ones are the same.

    Logs change the number of rows: slices with logs are not compared.

    Errors:
        HudiFailed: they are not. The clustering is committed.
    """
    commit = plan.commit
    assert commit is not None
    root = found.table.location
    owners = chain.from_iterable(map(repeat, commit.partitions, commit.counts))
    names = zip(owners, commit.names, strict=True)
    new = [join(join(root, part) if part else root, name) for part, name in names]
    old = [canonical(each.base) for each in plan.slices if each.base and not each.logs]
    if len(old) < len(plan.slices) or not found.config.flag("clustering.verify"):
        old = []

    def count(uri: str) -> int | None:
        state = found.storage.stat(uri)
        if state is None:
            return None  # a cleaner was faster
        return count_rows(found.storage, uri, state.size)

    with Threads(_READERS, "read") as pool:
        counts = list(pool.map(count, [*new, *old]))
    after, before = (sum(filter(None, each)) for each in (counts[: len(new)], counts[len(new) :]))
    if old and None not in counts and before != after:
        raise HudiFailed(
            f"the clustering {plan.instant.requested} of {found.table.name} is committed, and "
            f"replaced {before:,} rows by {after:,}",
            "stop cleaning, and restore the table to the instant before with Hudi",
        )
    return after


def _check_places(found: _Opened, plan: HudiClustering) -> None:
    """Refuses a plan of files elsewhere: a table that was copied still names the old place.

    Errors:
        InvalidRequest.
    """
    for each in plan.slices:
        if each.base and not canonical(each.base).startswith(f"{found.table.location}/"):
            raise InvalidRequest(
                f"the clustering {plan.instant.requested} is of {each.base}, which is not in "
                f"{found.table.location}",
                "roll it back with Hudi where it was made, and copy the table then",
            )


def _check_clock(view: FileSystemView) -> None:
    """Refuses to name an instant that sorts before those that exist.

    Errors:
        UnsupportedTable.
    """
    newest = max((i.requested for i in view.timeline.instants), default="")
    utc = view.config.timeline_zone == "UTC"
    now = dt.datetime.now(dt.UTC if utc else None).replace(tzinfo=None) + _CLOCKS
    if newest > f"{now:%Y%m%d%H%M%S}999":
        raise UnsupportedTable(
            f"the newest instant {newest} of {view.config.base} lies in the future of this "
            f"process, where it is {now - _CLOCKS:%Y-%m-%d %H:%M}: its writers have another time "
            "zone",
            "set TZ to the zone of the table's writers",
        )


def _column_names(view: FileSystemView) -> list[str]:
    """Of the top-level columns as the schema spells them."""
    text = view.schema()
    return [field["name"] for field in json.loads(text)["fields"]] if text else []


def _hadoop(location: str) -> str:
    """A location as Hadoop's file systems take it."""
    return location.replace("s3://", "s3a://", 1) if location.startswith("s3://") else location
