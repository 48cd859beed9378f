"""Conditions of the Python API, as SQL, against the engines whose dialects they are in.

Trino, Spark and Hive are asked for the truth of every condition on every row.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.errors import InvalidPredicate, UnsupportedType
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2
from tests.engines.stack import ask
from tests.tiers import examples, seed

pytestmark = pytest.mark.full
TEXTS = ["", " ", "a", "ab", "ab  ", "ab   ", "abc", "abcd", "abcde", "a_b", "a%", "b", "ba"]
PATTERNS = [*TEXTS, "ab%", "ab  %", "ab   %", "%", "a%", "abcd%", " %", "b%", "a ", "A"]
COLUMNS = ("c", "v", "s")
NAN, INF, DAY, T = math.nan, math.inf, 86_400_000_000, 1_704_164_645_678_000
DIALECTS = ("trino", "spark", "hive")
NUMBERS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "i": ("int", pa.int32(), [0, 1, -1, 44, 127, 128, 300, 70_000, None]),
    "d": (
        "decimal(10,2)",
        pa.decimal128(10, 2),
        [Decimal(text) for text in ("0", "1", "1.2", "1.25", "1.3", "-9.99", "300", "12345")],
    ),
    "x": ("double", pa.float64(), [0.0, 0.1, 1.25, 1.5, -2.5, 300.0, None]),
    "y": ("date", pa.date32(), [dt.date(2024, 1, 2), dt.date(1969, 12, 31), None]),
    "t": ("timestamp", pa.timestamp("us"), [1_704_164_645_678_000, 1_704_164_645_679_000, None]),
}
"""By column: its type, the file's, and values."""
CASTS = {
    "s": (*(f"{t}({n})" for t in ("varchar", "char") for n in (1, 2, 3, 5, 8)), "varchar", "char"),
    "i": ("tinyint", "smallint", "int", "bigint", "decimal(3,0)", "decimal(12,3)", "decimal"),
    "d": ("decimal(5,1)", "decimal(10,2)", "decimal(38,4)", "decimal(2,0)", "decimal", "int"),
    "x": ("float", "real", "double", "decimal(5,1)", "int"),
    "y": ("date", "timestamp", "varchar(4)"),
    "t": ("timestamp", "timestamp(3)", "timestamp(6)", "timestamp(0)", "date"),
}
"""By column: types that texts, numbers and the column are cast to."""
VALUES: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "b": ("boolean", pa.bool_(), [True, False, None]),
    "h": ("smallint", pa.int16(), [0, 1, -1, 300, 32_767, -32_768, None]),
    "i": ("int", pa.int32(), [0, 1, -1, 44, 16_777_217, 2**31 - 1, -(2**31), None]),
    "l": ("bigint", pa.int64(), [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), None]),
    "f": ("float", pa.float32(), [0.0, -0.0, 0.1, 1.5, 16_777_216.0, NAN, INF, -INF, None]),
    "x": ("double", pa.float64(), [0.0, -0.0, 0.1, 1.5, 2.0**53, NAN, INF, -INF, None]),
    "d": ("decimal(10,2)", pa.decimal128(10, 2), [*map(Decimal, ("0", "1.2", "-9.99", "1.5"))]),
    "e": ("decimal(38,4)", pa.decimal128(38, 4), [*map(Decimal, ("0", "0.1", "1" + "0" * 33))]),
    "y": ("date", pa.date32(), [dt.date(2024, 1, 2), dt.date(1969, 12, 31), None]),
    "t": ("timestamp", pa.timestamp("us"), [T, T + 1000, T + 999, T // DAY * DAY, -1000, None]),
    "c": ("char(4)", pa.string(), ["", "a", "ab", "abcd", "a_b", "1", None]),
    "v": ("varchar(6)", pa.string(), ["", "a", "ab ", "abcd", "a%", "1.5", "NaN", None]),
    "s": ("string", pa.string(), ["", "a", "ab ", "true", "1", "1.50", "2024-01-02", None]),
}
"""By column of the law of all types: its type, the file's, and values."""
WORDS = {
    "number": (
        *("0", "1", "-1", "44", "300", "40000", "3000000000", "9223372036854775807", "16777217"),
        *("0.1", "1.2", "1.20", "1.5", "-9.99", "1.255", "9007199254740993", "0.0", "-0.0"),
        *("1e0", "1.5e0", "-0e0", "1e-1", "9007199254740993e0", "CAST('NaN' AS double)"),
        *("CAST('NaN' AS real)", "CAST('NaN' AS float)", "CAST(0.1 AS real)", "1e400", "NULL"),
        *("CAST('Infinity' AS double)", "CAST('-Infinity' AS double)", "DECIMAL '1.50'", "'1'"),
        *("nan()", "infinity()", "1.5D", "0.1F", "1L", "1S", "1.5BD", "'abc'", "'1.5'", "TRUE"),
        *("CAST(1.5 AS decimal(5,1))", "CAST(44 AS tinyint)", "100000000000000000000.5"),
    ),
    "time": (
        *("DATE '2024-01-02'", "DATE '1969-12-31'", "'2024-01-02'", "'2024-1-2'", "'x'", "NULL"),
        *("TIMESTAMP '2024-01-02 03:04:05.678'", "TIMESTAMP '2024-01-02 03:04:05.678999'", "1"),
        *("TIMESTAMP '2024-01-02 00:00:00'", "TIMESTAMP '1969-12-31 23:59:59.999'", "TRUE"),
        *("'2024-01-02 03:04:05.678'", "'2024-01-02 03:04'", "TIMESTAMP '2024-01-02'", "DATE '1'"),
        *("CAST('2024-01-02' AS date)", "CAST('2024-01-02 03:04:05' AS timestamp)"),
        *("TIMESTAMP '2024-01-02 03:04:05.678 UTC'", "DATE '9999-12-31'", "DATE '0001-01-01'"),
    ),
    "text": (
        *("''", "'a'", "'ab'", "'ab '", "'ab   '", "'abcd'", "'abcde'", "'a%'", "'a_b'", "'true'"),
        *("'1'", "'1.5'", "1", "1.5", "1.5e0", "TRUE", "DATE '2024-01-02'", "NULL", "'NaN'"),
    ),
    "boolean": ("TRUE", "FALSE", "NULL", "'true'", "'t'", "1", "0"),
}
FAMILY = {
    **dict.fromkeys("hilfxde", "number"),
    **dict.fromkeys("yt", "time"),
    **dict.fromkeys("cvs", "text"),
    "b": "boolean",
}
SAID = {
    "s": TEXTS,
    "i": ["0", "1", "44", "300", "70000", "1.0", "12"],
    "d": ["1", "1.2", "1.25", "1.255", "1.30", "300", "12345", "-9.99"],
    "x": ["0.1", "1.25", "1.5", "300", "1e2"],
    "y": ["2024-01-02", "1969-12-31", "2024-1-2"],
    "t": ["2024-01-02 03:04:05.678", "2024-01-02 03:04:05.679", "2024-01-02"],
}


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


def leaf_of_any(rng: random.Random, dialect: str) -> str:
    """A comparison of a column of any type, most often with values of its family."""
    column = rng.choice([*VALUES])
    words = WORDS[FAMILY[column] if rng.random() < 0.9 else rng.choice([*WORDS])]
    word, no = rng.choice(words), rng.choice(["", "", "NOT "])
    match rng.randrange(12):
        case 0 | 1:
            return f"{column} {no}IN ({', '.join(rng.choices(words, k=rng.randrange(1, 4)))})"
        case 2:
            return f"{column} {no}BETWEEN {word} AND {rng.choice(words)}"
        case 3:
            if column in "cvs":
                return f"{column} {no}LIKE '{rng.choice(PATTERNS)}'"
            return f"{column} {no}LIKE {word}"
        case 4:
            return f"{column} IS {no}NULL"
        case 5 if dialect == "trino":
            return f"{column} IS {no}DISTINCT FROM {word}"
        case 5:
            return f"{column} <=> {word}"
        case 6:
            return f"b IS {no}{rng.choice(['TRUE', 'FALSE'])}" if rng.random() < 0.5 else "b"
        case 7:
            return f"{word} {rng.choice(OPS)} {column}"
    return f"{column} {rng.choice(OPS)} {word}"


def condition(
    rng: random.Random, dialect: str, depth: int = 2, draw: Callable[..., str] = leaf
) -> str:
    match rng.randrange(6) if depth else 5:
        case 0:
            return f"NOT ({condition(rng, dialect, depth - 1, draw)})"
        case 1 | 2:
            word = rng.choice(["AND", "OR"])
            sides = [condition(rng, dialect, depth - 1, draw) for _ in range(2)]
            return f"({sides[0]}) {word} ({sides[1]})"
    return draw(rng, dialect)


OPS = ["=", "<>", "<", "<=", ">", ">="]
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
            **{
                name: pa.array([values[n % len(values)] for n, _ in some], type)
                for name, (_, type, values) in NUMBERS.items()
            },
        }
        pq.write_table(pa.table(table), root / f"{number}.parquet")
    return root


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few rows in each of many files, so that an index skips some under most conditions."""
    root = tmp_path_factory.mktemp("values") / "t"
    root.mkdir()
    rng = random.Random(seed(36))
    for number in range(24):
        some = {
            name: pa.array(rng.choices(rng.sample(values, k=min(3, len(values))), k=3), type)
            for name, (_, type, values) in VALUES.items()
        }
        n = pa.array(range(3 * number, 3 * number + 3), pa.int32())
        pq.write_table(pa.table({"n": n, **some}), root / f"{number}.parquet")
    return root


@pytest.fixture(scope="module")
def engines(
    hiveserver2: RunningHiveServer2, stock_trino: int, root: Path, values: Path
) -> Iterator[dict[str, Ask]]:
    pytest.importorskip("pyspark")
    from bridge.runtime.spark_session import open_session

    texts = {
        name: (type,) for name, type in zip("cvs", ("char(4)", "varchar(6)", "string"), strict=True)
    }
    hiveserver2.query("CREATE DATABASE IF NOT EXISTS texts")
    spark = open_session("local[2]", name="skipbridge-tests")
    spark.sql("CREATE DATABASE texts")
    for name, place, types in (("t", root, {**texts, **NUMBERS}), ("v", values, VALUES)):
        columns = f"(n int, {', '.join(f'{c} {type[0]}' for c, type in types.items())})"
        hiveserver2.query(
            f"CREATE EXTERNAL TABLE texts.{name} {columns} STORED AS PARQUET "
            f"LOCATION 'file:{place}'"
        )
        spark.sql(f"CREATE TABLE texts.{name} {columns} USING PARQUET LOCATION 'file:{place}'")
    yield {
        "hive": hiveserver2.query,
        "trino": lambda sql: ask(stock_trino, sql.replace(" texts.", " hive.texts."), "hive"),
        "spark": lambda sql: [tuple(row) for row in spark.sql(sql).collect()],
    }
    for name in ("t", "v"):
        spark.sql(f"DROP TABLE texts.{name}")
        hiveserver2.query(f"DROP TABLE texts.{name}")
    spark.stop()


def cast(rng: random.Random) -> str:
    """A condition with a cast of a value, or of the column."""
    family = rng.choice([*CASTS, "s"])
    column = rng.choice(COLUMNS) if family == "s" else family
    type, text = rng.choice(CASTS[family]), rng.choice(SAID[family])
    op = rng.choice(["=", "=", "<>", "<", "<=", ">", ">="])
    said = text if family in ("i", "d", "x") and rng.random() < 0.5 else f"'{text}'"
    match rng.randrange(6):
        case 0:
            return f"CAST({column} AS {type}) {op} {said}"
        case 1:
            return f"{column} IN (CAST({said} AS {type}), CAST('1' AS {type}))"
        case 2 if family == "s":
            return f"{column} {rng.choice(['', 'NOT '])}LIKE CAST('{text}' AS {type})"
        case 3:
            return f"NOT ({column} {op} CAST({said} AS {type}))"
    return f"{column} {op} CAST({said} AS {type})"


def truths(ask: Ask, table: str, asked: list[str]) -> dict[str, list[int]]:
    """The rows for which each condition holds; without those that the engine refuses."""
    try:
        rows = ask(f"SELECT n, {', '.join(asked)} FROM {table}")
    except Exception:
        if len(asked) == 1:
            return {}
        half = len(asked) // 2
        return {**truths(ask, table, asked[:half]), **truths(ask, table, asked[half:])}
    return {
        where: sorted(row[0] for row in rows if row[place] is True)
        for place, where in enumerate(asked, 1)
    }


def disagreements(
    engine: Ask, uri: str, cache: Path, dialect: str, asked: list[str], table: str = "texts.t"
) -> tuple[list[Any], Counter[str]]:
    """Conditions that hold for other rows here, and how many were asked and refused here."""
    found: dict[str, list[int]] = {}
    with bridge.connect(metastore_uri=uri, planner_cache_dir=str(cache)) as session:
        for where in asked:
            with suppress(InvalidPredicate):
                scan = session.table(table).scan(where, semantics=dialect)
                found[where] = sorted(scan.to_arrow()["n"].to_pylist())
    known: dict[str, list[int]] = {}
    for first in range(0, len(found), 50):
        known |= truths(engine, table, list(found)[first : first + 50])
    wrong = [
        (where, sorted(set(found[where]) ^ set(wanted))[:5])
        for where, wanted in known.items()
        if found[where] != wanted
    ]
    return wrong, Counter(asked=len(known), refused=len(asked) - len(found))


@pytest.mark.rule("7")
@pytest.mark.rule("25")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_condition_holds_where_the_engine_says_so(
    engines: dict[str, Ask], hiveserver2: RunningHiveServer2, dialect: str, tmp_path: Path
) -> None:
    rng = random.Random(seed(34))
    every = [f"c {word}LIKE '{p}'" for word in ("", "NOT ") for p in PATTERNS]
    asked = every + [condition(rng, dialect) for _ in range(examples(20, 60, 600))]
    uri = hiveserver2.metastore.uri
    wrong, done = disagreements(engines[dialect], uri, tmp_path, dialect, asked)
    assert not wrong, wrong[:20]
    assert done["asked"] > 2 * done["refused"], done


@pytest.mark.rule("1")
@pytest.mark.rule("10")
@pytest.mark.rule("26")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_condition_on_any_type_holds_where_the_engine_says_so(
    engines: dict[str, Ask], hiveserver2: RunningHiveServer2, dialect: str, tmp_path: Path
) -> None:
    """Under an index, so that neither a file nor a row too many is left out."""
    rng = random.Random(seed(37))
    asked = [condition(rng, dialect, 0, leaf_of_any) for _ in range(examples(20, 300, 6000))]
    asked += [condition(rng, dialect, 2, leaf_of_any) for _ in range(examples(10, 60, 1000))]
    uri = hiveserver2.metastore.uri
    with bridge.connect(metastore_uri=uri, planner_cache_dir=str(tmp_path)) as session:
        session.table("texts.v").index.build(nan="scan", bloom=["i", "x", "s"], values=["v", "d"])
        assert session.table("texts.v").scan("i = 44").files().num_rows < 24
    wrong, done = disagreements(engines[dialect], uri, tmp_path, dialect, asked, "texts.v")
    assert not wrong, "\n".join(map(str, wrong[:40]))
    assert done["asked"] > done["refused"], done


@pytest.mark.rule("24")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_cast_with_parameters_is_the_engines_or_is_refused(
    engines: dict[str, Ask], hiveserver2: RunningHiveServer2, dialect: str, tmp_path: Path
) -> None:
    rng = random.Random(seed(35))
    fixed = [
        f"{c} = CAST('{t}' AS {to})" for c in COLUMNS for t in ("abcd", "ab") for to in CASTS["s"]
    ]
    if dialect == "trino":
        fixed += [f"{c} = CHAR '{t}'" for c in COLUMNS for t in ("ab", "ab ", "abcd")]
    casts = [cast(rng) for _ in range(examples(100, 200, 2000))]
    uri = hiveserver2.metastore.uri
    wrong, done = disagreements(engines[dialect], uri, tmp_path, dialect, fixed + casts)
    assert not wrong, "\n".join(map(str, wrong[:40]))
    assert done["asked"] > 20, done


def test_a_key_that_is_longer_than_its_type(
    engines: dict[str, Ask], hiveserver2: RunningHiveServer2, tmp_path: Path
) -> None:
    """Hive cuts ``k=abcdef`` of a varchar(3), Spark does not: its rows are refused by name."""
    from pyspark.sql import SparkSession

    names = ("abc", "abcdef", "zz")
    for n, text in enumerate(names):
        (tmp_path / f"k={text}").mkdir()
        pq.write_table(pa.table({"n": pa.array([n], pa.int32())}), tmp_path / f"k={text}" / "f")
    spark = SparkSession.getActiveSession()
    assert spark is not None
    spark.sql(
        "CREATE TABLE keyed (n int, k varchar(3)) USING PARQUET PARTITIONED BY (k) "
        f"LOCATION 'file:{tmp_path}'"
    )
    spark.sql("ALTER TABLE keyed RECOVER PARTITIONS")
    hiveserver2.query(
        "CREATE EXTERNAL TABLE texts.keyed (n int) PARTITIONED BY (k varchar(3)) "
        f"STORED AS PARQUET LOCATION 'file:{tmp_path}'"
    )
    name = TableName("texts", "keyed")
    with MetastoreClient(hiveserver2.metastore.uri) as client:
        table = client.get_table(name.schema, name.table)
        parts = []
        for text in names:
            part = records.Partition(values=[text], dbName=name.schema, tableName=name.table)
            part.sd = copy(table.sd)
            part.sd.location = f"file://{tmp_path}/k={text}"
            parts.append(part)
        client.add_partitions(name.schema, name.table, parts)
    shown = {"hive": [(0, "abc"), (1, "abc"), (2, "zz")], "spark": [*enumerate(names)]}
    tables = {"hive": "texts.keyed", "spark": "keyed"}
    with bridge.connect(metastore_uri=hiveserver2.metastore.uri) as session:
        for dialect, table in tables.items():
            assert sorted(engines[dialect](f"SELECT n, k FROM {table}")) == shown[dialect]
            for where in ("k = 'abc'", "k = 'abcdef'", "k > 'abc'", "k LIKE 'abcd%'", "n = 1"):
                # That partition may match under some engine, so it is never left out.
                scan = session.table(str(name)).scan(where, semantics=dialect)
                with pytest.raises(UnsupportedType, match="k=abcdef"):
                    scan.to_arrow()
    hiveserver2.query("DROP TABLE texts.keyed")
    spark.sql("DROP TABLE keyed")
