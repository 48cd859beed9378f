"""Predicates that are nested deeply."""

from __future__ import annotations

from bridge.expression.bind import bind
from bridge.expression.nodes import And, Expression, Literal, Op, Or, Predicate, Reference
from bridge.expression.rewrite import normalise
from bridge.kernel.types import BIGINT, TRINO, Field


class _Counted(int):
    hashed = 0

    def __hash__(self) -> int:
        _Counted.hashed += 1
        return int.__hash__(self)


def test_a_deep_tree_is_not_hashed_whole_at_every_level() -> None:
    """Else a predicate of 20,000 parts, 140 deep, holds up a planner for half a minute."""

    def equal(number: int) -> Predicate:
        return Predicate(Op.EQ, Reference((f"c{number}",)), (Literal(_Counted(number), BIGINT),))

    tree: Expression = Or(tuple(And((equal(i), equal(i + 1))) for i in range(0, 200, 2)))
    for depth in range(100):
        tree = (And if depth % 2 else Or)((equal(1000 + depth), tree))
    normalise(tree, TRINO)
    before = _Counted.hashed
    bind(tree, [Field(f"c{i}", BIGINT) for i in range(1200)], [], TRINO)
    assert before < 300 * 20
    assert _Counted.hashed - before < 300 * 40
