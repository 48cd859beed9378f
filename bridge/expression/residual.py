"""Partial evaluation: what remains of a predicate when the values of some columns are known.

The law: the residual and the expression agree on every row with the known values. A partition with
a false residual is pruned. For other partitions the residual is evaluated on their files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from bridge.expression.fold import FALSE, KEPT, TRUE, conjunction, disjunction
from bridge.expression.function_catalog import columns_of
from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundAnd,
    BoundExpression,
    BoundOr,
    BoundPredicate,
    BoundReference,
    Call,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    Reference,
)
from bridge.kernel.types import Value


def residual(
    expression: BoundExpression, values: Mapping[tuple[str, ...], Value | None]
) -> BoundExpression:
    """Replaces predicates on known columns by their truth values.

    Args:
        values: canonical values by path; None is NULL. Absent columns stay unknown. Leave out
            values that could not be parsed (rule 18). Predicates on a NaN are kept, because their
            truth depends on the engine.
    """
    match expression:
        case BoundAnd(children):
            return conjunction(residual(c, values) for c in children)
        case BoundOr(children):
            return disjunction(residual(c, values) for c in children)
        case BoundPredicate(_, reference, _):
            if reference.path not in values:
                return expression
            known = is_true_for(expression, values[reference.path])
            return expression if known is None else TRUE if known else FALSE
    return expression


def references(expression: BoundExpression) -> frozenset[BoundReference]:
    """The columns of an expression."""
    return frozenset(_references(expression))


def keep_decided(
    expression: BoundExpression, decides: Callable[[BoundReference], bool]
) -> BoundExpression:
    """Replaces predicates by unknown unless something decides all columns that they use."""
    match expression:
        case BoundAnd(children):
            return conjunction(keep_decided(c, decides) for c in children)
        case BoundOr(children):
            return disjunction(keep_decided(c, decides) for c in children)
        case BoundPredicate(_, reference) if not all(map(decides, columns_of(reference))):
            return KEPT
    return expression


def column_names(expression: Expression) -> frozenset[str] | None:
    """Top-level columns of an expression, in lower case; None if a part of it is not understood."""
    match expression:
        case And(children) | Or(children):
            found = [column_names(child) for child in children]
            known = [names for names in found if names is not None]
            return frozenset[str]().union(*known) if len(known) == len(found) else None
        case Not(child):
            return column_names(child)
        case Predicate(_, reference, _):
            return _names(reference)
        case AlwaysTrue() | AlwaysFalse():
            return frozenset()
    return None


def _names(reference: Reference) -> frozenset[str]:
    if isinstance(reference, Call):
        inner = [_names(a) for a in reference.arguments if isinstance(a, Reference)]
        return frozenset[str]().union(*inner)
    return frozenset((reference.path[0].lower(),))


def _references(expression: BoundExpression) -> Iterator[BoundReference]:
    match expression:
        case BoundAnd(children) | BoundOr(children):
            for child in children:
                yield from _references(child)
        case BoundPredicate(_, reference, _):
            yield reference


def is_true_for(predicate: BoundPredicate, value: Value | None) -> bool | None:
    """Whether a predicate is true of one value; None is NULL. None of a NaN: engines differ."""
    op, values = predicate.op, predicate.values
    if value is None:
        return op in (Op.IS_NULL, Op.NULL_SAFE_NE)
    match op:
        case Op.IS_NULL:
            return False
        case Op.IS_NOT_NULL:
            return True
    if isinstance(value, float) and math.isnan(value):
        return None
    match op:
        case Op.EQ | Op.IN | Op.NULL_SAFE_EQ:
            return value in values
        case Op.NE | Op.NOT_IN | Op.NULL_SAFE_NE:
            return value not in values
        case Op.IS_NAN:
            return False
        case Op.IS_NOT_NAN:
            return True
    return _compares(op, value, values[0])


def _compares(op: Op, value: Value, limit: Value) -> bool:
    if isinstance(value, bytes):
        assert isinstance(limit, bytes)
        match op:
            case Op.STARTS_WITH:
                return value.startswith(limit)
            case Op.NOT_STARTS_WITH:
                return not value.startswith(limit)
        order = (value > limit) - (value < limit)
    else:
        assert not isinstance(limit, bytes)
        order = (value > limit) - (value < limit)
    match op:
        case Op.LT:
            return order < 0
        case Op.LE:
            return order <= 0
        case Op.GT:
            return order > 0
    return order >= 0
