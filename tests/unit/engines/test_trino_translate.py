"""Trino's TupleDomain and ConnectorExpression: what comes of them, and what is dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.engines.trino.translate import translate
from bridge.errors import InvalidPredicate
from bridge.expression.format import format
from bridge.expression.nodes import AlwaysTrue


def domain(type: str, null_allowed: bool = False, **values: Any) -> dict[str, Any]:
    return {"column": "x", "type": type, "null_allowed": null_allowed, **values}


def domains(*entries: dict[str, Any], **more: Any) -> str:
    return json.dumps({"version": 1, "domains": list(entries), **more})


def single(value: Any) -> dict[str, Any]:
    return {"low": value, "low_inclusive": True, "high": value, "high_inclusive": True}


def above(value: Any, inclusive: bool = False) -> dict[str, Any]:
    return {"low": value, "low_inclusive": inclusive}


def below(value: Any, inclusive: bool = False) -> dict[str, Any]:
    return {"high": value, "high_inclusive": inclusive}


@pytest.mark.parametrize(
    ("entry", "where"),
    [
        (domain("bigint", all=True), '"x" IS NOT NULL'),
        (domain("bigint", True, all=True), "true"),
        (domain("bigint", True, none=True), '"x" IS NULL'),
        (domain("bigint", none=True), "false"),
        (domain("bigint", ranges=[]), "false"),
        (domain("bigint", ranges=[{}]), '"x" IS NOT NULL'),
        (domain("bigint", ranges=[single(5)]), '"x" IN (5)'),
        (domain("bigint", ranges=[single(9), single(5), single(5)]), '"x" IN (5, 9)'),
        (domain("bigint", ranges=[{**above(5, True), **below(9)}]), '"x" >= 5 AND "x" < 9'),
        (domain("bigint", True, ranges=[above(5)]), '"x" IS NULL OR "x" > 5'),
        (domain("bigint", ranges=[above(5), below(7)]), '"x" IS NOT NULL'),
        (domain("bigint", ranges=[above(5), single(5)]), '"x" >= 5'),
        (domain("bigint", ranges=[below(5), above(5)]), '"x" NOT IN (5)'),
        (domain("bigint", ranges=[below(5), above(6)]), '"x" < 5 OR "x" > 6'),
        (domain("double", ranges=[below("5.0"), above("5.0")]), '"x" < 5.0E0 OR "x" > 5.0E0'),
        (domain("real", ranges=[single("0.1")]), "\"x\" IN (CAST('0.1' AS REAL))"),
        (domain("double", ranges=[above("-Infinity")]), '"x" > -infinity()'),
        (domain("decimal(5,2)", ranges=[single("550")]), "\"x\" IN (CAST('5.50' AS DECIMAL(5,2)))"),
        (domain("date", ranges=[single(-141428)]), "\"x\" IN (DATE '1582-10-14')"),
        (
            domain("timestamp(3)", ranges=[above(1)]),
            "\"x\" > TIMESTAMP '1970-01-01 00:00:00.000001'",
        ),
        (
            domain("timestamp(9)", ranges=[above("1.500000", True)]),
            "\"x\" > TIMESTAMP '1970-01-01 00:00:00.000001'",
        ),
        (
            domain("timestamp(9)", ranges=[below("1.500000")]),
            "\"x\" <= TIMESTAMP '1970-01-01 00:00:00.000001'",
        ),
        (domain("timestamp(9)", ranges=[single("1.500000")]), "false"),
        (
            domain("varchar(2)", values=["UA", "AA"], inclusive=False),
            "\"x\" NOT IN (CAST('UA' AS VARCHAR(2)), CAST('AA' AS VARCHAR(2)))",
        ),
        (domain("varbinary", ranges=[single("/w==")]), "\"x\" IN (X'ff')"),
        (domain("boolean", ranges=[single(True)]), '"x" IN (true)'),
        ({**domain("bigint", all=True), "path": ["b", "c"]}, '"x"."b"."c" IS NOT NULL'),
    ],
)
def test_domains(entry: dict[str, Any], where: str) -> None:
    found = translate(domains(entry))
    assert (format(found.expression), found.exact) == (where, True)


def test_milliseconds_with_zone() -> None:
    found = translate(domains(domain("timestamp(3) with time zone", ranges=[single(5)])))
    assert found.expression.literals[0].value == 5000  # type: ignore[attr-defined]
    finer = domain("timestamp(12) with time zone", ranges=[above("5.000000001")])
    found = translate(domains(finer))
    assert found.expression.literals[0].value == 5000  # type: ignore[attr-defined]


def test_a_domain_of_a_type_unheard_of_is_dropped_by_name() -> None:
    found = translate(
        domains(domain("hyperloglog", ranges=[single("x")]), domain("bigint", all=True))
    )
    assert found.dropped == ("x: values of type unknown",) and not found.exact
    assert '"x" IS NOT NULL' in format(found.expression)
    found = translate(domains(dropped=["y: type uuid"]))
    assert found.dropped == ("y: type uuid",) and not found.exact


def test_no_predicate_and_no_row() -> None:
    assert translate("").expression == AlwaysTrue()
    assert format(translate('{"version": 1, "none": true}').expression) == "false"


A = {"column": "a", "type": "bigint"}
S = {"column": "s", "type": "varchar"}


def const(value: Any, type: str = "bigint") -> dict[str, Any]:
    return {"constant": value, "type": type}


def call(name: str, *args: Any, type: str = "boolean") -> dict[str, Any]:
    return {"call": name, "type": type, "args": list(args)}


def expression(node: Any) -> tuple[str, tuple[str, ...]]:
    found = translate(json.dumps({"version": 1, "expression": node}))
    assert found.exact is not bool(found.dropped)
    return format(found.expression), found.dropped


@pytest.mark.parametrize(
    ("node", "where"),
    [
        (call("$equal", A, const(5)), '"a" = 5'),
        (call("$less_than", const(5), A), '"a" > 5'),
        (call("$is_distinct_from", A, const(None)), '"a" IS DISTINCT FROM CAST(NULL AS BIGINT)'),
        (call("$identical", A, const(5)), '"a" IS NOT DISTINCT FROM 5'),
        (call("$in", A, call("$array", const(1), const(None))), '"a" IN (1, CAST(NULL AS BIGINT))'),
        (call("$not", call("$is_null", A)), 'NOT ("a" IS NULL)'),
        (call("$between", A, const(1), const(2)), '"a" >= 1 AND "a" <= 2'),
        (call("$like", S, const("x%", "varchar(2)")), "starts_with(\"s\", 'x')"),
        (
            call("$like", S, const("x!%%", "varchar"), const("!", "varchar(1)")),
            "starts_with(\"s\", 'x%')",
        ),
        (call("$like", S, const("x\\%", "varchar")), "starts_with(\"s\", 'x\\')"),
        ({"column": "flag", "type": "boolean"}, '"flag" = true'),
        (const(True, "boolean"), "true"),
        (
            call("$equal", call("$cast", A, type="decimal(38,2)"), const("500", "decimal(38,2)")),
            "\"a\" = CAST('5.00' AS DECIMAL(38,2))",
        ),
        (
            call(
                "$equal",
                call("$cast", {"column": "v", "type": "varchar(2)"}, type="varchar"),
                const("x", "varchar"),
            ),
            "\"v\" = 'x'",
        ),
        (
            call(
                "$equal",
                call("json_extract_scalar", S, const("$.a.b", "varchar"), type="varchar"),
                const("x", "varchar"),
            ),
            "json_extract_scalar(\"s\", '$.a.b') = 'x'",
        ),
    ],
)
def test_expressions(node: Any, where: str) -> None:
    assert expression(node) == (where, ())


@pytest.mark.parametrize(
    ("node", "dropped"),
    [
        ({"opaque": "my_function(a)"}, "my_function(a)"),
        (call("$equal", call("reverse", S), const("X", "varchar")), "reverse(s) = 'X'"),
        (call("$equal", A, {"column": "b", "type": "bigint"}), "a = b"),
        (
            call("$equal", call("$cast", A, type="double"), const("5.0", "double")),
            "cast(a) = '5.0'",
        ),
        (call("$equal", call("$cast", A, type="integer"), const(5, "integer")), "cast(a) = 5"),
        (
            call("$like", S, const("x!y_", "varchar"), const("!", "varchar")),
            "like(s, 'x!y_', '!')",
        ),
        (call("$like", {"column": "c", "type": "char(3)"}, const("x%", "varchar")), "c LIKE 'x%'"),
        (call("$in", A, call("$array", const(1), A)), "a IN array(1, a)"),
        (const(None, "boolean"), "NULL"),
    ],
)
def test_what_is_dropped_is_named(node: Any, dropped: str) -> None:
    assert expression(node)[1] == (dropped,)


def test_m2_an_unknown_part_stays_in_its_place() -> None:
    node = call("$not", call("$and", call("$equal", A, const(5)), {"opaque": "f"}))
    assert expression(node) == ('NOT ("a" = 5 AND (f))', ("f",))


def test_limits_drop_and_do_not_fail_a_query() -> None:
    node: Any = call("$equal", A, const(5))
    for _ in range(300):
        node = call("$not", node)
    assert expression(node)[1] == ("a part nested deeper than 200",)
    many = call("$or", *[call("$equal", A, const(i)) for i in range(60_000)])
    assert expression(many)[1] == ("what follows 100000 parts",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense", "no JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("5", "a JSON int"),
        ('{"version": 7}', "version 7"),
        ('{"version": 1, "domains": 5}', "domains is no list"),
        (domains(domain("bigint")), "values is no list"),
        (domains(domain("bigint", ranges=[single("5")])), "'5' is no bigint"),
        (domains(domain("bigint", ranges=[single(2**63)])), "is no bigint"),
        (domains(domain("bigint", ranges=[single(True)])), "'True' is no bigint"),
        (domains(domain("double", ranges=[single("five")])), "'five' is no double"),
        (domains(domain("decimal(3,0)", ranges=[single("1000")])), "'1000' is no decimal"),
        (domains(domain("varbinary", ranges=[single("*")])), "is no binary"),
        (domains(domain("bigint", ranges=[{"low": 5}])), "low_inclusive is None"),
        (domains({"type": "bigint", "null_allowed": True, "all": True}), "a column named"),
        ('{"version": 1, "expression": 5}', "no object"),
        ('{"version": 1, "expression": {"call": "$and"}}', "without arguments"),
    ],
)
def test_a_broken_document_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidPredicate, match=words):
        translate(text)
