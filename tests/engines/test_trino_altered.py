"""Tables that change between the analysis of a query and its splits: rows as stock Trino's, or an
error; and files are skipped before a change and once it has settled.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trino
from trino.exceptions import TrinoExternalError
from trino.transaction import IsolationLevel

from bridge.kernel.types import BIGINT, parse_hive_type
from bridge.metastore.client import MetastoreClient
from bridge.table.model import Column
from tests.engines.stack import Stack, register
from tests.tiers import examples, seed

pytestmark = [pytest.mark.rule("41"), pytest.mark.full]
CENTS = [Decimal(text) for text in ("1.25", "7.77", "0.30", "99.99", "1.31", "2.00")]
WHOLE = [1, 300, 4294967301, 70_000, 5, 127]
WORDS = ["abc", "zzz", "ab", "b", "a", "c"]
# Type, what files hold, literals as the query writes them, and types that the metastore accepts.
KINDS: tuple[tuple[str, pa.DataType, list[Any], str, tuple[str, ...]], ...] = (
    (
        "decimal(10,2)",
        pa.decimal128(10, 2),
        CENTS,
        "DECIMAL '{}'",
        ("decimal(5,1)", "decimal(12,4)"),
    ),
    ("bigint", pa.int64(), WHOLE, "BIGINT '{}'", ("string", "double", "decimal(20,0)")),
    ("string", pa.string(), WORDS, "'{}'", ("varchar(2)", "char(2)")),
)


def alter(stack: Stack, name: str, type: str, again: bool = False) -> None:
    """Changes the type of the second column as another engine does, until planners see it.

    Args:
        again: drops the table and creates it with the type; else by ALTER.
    """
    with MetastoreClient(stack.metastore_uri) as client:
        table = client.get_table("laws", name)
        table.sd.cols[1].type = type
        if again:
            client.drop_table("laws", name)
            client.create_table(table)
        else:
            client.alter_table("laws", name, table)
    time.sleep(1.2)  # a definition is held for a second


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_transaction_that_analysed_a_table_before_it_changed(
    stack: Stack, tmp_path: Path, kind: int
) -> None:
    """The transaction keeps the columns that it has seen; each of its statements plans anew."""
    type, stored, values, literal, others = KINDS[kind]
    rng = random.Random(seed(kind))
    name = f"altered{kind}"
    for i, value in enumerate(values):
        rows = pa.table({"k": pa.array([i], pa.int64()), "c": pa.array([value], stored)})
        pq.write_table(rows, tmp_path / f"f{i}.parquet")
    register(stack, name, tmp_path, (Column("k", BIGINT), Column("c", parse_hive_type(type))))
    counts: Counter[str] = Counter()
    for _ in range(examples(4, 4, 20)):
        chosen = rng.randrange(len(values))
        sql = f"SELECT k FROM laws.{name} WHERE c = {literal.format(values[chosen])}"
        assert stack.query(sql) == stack.query(sql, catalog="hive") == [[chosen]]
        assert stack.kept_files(sql) < len(values)
        with trino.dbapi.connect(
            host="127.0.0.1",
            port=stack.trino_port,
            user="test",
            catalog="bridge",
            isolation_level=IsolationLevel.READ_COMMITTED,
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            assert cursor.fetchall() == [[chosen]]
            if rng.random() < 0.75:
                alter(stack, name, rng.choice(others), rng.random() < 0.5)
            try:
                cursor.execute(sql)
                rows = cursor.fetchall()
            except TrinoExternalError as error:
                assert "TABLE_CHANGED" in str(error), error
                counts["refused"] += 1
                with suppress(Exception):
                    connection.rollback()
            else:
                assert rows == [[chosen]], sql
                counts["answered"] += 1
        alter(stack, name, type, True)
    assert counts["refused"], counts


def test_files_are_skipped_under_each_type_that_has_settled(stack: Stack, tmp_path: Path) -> None:
    for i, value in enumerate(WORDS):
        pq.write_table(pa.table({"k": [i], "c": [value]}), tmp_path / f"f{i}.parquet")
    columns = (Column("k", BIGINT), Column("c", parse_hive_type("string")))
    register(stack, "settled", tmp_path, columns)
    for type in ("string", "varchar(40)", "string"):
        alter(stack, "settled", type)
        for word in ("zzz", "ab"):
            sql = f"SELECT k FROM laws.settled WHERE c = '{word}'"
            assert stack.query(sql) == [[WORDS.index(word)]]
            assert stack.kept_files(sql) == 1, type
