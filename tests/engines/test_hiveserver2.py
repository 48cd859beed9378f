"""HiveServer2 as the other tests use it: writes, fetch tasks and Tez's local mode, one answer."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from bridge.metastore.catalog import HiveCatalog
from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2

FETCH = {"hive.fetch.task.conversion": "more"}
TEZ = {"hive.fetch.task.conversion": "none"}


@pytest.fixture(scope="module")
def sales(hiveserver2: RunningHiveServer2) -> str:
    hive = hiveserver2
    hive.query("CREATE DATABASE first_steps")
    hive.query(
        "CREATE EXTERNAL TABLE first_steps.sales (k int, v string) PARTITIONED BY (p int) "
        "STORED AS PARQUET"
    )
    values = ", ".join(f"({k}, 'v{k}', {k % 3})" for k in range(30))
    hive.query(f"INSERT INTO first_steps.sales PARTITION (p) VALUES {values}")
    return "first_steps.sales"


def test_fetch_and_tez_agree(hiveserver2: RunningHiveServer2, sales: str) -> None:
    conditions = ["k < 5", "p = 1 AND k > 20", "v = 'v7' OR p = 9"]
    for condition, settings in itertools.product(conditions, (FETCH, TEZ)):
        rows = hiveserver2.query(f"SELECT k FROM {sales} WHERE {condition}", settings)
        expected = {
            "k < 5": {0, 1, 2, 3, 4},
            "p = 1 AND k > 20": {22, 25, 28},
            "v = 'v7' OR p = 9": {7},
        }[condition]
        assert {k for (k,) in rows} == expected and len(rows) == len(expected)


def test_aggregation_and_join_run_in_tez(hiveserver2: RunningHiveServer2, sales: str) -> None:
    counted = f"SELECT p, count(*), max(v) FROM {sales} GROUP BY p ORDER BY p"
    assert hiveserver2.query(counted) == [(0, 10, "v9"), (1, 10, "v7"), (2, 10, "v8")]
    joined = f"SELECT count(*) FROM {sales} a JOIN {sales} b ON a.k = b.k AND a.p = b.p"
    assert hiveserver2.query(joined) == [(30,)]


def test_the_planner_reads_what_analyze_leaves(
    hiveserver2: RunningHiveServer2, sales: str, tmp_path: Path
) -> None:
    hive = hiveserver2
    hive.query(
        "CREATE EXTERNAL TABLE first_steps.typed (i int, d decimal(7,2), w date, s string, "
        f"b boolean, f double) STORED AS PARQUET LOCATION '{(tmp_path / 'typed').as_uri()}'"
    )
    rows = ", ".join(
        f"({n % 7}, {n / 4}, DATE '2020-01-{n + 1:02d}', 'v{n % 3}', {n % 2 == 0}, {n}.5)"
        for n in range(20)
    )
    hive.query(f"INSERT INTO first_steps.typed VALUES {rows}, (NULL, NULL, NULL, NULL, NULL, NULL)")
    hive.query("ANALYZE TABLE first_steps.typed COMPUTE STATISTICS FOR COLUMNS")
    hive.query(f"ANALYZE TABLE {sales} PARTITION (p) COMPUTE STATISTICS FOR COLUMNS")
    with HiveCatalog(hive.metastore.client()) as catalog:
        found = catalog.statistics(catalog.table(TableName("first_steps", "typed")), [])
        assert found.rows == 21 and found.whole
        known = {name: (c.distinct, c.nulls, c.low, c.high) for name, c in found.columns.items()}
        assert known == {
            "i": (7, 1, 0, 6),
            "d": (20, 1, 0, 4.75),
            "w": (20, 1, 18262, 18281),
            "s": (3, 1, None, None),
            "b": (2, 1, None, None),
            "f": (20, 1, 0.5, 19.5),
        }
        assert found.columns["s"].length == pytest.approx(2, rel=0.1)
        table = catalog.table(TableName("first_steps", "sales"))
        some = catalog.statistics(table, catalog.partition_names(table))
        assert some.rows is None and not some.whole
        k = some.columns["k"]
        assert k.distinct is not None and 10 <= k.distinct <= 30 and (k.low, k.high) == (0, 29)
        assert catalog.statistics(table, []).columns == {}
