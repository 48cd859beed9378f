"""Rewriting of unbound expressions: an ordered tuple of rules, one function each.

The law: the rewritten tree matches every row that the original tree matched. NOT is pushed to the
leaves first; only then may anything be weakened, since weakening under a NOT loses rows (M2). An
untranslated part stays visible as `Unknown` beside its conjuncts; an OR that holds one becomes
`Unknown` as a whole (M4).

A rule may turn a NULL into false once no NOT is left above it: a filter drops both.
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
from bridge.types import NanOrder, Semantics

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
}
NEGATED |= {negated: op for op, negated in NEGATED.items()}
_ORDERED = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})


def normalise(expression: Expression, semantics: Semantics) -> Expression:
    """Applies all rules in order; the result has no Not, and Unknown only beside conjuncts."""
    for rule in RULES:
        expression = rule(expression, semantics)
    return expression


def push_not(expression: Expression, semantics: Semantics) -> Expression:
    """Pushes NOT to the leaves; exact in three-valued logic."""
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
    return expression  # Unknown: its negation is as unknown


def _negate_predicate(predicate: Predicate, semantics: Semantics) -> Expression:
    """NOT of one predicate.

    Under IEEE every order comparison with NaN is false, so its negation is true of NaN: NOT(x > 5)
    is x <= 5 OR IS_NAN(x). With NaN as the literal the comparison is false of all values, and its
    negation true of all but NULL.
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
    """AND within AND becomes one AND, and OR alike."""
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
    """Drops what is true from AND and what is false from OR, and duplicates from both."""
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
    """An OR with an unknown side is unknown as a whole (M4); an AND keeps its known sides."""
    match expression:
        case And(children):
            return And(tuple(weaken(c, semantics) for c in children))
        case Or(children):
            weakened = tuple(weaken(c, semantics) for c in children)
            unknown = [c for c in weakened if isinstance(c, Unknown)]
            return unknown[0] if unknown else Or(weakened)
    return expression


def merge_equalities(expression: Expression, semantics: Semantics) -> Expression:
    """OR of = and IN over one column becomes one IN; AND of <> and NOT IN one NOT IN."""
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
        found = literals.setdefault(child.reference, {})
        found.update(dict.fromkeys(child.literals))
        if child.reference not in places:
            places[child.reference] = len(result)
            result.append(child)
        elif len(found) > 1:
            result[places[child.reference]] = Predicate(many, child.reference, tuple(found))
    return tuple(result)


RULES: tuple[Rule, ...] = (
    push_not,  # first of all: M2
    flatten,
    fold_constants,
    weaken,
    flatten,
    fold_constants,
    merge_equalities,
)
