"""SequenceFile and RCFile in Trino: tables that its own hive connector wrote."""

from __future__ import annotations

import pytest

from tests.engines.stack import Stack

SCHEMA = "stored_rows"
ROWS = (
    "SELECT k, IF(k % 7 = 0, NULL, k * 3) i, k % 2 = 0 b, CAST(k AS double) / 3 x, "
    "CAST(k AS decimal(12,2)) m, IF(k % 5 = 0, NULL, 'text ' || CAST(k AS varchar)) s, "
    "DATE '2020-01-01' + k * INTERVAL '1' DAY d, "
    "TIMESTAMP '2020-01-01 00:00:00.000000' + k * INTERVAL '1' HOUR t, ARRAY[k, NULL] l, "
    "MAP(ARRAY['a'], ARRAY[k]) mp FROM UNNEST(sequence(1, 5000)) AS u(k)"
)


@pytest.fixture(scope="module", autouse=True)
def schema(stack: Stack) -> None:
    stack.query(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}", catalog="hive")


@pytest.mark.parametrize("format", ["SEQUENCEFILE", "RCTEXT", "RCBINARY"])
@pytest.mark.parametrize("codec", ["NONE", "SNAPPY", "GZIP"])
def test_rows_are_those_of_the_hive_connector(stack: Stack, format: str, codec: str) -> None:
    table = f"{SCHEMA}.{format}_{codec}".lower()
    stack.query(
        f"CREATE TABLE {table} WITH (format = '{format}') AS {ROWS}",
        {"compression_codec": codec},
        catalog="hive",
    )
    for sql in (
        f"SELECT * FROM {table} ORDER BY k",
        f"SELECT count(*) FROM {table}",
        f"SELECT s, l FROM {table} WHERE k BETWEEN 4000 AND 4010 ORDER BY k",
        f"SELECT count(*), max(d) FROM {table} WHERE i IS NULL",
    ):
        assert stack.query(sql) == stack.query(sql, catalog="hive"), sql
