"""Tables of segments that are disturbed: by links, moves, late commits, cleaners and damage."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.config import Config
from bridge.kernel.errors import (
    InvalidUri,
    OperationBlocked,
    SegmentConflict,
    SegmentLogCorrupt,
    SegmentOverlap,
)
from bridge.segments.commands import (
    add,
    compaction,
    indexes,
    manage,
    opened,
    refresh,
    tables,
    views,
)
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.segments.log import SegmentLog
from bridge.table.segments.manifest import FileReader
from bridge.table.segments.properties import reader_spec
from tests.support.views_of import states_of_views

pytestmark = pytest.mark.full

CONFIG = Config()


class World:
    """A table of segments with one view, and its facts."""

    def __init__(self, root: Path) -> None:
        self.root, self.table = root, str(root / "t")
        columns = [("a", "bigint"), ("s", "string")]
        tables.create_table(CONFIG, self.table, format="parquet", columns=columns)

    def write(self, name: str, *numbers: int) -> str:
        path = self.root / "facts" / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        rows = pa.table({"a": pa.array(numbers, pa.int64()), "s": [f"s{n}" for n in numbers]})
        pq.write_table(rows, path)
        return str(path)

    def add(self, name: str, *numbers: int) -> None:
        add.add_segment(CONFIG, self.table, paths=[self.write(name, *numbers)], local=True)

    def view(self, *columns: str) -> None:
        views.create_view(
            CONFIG, self.table, name="v", columns=columns, sort_by=[columns[0]], local=True
        )

    def states(self) -> dict[str, str]:
        (found,) = states_of_views(CONFIG, self.table).values()
        return found

    def log(self, storage: Any = None) -> SegmentLog:
        return SegmentLog(storage or LocalStorage(), f"file://{self.table}")

    def rows(self, where: str | None = None, table: str = "", **how: Any) -> list[int]:
        with bridge.connect() as session:
            found = session.table(table or self.table).scan(where, ["a"], **how).to_arrow()
        return sorted(found["a"].to_pylist())

    def view_files(self, table: str = "") -> list[Path]:
        below = (Path(table or self.table) / "_segments" / "views").rglob("*.parquet")
        return [path for path in below if ".skipbridge" not in path.parts]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class Paused:
    """A storage whose first commit waits until something else has happened."""

    def __init__(self, event: Callable[[], Any]) -> None:
        self._storage, self._event, self._done = LocalStorage(), event, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        if "/versions/" in uri and not self._done:
            self._done = True
            self._event()
        return self._storage.put_if_absent(uri, content)


def paused(monkeypatch: pytest.MonkeyPatch, event: Callable[[], Any]) -> None:
    """Does something else before the next command commits."""
    plain = opened.storage_of

    def other() -> None:
        monkeypatch.setattr(opened, "storage_of", plain)
        event()

    storage = Paused(other)
    monkeypatch.setattr(opened, "storage_of", lambda _: storage)


def test_a_file_that_a_link_leads_to_is_the_same_file(world: World) -> None:
    world.add("f", 1, 2)
    (world.root / "link").symlink_to(world.root / "facts")
    (world.root / "one.parquet").symlink_to(world.root / "facts" / "f.parquet")
    for path in ("link", "link/f.parquet", "one.parquet"):
        with pytest.raises(SegmentOverlap, match="segment 0 already"):
            add.add_segment(CONFIG, world.table, paths=[str(world.root / path)], local=True)
    assert world.rows() == [1, 2]
    manage.delete_segments(CONFIG, world.table, ids=["0"])
    add.add_segment(CONFIG, world.table, paths=[str(world.root / "link")], local=True)
    plain = str(world.root / "facts" / "f.parquet")
    with pytest.raises(SegmentOverlap, match="segment 1 already"):
        add.add_segment(CONFIG, world.table, paths=[plain], local=True)
    assert world.rows() == [1, 2]


def test_a_path_that_is_not_utf_8_is_refused(world: World) -> None:
    path = os.fsdecode(os.fsencode(str(world.root)) + b"/\xff.parquet")
    shutil.copy(world.write("f", 1), path)
    with pytest.raises(InvalidUri, match="not UTF-8"):
        add.add_segment(CONFIG, world.table, paths=[path], local=True)


def test_a_segment_that_is_named_twice_is_read_once(world: World) -> None:
    world.add("f", 1, 2)
    world.add("g", 3)
    assert world.rows(segments=["0", "0"]) == [1, 2]
    assert world.rows(segments=["0", "1", "0"]) == [1, 2, 3]


def test_columns_of_orc_are_found_by_name_whatever_an_engine_is_set_to(world: World) -> None:
    """Files may have their columns in another order than the table, and it may drop some."""
    spec = reader_spec(FileReader("orc"), ())
    assert spec.property_map["skipbridge.columns-by-name"] == "true"


def test_columns_stay_while_a_segment_finds_fields_by_their_place(world: World) -> None:
    """Of any format that the table itself has."""
    path = world.root / "f.txt"
    path.write_text("1\x01x\n")
    add.add_segment(CONFIG, world.table, paths=[str(path)], format="text", local=True)
    with pytest.raises(OperationBlocked, match="found by their place"):
        tables.drop_columns(CONFIG, world.table, ["a"])
    manage.delete_segments(CONFIG, world.table, ids=["0"])
    tables.drop_columns(CONFIG, world.table, ["a"])


def test_a_comma_in_the_name_of_a_field_moves_no_other_field(tmp_path: Path) -> None:
    table = str(tmp_path / "c")
    lines = {"csv.header_lines": "1"}
    tables.create_table(CONFIG, table, format="csv", columns=[("id", "bigint")], properties=lines)
    indexes.create_index(CONFIG, table, name="m", kind="minmax", local=True)
    views.create_view(CONFIG, table, name="v", columns=["id"], local=True)
    (tmp_path / "f.csv").write_text('"note, id",b,id\nx,7,1\ny,8,2\n')
    add.add_segment(CONFIG, table, paths=[str(tmp_path / "f.csv")], local=True)
    with bridge.connect() as session:
        for pruning in (True, False):
            found = session.table(table).scan("id < 5", ["id"], pruning=pruning).to_arrow()
            assert sorted(found["id"].to_pylist()) == [1, 2]


def test_cleaning_keeps_the_version_that_queries_read_until_lately(world: World) -> None:
    """A query that began before the last commits still needs the files of its version."""
    world.view("a")
    world.add("f", 1)
    world.add("g", 2)
    before = world.log().latest()
    for place in ("versions", "files"):
        for path in (Path(world.table) / "_segments" / place).iterdir():
            os.utime(path, (1.6e9, 1.6e9))
    compaction.compact(CONFIG, world.table, kind="custom", ids=["0", "1"])
    manage.switch_segments(CONFIG, world.table, ids=["0.1"], enabled=False)
    manage.switch_segments(CONFIG, world.table, ids=["0.1"], enabled=True)
    manage.clean(CONFIG, world.table, keep=1)
    assert min(world.log().versions()) == before.version
    assert world.rows(version=str(before.version)) == [1, 2]
    manage.clean(CONFIG, world.table, keep=1, older_than=0)
    assert world.rows() == [1, 2] and len(world.log().versions()) == 1
    assert len(world.view_files()) == 1


def test_a_commit_that_comes_after_a_cleanup_is_made_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number was taken and is free again: the new version would never be the newest."""
    world.add("f", 1)

    def meanwhile() -> None:
        for name in "gh":
            world.add(name, ord(name))
        manage.clean(CONFIG, world.table, keep=1, older_than=0)

    paused(monkeypatch, meanwhile)
    manage.switch_segments(CONFIG, world.table, ids=["0"], enabled=False)
    assert world.rows() == [ord("g"), ord("h")]
    assert len(world.log().versions()) == 2
    late = world.write("late", 5)

    def again() -> None:
        manage.switch_segments(CONFIG, world.table, ids=["0"], enabled=True)
        manage.switch_segments(CONFIG, world.table, ids=["1"], enabled=False)
        manage.clean(CONFIG, world.table, keep=1, older_than=0)

    paused(monkeypatch, again)
    with pytest.raises(SegmentLogCorrupt, match="deleted before it was committed"):
        add.add_segment(CONFIG, world.table, paths=[late], local=True)
    assert world.rows() == [1, ord("h")]


def test_a_commit_to_a_table_that_was_dropped_and_made_anew_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.add("f", 1)

    def meanwhile() -> None:
        tables.drop_table(CONFIG, world.table)
        tables.create_table(CONFIG, world.table, format="orc", columns=[("z", "int")])

    late = world.write("g", 2)
    paused(monkeypatch, meanwhile)
    with pytest.raises((SegmentConflict, SegmentLogCorrupt)):
        add.add_segment(CONFIG, world.table, paths=[late], local=True)
    assert world.log().versions() == [1]
    assert tables.describe(CONFIG, world.table)["format"] == "orc"


def test_a_view_whose_sort_column_cannot_be_sorted_any_more_stops_nothing(world: World) -> None:
    world.add("f", 1)
    world.view("s", "a")
    tables.change_type(CONFIG, world.table, "s", "char(9)")
    world.add("g", 2)
    assert "char(9)" in world.states()["1"]
    views.rebuild_view(CONFIG, world.table, local=True)
    compaction.compact(CONFIG, world.table, kind="custom", ids=["0", "1"])
    assert world.rows() == [1, 2]


@pytest.mark.parametrize("how", ["gone", "cut", "other"])
def test_a_damaged_file_of_a_view_does_not_stop_a_compaction(world: World, how: str) -> None:
    world.view("a")
    world.add("f", *range(2000))
    world.add("g", 5000)
    for path in world.view_files():
        content = path.read_bytes()
        if how == "gone":
            path.unlink()
        elif how == "cut":
            path.write_bytes(content[: len(content) // 2])
        else:
            path.write_bytes(content[:4] + bytes(len(content) - 300) + content[-296:])
    compaction.compact(CONFIG, world.table, kind="custom", ids=["0", "1"])
    assert world.states()["0.1"].startswith("absent: ")
    assert world.rows() == [*range(2000), 5000]
    views.rebuild_view(CONFIG, world.table, local=True)
    assert world.states() == {"0.1": "built"}
    assert world.rows() == [*range(2000), 5000]


def test_a_refresh_of_segments_that_were_merged_meanwhile_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The merged segment would still name the file as it was."""
    world.add("f", 1)
    world.add("g", 2)
    world.write("f", 7, 8, 9)

    def meanwhile() -> None:
        compaction.compact(CONFIG, world.table, kind="custom", ids=["0", "1"])

    paused(monkeypatch, meanwhile)
    with pytest.raises(SegmentConflict):
        refresh.refresh_segments(CONFIG, world.table, local=True)
    refresh.refresh_segments(CONFIG, world.table, local=True)
    assert world.rows() == [2, 7, 8, 9]


@pytest.mark.parametrize("moved", [True, False])
def test_a_table_whose_directory_was_moved_or_copied(world: World, moved: bool) -> None:
    """It reads facts until its view is built again, and never deletes the other's files."""
    indexes.create_index(CONFIG, world.table, name="m", kind="minmax", local=True)
    world.view("a")
    world.add("f", 1, 2)
    other = str(world.root / "u")
    (shutil.move if moved else shutil.copytree)(world.table, other)
    assert world.rows("a = 2", other) == [2] and world.rows(None, other) == [1, 2]
    manage.clean(CONFIG, other, keep=1, older_than=0)
    views.rebuild_view(CONFIG, other, local=True)
    assert list(states_of_views(CONFIG, other).values()) == [{"0": "built"}]
    assert world.rows(None, other) == [1, 2] and len(world.view_files(other)) == 1
    tables.drop_table(CONFIG, other)
    if not moved:
        assert world.states() == {"0": "built"}
        assert world.rows() == [1, 2] and len(world.view_files()) == 1


def test_the_index_of_a_view_goes_with_the_view(world: World) -> None:
    world.view("a")
    world.add("f", 1)
    below = Path(world.table) / "_segments" / "views"

    def left() -> list[Path]:
        return [path for path in below.rglob("*") if path.is_file()]

    manage.clean(CONFIG, world.table, keep=1, older_than=0)
    assert any(".skipbridge" in path.parts for path in left())
    views.drop_view(CONFIG, world.table, name="v")
    manage.clean(CONFIG, world.table, keep=1, older_than=0)
    assert left() == []
    world.view("a")
    tables.drop_table(CONFIG, world.table)
    assert [path for path in (below.parent).rglob("*") if path.is_file()] == []


def test_a_version_that_nests_without_end_is_damaged(world: World) -> None:
    path = Path(world.table) / "_segments" / "versions" / f"{1:020}.json"
    path.write_bytes(b"[" * 200_000)
    with pytest.raises(SegmentLogCorrupt):
        world.rows()
