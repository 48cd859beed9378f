"""Trino's names of types."""

from __future__ import annotations

import pytest

from bridge.engines.trino.types import parse_trino_type, to_trino
from bridge.kernel.errors import UnsupportedType
from bridge.kernel.types import UNKNOWN, parse_hive_type


@pytest.mark.parametrize(
    ("hive", "trino"),
    [
        ("int", "integer"),
        ("float", "real"),
        ("decimal(38,10)", "decimal(38,10)"),
        ("char(3)", "char(3)"),
        ("varchar(3)", "varchar(3)"),
        ("string", "varchar"),
        ("binary", "varbinary"),
        ("timestamp", "timestamp(6)"),
        ("timestamp with local time zone", "timestamp(6) with time zone"),
        ("map<string,array<int>>", "map(varchar,array(integer))"),
        ("struct<a:int,b:struct<c:date>>", 'row("a" integer,"b" row("c" date))'),
    ],
)
def test_both_ways(hive: str, trino: str) -> None:
    type = parse_hive_type(hive)
    assert to_trino(type) == trino
    assert parse_trino_type(trino) == type


def test_what_has_no_counterpart() -> None:
    assert to_trino(UNKNOWN) is None
    assert to_trino(parse_hive_type("struct<a:int,b:uniontype<int,string>>")) is None
    assert parse_trino_type("hyperloglog") == UNKNOWN
    assert parse_trino_type("time(3) with time zone") == UNKNOWN
    assert parse_trino_type("row(integer, varchar(3))").fields[1].name == ""


@pytest.mark.parametrize(
    "text", ["", "row(", "array(integer", "integer)", "decimal(x)", ",", "a b"]
)
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(UnsupportedType):
        parse_trino_type(text)


@pytest.mark.parametrize("number", ["²", "9" * 5000], ids=["raised", "long"])
@pytest.mark.parametrize("type", ["decimal({},0)", "char({})", "array(varchar({}))"])
def test_a_length_that_is_no_number(type: str, number: str) -> None:
    for parse in (parse_trino_type, parse_hive_type):
        text = type.format(number)
        if parse is parse_hive_type:
            text = text.replace("array(varchar(", "array<varchar(").replace("))", ")>")
        with pytest.raises(UnsupportedType):
            parse(text)
