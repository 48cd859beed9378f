"""Conjunction and disjunction of bound expressions, folded and merged.

The law: the result matches exactly the rows that the combined parts match. An AND keeps an inexact
`BoundTrue`. An OR that contains one becomes one. Predicates on a call that contradict each other
stay as they are: the rows on which the call fails must be read.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.expression.nodes import (
    BoundAnd,
    BoundCall,
    BoundExpression,
    BoundFalse,
    BoundOr,
    BoundPredicate,
    BoundReference,
    BoundTrue,
    Op,
)
from bridge.kernel.types import Value

TRUE = BoundTrue()
KEPT = BoundTrue(exact=False)
FALSE = BoundFalse()

_OPAQUE = frozenset({Op.NULL_SAFE_EQ, Op.NULL_SAFE_NE})
_RANGES = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})


def is_exact(expression: BoundExpression) -> bool:
    """Whether nothing in the expression was weakened."""
    match expression:
        case BoundTrue(exact):
            return exact
        case BoundAnd(children) | BoundOr(children):
            return all(is_exact(c) for c in children)
    return True


def conjunction(parts: Iterable[BoundExpression]) -> BoundExpression:
    """AND: flattened, without true parts, with the predicates of each column merged."""
    flat: dict[BoundExpression, None] = {}
    exact = True
    for part in parts:
        for child in part.children if isinstance(part, BoundAnd) else (part,):
            match child:
                case BoundFalse():
                    return FALSE
                case BoundTrue():
                    exact = exact and child.exact
                case _:
                    flat[child] = None
    merged = _merge_and(list(flat))
    if merged is None:
        return FALSE
    if not exact:
        merged.append(KEPT)
    if not merged:
        return TRUE
    return merged[0] if len(merged) == 1 else BoundAnd(tuple(merged))


def disjunction(parts: Iterable[BoundExpression]) -> BoundExpression:
    """OR: flattened, without false parts, with the equalities of each column as one IN."""
    flat: dict[BoundExpression, None] = {}
    kept = False
    for part in parts:
        for child in part.children if isinstance(part, BoundOr) else (part,):
            match child:
                case BoundFalse():
                    continue
                case BoundTrue(exact):
                    if exact:
                        return TRUE
                    kept = True
                case _:
                    flat[child] = None
    if kept:
        return KEPT
    merged = _merge_or(list(flat))
    if not merged:
        return FALSE
    return merged[0] if len(merged) == 1 else BoundOr(tuple(merged))


def membership(op: Op, reference: BoundReference, values: Iterable[Value]) -> BoundExpression:
    """IN or NOT IN in normal form: sorted and distinct. One value is = or <>; none a constant."""
    distinct = tuple(sorted(set(values)))
    if not distinct:
        return FALSE if op is Op.IN else BoundPredicate(Op.IS_NOT_NULL, reference)
    if len(distinct) == 1:
        op = Op.EQ if op is Op.IN else Op.NE
    return BoundPredicate(op, reference, distinct)


def _merge_or(children: list[BoundExpression]) -> list[BoundExpression]:
    values: dict[BoundReference, set[Value]] = {}
    for child in children:
        if isinstance(child, BoundPredicate) and child.op in (Op.EQ, Op.IN):
            values.setdefault(child.reference, set()).update(child.values)
    merged: dict[BoundExpression, None] = {}
    for child in children:
        if isinstance(child, BoundPredicate) and child.op in (Op.EQ, Op.IN):
            together = values.pop(child.reference, None)
            if together is None:
                continue  # merged at the column's first predicate
            child = membership(Op.IN, child.reference, together)
        merged[child] = None
    return list(merged)


def _merge_and(children: list[BoundExpression]) -> list[BoundExpression] | None:
    """Merges predicates by column; None if they contradict each other."""
    columns: dict[BoundReference, list[BoundPredicate]] = {}
    for child in children:
        if isinstance(child, BoundPredicate) and child.op not in _OPAQUE:
            columns.setdefault(child.reference, []).append(child)
    merged: dict[BoundExpression, None] = {}
    for child in children:
        if not isinstance(child, BoundPredicate) or child.op in _OPAQUE:
            merged[child] = None
            continue
        predicates = columns.pop(child.reference, None)
        if predicates is None:
            continue  # merged at the column's first predicate
        met = predicates if len(predicates) == 1 else _meet(child.reference, predicates)
        if met is None:
            if not isinstance(child.reference, BoundCall):
                return None
            met = predicates  # a call may fail, and the engine says so
        merged.update(dict.fromkeys(met))
    return list(merged)


def _meet(
    reference: BoundReference, predicates: list[BoundPredicate]
) -> list[BoundPredicate] | None:
    """Merges predicates on one column, of which only IS NULL accepts NULL; None means false.

    NaN needs no special case. It satisfies all order comparisons of one direction or none, equals
    no value (binding resolved NaN literals), and differs from every value.
    """
    ops = {p.op for p in predicates}
    if Op.IS_NULL in ops:
        return None if len(ops) > 1 else predicates[:1]
    low, high = _tightest(predicates, (Op.GT, Op.GE)), _tightest(predicates, (Op.LT, Op.LE))
    ranges = [p for p in (low, high) if p is not None]
    if low is not None and high is not None:
        a, b = low.values[0], high.values[0]
        if a > b or (a == b and (low.op is Op.GT or high.op is Op.LT)):  # type: ignore[operator]
            return None
        if a == b:
            ranges = [BoundPredicate(Op.EQ, reference, (a,))]
    allowed: set[Value] | None = None
    excluded: set[Value] = set()
    for predicate in predicates:
        if predicate.op in (Op.EQ, Op.IN):
            values = set(predicate.values)
            allowed = values if allowed is None else allowed & values
        elif predicate.op in (Op.NE, Op.NOT_IN):
            excluded.update(predicate.values)
    if ranges and ranges[0].op is Op.EQ:
        allowed = set(ranges[0].values) if allowed is None else allowed & set(ranges[0].values)
        ranges = []
    if allowed is not None:
        allowed = {v for v in allowed - excluded if all(_within(v, r) for r in ranges)}
        return _result(membership(Op.IN, reference, allowed), predicates)
    excluded = {v for v in excluded if all(_within(v, r) for r in ranges)}
    if excluded:
        return _result(membership(Op.NOT_IN, reference, excluded), predicates, ranges)
    if ranges:
        return _result(ranges[0], predicates, ranges[1:])
    rest = [p for p in predicates if p.op is not Op.IS_NOT_NULL]
    return rest or predicates[:1]


def _result(
    first: BoundExpression, predicates: list[BoundPredicate], ranges: Iterable[BoundPredicate] = ()
) -> list[BoundPredicate] | None:
    if not isinstance(first, BoundPredicate):
        return None
    done = {Op.EQ, Op.NE, Op.IN, Op.NOT_IN, Op.IS_NOT_NULL} | _RANGES
    others = [p for p in predicates if p.op not in done]
    return list(dict.fromkeys([*_in_order([first, *ranges]), *others]))


def _in_order(predicates: list[BoundPredicate]) -> list[BoundPredicate]:
    """Sorts predicates for reports: lower bound, upper bound, others."""
    order = {Op.GT: 0, Op.GE: 0, Op.LT: 1, Op.LE: 1}
    return sorted(predicates, key=lambda p: order.get(p.op, 2))


def _tightest(predicates: list[BoundPredicate], ops: tuple[Op, Op]) -> BoundPredicate | None:
    """The strongest of the lower (GT, GE) or upper (LT, LE) bounds."""
    strict, _ = ops
    found = [p for p in predicates if p.op in ops]
    if not found:
        return None
    if strict is Op.GT:
        return max(found, key=lambda p: (p.values[0], p.op is strict))
    return min(found, key=lambda p: (p.values[0], p.op is not strict))


def _within(value: Value, bound: BoundPredicate) -> bool:
    limit = bound.values[0]
    match bound.op:
        case Op.GT:
            return value > limit  # type: ignore[operator]
        case Op.GE:
            return value >= limit  # type: ignore[operator]
        case Op.LT:
            return value < limit  # type: ignore[operator]
    return value <= limit  # type: ignore[operator]
