"""Clustered tables: what readers see, what builds keep, what is rejected, what is done again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet
import pytest

from bridge.clustering.execution import DIRECTORY
from bridge.clustering.planning.eligibility import PartitionFilter
from bridge.clustering.planning.scheduling import Strategy, check_table, make_plan
from bridge.expression.builders import eq, ge, le
from bridge.expression.nodes import And
from bridge.index.generations.replacements import (
    commit_replacements,
    read_replacements,
    replacements_of,
)
from bridge.index.kinds.registry import kind
from bridge.kernel.errors import IndexCorrupt, InvalidRequest, UnsupportedTable
from bridge.kernel.types import BIGINT, DOUBLE, STRING
from bridge.planner.answers.aggregate_pushdown import aggregate
from bridge.planner.answers.aggregates import Aggregate, AggregateRequest
from bridge.planner.answers.skippable_files import list_skippable_files
from bridge.planner.answers.system_tables import COLUMNS, system_table_rows
from bridge.planner.request import ScanRequest, SortKey
from bridge.table.model import Column
from tests.support.clustered import clustered, executed, read, scheduled, timeline_of
from tests.support.directories import in_directories
from tests.support.index_builds import Dying, Killed
from tests.support.lake import NAME, Lake, age

pytestmark = pytest.mark.full

COLUMNS_OF = (Column("x", BIGINT), Column("s", STRING))
BY_X: dict[str, Any] = {"layout": "linear", "columns": ("x",), "grouping": "overlap"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path, columns=COLUMNS_OF)


@pytest.fixture
def days(tmp_path: Path) -> Lake:
    found = Lake(tmp_path, columns=COLUMNS_OF, keys=(Column("day", STRING),))
    found.partition_values = [("1",), ("2",)]
    return found


def interleaved(lake: Lake, files: int = 4, values: tuple[str, ...] = (), rows: int = 40) -> None:
    """Files whose values of x overlap."""
    for i in range(files):
        x = list(range(i, files * rows, files))
        lake.write(f"f{i}.parquet", {"x": x, "s": [f"s{v % 7}" for v in x]}, values)


def new_files(names: set[str]) -> set[str]:
    return {name for name in names if DIRECTORY in name}


def test_readers_see_the_new_files_and_the_same_rows(lake: Lake) -> None:
    interleaved(lake)
    lake.build()
    before, old = read(lake)
    report = clustered(lake, **BY_X)
    assert (report.state, report.groups, report.old_files, report.rows) == ("completed", 1, 4, 160)
    assert report.rejected == ()
    for request in ({}, {"freshness": "snapshot"}, {"freshness": "cached(60s)"}):
        rows, files = read(lake, **request)
        assert rows == before
        assert files == new_files(files) and len(files) == report.new_files == 1, request
    assert {p.name for p in (lake.root / "t").glob("*.parquet")} == old


def test_pruning_bites_after_clustering(lake: Lake) -> None:
    interleaved(lake, 16, rows=500)
    lake.build()
    small = clustered(lake, **BY_X, limits=limits(target=1 << 13))
    assert small.new_files > 4
    some = And((ge("x", 100), le("x", 200)))
    rows, files = read(lake, some)
    assert len(files) == 1 and files == new_files(files)
    assert sum(rows.values()) < 8000 / 3
    lower, _ = read(lake, some, pruning=False)
    assert sum(lower.values()) == 8000


def limits(**changes: Any) -> Any:
    from tests.support.clustered import SMALL

    return replace(SMALL, **changes)


@pytest.mark.parametrize("layout", ["kdtree", "hilbert", "zorder", "linear", "binpack"])
def test_every_layout_in_every_partition(days: Lake, layout: str) -> None:
    interleaved(days, values=("1",))
    interleaved(days, 3, values=("2",))
    days.build()
    before, _ = read(days)
    columns = () if layout == "binpack" else ("x", "S")
    report = clustered(days, layout=layout, columns=columns)
    assert (report.groups, report.old_files, report.new_files) == (2, 7, 2)
    for request in ({}, {"freshness": "snapshot"}):
        rows, files = read(days, **request)
        assert rows == before and len(new_files(files)) == len(files) == 2
    one, files = read(days, le("day", "1"), freshness="snapshot")
    assert len(files) == 1 and sum(one.values()) == 160


def test_rolling_plans_take_all_partitions_in_turn(days: Lake) -> None:
    days.partition_values = [(str(i),) for i in range(8)]
    for i in range(8):
        interleaved(days, 2, (str(i),), rows=2)
    days.build()
    index, listed = days.snapshot(), in_directories(days.all_partitions(), days.storage)()
    strategy = Strategy(limits=limits(), partitions=PartitionFilter(rolling=4))

    def planned(instant: str) -> list[str]:
        plan = make_plan(instant, days.table(), listed, index, strategy)
        return [group.partition for group in plan.groups]

    turns = [planned(f"20260101{hour:02}0000000") for hour in range(4)]
    assert sorted(name for turn in turns for name in turn) == [f"day={i}" for i in range(8)]
    assert planned("20260101040000000") == turns[0] and len(planned("0" * 17)) == 8


@pytest.mark.parametrize("layout", ["linear", "binpack"])
def test_bloom_filters_and_page_indexes_go_with_the_plan(lake: Lake, layout: str) -> None:
    interleaved(lake)
    lake.build()
    columns = () if layout == "binpack" else ("x",)
    plan = scheduled(lake, layout=layout, columns=columns, bloom=("S",))
    assert timeline_of(lake).plan(plan.instant) == plan and plan.bloom == ("s",)
    report = executed(lake, plan)
    assert report.state == "completed"
    for name in new_files(read(lake)[1]):
        group = pa.parquet.read_metadata(lake.root / "t" / name).row_group(0)
        assert group.column(0).has_column_index and group.column(1).has_column_index
        assert group.column(0).bloom_filter_offset is None
        assert group.column(1).bloom_filter_offset is not None


def test_bloom_filters_that_are_refused(tmp_path: Path) -> None:
    plain = Lake(tmp_path / "plain", columns=(*COLUMNS_OF, Column("f", DOUBLE)))
    plain.write("f.parquet", {"x": [1], "s": ["a"], "f": [1.0]})
    plain.build()
    with pytest.raises(InvalidRequest, match="no bloom filter is written"):
        scheduled(plain, bloom=("f",))


@pytest.mark.parametrize("change", ["delete", "overwrite", "touch"])
def test_a_group_of_which_a_file_changed_is_read_as_listed(days: Lake, change: str) -> None:
    interleaved(days, values=("1",))
    interleaved(days, 3, values=("2",))
    days.build()
    clustered(days, **BY_X)
    path = days.directory(("1",)) / "f0.parquet"
    if change == "delete":
        path.unlink()
    elif change == "overwrite":
        days.write("f0.parquet", {"x": [1], "s": ["new"]}, ("1",))
        age(path, 5)
    else:
        age(path, 5)
    expected: Counter[tuple[Any, ...]] = Counter()
    for values in (("1",), ("2",)):
        for file in days.directory(values).glob("*.parquet"):
            table = pa.parquet.read_table(file, partitioning=None)
            name = days.name_of(values)
            expected.update((name, *map(repr, r.values())) for r in table.to_pylist())
    rows, files = read(days)
    assert rows == expected
    assert len(new_files(files)) == 1  # the other partition's group still holds
    days.build()
    assert read(days) == (rows, files) == read(days, freshness="snapshot")


def test_new_files_join_unclustered_and_are_clustered_later(lake: Lake) -> None:
    interleaved(lake)
    lake.build()
    clustered(lake, **BY_X)
    long = "".join(str(n * 7919 % 997) for n in range(800))  # more bytes than the plan wrote
    lake.write("g1.parquet", {"x": [5, 900], "s": ["a", long]})
    before, files = read(lake)
    assert len(files) == 2 and sum(before.values()) == 162
    lake.write("g2.parquet", {"x": [6, 800], "s": ["a", "b"]})
    lake.build()
    again = clustered(lake, **BY_X)
    assert (again.old_files, again.groups) == (3, 1)  # also the file that the first plan wrote
    rows, files = read(lake)
    assert sum(rows.values()) == 164 and len(files) == len(new_files(files)) == 1
    # All over again, from the old files, which are all still there.
    whole = clustered(lake, **BY_X, again=True)
    assert (whole.old_files, whole.new_files) == (6, 1)
    assert read(lake)[0] == rows and len(read(lake)[1]) == 1
    assert scheduled(lake, **BY_X).groups == ()


def test_losing_the_index_loses_no_row(lake: Lake) -> None:
    interleaved(lake)
    lake.build()
    before, old = read(lake)
    clustered(lake, **BY_X)
    for generation in (lake.root / "t/.skipbridge/generations").iterdir():
        generation.unlink()
    assert read(lake) == (before, old)
    lake.build()
    assert read(lake) == (before, old)
    # A run that is repeated commits what is still recorded.
    done = executed(lake, timeline_of(lake).plan(timeline_of(lake).states(None)[0].instant))
    assert (done.state, done.resumed) == ("completed", 1)
    assert read(lake)[0] == before and len(read(lake)[1]) == 1


@pytest.mark.parametrize("full", [False, True])
def test_builds_carry_the_replacements_forward(lake: Lake, full: bool) -> None:
    interleaved(lake)
    lake.build()
    clustered(lake, **BY_X)
    lake.write("g1.parquet", {"x": [5], "s": ["a"]})
    lake.build(full=full, files_per_commit=1)
    rows, files = read(lake, freshness="snapshot")
    assert sum(rows.values()) == 161 and len(files) == 2
    held = lake.store().latest()
    assert held is not None and held.clustering is not None
    assert lake.store().lacks(held.blobs()) is None
    lake.store().clean(keep=1, older_than=-5)
    assert lake.store().lacks(held.blobs()) is None
    assert read(lake)[0] == rows


def test_a_full_build_heals_a_table_whose_new_files_were_deleted(days: Lake) -> None:
    interleaved(days, values=("1",))
    interleaved(days, values=("2",))
    days.build()
    before, old = read(days)
    clustered(days, **BY_X)
    days.build(full=True)
    assert new_files(read(days)[1])
    next((days.root / "t" / DIRECTORY).rglob("*-data")).unlink()
    days.build(full=True)
    for request in ({}, {"freshness": "snapshot"}):
        assert read(days, **request) == (before, old)


def test_a_damaged_record_is_dropped_by_a_full_build(lake: Lake) -> None:
    interleaved(lake)
    lake.build()
    before, old = read(lake)
    clustered(lake, **BY_X)
    held = lake.store().latest()
    assert held is not None and held.clustering is not None
    blob = lake.root / "t/.skipbridge" / held.clustering.replacements.name
    blob.write_bytes(b"x" * held.clustering.replacements.size)
    assert read(lake) == (before, old)  # the index is not used
    lake.build(full=True)
    held = lake.store().latest()
    assert held is not None and held.clustering is None
    assert read(lake) == (before, old)


def test_aggregates_limits_and_orders_over_clustered_files(lake: Lake) -> None:
    interleaved(lake, 16, rows=500)
    lake.write("late.parquet", {"x": [-5, 10**6], "s": ["a", None]})
    lake.build()
    clustered(lake, **BY_X, limits=limits(target=1 << 15))
    lake.write("unknown.parquet", {"x": [10**7], "s": ["a"]})
    plan = lake.planner().plan(ScanRequest(NAME))
    count = AggregateRequest((Aggregate("count"),))
    assert aggregate(plan, count).rows is None  # of the newest file nothing is known
    (lake.root / "t/unknown.parquet").unlink()
    x = plan.context.resolve("x")
    wanted = (Aggregate("count"), Aggregate("min", x), Aggregate("max", x))
    found = aggregate(lake.planner().plan(ScanRequest(NAME)), AggregateRequest(wanted))
    assert found.rows == ((8002, -5, 10**6),)
    _, files = read(lake, limit=3)
    assert len(files) == 1
    first, files = read(lake, limit=2, order=(SortKey("x", descending=True),))
    assert ("", "1000000", "None") in first
    rows, _ = read(lake, limit=10**6)
    assert sum(rows.values()) == 8002


def test_system_tables_show_what_is_read(days: Lake) -> None:
    interleaved(days, values=("1",))
    interleaved(days, 3, values=("2",))
    days.build()
    clustered(days, **BY_X)
    days.write("lone.parquet", {"x": [10**9], "s": ["z"]}, ("2",))
    days.build()

    def rows(kind: str) -> list[dict[str, Any]]:
        plan = days.planner().plan(ScanRequest(NAME))
        pages = list(system_table_rows(plan, kind, COLUMNS[kind]))
        return [
            dict(zip(COLUMNS[kind], row, strict=True))
            for page in pages
            for row in zip(*page, strict=True)
        ]

    found = {row["partition"]: row for row in rows("partitions")}
    assert len(rows("partitions")) == 2
    assert (found["day=1"]["files"], found["day=1"]["rows"]) == (1, 160)
    assert (found["day=2"]["files"], found["day=2"]["rows"]) == (2, 121)
    assert sorted(row["rows"] for row in rows("files")) == [1, 120, 160]


def test_hive_is_told_of_old_files_only(lake: Lake) -> None:
    interleaved(lake)
    lake.write("far.parquet", {"x": [10**6], "s": ["z"]})
    lake.build()
    clustered(lake, **BY_X)
    planner = lake.planner()
    view = planner.views.view(lake.table())
    found = list_skippable_files(lake.table(), view, ScanRequest(NAME, ge("x", 10**6)))
    names = [path.rpartition("/")[2] for path in found.paths.to_pylist()]
    assert sorted(names) == [f"f{i}.parquet" for i in range(4)] and found.known == 5


def test_a_changed_group_is_rejected_and_the_others_commit(days: Lake) -> None:
    interleaved(days, values=("1",))
    interleaved(days, 3, values=("2",))
    days.build()
    plan = scheduled(days, **BY_X)
    days.write("f0.parquet", {"x": [3], "s": ["other"]}, ("1",))
    before, _ = read(days)
    report = executed(days, plan)
    assert (report.state, report.old_files) == ("completed", 3)
    ((_, reason),) = report.rejected
    assert reason.startswith("FILE_CHANGED") and "day=1/f0.parquet" in reason
    rows, files = read(days)
    assert rows == before and len(new_files(files)) == 1
    assert not list((days.root / "t" / DIRECTORY / plan.instant / "day=1").glob("*"))


def test_nothing_is_committed_if_every_group_is_rejected(lake: Lake) -> None:
    interleaved(lake)
    lake.build()
    plan = scheduled(lake, **BY_X)
    (lake.root / "t/f1.parquet").unlink()
    report = executed(lake, plan)
    assert (report.state, report.generation) == ("rejected", -1)
    with pytest.raises(InvalidRequest, match="was rejected"):
        executed(lake, plan)
    assert len(read(lake)[1]) == 3


def test_a_cancelled_plan_is_not_executed_and_its_files_are_free(lake: Lake) -> None:
    interleaved(lake)
    lake.build()
    plan = scheduled(lake, **BY_X)
    assert scheduled(lake, **BY_X).groups == ()  # they wait in the first plan
    assert timeline_of(lake).end(plan.instant, "cancelled") == "cancelled"
    with pytest.raises(InvalidRequest, match="was cancelled"):
        executed(lake, plan)
    assert clustered(lake, **BY_X).state == "completed"
    states = timeline_of(lake).states(lake.store().latest())
    assert [s.state for s in states] == ["cancelled", "completed"]


def test_a_run_that_dies_anywhere_is_resumed(days: Lake) -> None:
    interleaved(days, values=("1",))
    interleaved(days, 3, values=("2",))
    days.build()
    before, old = read(days)
    plan = scheduled(days, **BY_X)
    deaths = 0
    for step in range(1, 100):
        try:
            report = executed(days, plan, Dying(days.storage, 1 + step // 2, done=step % 2 == 0))
            break
        except Killed:
            deaths += 1
            rows, files = read(days)
            assert rows == before and (files == old or len(files) == len(new_files(files)) == 2)
            days.build()
    assert report.state == "completed" and deaths > 4
    rows, files = read(days)
    assert rows == before and len(files) == len(new_files(files)) == 2
    again = executed(days, plan)
    assert (again.state, again.generation, again.resumed) == ("completed", report.generation, 2)
    held = days.store().latest()
    assert held is not None
    assert len(replacements_of(read_replacements(days.store(), held))) == 2


def test_a_query_keeps_its_snapshot(lake: Lake) -> None:
    interleaved(lake)
    lake.build()
    planner = lake.planner()
    first = planner.plan(ScanRequest(NAME, query_id="q", freshness="snapshot"))
    before = [p for b in first.batches() for p in b.files.paths.to_pylist()]
    clustered(lake, **BY_X)
    second = planner.plan(ScanRequest(NAME, query_id="q", freshness="snapshot"))
    assert [p for b in second.batches() for p in b.files.paths.to_pylist()] == before
    third = planner.plan(ScanRequest(NAME, query_id="r", freshness="snapshot"))
    assert len([p for b in third.batches() for p in b.files.paths.to_pylist()]) == 1


def test_files_of_a_shared_location_are_not_planned(days: Lake) -> None:
    interleaved(days, values=("1",))
    days.locations["day=2"] = days.directory(("1",))
    days.build()
    assert scheduled(days, **BY_X).groups == ()


def test_a_location_that_is_shared_later_reads_alike_in_both(days: Lake) -> None:
    interleaved(days, values=("1",))
    days.directory(("2",)).mkdir(parents=True)
    days.build()
    clustered(days, **BY_X)
    days.locations["day=2"] = days.directory(("1",))
    for build in (False, True):
        if build:
            days.build()
        for request in ({}, {"freshness": "snapshot"}):
            if request and not build:
                continue  # the generation does not know of the change, as always
            rows, _ = read(days, **request)
            assert Counter(r[0] for r in rows.elements()) == {"day=1": 160, "day=2": 160}


def test_metrics_of_the_plan(lake: Lake) -> None:
    interleaved(lake, 2, rows=2)
    lake.build()
    (group,) = scheduled(lake, **BY_X).groups
    x, s = (("0", "2"), ("1", "3")), (("s0", "s2"), ("s1", "s3"))
    assert group.metrics == (("x", x), ("s", s))


@pytest.mark.parametrize(
    "where", ["elsewhere.parquet", "t/day=1/../../elsewhere.parquet", "t/day=2/f0.parquet"]
)
def test_a_plan_reads_nothing_outside_of_its_partition(days: Lake, where: str) -> None:
    interleaved(days, values=("1",))
    interleaved(days, values=("2",))
    days.build()
    plan = scheduled(days, **BY_X)
    outside = days.root / "elsewhere.parquet"
    outside.write_bytes((days.directory(("1",)) / "f0.parquet").read_bytes())
    age(outside)
    seen = days.storage.stat(f"file://{(days.root / where).resolve()}")
    group = next(g for g in plan.groups if g.partition == "day=1")
    assert seen is not None
    foreign = replace(
        group.files[0], path=f"file://{days.root}/{where}", size=seen.size, modified=seen.modified
    )
    report = executed(days, replace(plan, groups=(replace(group, files=(foreign,)),)))
    assert report.state == "rejected" and "is not in" in report.rejected[0][1]
    assert not (days.root / "t" / DIRECTORY).exists()


def test_a_plan_of_a_dropped_partition_is_rejected(days: Lake) -> None:
    interleaved(days, values=("1",))
    interleaved(days, values=("2",))
    days.build()
    plan = scheduled(days, **BY_X)
    days.partition_values = [("2",)]
    report = executed(days, plan)
    assert [reason for _, reason in report.rejected] == [
        "FILE_CHANGED: there is no partition day=1"
    ]
    rows, files = read(days)
    assert sum(rows.values()) == 160 and files == new_files(files)


def test_new_files_are_read_from_their_own_directory_only(lake: Lake) -> None:
    interleaved(lake)
    lake.build()
    before, old = read(lake)
    clustered(lake, **BY_X)
    store = lake.store()
    (group,) = replacements_of(read_replacements(store, lake.snapshot().manifest))
    (new,) = group.new
    for path in (f"{lake.location}/f0.parquet", f"{lake.location}/{DIRECTORY}/../f0.parquet"):
        forged = replace(group, new=(replace(new, path=path),))
        found = commit_replacements(store, lake.table(), path, [forged], ())
        with pytest.raises(IndexCorrupt, match="which is not in"):
            read_replacements(store, found)
        assert read(lake) == (before, old)
        lake.build(full=True)


def kinds_of(lake: Lake) -> tuple[set[str], set[str]]:
    """Signatures that all shards hold: of the table's own files, and of clustered ones."""
    manifest = lake.snapshot().manifest
    assert manifest.clustering is not None
    own, new = (
        set.intersection(*({p.signature for p in shard.payloads} for shard in shards))
        for shards in (manifest.shards, manifest.clustering.shards)
    )
    return own, new


def test_orc_files_are_refused_with_the_statement_that_rewrites_them(tmp_path: Path) -> None:
    lake = Lake(tmp_path, columns=COLUMNS_OF, format="orc")
    po.write_table(pa.table({"x": [1], "s": ["a"]}), lake.path("f.orc"))
    lake.build()
    with pytest.raises(UnsupportedTable, match="is stored as orc") as refused:
        check_table(lake.table())
    assert f"INSERT INTO another_table SELECT * FROM {lake.table().name}" in refused.value.hint


def test_an_index_that_is_added_later_covers_clustered_files(tmp_path: Path) -> None:
    lake = Lake(tmp_path, columns=COLUMNS_OF)
    for i in range(8):
        x = list(range(i, 4000, 8))
        table = pa.table({"x": x, "s": [f"{v * 7919 % 4000:04d}" for v in x]})
        pa.parquet.write_table(table, lake.path(f"f{i}.parquet"))
        age(lake.path(f"f{i}.parquet"))
    lake.build()
    before, _ = read(lake)
    clustered(lake, **BY_X, limits=limits(target=1 << 13))
    sought = eq("s", "0791")
    _, files = read(lake, sought)
    assert len(files) > 1 and files == new_files(files)  # min and max do not help
    bloom = kind("bloom").define("s")
    report = lake.build(settings=lambda held: held.adding([bloom]))
    assert report.committed and bloom.signature in set.intersection(*kinds_of(lake))
    rows, files = read(lake, sought)
    assert len(files) == 1 and files == new_files(files)
    assert [row for row in rows if row[2] == "'0791'"] and read(lake)[0] == before
    assert not lake.build().committed  # nothing is read twice
    assert lake.build(settings=lambda held: held.without("bloom(s)")).committed
    assert bloom.signature not in set.union(*kinds_of(lake))
    assert read(lake)[0] == before


def test_a_full_build_reads_clustered_files_again(lake: Lake) -> None:
    interleaved(lake)
    lake.build()
    clustered(lake, **BY_X)
    before, _ = read(lake)

    def ids() -> set[str]:
        manifest = lake.snapshot().manifest
        assert manifest.clustering is not None
        return {shard.id for shard in manifest.clustering.shards}

    first = ids()
    lake.build(full=True)
    second = ids()
    assert first.isdisjoint(second)
    lake.build(nan="scan")
    assert ids().isdisjoint(second)
    rows, files = read(lake)
    assert rows == before and files == new_files(files)


def test_clustered_files_that_are_gone_do_not_stop_a_build(lake: Lake) -> None:
    interleaved(lake)
    lake.build()
    clustered(lake, **BY_X)
    for path in (lake.root / "t" / DIRECTORY).rglob("*-data"):
        path.unlink()
    bloom = kind("bloom").define("s")
    lake.build(settings=lambda held: held.adding([bloom]))
    own, new = kinds_of(lake)
    assert bloom.signature in own and bloom.signature not in new
    lake.build(full=True)
    assert sum(read(lake)[0].values()) == 160
