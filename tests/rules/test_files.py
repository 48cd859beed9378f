"""The rules over real files, one table each: the file that holds the row stays, another goes.

A case names the files that must stay; the others must be skipped, or the case proves nothing.
"""

# ruff: noqa: E501 - a case is a line
from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.expression.parsing.text import parse_where
from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HIVE,
    INTEGER,
    SPARK,
    STRING,
    TIMESTAMP,
    TRINO,
    Field,
    Semantics,
    Type,
    char,
    decimal,
    struct,
)
from bridge.table.model import Column
from tests.support.lake import Lake, kept

NAN = math.nan
_SEMANTICS = {"trino": TRINO, "spark": SPARK, "hive": HIVE}


@dataclass(frozen=True)
class Case:
    """One table ``t(x)`` and one question.

    Attributes:
        files: by name: values of the column x, or a whole Arrow table.
        stay: names of the files that must be read; all others must not.
        how: of writing.
    """

    rule: str
    type: Type
    files: Mapping[str, Any]
    where: str
    stay: str
    engine: str = "trino"
    nan: str = "footer"
    how: Mapping[str, Any] = field(default_factory=dict)
    arrow: pa.DataType | None = None


def case(rule: str, *arguments: Any, **options: Any) -> Any:
    made = Case(rule, *arguments, **options)
    return pytest.param(made, marks=pytest.mark.rule(rule), id=f"{rule}: {made.where}")


NUMBERS = {"a": [1, 5], "b": [10, 15], "n": [None, None], "m": [None, 12]}
_DAY = dt.date

CASES = [
    # ALWAYS and NEVER are answers of their own: a file with a NULL is neither for NOT (x < 6).
    case("M1", BIGINT, NUMBERS, "NOT (x < 6)", "bm"),
    case("M1", BIGINT, NUMBERS, "x <> 12", "ab"),
    # NOT to the leaves first: the unknown half must not become a reason to skip.
    case("M2", BIGINT, NUMBERS, "NOT (x = 12 AND f(x) = 1)", "abmn"),
    case("M2", BIGINT, NUMBERS, "NOT (x >= 10 OR f(x) = 1)", "a"),
    case("M2", BIGINT, NUMBERS, "NOT (NOT (x >= 10))", "bm"),
    case("M3", BIGINT, {"a": [1], "z": [0]}, "x = 0", "z"),
    case("M3", BIGINT, {"a": [1], "e": [None]}, "x = 0", ""),
    case("M4", BIGINT, NUMBERS, "x = 3 AND f(x) = 1", "a"),
    case("M4", BIGINT, NUMBERS, "x = 3 OR f(x) = 1", "abmn"),
    case("M4", BIGINT, NUMBERS, "x = 3 OR x = 12", "abm"),
    # NaN lies outside of the bounds that a footer keeps.
    case("1", DOUBLE, {"a": [1.0, NAN, 2.0], "b": [3.0]}, "x > 2.5", "b"),
    case("1", DOUBLE, {"a": [1.0, NAN, 2.0], "b": [1.0]}, "x > 2.5", "ab", engine="spark"),
    case("1", DOUBLE, {"a": [1.0, NAN, 2.0], "b": [1.0]}, "x > 2.5", "a", engine="spark", nan="scan"),
    case("1", DOUBLE, {"a": [1.0, NAN], "b": [1.0], "c": [2.0]}, "x <> 1.0", "abc"),
    case("1", DOUBLE, {"a": [1.0, NAN], "b": [1.0], "c": [2.0]}, "x <> 1.0", "ac", nan="scan"),
    case("1", DOUBLE, {"a": [NAN], "b": [1.0]}, "x NOT IN (1.0)", "a", nan="scan"),
    case("1", DOUBLE, {"a": [NAN, 1.0], "b": [5.0]}, "x < 3.0", "a"),
    # Zeros are one value, whichever sign the bound has.
    case("2", DOUBLE, {"m": [-0.0], "p": [0.0], "o": [1.0]}, "x = 0.0", "mp"),
    case("2", DOUBLE, {"m": [-0.0], "p": [0.0], "o": [1.0]}, "x = -0.0", "mp"),
    case("2", DOUBLE, {"m": [-0.0], "p": [0.0], "o": [1.0]}, "x IN (0.0, 7.0)", "mp"),
    case("2", DOUBLE, {"m": [-0.0], "o": [-1.0]}, "x >= 0.0", "m"),
    # Long text: whatever the writer cut, equality and difference stay sound.
    case("3", STRING, {"a": ["x" * 5000], "b": ["x" * 4999 + "y"], "c": ["w"]}, "x > 'x'", "ab"),
    case("3", STRING, {"a": ["x" * 100], "b": ["y"]}, f"x <> '{'x' * 100}'", "ab"),
    case("3", STRING, {"a": ["\U0010ffff" * 20], "b": ["a"]}, "x > 'b'", "a"),
    # Missing is not NULL.
    case("4", BIGINT, {"a": [1], "b": [9]}, "x = 5", "ab", how={"write_statistics": False}),
    case("4", BIGINT, {"a": [1], "b": [9]}, "x IS NULL", "ab", how={"write_statistics": False}),
    case("4", BIGINT, {"a": [1], "b": [9]}, "x = 9", "b", nan="scan", how={"write_statistics": False}),
    case("4", DOUBLE, {"a": [1.0, 2.0, NAN, 9.0], "b": [1.0]}, "x = 9.0", "a", how={"row_group_size": 2}),
    case("4", BIGINT, {"a": [None, None, 3, 4], "b": [7, 8]}, "x = 3", "a", how={"row_group_size": 2}),
    case("5", BIGINT, NUMBERS, "x IS NULL", "mn"),
    case("5", BIGINT, NUMBERS, "x IS NOT NULL", "abm"),
    case("5", BIGINT, NUMBERS, "x NOT IN (1, NULL)", ""),
    case("5", BIGINT, NUMBERS, "x > 0", "abm"),
    case("6", BIGINT, NUMBERS, "x IS DISTINCT FROM 5", "abmn"),
    case("6", BIGINT, NUMBERS, "x IS NOT DISTINCT FROM 5", "a"),
    case("6", BIGINT, NUMBERS, "x IS NOT DISTINCT FROM NULL", "mn"),
    case("6", BIGINT, NUMBERS, "x IS DISTINCT FROM NULL", "abm"),
    case("6", BOOLEAN, {"t": [True], "f": [False], "n": [None]}, "x IS NOT TRUE", "fn"),
    case("6", BOOLEAN, {"t": [True], "f": [False], "n": [None]}, "x IS TRUE", "t"),
    case("7", STRING, {"a": ["ab", "b"], "p": ["pa", "pz"], "q": ["q"]}, "x LIKE 'p%'", "p"),
    case("7", STRING, {"a": ["a", "pz"], "q": ["q"]}, "x LIKE 'p%'", "a"),
    case("7", STRING, {"a": ["p_1"], "b": ["px1"], "q": ["q"]}, "x LIKE 'p_1%'", "ab"),
    case("7", STRING, {"a": ["p%x"], "b": ["p\\x"], "q": ["a"]}, "x LIKE 'p\\%%'", "b"),
    case("7", STRING, {"a": ["p%x"], "b": ["p\\x"], "q": ["a"]}, "x LIKE 'p\\%%'", "a", engine="hive"),
    case("7", STRING, {"p": ["pa", "pz"], "m": ["pa", "q"], "q": ["q"]}, "x NOT LIKE 'p%'", "mq"),
    case("7", STRING, {"a": ["\U0010ffff"], "b": ["b"]}, "x LIKE '\U0010ffff%'", "a"),
    # Literals are rounded outward, never inward.
    case("8", BIGINT, {"a": [1, 2], "b": [3]}, "x > 2.5", "b"),
    case("8", BIGINT, {"a": [1, 2], "b": [3]}, "x < 2.5", "a"),
    case("8", BIGINT, {"a": [1, 2], "b": [3]}, "x = 2.5", ""),
    case("8", BIGINT, {"a": [1, 2], "b": [3]}, "x <> 2.5", "ab"),
    case("8", INTEGER, {"a": [1], "b": [2**31 - 1]}, "x < 3000000000", "ab"),
    case("8", BIGINT, {"a": [1], "b": [2]}, "abs(x) = 1", "ab"),
    # Timestamps: INT96 says nothing; a cut maximum is one tick more.
    case("9", TIMESTAMP, {"a": [dt.datetime(2024, 1, 1)], "b": [dt.datetime(2025, 1, 1)]},
         "x < TIMESTAMP '2024-06-01 00:00:00'", "ab", how={"use_deprecated_int96_timestamps": True}),
    case("9", TIMESTAMP, {"a": [1_000_000_000_000_001_999], "b": [1_000_000_000_000_000_000]},
         "x > TIMESTAMP '2001-09-09 01:46:40.000001'", "a", arrow=pa.timestamp("ns"),
         how={"version": "2.6"}),
    case("9", DATE, {"a": [_DAY(1500, 1, 1)], "b": [_DAY(2000, 1, 1)]}, "x < DATE '1600-01-01'", "a"),
    case("10", decimal(38, 2), {"a": [Decimal("90071992547409.93")], "b": [Decimal("90071992547409.92")]},
         "x = DECIMAL '90071992547409.93'", "a"),
    case("10", decimal(5, 1), {"a": [Decimal("1.25")], "b": [Decimal("9.75")]}, "x = 1.3", "ab",
         arrow=pa.decimal128(5, 2)),
    case("10", decimal(12, 4), {"a": [Decimal("1.25")], "b": [Decimal("9.75")]}, "x < 2.0", "a",
         arrow=pa.decimal128(5, 2)),
    case("11", char(4), {"a": ["z"], "b": ["z\t"], "c": ["za"]}, "x = 'z'", "abc"),
    case("11", char(4), {"a": ["z"], "b": ["z\t"], "c": [None]}, "x IS NOT NULL", "ab", arrow=pa.string()),
    case("12", STRING, {"a": ["é"], "b": ["z"], "c": ["a"]}, "x > 'y'", "ab"),
    case("12", STRING, {"p": ["\U0001d11e"], "q": ["\uffee"], "z": ["z"]}, "x > '\uffee'", "p"),
    case("13", BIGINT, {"u": pa.table({"x": pa.array([2**31 + 5], pa.uint32())}), "v": [1]},
         "x > 2147483648", "u"),
    case("13", BIGINT, {"t": pa.table({"x": pa.array([-128, 127], pa.int8())}), "v": [1000]}, "x < 0", "t"),
    case("14", BIGINT, {"a": pa.table({"X": [1]}), "b": pa.table({"x": [2]})}, "x = 2", "b"),
    case("14", BIGINT, {"a": pa.table({"x": [1], "X": [5]}), "b": pa.table({"x": [2]})}, "x = 5", "a"),
    case("15", BIGINT, {"a": pa.table({"y": [1]}), "b": [5]}, "x = 5", "b"),
    case("15", BIGINT, {"a": pa.table({"y": [1]}), "b": [5]}, "x IS NULL", "a"),
    case("15", BIGINT, {"a": pa.table({"x": [{"f": 1}]}), "b": [5]}, "x = 7", "a"),
    case("16", DOUBLE, {"a": [0.1], "b": [0.5]}, "x = 0.1", "", arrow=pa.float32()),
    case("16", DOUBLE, {"a": [0.1], "b": [0.5]}, "x > 0.1 AND x < 0.2", "a", arrow=pa.float32()),
    case("16", FLOAT, {"a": [0.1], "b": [0.5]}, "x = REAL '0.1'", "a", arrow=pa.float32()),
    case("16", BIGINT, {"a": [5], "b": [7]}, "x = 5", "a", arrow=pa.int32()),
    case("17", BIGINT, {"a": [5], "b": [7]}, "x IN (5, 6, 8)", "a"),
    case("17", BIGINT, {"a": [5], "b": [None]}, "x IS NOT DISTINCT FROM NULL", "b"),
]  # fmt: skip


def table_of(values: Any, case: Case) -> pa.Table:
    if isinstance(values, pa.Table):
        return values
    return pa.table({"x": pa.array(values, case.arrow or _ARROW.get(case.type))})


_ARROW = {BIGINT: pa.int64(), INTEGER: pa.int32(), FLOAT: pa.float32(), BOOLEAN: pa.bool_(), STRING: pa.string()}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_file_with_the_row_stays_and_others_go(tmp_path: Path, case: Case) -> None:
    lake = Lake(tmp_path, (Column("x", case.type),))
    for name, values in case.files.items():
        lake.write(name, table_of(values, case), **case.how)
    lake.build(nan=case.nan)
    semantics: Semantics = _SEMANTICS[case.engine]
    text, _ = parse_where(case.where, case.engine)
    for freshness in ("live", "snapshot"):
        found = kept(lake.planner(), text, semantics=semantics, freshness=freshness)
        assert "".join(sorted(uri[-1] for uri in found)) == case.stay


@pytest.mark.rule("14")
def test_a_dot_in_a_name_and_a_field_of_a_struct(tmp_path: Path) -> None:
    lake = Lake(tmp_path, (Column("st", struct(Field("a", BIGINT))), Column("st.a", BIGINT)))
    lake.write("a", pa.table({"st": [{"a": 1}], "st.a": [2]}))
    lake.write("b", pa.table({"st": [{"a": 2}], "st.a": [1]}))
    lake.build()
    field_of, _ = parse_where("st.a = 2")
    column, _ = parse_where('"st.a" = 2')
    assert [uri[-1] for uri in kept(lake.planner(), field_of)] == ["b"]
    assert [uri[-1] for uri in kept(lake.planner(), column)] == ["a"]
