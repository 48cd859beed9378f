"""What Trino's optimiser gets: SHOW STATS, join orders, statistics of the metastore, ANALYZE."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, DATE, INTEGER, STRING
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.engines.stack import Stack

pytestmark = pytest.mark.full

DAYS, SALES, ITEMS, STORES = 40, 2000, 900, 12
STAR = """
SELECT i.category, count(*) FROM star.sales s
JOIN star.days d ON s.day = d.day
JOIN star.items i ON s.item = i.item
JOIN star.stores t ON s.store = t.store
WHERE d.year = 2001 AND d.month = 1 AND i.category = 'c3' GROUP BY i.category
"""


def _register(stack: Stack, table: CatalogTable, partitions: list[Partition]) -> None:
    with MetastoreClient(stack.metastore_uri) as client:
        register_table(client, table.name, table, partitions)


def _index(stack: Stack, name: str) -> None:
    index_table(
        Config({"metastore.uri": Setting(stack.metastore_uri, "test")}),
        f"star.{name}",
        local=True,
        progress=lambda done, total: None,
        say=lambda text: None,
    )


def _write(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(data), path)


@pytest.fixture(scope="module")
def star(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A star of sales, partitioned by day, and three dimensions; ``bare`` has no index."""
    rng, root = np.random.default_rng(5), tmp_path_factory.mktemp("star")
    days = pa.array(range(DAYS))
    dimensions: dict[str, tuple[tuple[Column, ...], dict[str, Any]]] = {
        "days": (
            (Column("day", BIGINT), Column("year", INTEGER), Column("month", INTEGER)),
            {
                "day": days,
                "year": pa.array([2000 + d // 20 for d in range(DAYS)], pa.int32()),
                "month": pa.array([1 + d % 20 // 5 for d in range(DAYS)], pa.int32()),
            },
        ),
        "items": (
            (Column("item", BIGINT), Column("category", STRING)),
            {"item": range(ITEMS), "category": [f"c{i % 9}" for i in range(ITEMS)]},
        ),
        "stores": (
            (Column("store", BIGINT), Column("name", STRING)),
            {"store": range(STORES), "name": [f"store {i}" for i in range(STORES)]},
        ),
    }
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database("star")
    for name, (columns, data) in dimensions.items():
        _write(root / name / "0.parquet", data)
        _register(
            stack, CatalogTable(TableName("star", name), columns, (), f"file://{root}/{name}"), []
        )
    sold = (
        Column("item", BIGINT),
        Column("store", BIGINT),
        Column("ticket", BIGINT),
        Column("note", STRING),
        Column("sold", DATE),
    )
    for day in range(DAYS):
        data = {
            "item": rng.integers(0, ITEMS, SALES),
            "store": pa.array(
                [None if n == 0 else n for n in rng.integers(0, STORES, SALES).tolist()], pa.int64()
            ),
            "ticket": range(day * SALES, (day + 1) * SALES),
            "note": [f"note {n:03d}" for n in rng.integers(0, 300, SALES)],
            "sold": pa.array([day] * SALES, pa.int32()).cast(pa.date32()),
        }
        _write(root / "sales" / f"day={day}" / "0.parquet", data)
        _write(root / "bare" / f"{day}.parquet", data)
    keys = (Column("day", BIGINT),)
    partitions = [
        Partition(f"day={d}", (str(d),), f"file://{root}/sales/day={d}") for d in range(DAYS)
    ]
    _register(
        stack,
        CatalogTable(TableName("star", "sales"), sold, keys, f"file://{root}/sales"),
        partitions,
    )
    _register(stack, CatalogTable(TableName("star", "bare"), sold, (), f"file://{root}/bare"), [])
    time.sleep(0.1)  # files written within the clock's grain are not trusted
    for name in (*dimensions, "sales"):
        _index(stack, name)
    time.sleep(1.1)  # the planner looks for a newer generation once a second
    yield stack
    with MetastoreClient(stack.metastore_uri) as client:
        client.call("drop_database", "star", False, True)


def stats(stack: Stack, relation: str) -> dict[str | None, list[Any]]:
    """By column: size, distinct values, share of NULL, rows, low and high."""
    return {row[0]: row[1:] for row in stack.query(f"SHOW STATS FOR {relation}")}


def test_a_default_build_tells_the_optimiser_all_it_asks(star: Stack) -> None:
    rows = DAYS * SALES
    found = stats(star, "star.sales")
    assert found[None][3] == rows
    assert found["day"] == [None, DAYS, 0.0, None, "0", "39"]
    assert found["ticket"][1] == rows and found["ticket"][4:] == ["0", str(rows - 1)]
    assert found["item"][1] == pytest.approx(ITEMS, rel=0.1)
    assert found["store"][1] == STORES - 1
    assert found["store"][2] == pytest.approx(1 / STORES, rel=0.2)
    assert found["note"][:2] == [pytest.approx(8 * rows, rel=0.01), pytest.approx(300, rel=0.1)]
    assert found["sold"][1] == DAYS and found["sold"][4:] == ["1970-01-01", "1970-02-09"]


def test_rows_and_keys_follow_the_kept_partitions(star: Stack) -> None:
    found = stats(star, "(SELECT * FROM star.sales WHERE day IN (3, 5, 39))")
    assert found[None][3] == 3 * SALES
    assert found["day"][1:3] == [3, 0.0] and found["day"][4:] == ["3", "39"]
    assert found["ticket"][1] == 3 * SALES
    assert found["sold"][1] == 3


def test_a_star_join_has_estimates_and_builds_from_the_filtered_dimensions(star: Stack) -> None:
    plan = "\n".join(row[0] for row in star.query(f"EXPLAIN {STAR}"))
    assert "rows: ?" not in plan, plan
    # The probe side is the first child: the scan of the sales is the deepest, first one.
    scans = re.findall(r"(?:TableScan|ScanFilter\w*|ScanProject)\[table = bridge:star\.(\w+)", plan)
    assert scans[0] == "sales" and set(scans) == {"sales", "days", "items", "stores"}, plan
    assert "CrossJoin" not in plan
    # The most selective dimension joins first: the innermost build side.
    assert scans.index("days") < scans.index("stores"), plan


def test_statistics_of_the_metastore_serve_a_table_without_an_index(star: Stack) -> None:
    assert stats(star, "star.bare")[None][3] is None
    star.query("ANALYZE star.bare", catalog="hive")
    deadline = time.monotonic() + 60
    while (found := stats(star, "star.bare"))[None][3] is None:
        assert time.monotonic() < deadline
        time.sleep(1)
    assert found[None][3] == DAYS * SALES
    assert found["item"][1] == pytest.approx(ITEMS, rel=0.1)
    assert found["store"][2] == pytest.approx(1 / STORES, rel=0.2)
    assert found["note"][0] == pytest.approx(8 * DAYS * SALES, rel=0.1)


def test_the_index_is_believed_beside_the_metastore(star: Stack) -> None:
    before = stats(star, "star.sales")
    star.query("ANALYZE star.sales", catalog="hive")
    time.sleep(11)  # the planner asks the metastore again after ten seconds
    stats(star, "star.sales")
    time.sleep(1)
    after = stats(star, "star.sales")
    assert after[None] == before[None] and after["day"] == before["day"]
    for name in ("item", "store", "ticket", "note", "sold"):
        assert after[name][1] == pytest.approx(before[name][1], rel=0.1), name


def test_analyze_is_refused_with_the_command_to_run(star: Stack) -> None:
    with pytest.raises(
        Exception, match=r"ANALYZE is not supported.*skipbridge index build star\.sales"
    ):
        star.query("ANALYZE star.sales")
