"""Years and days of a column as ranges of it: row by row the same, NULL included."""

from __future__ import annotations

import random

import pytest

from bridge.expression.evaluate import Oracle
from bridge.expression.function_catalog import call
from bridge.expression.nodes import Call, Literal, Op, Predicate, Reference
from bridge.expression.parsing.calendar import civil_from_days, days_from_civil
from bridge.expression.unwrap import unwrap
from bridge.kernel.types import BIGINT, DATE, STRING, TIMESTAMP, TIMESTAMP_TZ, TRINO, Type, Value
from tests.support.functions import apply

X = Reference(("x",))
DAY = 86_400_000_000
OPS = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.IN)


def made(name: str, *arguments: Reference | Literal) -> Call:
    found = call(name, arguments)
    assert found is not None
    return found


CALLS = [
    made("year", X),
    *(made("date_trunc", Literal(u, STRING), X) for u in (b"hour", b"day", b"month", b"year")),
]


def values(rng: random.Random, type: Type) -> list[Value | None]:
    edges = [days_from_civil(y, m, d) for y in (1, 1582, 1970, 2024) for m, d in ((1, 1), (12, 31))]
    days = [*edges, *(rng.randint(-700_000, 900_000) for _ in range(6)), 0]
    if type == DATE:
        return [None, *days]
    return [None, *(d * DAY + rng.choice((0, 1, DAY - 1, 5 * 3_600_000_000)) for d in days)]


@pytest.mark.parametrize("type", [DATE, TIMESTAMP], ids=str)
@pytest.mark.parametrize("asked", CALLS, ids=lambda c: c.text)
def test_08_a_range_says_the_same_of_every_row(asked: Call, type: Type) -> None:
    if type == DATE and "hour" in asked.text:
        return
    rng = random.Random(asked.text)
    rows = values(rng, type)
    judge = Oracle(TRINO, {("x",): type, asked.path: apply(asked, None, type)[1]})
    unwrapped = 0
    for _ in range(200):
        near = rng.choice(rows[1:])
        moment, result = apply(asked, near, type)
        if rng.random() < 0.4 and asked.function != "year":
            moment += rng.choice((-1, 1))  # between two
        op = rng.choice(OPS)
        predicate = Predicate(op, asked, (Literal(moment, result),))
        found = unwrap(predicate, lambda _: type)
        assert found != predicate
        unwrapped += 1
        for row in rows:
            truth = judge.truth(predicate, {("x",): row, asked.path: apply(asked, row, type)[0]})
            assert judge.truth(found, {("x",): row}) is truth, (predicate, row)
    assert unwrapped == 200


def test_what_trino_leaves_as_it_is_stays() -> None:
    year, week = made("year", X), made("date_trunc", Literal(b"week", STRING), X)
    monday = Predicate(Op.EQ, week, (Literal(19_786, DATE),))
    assert unwrap(monday, lambda _: DATE) == monday
    whole = Predicate(Op.EQ, year, (Literal(2024, BIGINT),))
    assert unwrap(whole, lambda _: TIMESTAMP_TZ) == whole
    assert unwrap(whole, lambda _: STRING) == whole
    null = Predicate(Op.EQ, year, (Literal(None, BIGINT),))
    assert unwrap(null, lambda _: DATE) == null
    far = Predicate(Op.EQ, year, (Literal(10**12, BIGINT),))
    assert unwrap(far, lambda _: DATE) == far
    assert civil_from_days(19_723) == (2024, 1, 1)
