"""Late files: of writers that write by path into a directory that was left by publishing."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from bridge.clustering import compactions
from bridge.clustering.publications import states_of
from bridge.clustering.publishing import Publisher
from bridge.clustering.whole_files import unfinished
from bridge.storage.local import LocalStorage
from bridge.storage.port import FileStat, Range
from bridge.table.model import TableName
from tests.support.clustered import clustered
from tests.support.index_builds import Killed
from tests.support.lake import Lake, age
from tests.support.published import (
    COLUMNS,
    PATIENCE,
    SORTED,
    LakePlaces,
    Life,
    bring_and_stop,
    cleaned,
    every,
    fill_at,
    five_files,
    groups_of,
    numbers,
    place,
    published,
    stock,
)

pytestmark = pytest.mark.full


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return five_files(tmp_path)


def half(path: Path) -> bytes:
    """Leaves half of a file; returns the whole."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    age(path, 40)
    return content


@pytest.mark.parametrize("format", ["parquet", "orc"])
def test_a_file_is_whole_with_its_last_byte(tmp_path: Path, format: str) -> None:
    path = tmp_path / "f"
    table = pa.table({"x": [1, 2, 3]})
    pq.write_table(table, path) if format == "parquet" else po.write_table(table, path)
    content = path.read_bytes()
    storage = LocalStorage()
    for size in range(1, len(content) + 1):
        path.write_bytes(content[:size])
        (state,) = states_of(storage.list_all(f"file://{tmp_path}", recursive=False))
        assert bool(unfinished(storage, [state])) == (size < len(content)), size
    path.write_bytes(b"a,1\n")  # a partition of another format
    (state,) = states_of(storage.list_all(f"file://{tmp_path}", recursive=False))
    assert not unfinished(storage, [state])


def test_half_a_late_file_is_not_brought_over_and_the_whole_is(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    fill_at(old / "late.parquet", 9)
    content = half(old / "late.parquet")
    for _ in range(2):
        report = published(lake)
        assert (report.late, report.waiting) == (0, [f"file://{old}/late.parquet"])
        assert not report.overwritten and stock(lake) == every(0, 1, 2, 3, 4)
    (old / "late.parquet").write_bytes(content)
    age(old / "late.parquet", 30)
    report = published(lake)
    assert (report.late, report.waiting) == (1, [])
    assert stock(lake) == every(0, 1, 2, 3, 4, 9) == numbers(lake)


def test_half_a_file_is_not_published_and_the_whole_follows(lake: Lake) -> None:
    old = place(lake)
    fill_at(old / "f9.parquet", 9)
    content = half(old / "f9.parquet")
    report = published(lake)
    assert (report.published, report.waiting) == ([""], [f"file://{old}/f9.parquet"])
    assert stock(lake) == every(0, 1, 2, 3, 4)
    cleaned(lake)
    (old / "f9.parquet").write_bytes(content)
    age(old / "f9.parquet", 30)
    assert published(lake).late == 1
    assert stock(lake) == every(0, 1, 2, 3, 4, 9) == numbers(lake)


def test_a_young_file_waits(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    fill_at(old / "late.parquet", 9)  # 50 s ago
    report = published(lake, settled=3600)
    assert (report.late, report.waiting) == (0, [f"file://{old}/late.parquet"])
    # A compaction deletes what it has replaced before its file is old enough.
    for path in old.glob("f*.parquet"):
        path.unlink()
    report = published(lake, settled=1)
    assert report.withheld == [f"file://{old}/late.parquet"]
    assert stock(lake) == every(0, 1, 2, 3, 4)


def test_a_late_file_that_is_written_again_replaces_its_copy(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    fill_at(old / "late.parquet", 8)
    published(lake)
    for number in (9, 7):
        fill_at(old / "late.parquet", number)
        age(old / "late.parquet", 40 + number)
        report = published(lake)
        assert (report.late, report.overwritten) == (1, [])
        assert stock(lake) == every(0, 1, 2, 3, 4, number) == numbers(lake)
    assert published(lake).late == 0
    cleaned(lake)
    assert not list(old.glob("*.parquet"))
    assert stock(lake) == every(0, 1, 2, 3, 4, 7)


def test_a_copy_that_was_clustered_is_not_replaced(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    fill_at(old / "late.parquet", 8)
    published(lake)
    clustered(lake, **SORTED)
    published(lake)
    assert stock(lake) == every(0, 1, 2, 3, 4, 8)
    fill_at(old / "late.parquet", 9)
    age(old / "late.parquet", 40)
    report = published(lake)
    assert (report.late, report.overwritten) == (0, [f"file://{old}/late.parquet"])
    assert stock(lake) == every(0, 1, 2, 3, 4, 8)


@pytest.mark.parametrize(("done", "deletes"), [(True, False), (False, True)])
def test_a_run_that_dies_between_copying_and_recording(
    tmp_path: Path, done: bool, deletes: bool
) -> None:
    """Whatever a writer does to the late file then, its rows come once."""
    last, ended = 0, False
    while not ended:
        last += 1
        lake = five_files(tmp_path / f"{last}")
        old = place(lake)
        published(lake)
        fill_at(old / "late.parquet", 8)
        fill_at(old / "other.parquet", 6)
        ended = True
        try:
            published(lake, Life(last, done=done))
        except Killed:
            ended = False
        copies = {x // 10 for x in stock(lake) - every(0, 1, 2, 3, 4)}
        assert copies <= {6, 8}
        if deletes:
            (old / "late.parquet").unlink()
        else:
            fill_at(old / "late.parquet", 9)
            age(old / "late.parquet", 40)
        for _ in range(2):
            report = published(lake)
            if deletes and 8 in copies:  # was shown, and deleted by path later
                expected = every(0, 1, 2, 3, 4, 8, *copies - {8})
            else:
                expected = every(0, 1, 2, 3, 4, 6, *([] if deletes else [9]))
            if deletes and 8 in copies and 6 not in copies:
                assert report.withheld == [f"file://{old}/other.parquet"]
            assert stock(lake) == expected == numbers(lake)
    assert last > 5


@dataclass(frozen=True)
class Busy:
    """Storage at which something happens after the first copy."""

    thing: Any
    then: Any

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.thing, name)
        if name != "copy":
            return method

        def copy(*arguments: Any) -> Any:
            result = method(*arguments)
            if self.then:
                self.then.pop()()
            return result

        return copy


@dataclass(slots=True)
class LikeObjects:
    """Copies as object stores do: into the target, which goes if the source has changed."""

    storage: Any
    during: list[Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)

    def has_directories(self, uri: str) -> bool:
        return False

    def copy(self, source: Any, target: str) -> bool:
        self.storage.put(target, self.storage.read(source.uri))
        if self.during:
            self.during.pop()()
        if self.storage.stat(source.uri) == source:
            return True
        self.storage.delete(target)
        return False


def test_a_file_that_changes_while_its_copy_is_replaced_loses_no_row(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    fill_at(old / "late.parquet", 8)
    published(lake)
    fill_at(old / "late.parquet", 9)
    storage = LikeObjects(lake.storage, [lambda: fill_at(old / "late.parquet", 7)])
    report = Publisher(lake.table(), storage, LakePlaces(lake)).run(())
    assert report.late == 0
    assert stock(lake) == every(0, 1, 2, 3, 4, 8)
    report = Publisher(lake.table(), storage, LakePlaces(lake)).run(())
    assert (report.late, report.overwritten) == (1, [])
    assert stock(lake) == every(0, 1, 2, 3, 4, 7) == numbers(lake)
    assert not list(Path(LakePlaces(lake).of("").removeprefix("file://")).glob(".*"))


def test_a_compaction_that_ends_while_its_file_is_copied_doubles_no_row(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    parts = [pq.ParquetFile(path).read() for path in sorted(old.glob("*.parquet"))[:3]]
    pq.write_table(pa.concat_tables(parts), old / "compacted.parquet")
    age(old / "compacted.parquet")

    def deletes() -> None:
        for path in sorted(old.glob("f*.parquet"))[:3]:
            path.unlink()

    storage = Busy(lake.storage, [deletes])
    report = Publisher(lake.table(), storage, LakePlaces(lake)).run(groups_of(lake))
    assert (report.late, report.waiting) == (0, [f"file://{old}/compacted.parquet"])
    assert stock(lake) == every(0, 1, 2, 3, 4)
    report = published(lake)
    assert report.withheld == [f"file://{old}/compacted.parquet"]
    assert stock(lake) == every(0, 1, 2, 3, 4) == numbers(lake)
    assert (old / "compacted.parquet").exists()


def compaction(old: Path, *names: str, less: int = 0) -> None:
    """Writes the rows of some files, but for the last ones, as a late file."""
    rows = pa.concat_tables([pq.ParquetFile(old / name).read() for name in names])
    pq.write_table(rows.slice(0, len(rows) - less), old / "compacted.parquet")
    age(old / "compacted.parquet")


def test_a_compaction_that_was_brought_over_too_early_is_taken_back(lake: Lake) -> None:
    """Files that were clustered and one that was copied, while another late file arrives."""
    old = place(lake)
    published(lake)
    names = ("f1.parquet", "f2.parquet", "f4.parquet")
    compaction(old, *names)
    fill_at(old / "other.parquet", 8)
    assert published(lake).late == 2
    for name in names[:2]:
        (old / name).unlink()
    halfway = published(lake)
    assert halfway.taken_back == [] and len(halfway.doubtful) == 2
    (old / names[2]).unlink()
    report = published(lake)
    assert report.taken_back == [f"file://{old}/compacted.parquet"]
    assert report.doubtful == [f"file://{old}/other.parquet"]
    assert stock(lake) == every(0, 1, 2, 3, 4, 8) == numbers(lake)
    assert (old / "compacted.parquet").exists()
    again = published(lake)
    assert (again.taken_back, again.late) == ([], 0)
    assert stock(lake) == every(0, 1, 2, 3, 4, 8)


def test_a_compaction_of_late_files_is_taken_back(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    fill_at(old / "late.parquet", 8)
    assert published(lake).late == 1
    compaction(old, "late.parquet", "f0.parquet")
    assert published(lake).late == 1
    for name in ("late.parquet", "f0.parquet"):
        (old / name).unlink()
    report = published(lake)
    assert report.taken_back == [f"file://{old}/compacted.parquet"] and report.doubtful == []
    assert stock(lake) == every(0, 1, 2, 3, 4, 8) == numbers(lake)


@pytest.mark.parametrize("done", [False, True])
def test_a_run_may_die_while_it_takes_files_back(tmp_path: Path, done: bool) -> None:
    """Two files of one compaction, and a late file of its own."""
    last, ended = 0, False
    while not ended:
        last += 1
        lake = five_files(tmp_path / f"{last}")
        old = place(lake)
        published(lake)
        compaction(old, "f1.parquet", "f2.parquet", less=1)
        rows = pq.ParquetFile(old / "f2.parquet").read()
        pq.write_table(rows.slice(len(rows) - 1), old / "rest.parquet")
        age(old / "rest.parquet")
        fill_at(old / "other.parquet", 8)
        assert published(lake).late == 3
        for name in ("f1.parquet", "f2.parquet"):
            (old / name).unlink()
        ended = True
        try:
            published(lake, Life(last, done=done), refresh=False)
        except Killed:
            ended = False
        assert published(lake).doubtful == [f"file://{old}/other.parquet"]
        assert stock(lake) == every(0, 1, 2, 3, 4, 8) == numbers(lake)
    assert last > 3


def test_of_two_files_with_the_same_rows_one_is_taken_back(lake: Lake) -> None:
    """A load that ran three times, and one of its files was deleted."""
    old = place(lake)
    published(lake)
    for name in ("again.parquet", "once_more.parquet"):
        (old / name).write_bytes((old / "f4.parquet").read_bytes())
        age(old / name, 40)
    assert published(lake).late == 2
    (old / "f4.parquet").unlink()
    assert len(published(lake).taken_back) == 1
    for _ in range(2):
        assert published(lake).taken_back == []
        assert stock(lake) == every(0, 1, 2, 3, 4, 4) == numbers(lake)


@pytest.mark.parametrize("byte", [None, 20])
def test_a_late_file_that_cannot_be_read_does_not_end_the_run(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, byte: int | None
) -> None:
    """Arrow ends the process where a column's repetition is not known."""
    old = place(lake)
    published(lake)
    pq.write_table(pa.table({"s": ["a", "b"] * 50}), old / "late.parquet")
    content = bytearray((old / "late.parquet").read_bytes())
    if byte is not None:
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        assert content[footer + byte] == 2
        content[footer + byte] = 6
    else:

        def fail(table: pa.Table) -> int:
            raise pa.ArrowNotImplementedError("no such type")

        monkeypatch.setattr(compactions, "checksum", fail)
    (old / "late.parquet").write_bytes(content)
    age(old / "late.parquet")
    assert published(lake, refresh=False).late == 1
    (old / "f4.parquet").unlink()
    report = published(lake, refresh=False)
    assert report.taken_back == []
    assert report.doubtful == [f"file://{old}/late.parquet"]


class Reads(LocalStorage):
    """Counts the data files that are read whole."""

    def __init__(self) -> None:
        self.whole = 0

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        self.whole += uri.endswith(".parquet") and len(ranges) == 1
        return super().read_state(uri, ranges)


@pytest.mark.parametrize("why", ["other rows", "published files changed"])
def test_a_file_that_may_be_a_compaction_is_named(lake: Lake, why: str) -> None:
    old = place(lake)
    published(lake)
    compaction(old, "f1.parquet", "f2.parquet", less=why == "other rows")
    assert published(lake).late == 1
    for name in ("f1.parquet", "f2.parquet"):
        (old / name).unlink()
    if why == "published files changed":
        age(next(path for path in place(lake).glob("*.parquet") if path.name[0] == "c"), 3)
    before = stock(lake)
    for round in range(2):
        storage = Reads()
        report = Publisher(lake.table(), storage, LakePlaces(lake)).run(())
        assert report.doubtful == [f"file://{old}/compacted.parquet"]
        assert report.taken_back == [] and stock(lake) == before
        assert (storage.whole > 0) == (round == 0)
    for copy in place(lake).glob("late-*"):
        copy.unlink()  # somebody has looked at it
    assert published(lake).doubtful == []


def test_two_runs_bring_a_file_over_once(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    fill_at(old / "late.parquet", 8)
    other = Publisher(lake.table(), lake.storage, LakePlaces(lake))
    storage = Busy(lake.storage, [lambda: other.run(())])
    report = Publisher(lake.table(), storage, LakePlaces(lake)).run(())
    assert report.late + other.report.late >= 1
    assert stock(lake) == every(0, 1, 2, 3, 4, 8)
    assert published(lake).late == 0
    assert stock(lake) == every(0, 1, 2, 3, 4, 8)


class Hooked:
    """A storage that calls a function before the first mutation of its kind.

    Args:
        hooks: by the name of the method and a part of the URI.
    """

    def __init__(self, storage: Any, hooks: dict[tuple[str, str], Callable[[], object]]) -> None:
        self._storage, self._hooks = storage, hooks

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)

        def call(*arguments: Any, **options: Any) -> Any:
            for kind, part in list(self._hooks):
                if kind == name and any(part in str(each) for each in arguments):
                    self._hooks.pop((kind, part))()
            return method(*arguments, **options)

        return call


def test_a_copy_that_one_run_withdraws_while_another_records_it_is_made_again(lake: Lake) -> None:
    """Else the file would count as brought over, and clean would delete its only copy."""
    old = place(lake)
    published(lake)
    fill_at(old / "late.parquet", 9)
    recording, withdrawn = threading.Event(), threading.Event()

    def wait() -> None:
        recording.set()
        assert withdrawn.wait(60)

    slow = Hooked(lake.storage, {("put_if_absent", ".late-"): wait})
    other = Publisher(lake.table(), slow, LakePlaces(lake))  # type: ignore[arg-type]
    thread = threading.Thread(target=lambda: other.run(()))

    def meet() -> None:
        thread.start()
        assert recording.wait(60)

    hooks: dict[tuple[str, str], Callable[[], object]] = {
        ("copy", "/late-"): (old / "f0.parquet").unlink,
        ("delete", "/late-"): meet,
    }
    storage = Hooked(lake.storage, hooks)
    report = Publisher(lake.table(), storage, LakePlaces(lake)).run(())  # type: ignore[arg-type]
    withdrawn.set()
    thread.join()
    assert hooks == {} and report.waiting == [f"file://{old}/late.parquet"]
    for _ in range(2):
        lake.build()
        assert stock(lake) == every(0, 1, 2, 3, 4, 9) == numbers(lake)
        cleaned(lake)


def test_a_copy_of_another_run_is_left_to_it_when_a_compaction_ends(lake: Lake) -> None:
    """Else both would keep it, one because the other has recorded it."""
    old = place(lake)
    published(lake)
    names = ("f0.parquet", "f1.parquet", "f2.parquet")
    compaction(old, *names)
    processes = multiprocessing.get_context("spawn")
    looked, copied, deleted, left = (processes.Event() for _ in range(4))
    where = lake.root, place(lake)
    second = processes.Process(target=bring_and_stop, args=(*where, ".bringing-", looked, deleted))
    first = processes.Process(target=bring_and_stop, args=(*where, "/late-", copied, left))
    try:
        second.start()
        assert looked.wait(PATIENCE)  # it knows nothing of the other run
        first.start()
        assert copied.wait(PATIENCE)
        for name in names:
            (old / name).unlink()
        deleted.set()
        second.join(PATIENCE)
        left.set()
        first.join(PATIENCE)
        assert (first.exitcode, second.exitcode) == (0, 0)
    finally:
        for process in (first, second):
            if process.is_alive():
                process.kill()
    assert stock(lake) == every(0, 1, 2, 3, 4)
    assert published(lake).withheld == [f"file://{old}/compacted.parquet"]
    assert stock(lake) == every(0, 1, 2, 3, 4) == numbers(lake)


def test_announcements_of_dead_runs_go(lake: Lake) -> None:
    old = place(lake)
    published(lake)
    fill_at(old / "late.parquet", 8)
    with pytest.raises(Killed):
        published(lake, Life(2))
    records = lake.root / "t/.skipbridge_clustered/publications"
    (left,) = records.glob("*.bringing-*")
    hours = time.time() - 2 * 3600
    os.utime(left, (hours, hours))
    assert published(lake).late == 1
    assert not list(records.glob("*.bringing-*"))
    assert stock(lake) == every(0, 1, 2, 3, 4, 8)


def test_each_of_two_tables_in_one_place_gets_a_late_file(tmp_path: Path) -> None:
    lake, twin = five_files(tmp_path), Lake(tmp_path, columns=COLUMNS)
    old, groups = place(lake), groups_of(lake)
    name = TableName("db", "twin")
    assert published(lake, refresh=False).published == [""]
    made = Publisher(twin.table(name), twin.storage, LakePlaces(twin)).run(groups)
    assert made.published == [""] and place(twin) != place(lake)
    fill_at(old / "late.parquet", 8)
    assert published(lake, refresh=False).late == 1
    again = Publisher(twin.table(name), twin.storage, LakePlaces(twin))
    assert again.run(()).late == 1
    assert stock(lake) == stock(twin) == every(0, 1, 2, 3, 4, 8)
