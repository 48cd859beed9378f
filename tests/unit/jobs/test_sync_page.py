"""Sentences of the how-to page of sync that no other test has, over the laws' model."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.errors import UnsupportedTable
from bridge.kernel.types import INTEGER
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.storage import SyncStorage
from bridge.table.directory.discovered import Discovered
from bridge.table.model import Column
from tests.support.sync_lake import SyncLake, Write
from tests.unit.jobs.test_sync_absence import lake_of, many, point, sync


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

    for number in range(4):
        (tmp_path / str(number)).mkdir()
    (tmp_path / "2" / "f").write_bytes(b"x")
    places = [(tmp_path / str(number)).as_uri() for number in range(4)]
    storage = SyncStorage(Meeting(), 4, False)
    assert storage.occupied(places) == storage.present(places) == [False, False, True, False]
