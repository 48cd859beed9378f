"""Rewriting of unbound expressions: an ordered tuple of rules, one function each.

The law: the rewritten tree matches every row that the original tree matches. NOT is pushed to the
leaves before anything is weakened, because weakening under a NOT loses rows (M2). An untranslated
part stays as `Unknown` in an AND. An OR that contains one becomes `Unknown` as a whole (M4).

A rule may turn NULL into false where no NOT is above it, because a filter drops both.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Expression,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    Reference,
    Unknown,
)
from bridge.kernel.types import NanOrder, Semantics

Rule = Callable[[Expression, Semantics], Expression]

NEGATED: dict[Op, Op] = {
    Op.EQ: Op.NE,
    Op.LT: Op.GE,
    Op.LE: Op.GT,
    Op.NULL_SAFE_EQ: Op.NULL_SAFE_NE,
    Op.IN: Op.NOT_IN,
    Op.IS_NULL: Op.IS_NOT_NULL,
    Op.IS_NAN: Op.IS_NOT_NAN,
    Op.STARTS_WITH: Op.NOT_STARTS_WITH,
    Op.LIKE: Op.NOT_LIKE,
}
NEGATED |= {negated: op for op, negated in NEGATED.items()}
_ORDERED = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})


def normalise(expression: Expression, semantics: Semantics) -> Expression:
    """Applies all rules in order. The result has no Not, and Unknown only as a part of AND."""
    for rule in RULES:
        expression = rule(expression, semantics)
    return expression


def push_not(expression: Expression, semantics: Semantics) -> Expression:
    """Pushes NOT to the leaves. Exact in three-valued logic."""
    match expression:
        case Not(child):
            return _negate(child, semantics)
        case And(children):
            return And(tuple(push_not(c, semantics) for c in children))
        case Or(children):
            return Or(tuple(push_not(c, semantics) for c in children))
    return expression


def _negate(expression: Expression, semantics: Semantics) -> Expression:
    match expression:
        case Not(child):
            return push_not(child, semantics)
        case And(children):
            return Or(tuple(_negate(c, semantics) for c in children))
        case Or(children):
            return And(tuple(_negate(c, semantics) for c in children))
        case AlwaysTrue():
            return AlwaysFalse()
        case AlwaysFalse():
            return AlwaysTrue()
        case Predicate():
            return _negate_predicate(expression, semantics)
    return expression  # Unknown: its negation is Unknown, too


def _negate_predicate(predicate: Predicate, semantics: Semantics) -> Expression:
    """NOT of one predicate.

    Under IEEE every order comparison with NaN is false, so its negation is true for NaN: NOT(x > 5)
    is x <= 5 OR IS_NAN(x). If the literal is NaN, the comparison is false for all values, and its
    negation is true for all but NULL.
    """
    opposite = Predicate(NEGATED[predicate.op], predicate.reference, predicate.literals)
    if semantics.nan is NanOrder.LARGEST or predicate.op not in _ORDERED:
        return opposite
    value = predicate.literals[0].value
    if value is None:
        return opposite  # NULL either way
    if isinstance(value, float) and math.isnan(value):
        return Predicate(Op.IS_NOT_NULL, predicate.reference)
    return Or((opposite, Predicate(Op.IS_NAN, predicate.reference)))


def flatten(expression: Expression, semantics: Semantics) -> Expression:
    """Flattens AND in AND, and OR in OR."""
    match expression:
        case And(children):
            return And(_flat(And, children, semantics))
        case Or(children):
            return Or(_flat(Or, children, semantics))
    return expression


def _flat(
    kind: type[And] | type[Or], children: tuple[Expression, ...], semantics: Semantics
) -> tuple[Expression, ...]:
    result: list[Expression] = []
    for child in children:
        flat = flatten(child, semantics)
        if isinstance(flat, kind):
            result.extend(flat.children)
        else:
            result.append(flat)
    return tuple(result)


def fold_constants(expression: Expression, semantics: Semantics) -> Expression:
    """Drops true parts of AND, false parts of OR, and duplicates."""
    match expression:
        case And(children):
            folded = [fold_constants(c, semantics) for c in children]
            if any(isinstance(c, AlwaysFalse) for c in folded):
                return AlwaysFalse()
            kept = tuple(dict.fromkeys(c for c in folded if not isinstance(c, AlwaysTrue)))
            return _single(And, kept, AlwaysTrue())
        case Or(children):
            folded = [fold_constants(c, semantics) for c in children]
            if any(isinstance(c, AlwaysTrue) for c in folded):
                return AlwaysTrue()
            kept = tuple(dict.fromkeys(c for c in folded if not isinstance(c, AlwaysFalse)))
            return _single(Or, kept, AlwaysFalse())
    return expression


def _single(
    kind: type[And] | type[Or], children: tuple[Expression, ...], empty: Expression
) -> Expression:
    if not children:
        return empty
    return children[0] if len(children) == 1 else kind(children)


def weaken(expression: Expression, semantics: Semantics) -> Expression:
    """An OR with an unknown part becomes Unknown (M4). An AND keeps its known parts."""
    match expression:
        case And(children):
            return And(tuple(weaken(c, semantics) for c in children))
        case Or(children):
            weakened = tuple(weaken(c, semantics) for c in children)
            unknown = [c for c in weakened if isinstance(c, Unknown)]
            return unknown[0] if unknown else Or(weakened)
    return expression


def merge_equalities(expression: Expression, semantics: Semantics) -> Expression:
    """Merges = and IN on one column in an OR to one IN, and <> and NOT IN in an AND to NOT IN."""
    match expression:
        case And(children):
            merged = tuple(merge_equalities(c, semantics) for c in children)
            return _single(And, _merge(merged, Op.NE, Op.NOT_IN), AlwaysTrue())
        case Or(children):
            merged = tuple(merge_equalities(c, semantics) for c in children)
            return _single(Or, _merge(merged, Op.EQ, Op.IN), AlwaysFalse())
    return expression


def _merge(children: tuple[Expression, ...], one: Op, many: Op) -> tuple[Expression, ...]:
    literals: dict[Reference, dict[Literal, None]] = {}
    places: dict[Reference, int] = {}
    result: list[Expression] = []
    for child in children:
        if not (isinstance(child, Predicate) and child.op in (one, many)):
            result.append(child)
            continue
        literals.setdefault(child.reference, {}).update(dict.fromkeys(child.literals))
        if child.reference not in places:
            places[child.reference] = len(result)
            result.append(child)
    for reference, place in places.items():
        found = tuple(literals[reference])
        first = result[place]
        if isinstance(first, Predicate) and len(found) > len(set(first.literals)):
            result[place] = Predicate(many, reference, found)
    return tuple(result)


RULES: tuple[Rule, ...] = (
    push_not,  # must be first (M2)
    flatten,
    fold_constants,
    weaken,
    flatten,
    fold_constants,
    merge_equalities,
)
