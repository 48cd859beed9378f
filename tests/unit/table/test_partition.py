"""Correctness rule 18: partition names and values."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.expression.format import format_decimal
from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INTEGER,
    STRING,
    TIMESTAMP,
    TINYINT,
    Type,
    decimal,
    varchar,
)
from bridge.table.model import Column
from bridge.table.partition import (
    UNPARSABLE,
    escape,
    parse_partition_name,
    parse_value,
    partition_name,
    typed_values,
    unescape,
)


@given(st.text(st.characters(blacklist_categories=["Cs"])))
def test_rule_18_escape_round_trip(text: str) -> None:
    assert unescape(escape(text)) == text


def test_rule_18_unescapes_once_and_after_splitting() -> None:
    assert parse_partition_name("a=x%3Dy%2Fz/b=%2525") == (("a", "x=y/z"), ("b", "%25"))
    assert parse_partition_name("a=1=2") == (("a", "1=2"),)


def test_rule_18_null_marker() -> None:
    name = partition_name(["a", "b"], [None, "x"])
    assert name == "a=__HIVE_DEFAULT_PARTITION__/b=x"
    assert parse_partition_name(name)[0] == ("a", None)


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("01", INTEGER, 1),
        ("1", INTEGER, 1),
        ("-5", TINYINT, -5),
        ("200", TINYINT, UNPARSABLE),
        ("x", INTEGER, UNPARSABLE),
        ("1.5", INTEGER, UNPARSABLE),
        ("1.50", decimal(10, 2), 150),
        ("1.505", decimal(10, 2), UNPARSABLE),
        ("NaN", decimal(10, 2), UNPARSABLE),
        ("2024-02-29", DATE, 19782),
        ("2023-02-29", DATE, UNPARSABLE),
        ("1970-01-02 00:00:00", TIMESTAMP, 86_400_000_000),
        ("1970-01-01 00:00:00.5", TIMESTAMP, 500_000),
        ("1970-01-01 00:00:00.0000001", TIMESTAMP, UNPARSABLE),
        ("TRUE", BOOLEAN, True),
        ("yes", BOOLEAN, UNPARSABLE),
        ("é", STRING, "é".encode()),
        (None, STRING, None),
        ("20240229", DATE, UNPARSABLE),  # engines take none of these for that day
        ("2024-W09-4", DATE, UNPARSABLE),
        ("2024-W09", DATE, UNPARSABLE),
        ("2024-2-29", DATE, UNPARSABLE),
        ("２０２４-02-29", DATE, UNPARSABLE),
        ("２０２４-02-29 00:00:00", TIMESTAMP, UNPARSABLE),
        ("1_0", INTEGER, UNPARSABLE),
        ("１", INTEGER, UNPARSABLE),
        (" 1", BIGINT, UNPARSABLE),
        ("1\n", BIGINT, UNPARSABLE),
        ("abc", varchar(3), b"abc"),
        ("ébc", varchar(3), "ébc".encode()),
        ("abcd", varchar(3), UNPARSABLE),  # Hive reads 'abc'
    ],
)
def test_rule_18_values_are_typed(text: str | None, type_: Type, value: object) -> None:
    assert parse_value(text, type_) == value


def test_rule_18_wrong_levels_are_unknown() -> None:
    keys = [Column("a", INTEGER), Column("b", STRING)]
    assert typed_values(["a=1", "A=1/b=x", "c=1/b=x"], keys) == [
        [UNPARSABLE, 1, UNPARSABLE],
        [UNPARSABLE, b"x", b"x"],
    ]


@pytest.mark.parametrize("precision", range(1, 39))
def test_10_decimals_keep_every_digit(precision: int) -> None:
    rng = random.Random(precision)
    for scale in {0, 1, precision // 2, precision}:
        type_ = decimal(precision, min(scale, precision))
        for value in (10**precision - 1, 1 - 10**precision, rng.randrange(10**precision), 0, 1):
            text = format_decimal(value, type_.scale)
            assert parse_value(text, type_) == value
            assert parse_value(f"{text}{'' if '.' in text else '.'}000", type_) == value
            assert parse_value(f"{value}E-{type_.scale}", type_) == value
            assert parse_value(f"{value}0E-{type_.scale + 1}", type_) == value
            assert parse_value(f"{value}1E-{type_.scale + 1}", type_) is UNPARSABLE
        beyond = format_decimal(10**precision, type_.scale)
        assert parse_value(beyond, type_) is UNPARSABLE


@pytest.mark.parametrize(
    "text", ["1_0", " 1", "1 ", "١", "1E999999999", "1E-999999999", "sNaN", "."]
)
def test_10_what_is_no_decimal_is_unknown(text: str) -> None:
    assert parse_value(text, decimal(38, 10)) is UNPARSABLE
