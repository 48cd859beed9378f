"""WHERE clauses in three dialects: what they become, and that their text parses back."""

from __future__ import annotations

import random

import pytest

from bridge.expression.nodes import And, Not, Or, Predicate, Unknown
from bridge.expression.parsing.calendar import (
    civil_from_days,
    format_date,
    parse_date,
    parse_timestamp,
)
from bridge.expression.parsing.text import DIALECTS, format, parse_where
from bridge.kernel.errors import InvalidPredicate
from bridge.kernel.types import TIMESTAMP_TZ


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 5", '"a" > 5'),
        ("WHERE 5 < a", '"a" > 5'),
        ("-5 <= a", '"a" >= -5'),
        ("a = -9223372036854775808", '"a" = -9223372036854775808'),
        ("a != 3 AND a <> 4 AND b IS NOT NULL", '"a" <> 3 AND "a" <> 4 AND "b" IS NOT NULL'),
        ("a BETWEEN 1 AND 2", '"a" >= 1 AND "a" <= 2'),
        ("a NOT BETWEEN 1 AND 2", 'NOT ("a" >= 1 AND "a" <= 2)'),
        ("a IN (1, NULL)", '"a" IN (1, NULL)'),
        ("a NOT IN (1, 2)", '"a" NOT IN (1, 2)'),
        ("a IS NOT DISTINCT FROM 5", '"a" IS NOT DISTINCT FROM 5'),
        ("a IS DISTINCT FROM NULL", '"a" IS DISTINCT FROM NULL'),
        ("f IS TRUE", '"f" IS NOT DISTINCT FROM true'),
        ("f IS NOT FALSE", 'NOT ("f" IS NOT DISTINCT FROM false)'),
        ("f AND NOT g", '"f" = true AND (NOT ("g" = true))'),
        ("st.a.b = 'x'", '"st"."a"."b" = \'x\''),
        ("day >= DATE '2024-03-01'", "\"day\" >= DATE '2024-03-01'"),
        ("x = CAST('1.5' AS DECIMAL(10,2))", "\"x\" = CAST('1.50' AS DECIMAL(10,2))"),
        ("x = DECIMAL '1.50'", "\"x\" = CAST('1.50' AS DECIMAL(3,2))"),
        ("x < 1e3", '"x" < 1000.0E0'),
        ("x = 1.5", '"x" = %s'),
        ("s LIKE 'ab%'", "starts_with(\"s\", 'ab')"),
        ("s NOT LIKE 'ab%'", "NOT starts_with(\"s\", 'ab')"),
        ("s LIKE 'ab'", "\"s\" LIKE 'ab'"),
        ("s NOT LIKE 'a!%!!' ESCAPE '!'", "\"s\" NOT LIKE 'a!%!!' ESCAPE '!'"),
        ("s LIKE '%'", "starts_with(\"s\", '')"),
        ("s LIKE 'a!%%' ESCAPE '!'", "starts_with(\"s\", 'a%')"),
        ("s = 'it''s 😀'", "\"s\" = 'it''s 😀'"),
        ("1 = 1", "true"),
    ],
)
def test_what_all_dialects_share(dialect: str, text: str, expected: str) -> None:
    if "%s" in expected:
        expected %= "1.5E0" if dialect == "hive" else "CAST('1.5' AS DECIMAL(2,1))"
    if "''s" in text and dialect != "trino":
        text = text.replace("''", "\\'")
    parsed, dropped = parse_where(text, dialect)
    assert (format(parsed), dropped) == (expected, ())
    assert parse_where(format(parsed)) == (parsed, ())


@pytest.mark.rule("24")
@pytest.mark.parametrize(
    ("literal", "dialects"),
    [
        ("CAST('2020-01-01 00:00:00.6' AS TIMESTAMP(0))", "trino"),
        ("CAST(TIMESTAMP '2020-01-01 00:00:00.6' AS TIMESTAMP(0))", "trino"),
        ("CAST('2020-01-01 00:00:00.123456' AS TIMESTAMP)", "trino"),
        ("CAST('2020-01-01 00:00:00.1234 UTC' AS TIMESTAMP WITH TIME ZONE)", "trino"),
        ("CAST('2020-01-01 00:00:00+05:00' AS TIMESTAMP)", "trino hive"),
        ("CAST('1.55' AS DECIMAL)", "trino hive spark"),
        ("CAST('ab' AS CHAR)", "trino"),
        ("CAST('1_0' AS DOUBLE)", "trino hive spark"),
    ],
)
def test_a_cast_that_changes_a_literal_is_not_passed_over(literal: str, dialects: str) -> None:
    for dialect in dialects.split():
        assert len(parse_where(f"a = {literal}", dialect)[1]) == 1


@pytest.mark.parametrize(
    ("literal", "dialects", "expected"),
    [
        ("CAST('2020-01-01 00:00:00.123' AS TIMESTAMP)", "trino", "TIMESTAMP '{}.123'"),
        ("CAST('2020-01-01 00:00:00.123456' AS TIMESTAMP(6))", "trino", "TIMESTAMP '{}.123456'"),
        ("CAST('2020-01-01 00:00:00.123456' AS TIMESTAMP)", "hive spark", "TIMESTAMP '{}.123456'"),
        ("CAST('2020-01-01 00:00:00Z' AS TIMESTAMP)", "spark", "TIMESTAMP '{} UTC'"),
        ("CAST(5 AS DECIMAL)", "spark hive", "CAST('5' AS DECIMAL(10,0))"),
    ],
)
def test_a_cast_that_changes_nothing_is_a_literal(
    literal: str, dialects: str, expected: str
) -> None:
    for dialect in dialects.split():
        parsed, dropped = parse_where(f"a = {literal}", dialect)
        assert not dropped
        assert format(parsed) == f'"a" = {expected.format("2020-01-01 00:00:00")}'


def test_names_are_quoted_as_the_dialect_says() -> None:
    assert format(parse_where('"A b" = 1')[0]) == '"A b" = 1'
    assert format(parse_where("`A b` = 1", "hive")[0]) == '"A b" = 1'
    assert format(parse_where("`$path` = 'x'", "spark")[0]) == "\"$path\" = 'x'"


def test_rule_07_the_default_escape_differs() -> None:
    assert format(parse_where(r"s LIKE 'x\_y%'", "hive")[0]) == "starts_with(\"s\", 'x_y')"
    parsed, dropped = parse_where(r"s LIKE 'x\_y%'", "trino")
    assert format(parsed.children[0]) == "starts_with(\"s\", 'x\\')"  # type: ignore[attr-defined]
    assert not dropped
    assert len(parse_where(r"s LIKE 'x\_y%z'", "hive")[1]) == 1  # Hive's regular expressions differ


@pytest.mark.parametrize(
    "text",
    [
        "reverse(s) = 'X'",
        "a IN (SELECT 1)",
        "a / 3 = 2",
        "s ILIKE 'x%'",
        "s LIKE ANY ('x', 'y')",
        "a BETWEEN SYMMETRIC 5 AND 2",
        "CAST(a AS DOUBLE) = 5",
        "a = b",
        "EXISTS (SELECT 1)",
        "CASE WHEN a = 1 THEN true ELSE false END",
    ],
)
def test_m2_what_is_not_expressed_is_named_and_stays_in_place(text: str) -> None:
    parsed, dropped = parse_where(text)
    assert isinstance(parsed, Unknown) and dropped == (parsed.text,)
    parsed, _ = parse_where(f"NOT ({text} AND b = 1)")
    assert isinstance(parsed, Not)
    parsed, _ = parse_where(f"{text} OR b = 1")
    assert isinstance(parsed, Or) and isinstance(parsed.children[0], Unknown)


def test_like_with_a_tail_keeps_its_prefix() -> None:
    for text in ("s LIKE 'x%y'", "s LIKE 'x_'"):
        parsed, dropped = parse_where(text)
        assert format(parsed).startswith('starts_with("s", \'x\') AND like("s", \'x')
        assert not dropped
    assert len(parse_where("s LIKE 'x!y%z' ESCAPE '!'")[1]) == 1  # no engine takes it
    assert isinstance(parse_where("s NOT LIKE 'x%y'")[0], Not)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("a =", "line 1, column 3"),
        ("a = 1; DROP TABLE x", "near 'DROP'"),
        ("a = 1 ORDER BY b", "near 'ORDER BY'"),
        ("a = 'x", "does not parse"),
        ("(" * 50_000 + "a = 1", "nested too deeply|does not parse"),
        ("SELECT 1", "does not parse"),
        ("count(*) > 3", r"COUNT\(\*\) needs several rows"),
        ("a = 1 OR NOT (b > 2 AND sum(c) > max(d) + 1)", r"(SUM|MAX)\(.\) needs several rows"),
        ("x" * 2_000_000, "2000000 characters"),
        ("s = 'a\ud800'", "half of a character"),
        ("s LIKE '\udfff%' OR s IN ('a', '\ud800')", "half of a character"),
    ],
)
def test_what_does_not_parse_is_refused_with_its_place(text: str, words: str) -> None:
    with pytest.raises(InvalidPredicate, match=words):
        parse_where(text)


@pytest.mark.parametrize(
    ("text", "last"),
    [("m =", "="), ("m >= ", ">="), ("m LIKE", "LIKE"), ("n = 1 and\n", "and"), ("n + ", "+")],
)
def test_a_condition_that_ends_too_early_is_told_where(text: str, last: str) -> None:
    with pytest.raises(InvalidPredicate) as refused:
        parse_where(text)
    assert refused.value.hint.startswith(f"the condition ends after {last}: complete it")


@pytest.mark.parametrize("text", ["m = 'x", "(m = 1", "= 3", "m = = 1"])
def test_a_condition_that_is_wrong_otherwise_is_not_told_to_end(text: str) -> None:
    with pytest.raises(InvalidPredicate) as refused:
        parse_where(text)
    assert "single quotes" in refused.value.hint


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "condition",
    ["a = {}", "a = -{}", "a + {} = 5", "a = CAST('{}' AS BIGINT)", "a = CAST(1 AS DECIMAL({},0))"],
)
def test_numbers_of_any_length_are_answered(dialect: str, condition: str) -> None:
    assert len(parse_where(condition.format("9" * 5000), dialect)[1]) == 1
    if condition == "a = {}":
        assert format(parse_where("a = " + "0" * 5000 + "7", dialect)[0]) == '"a" = 7'


@pytest.mark.parametrize("digits", ["9" * 5000, "a"])
def test_no_number_of_digits_is_no_error_of_python(digits: str) -> None:
    for literal in ("2020-01-01 00:00:00.5", "2020-01-01 00:00:00"):
        text = f"a = CAST('{literal}' AS TIMESTAMP({digits}))"
        assert (len(parse_where(text)[1]) == 1) is literal.endswith(".5")


def test_a_long_chain_is_no_deep_one() -> None:
    parsed, _ = parse_where(" OR ".join(f"a = {i}" for i in range(3000)))
    assert len(parsed.children) == 3000  # type: ignore[attr-defined]


def test_the_calendar_reaches_every_year() -> None:
    rng = random.Random(5)
    for days in (
        0,
        -1,
        -719_528,
        2**31 - 1,
        -(2**31),
        *(rng.randint(-(10**6), 10**6) for _ in range(2000)),
    ):
        assert parse_date(format_date(days)) == days
    assert civil_from_days(-719_468) == (0, 3, 1)
    assert [parse_date(t) for t in ("2023-02-29", "2024-13-01", "24-01-01", "x")] == [None] * 4
    assert parse_timestamp("1969-12-31T23:59:59.999999") == -1
    assert [parse_timestamp(t) for t in ("2024-01-01 25:00", "2024-01-01 10:00:00.1234567")] == [
        None
    ] * 2


def test_faults_of_the_parser_are_told_as_errors() -> None:
    with pytest.raises(InvalidPredicate, match="does not parse"):
        parse_where("x = map(1)", "hive")
    with pytest.raises(InvalidPredicate, match="does not parse"):
        parse_where("x = 1; y = 2")


def test_dropped_parts_are_told_as_they_were_written() -> None:
    assert parse_where("a[1][2] = 3")[1] == ("a[1][2] = 3",)
    assert parse_where("x = array[1, array[2]]")[1] == ("x = ARRAY[1, ARRAY[2]]",)
    typed = parse_where("t = timestamp(3) with time zone '2024-01-01 00:00:00 UTC'")[0]
    assert isinstance(typed, Predicate) and typed.literals[0].type == TIMESTAMP_TZ
    assert parse_where("d = decimal(5, 2) '1.50'")[1] == ()


def test_a_truth_of_a_truth_is_one() -> None:
    nested, dropped = parse_where("((x = 1) is true) is true")
    assert isinstance(nested, And) and nested.children[0] == parse_where("x = 1")[0]
    assert len(dropped) == 1
