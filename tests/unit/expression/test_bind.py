"""Binding: names, literals of other types, and what the engines disagree about."""

from __future__ import annotations

import math

import pytest

from bridge.expression.bind import bind
from bridge.expression.builders import (
    and_,
    between,
    eq,
    ge,
    gt,
    in_,
    is_nan,
    is_null,
    le,
    lt,
    ne,
    not_,
    not_in,
    null_safe_eq,
    null_safe_ne,
    or_,
    starts_with,
)
from bridge.expression.fold import is_exact
from bridge.expression.format import format_bound
from bridge.expression.nodes import BoundOr, BoundPredicate, Expression, Unknown
from bridge.expression.parsing.text import parse_where
from bridge.kernel.errors import AmbiguousColumn, ColumnNotFound, InvalidPredicate
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    HIVE,
    INTEGER,
    SPARK,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    TRINO,
    Field,
    char,
    decimal,
    struct,
    varchar,
)

COLUMNS = [
    Field("i", INTEGER),
    Field("t", TINYINT),
    Field("l", BIGINT),
    Field("f", FLOAT),
    Field("d", DOUBLE),
    Field("dec", decimal(10, 2)),
    Field("b", BOOLEAN),
    Field("s", STRING),
    Field("v", varchar(5)),
    Field("c", char(3)),
    Field("bin", BINARY),
    Field("day", DATE),
    Field("ts", TIMESTAMP),
    Field("tz", TIMESTAMP_TZ),
    Field("st", struct(Field("A", INTEGER), Field("in", struct(Field("x", STRING))))),
    Field("st.a", STRING),
]
KEYS = [Field("month", INTEGER)]


def bound(expression: Expression, semantics=TRINO, **options) -> str:
    tree = bind(expression, COLUMNS, KEYS, semantics, **options)
    return format_bound(tree) + ("" if is_exact(tree) else " ~")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (gt("i", 55, decimal(2, 1)), "i >= 6"),
        (lt("i", 55, decimal(2, 1)), "i <= 5"),
        (eq("i", 55, decimal(2, 1)), "false"),
        (ne("i", 55, decimal(2, 1)), "i IS NOT NULL"),
        (eq("i", 50, decimal(2, 1)), "i = 5"),
        (lt("i", 2**40), "i IS NOT NULL"),
        (gt("i", 2**40), "false"),
        (eq("i", 2**40), "false"),
        (le("i", 2**31 - 1), "i IS NOT NULL"),
        (lt("t", -128), "false"),
        (ge("i", float("-inf")), "i IS NOT NULL"),
        (gt("i", 5.5), "i >= 6"),
        (eq("l", 2.0**53), "l >= 9007199254740991 AND l <= 9007199254740994 ~"),
        (eq("dec", 15, decimal(2, 1)), "dec = 1.50"),
        (gt("dec", 1501, decimal(4, 3)), "dec >= 1.51"),
        (eq("dec", 3), "dec = 3.00"),
        (eq("dec", 0.1), "dec = 0.10 ~"),
        (le("dec", 9999999999, decimal(10, 2)), "dec <= 99999999.99"),
        (gt("dec", 9999999999, decimal(10, 2)), "dec > 99999999.99"),
        (eq("f", 0.5), "f = 0.5"),
        (gt("f", 0.1), "f >= 0.099999994 ~"),
        (eq("d", -0.0), "d = 0.0"),
        (eq("b", True), "b = true"),
        (lt("b", False), "false"),
        (eq("b", 1), "true ~"),
        (eq("s", 1), "true ~"),
        (eq("i", "1"), "true ~"),
        (eq("bin", b"\xff", BINARY), "bin = 0xff"),
        (eq("c", "z"), "true ~"),
        (is_null("c"), "c IS NULL"),
        (eq("day", "2024-03-01"), "day = 2024-03-01"),
        (lt("day", "yesterday"), "true ~"),
        (lt("day", 19783 * 86_400_000_000 + 1, TIMESTAMP), "day <= 2024-03-01"),
        (ge("ts", 19783, DATE), "ts >= 2024-03-01 00:00:00"),
        (ge("ts", "2024-03-01 10:00:00.5"), "ts >= 2024-03-01 10:00:00.5"),
        (ge("tz", 5, TIMESTAMP), "true ~"),
        (ge("tz", 0, TIMESTAMP_TZ), "tz >= 1970-01-01 00:00:00 UTC"),
        (starts_with("s", "ab"), "s LIKE 'ab%'"),
        (starts_with("s", ""), "s IS NOT NULL"),
        (starts_with("c", "ab"), "true ~"),
        (not_(starts_with("v", "ab")), "v NOT LIKE 'ab%'"),
    ],
)
def test_literals_are_converted_exactly(expression: Expression, expected: str) -> None:
    assert bound(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (eq("dec", 10**9), "dec > 99999999.99 ~"),
        (eq("dec", -1e30), "dec < -99999999.99 ~"),
        (ne("dec", 10**9), "dec IS NOT NULL ~"),
        (gt("dec", 1e30), "dec > 99999999.99 ~"),
        (ge("dec", -(10**9)), "dec IS NOT NULL ~"),
        (lt("dec", 10**9), "dec IS NOT NULL ~"),
        (lt("dec", -(10**9)), "dec < -99999999.99 ~"),
        (lt("dec", math.inf), "dec IS NOT NULL ~"),
        (gt("dec", math.inf), "false"),
        (in_("dec", [1, 10**9]), "dec = 1.00 OR (dec > 99999999.99) ~"),
        (not_in("dec", [1, 10**9]), "dec <> 1.00 ~"),
        (eq("dec", 10**12 + 5, decimal(13, 3)), "false"),
    ],
)
def test_10_files_may_hold_more_digits_than_a_decimal_declares(
    expression: Expression, expected: str
) -> None:
    """Such a value is known by the file's bounds alone."""
    assert bound(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (eq("i", None), "false"),
        (not_(eq("i", None)), "false"),
        (not_(gt("i", None)), "false"),
        (null_safe_eq("i", None), "i IS NULL"),
        (null_safe_ne("i", None), "i IS NOT NULL"),
        (null_safe_eq("i", 5), "i = 5"),
        (null_safe_ne("i", 5), "i IS NULL OR i <> 5"),
        (in_("i", [3, None, 1, 3]), "i IN (1, 3)"),
        (not_in("i", [3, None]), "false"),
        (not_in("i", [3, 2**40]), "i <> 3"),
        (in_("i", [2**40]), "false"),
    ],
)
def test_rule_06_null_literals(expression: Expression, expected: str) -> None:
    assert bound(expression) == expected


NAN = float("nan")


@pytest.mark.parametrize(
    ("expression", "ieee", "largest"),
    [
        (eq("d", NAN), "false", "d IS NAN"),
        (ne("d", NAN), "d IS NOT NULL", "d IS NOT NAN"),
        (gt("d", NAN), "false", "false"),
        (ge("d", NAN), "false", "d IS NAN"),
        (lt("d", NAN), "false", "d IS NOT NAN"),
        (le("d", NAN), "false", "d IS NOT NULL"),
        (null_safe_eq("d", NAN), "d IS NAN", "d IS NAN"),
        (in_("d", [1.0, NAN]), "d = 1.0", "d = 1.0 OR d IS NAN"),
        (not_in("d", [1.0, NAN]), "d <> 1.0", "d <> 1.0 AND d IS NOT NAN"),
        (not_(gt("d", 5.0)), "d <= 5.0 OR d IS NAN", "d <= 5.0"),
        (not_(gt("i", 5)), "i <= 5", "i <= 5"),
        (not_(gt("d", NAN)), "d IS NOT NULL", "d IS NOT NULL"),
        (is_nan("i"), "false", "false"),
    ],
)
def test_rule_01_nan_literals(expression: Expression, ieee: str, largest: str) -> None:
    assert (bound(expression, TRINO), bound(expression, HIVE)) == (ieee, largest)


def test_rule_14_names_resolve_once_to_a_path() -> None:
    assert bound(eq(("ST", "a"), 5)) == "st.A = 5"
    assert bound(eq(("st", "in", "X"), "y")) == "st.in.x = 'y'"
    assert bound(eq("st.a", "text")) == "\"st.a\" = 'text'"
    tree = bind(eq("MONTH", 3), COLUMNS, KEYS, TRINO)
    assert tree.reference.partition and tree.reference.path == ("month",)  # type: ignore[attr-defined]
    with pytest.raises(ColumnNotFound, match="did you mean month"):
        bound(eq("mnth", 3))
    with pytest.raises(ColumnNotFound, match="it has no fields"):
        bound(eq(("i", "x"), 3))
    many = [Field(n, INTEGER) for n in ("_hoodie_file_name", "$path", *"bcefghijk")]
    with pytest.raises(ColumnNotFound) as problem:
        bind(eq("zzz", 3), many, [Field("day", INTEGER)], TRINO)
    names = "there are b, c, e, f, g, h, i, j, k, day and 2 more"
    assert problem.value.hint == f"{names}; if zzz is a text, write 'zzz'"
    with pytest.raises(ColumnNotFound) as problem:
        bind(eq(("zzz", "y"), 3), many, [], TRINO)
    assert "text" not in problem.value.hint
    with pytest.raises(ColumnNotFound) as problem:
        bind(eq("it's", 3), many, [], TRINO)
    assert problem.value.hint.endswith("if it's is a text, write 'it''s'")
    twins = [Field("a", INTEGER), Field("A", INTEGER)]
    with pytest.raises(AmbiguousColumn, match="a, A"):
        bind(eq("a", 3), twins, [], TRINO)
    assert bind(eq("A", 3), twins, [], TRINO, case_sensitive=True).reference.path == ("A",)  # type: ignore[attr-defined]


def test_25_hive_reads_a_text_without_seconds_otherwise() -> None:
    for text in ("2024-03-01 10:00", "2024-03-01T10:00"):
        assert bound(eq("ts", text), SPARK) == "ts = 2024-03-01 10:00:00"
        assert bound(eq("ts", text), HIVE) == "true ~"
        assert bound(eq("ts", f"{text}:00"), HIVE) == "ts = 2024-03-01 10:00:00"
        with pytest.raises(InvalidPredicate, match="is a timestamp, and"):
            bound(eq("ts", text), HIVE, strict=True)


def test_m2_weakening_comes_after_not() -> None:
    unknown = Unknown("f(x)")
    assert bound(and_(eq("i", 5), unknown)) == "i = 5 ~"
    assert bound(or_(eq("i", 5), unknown)) == "true ~"
    assert bound(not_(and_(eq("i", 5), unknown))) == "true ~"
    assert bound(not_(or_(eq("i", 5), unknown))) == "i <> 5 ~"


@pytest.mark.parametrize(
    "where",
    [
        "ts = DATE '294248-01-01'",
        "ts <> DATE '-290309-01-01'",
        "ts IN (DATE '9999999-01-01')",
        "ts > '9999999-01-01'",
        "ts < TIMESTAMP '9999999-01-01 00:00:00'",
        "date_trunc('day', ts) = DATE '9999999-01-01'",
        "tz = TIMESTAMP '9999999-01-01 00:00:00 UTC'",
    ],
)
def test_24_a_time_beyond_64_bits_keeps_and_fails_nothing(where: str) -> None:
    """Trino casts such a date to the last time there is, which a row may hold."""
    expression, dropped = parse_where(where, "trino")
    assert not dropped
    columns = [Field("ts", TIMESTAMP), Field("tz", TIMESTAMP_TZ)]
    bound = bind(expression, columns, [], TRINO)
    assert not is_exact(bound)
    assert format_bound(bound) == "true"


def test_ranges_and_lists_over_one_column_merge() -> None:
    assert bound(and_(gt("i", 3), ge("i", 3), lt("i", 9), le("i", 7))) == "i > 3 AND i <= 7"
    assert bound(and_(gt("i", 9), lt("i", 3))) == "false"
    assert bound(and_(ge("i", 3), le("i", 3))) == "i = 3"
    assert bound(and_(in_("i", [1, 2, 3]), gt("i", 1), ne("i", 3))) == "i = 2"
    assert bound(and_(between("i", 1, 9), not_in("i", [5, 20]))) == "i >= 1 AND i <= 9 AND i <> 5"
    assert bound(or_(eq("i", 1), in_("i", [2, 3]), eq("l", 1))) == "i IN (1, 2, 3) OR l = 1"
    assert bound(and_(is_null("i"), gt("i", 5))) == "false"
    assert bound(and_(not_(is_null("i")), gt("i", 5))) == "i > 5"


def test_a_long_chain_of_equalities_becomes_one_list() -> None:
    """In time that grows with the chain, not with its square."""
    many = [eq("i", value) for value in range(5_000)]
    either = bind(or_(eq("l", 1), *many), COLUMNS, [], TRINO)
    assert isinstance(either, BoundOr)
    assert [len(p.values) for p in either.children if isinstance(p, BoundPredicate)] == [1, 5_000]
    none = bind(and_(*map(not_, many)), COLUMNS, [], TRINO)
    assert isinstance(none, BoundPredicate) and len(none.values) == 5_000


def test_text_typed_by_a_user_is_checked() -> None:
    with pytest.raises(InvalidPredicate, match="'1 March'"):
        bound(ge("day", "1 March"), strict=True)
    assert bound(ge("day", "1 March")) == "true ~"


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("n > 'abc'", "is int, and 'abc' is a text"),
        ("n IN (1, '2')", "is int, and '2' is a text"),
        ("s = 5", "is string, compared with a"),
        ("d > 'soon'", "is a date, and 'soon' is none"),
    ],
)
def test_typed_text_that_cannot_be_compared_is_an_error(where: str, words: str) -> None:
    fields = [Field("n", INTEGER), Field("s", STRING), Field("d", DATE)]
    predicate, _ = parse_where(where)
    with pytest.raises(InvalidPredicate, match=words):
        bind(predicate, fields, [], TRINO, strict=True)
    # From an engine the same comparison is kept: it prunes nothing.
    bind(predicate, fields, [], TRINO)
