"""The index after some partitions were written: their entries are as a refresh of the whole table
would make them, and all others stay.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from bridge.expression.builders import eq
from bridge.index.building.build import BuildReport, build_index, refresh_partitions
from bridge.index.building.collect import ThreadCollector
from bridge.index.building.listed import Listed, owners_of
from bridge.index.generations.entries import live_entries
from bridge.indexing.table import index_table, refresh_written
from bridge.kernel.config import Config
from bridge.kernel.types import INTEGER
from bridge.runtime.table_snapshot import table_files
from bridge.table.model import Column
from tests.support.lake import Lake, age, everything, kept
from tests.tiers import examples

KEY = Column("p", INTEGER)


def lake_of(root: Path, partitions: int, recursive: bool = False) -> Lake:
    made = Lake(root, (Column("x", INTEGER),), (KEY,), recursive=recursive)
    made.partition_values = [(str(p),) for p in range(partitions)]
    for values in made.partition_values:
        for i in range(2):
            write(made, f"f{i}", int(values[0] or 0), i)
    return made


def write(lake: Lake, name: str, partition: int, x: int) -> Path:
    return lake.write(name, pa.table({"x": pa.array([x], pa.int32())}), (str(partition),))


def refresh(lake: Lake, *names: str) -> BuildReport:
    table = lake.table()
    config = Config({})
    with table_files(config, lake.storage, lake, table, refuse=False, among=names) as files:
        return refresh_partitions(
            table, names, files, lake.store(), collector=ThreadCollector(lake.storage)
        )


def entries(lake: Lake) -> list[tuple[str, str]]:
    manifest = lake.store().latest()
    assert manifest is not None
    files = live_entries(manifest, lake.store()).files
    return list(zip(files["path"].to_pylist(), files["partition"].to_pylist(), strict=True))


def names_in(lake: Lake) -> list[str]:
    return ["/".join(path.split("/")[-2:]) for path, _ in entries(lake)]


def test_new_files_are_known_and_vanished_ones_are_not(tmp_path: Path) -> None:
    """As after OPTIMIZE, an overwrite, and a partition that was dropped."""
    lake = lake_of(tmp_path, 4)
    lake.build()
    for name in ("f0", "f1"):
        (lake.directory(("1",)) / name).unlink()
    write(lake, "whole", 1, 7)
    write(lake, "more", 2, 8)
    lake.partition_values.remove(("3",))
    write(lake, "unseen", 0, 9)  # of a partition that nobody names
    report = refresh(lake, "p=1", "p=2", "p=3")
    assert (report.read, report.removed, report.committed) == (2, 4, True)
    assert names_in(lake) == ["p=0/f0", "p=0/f1", "p=1/whole", "p=2/f0", "p=2/f1", "p=2/more"]
    planner = lake.planner()
    assert len(everything(planner, freshness="snapshot")) == 6
    assert kept(planner, eq("x", 8)) == {
        f"file://{lake.directory(('2',))}/more",
        f"file://{lake.directory(('0',))}/unseen",
    }
    planner.lister.close()
    assert lake.build().read == 1 and not refresh(lake, "p=0", "p=1").committed


def test_a_table_without_partitions(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", INTEGER),))
    for name in ("a", "b"):
        lake.write(name, {"x": pa.array([1], pa.int32())})
    lake.build()
    lake.path("a").unlink()
    lake.write("c", {"x": pa.array([2], pa.int32())})
    report = refresh(lake, "")
    assert (report.read, report.removed) == (1, 1)
    assert names_in(lake) == ["t/b", "t/c"] and not lake.build().committed


@pytest.mark.parametrize("names", [["p=1"], []])
def test_a_planner_refreshes_the_index_that_a_table_has(tmp_path: Path, names: list[str]) -> None:
    """Some partitions or all; a table without an index gets none."""
    lake, said = lake_of(tmp_path, 3), list[str]()
    refresh_written(Config({}), f"{tmp_path}/t", names, say=said.append)
    assert lake.store().latest() is None
    index_table(
        Config({}), f"{tmp_path}/t", local=True, progress=lambda d, t: None, say=said.append
    )
    write(lake, "new", 1, 5)
    (lake.directory(("2",)) / "f0").unlink()
    refresh_written(Config({}), f"{tmp_path}/t", names, say=said.append)
    gone = {"p=2/f0"} if names else set()
    assert set(names_in(lake)) == gone | {
        *(f"p={p}/f{i}" for p in (0, 1) for i in (0, 1)), "p=1/new", "p=2/f1"
    }  # fmt: skip
    assert said == []


def test_a_partition_that_cannot_be_listed_keeps_its_entries(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, 3)
    lake.build()
    before = entries(lake)
    lake.locations["p=1"] = Path(f"{tmp_path}/t/../t/p=1")
    report = refresh(lake, "p=1", "p=2")
    assert [name for name, _ in report.refused] == ["p=1"] and entries(lake) == before


@pytest.mark.parametrize("partial", [False, True])
def test_what_another_builder_added_since_the_listing_stays(tmp_path: Path, partial: bool) -> None:
    """Whether it committed before this build looked at the index, or after."""
    lake = lake_of(tmp_path, 3)
    lake.build()
    table, config = lake.table(), Config({})
    late = iter(("late", "later"))
    with table_files(config, lake.storage, lake, table, refuse=False) as list_all:

        def list_files() -> Listed:
            listed = list_all()
            if (name := next(late, None)) is not None:
                write(lake, name, 1, 5)
                refresh(lake, "p=1")
            return listed

        write(lake, "new", 2, 6)
        collector = ThreadCollector(lake.storage)
        if partial:
            every = lake.partition_names(table)
            refresh_partitions(table, every, list_files, lake.store(), collector=collector)
        else:
            build_index(table, list_files, lake.store(), collector=collector)
    assert {"p=1/late", "p=2/new"} <= set(names_in(lake))
    planner = lake.planner()
    assert len(everything(planner, freshness="snapshot")) == 8
    planner.lister.close()
    assert not lake.build().committed


def test_the_files_written_last_are_indexed_first(tmp_path: Path) -> None:
    """By a refresh that commits in parts."""
    lake = lake_of(tmp_path, 5)
    for p, seconds in ((3, 20.0), (1, 30.0)):
        age(write(lake, "old", p, 1), seconds)
    lake.build()
    for p in range(5):
        for i in range(2):
            age(write(lake, f"new{i}", p, 1), 1000.0 - (p * 7 % 5) * 100 - i)
    seen: list[list[str]] = []

    class Seeing(ThreadCollector):
        def collect(self, tasks, reading):  # type: ignore[no-untyped-def]
            seen.append(["/".join(task.uri.split("/")[-2:]) for task in tasks])
            return super().collect(tasks, reading)

    lake.build(collector=Seeing(lake.storage), files_per_commit=4)
    assert [sorted({path.partition("/")[0] for path in part}) for part in seen] == [
        ["p=2", "p=4"],
        ["p=1", "p=3"],
        ["p=0"],
    ]
    assert all(part == sorted(part) for part in seen)


@pytest.mark.parametrize("seed", range(examples(4, 12, 100)))
def test_a_refresh_of_what_was_written_is_a_refresh(tmp_path: Path, seed: int) -> None:
    """Random writes; then the index is what a refresh of the whole table makes, and no row that
    is there is skipped before or after.
    """
    random_ = random.Random(seed)
    lake = lake_of(tmp_path, 5, recursive=random_.random() < 0.3)
    if random_.random() < 0.5:  # two partitions of one place
        lake.locations["p=4"] = lake.directory(("3",))
    lake.build()
    planner = lake.planner()
    for number in range(6):
        written = set()
        for _ in range(random_.randrange(1, 4)):
            p = random_.randrange(5)
            if (str(p),) not in lake.partition_values:
                lake.partition_values.append((str(p),))
            directory = lake.directory((str(p),))
            match random_.randrange(4):
                case 0:
                    write(lake, f"n{number}", p, 100 + number)
                case 1:
                    for file in directory.glob("*"):
                        file.unlink()
                    write(lake, f"w{number}", p, 100 + number)
                case 2:
                    for file in list(directory.glob("*"))[:1]:
                        file.unlink()
                case _:
                    lake.partition_values.remove((str(p),))
            written |= {v for v in range(5) if lake.directory((str(v),)) == directory}
        found = kept(planner, eq("x", 100 + number))
        there = {f"file://{f}" for v in lake.partition_values for f in lake.directory(v).glob("*")}
        assert {uri for uri in there if uri.endswith((f"n{number}", f"w{number}"))} <= found
        refresh(lake, *(f"p={p}" for p in written))
        assert everything(planner, freshness="snapshot") == there
        before = entries(lake)
        lake.build()
        after = entries(lake)
        assert [path for path, _ in before] == [path for path, _ in after]
        # an owner that went stays until a refresh of the whole table, and costs nothing
        for (_, held), (_, found_now) in zip(before, after, strict=True):
            assert set(owners_of(held)) >= set(owners_of(found_now))
    planner.lister.close()
