"""Sync of directories with names that are not UTF-8, or with links out of the table."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.kernel.errors import InvalidUri
from bridge.sync.report import SyncReport, diff_text
from tests.support.sync_lake import SCHEMAS, SyncLake, Write
from tests.unit.jobs.test_sync_absence import lake_of, many, sync

CONTENT = SCHEMAS["first"][0]


def put(lake: SyncLake, directory: bytes, name: bytes = b"f.parquet") -> Path:
    place = lake.root / os.fsdecode(directory)
    place.mkdir(parents=True, exist_ok=True)
    (place / os.fsdecode(name)).write_bytes(CONTENT)
    return place / os.fsdecode(name)


def registered(lake: SyncLake) -> set[tuple[str, ...]]:
    return set(lake.metastore.partitions)


def names(number: int, *more: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {(str(i), "1") for i in range(number)} | set(more)


@pytest.mark.parametrize("number", [3, 300])
@pytest.mark.parametrize("level", [b"p=\xff/q=1", b"p=77/q=\xff", b"p=77/q=1\xff/x"])
def test_a_directory_that_cannot_be_named_is_named(
    tmp_path: Path, number: int, level: bytes
) -> None:
    lake = lake_of(tmp_path, *many(number))
    put(lake, level)
    lake.take(Write("p=900/q=1", "first"))
    shown = level.decode("utf-8", "backslashreplace")
    for _ in range(2):  # in each run
        report = sync(lake)
        assert registered(lake) == names(number, ("900", "1"))
        assert report.problems == 1 and report.unregistered == [shown]
        assert f"! not a partition: {shown}: " in diff_text(report)
        diff_text(report).encode()
    shutil.rmtree(lake.root / os.fsdecode(level.split(b"/")[0]))
    assert not sync(lake).problems


def test_a_registered_partition_with_such_a_file_stays(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    added = put(lake, b"p=1/q=1", b"\xe9.parquet")
    link = lake.root / "p=2" / "elsewhere"
    link.symlink_to(tmp_path, target_is_directory=True)
    lake.take(Write("p=9/q=1", "first"))
    before = lake.metastore.partitions["1", "1"]
    for _ in range(3):
        report = sync(lake, drop_now=True, drop_all=True)
        assert registered(lake) == names(3, ("9", "1")) and not report.dropped
        assert sorted(report.unregistered) == ["p=1/q=1", "p=2"]
        assert lake.metastore.partitions["1", "1"] == before
    added.unlink()
    link.unlink()
    report = sync(lake)
    assert not report.problems and not report.kept


@pytest.mark.parametrize("number", [1, 3, 300])
def test_a_link_out_of_the_table_directly_in_its_root(tmp_path: Path, number: int) -> None:
    lake = lake_of(tmp_path, *many(number))
    (tmp_path / "other" / "q=1").mkdir(parents=True)
    (tmp_path / "other" / "q=1" / "f.parquet").write_bytes(CONTENT)
    link = lake.root / "p=900"
    link.symlink_to(tmp_path / "other", target_is_directory=True)
    lake.take(Write("p=901/q=1", "first"))
    for _ in range(2):  # in each run
        report = sync(lake, drop_now=True, drop_all=True)
        assert registered(lake) == names(number, ("901", "1")) and not report.dropped
        assert report.problems == 1 and report.unregistered == [""]
        assert f"! not a partition: .: {link} is a link to " in diff_text(report)
    link.unlink()
    assert not sync(lake).problems


def test_a_partition_registered_at_such_a_link_stays(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    (lake.root / "p=1").rename(tmp_path / "moved")
    (lake.root / "p=1").symlink_to(tmp_path / "moved", target_is_directory=True)
    shutil.rmtree(lake.root / "p=2")
    report = sync(lake, drop_now=True, drop_all=True)
    assert registered(lake) == names(3) - {("2", "1")}
    assert report.dropped == ["p=2/q=1"] and report.problems == 1


def test_a_new_partition_beside_a_link_in_the_directory_above(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    (lake.root / "p=1" / "q=7").symlink_to(tmp_path, target_is_directory=True)
    lake.take(Write("p=1/q=2", "first"))
    report = sync(lake)
    assert registered(lake) == names(3, ("1", "2")) and report.unregistered == ["p=1"]


def test_a_new_partition_with_such_a_file_is_not_added(tmp_path: Path) -> None:
    lake = SyncLake(tmp_path)
    lake.take(Write("p=1/q=1", "first"))
    lake.take(Write("p=2/q=1", "first"))
    put(lake, b"p=2/q=1", b"\xff.parquet")
    assert sync(lake).problems == 1 and registered(lake) == {("1", "1")}


def test_files_below_a_partition_whose_engines_read_them(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(3))
    lake.settings = replace(lake.settings, recursive=True)
    put(lake, b"p=1/q=1/sub\xff")
    put(lake, b"p=9/q=1")
    put(lake, b"p=9/q=1/sub\xff")
    report = sync(lake, drop_now=True, drop_all=True)
    assert registered(lake) == names(3) and report.problems
    assert {"p=1/q=1/sub\\xff", "p=9/q=1/sub\\xff"} <= set(report.unregistered)


def test_a_table_without_partitions_is_refused(tmp_path: Path) -> None:
    lake = SyncLake(tmp_path)
    put(lake, b"")
    put(lake, b"", b"\xff.parquet")

    def refused() -> SyncReport:
        return sync(lake)

    with pytest.raises(InvalidUri, match=r"\\xff.parquet is no name in UTF-8"):
        refused()


@pytest.mark.rule("45")
@pytest.mark.parametrize("number", [3, 300])
def test_a_link_within_the_table_is_no_second_partition(tmp_path: Path, number: int) -> None:
    """Engines would read the rows of the directory that it leads to twice."""
    lake = lake_of(tmp_path, *many(number))
    lake.take(Write("p=1/_old", "first"))  # nobody reads it by another name
    (lake.root / "p=latest").symlink_to(lake.root / "p=2", target_is_directory=True)
    (lake.root / "p=1" / "q=7").symlink_to("q=1", target_is_directory=True)
    (lake.root / "p=1" / "q=8").symlink_to("q=7", target_is_directory=True)
    (lake.root / "p=1" / "q=9").symlink_to("_old", target_is_directory=True)
    lake.take(Write("p=1/q=5", "first"))
    for full in (False, False, True):
        report = sync(lake, full=full)
        assert registered(lake) == names(number, ("1", "5"), ("1", "9"))
        assert report.problems == 3
        assert report.unregistered == ["p=1/q=7", "p=1/q=8", "p=latest/q=1"]
        assert "! not a partition: p=latest/q=1: a link leads from it to p=2/q=1" in diff_text(
            report
        )
    made = SyncLake(tmp_path / "new")
    for directory in ("p=1/q=1", "p=2/q=1"):
        made.take(Write(directory, "first"))
    (made.root / "p=0").symlink_to("p=2", target_is_directory=True)
    assert sync(made).problems == 1 and registered(made) == {("1", "1"), ("2", "1")}
    (made.root / "p=0").unlink()
    (made.root / "p=2").rename(made.root / "p=0")
    (made.root / "p=2").symlink_to("p=0", target_is_directory=True)
    for full in (False, True):  # it is registered by its other name now, and named
        report = sync(made, full=full)
        assert registered(made) in ({("1", "1"), ("2", "1")}, {("1", "1"), ("2", "1"), ("0", "1")})
        assert report.problems, report.to_dict()
