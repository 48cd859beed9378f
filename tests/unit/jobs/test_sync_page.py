"""Sentences of the how-to page of sync that no other test has, over the laws' model."""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.errors import MetastoreFailure, UnsupportedTable
from bridge.kernel.types import INTEGER
from bridge.metastore._gen import ttypes
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.state import STATE_PROPERTY
from bridge.sync.storage import SyncStorage
from bridge.sync.writing.metastore import NewPartition, Writer, read_table
from bridge.table.directory.discovered import Discovered
from bridge.table.model import Column
from tests.support.sync_lake import NAME, SyncLake, Write
from tests.unit.jobs.test_sync_absence import lake_of, many, point, sync
from tests.unit.jobs.test_sync_state_file import state_of


@pytest.mark.parametrize(
    ("keys", "type_", "told"),
    [((), "string", True), ((Column("month", INTEGER),), "int", False)],
)
def test_leading_zeros_make_a_string_and_sync_says_so(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    keys: tuple[Column, ...],
    type_: str,
    told: bool,
) -> None:
    lake = SyncLake(tmp_path)
    lake.take(Write("month=01", "first"))
    with caplog.at_level(logging.WARNING):
        sync(lake, keys=keys)
    assert [k.type for k in lake.metastore.record.partitionKeys] == [type_]
    assert ("leading zero" in caplog.text and "month:int" in caplog.text) is told


def test_what_becomes_of_instants_and_nanoseconds_is_told(tmp_path: Path) -> None:
    lake = SyncLake(tmp_path)
    lake.take(Write("p=1/q=1", "first"))
    (file,) = (lake.root / "p=1" / "q=1").glob("*.parquet")
    times = {"at": pa.timestamp("us", tz="UTC"), "exact": pa.timestamp("ns")}
    whole = pa.table({**{n: pa.array([1], t) for n, t in times.items()}, "plain": [1]})
    pq.write_table(whole, file)
    told = sync(lake).table_changes
    assert "+ column at timestamp, from instants: Trino shows them in its catalog's zone" in told
    assert "+ column exact timestamp, from nanoseconds: Trino rounds them to microseconds" in told
    assert "+ column plain bigint" in told


def test_files_below_a_partition_count_where_engines_read_them(tmp_path: Path) -> None:
    for recursive in (False, True):
        lake = SyncLake(tmp_path / str(recursive))
        lake.settings = replace(lake.settings, recursive=recursive)
        lake.take(Write("p=1/q=1", "first"))
        lake.take(Write("p=2/q=1/part", "wider"))
        report = sync(lake)
        assert ("p=2/q=1" in report.added) is recursive
        assert bool(report.problems) is not recursive
        lake.take(Write("p=1/q=1/more", "longer", "g.parquet"))
        sync(lake)
        columns = [c.name for c in lake.metastore.record.sd.cols]
        assert ("extra" in columns) is recursive


@pytest.mark.rule("45")
def test_two_partitions_at_one_place_are_a_problem_in_each_run(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    place = f"file:///{lake.root}/./p=0/q=1/".replace("////", "///")
    lake.take(Write("p=9/q=1", "first"))
    sync(lake)
    (lake.root / "p=9" / "q=1" / "f.parquet").unlink()
    point(lake, ("9", "1"), place)
    for full in (True, False):
        report = sync(lake, full=full)
        assert [{n for n, _ in report.doubled}, report.problems] == [{"p=9/q=1"}, 1]


@pytest.mark.parametrize("what", ["view", "acid", "iceberg", "delta"])
def test_tables_of_other_kinds_are_refused_even_with_adopt(tmp_path: Path, what: str) -> None:
    lake = lake_of(tmp_path, *many(1))
    record = lake.metastore.record
    if what == "view":
        record.tableType, record.viewOriginalText = "VIRTUAL_VIEW", "SELECT 1"
    else:
        record.parameters |= {
            "acid": {"transactional": "true"},
            "iceberg": {"table_type": "ICEBERG"},
            "delta": {"spark.sql.sources.provider": "delta"},
        }[what]
    with pytest.raises(UnsupportedTable):
        sync(lake, adopt=True)


def test_hidden_and_empty_files_are_no_data(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(1))
    for directory, file in (("p=1/q=1", "_SUCCESS"), ("p=2/q=1", ".f.parquet"), ("_tmp", "f")):
        lake.take(Write(directory, "first", file))
    (lake.root / "p=3" / "q=1").mkdir(parents=True)
    (lake.root / "p=3" / "q=1" / "f.parquet").write_bytes(b"")
    lake.take(Write("_p=4/q=1", "first"))
    assert sync(lake).added == ["_p=4/q=1"] or sync(lake).outcome == "in step"
    assert set(lake.metastore.partitions) == {("0", "1")}


def test_what_runs_read_and_write_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of the table is written, moved or deleted; a run in step is two calls."""
    lake = lake_of(tmp_path, *many(4))
    lake.take(Write("p=9/q=1", "longer"))
    files = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in lake.root.rglob("*.parquet")}
    sync(lake)
    assert files == {
        p: (p.stat().st_mtime_ns, p.read_bytes()) for p in lake.root.rglob("*.parquet")
    }
    own = {p.relative_to(lake.root).parts[:2] for p in lake.root.rglob("*") if p.is_file()}
    assert {parts for parts in own if not parts[0].startswith("p=")} == {(".skipbridge", "sync")}
    listings: list[str] = []
    real = SyncStorage.look

    def look(self: SyncStorage, root: str, **options: object) -> Discovered:
        listings.append(root)
        return real(self, root, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(SyncStorage, "look", look)
    calls: list[str] = []
    lake.metastore.interfere = lambda method, moment: (
        calls.append(method) if moment == "before" else None
    )
    assert sync(lake).outcome == "in step"
    assert (len(listings), calls) == (1, ["get_table", "get_partition_names"])


def test_new_partitions_carry_their_statistics(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(2))
    for values, partition in lake.metastore.partitions.items():
        size = (lake.root / f"p={values[0]}" / "q=1" / "f.parquet").stat().st_size
        assert partition.parameters["numFiles"] == "1"
        assert partition.parameters["totalSize"] == str(size)


def test_places_that_the_listing_does_not_cover_are_looked_at_side_by_side(tmp_path: Path) -> None:
    meeting = threading.Barrier(4)

    class Meeting(LocalStorage):
        def pages(self, *arguments: Any, **options: Any) -> Any:
            meeting.wait(60)  # breaks if another one never comes
            return super().pages(*arguments, **options)

        def list_directories(self, *arguments: Any, **options: Any) -> Any:
            meeting.wait(60)
            return super().list_directories(*arguments, **options)

        def stat(self, *arguments: Any, **options: Any) -> Any:
            meeting.wait(60)
            return super().stat(*arguments, **options)

    for number in range(4):
        (tmp_path / str(number)).mkdir()
    (tmp_path / "2" / "f").write_bytes(b"x")
    places = [(tmp_path / str(number)).as_uri() for number in range(4)]
    storage = SyncStorage(Meeting(), 4, False)
    assert storage.find_occupied(places) == storage.present(places) == [False, False, True, False]
    assert storage.list_staging(places, ("_temporary",)) == [[], [], [], []]
    file = f"{places[2]}/f"
    assert storage.files(places) == [(file, 1)]
    assert storage.sizes([f"{place}/f" for place in places]) == [(file, 1)]


@pytest.mark.rule("45")
def test_a_directory_below_a_place_is_not_registered(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    point(lake, ("1", "1"), lake.root / "p=7")
    lake.take(Write("p=7/q=1", "first"))
    report = sync(lake, full=True)
    assert not report.added and report.unregistered == ["p=1/q=1", "p=7/q=1"]
    assert any("it is below" in why for name, _, why in report.kept if name == "p=7/q=1")


def test_everything_is_compared_again_after_a_day(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    for hours, compared in ((23, "changes"), (25, "all")):
        state = json.loads(state_of(lake).read_text())
        inner = json.loads(state["state"])
        inner["compared"] = int(time.time()) - hours * 3600
        state_of(lake).write_text(json.dumps({**state, "state": json.dumps(inner)}))
        assert sync(lake).compared == compared
    assert sync(lake).compared == "changes"


@pytest.mark.rule("44")
def test_a_table_whose_columns_change_during_each_comparison_ends_the_run(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(2))
    lake.take(Write("p=5/q=1", "longer"))
    lake.take(Write("p=6/q=1", "first"))

    def change(method: str, moment: str) -> None:
        if (method, moment) == ("get_partition_names", "after"):
            made = ttypes.FieldSchema(f"c{len(lake.metastore.record.sd.cols)}", "int")
            lake.metastore.record.sd.cols.append(made)

    lake.metastore.interfere = change
    with pytest.raises(MetastoreFailure, match="during each of 5 comparisons") as ended:
        sync(lake)
    assert "again" in ended.value.hint
    lake.metastore.interfere = lambda method, moment: None
    assert len(sync(lake).added) == 2 and sync(lake).outcome == "in step"


def test_hidden_directories_that_are_left_out_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake = lake_of(tmp_path, *many(1))
    lake.take(Write("_old/p=1/q=1", "first"))
    lake.take(Write(".hidden/p=1/q=1", "first"))
    with caplog.at_level(logging.WARNING):
        assert not sync(lake, full=True).problems
    assert f"{lake.root}/_old" in caplog.text and ".hidden" not in caplog.text
    assert set(lake.metastore.partitions) == {("0", "1")}


def test_the_extractor_is_remembered(tmp_path: Path) -> None:
    lake = SyncLake(tmp_path)
    lake.take(Write("1/x", "first"))
    assert sync(lake, extractor="multi").added == ["p=1/q=x"]
    lake.take(Write("2/y", "first"))
    assert sync(lake).added == ["p=2/q=y"] and sync(lake).outcome == "in step"


def test_the_state_lies_below_the_root_of_the_index(tmp_path: Path) -> None:
    lake = SyncLake(tmp_path)
    lake.settings = replace(lake.settings, state_root=(tmp_path / "index").as_uri())
    for directory in many(2):
        lake.take(Write(directory, "first"))
    sync(lake)
    assert not (lake.root / ".skipbridge").exists()
    token = lake.metastore.record.parameters[STATE_PROPERTY]
    assert [f.stem for f in (tmp_path / "index").rglob("*.json")] == [token]
    assert sync(lake).compared == "changes"


def test_locations_too_long_are_reported_without_being_sent(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(1))
    table = read_table(lake.metastore, NAME)
    writer = Writer(lake.metastore, table, lake.settings.limits, parallelism=1)
    new = [
        NewPartition(f"p={n}/q=1", (str(n), "1"), f"s3://b/{'x' * n}/p={n}", 1, 1)
        for n in (100, 4000)
    ]
    assert writer.add(new, list) == ["p=100/q=1"]
    ((name, reason),) = writer.failed
    assert name == "p=4000/q=1" and "a metastore holds 4000" in reason
