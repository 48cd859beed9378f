"""How statistics of the catalog and of the index are combined."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.expression.nodes import AlwaysTrue
from bridge.index.building.sample import ColumnSample
from bridge.kernel.errors import MetastoreUnavailable
from bridge.kernel.types import BIGINT, STRING
from bridge.metastore.statistics import spark_statistics
from bridge.planner.answers.distinct_values import TableDistinct
from bridge.planner.answers.table_statistics import ColumnEstimate, estimate, rough_estimate
from bridge.planner.index_view import IndexView
from bridge.planner.request import ScanRequest
from bridge.service.statistics import HeldStatistics
from bridge.table.catalog_statistics import CatalogColumn, CatalogStatistics
from bridge.table.model import CatalogTable, Column
from tests.support.lake import NAME, Lake

PART = ColumnSample(64, 1000, 1000, None, 500.0, 100.0, 100.0, False)
WHOLE = ColumnSample(64, 10_000, 10_000, None, 500.0, 100.0, 100.0, False)


def held(
    rows: float | None, distinct: float, whole: bool = True
) -> tuple[CatalogColumn, CatalogStatistics]:
    column = CatalogColumn(distinct)
    return column, CatalogStatistics(rows, {"x": column}, whole)


@pytest.mark.parametrize(
    ("told", "best"),
    [
        (TableDistinct(10_000), (None, "sample")),
        (TableDistinct(10_000, 700.0, WHOLE, *held(10_000, 800)), (700.0, "sketch")),
        (TableDistinct(10_000, None, WHOLE, *held(10_000, 800)), (500.0, "sample")),
        (TableDistinct(10_000, None, PART, *held(10_000, 800)), (800.0, "catalog")),
        (TableDistinct(10_000, None, PART, *held(11_000, 30)), (30.0, "catalog")),
        # stale, or of some partitions: it may lack values
        (TableDistinct(10_000, None, PART, *held(2_000, 30)), (549.0, "sample")),
        (TableDistinct(10_000, None, PART, *held(10_000, 30, False)), (549.0, "sample")),
        (TableDistinct(10_000, None, PART, *held(None, 30)), (549.0, "sample")),
        (TableDistinct(10_000, None, PART, *held(2_000, 900)), (900.0, "catalog")),
        (TableDistinct(10_000, None, None, *held(2_000, 30)), (30.0, "catalog")),
        # absurd
        (TableDistinct(10_000, None, PART, *held(10_000, 10_001)), (549.0, "sample")),
        (TableDistinct(10_000, None, None, *held(10_000, -1)), (None, "sample")),
    ],
)  # fmt: skip
def test_the_fresher_and_the_more_exact_wins(
    told: TableDistinct, best: tuple[float | None, str]
) -> None:
    value, source = told.best()
    assert source == best[1]
    assert value == (None if best[0] is None else pytest.approx(best[0], abs=1))


def test_columns_of_the_index_and_the_catalogue(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("x", BIGINT), Column("s", STRING)))
    lake.write("f", {"x": [1, 2, 2, None], "s": ["a", "bb", "bb", "ccc"]})
    context = lake.planner().plan(ScanRequest(NAME, AlwaysTrue())).context
    assert estimate(context).rows is None
    told = CatalogStatistics(
        4, {"x": CatalogColumn(2, 1), "s": CatalogColumn(99, 99, 2.0), "gone": CatalogColumn(1)}
    )
    found = estimate(context, told)
    assert found.rows == 4
    assert found.columns["x"] == ColumnEstimate(0.25, 2, source="catalog")
    assert found.columns["s"] == ColumnEstimate(data_bytes=8.0)
    lake.build()
    context = lake.planner().plan(ScanRequest(NAME, AlwaysTrue())).context
    found = estimate(context, CatalogStatistics(1e9, {"x": CatalogColumn(1e6, 1e8)}))
    assert found.rows == 4
    assert found.columns["x"] == ColumnEstimate(0.25, 2, 1, 2, None, "sample", True)
    # Before the index's columns are loaded, the sample and the catalog tell much the same.
    rough = rough_estimate(context.table, context.view, CatalogStatistics())
    assert rough.rows == 4 and rough.columns["x"] == replace(found.columns["x"], overlapping=None)
    assert rough.columns["s"] == ColumnEstimate(0, 3, data_bytes=8, source="sample")


def test_spark_leaves_its_statistics_among_the_properties() -> None:
    prefix = "spark.sql.statistics.colStats"
    found = spark_statistics(
        {
            "spark.sql.statistics.numRows": "10",
            f"{prefix}.Id.distinctCount": "10",
            f"{prefix}.Id.nullCount": "0",
            f"{prefix}.Id.version": "2",
            f"{prefix}.s.avgLen": "2",
            f"{prefix}.bad.distinctCount": "many",
        }
    )
    assert found.rows == 10 and found.whole
    assert found.columns == {
        "id": CatalogColumn(10, 0),
        "s": CatalogColumn(None, None, 2),
        "bad": CatalogColumn(),
    }


class _Catalog(Lake):
    answer: Callable[[], CatalogStatistics]
    asked = 0

    def statistics(self, table: CatalogTable, partitions: Sequence[str]) -> CatalogStatistics:
        self.asked += 1
        return self.answer()


def test_a_slow_or_absent_catalogue_delays_nobody(tmp_path: Path) -> None:
    lake = _Catalog(tmp_path, (Column("x", BIGINT),))
    gate = threading.Event()
    known = CatalogStatistics(7)

    def slow() -> CatalogStatistics:
        gate.wait(30)
        return known

    lake.answer = slow
    view = IndexView(None)
    with ThreadPoolExecutor(2) as pool:
        statistics = HeldStatistics(pool, lake, fresh=0.0, patience=0.01)
        assert statistics.of(lake.table(), view) == CatalogStatistics()
        assert statistics.of(lake.table(), view) == CatalogStatistics()
        assert lake.asked == 1  # the request under way is not repeated
        gate.set()
        while statistics.of(lake.table(), view) != known:
            pass

        def fails() -> CatalogStatistics:
            raise MetastoreUnavailable("gone", "")

        lake.answer = fails
        before = lake.asked
        while lake.asked == before:
            assert statistics.of(lake.table(), view) == known
        assert statistics.of(lake.table(), view) == known
        assert HeldStatistics(pool, Lake(tmp_path)).of(lake.table(), view) == CatalogStatistics()
