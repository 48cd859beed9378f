"""HiveServer2 as the other tests use it: writes, fetch tasks and Tez's local mode, one answer."""

from __future__ import annotations

import itertools

import pytest

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
