"""The connector removes rows by the dynamic filter, however late it comes."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import trino

from bridge.table.model import Column
from bridge.types import parse_hive_type
from tests.engines.stack import Stack, register

_ROWS = 400_000
_KEYS = 1_000
_COLUMNS = ("k", "i", "payload")


@pytest.fixture(scope="module")
def wide(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """One file of many pages, whose keys no order knows."""
    random = np.random.default_rng(14)
    keys = random.integers(0, _KEYS, _ROWS)
    table = pa.table(
        {
            "k": pa.array(keys, pa.int64(), mask=random.random(_ROWS) < 0.1),
            "i": pa.array(keys, pa.int32()),
            "payload": pa.array(np.arange(_ROWS), pa.int64()),
        }
    )
    directory = tmp_path_factory.mktemp("late")
    pq.write_table(table, directory / "part.parquet", row_group_size=_ROWS)
    columns = tuple(
        Column(name, parse_hive_type(spelled))
        for name, spelled in zip(_COLUMNS, ("bigint", "int", "bigint"), strict=True)
    )
    register(stack, "late", directory, columns)
    return table


def _ran(stack: Stack, sql: str, distribution: str) -> tuple[list[Any], int]:
    """Rows, and how many rows all scans gave to other operators."""
    with trino.dbapi.connect(
        host="127.0.0.1",
        port=stack.trino_port,
        user="test",
        catalog="bridge",
        session_properties={
            "bridge.dynamic_filter_wait": "0s",
            "join_distribution_type": distribution,
        },
    ) as connection:
        cursor = connection.cursor()
        cursor.execute(sql)
        rows = [list(row) for row in cursor.fetchall()]
        request = urllib.request.Request(
            f"http://127.0.0.1:{stack.trino_port}/v1/query/{cursor.query_id}",
            headers={"X-Trino-User": "test"},
        )
        with urllib.request.urlopen(request) as answer:
            document = json.load(answer)
    operators = document["queryStats"]["operatorSummaries"]
    given = sum(o["outputPositions"] for o in operators if "Scan" in o["operatorType"])
    return rows, given


@pytest.mark.parametrize("column", ["k", "i"])
@pytest.mark.parametrize("distribution", ["BROADCAST", "PARTITIONED"])
def test_rows_are_removed_without_a_wait(
    stack: Stack, wide: pa.Table, column: str, distribution: str
) -> None:
    keys = sorted({7, 77, 700})
    # Grouping all ids takes longer than starting the splits of one file.
    build = (
        "SELECT CAST(max(id) % 1 + v AS BIGINT) AS key FROM laws.everything "
        f"CROSS JOIN (VALUES {', '.join(map(str, keys))}) AS t(v) GROUP BY v"
    )
    joined = f"laws.late l JOIN ({build}) AS b ON l.{column} = b.key"
    sql = f"SELECT count(*), sum(l.payload) FROM {joined}"
    rows, given = _ran(stack, sql, distribution)
    chosen = wide.filter(pc.is_in(wide[column].cast(pa.int64()), pa.array(keys)))
    assert rows == [[chosen.num_rows, pc.sum(chosen["payload"]).as_py()]]
    assert chosen.num_rows <= given < _ROWS // 2
