"""Rewrites conditions on the year, month or day of a column to ranges of the column.

The law: for every row the result and the expression are both true, both false or both NULL. Trino's
planner does this before it calls a connector, so explain does the same with a typed condition. Like
in Trino, other units, other functions, and columns other than dates and timestamps without zone
stay unchanged.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.expression.nodes import (
    And,
    Call,
    Expression,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    Reference,
)
from bridge.expression.parsing.calendar import MICROS_PER_DAY, civil_from_days, days_from_civil
from bridge.kernel.types import DATE, TIMESTAMP, Kind, Type

_MOST = 200_000
_HOUR = 3_600_000_000
TypeOf = Callable[[Reference], Type]


def unwrap(expression: Expression, type_of: TypeOf) -> Expression:
    """The expression with such comparisons replaced by ranges.

    Args:
        type_of: returns the type of a column. It may raise for unknown names.
    """
    match expression:
        case And(children):
            return And(tuple(unwrap(c, type_of) for c in children))
        case Or(children):
            return Or(tuple(unwrap(c, type_of) for c in children))
        case Not(child):
            return Not(unwrap(child, type_of))
        case Predicate(op, Call() as call, literals):
            return _unwrapped(op, call, literals, type_of) or expression
    return expression


def _unwrapped(
    op: Op, call: Call, literals: tuple[Literal, ...], type_of: TypeOf
) -> Expression | None:
    column = call.arguments[0]
    if not isinstance(column, Reference) or isinstance(column, Call):
        return None
    type = type_of(column)
    if type not in (DATE, TIMESTAMP):
        return None
    if op is Op.IN:
        parts = [_compared(Op.EQ, call, column, type, v) for v in literals]
        known = tuple(p for p in parts if p is not None)
        return Or(known) if known and len(known) == len(parts) else None
    return _compared(op, call, column, type, literals[0]) if len(literals) == 1 else None


def _compared(
    op: Op, call: Call, column: Reference, type: Type, literal: Literal
) -> Expression | None:
    """The values from ``begin`` to ``end`` share the unit of the literal, which may be inside."""
    span = _year(literal) if call.function == "year" else _truncated(call, type, literal)
    if span is None:
        return None
    begin, end, within = span
    first, last = (Literal(micros, TIMESTAMP) for micros in (begin, end))
    before, after = Predicate(Op.LT, column, (first,)), Predicate(Op.GE, column, (last,))
    not_after, from_first = Predicate(Op.LT, column, (last,)), Predicate(Op.GE, column, (first,))
    match op:
        case Op.EQ:
            return And((after, not_after) if within else (from_first, not_after))
        case Op.NE:
            return Or((after, not_after) if within else (before, after))
        case Op.LT:
            return not_after if within else before
        case Op.LE:
            return not_after
        case Op.GT:
            return after
        case Op.GE:
            return after if within else from_first
    return None


def _year(literal: Literal) -> tuple[int, int, bool] | None:
    year = literal.value
    if not literal.type.is_integer or not isinstance(year, int) or abs(year) > _MOST:
        return None
    begin, end = (days_from_civil(y, 1, 1) * MICROS_PER_DAY for y in (year, year + 1))
    return begin, end, False


def _truncated(call: Call, type: Type, literal: Literal) -> tuple[int, int, bool] | None:
    if call.function != "date_trunc" or literal.type.kind not in (Kind.DATE, Kind.TIMESTAMP):
        return None
    (unit,) = (a.value for a in call.arguments if isinstance(a, Literal))
    if not isinstance(literal.value, int):
        return None
    micros = literal.value * (MICROS_PER_DAY if literal.type.kind is Kind.DATE else 1)
    day = micros // MICROS_PER_DAY
    year, month, _ = civil_from_days(day)
    if abs(year) > _MOST:
        return None
    match unit:
        case b"hour" if type == TIMESTAMP:
            begin, end = micros // _HOUR * _HOUR, micros // _HOUR * _HOUR + _HOUR
        case b"day":
            begin, end = day * MICROS_PER_DAY, (day + 1) * MICROS_PER_DAY
        case b"month":
            following = (year + 1, 1) if month == 12 else (year, month + 1)
            begin, end = _midnight(year, month), _midnight(*following)
        case b"year":
            begin, end = _midnight(year, 1), _midnight(year + 1, 1)
        case _:
            return None
    return begin, end, begin < micros


def _midnight(year: int, month: int) -> int:
    return days_from_civil(year, month, 1) * MICROS_PER_DAY
