"""Files added to the index of a catalogd table: whose they are, and the law while all changes.

A job adds what it has just written, others refresh, files change and go: no matching row is lost.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.expression.builders import eq
from bridge.index.building.build import BuildReport, add_files
from bridge.index.building.collect import ThreadCollector
from bridge.index.generations.entries import live_entries
from bridge.indexing.add import _Directory, _listed, _look, _Registered
from bridge.kernel.errors import BridgeError, InvalidRequest, StorageFailure
from bridge.kernel.types import INTEGER, STRING
from bridge.storage.port import FileStat, FileTable, Storage
from bridge.table.model import Column
from tests.support.lake import Lake, age, everything, kept

KEYS = (Column("p", INTEGER), Column("q", STRING))
COLUMNS = (Column("v", INTEGER),)


def lake(root: Path, values: list[tuple[str | None, ...]], recursive: bool = False) -> Lake:
    made = Lake(root, COLUMNS, KEYS, recursive=recursive)
    made.partition_values = values
    for each in values:
        made.directory(each).mkdir(parents=True, exist_ok=True)
    return made


def row(value: int) -> pa.Table:
    return pa.table({"v": pa.array([value], pa.int32())})


def add(table: Lake, *paths: Path) -> BuildReport:
    place = _Registered(table.table(), table, recursive=table.recursive)
    stats = _look(table.storage, sorted(f"file://{p}" for p in paths), place)
    collector = ThreadCollector(table.storage)
    return add_files(table.table(), _listed(stats, place), table.store(), collector=collector)


def owners(table: Lake) -> dict[str, list[str]]:
    manifest = table.store().latest()
    assert manifest is not None
    files = live_entries(manifest, table.store()).files
    names = [text.split("\0") for text in files["partition"].to_pylist()]
    return dict(zip((p.rsplit("/", 1)[1] for p in files["path"].to_pylist()), names, strict=True))


def test_28_owners_are_the_partitions_whose_location_it_is(tmp_path: Path) -> None:
    table = lake(tmp_path, [("1", "a"), ("2", "a"), ("3", "a")])
    shared = tmp_path / "elsewhere"
    shared.mkdir()
    table.locations = {"p=2/q=a": shared, "p=3/q=a": shared}
    table.build()
    add(
        table,
        table.write("own", row(1), ("1", "a")),
        table.write("shared", row(2), ("2", "a")),
        table.write("unknown", row(3), ("4", "b/c")),
    )
    assert owners(table) == {
        "own": ["p=1/q=a"],
        "shared": ["p=2/q=a", "p=3/q=a"],
        "unknown": ["p=4/q=b%2Fc"],
    }
    table.partition_values.append(("4", "b/c"))  # the job registers it later
    planner = table.planner()
    assert {u.rsplit("/", 1)[1] for u in kept(planner, eq("v", 3))} == {"unknown"}
    assert kept(planner, eq("v", 4)) == set()
    assert table.build().read == 0  # the names are those that a build would give
    planner.lister.close()


@pytest.mark.parametrize("name", ["p=1", "p=02"])
def test_28_owners_that_a_path_does_not_tell_stay(tmp_path: Path, name: str) -> None:
    """Another partition has the location of p=1, or a location spelled unlike its name."""
    table = lake(tmp_path, [("1", "a"), ("2", "a")])
    place = table.root / "t" / name / "q=a"
    table.locations = {"p=2/q=a": place}
    first = table.write("b", row(1), ("2", "a"))
    table.build()
    before = owners(table)["b"]
    new = [table.write(f, row(2), ("2", "a")) for f in "ac"]
    add(table, first, *new)
    planner = table.planner()
    assert len(kept(planner, eq("p", 2), freshness="snapshot")) == 3
    planner.lister.close()
    assert all(set(before) <= set(found) for found in owners(table).values())
    table.build()
    assert set(map(tuple, owners(table).values())) == {tuple(before)}


def test_places_that_no_partition_has_are_refused(tmp_path: Path) -> None:
    table = lake(tmp_path, [("1", "a"), ("2", "a")])
    table.locations = {"p=2/q=a": tmp_path / "elsewhere"}
    (tmp_path / "elsewhere").mkdir()
    table.build()
    moved = table.root / "t" / "p=2" / "q=a"  # its partition lies elsewhere
    for place in (
        moved,
        table.root / "t",
        table.root / "t" / "p=1",
        table.root / "t" / "q=a" / "p=1",
        table.root / "t" / "p=1" / "q=a" / "below",
        tmp_path / "another",
        tmp_path / "elsewhere" / "below",
    ):
        place.mkdir(parents=True, exist_ok=True)
        path = table.write("f", row(1), ("1", "a"))
        path = path.rename(place / "f")
        with pytest.raises(InvalidRequest):
            add(table, path)
    deep = lake(tmp_path, [("1", "a")], recursive=True)
    below = deep.root / "t" / "p=1" / "q=a" / "below" / "f"
    assert add(deep, below).read == 1
    assert owners(deep) == {"f": ["p=1/q=a"]}


def test_a_table_without_partitions(tmp_path: Path) -> None:
    table = Lake(tmp_path, COLUMNS)
    table.write("a", row(1))
    table.build()
    add(table, table.write("b", row(2)))
    planner = table.planner()
    assert len(kept(planner, eq("v", 2), freshness="snapshot")) == 1
    assert len(everything(planner, freshness="snapshot")) == 2
    planner.lister.close()


@pytest.mark.parametrize("seed", range(25))
def test_no_row_is_lost_while_files_come_change_and_go(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    values: list[tuple[str | None, ...]] = [("1", "a"), ("2", "a"), (None, "b")]
    table = lake(tmp_path, values)
    planner = table.planner()
    held = {table.write("first", row(50), values[0]): 50}
    unknown = set(held)
    if rng.random() < 0.7:
        table.build()
        unknown.clear()
    for step in range(12):
        match rng.randrange(5):
            case 0 | 1:
                path = table.write(f"f{step}", row(step), rng.choice(values))
                held[path] = step
                unknown.add(path)
            case 2 if held:
                path = rng.choice(list(held))
                before = path.stat().st_mtime_ns
                held[path] = 100 + step
                table.write(str(path), row(100 + step), values[0])
                while path.stat().st_mtime_ns == before:
                    age(path, 1.0)
                unknown.add(path)
            case 3 if len(held) > 1:
                path = rng.choice(list(held))
                path.unlink()
                del held[path]
                unknown.discard(path)
            case _:
                table.build()
                unknown.clear()
        chosen = [p for p in unknown if rng.random() < 0.6]
        if chosen:
            report = add(table, *chosen)
            assert report.files == len(chosen)
            unknown -= set(chosen)
        for value in {*held.values(), 999}:
            must = {f"file://{p}" for p, v in held.items() if v == value}
            found = kept(planner, eq("v", value))
            assert must <= found
            assert (
                found <= must | {f"file://{p}" for p in unknown} or table.store().latest() is None
            )
        assert everything(planner) == {f"file://{p}" for p in held}
    planner.lister.close()


def test_a_link_that_leads_out_of_the_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for place in (tmp_path / "t" / "a.parquet", tmp_path / "outside.parquet"):
        pq.write_table(pa.table({"x": [1]}), place)
        age(place)
    link = tmp_path / "t" / "link.parquet"
    link.symlink_to(tmp_path / "outside.parquet")
    with bridge.connect() as session:
        index = session.table(f"{tmp_path}/t/").index
        with pytest.raises(BridgeError, match=r"link to .*outside\.parquet, outside"):
            index.add([str(link)])


class _Marked:
    """A store with an empty object that marks a directory, as some tools make them."""

    def __init__(self, files: list[str]) -> None:
        self._files = files

    def pages(self, *_: object, **__: object) -> Iterator[FileTable]:
        count = len(self._files)
        yield FileTable(
            pa.array(["s3://bucket/t/0", *self._files], pa.large_string()),
            np.array([0] + [1] * count, np.int64),
            np.full(count + 1, 2, np.int64),
        )

    def stat(self, uri: str) -> FileStat | None:
        return None

    def list_all(self, uri: str) -> FileTable:
        return next(_Marked([f"{uri}/f.parquet"]).pages()).filter(np.array([False, True]))


def test_a_directory_that_an_object_marks_stands_for_its_files() -> None:
    files = [f"s3://bucket/t/{i}.parquet" for i in range(100, 150)]
    found = _look(
        cast(Storage, _Marked(files)), ["s3://bucket/t/0", *files], _Directory("s3://bucket/t")
    )
    assert [stat.uri for stat in found] == ["s3://bucket/t/0/f.parquet", *files]


class _Unlisted:
    """A store that answers for each file, and refuses listings."""

    def pages(self, *_: object, **__: object) -> Iterator[FileTable]:
        raise StorageFailure("403: no s3:ListBucket", "allow it")
        yield

    def stat(self, uri: str) -> FileStat:
        return FileStat(uri, 1, 2, "e")


def test_files_of_a_directory_that_may_not_be_listed_are_added() -> None:
    uris = [f"s3://bucket/t/{i:03}.parquet" for i in range(50)]
    found = _look(cast(Storage, _Unlisted()), uris, _Directory("s3://bucket/t"))
    assert [stat.uri for stat in found] == uris
