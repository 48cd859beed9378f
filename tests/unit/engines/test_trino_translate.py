"""Trino's TupleDomain and ConnectorExpression: what comes of them, and what is dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.engines.translation import TOO_DEEP
from bridge.engines.trino.translate import translate
from bridge.expression.bind import bind
from bridge.expression.format import format
from bridge.expression.nodes import AlwaysTrue
from bridge.expression.prune import prune
from bridge.kernel.errors import InvalidPredicate
from bridge.kernel.types import FLOAT, TRINO, Field
from tests.support.strategies import Statistics, Table


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
    millis = 1_700_000_000_005
    found = translate(domains(domain("timestamp(3) with time zone", ranges=[single(millis)])))
    assert found.expression.literals[0].value == millis * 1000  # type: ignore[attr-defined]
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
    assert expression(node)[1] == (TOO_DEEP,)
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
        (domains(domain("decimal(3,0)", ranges=[single(str(2**127))])), "is no decimal"),
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


TIMESTAMPS = ("timestamp({})", "timestamp({}) with time zone")


@pytest.mark.parametrize("name", TIMESTAMPS)
@pytest.mark.parametrize("digits", range(13))
def test_24_a_cast_to_fewer_digits_of_a_second_rounds(name: str, digits: int) -> None:
    column = {"column": "t", "type": name.format(6)}
    cast = call("$cast", column, type=name.format(digits))
    value: Any = 1_700_000_000_000 if "zone" in name else 1_700_000_000_000_000
    if digits > (3 if "zone" in name else 6):
        value = f"{value}.000000000" if "zone" in name else f"{value}.000000"
    text, dropped = expression(call("$less_than", cast, const(value, cast["type"])))
    assert (dropped == ()) is (digits >= 6)
    assert ('"t" < ' in text) is (digits >= 6)


@pytest.mark.parametrize("source", ["timestamp(6)", "timestamp(6) with time zone", "date"])
def test_24_a_cast_between_zones_depends_on_the_session(source: str) -> None:
    for target in ("timestamp(6)", "timestamp(6) with time zone", "date", "uuid"):
        cast = call("$cast", {"column": "t", "type": source}, type=target)
        text = expression(call("$is_null", cast))[0]
        transparent = source == target or (source, target) == ("date", "timestamp(6)")
        assert (text == '"t" IS NULL') is transparent, target


def test_24_a_cast_to_a_type_without_counterpart_and_back_is_none() -> None:
    inner = call("$cast", S, type="uuid")
    outer = call("$cast", inner, type="ipaddress")
    assert len(expression(call("$is_null", outer))[1]) == 1


F = {"column": "f", "type": "real"}


def never(node: Any, values: list[float]) -> bool:
    """Whether a file of these values is left out, and nothing is claimed of all its rows."""
    found = translate(json.dumps({"version": 1, "expression": node}))
    field = Field("f", FLOAT)
    bound = bind(found.expression, [field], [], TRINO)
    rows = [{("f",): value} for value in values]
    table = Table((field,), {("f",): FLOAT}, {}, [rows])
    answers = prune(bound, Statistics(table), TRINO)
    assert not answers.always[0], format(found.expression)
    return bool(answers.never[0])


ZEROS = ("0.0", "-0.0")
NAN = float("nan")


@pytest.mark.parametrize("zero", ZEROS)
def test_26_lists_of_reals_may_compare_zeros_by_bits(zero: str) -> None:
    several = call("$array", const("5.0", "real"), const(zero, "real"), type="array(real)")
    among = call("$in", F, several)
    assert not never(call("$not", among), [0.0, -0.0])
    assert never(call("$not", among), [5.0])
    assert not never(among, [0.0]) and not never(among, [-0.0])
    assert never(among, [1.0, 2.0])
    for name in ("$identical", "$is_distinct_from"):
        assert not never(call(name, F, const(zero, "real")), [0.0])
    assert never(call("$identical", F, const(zero, "real")), [1.0])


def test_26_lists_of_reals_may_find_nan() -> None:
    several = call("$array", const("5.0", "real"), const("NaN", "real"), type="array(real)")
    among = call("$in", F, several)
    assert not never(among, [NAN]) and not never(call("$not", among), [NAN])
    assert never(among, [1.0])


@pytest.mark.parametrize("zero", ZEROS)
def test_26_a_domain_of_reals_may_become_a_list(zero: str) -> None:
    def left_out(*ranges: dict[str, Any], values: list[float]) -> bool:
        entry = domain("real", ranges=list(ranges)) | {"column": "f"}
        found = translate(domains(entry))
        assert not found.exact
        field = Field("f", FLOAT)
        rows = [{("f",): value} for value in values]
        known = Statistics(Table((field,), {("f",): FLOAT}, {}, [rows]))
        answers = prune(bind(found.expression, [field], [], TRINO), known, TRINO)
        assert not answers.always[0]
        return bool(answers.never[0])

    for values in ([0.0], [-0.0]):
        assert not left_out(single(zero), values=values)
        assert not left_out(below(zero), {**above(zero), **below("5.0")}, values=values)
    assert left_out(single(zero), values=[1.0])
    assert left_out(below(zero), {**above(zero), **below("5.0")}, values=[5.0])
