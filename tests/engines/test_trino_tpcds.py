"""TPC-DS in Trino: our connector's rows beside those of the stock hive connector.

Both read the same tables of a hundredth of SF1, written by Trino; the three sales tables have a
partition for each day of sale, of every fifth day. Ten queries, whose tables alone are made;
``--tier=nightly`` asks all.
"""

from __future__ import annotations

import os
import re
import time

import pytest

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from tests.engines.conftest import RunningMetastore
from tests.engines.stack import Stack
from tests.support.tpc import SALES, TABLES, by_date, difference, in_schema, texts
from tests.tiers import nightly

pytestmark = pytest.mark.full

_TEN = ("q03", "q34", "q41", "q43", "q52", "q55", "q77", "q79", "q81", "q89")
_SCHEMA = "tpcds"
_SOURCE = "tpcds.tiny"
_QUERIES = [f"q{n:02}" for n in range(1, 100)] if nightly() else _TEN


@pytest.fixture(scope="module")
def asked(stack: Stack, metastore: RunningMetastore) -> Stack:
    """The stack with the tables of all queries that are asked."""
    words = set(re.findall(r"\w+", " ".join(texts("tpcds")[query] for query in _QUERIES)))
    stack.query(f"CREATE SCHEMA hive.{_SCHEMA}")
    tables = [t for t in TABLES["tpcds"] if t in words]
    for table in tables:
        _write(stack, table)
    past = time.time() - 60
    for file in (metastore.warehouse / f"{_SCHEMA}.db").rglob("*"):
        if file.is_file():
            os.utime(file, (past, past))
    config = Config({"metastore.uri": Setting(metastore.uri, "test")})
    for table in tables:
        report = index_table(
            config,
            f"{_SCHEMA}.{table}",
            local=True,
            progress=lambda done, total: None,
            say=lambda text: None,
        )
        assert report["files"] and not report["failed"]
    return stack


def _write(stack: Stack, table: str) -> None:
    key, select = "", f"SELECT * FROM {_SOURCE}.{table}"
    if table in SALES:
        columns = [row[0] for row in stack.query(f"SHOW COLUMNS FROM {_SOURCE}.{table}")]
        key, select = by_date(table, _SOURCE, columns)
        select += f" WHERE {key} % 5 = 0 OR {key} IS NULL"
    partitioned = f", partitioned_by = ARRAY['{key}']" if key else ""
    stack.query(
        f"CREATE TABLE hive.{_SCHEMA}.{table} WITH (format = 'PARQUET'{partitioned}) AS {select}",
        {"collect_column_statistics_on_write": "false"},
        "hive",
    )


@pytest.mark.parametrize("query", _QUERIES)
def test_rows_are_the_stock_connectors(asked: Stack, query: str) -> None:
    text = texts("tpcds")[query]
    try:
        stock = asked.query(in_schema(text, "hive", _SCHEMA), catalog="hive")
    except Exception as error:
        # Some texts ask for what this version of Trino refuses.
        if getattr(error, "error_type", "") != "USER_ERROR":
            raise
        pytest.skip(f"Trino refuses it: {error}")
    assert not difference(asked.query(in_schema(text, "bridge", _SCHEMA)), stock)
