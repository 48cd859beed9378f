"""Partitions that share a location, or lie in one another's: every file has a set of owners."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.expression.nodes import AlwaysTrue, BoundReference
from bridge.expression.text import parse_where
from bridge.index.alter_index import change_settings
from bridge.index.listed import owners_of
from bridge.index.shard import FILES, read_files, write_files
from bridge.index.store import new_id, next_generation
from bridge.planner.aggregate_pushdown import aggregate
from bridge.planner.aggregates import Aggregate, AggregateRequest
from bridge.planner.request import ScanRequest, SortKey
from bridge.planner.scan_plan import ScanPlan
from bridge.planner.skippable_files import list_skippable_files
from bridge.planner.system_tables import system_table_rows
from bridge.planner.table_statistics import estimate, row_estimate
from bridge.table.model import Column
from bridge.types import BIGINT, STRING
from tests.support.lake import NAME, Lake, owned

MODES = ("live", "cached(60s)", "snapshot")
KEY = Column("p", STRING)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """p=a and p=b share a directory of two files, p=c has one of its own."""
    made = Lake(tmp_path, (Column("x", BIGINT),), (KEY,))
    made.partition_values = [("a",), ("b",), ("c",)]
    made.locations = {"p=b": tmp_path / "t" / "p=a"}
    for values, name, rows in ((("a",), "f", [1, 2]), (("a",), "g", [10]), (("c",), "h", [20])):
        made.write(name, pa.table({"x": pa.array(rows, pa.int64())}), values)
    assert made.build().files == 3
    return made


def scan(lake: Lake, where: str = "", **request: Any) -> ScanPlan:
    predicate = parse_where(where)[0] if where else AlwaysTrue()
    return lake.planner().plan(ScanRequest(NAME, predicate, **request))


def names(plan: ScanPlan) -> list[str]:
    return sorted(f"{partition}/{uri[-1]}" for partition, uri in owned(plan))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("", ["p=a/f", "p=a/g", "p=b/f", "p=b/g", "p=c/h"]),
        ("p = 'b'", ["p=b/f", "p=b/g"]),
        ("p = 'a'", ["p=a/f", "p=a/g"]),
        ("p <> 'a'", ["p=b/f", "p=b/g", "p=c/h"]),
        ("x = 10", ["p=a/g", "p=b/g"]),
        ("p = 'b' AND x < 5 OR p = 'a' AND x > 5", ["p=a/g", "p=b/f"]),
        ("p = 'c' OR x = 2", ["p=a/f", "p=b/f", "p=c/h"]),
    ],
)
def test_28_a_shared_location_belongs_to_all(
    lake: Lake, mode: str, where: str, kept: list[str]
) -> None:
    assert names(scan(lake, where, freshness=mode)) == kept


@pytest.mark.parametrize("mode", MODES)
def test_28_statistics_count_a_file_for_each_owner(lake: Lake, mode: str) -> None:
    x, p = BoundReference(("x",), BIGINT), BoundReference(("p",), STRING, True)
    counts = AggregateRequest((Aggregate("count"), Aggregate("max", x)), (p,))
    found = aggregate(scan(lake, freshness=mode), counts)
    assert found.rows is not None
    assert sorted(found.rows) == [(b"a", 3, 10), (b"b", 3, 10), (b"c", 1, 20)]
    whole = aggregate(scan(lake, freshness=mode), AggregateRequest((Aggregate("count"),)))
    assert whole.rows == ((7,),)
    some = aggregate(scan(lake, "p = 'b'", freshness=mode), AggregateRequest((Aggregate("count"),)))
    assert some.rows == ((3,),)


@pytest.mark.parametrize("mode", MODES)
def test_28_limit_and_first_rows(lake: Lake, mode: str) -> None:
    assert len(names(scan(lake, freshness=mode, limit=7))) == 5
    assert len(names(scan(lake, freshness=mode, limit=3))) < 5
    order = (SortKey("x", descending=False, nulls_first=False),)
    assert names(scan(lake, freshness=mode, limit=4, order=order)) == ["p=a/f", "p=b/f"]


@pytest.mark.parametrize("mode", MODES)
def test_28_system_tables_and_estimates(lake: Lake, mode: str) -> None:
    def rows(kind: str) -> list[tuple[Any, ...]]:
        pages = system_table_rows(scan(lake, freshness=mode), kind, ())
        return [row for page in pages for row in zip(*page, strict=True)]

    files = sorted((partition, path[-1], rows) for path, partition, _, _, rows, *_ in rows("files"))
    assert files == [("p=a", "f", 2), ("p=a", "g", 1), ("p=b", "f", 2), ("p=b", "g", 1),
                     ("p=c", "h", 1)]  # fmt: skip
    assert [(r[0], r[2], r[4], r[5]) for r in rows("partitions")] == [
        ("p=a", 2, 3, 2), ("p=b", 2, 3, 2), ("p=c", 1, 1, 1)
    ]  # fmt: skip
    minmax = next(r for r in rows("indexes") if r[2] == "x")
    assert minmax[5:8] == (3, 3, 3)
    plan = scan(lake, freshness=mode)
    assert row_estimate(plan.view) == 7
    assert estimate(plan.context).rows == 7
    assert estimate(scan(lake, "p = 'b'", freshness=mode).context).rows == 3
    assert estimate(plan.context).columns["p"].distinct == 3


def test_28_files_left_out_by_partition(lake: Lake) -> None:
    """Hive lists itself: what is named belongs to a partition that it asked for."""
    planner = lake.planner()
    view = planner.views.view(lake.table())
    for where, left_out in (("p = 'b' AND x = 10", ["f"]), ("p = 'c' AND x = 1", ["h"])):
        found = list_skippable_files(lake.table(), view, ScanRequest(NAME, parse_where(where)[0]))
        assert [path[-1] for path in found.paths.to_pylist()] == left_out, where


def as_of_version_2(lake: Lake) -> None:
    """Commits the index as the release before wrote it: one owner of each file."""
    store = lake.store()
    held = store.latest()
    assert held is not None
    shards = []
    for shard in held.shards:
        files = read_files(store.read_blob(shard.files))
        owners = [owners_of(text)[0] for text in files["partition"].to_pylist()]
        files = files.set_column(1, FILES.field("partition"), pa.array(owners, pa.large_string()))
        content = write_files(files)
        shards.append(replace(shard, files=store.put_blob(f"shards/{new_id()}", content)))
    store.commit(
        next_generation(
            held, held.generation + 1, builder=new_id(), shards=tuple(shards), version=2
        )
    )


def test_28_an_index_of_the_release_before(lake: Lake) -> None:
    as_of_version_2(lake)
    everything = ["p=a/f", "p=a/g", "p=b/f", "p=b/g", "p=c/h"]
    for mode in MODES:
        assert names(scan(lake, freshness=mode)) == everything, mode
        assert names(scan(lake, "x = 10", freshness=mode)) == ["p=a/g", "p=b/g"], mode
    change_settings(lake.store(), lambda held: replace(held, minmax_visible=False))
    assert names(scan(lake, freshness="snapshot")) == everything
    report = lake.build()  # what has several owners is read again, the rest is taken over
    assert (report.committed, report.read) == (True, 2)
    assert scan(lake, freshness="snapshot").snapshot.freshness == "snapshot"
    assert names(scan(lake, freshness="snapshot")) == everything
    assert not lake.build().committed


def test_28_an_index_of_the_release_before_is_brought_up_by_a_refresh(lake: Lake) -> None:
    del lake.locations["p=b"]
    assert lake.build().committed
    as_of_version_2(lake)
    assert scan(lake, freshness="snapshot").snapshot.freshness == "live"
    report = lake.build()
    assert (report.committed, report.read) == (True, 0)
    assert scan(lake, freshness="snapshot").snapshot.freshness == "snapshot"


def nested(lake: Lake) -> None:
    lake.locations["p=c"] = lake.directory(("a",)) / "deep"
    lake.write("i", pa.table({"x": pa.array([30], pa.int64())}), ("c",))


def another(lake: Lake) -> None:
    lake.partition_values.append(("d",))
    lake.locations["p=d"] = lake.directory(("a",))


def one_less(lake: Lake) -> None:
    lake.partition_values.remove(("a",))


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        (nested, ["p=a/f", "p=a/g", "p=a/i", "p=b/f", "p=b/g", "p=b/i", "p=c/i"]),
        (another, ["p=a/f", "p=a/g", "p=b/f", "p=b/g", "p=c/h", "p=d/f", "p=d/g"]),
        (one_less, ["p=b/f", "p=b/g", "p=c/h"]),
    ],
)
def test_28_owners_change(lake: Lake, change: Callable[[Lake], None], kept: list[str]) -> None:
    lake.recursive = change is nested
    change(lake)
    lake.build()
    for mode in MODES:
        assert names(scan(lake, freshness=mode)) == kept, mode
    assert not lake.build().committed
