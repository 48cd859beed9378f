"""Designed cases: the planner keeps the law, and pruning did happen."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from bridge.expression.nodes import Expression
from bridge.expression.parsing.text import parse_where
from bridge.kernel.errors import ColumnNotFound, PartitionAbsent
from bridge.kernel.types import BIGINT, INTEGER, STRING
from bridge.planner.planner import Planner
from bridge.planner.reports.remedies import remedy_text
from bridge.planner.reports.report import PruneReport
from bridge.planner.request import ScanRequest
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Column, TableName
from bridge.table.read_version import parse_read_version
from tests.support.lake import NAME, Lake, age, drained, everything, kept


def where(text: str) -> Expression:
    expression, dropped = parse_where(text)
    assert not dropped
    return expression


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Partitions p = 1, NULL, 'abc' (no integer); in each one file with x = 10 and one with 20."""
    made = Lake(tmp_path, (Column("x", INTEGER),), (Column("p", INTEGER), Column("q", STRING)))
    made.partition_values = [("1", "a"), (None, "a"), ("abc", "b")]
    for values in made.partition_values:
        for x in (10, 20):
            made.write(f"x{x}.parquet", pa.table({"x": pa.array([x], pa.int32())}), values)
    made.build()
    return made


def names(uris: set[str]) -> set[str]:
    return {"/".join(uri.split("/")[-3:]) for uri in uris}


@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}", "local://{}"])
@pytest.mark.parametrize("freshness", ["live", "cached(60s)", "snapshot"])
def test_every_spelling_of_the_location_prunes(lake: Lake, spelling: str, freshness: str) -> None:
    lake.spelling = spelling
    planner = lake.planner()
    assert len(kept(planner, where("x = 10"), freshness=freshness)) == 3
    assert len(everything(planner)) == 6
    assert lake.build().read == 0  # the other spelling's files are the same files


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("p = 1", 2 + 2),  # 'abc' may be anything
        ("p IS NULL", 2 + 2),
        ("p IS NOT NULL", 2 + 2),
        ("p = 7", 2),
        ("p = 1 AND x = 10", 1 + 1),
        ("p = 7 OR x = 10", 2 + 3 - 1),  # all of 'abc', and x = 10 elsewhere
        ("(p = 1 AND x = 10) OR (q = 'b' AND x = 20)", 1 + 2),  # 'abc': either half may hold
        ("q = 'b'", 2),
        ("q <> 'b' AND x > 15", 2),
        ("\"$partition\" = 'p=1/q=a'", 2),
        ("\"$partition\" LIKE 'p=1%' OR x = 10", 2 + 2),
        ('"$file_size" < 10', 0),
        ('"$file_size" > 10', 6),
        ("\"$file_modified_time\" > TIMESTAMP '2100-01-01 00:00:00 UTC'", 0),
        ("\"$file_modified_time\" > TIMESTAMP '2000-01-01 00:00:00 UTC'", 6),
        ("x = 10 AND \"$file_modified_time\" > TIMESTAMP '2000-01-01 00:00:00 UTC'", 3),
        ("x > 100", 0),
        ("false", 0),
    ],
)
def test_keys_hidden_columns_and_data_in_one_predicate(lake: Lake, text: str, count: int) -> None:
    planner = lake.planner()
    for mode in ("live", "snapshot"):
        assert len(kept(planner, where(text), freshness=mode)) == count, mode


def test_path_is_the_canonical_uri(lake: Lake) -> None:
    planner = lake.planner()
    one = sorted(everything(planner))[0]
    assert kept(planner, where(f"\"$path\" = '{one}'")) == {one}
    assert kept(planner, where(f"\"$path\" <> '{one}'")) == everything(planner) - {one}
    assert kept(planner, where(f"\"$path\" IN ('{one}', 'file:///nowhere')")) == {one}


def test_a_dynamic_filter_prunes_what_was_not_handed_out(lake: Lake) -> None:
    planner = lake.planner()
    plan = planner.plan(ScanRequest(NAME, where("p = 1 OR p IS NULL")))
    found = drained(plan, narrow=where("x = 10"))
    assert len(found) == 3
    report = plan.report()
    assert [(s.index, s.total, s.kept) for s in report.stages if s.index == "dynamic-filters"] == [
        ("dynamic-filters", 6, 3)
    ]
    assert report.files_kept == 3


def test_a_dynamic_filter_over_an_unknown_column_is_an_error_of_its_call(lake: Lake) -> None:
    plan = lake.planner().plan(ScanRequest(NAME))
    with pytest.raises(ColumnNotFound):
        plan.apply_dynamic_filter(where("nope = 1"))
    assert len(drained(plan)) == 6


def test_an_index_of_an_empty_table_skips_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", INTEGER),))
    assert lake.build().files == 0
    lake.write("a", {"x": [1]})
    assert len(kept(lake.planner(), where("x = 1"))) == 1
    assert len(kept(lake.planner(), where("x = 2"))) == 1


def test_a_file_rewritten_at_the_same_size_is_read(lake: Lake) -> None:
    """Correctness 19: nothing but the time tells the two apart."""
    planner = lake.planner()
    path = lake.directory(("1", "a")) / "x20.parquet"
    before = path.stat()
    assert f"file://{path}" not in kept(planner, where("x = 10"))
    lake.write("x20.parquet", pa.table({"x": pa.array([10], pa.int32())}), ("1", "a"))
    age(path, -3.0)
    after = path.stat()
    assert after.st_size == before.st_size and after.st_mtime_ns != before.st_mtime_ns
    assert f"file://{path}" in kept(planner, where("x = 10"))
    plan = planner.plan(ScanRequest(NAME, where("x = 10")))
    drained(plan)
    stale = plan.report().not_used
    assert [n.reason for n in stale] == ["STALE"]
    assert remedy_text(stale[0].remedy) == "skipbridge index refresh db.t"
    lake.build()
    assert f"file://{path}" in kept(planner, where("x = 10"))
    assert f"file://{path}" not in kept(planner, where("x = 20"))


def test_a_file_written_within_the_clocks_grain_is_not_trusted(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", INTEGER),))
    path = lake.write("a.parquet", pa.table({"x": pa.array([1], pa.int32())}))
    os.utime(path, (path.stat().st_atime + 3600, path.stat().st_mtime + 3600))  # from the future
    assert lake.build().untrusted == 1
    for mode in ("live", "snapshot"):
        assert len(kept(lake.planner(), where("x = 2"), freshness=mode)) == 1


def test_a_vanished_file_is_not_planned_live(lake: Lake) -> None:
    (lake.directory(("1", "a")) / "x10.parquet").unlink()
    planner = lake.planner()
    assert names(kept(planner, where("x = 10 AND p = 1"))) == {"p=abc/q=b/x10.parquet"}


def test_scans_of_one_query_see_one_file_set(lake: Lake) -> None:
    planner = lake.planner()
    first = kept(planner, where("true"), query_id="q1")
    lake.write("new.parquet", pa.table({"x": pa.array([10], pa.int32())}), ("1", "a"))
    lake.build()
    assert kept(planner, where("true"), query_id="q1") == first
    assert planner.plan(ScanRequest(NAME, query_id="q1")).view.generation == 1
    assert len(kept(planner, where("true"), query_id="q2")) == len(first) + 1
    assert planner.plan(ScanRequest(NAME, query_id="q2")).view.generation == 2
    assert len(everything(planner)) == len(first) + 1


def test_a_listing_that_is_older_than_asked_for_is_not_used(lake: Lake) -> None:
    """A writer tells how long ago it changed the table, whatever age its freshness allows."""
    planner = lake.planner()
    held = everything(planner, freshness="cached(60s)")
    lake.write("new.parquet", pa.table({"x": pa.array([10], pa.int32())}), ("1", "a"))
    for text, files in ((";max_age=60000", 6), ("", 6), (";max_age=0", 7), ("", 7)):
        read = parse_read_version(text)
        assert len(everything(planner, freshness="cached(60s)", read=read)) == files
    assert len(held) == 6
    # an index's own file set is what was asked for, however old
    for text, files in ((";max_age=0", 6), (";fresh", 7), ("", 6)):
        read = parse_read_version(text)
        assert len(everything(planner, freshness="snapshot", read=read)) == files


def test_a_query_pins_partitions_that_only_its_second_scan_reads(lake: Lake) -> None:
    planner = lake.planner()
    assert len(kept(planner, where("q = 'b'"), query_id="q1")) == 2
    assert len(kept(planner, where("true"), query_id="q1")) == 6
    lake.write("new.parquet", pa.table({"x": pa.array([10], pa.int32())}), ("1", "a"))
    assert len(kept(planner, where("true"), query_id="q1")) == 6


def test_without_pruning_every_file_comes(lake: Lake) -> None:
    plan = lake.planner().plan(ScanRequest(NAME, where("x = 10"), pruning=False))
    plan.apply_dynamic_filter(where("x = 10"))
    assert len(drained(plan)) == 6
    assert plan.report().not_used[0].reason == "DISABLED"


def test_a_broken_index_is_named_and_never_trusted(lake: Lake) -> None:
    planner = lake.planner()
    for shard in lake.path(".skipbridge/shards").glob("*-columns*"):
        raw = bytearray(shard.read_bytes())
        raw[len(raw) // 2] ^= 255
        shard.write_bytes(bytes(raw))
    plan = planner.plan(ScanRequest(NAME, where("x = 10")))
    assert len(drained(plan)) == 6
    report: PruneReport = plan.report()
    assert report.generation == -1
    (missing,) = report.not_used
    assert missing.reason == "INDEX_CORRUPT" and "checksum" in missing.detail
    assert remedy_text(missing.remedy) == "skipbridge index build db.t"


def test_an_index_built_anew_under_the_same_number_is_noticed(lake: Lake) -> None:
    planner = lake.planner()
    assert len(kept(planner, where("x = 10"), freshness="snapshot")) == 3
    for file in sorted(lake.path(".skipbridge").rglob("*.*"), reverse=True):
        file.unlink()
    lake.write("new.parquet", pa.table({"x": pa.array([10], pa.int32())}), ("1", "a"))
    assert lake.build().generation == 1
    assert len(kept(planner, where("x = 10"), freshness="snapshot")) == 4


def test_27_a_file_that_failed_is_told_as_such(lake: Lake) -> None:
    """No refresh helps it: the report does not ask for one."""
    path = lake.directory(("1", "a")) / "x20.parquet"
    path.write_bytes(b"no Parquet file")
    age(path)
    lake.build()
    for mode in ("live", "snapshot"):
        plan = lake.planner().plan(ScanRequest(NAME, where("x = 10"), freshness=mode))
        assert len(drained(plan)) == 3 + 1, "pruning happens beside it"
        (told,) = plan.report().not_used
        assert (told.reason, remedy_text(told.remedy)) == (
            "FAILED_FILES",
            "skipbridge index show db.t --failed",
        )
        assert told.detail.startswith("1 file could not be read")
    age(path, 60)
    plan = lake.planner().plan(ScanRequest(NAME, where("x = 10")))
    drained(plan)
    assert [n.reason for n in plan.report().not_used] == ["STALE"]


def test_reasons_are_of_the_file_that_was_asked_about(lake: Lake) -> None:
    """A condition on ``$path`` asks why this file is read, whatever lies beside it."""
    bad = lake.directory(("1", "a")) / "x20.parquet"
    bad.write_bytes(b"no Parquet file")
    age(bad)
    lake.build()
    good, new = bad.with_name("x10.parquet"), bad.with_name("new.parquet")
    new.write_bytes(good.read_bytes())
    for path, reasons in ((good, []), (bad, ["FAILED_FILES"]), (new, ["STALE"])):
        condition = f"x = 10 AND \"$path\" = 'file://{path}'"
        plan = lake.planner().plan(ScanRequest(NAME, where(condition)))
        drained(plan)
        assert [n.reason for n in plan.report().not_used] == reasons


@pytest.mark.parametrize("freshness", ["live", "cached(60s)"])
@pytest.mark.rule("43")
def test_a_partition_whose_directory_is_gone_is_an_error(lake: Lake, freshness: str) -> None:
    lake.partition_values.append(("8", "gone"))
    planner = lake.planner()
    with pytest.raises(PartitionAbsent, match=r"p=8/q=gone does not exist.*p=8/q=gone"):
        everything(planner, freshness=freshness)
    # partitions that the predicate leaves out are not looked at
    assert len(kept(planner, where("q = 'b'"), freshness=freshness)) == 2
    # Hive takes it as empty, and what was found for Hive is no answer for Trino
    assert len(everything(planner, freshness=freshness, absent_is_empty=True)) == 6
    with pytest.raises(PartitionAbsent):
        everything(planner, freshness=freshness)
    lake.directory(("8", "gone")).mkdir(parents=True)
    assert len(everything(planner, freshness=freshness)) == 6


def test_absent_partitions_may_be_ignored(lake: Lake) -> None:
    lake.partition_values.append(("8", "gone"))
    views = lake.planner().views
    listings = DirectoryLister(lake.storage, 4, ignore_absent=True)
    assert len(everything(Planner(lake, views, listings, metadata_ttl=0.0))) == 6


def test_the_directory_of_a_table_may_be_gone_too(tmp_path: Path) -> None:
    made = Lake(tmp_path, (Column("x", INTEGER),))
    assert everything(made.planner()) == set()
    made.directory(()).rmdir()
    with pytest.raises(PartitionAbsent, match="the directory of the table does not exist"):
        everything(made.planner())


@pytest.mark.parametrize("mode", ["live", "cached(60s)", "snapshot"])
def test_28_a_partition_at_another_location_than_when_it_was_indexed(lake: Lake, mode: str) -> None:
    """Dropped and added again elsewhere: nothing of the old place is read, all of the new."""
    name = lake.name_of(("1", "a"))
    lake.locations = {name: lake.root / "elsewhere"}
    lake.write("y.parquet", pa.table({"x": pa.array([10], pa.int32())}), ("1", "a"))
    found = kept(lake.planner(), where("x = 10"), freshness=mode)
    assert [uri for uri in found if "/t/p=1/" in uri] == []
    assert len(found) == 3 and f"file://{lake.root}/elsewhere/y.parquet" in found


@pytest.mark.parametrize("pattern", ["*-*.arrow", "files.arrow", "meta.json", "[0-9a-f]*.json"])
@pytest.mark.parametrize("damage", [b"\0", b"\xff"])
def test_21_damaged_files_of_the_local_cache_stop_nothing(
    lake: Lake, damage: bytes, pattern: str
) -> None:
    """As a machine leaves them that lost its power: of the right size, and nothing in them."""
    expected = kept(lake.planner(), where("x = 10"))
    assert len(expected) == 3
    damaged = list((lake.root / "cache").rglob(pattern))
    assert damaged
    for path in damaged:
        path.write_bytes(damage * path.stat().st_size)
    assert kept(lake.planner(), where("x = 10")) >= expected
    assert kept(lake.planner(), where("x = 10")) >= expected


def test_views_of_tables_that_nobody_asks_about_any_more_are_let_go(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.planner.index_view._MOST_TABLES", 3)
    views = lake.planner().views
    held = views.view(lake.table())
    for number in range(10):
        views.view(lake.table(TableName("db", f"t{number}")))
        assert views.view(lake.table()) is held
    assert len(views._entries) == 3


def test_a_partition_that_moved_above_its_indexed_place_is_listed(tmp_path: Path) -> None:
    """The files below its new place are not its own, unless directories are listed with theirs."""
    lake = Lake(tmp_path, (Column("x", BIGINT),), (Column("p", STRING),))
    lake.partition_values = [("1",)]
    place = tmp_path / "t" / "p=1"
    lake.locations["p=1"] = place / "v2"
    lake.write("old.parquet", {"x": [1]}, ("1",))
    lake.build()
    lake.locations["p=1"] = place
    new = lake.write("new.parquet", {"x": [2]}, ("1",))
    for freshness in ("live", "snapshot"):
        assert everything(lake.planner(), freshness=freshness) == {f"file://{new}"}
