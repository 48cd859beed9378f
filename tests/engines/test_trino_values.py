"""Values of which Trino has two opinions, and functions that change values, in a real Trino.

The oracle is the same query in a session that prunes nothing.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, DOUBLE, FLOAT, STRING, TIMESTAMP
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.table.model import CatalogTable, Column, TableName
from tests.engines.stack import Stack

pytestmark = pytest.mark.full

OFF = {"pruning_enabled": "false", "metadata_answers_enabled": "false"}
NAN = float("nan")
TEN = dt.datetime(2024, 5, 1, 10)
FILES = (
    ([0.0, 0.0], [dt.timedelta(microseconds=-300), dt.timedelta()], ["at C:\\dir\\x", "a\\b"]),
    ([-0.0, -0.0], [dt.timedelta(microseconds=123_456)] * 2, ["a_b", "100%"]),
    ([0.0, -0.0], [dt.timedelta(milliseconds=499)] * 2, ["x", "y"]),
    ([NAN, NAN], [dt.timedelta(microseconds=500_000)] * 2, ["x\ny", "\U0001f600"]),
    ([1.5, 1.5], [dt.timedelta(days=1)] * 2, ["", "\\"]),
    ([5.0, 7.0], [dt.timedelta(days=2)] * 2, ["C:\\dir", "b"]),
)


@pytest.fixture(scope="module")
def table(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory: Path = tmp_path_factory.mktemp("values")
    past = time.time() - 60
    for number, (reals, moments, texts) in enumerate(FILES):
        columns = {
            "id": pa.array([number * 10, number * 10 + 1]),
            "r": pa.array(reals, pa.float32()),
            "x": pa.array(reals, pa.float64()),
            "ts": pa.array([TEN + m for m in moments], pa.timestamp("us")),
            "c": pa.array(texts),
        }
        path = directory / f"f{number}.parquet"
        pq.write_table(pa.table(columns), path, use_dictionary=False)
        os.utime(path, (past, past))
    columns_of = (
        Column("id", BIGINT),
        Column("r", FLOAT),
        Column("x", DOUBLE),
        Column("ts", TIMESTAMP),
        Column("c", STRING),
    )
    made = CatalogTable(TableName("laws", "awkward"), columns_of, (), f"file://{directory}")
    with MetastoreClient(stack.metastore_uri) as client:
        register_table(client, made.name, made, [])
    index_table(
        Config({"metastore.uri": Setting(stack.metastore_uri, "test")}),
        "laws.awkward",
        local=True,
        asked=RequestedIndexes((("values", "c"),)),
        progress=lambda done, total: None,
        say=lambda text: None,
    )
    return "laws.awkward"


def same(stack: Stack, queries: list[str]) -> None:
    """One statement for all, each with its number: scans are planned one by one all the same."""
    parts = (sql.replace("SELECT ", f"SELECT {i}, ", 1) for i, sql in enumerate(queries))
    whole = " UNION ALL ".join(parts)
    found = sorted(stack.query(whole))
    expected = sorted(stack.query(whole, OFF))
    for number, sql in enumerate(queries):
        assert _of(found, number) == _of(expected, number), sql


def _of(rows: list[list[int]], number: int) -> list[int]:
    return [row[1] for row in rows if row[0] == number]


REALS = (
    "{c} NOT IN (5, {t}'-0.0')",
    "{c} NOT IN ({t}'0.0', {t}'5')",
    "{c} IN ({t}'-0.0', {t}'5')",
    "{c} IN (nan(), {t}'5', {t}'6')",
    "{c} NOT IN (nan(), {t}'5', {t}'6')",
    "{c} <> {t}'-0.0'",
    "{c} = {t}'-0.0' OR id > 100",
    "{c} IS DISTINCT FROM {t}'-0.0' OR id < -1",
    "NULLIF({c}, {t}'-0.0') IS NULL OR id < -1",
    "{c} BETWEEN {t}'-0.0' AND {t}'0.0'",
    "greatest({c}, {t}'-0.0') = {t}'0.0'",
    "{c} NOT IN ({t}'0', {t}'1', 2, 3, 4, 5, 6, 7, 8, 9)",
)


@pytest.mark.parametrize(("column", "type"), [("r", "REAL "), ("x", "DOUBLE ")])
def test_26_zeros_and_nan_are_compared_as_without_pruning(
    stack: Stack, table: str, column: str, type: str
) -> None:
    queries = []
    for text in REALS:
        where = text.format(c=column, t=type).replace("nan()", f"CAST(nan() AS {type})")
        queries.append(f"SELECT id FROM {table} WHERE {where}")
    for zero in ("0.0", "-0.0"):
        joined = f"{table} t JOIN (VALUES {type}'{zero}') v(k) ON t.{column} = v.k"
        queries.append(f"SELECT id FROM {joined}")
        queries.append(f"SELECT count(*) FROM {table} WHERE {column} = {type}'{zero}'")
    same(stack, queries)
    assert stack.kept_files(f"SELECT id FROM {table} WHERE {column} > {type}'3'") < len(FILES)


CASTS = (
    "CAST(ts AS TIMESTAMP(3)) = TIMESTAMP '2024-05-01 10:00:00.123'",
    "CAST(ts AS TIMESTAMP(3)) < TIMESTAMP '2024-05-01 10:00:00.000'",
    "CAST(ts AS TIMESTAMP(0)) = TIMESTAMP '2024-05-01 10:00:00'",
    "CAST(ts AS TIMESTAMP(0)) > TIMESTAMP '2024-05-01 10:00:00'",
    "CAST(ts AS TIMESTAMP(3)) IN (TIMESTAMP '2024-05-01 10:00:00.123', TIMESTAMP '2000-01-01')",
    "CAST(ts AS TIMESTAMP(9)) < TIMESTAMP '2024-05-01 10:00:00.000000000'",
    "CAST(ts AS TIMESTAMP(0)) = TIMESTAMP '2024-05-01 10:00:01' OR id > 1000",
    "CAST(ts AS DATE) = DATE '2024-05-01'",
    "CAST(x AS REAL) < REAL '1.5'",
    "CAST(c AS VARCHAR(1)) = 'a'",
)


def test_24_casts_that_round_or_cut_lose_no_row(stack: Stack, table: str) -> None:
    kept = [f"SELECT id FROM {table} WHERE {where}" for where in CASTS]
    counted = [f"SELECT count(*) FROM {table} WHERE NOT ({where})" for where in CASTS]
    same(stack, kept + counted)


PATTERNS = ("%C:\\dir%", "%\\b", "C:\\%", "%\\", "\\", "a!_b", "100!%", "x_y", "_", "%\n%", "", "%")


def test_25_patterns_with_a_backslash_lose_no_row(stack: Stack, table: str) -> None:
    same(
        stack,
        [
            f"SELECT id FROM {table} WHERE c {word} '{pattern}'"
            + (" ESCAPE '!'" if "!" in pattern else "")
            for pattern in PATTERNS
            for word in ("LIKE", "NOT LIKE")
        ],
    )
    found = stack.query(f"SELECT id FROM {table} WHERE c LIKE '%C:\\dir%'")
    assert sorted(found) == [[0], [50]]
    assert stack.kept_files(f"SELECT id FROM {table} WHERE c LIKE '%C:\\dir%'") == 2
