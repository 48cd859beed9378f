"""Absences, places and refusals that a sync states, over the laws' model of a metastore."""

from __future__ import annotations

import copy
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.errors import MetastoreFailure
from bridge.kernel.types import INTEGER
from bridge.sync.report import SyncReport, warnings
from bridge.sync.state import MISSING_PROPERTY
from tests.support.sync_lake import KEY_COLUMNS, Remove, SyncLake, Write


def lake_of(tmp_path: Path, *directories: str, drop_after: float = 0.0) -> SyncLake:
    lake = SyncLake(tmp_path)
    lake.settings = replace(lake.settings, drop_after=drop_after)
    for directory in directories:
        lake.take(Write(directory, "first"))
    sync(lake)
    return lake


def sync(lake: SyncLake, **options: Any) -> SyncReport:
    return lake.sync(**{"drop_now": False, "drop_all": False, **options})


def many(number: int) -> list[str]:
    return [f"p={i}/q=1" for i in range(number)]


def point(lake: SyncLake, values: tuple[str, ...], place: object) -> None:
    descriptor = lake.metastore.partitions[values].sd
    descriptor.location = place if ":" in str(place) else f"file:{place}"


@pytest.mark.rule("43")
def test_a_drop_waits_for_a_second_run_and_its_time(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3), drop_after=3600.0)
    lake.take(Remove("p=1"))
    report = sync(lake)
    ((name, _, reason),) = report.waiting
    assert name == "p=1/q=1" and "--drop-now" in reason and not report.dropped
    assert report.updated == [("p=1/q=1", "no data there")]
    assert any("hive.ignore-absent-partitions" in line for line in warnings(report))
    parameters = lake.metastore.partitions["1", "1"].parameters
    assert MISSING_PROPERTY in parameters
    before = lake.metastore.copy()
    again = sync(lake)
    assert again.outcome == "in step" and again.waiting and not again.problems
    assert lake.metastore.partitions == before.partitions
    assert lake.metastore.record == before.record, "a run that finds nothing new writes nothing"
    lake.take(Write("p=1/q=1", "first"))
    report = sync(lake)
    assert not report.waiting and report.updated == [("p=1/q=1", "data there again")]
    assert MISSING_PROPERTY not in lake.metastore.partitions["1", "1"].parameters
    lake.take(Remove("p=1"))
    sync(lake)
    hour_ago = str(int(time.time() * 1000) - 3_601_000)
    lake.metastore.partitions["1", "1"].parameters[MISSING_PROPERTY] = hour_ago
    assert sync(lake).dropped == ["p=1/q=1"]


@pytest.mark.rule("43")
def test_a_drop_waits_for_a_job_at_work(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    lake.take(Remove("p=1"))
    sync(lake)
    for place in ("", "p=1/q=1/"):
        part = lake.root / f"{place}.hive-staging_1" / "part"
        part.parent.mkdir(parents=True)
        part.write_bytes(b"x")
        (waits,) = sync(lake).waiting
        assert ".hive-staging_1: --drop-now" in waits[2]
        os.utime(part, (1, 1))
    assert sync(lake).dropped == ["p=1/q=1"]


@pytest.mark.rule("43")
def test_the_brake_counts_the_drops_of_a_day(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(20))
    for i in range(4):
        lake.take(Remove(f"p={i}"))
    assert len(sync(lake, drop_now=True).dropped) == 4
    for i in range(4, 6):
        lake.take(Remove(f"p={i}"))
    report = sync(lake, drop_now=True)
    assert not report.dropped and report.held == report.problems == 2
    assert "2 partitions of 16" in report.waiting[0][2] and "--drop-all" in report.waiting[0][2]
    assert sync(lake, drop_now=True).problems == 2, "in each run"
    assert len(sync(lake, drop_all=True).dropped) == 2


@pytest.mark.rule("45")
def test_a_place_is_registered_once_however_it_is_named(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    old = lake.metastore.partitions["1", "1"]
    lake.take(Write("p=1/q=1_v2", "first"))
    lake.take(Remove("p=1/q=1"))
    alias = tmp_path / "alias"
    alias.symlink_to(lake.root, target_is_directory=True)
    spellings = (
        "file:{}",
        "file:///{}/",
        "{}/./",
        "file://localhost{}",
        f"file:{alias}/p=1/q=1_v2",
    )
    for spelled in spellings:
        old.sd.location = spelled.format(lake.root / "p=1" / "q=1_v2")
        report = sync(lake, full=True)
        assert not report.added and not report.problems, spelled
        assert not sync(lake).added and len(lake.metastore.partitions) == 3
    lake.take(Write("p=9/q=9", "first"))
    assert sync(lake).added == ["p=9/q=9"], "a quick run reads the places that its state lists"
    lake.take(Write("p=1/q=1_v2/r", "first"))
    point(lake, ("1", "1"), lake.root / "p=1" / "q=1_v2" / "r")
    report = sync(lake, full=True)
    assert not report.added and "it is above" in report.kept[-1][2]
    assert report.unregistered == ["p=1/q=1_v2"] and sync(lake).problems == 1


@pytest.mark.rule("44", "45")
@pytest.mark.parametrize("name", ["new", "due"])
def test_a_place_that_another_registers_between_two_batches(tmp_path: Path, name: str) -> None:
    """Another registers a directory of the last batch after the first: by a name that no directory
    has, or by that of another directory of the last batch.
    """
    lake = lake_of(tmp_path, *many(1))
    lake.settings = replace(lake.settings, parallelism=1)
    for directory in many(9)[1:]:
        lake.take(Write(directory, "first"))
    place = lake.root / "p=8" / "q=1"
    values = ("z" if name == "new" else "7", "1")
    calls: list[str] = []

    def register(method: str, moment: str) -> None:
        calls.append(f"{moment} {method}")
        if calls.count("after add_partitions") == 1 and values not in lake.metastore.partitions:
            made = copy.deepcopy(lake.metastore.partitions["0", "1"])
            made.values = list(values)
            lake.metastore.partitions[values] = made
            point(lake, values, place)

    lake.metastore.interfere = register
    report = sync(lake)
    lake.metastore.interfere = lambda method, moment: None
    assert calls.count("before add_partitions") > 2
    at = [v for v, where in lake.places().items() if where == place]
    assert at == [values] and not report.doubled
    left = [] if name == "new" else ["p=7/q=1"]
    assert sync(lake, full=True).unregistered == left
    assert sorted(lake.places().values()) == sorted(lake.root / d for d in many(9) if d not in left)


def test_names_are_read_before_each_batch_as_often_as_a_large_table_allows(tmp_path: Path) -> None:
    """Beside two reads, before the comparison and at the end, some 12 names for each addition."""
    for number, reads in ((1, range(15, 21)), (120, range(3, 6)), (600, range(1, 2))):
        lake = lake_of(tmp_path / str(number), *many(number))
        for directory in many(number + 40)[number:]:
            lake.take(Write(directory, "first"))
        calls: list[str] = []
        lake.metastore.interfere = lambda method, moment, calls=calls: calls.append(method)
        assert len(sync(lake).added) == 40
        assert calls.count("add_partitions") == 2 * 20
        assert calls.count("get_partition_names") // 2 - 2 in reads, number


@pytest.mark.rule("45")
def test_no_partition_is_moved_to_a_place_that_another_has(tmp_path: Path) -> None:
    """A name without a directory has that of 0, which has that of 1, and so on; 3 and 4 change
    places.
    """
    lake = lake_of(tmp_path, *many(5), "p=x/q=1")
    lake.take(Remove("p=x"))
    lake.take(Write("odd", "first"))
    place = {str(i): lake.root / f"p={i}" / "q=1" for i in range(5)} | {"odd": lake.root / "odd"}
    for value, where in {"x": "0", "0": "1", "1": "2", "2": "odd", "3": "4", "4": "3"}.items():
        point(lake, (value, "1"), place[where])
    report = sync(lake, full=True, relocate=True)
    after = {"x": "0", "0": "1", "1": "2", "2": "odd", "3": "3", "4": "4"}
    assert lake.places() == {(value, "1"): place[where] for value, where in after.items()}
    assert not report.doubled and not report.problems
    blocked = {n for n, _, why in report.kept if "is registered as" in why}
    assert blocked == {f"p={i}/q=1" for i in (0, 1, 2)}
    lake.metastore.partitions.pop(("x", "1"))
    for _ in range(2):
        sync(lake, full=True, relocate=True)
    assert {v: where for (v, _), where in lake.places().items()} == {
        v: where for v, where in place.items() if v != "odd"
    }


@pytest.mark.rule("45")
def test_typed_names_are_one_partition(tmp_path: Path) -> None:
    lake = SyncLake(tmp_path)
    lake.take(Write("p=01/q=1", "first"))
    keys = (replace(KEY_COLUMNS[0], type=INTEGER), KEY_COLUMNS[1])
    sync(lake, keys=keys)
    held = lake.metastore.partitions.pop(("01", "1"))
    held.values = ["1", "1"]
    lake.metastore.partitions["1", "1"] = held
    report = sync(lake, keys=keys)
    assert report.outcome == "in step" and not report.added and not report.problems
    lake.take(Write("p=01/q=1", "longer", "g.parquet"))
    assert not sync(lake, keys=keys).added
    assert [c.name for c in held.sd.cols] != [
        c.name for c in lake.metastore.partitions["1", "1"].sd.cols
    ], "it follows the table"


def test_one_bad_member_stops_no_other(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(4))
    lake.settings = replace(lake.settings, limits=replace(lake.settings.limits, count=50))
    point(lake, ("1", "1"), "oss://bucket/p=1")
    lake.metastore.partitions["2", "1"].sd.location = ""
    for i in range(10, 100):
        lake.take(Write(f"p={i}/q=1", "first"))
    lake.take(Write(f"p={'x' * 200}%41{'y' * 50}/q={'z' * 250}", "first"))
    add = lake.metastore.add_partitions
    refused = {str(i) for i in range(10, 70)}

    def refuse(database: str, table: str, partitions: Any) -> Any:
        partitions = list(partitions)
        if any(p.values[0] in refused for p in partitions):
            raise MetastoreFailure("no", "none")
        return add(database, table, partitions)

    lake.metastore.add_partitions = refuse
    report = sync(lake, full=True)
    assert (len(report.added), len(report.failed)) == (31, 60)
    assert {k[0] for k in report.kept} == {"p=1/q=1", "p=2/q=1"}
    again = sync(lake, full=True)
    assert len(again.failed) == 60 and again.problems >= 60, "named in each run, if alone too"


def test_names_too_long_are_found_before_they_are_sent(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(1))
    long = "/".join(f"{k}={'%41' * 80}" for k in "pq")
    assert sync(lake).outcome == "in step"
    lake.take(Write(long, "first"))
    assert sync(lake).added, "the values are short"


def test_files_copied_with_their_times_bring_their_columns(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(8))
    past = time.time() - 1000
    for file in lake.root.rglob("*.parquet"):
        os.utime(file, (past, past))
    os.utime(lake.root / "p=0" / "q=1" / "f.parquet")
    sync(lake)
    lake.take(Write("p=3/q=1", "longer", "g.parquet"))
    os.utime(lake.root / "p=3" / "q=1" / "g.parquet", (past, past))
    assert "+ column extra double" in sync(lake).table_changes


def test_rows_in_no_partition_are_a_problem_in_each_run(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(2), "odd")
    assert [sync(lake).unregistered for _ in range(2)] == [["odd"]] * 2
    shutil.rmtree(lake.root / "odd")
    assert not sync(lake).problems
