"""Conditions of the Python API on text, as SQL, against the engines whose dialects they are in.

Trino, Spark and Hive are asked for the truth of every condition on every row.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.errors import InvalidPredicate
from tests.engines.conftest import RunningHiveServer2
from tests.engines.stack import ask
from tests.tiers import examples, seed

pytestmark = pytest.mark.full
TEXTS = ["", " ", "a", "ab", "ab  ", "ab   ", "abc", "abcd", "abcde", "a_b", "a%", "b", "ba"]
PATTERNS = [*TEXTS, "ab%", "ab  %", "ab   %", "%", "a%", "abcd%", " %", "b%", "a ", "A"]
COLUMNS = ("c", "v", "s")
DIALECTS = ("trino", "spark", "hive")


def leaf(rng: random.Random, dialect: str) -> str:
    column, text = rng.choice(COLUMNS), rng.choice(TEXTS)
    match rng.randrange(7):
        case 0 | 1:
            return f"{column} {rng.choice(['', 'NOT '])}LIKE '{rng.choice(PATTERNS)}'"
        case 2:
            return f"{column} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} '{text}'"
        case 3:
            listed = ", ".join(f"'{t}'" for t in rng.sample(TEXTS, 3))
            return f"{column} {rng.choice(['', 'NOT '])}IN ({listed})"
        case 4:
            return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
        case 5:
            if dialect == "trino":
                return f"{column} IS {rng.choice(['', 'NOT '])}DISTINCT FROM '{text}'"
            return f"{column} <=> '{text}'"
    return f"{column} BETWEEN '{text}' AND '{rng.choice(TEXTS)}'"


def condition(rng: random.Random, dialect: str, depth: int = 2) -> str:
    match rng.randrange(6) if depth else 5:
        case 0:
            return f"NOT ({condition(rng, dialect, depth - 1)})"
        case 1 | 2:
            word = rng.choice(["AND", "OR"])
            sides = [condition(rng, dialect, depth - 1) for _ in range(2)]
            return f"({sides[0]}) {word} ({sides[1]})"
    return leaf(rng, dialect)


Ask = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("texts") / "t"
    root.mkdir()
    values = [*TEXTS, None]
    rows = [(c, v, s) for c in values for v in values[::2] for s in values[1::3]]
    for number in range(2):
        some = list(enumerate(rows))[number::2]
        table = {
            "n": pa.array([n for n, _ in some], pa.int32()),
            # Texts that do not fit are cut, by each engine in its own way.
            "c": pa.array([None if c is None else c[:4] for _, (c, _, _) in some]),
            "v": pa.array([v for _, (_, v, _) in some]),
            "s": pa.array([s for _, (_, _, s) in some]),
        }
        pq.write_table(pa.table(table), root / f"{number}.parquet")
    return root


@pytest.fixture(scope="module")
def engines(
    hiveserver2: RunningHiveServer2, stock_trino: int, root: Path
) -> Iterator[dict[str, Ask]]:
    pytest.importorskip("pyspark")
    from bridge.spark.session import open_session

    columns = "(n int, c char(4), v varchar(6), s string)"
    hiveserver2.query("CREATE DATABASE IF NOT EXISTS texts")
    hiveserver2.query(
        f"CREATE EXTERNAL TABLE texts.t {columns} STORED AS PARQUET LOCATION 'file:{root}'"
    )
    spark = open_session("local[2]", name="skipbridge-tests")
    spark.sql(f"CREATE TABLE t {columns} USING PARQUET LOCATION 'file:{root}'")
    yield {
        "hive": lambda sql: hiveserver2.query(sql.format(table="texts.t")),
        "trino": lambda sql: ask(stock_trino, sql.format(table="hive.texts.t"), "hive"),
        "spark": lambda sql: [tuple(row) for row in spark.sql(sql.format(table="t")).collect()],
    }
    spark.stop()
    hiveserver2.query("DROP TABLE texts.t")


@pytest.mark.rule("7")
@pytest.mark.rule("25")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_condition_holds_where_the_engine_says_so(
    engines: dict[str, Ask], hiveserver2: RunningHiveServer2, dialect: str, tmp_path: Path
) -> None:
    rng = random.Random(seed(34))
    every = [f"c {word}LIKE '{p}'" for word in ("", "NOT ") for p in PATTERNS]
    asked = every + [condition(rng, dialect) for _ in range(examples(20, 60, 600))]
    wrong, done = [], Counter[str]()
    uri = hiveserver2.metastore.uri
    with bridge.connect(metastore_uri=uri, planner_cache_dir=str(tmp_path)) as session:
        for first in range(0, len(asked), 50):
            some = asked[first : first + 50]
            truths = engines[dialect](f"SELECT n, {', '.join(some)} FROM {{table}}")
            for place, where in enumerate(some, 1):
                wanted = sorted(row[0] for row in truths if row[place] is True)
                try:
                    found = session.table("texts.t").scan(where, semantics=dialect)
                    rows = sorted(found.to_arrow()["n"].to_pylist())
                except InvalidPredicate:
                    done["refused"] += 1
                    continue
                done["asked"] += 1
                if rows != wanted:
                    wrong.append((where, sorted(set(rows) ^ set(wanted))[:5]))
    assert not wrong, wrong[:20]
    assert done["asked"] > 2 * done["refused"], done
