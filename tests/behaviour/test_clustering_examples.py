"""The examples of RFC-19 with real files: a megabyte of the document is a kilobyte here."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.clustering.execution import RunReport
from bridge.clustering.planning.eligibility import Limits
from bridge.kernel.types import BIGINT
from bridge.table.model import Column
from tests.support.clustered import executed, read, scheduled
from tests.support.lake import Lake

pytestmark = pytest.mark.full

RNG = random.Random(19)
MANY = 10**9


def write(lake: Lake, number: int, kilobytes: int, low: int, high: int) -> None:
    """A file of almost so many kilobytes; its values of x lie between two bounds, both included.

    No value is there often, so a file is as large in whatever order.
    """
    rows = kilobytes * 970 // 16
    low, high = low * MANY, high * MANY
    x = [low, high, *(RNG.randint(low, high) for _ in range(rows - 2))]
    data = pa.table({"x": x, "from": range(number * MANY, number * MANY + rows)})
    options: dict[str, Any] = {"compression": "none", "use_dictionary": False}
    lake.write(f"f{number}.parquet", data, **options)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path, columns=(Column("x", BIGINT), Column("from", BIGINT)))


def clustered(lake: Lake, target: int, grouping: str) -> tuple[RunReport, list[list[str]]]:
    """The report, and the old files of each group. Sizes are in kilobytes."""
    lake.build()
    before, _ = read(lake)
    limits = Limits(target=target * 1000, small=target * 4000, most_per_group=10**8)
    columns, order = (("x",), "linear") if grouping == "overlap" else ((), "binpack")
    plan = scheduled(lake, limits=limits, layout=order, columns=columns, grouping=grouping)
    report = executed(lake, plan)
    assert report.state == "completed" and read(lake)[0] == before
    return report, [[f.path.rpartition("/")[2] for f in g.files] for g in plan.groups]


def new_files(lake: Lake) -> list[Path]:
    return sorted((lake.root / "t/.skipbridge_clustered").rglob("*-data"))


def origins(path: Path) -> set[int]:
    """The old files of which a new one has rows."""
    return {value // MANY for value in pq.read_table(path)["from"].to_pylist()}


def test_eight_files_of_512_become_four_of_1024(lake: Lake) -> None:
    for i in range(8):
        write(lake, i, 512, 0, 1_000_000)
    report, groups = clustered(lake, 1024, "overlap")
    assert (report.old_files, report.new_files, len(groups)) == (8, 4, 1)
    assert all(900_000 < path.stat().st_size < 1_150_000 for path in new_files(lake))
    assert all(len(origins(path)) == 8 for path in new_files(lake))  # they are sorted


def test_two_of_eight_overlap_and_become_one(lake: Lake) -> None:
    for i in range(8):
        write(lake, i, 512, i * 100, i * 100 + (150 if i == 3 else 90))
    report, groups = clustered(lake, 1024, "overlap")
    assert (groups, report.new_files) == ([["f3.parquet", "f4.parquet"]], 1)
    (path,) = new_files(lake)
    assert 900_000 < path.stat().st_size < 1_150_000 and origins(path) == {3, 4}
    assert len(read(lake)[1]) == 7


def test_four_of_eight_overlap_and_become_two(lake: Lake) -> None:
    for i in range(8):
        write(lake, i, 512, i * 100, i * 100 + (390 if i == 2 else 90))
    report, groups = clustered(lake, 1024, "overlap")
    assert groups == [[f"f{i}.parquet" for i in (2, 3, 4, 5)]] and report.new_files == 2
    assert all(900_000 < path.stat().st_size < 1_150_000 for path in new_files(lake))
    assert len(read(lake)[1]) == 6


def test_five_files_of_100_become_two_of_250(lake: Lake) -> None:
    """Rows of one old file go to both of them."""
    for i in range(5):
        write(lake, i, 100, 0, 9)
    report, groups = clustered(lake, 250, "size")
    assert (report.old_files, report.new_files, len(groups)) == (5, 2, 1)
    one, other = new_files(lake)
    assert all(200_000 < path.stat().st_size < 300_000 for path in (one, other))
    assert len(origins(one) & origins(other)) == 1
    assert origins(one) | origins(other) == set(range(5))


@pytest.mark.parametrize("grouping", ["overlap", "range", "time", "size", "random"])
def test_a_lone_file_is_left_alone(lake: Lake, grouping: str) -> None:
    write(lake, 0, 100, 0, 9)
    lake.build()
    limits = Limits(target=250_000, small=10**6)
    columns, order = (("x",), "linear") if grouping in ("overlap", "range") else ((), "binpack")
    plan = scheduled(lake, limits=limits, layout=order, columns=columns, grouping=grouping)
    assert plan.groups == ()
