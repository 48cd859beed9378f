"""Real HiveServer2 with the hooks: every shape of predicate gives what it gives without them, and
those that can leave files out do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2
from tests.engines.everything import CASES, Case, Everything, write_everything
from tests.engines.hive_sales import write_sales
from tests.engines.hive_stack import (
    FETCH,
    TEZ,
    HookedHive,
    age,
    hooked_hive,
    register,
)

SALES = TableName("shop", "sales")
EVERYTHING = TableName("laws", "everything")


@pytest.fixture(scope="module")
def hive(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HookedHive]:
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache")) as (running, _):
        for schema in (SALES.schema, EVERYTHING.schema):
            running.forget(schema)
        yield running


@pytest.fixture(scope="module")
def sales(hive: HookedHive, tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("sales") / "table"
    table, partitions = write_sales(root, SALES)
    age(root)
    register(hive.metastore_uri, SALES, table, partitions)
    hive.build_index(SALES)
    return str(SALES)


@pytest.fixture(scope="module")
def everything(hive: HookedHive, tmp_path_factory: pytest.TempPathFactory) -> Everything:
    root = tmp_path_factory.mktemp("everything-of-hive") / "table"
    made = write_everything(root, EVERYTHING)
    for empty in root.rglob("empty.parquet"):  # a listing of Hive's counts them
        empty.unlink()
    age(root)
    register(hive.metastore_uri, EVERYTHING, made.table, made.partitions)
    hive.build_index(EVERYTHING)
    return made


# A condition, and the files that hold a matching row or may, at most, as far as bounds can tell; 12
# where they cannot.
SHAPES: tuple[tuple[str, int], ...] = (
    ("k = 77", 1),
    ("k <> 77", 12),
    ("k < 25", 2),
    ("k <= 20", 2),
    ("k > 199", 2),
    ("k >= 220", 1),
    ("77 = k", 1),
    ("230 < k", 1),
    ("k BETWEEN 30 AND 45", 2),
    ("k NOT BETWEEN 20 AND 239", 1),
    ("NOT (k BETWEEN 20 AND 219)", 2),
    ("k IN (1, 2, 230)", 2),
    ("k NOT IN (1, 2)", 12),
    ("NOT (k < 230)", 1),
    ("NOT (k >= 10 AND k <= 235)", 2),
    ("k = 5 OR k = 235", 2),
    ("(k > 10 AND k < 15) OR (k > 100 AND s LIKE 'f%')", 2),
    ("k = 5 OR length(s) = 3", 12),
    ("k = 5 AND length(s) = 5", 1),
    ("k > 100 AND k < 50", 0),
    ("k + 1 = 78", 12),
    ("k = 5.5", 12),  # a contradiction of the planner names no file
    ("k > 234.5", 1),
    ("n = CAST(770 AS double)", 1),
    ("k < CAST(7.5 AS float)", 12),
    ("CAST(k AS decimal(20,0)) = 77", 1),
    ("CAST(k AS string) = '77'", 12),
    ("CAST(n AS bigint) > 2300", 1),
    ("n IS NULL", 1),
    ("n IS NOT NULL AND k < 119", 5),
    ("n <=> 770", 1),
    ("n <=> NULL", 1),
    ("NOT (n <=> NULL)", 11),
    ("n IS DISTINCT FROM 770 AND k BETWEEN 60 AND 79", 1),
    ("s = 'd-077'", 1),
    ("s LIKE 'd%'", 1),
    ("s LIKE 'd-07_'", 1),
    ("s LIKE '%77'", 12),
    ("s LIKE 'd\\\\_%'", 0),
    ("s NOT LIKE 'a%'", 11),
    ("s > 'l-22'", 1),
    ("s IN ('a-001', 'z')", 1),
    ("upper(s) = 'D-077'", 12),
    ("substr(s, 1, 1) = 'd'", 12),
    ("s IS NULL AND k > 230", 1),
    ("v = 'v037'", 2),
    ("v = 'zzzz5'", 1),
    ("v LIKE 'v03%'", 2),
    ("v > 'x'", 1),
    ("v <= 'v009'", 2),
    ("c = '03'", 12),
    ("c = '03  '", 12),
    ("b", 12),
    ("NOT b", 5),
    ("b IS NULL", 1),
    ("b IS TRUE AND k < 40", 1),
    ("b IS NOT TRUE AND k < 40", 1),
    ("d = DATE '2013-03-01'", 1),
    ("d >= DATE '2013-05-05'", 1),
    ("d < '2013-03-03'", 1),
    ("year(d) = 2012", 0),
    ("year(d) = 2013 AND month(d) = 3", 6),
    ("ts < TIMESTAMP '2013-03-02 00:00:00'", 1),
    ("ts = TIMESTAMP '2013-03-01 19:00:00.000001'", 1),
    ("ts >= '2013-05-09 00:00:00'", 1),
    ("CAST(ts AS date) = DATE '2013-03-02'", 1),
    ("to_date(ts) >= DATE '2013-05-09'", 1),
    ("utc < TIMESTAMP '2013-03-02 00:00:00'", 12),
    ("price = 57.75", 1),
    ("price > 178.499", 1),
    ("price IN (0.75, 1.50)", 1),
    ("price BETWEEN 10 AND 14", 1),
    ("f < 0", 2),
    ("f = 0.5", 2),
    ("f > 23.85", 2),
    ("NOT (f > 0.5)", 2),
    ("x < 0", 2),
    ("x = 0", 2),
    ("x <> 0 AND k < 20", 1),
    ("x > 350", 2),
    ("NOT (x > 10)", 2),
    ("x = CAST('NaN' AS double)", 12),
    ("st.a = 77", 1),
    ("st.b LIKE 'b07%'", 1),
    ("coalesce(n, 0) = 770", 1),
    ("CASE WHEN k = 77 THEN true ELSE false END", 1),
    ("k = 77 AND rand() >= 0", 12),
    ("INPUT__FILE__NAME LIKE '%f03.parquet' AND k < 100", 5),
    ("p = 1 AND k < 100", 1),
    ("p IN (0, 2) AND k IN (1, 239)", 2),
    ("(p = 1 AND k < 5) OR (p = 2 AND k > 235)", 2),
    ("p = 7", 0),
)


def most_in_full(named: Iterable[tuple[str, tuple[Any, ...]]]) -> list[ParameterSet]:
    """Every third is asked in the tier fast, too: a query takes a second or two."""
    return [
        pytest.param(*values, id=name, marks=() if place % 3 == 0 else pytest.mark.full)
        for place, (name, values) in enumerate(named)
    ]


@pytest.mark.parametrize(("condition", "files"), most_in_full((s[0], s) for s in SHAPES))
def test_a_shape_reads_what_it_must_and_answers_as_unhooked(
    hive: HookedHive, sales: str, condition: str, files: int
) -> None:
    sql = f"SELECT k, s, v, c FROM {sales} WHERE {condition}"
    answer = hive.ask(sql)
    assert not answer.warnings
    assert sorted(answer.rows, key=str) == sorted(hive.unhooked(sql), key=str)
    assert answer.read <= files
    assert {s.table for s in answer.scans} <= {sales}


# What Hive's SQL says otherwise than Trino's, so that the rows are the same.
_SQL = {
    # NaN equals NaN only in some of Hive's operators.
    "is_nan(d)": "CAST(d AS string) = 'NaN'",
    "NOT (d > 10)": "NOT (d > 10) OR CAST(d AS string) = 'NaN'",
    # -0.0 is less than 0.0 where rows are read one by one, and has no literal.
    "d = 0": "d = 0 OR CAST(d AS string) = '-0.0'",
    # Hive compares the texts of partition values.
    "p IS NULL": "p = '__HIVE_DEFAULT_PARTITION__' OR p IS NULL",
    "q = 2": "q + 0 = 2",
}
_WORDS = (
    (r"REAL '([^']*)'", r"CAST(\1 AS float)"),
    (r"DECIMAL '([^']*)'", r"\1BD"),
    (r"X'([0-9A-F]*)'", r"unhex('\1')"),
    (r"\bdec\b", "`dec`"),
)
# The index alone never takes a partition's value as proof, and Hive prunes partitions by itself.
_NOT_BY_FILES = frozenset({"(q = 1 OR id > 740) AND small < 500"})


def in_hive(case: Case) -> str:
    sql = _SQL.get(case.sql, case.sql)
    for pattern, replacement in _WORDS:
        sql = re.sub(pattern, replacement, sql)
    return sql


@pytest.mark.parametrize("case", most_in_full((c.sql, (c,)) for c in CASES))
def test_hive_answers_as_arrow_does(hive: HookedHive, everything: Everything, case: Case) -> None:
    answer = hive.ask(f"SELECT id FROM {EVERYTHING} WHERE {in_hive(case)}")
    assert answer.ids == sorted(everything.rows.filter(case.arrow).column("id").to_pylist())
    assert not answer.warnings
    if case.prunes and case.sql not in _NOT_BY_FILES:
        assert answer.read < everything.files


@pytest.mark.parametrize(
    ("sql", "files"),
    [
        ("SELECT count(*) FROM {t} WHERE k BETWEEN 30 AND 45", 2),
        ("SELECT p, count(*), max(s) FROM {t} WHERE ts < '2013-03-10 00:00:00' GROUP BY p", 2),
        ("SELECT count(*) FROM {t} WHERE k IN (SELECT k FROM {t} WHERE s = 'd-077')", 13),
        ("SELECT a.k, b.s FROM {t} a JOIN {t} b ON a.k = b.k WHERE a.k = 7 AND b.s = 'a-007'", 2),
        (
            "SELECT count(*), sum(k) FROM (SELECT k FROM {t} WHERE k < 5 "
            "UNION ALL SELECT k FROM {t} WHERE k > 235) u",
            4,
        ),
        ("SELECT sum(x) FROM {t} WHERE NOT (x > 10)", 2),
        ("SELECT count(*) FROM {t} WHERE k > 1000", 0),
        ("SELECT k FROM {t} WHERE x = 0 OR f = 0", 12),
    ],
)
def test_tez_reads_what_it_must_and_answers_as_unhooked(
    hive: HookedHive, sales: str, sql: str, files: int
) -> None:
    answer = hive.ask(sql.format(t=sales), TEZ)
    assert not answer.warnings
    assert sorted(answer.rows, key=str) == sorted(hive.unhooked(sql.format(t=sales), TEZ), key=str)
    assert answer.read <= files


def test_tez_reads_hooked_tables_in_vectors(hive: HookedHive, sales: str) -> None:
    sql = f"EXPLAIN VECTORIZATION DETAIL SELECT count(*) FROM {sales} WHERE k > 5"
    plan = "\n".join(str(r[0]) for r in hive.ask(sql, TEZ).rows)
    assert "BridgeParquetInputFormat" not in plan
    assert "Execution mode: vectorized" in plan and "usesVectorUDFAdaptor: false" in plan


@pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])
def test_a_plan_without_a_filter_asks_nobody(
    hive: HookedHive, sales: str, settings: dict[str, str]
) -> None:
    answer = hive.ask(f"SELECT k FROM {sales}", settings)
    assert len(answer.rows) == 240 and answer.read == answer.listed == 12
    assert {s.generation for s in answer.scans} == {-1}


def test_every_shape_is_counted() -> None:
    assert len(SHAPES) >= 48 and len(CASES) >= 80
