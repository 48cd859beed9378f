"""Designed cases of constant files: which expressions decide them, and what is no constant."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bridge.engines.registry import engine
from bridge.expression.bind import bind
from bridge.expression.nodes import BoundReference
from bridge.expression.parsing.text import parse_where
from bridge.expression.prune import prune
from bridge.expression.statistics import ColumnStatistics
from bridge.kernel.types import BIGINT, DOUBLE, INTEGER, STRING, TRINO, Field, Type, char
from bridge.planner.partitions import select_partitions
from bridge.table.model import Column
from tests.support.strategies import Statistics, Table

DAY, C, X, Q = (("day",), ("c",), ("x",), ("q",))
PATHS: dict[tuple[str, ...], Type] = {DAY: INTEGER, C: STRING, X: DOUBLE, Q: char(4)}
COLUMNS = tuple(Field(path[0], type) for path, type in PATHS.items())
DATA = Table(
    COLUMNS,
    PATHS,
    {},
    [
        [{DAY: n, C: None if n == 9 else b"alpha%d" % n, X: float(n), Q: b"%d" % n}] * 3
        for n in range(30)
    ],
)


def col(name: str, type: str = "integer") -> dict[str, Any]:
    return {"column": name, "type": type}


def lit(value: Any, type: str = "integer") -> dict[str, Any]:
    return {"constant": value, "type": type}


def call(name: str, *args: Any, type: str = "boolean") -> dict[str, Any]:
    return {"call": name, "type": type, "args": list(args)}


def left(node: dict[str, Any], statistics: Any = None, asking: str = "trino") -> int:
    """How many of the thirty files an engine reads."""
    document = json.dumps({"version": 1, "expression": node})
    one = engine(asking)
    bound = bind(one.translate(document).expression, COLUMNS, [], one.semantics)
    return int((~prune(bound, statistics or Statistics(DATA), one.semantics).never).sum())


TEXT = call("$cast", col("day"), type="varchar")
CASES = {
    "day + 1 = 5": (call("$equal", call("$add", col("day"), lit(1), type="integer"), lit(5)), 1),
    "day % 7 = 3": (call("$equal", call("$modulo", col("day"), lit(7), type="integer"), lit(3)), 4),
    "abs(day - 20) < 2": (
        call(
            "$less_than",
            call("abs", call("$subtract", col("day"), lit(20), type="integer"), type="integer"),
            lit(2),
        ),
        3,
    ),
    "length(c) = 6": (
        call("$equal", call("length", col("c", "varchar"), type="bigint"), lit(6, "bigint")),
        9,
    ),
    "cast(day AS varchar) = '7'": (call("$equal", TEXT, lit("7", "varchar")), 1),
    "coalesce(c, 'none') = 'none'": (
        call(
            "$equal",
            call("$coalesce", col("c", "varchar"), lit("none", "varchar"), type="varchar"),
            lit("none", "varchar"),
        ),
        1,
    ),
    "if(day = 7, true, false)": (
        call(
            "$if", call("$equal", col("day"), lit(7)), lit(True, "boolean"), lit(False, "boolean")
        ),
        1,
    ),
    "day = cast(substring(c, 6) AS integer)": (
        call(
            "$equal",
            col("day"),
            call(
                "$cast",
                call("substring", col("c", "varchar"), lit(6, "bigint"), type="varchar"),
                type="integer",
            ),
        ),
        29,
    ),
    # These decide nothing.
    "day / 0 = 1": (
        call("$equal", call("$divide", col("day"), lit(0), type="integer"), lit(1)),
        30,
    ),
    "char is padded": (
        call("$equal", call("length", col("q", "char(4)"), type="bigint"), lit(9, "bigint")),
        30,
    ),
    "a cast that fails": (
        call("$equal", call("$cast", col("c", "varchar"), type="integer"), lit(1)),
        29,  # all NULL in one file
    ),
    "random": (call("$less_than", call("random", type="double"), lit("0.5", "double")), 30),
}


@pytest.mark.parametrize("name", CASES)
def test_constant_files_decide(name: str) -> None:
    node, files = CASES[name]
    assert left(node) == files


@pytest.mark.parametrize(
    ("test", "files"),
    [("True", 24), ("NotTrue", 6), ("False", 6), ("NotFalse", 24)],
)
def test_hive_asks_whether_a_condition_is_true(test: str, files: int) -> None:
    """As it spells ``CASE WHEN day > 5 THEN 1 ELSE 0 END = 0``."""
    after = call("GenericUDFOPGreaterThan", col("day", "int"), lit(5, "int"))
    node = call(f"GenericUDFOP{test}", after)
    assert left(node, asking="hive") == files


@pytest.mark.rule("2")
def test_a_zero_and_a_nan_are_no_constants() -> None:
    twice = call("$coalesce", col("x", "double"), lit("5.0", "double"), type="double")
    node = call("$equal", twice, lit("7.0", "double"))
    assert left(node) == 2  # the file of 0.0, and that of 7.0


class Changed:
    """Statistics of one column with something changed."""

    num_files = 30

    def __init__(self, **changes: Any) -> None:
        self._known, self._changes = Statistics(DATA), changes

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        found = self._known.column(reference)
        return found if found is None else replace(found, **self._changes)


@pytest.mark.rule("3")
@pytest.mark.parametrize(
    "changes",
    [
        {"exact": np.zeros(30, np.bool_)},
        {"null_count": np.full(30, -1)},
        {"null_count": np.full(30, 1)},
        {"nan_count": np.full(30, -1)},
        {"lower_known": np.zeros(30, np.bool_)},
    ],
    ids=["cut", "NULL unknown", "a NULL", "NaN unknown", "no bound"],
)
def test_what_is_not_proven_is_no_constant(changes: dict[str, Any]) -> None:
    node, files = CASES["day + 1 = 5"]
    assert left(node, Changed()) == files
    assert left(node, Changed(**changes)) == 30


def test_functions_of_partition_keys_decide_partitions() -> None:
    names = [f"day={n}/q={n % 3}" for n in range(30)]
    keys = (Column("day", BIGINT), Column("q", INTEGER))
    for where, kept in (("day % 7 = 3", 4), ("day + 1 = 5 AND q = 1", 1), ("day * 2 > 55", 2)):
        bound = bind(parse_where(where)[0], (), [Field(k.name, k.type) for k in keys], TRINO)
        assert len(select_partitions(names, keys, bound, TRINO).names) == kept, where
