"""The text of an expression parses back to it."""

from __future__ import annotations

from hypothesis import given

from bridge.expression.bind import bind
from bridge.expression.format import format_bound
from bridge.expression.nodes import Expression, Not, Predicate, Unknown
from bridge.expression.parsing.text import format, parse_where
from bridge.expression.rewrite import NEGATED, flatten
from bridge.kernel.types import TIMESTAMP_TZ, TRINO
from tests.support.strategies import Case, cases, expression, table


def spoken(node: Expression) -> bool:
    """Whether the parser can produce the tree: a NOT is fused into what has a word for it."""
    if isinstance(node, Not) and isinstance(node.child, Predicate):
        return (
            " NOT " not in f" {NEGATED[node.child.op].value} " and "NOT" not in node.child.op.value
        )
    if isinstance(node, Predicate):
        return all(v.value is not None or v.type != TIMESTAMP_TZ for v in node.literals)
    if isinstance(node, Unknown):
        return False
    children = getattr(node, "children", None)
    if children is not None:
        return len(children) > 1 and all(map(spoken, children))
    return spoken(node.child) if isinstance(node, Not) else True


@given(cases())
def test_format_parses_back(case: Case) -> None:
    rng = case.rng()
    data = table(rng, case.types, 1)
    for _ in range(6):
        asked = flatten(expression(rng, data, depth=2), TRINO)
        bound = bind(asked, data.columns, [], case.semantics)
        assert isinstance(format_bound(bound), str)
        if spoken(asked):
            # repr, since NaN is not equal to itself
            assert repr(parse_where(format(asked))) == repr((asked, ()))
