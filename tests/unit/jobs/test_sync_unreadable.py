"""Files whose schema cannot be read: sync cannot say that the metastore matches storage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.errors import FileUnreadable
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.report import SyncReport, unindexed_files, warnings
from tests.support.sync_lake import SCHEMAS, SyncLake, Write
from tests.unit.jobs.test_sync_absence import lake_of, many, sync

_LONGER = SCHEMAS["longer"][0]
DAMAGE = {
    "no-parquet": b"not a file of this format",
    "cut": _LONGER[: len(_LONGER) // 2],
    "footer": _LONGER[:-60] + b"\xff" * 52 + _LONGER[-8:],
}


def write(lake: SyncLake, directory: str, content: bytes, file: str = "d.parquet") -> str:
    target = lake.root / directory / file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return f"file://{target}"


def named(report: SyncReport) -> list[str]:
    return [file for file, _ in report.unreadable]


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("directory", ["p=0/q=1", "p=9/q=1"])
def test_a_damaged_file_is_named_in_each_run_until_it_is_mended(
    tmp_path: Path, damage: str, directory: str
) -> None:
    """In a registered partition, and as the only file of a new one, which is registered."""
    lake = lake_of(tmp_path, *many(2))
    file = write(lake, directory, DAMAGE[damage])
    for options in ({}, {}, {"full": True}, {}):
        report = sync(lake, **options)
        assert (named(report), report.problems) == ([file], 1), options
        told = next(line for line in warnings(report) if "unreadable" in line and file in line)
        assert "queries that read it fail -> restore it, write it again, or move it out" in told
    assert (directory[2], "1") in lake.metastore.partitions
    lake.take(Write("p=1/q=1", "first", "g.parquet"))  # another directory changes
    report = sync(lake)
    assert (named(report), report.problems) == ([file], 1)
    write(lake, directory, _LONGER)
    report = sync(lake)
    assert "+ column extra double" in report.table_changes
    assert not report.problems and not sync(lake).problems and not sync(lake, full=True).problems


def test_a_damaged_file_that_is_gone_is_no_longer_named(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(2))
    write(lake, "p=0/q=1", b"x")
    assert sync(lake).problems == 1
    (lake.root / "p=0" / "q=1" / "d.parquet").unlink()
    assert not sync(lake).problems


def test_a_damaged_file_of_a_directory_that_is_left_is_not_named(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(2))
    write(lake, "p=1/q=1", b"x")
    assert sync(lake).problems == 1
    (lake.root / "p=1").rename(lake.root / "_aside")
    assert not sync(lake).unreadable


def test_a_damaged_file_beyond_the_sample_of_later_runs_stays_named(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, *many(2))
    lake.settings = replace(lake.settings, schema_sample=1)
    file = write(lake, "p=5/q=1", b"x")
    assert named(sync(lake)) == [file]
    for directory in many(12)[6:]:
        lake.take(Write(directory, "first"))
    assert named(sync(lake)) == [file]
    assert named(sync(lake, full=True)) == [file]


def test_a_file_that_may_not_be_read_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an archived object of S3: it is listed, and may not be read."""
    lake = lake_of(tmp_path, *many(2))
    file = write(lake, "p=5/q=1", _LONGER)
    lake.take(Write("p=6/q=1", "first"))
    real = LocalStorage.read_ranges

    def read_ranges(self: LocalStorage, uri: str, *arguments: Any, **options: Any) -> Any:
        if uri == file:
            raise FileUnreadable(f"{uri} cannot be read: InvalidObjectState", "restore it")
        return real(self, uri, *arguments, **options)

    monkeypatch.setattr(LocalStorage, "read_ranges", read_ranges)
    for options in ({}, {}, {"full": True}):
        report = sync(lake, **options)
        assert (named(report), report.problems) == ([file], 1), options
        assert {("5", "1"), ("6", "1")} <= lake.metastore.partitions.keys()
    monkeypatch.undo()
    lake.take(Write("p=7/q=1", "first"))
    report = sync(lake)
    assert "+ column extra double" in report.table_changes and not report.problems


def test_files_that_changed_while_the_index_read_them_are_no_problem() -> None:
    failed = [
        {"file": "a", "reason": "FILE_CORRUPT: a"},
        {"file": "b", "reason": "FILE_CHANGED: b was rewritten"},
    ]
    assert unindexed_files(None) == [] and unindexed_files({"failed": failed}) == ["a"]
