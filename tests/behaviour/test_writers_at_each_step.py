"""Writers who are at work before each step of clustering, of a publication and of a revert.

An append, a file that is copied with its old time, and an overwrite of the whole directory; by
writers who ask for the directory when they write, or asked before the command began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bridge.clustering.publication.left import AGAIN, BEYOND
from bridge.clustering.publication.switches import Switches
from tests.support.clustered import executed, scheduled
from tests.support.lake import Lake, age
from tests.support.published import (
    COLUMNS,
    SORTED,
    Life,
    every,
    fill_at,
    fill_one,
    five_files,
    left,
    numbers,
    place,
    published,
    reverted,
    stock,
)

pytestmark = pytest.mark.full
LAST = 14
"""Mutations of storage and metastore in a publication, at least; those in clustering are fewer."""
NEW = 9
"""The number of the writer's file."""


def append(directory: Path) -> None:
    fill_at(directory / "part-9.parquet", NEW)


def copy(directory: Path) -> None:
    """As ``cp -p`` and ``rsync -t``: it looks as if it had always been there."""
    append(directory)
    age(directory / "part-9.parquet", 90_000)


def overwrite(directory: Path) -> None:
    """As INSERT OVERWRITE: the files that an engine lists go, hidden ones stay."""
    for path in directory.iterdir():
        if path.is_file() and path.name[0] not in "._":
            path.unlink()
    append(directory)


WRITERS = [append, copy, overwrite]


def listed_rows(lake: Lake) -> Counter[int]:
    """The rows of files in left directories that are named, or all if the directory is."""
    found: Counter[int] = Counter()
    for each in left(lake):
        path = Path(each.state.path.removeprefix("file://"))
        tip = Path(each.tip.removeprefix("file://"))
        found += _rows([path] if each.is_file else sorted(tip.glob("[!._]*")))
    return found


def _rows(paths: list[Path]) -> Counter[int]:
    found: Counter[int] = Counter()
    for path in paths:
        found.update(pq.ParquetFile(path).read()["x"].to_pylist())
    return found


@pytest.mark.parametrize("write", WRITERS)
def test_clustering(tmp_path: Path, write: Callable[[Path], None]) -> None:
    met = 0
    for step in range(1, LAST):
        lake = Lake(tmp_path / f"{step}", columns=COLUMNS)
        for number in range(4):
            fill_one(lake, number)
        lake.build()
        plan = scheduled(lake, **SORTED)
        seen: list[Counter[int]] = []

        def meet(at: Lake = lake, seen: list[Counter[int]] = seen) -> None:
            write(place(at))
            seen.append(numbers(at))

        life = Life(others={step: meet})
        report = executed(lake, plan, life.of(lake.storage))
        expected = every(NEW) if write is overwrite else every(0, 1, 2, 3, NEW)
        if life.mutations < step:
            meet()
        else:
            met += 1
            assert write is not overwrite or report.state in ("completed", "rejected")
        assert [numbers(lake), stock(lake), *seen] == [expected] * 3
        lake.build()
        assert numbers(lake) == expected
    assert met >= 4


@pytest.mark.parametrize("asked_before", [True, False])
@pytest.mark.parametrize("run", [published, reverted])
@pytest.mark.parametrize("write", WRITERS)
def test_publications_and_reverts(
    tmp_path: Path,
    write: Callable[[Path], None],
    run: Callable[..., object],
    asked_before: bool,
) -> None:
    named = 0
    for step in range(1, LAST):
        lake = five_files(tmp_path / f"{step}")
        if run is reverted:
            published(lake)
        before = place(lake)

        def meet(at: Lake = lake, before: Path = before) -> None:
            write(before if asked_before else place(at))

        life = Life(others={step: meet})
        run(lake, life)
        if life.mutations < step:
            break
        for _ in range(2):
            there, listed = stock(lake), listed_rows(lake)
            assert numbers(lake) == there and max(there.values()) == 1, step
            assert every(NEW) <= there + listed, step
            if write is not overwrite:
                assert every(0, 1, 2, 3, 4) <= there <= every(0, 1, 2, 3, 4, NEW), step
                assert there + listed == every(0, 1, 2, 3, 4, NEW), step
            run(lake)  # the same command once more
        named += bool(listed)
    assert step > 10
    assert named or not asked_before


def test_of_a_directory_that_is_accepted_the_files_are_named(tmp_path: Path) -> None:
    """Before, the directory is: whoever did both would have the rows twice."""
    lake = five_files(tmp_path)
    home = place(lake)
    published(lake)
    append(place(lake))
    lake.locations[""] = home
    (entry,) = left(lake)
    assert entry.why == AGAIN and entry.tip != lake.location
    switches = Switches(lake.storage, lake.location)
    switches.accept([entry.state])
    switches.unmark(lake.location)
    (late,) = left(lake)
    assert late.is_file and late.state.path == f"{entry.tip}/part-9.parquet"


def test_a_late_writer_in_a_subdirectory_is_named(tmp_path: Path) -> None:
    """As a UNION ALL of Hive, which engines read that descend into subdirectories."""
    lake = five_files(tmp_path)
    home = place(lake)
    published(lake)
    assert not left(lake)
    for name in ("HIVE_UNION_SUBDIR_1/1", "_temporary/0", ".hive-staging"):
        (home / name).mkdir(parents=True)
        append(home / name)
    (late,) = left(lake)
    assert late.why == BEYOND and late.state.path.endswith("/HIVE_UNION_SUBDIR_1/1/part-9.parquet")
    assert listed_rows(lake) == every(NEW)
