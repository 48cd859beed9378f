"""Partitions that share a location, or lie in one another's: every file has a set of owners."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.expression.nodes import AlwaysTrue, BoundReference
from bridge.expression.parsing.text import parse_where
from bridge.index.building.build import BuildReport, build_index
from bridge.index.building.collect import ThreadCollector
from bridge.indexing.table import report_build as told_report
from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidUri
from bridge.kernel.types import BIGINT, STRING
from bridge.planner.answers.aggregate_pushdown import aggregate
from bridge.planner.answers.aggregates import Aggregate, AggregateRequest
from bridge.planner.answers.skippable_files import list_skippable_files
from bridge.planner.answers.system_tables import system_table_rows
from bridge.planner.answers.table_statistics import estimate, row_estimate
from bridge.planner.request import ScanRequest, SortKey
from bridge.planner.scan_plan import ScanPlan
from bridge.runtime.table_snapshot import table_files
from bridge.storage.uri import canonical
from bridge.table.model import Column
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


@pytest.mark.rule("27")
def test_partitions_that_cannot_be_listed_leave_the_others_to_the_index(tmp_path: Path) -> None:
    """A file without a name, and a location that is no URI; both are named in each build."""
    lake = Lake(tmp_path, (Column("x", BIGINT),), (KEY,))
    lake.partition_values = [(str(p),) for p in range(7)]
    for values in lake.partition_values:
        lake.write("f", pa.table({"x": [int(values[0] or 0)]}), values)

    def build() -> BuildReport:
        table, config = lake.table(), Config({})
        with table_files(config, lake.storage, lake, table, refuse=False) as files:
            return build_index(table, files, lake.store(), collector=ThreadCollector(lake.storage))

    def complete() -> bool:
        manifest = lake.store().latest()
        return manifest is not None and manifest.complete

    assert build().files == 7 and complete()
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/t/p=2/\xff"))
    odd.write_bytes(b"x")
    lake.locations["p=4"] = Path(f"{tmp_path}/t/../t/p=4")
    for removed in (2, 0):  # in each build
        report = build()
        assert [name for name, _ in report.refused] == ["p=2", "p=4"]
        assert all(reason.startswith("INVALID_URI: ") for _, reason in report.refused)
        assert "no name in UTF-8" in report.refused[0][1] and ".." in report.refused[1][1]
        assert report.files == 5 and report.removed == removed and not report.failed
        assert not complete(), "it does not name all files of the table"
        assert names(scan(lake, "x = 3 AND p <> '2' AND p <> '4'")) == ["p=3/f"]
        told: list[str] = []
        assert len(told_report(report, "t", told.append)["refused"]) == 2
        assert any("partition p=4: INVALID_URI: " in line for line in told)
    odd.unlink()
    del lake.locations["p=4"]
    assert build().files == 7 and complete()
    lake.locations |= {lake.name_of(v): Path(f"{tmp_path}/t/../t") for v in lake.partition_values}
    with pytest.raises(InvalidUri):  # nothing is left to index
        build()


class _Away(Lake):
    """Partitions at ``away`` are in a store that does not answer, one at ``nowhere`` is in none."""

    def _uri(self, path: Path) -> str:
        if path.name == "nowhere":
            return canonical("nope://host/x")
        away = path.name.startswith("away")
        return f"hdfs://127.0.0.1:1/{path.name}" if away else super()._uri(path)


@pytest.mark.full
@pytest.mark.rule("27")
def test_partitions_in_a_store_that_fails_leave_the_others_to_the_index(tmp_path: Path) -> None:
    """Nobody asks that store for each of its partitions."""
    lake = _Away(tmp_path, (Column("x", BIGINT),), (KEY,))
    lake.partition_values = [(str(p),) for p in range(300)]
    for values in lake.partition_values[:3]:
        lake.write("f", pa.table({"x": [int(values[0] or 0)]}), values)
    lake.locations = {f"p={p}": tmp_path / f"away{p}" for p in range(3, 300)}
    lake.locations["p=77"] = tmp_path / "nowhere"
    asked: list[int] = []
    whole = lake.storage.list_many
    lake.storage.list_many = lambda places, *a, **k: (asked.append(1), whole(places, *a, **k))[1]  # type: ignore[method-assign,attr-defined]

    def build() -> BuildReport:
        table = lake.table()
        with table_files(Config({}), lake.storage, lake, table, refuse=False) as files:
            return build_index(table, files, lake.store(), collector=ThreadCollector(lake.storage))

    for _ in range(2):
        report = build()
        assert sorted(name for name, _ in report.refused) == sorted(lake.locations)
        codes = Counter(reason.partition(":")[0] for _, reason in report.refused)
        assert codes == {"STORAGE_ERROR": 296, "INVALID_URI": 1}
        assert report.files == 3 and not report.failed and len(asked) <= 12
        manifest = lake.store().latest()
        assert manifest is not None and not manifest.complete
        asked.clear()
    assert names(scan(lake, "x = 1 AND p IN ('0', '1', '2')")) == ["p=1/f"]
    lake.locations.clear()
    assert build().files == 3
    manifest = lake.store().latest()
    assert manifest is not None and manifest.complete
