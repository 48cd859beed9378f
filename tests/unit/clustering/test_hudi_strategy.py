"""What Hudi is asked for, from tables that Spark wrote; no Spark takes part."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.clustering.hudi import run as cluster_hudi
from bridge.clustering.hudi.planning import (
    Laid,
    check_hudi,
    kept_in_plan,
    layout_of_clustering,
    partition_options,
    plan_options,
    small_slices,
    strategy_options,
    table_options,
)
from bridge.clustering.hudi.spark import HudiFailed
from bridge.clustering.planning.eligibility import Limits, PartitionFilter
from bridge.clustering.planning.scheduling import Strategy
from bridge.indexing.table import open_indexed_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import (
    BridgeError,
    ColumnNotFound,
    FileCorrupt,
    InvalidRequest,
    UnsupportedTable,
)
from bridge.runtime.compose import storage_of
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.open_tables import OpenTables
from bridge.table.hudi.timeline.clusterings import HudiClustering, SliceToCluster, clusterings
from bridge.table.hudi.timeline.instant import Instant, State
from bridge.table.model import CatalogTable
from tests.support.hudi_fixtures import HudiFixture, hudi_fixtures

SPARK = {"SKIPBRIDGE_HUDI_SPARK": "/nowhere/spark-sql --jars x.jar"}


def _fixtures(*names: str) -> list[HudiFixture]:
    return hudi_fixtures(names=names)


def _by_id(*names: str) -> Any:
    return pytest.mark.parametrize("fixture", _fixtures(*names), ids=lambda one: one.id)


def _table(fixture: HudiFixture) -> CatalogTable:
    with open_indexed_table(Config(), str(fixture.path())) as (_, _, table, _):
        return table


def _view(fixture: HudiFixture) -> FileSystemView:
    return FileSystemView.open(storage_of(Config()), f"file://{fixture.path()}")


def _small(fixture: HudiFixture, strategy: Strategy) -> dict[str, int]:
    source = OpenTables().get(storage_of(Config()), f"file://{fixture.path()}")
    view = source.view()
    return small_slices(view, source.slices(view), strategy, clusterings(view))


@_by_id("cow_clustered", "cow_clustering_pending", "cow_clustering_inflight", "mor_clustered")
def test_clusterings_of_the_timeline(fixture: HudiFixture) -> None:
    (found,) = clusterings(_view(fixture))
    ending = fixture.name.rpartition("_")[2]
    state = {"clustered": "completed", "pending": "requested"}.get(ending, ending)
    assert found.state == state
    assert len(found.groups) == 2 and len(found.slices) == 4
    assert (found.commit is None) == (state != "completed")
    assert layout_of_clustering(found).layout == ("linear" if found.columns else "binpack")
    if found.commit is not None:
        gone = {(p, i) for p, ids in found.commit.replaced.items() for i in ids}
        assert gone == {(each.partition, each.file_id) for each in found.slices}


@_by_id("cow_insert_overwrite", "cow_delete_partition", "cow_inserts", "mor_compaction_pending")
def test_other_actions_are_no_clusterings(fixture: HudiFixture) -> None:
    assert clusterings(_view(fixture)) == []


@_by_id("cow_clustered", "cow_clustering_pending", "cow_clustering_inflight")
def test_show(fixture: HudiFixture) -> None:
    said = CliRunner().invoke(cli, ["cluster", "show", str(fixture.path()), "--output", "json"])
    assert said.exit_code == 0, said.output
    (plan,) = json.loads(said.stdout)
    assert (plan["groups"], plan["old_files"], plan["partitions"]) == (2, 4, 2)
    said = CliRunner().invoke(cli, ["cluster", "show", str(fixture.path()), plan["instant"]])
    assert said.exit_code == 0 and said.stdout.count(".parquet") == 4
    said = CliRunner().invoke(cli, ["cluster", "show", str(fixture.path()), "2" * 17])
    assert "has no clustering 22222222222222222" in said.output


@_by_id("cow_inserts")
def test_options(fixture: HudiFixture) -> None:
    limits = Limits(target=100, small=600, most_per_group=200, most_groups=3, fewest_files=2)
    strategy = Strategy("hilbert", ("PRICE", "name"), "size", limits, compression="zstd")
    options = strategy_options(strategy, _table(fixture), ["id", "name", "price"])
    prefix = "hoodie.clustering.plan.strategy."
    assert options == {
        f"{prefix}small.file.limit": "101",  # no larger than a new file
        f"{prefix}target.file.max.bytes": "100",
        f"{prefix}max.bytes.per.group": "200",
        f"{prefix}max.num.groups": "3",
        f"{prefix}single.group.clustering.enabled": "false",
        f"{prefix}sort.columns": "price,name",
        "hoodie.layout.optimize.strategy": "HILBERT",
        "hoodie.parquet.block.size": str(128 << 20),
        "hoodie.parquet.compression.codec": "zstd",
    }
    kept = kept_in_plan(strategy, options)
    instant = Instant("1" * 17, "clustering", State.REQUESTED, None, "")
    plan = HudiClustering(instant, (), ("price", "name"), kept)
    assert plan_options(plan) == options and layout_of_clustering(plan) == Laid(
        "hilbert", ("PRICE", "name")
    )


def test_a_plan_gives_no_other_options() -> None:
    instant = Instant("1" * 17, "clustering", State.REQUESTED, None, "")
    text = {"hoodie.base.path": "/x", "hoodie.layout.optimize.strategy": "ZORDER"}
    plan = HudiClustering(instant, (), (), {"skipbridge.options": json.dumps(text)})
    assert plan_options(plan) == {"hoodie.layout.optimize.strategy": "ZORDER"}
    for broken in ("", "[", "3", "null"):
        plan = HudiClustering(instant, (), (), {"skipbridge.options": broken})
        with pytest.raises(BridgeError, match="keeps options that cannot be read"):
            plan_options(plan)


@_by_id("cow_inserts")
@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"grouping": "overlap"}, "--group overlap"),
        ({"layout": "spiral"}, "--layout spiral"),
        ({"layout": "kdtree"}, "--layout kdtree"),
        ({"bloom": ("id",)}, "--bloom-filter"),
        ({"again": True}, "--again"),
        ({"depth": 3}, "--overlap-depth"),
        ({"filters": ("fewer",)}, "--keep"),
        ({"compression": "brotli"}, "--compression brotli"),
        ({"limits": Limits(fewest_files=3)}, "--min-files 3"),
        ({"partitions": PartitionFilter(newest_first=False)}, "--oldest-first"),
    ],
)
def test_refused_by_name(fixture: HudiFixture, change: dict[str, Any], named: str) -> None:
    strategy = replace(Strategy("linear", ("id",)), **change)
    with pytest.raises(InvalidRequest, match=f"(?m)cannot do {named}$"):
        strategy_options(strategy, _table(fixture), [])


@_by_id("cow_inserts")
def test_columns_are_checked(fixture: HudiFixture) -> None:
    with pytest.raises(ColumnNotFound):
        strategy_options(Strategy("linear", ("nothing",)), _table(fixture), [])


@_by_id("cow_metadata", "cow_inserts")
def test_the_metadata_table_stays_as_it_is(fixture: HudiFixture) -> None:
    config = _view(fixture).config
    options = table_options(config)
    has = fixture.name == "cow_metadata"
    assert options["hoodie.metadata.enable"] == str(has).lower()
    stats = "column_stats" in config.metadata_partitions
    assert options["hoodie.metadata.index.column.stats.enable"] == str(stats).lower()
    assert options["hoodie.write.table.version"] == str(config.version)


@_by_id("cow_inserts", "cow_clustered", "cow_clustering_pending")
def test_partitions_worth_a_plan(fixture: HudiFixture) -> None:
    slices = set(fixture.answers().slices)
    strategy = Strategy("linear", ("id",), "size", Limits(fewest_files=1))
    counts: dict[str, int] = {}
    plans = clusterings(_view(fixture))
    waiting = {s.file_id for p in plans if p.commit is None for s in p.slices}
    for each in slices:
        if each.file_id not in waiting:
            counts[each.partition] = counts.get(each.partition, 0) + 1
    own = {p.instant.requested for p in plans if p.commit is not None}
    if own:  # a partition with nothing but what such a clustering wrote is at rest
        fresh = {s.partition for s in slices if s.base_instant not in own}
        counts = {p: n for p, n in counts.items() if p in fresh}
    assert _small(fixture, strategy) == counts
    enough = {p: n for p, n in counts.items() if n >= 2}
    assert _small(fixture, replace(strategy, limits=Limits())) == enough
    tiny = replace(strategy, limits=Limits(small=10))
    assert _small(fixture, tiny) == {}


@_by_id("cow_inserts")
def test_partitions_are_selected_by_name(fixture: HudiFixture) -> None:
    strategy = Strategy("linear", ("id",), "size", Limits(fewest_files=1))
    every = set(_small(fixture, strategy))
    assert len(every) == 2
    newest = max(every)
    for chosen in (
        PartitionFilter((f"day={newest}",)),
        PartitionFilter(("*" + newest[-2:],)),
        PartitionFilter(recent=1),
    ):
        assert set(_small(fixture, replace(strategy, partitions=chosen))) == {newest}
    skipped = replace(strategy, partitions=PartitionFilter(skip=1))
    assert set(_small(fixture, skipped)) == every - {newest}
    assert partition_options(every, every) == {}
    (pattern,) = partition_options({newest}, every).values()
    assert pattern == newest


@_by_id("mor_bucket_index", "cow_virtual_keys", "cow_orc", "cow_renamed")
def test_tables_that_are_refused(fixture: HudiFixture) -> None:
    source = OpenTables().get(storage_of(Config()), f"file://{fixture.path()}")
    view = source.view()
    history = source.schema_history(view)
    evolved = history is not None and not history.is_stable
    with pytest.raises(UnsupportedTable, match="Hudi table"):
        check_hudi(view, source.slices(view), evolved)


@_by_id("cow_inserts")
def test_commands_without_spark(fixture: HudiFixture, tmp_path: Path) -> None:
    table = str(fixture.unpack(tmp_path))

    def said(*words: str) -> str:
        done = CliRunner(env=SPARK).invoke(cli, ["cluster", words[0], table, *words[1:]])
        assert done.exit_code == 2, done.output
        return done.output

    assert "no program /nowhere/spark-sql" in said("schedule", "--min-files", "1")
    assert "hudi.spark" in said("run", "--now", "--min-files", "1")
    assert "no clustering plan" in said("run")
    assert "cannot do --local" in said("run", "--now", "--local", "--min-files", "1")
    assert "all readers see that at once" in said("run", "--now", "--min-files", "1", "--publish")
    assert "cannot do --dry-run" in said("run", "--now", "--dry-run")
    assert "rollback_to_instant" in said("cancel", "1")


@_by_id("cow_clustering_pending")
def test_a_copied_table_is_not_executed(fixture: HudiFixture) -> None:
    """Its plan names files of the place where it was made."""
    done = CliRunner(env=SPARK).invoke(cli, ["cluster", "run", str(fixture.path())])
    assert done.exit_code == 2 and "which is not in file://" in done.output


@_by_id("cow_clustered", "mor_clustered")
def test_rows_are_counted_after_a_clustering(fixture: HudiFixture) -> None:
    with open_indexed_table(Config(), str(fixture.path())) as (storage, _, table, _):
        found = cluster_hudi._Opened.of(Config(), storage, table)

        def at(each: SliceToCluster) -> SliceToCluster:  # the plan names the place of its making
            name = each.base.rpartition("/")[2]
            return replace(each, base=f"{table.location}/{each.partition}/{name}")

        (plan,) = found.plans
        groups = tuple(replace(g, slices=tuple(map(at, g.slices))) for g in plan.groups)
        rows = cluster_hudi._count_rows(found, replace(plan, groups=groups))
        assert rows > 0
        if fixture.name.startswith("cow"):
            with pytest.raises(HudiFailed, match="replaced 4 rows by 8"):
                cluster_hudi._count_rows(found, replace(plan, groups=groups[:1]))
            found.config = Config({"clustering.verify": Setting("false", "test")})
            assert cluster_hudi._count_rows(found, replace(plan, groups=groups[:1])) == rows
            found.config = Config()
        gone = tuple(replace(g, slices=(replace(g.slices[0], base="file:///no"),)) for g in groups)
        cluster_hudi._count_rows(found, replace(plan, groups=gone))  # cleaned: not known


@_by_id("cow_clustering_pending")
def test_what_is_kept_of_a_plan_is_read_again(fixture: HudiFixture, tmp_path: Path) -> None:
    path = fixture.unpack(tmp_path)
    with open_indexed_table(Config(), str(path)) as (storage, _, table, _):
        found = cluster_hudi._Opened.of(Config(), storage, table)
        (plan,) = found.plans
        strategy = Strategy("hilbert", ("price", "name"), "size", Limits())
        options = {"hoodie.layout.optimize.strategy": "HILBERT"}
        found.keep(plan.instant.requested, kept_in_plan(strategy, options))
        (plan,) = cluster_hudi._Opened.of(Config(), storage, table).plans
        assert layout_of_clustering(plan) == Laid("hilbert", ("price", "name"))
        assert plan_options(plan) == options
        (kept,) = path.rglob(f"clustering/hudi/{plan.instant.requested}.json")
        kept.write_text("[")
        with pytest.raises(FileCorrupt, match="cannot be read") as refused:
            cluster_hudi._Opened.of(Config(), storage, table)
        assert "delete it" in refused.value.hint


@_by_id("cow_clustering_pending")
def test_a_call_without_effect_is_an_error(
    fixture: HudiFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timeline tells what Hudi did, and not the status of Spark."""
    monkeypatch.setattr(cluster_hudi, "_check_places", lambda *_: None)  # it was copied
    with open_indexed_table(Config(), str(fixture.unpack(tmp_path))) as (storage, _, table, _):
        config = Config({"hudi.spark": Setting("true", "test")})
        (plan,) = cluster_hudi.show(config, storage, table, None)
        with pytest.raises(HudiFailed, match=f"{plan['instant']} of .* it is requested"):
            cluster_hudi.run(config, storage, table, plan["instant"])


@_by_id("cow_inserts")
def test_hudi_may_find_nothing_to_plan(fixture: HudiFixture, tmp_path: Path) -> None:
    with open_indexed_table(Config(), str(fixture.unpack(tmp_path))) as (storage, _, table, _):
        strategy = Strategy("linear", ("id",), "size", Limits(fewest_files=1))
        quiet = Config({"hudi.spark": Setting("true", "test")})
        assert cluster_hudi.schedule(quiet, storage, table, strategy)["instant"] is None
        broken = Config({"hudi.spark": Setting("false", "test")})
        with pytest.raises(HudiFailed, match="status 1: it printed nothing"):
            cluster_hudi.schedule(broken, storage, table, strategy)
