"""Functions of columns in the plainest way there is, a row at a time, for the laws."""

from __future__ import annotations

import datetime as dt
import random
from typing import Any

from bridge.expression.function_catalog import call
from bridge.expression.nodes import Call, Expression, Literal, Op, Predicate, Reference
from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INTEGER,
    INTEGER_RANGE,
    STRING,
    TIMESTAMP,
    Kind,
    Type,
)
from tests.support.strategies import Table, value

EPOCH = dt.datetime(1970, 1, 1)
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute")
TEXT = (Kind.STRING, Kind.VARCHAR)
TIMES = (Kind.DATE, Kind.TIMESTAMP)
INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)


def random_call(
    rng: random.Random, path: tuple[str, ...], kind: Type, pool: list[Any]
) -> Call | None:
    """A function that is defined for a column; None for a type that has none.

    Args:
        pool: values of the column, which patterns are made of.
    """
    column = Reference(path)
    found: Call | None = None
    if kind.kind in TEXT:
        if rng.random() < 0.4:
            pattern = _pattern(rng) if rng.random() < 0.4 else _pattern_of(rng, pool)
            return call("like", [column, Literal(pattern, STRING)])
        found = call(rng.choice(("lower", "upper")), [column])
        if rng.random() < 0.5:
            inner: Any = column if rng.random() < 0.5 or found is None else found
            numbers = [Literal(n, BIGINT) for n in rng.choice(((1, 1), (2,), (1, 2)))]
            found = call("substring", [inner, *numbers])
    elif kind.kind in TIMES:
        name = rng.choice(("year", "quarter", "month", "day", "date_trunc", "date_trunc"))
        if kind.kind is Kind.TIMESTAMP and rng.random() < 0.2:
            name = rng.choice(("hour", "minute"))
        unit = Literal(rng.choice(_UNITS).encode(), STRING)
        found = call(name, [unit, column] if name == "date_trunc" else [column])
    elif kind.kind in INTEGERS:
        name = rng.choice(("add", "subtract", "multiply", "modulus"))
        found = call(name, [column, Literal(rng.choice((-3, 1, 2, 10)), BIGINT)])
    return found


def apply(asked: Call, given: Any, kind: Type) -> tuple[Any, Type]:
    """Its value of a column's value, and the type of it.

    Where engines disagree one of their answers is taken: a law that holds of any holds of it too.
    """
    inner = asked.arguments[0]
    if isinstance(inner, Call):
        given, kind = apply(inner, given, kind)
    constants = [a.value for a in asked.arguments if isinstance(a, Literal)]
    result = _result(asked.function, kind)
    if given is None:
        return None, result
    match asked.function:
        case "lower":
            return given.decode("utf-8", "surrogatepass").lower().encode(), result
        case "upper":
            return given.decode("utf-8", "surrogatepass").upper().encode(), result
        case "like":
            return _like(given.decode(), constants[0].decode()), result
        case "substring":
            text = given.decode()
            begin = constants[0] - 1
            end = len(text) if len(constants) == 1 else begin + constants[1]
            return text[begin:end].encode(), result
        case "add":
            return _wrapped(given + constants[0], kind), result
        case "subtract":
            return _wrapped(given - constants[0], kind), result
        case "multiply":
            return _wrapped(given * constants[0], kind), result
        case "modulus":
            sign = -1 if given < 0 else 1
            return sign * (abs(given) % abs(constants[0])), result
    return _time(asked.function, given, kind, constants), result


def _pattern(rng: random.Random) -> bytes:
    parts = ("%", "%", "_", "\\%", "\\_", "\\\\", "\\\\", "a", "b", "z", "é", "\n", "\U0001f600")
    return "".join(rng.choice(parts) for _ in range(rng.choice((0, 1, 2, 2, 3, 4)))).encode()


def _pattern_of(rng: random.Random, pool: list[Any]) -> bytes:
    """A pattern that a value of the pool matches; rather one with something to escape."""
    texts = [text.decode("utf-8", "surrogatepass") for text in pool]
    awkward = [t for t in texts if set(t) & set("\\%_")]
    text = rng.choice(awkward if awkward and rng.random() < 0.7 else texts)
    begin = rng.choice((0, 0, rng.randint(0, len(text))))
    end = rng.choice((len(text), rng.randint(begin, len(text))))
    parts = ["_" if rng.random() < 0.1 else f"\\{c}" if c in "\\%_" else c for c in text[begin:end]]
    head = "%" if begin or rng.random() < 0.4 else ""
    tail = "%" if end < len(text) or rng.random() < 0.4 else ""
    return "".join((head, *parts, tail)).encode()


def _like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(_like(text[i:], rest) for i in range(len(text) + 1))
    if first == "\\":
        first, rest = rest[0], rest[1:]
    elif first == "_" and text:
        return _like(text[1:], rest)
    return text[:1] == first and _like(text[1:], rest)


def _wrapped(number: int, kind: Type) -> int:
    """Beyond the column's own width, as Hive has it; Trino fails, or is wider."""
    least, greatest = INTEGER_RANGE[kind.kind]
    return (number - least) % (greatest - least + 1) + least


def _result(name: str, kind: Type) -> Type:
    if name in ("lower", "upper", "substring"):
        return STRING
    if name == "like":
        return BOOLEAN
    if name == "date_trunc":
        return DATE if kind.kind is Kind.DATE else TIMESTAMP
    return BIGINT


def _time(name: str, given: Any, kind: Type, constants: list[Any]) -> Any:
    days = kind.kind is Kind.DATE
    try:
        moment = EPOCH + (dt.timedelta(days=given) if days else dt.timedelta(microseconds=given))
    except OverflowError:
        return 0  # beyond what Python knows; no engine says anything else that can be told here
    match name:
        case "year":
            return moment.year
        case "quarter":
            return (moment.month + 2) // 3
        case "month":
            return moment.month
        case "day":
            return moment.day
        case "hour":
            return moment.hour
        case "minute":
            return moment.minute
    unit = constants[0].decode()
    start = moment.replace(second=0, microsecond=0)
    if unit != "minute":
        start = start.replace(minute=0)
    if unit not in ("minute", "hour"):
        start = start.replace(hour=0)
    try:
        if unit == "week":
            start -= dt.timedelta(days=start.weekday())
    except OverflowError:
        return 0
    if unit in ("month", "quarter", "year"):
        start = start.replace(day=1)
    if unit == "quarter":
        start = start.replace(month=(start.month - 1) // 3 * 3 + 1)
    if unit == "year":
        start = start.replace(month=1)
    delta = start - EPOCH
    return delta.days if days else delta // dt.timedelta(microseconds=1)


def random_predicate(rng: random.Random, table: Table, calls: dict[Call, Type]) -> Expression:
    """A predicate over one of some calls, often true of some row."""
    asked, kind = rng.choice(list(calls.items()))
    path = _column(asked)
    result = apply(asked, None, kind)[1]

    def literal() -> Literal:
        if rng.random() < 0.75:
            return Literal(apply(asked, rng.choice(table.pools[path]), kind)[0], result)
        if rng.random() < 0.1:
            return Literal(None, result)
        return Literal(value(rng, INTEGER if result == BIGINT else result), result)

    if rng.random() < 0.1:
        return Predicate(rng.choice((Op.IS_NULL, Op.IS_NOT_NULL)), asked)
    if rng.random() < 0.2:
        many = tuple(literal() for _ in range(rng.choice((1, 2, 5))))
        return Predicate(rng.choice((Op.IN, Op.NOT_IN)), asked, many)
    if result == STRING and rng.random() < 0.3:
        start = literal().value or b""
        assert isinstance(start, bytes)
        prefix = Literal(start[:1] if start[:1].isascii() else start, STRING)
        return Predicate(rng.choice((Op.STARTS_WITH, Op.NOT_STARTS_WITH)), asked, (prefix,))
    ops = (Op.EQ, Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.NULL_SAFE_EQ, Op.NULL_SAFE_NE)
    return Predicate(rng.choice(ops), asked, (literal(),))


def _column(asked: Call) -> tuple[str, ...]:
    inner = asked.arguments[0]
    assert isinstance(inner, Reference)
    return _column(inner) if isinstance(inner, Call) else inner.path
