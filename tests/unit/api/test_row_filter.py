"""Conditions on rows, where engines differ: their answers, as they gave them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bridge.app.api.row_filter import row_filter
from bridge.expression.bind import bind
from bridge.expression.fold import KEPT
from bridge.expression.parsing.text import parse_where
from bridge.kernel.errors import InvalidPredicate
from bridge.kernel.types import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP, TRINO, Field, char

FIELDS = [
    Field("c", char(4)),
    Field("s", STRING),
    Field("n", BIGINT),
    Field("d", DATE),
    Field("t", TIMESTAMP),
    Field("x", DOUBLE),
    Field("y", DOUBLE),
]
ROWS = {
    "c": pa.array(["a   ", "ab  ", "abc ", "abcd", None]),
    "s": pa.array(["a", "ab", "ab  ", "abcd", None]),
    "n": pa.array([1, 2, 3, 4, None], pa.int64()),
    "d": pa.array([0, 1, 2, 3, None], pa.int32()).cast(pa.date32()),
    "t": pa.array([0, 1, 2, 3_600_000_000, None], pa.timestamp("us")),
    "x": pa.array([-0.0, 0.0, 1.0, 2.0, None]),
    "y": pa.array([0.0, 0.0, 1.0, 2.0, None]),
}
PADDED = {
    "c LIKE 'ab'": [],
    "c NOT LIKE 'ab'": [0, 1, 2, 3],
    "c LIKE 'ab  '": [1],
    "c NOT LIKE 'ab  '": [0, 2, 3],
    "c LIKE 'ab   '": [],
    "c LIKE 'ab%'": [1, 2, 3],
    "c LIKE 'ab  %'": [1],
    "c LIKE 'ab   %'": [],
    "c = 'ab'": [1],
    "c = 'ab   '": [1],
    "c LIKE 'ab' OR c = 'ab'": [1],
    "c LIKE 'ab' OR c LIKE 'abcd'": [3],
    "NOT (c LIKE 'ab' OR c = 'a')": [1, 2, 3],
    "s LIKE 'ab'": [1],
    "s NOT LIKE 'ab'": [0, 2, 3],
    "s LIKE 'ab' OR s = 'a'": [0, 1],
}


def rows_of(where: str, dialect: str) -> list[int]:
    expression, dropped = parse_where(where, dialect)
    assert not dropped
    return list(row_filter(expression, FIELDS, dialect).mask(ROWS, 5).nonzero()[0])


@pytest.mark.rule("7")
@pytest.mark.rule("11")
@pytest.mark.parametrize("dialect", ["trino", "spark"])
def test_patterns_of_chars_see_their_padding(dialect: str) -> None:
    assert {where: rows_of(where, dialect) for where in PADDED} == PADDED


@pytest.mark.rule("7")
@pytest.mark.parametrize("dialect", ["trino", "spark", "hive"])
def test_patterns_of_other_values_than_texts_are_refused(dialect: str) -> None:
    for where in ("n LIKE '2'", "d LIKE '1970-01-02'", "d NOT LIKE '1970-01-02'", "t LIKE '1970%'"):
        with pytest.raises(InvalidPredicate, match="a pattern is of texts"):
            rows_of(where, dialect)
        assert bind(parse_where(where, dialect)[0], FIELDS, [], TRINO) == KEPT


def test_values_of_a_list_are_compared_each_in_its_own_way() -> None:
    for dialect in ("trino", "spark", "hive"):
        assert rows_of("n IN (1, 2.0, 3e0, 4.5)", dialect) == [0, 1, 2]
        assert rows_of("n NOT IN (1, 2.0, 4.5)", dialect) == [2, 3]
        assert rows_of("n NOT IN (1, NULL)", dialect) == []
        assert rows_of("n NOT IN (1e0, NULL)", dialect) == []
        assert rows_of("n IN (1e0, NULL)", dialect) == [0]


@pytest.mark.rule("2")
@pytest.mark.rule("26")
@pytest.mark.parametrize(
    "where", ["{} IN (0, 1)", "{0} = 0 OR {0} = 1e0", "NOT {} NOT IN (0.0, 1)"]
)
def test_hive_may_not_find_a_negative_zero_in_a_list(where: str) -> None:
    for dialect in ("trino", "spark"):
        assert rows_of(where.format("x"), dialect) == [0, 1, 2]
    with pytest.raises(InvalidPredicate, match=r"x holds -0\.0"):
        rows_of(where.format("x"), "hive")
    assert rows_of(where.format("y"), "hive") == [0, 1, 2]
    assert rows_of("x = 0", "hive") == [0, 1] and rows_of("x IN (1, 2)", "hive") == [2, 3]


@pytest.mark.rule("9")
def test_timestamps_of_spark_are_those_of_the_session() -> None:
    for dialect in ("trino", "spark", "hive"):
        assert rows_of("t = TIMESTAMP '1970-01-01 01:00:00'", dialect) == [3]
        assert rows_of("t < CAST('1970-01-01 01:00:00' AS TIMESTAMP)", dialect) == [0, 1, 2]
        assert rows_of("t IN (TIMESTAMP '1970-01-01 00:00:00.000001')", dialect) == [1]
    assert rows_of("t = TIMESTAMP_NTZ '1970-01-01 01:00:00'", "spark") == [3]
    assert rows_of("t = TIMESTAMP_LTZ '1970-01-01 01:00:00'", "spark") == [3]


@pytest.mark.rule("11")
@pytest.mark.parametrize("dialect", ["trino", "hive"])
def test_a_text_is_not_compared_with_a_char(dialect: str) -> None:
    """Trino pads the text, Hive trims the char: ``ab`` is then ``ab  ``, and no bound holds."""
    texts = "s = CAST('ab' AS char(4))", "s IN ('a', CAST('ab' AS char(4)))", "NOT s > {}"
    for where in (text.format("CAST('ab' AS char(2))") for text in texts):
        expression, dropped = parse_where(where, dialect)
        assert not dropped
        with pytest.raises(InvalidPredicate, match="pad and trim"):
            row_filter(expression, FIELDS, dialect)
        assert bind(expression, FIELDS, [], TRINO) == KEPT
    assert parse_where("s NOT LIKE CAST('ab' AS char(2))", dialect)[1]
    assert rows_of("c = CAST('ab' AS char(8))", dialect) == [1]


@pytest.mark.rule("24")
def test_a_cast_to_a_short_text_cuts_in_hive_and_not_in_spark() -> None:
    for type in ("varchar(2)", "char(2)"):
        where = f"s = CAST('abcd' AS {type})"
        assert rows_of(where, "spark") == [3]
        assert parse_where(where, "hive")[1] and parse_where(where, "trino")[1]
