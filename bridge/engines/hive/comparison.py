"""One comparison of a column with literals, under all of Hive's evaluation rules.

The law: if any of Hive's ways to evaluate the comparison returns true for a row, the row satisfies
the expression. Hive's ways differ. Vectorised operators compare doubles by IEEE; others order NaN
largest and -0.0 before 0.0. A ``varchar(n)`` is truncated to n characters on read, whatever the
file holds, and ``char(n)`` is padded. NOT is already applied to the comparisons given here, so that
widening stays sound (M2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.expression.builders import or_
from bridge.expression.nodes import (
    AlwaysFalse,
    Expression,
    Literal,
    Op,
    Predicate,
    Reference,
)
from bridge.expression.parsing.calendar import days_from_civil
from bridge.expression.parsing.literals import exact_number, is_nan
from bridge.kernel.types import Kind, Type

_ORDERED = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})
_LOOSE = {Op.LT: Op.LE, Op.GT: Op.GE}
# For earlier dates Java's calendars differ.
_GREGORIAN_START = days_from_civil(1582, 10, 15)
_MICROS_PER_DAY = 86_400_000_000
_SURROGATES = "\ud800"


class NotComparable(Exception):
    """Bounds cannot answer the comparison, so it is dropped."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A column, possibly inside lossless casts.

    Attributes:
        column_type: the type of the column itself.
        type: the type in which Hive compares.
    """

    reference: Reference
    column_type: Type
    type: Type


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison as an expression; not exact if it was widened."""

    expression: Expression
    exact: bool = True


def compare(op: Op, operand: Operand, literals: Sequence[Literal], *, negated: bool) -> Compared:
    """Translates a comparison.

    Args:
        op: the operator after negation.
        negated: whether there was a NOT, so that Hive evaluates the opposite.

    Errors:
        NotComparable: bounds cannot answer it.
    """
    known = tuple(v for v in literals if v.value is not None)
    if len(known) < len(literals):
        if op in (Op.NULL_SAFE_EQ, Op.NULL_SAFE_NE):
            is_null = op is Op.NULL_SAFE_EQ
            return Compared(Predicate(Op.IS_NULL if is_null else Op.IS_NOT_NULL, operand.reference))
        if op not in (Op.IN, Op.NOT_IN):
            return Compared(AlwaysFalse())  # NULL, negated or not
        if op is Op.NOT_IN:
            # It is never true, but some of Hive's operators ignore that.
            return Compared(compare(op, operand, known, negated=negated).expression, exact=False)
        if not known:
            return Compared(AlwaysFalse())
    for literal in known:
        _refuse(op, operand, literal)
    if operand.column_type.is_floating or any(map(_negative_zero, known)):
        return _floating(op, operand, known, negated)
    if any(is_nan(v) for v in known):
        raise NotComparable
    if operand.column_type.kind is Kind.VARCHAR:
        return _varchar(op, operand, known)
    return Compared(Predicate(op, operand.reference, known))


def _refuse(op: Op, operand: Operand, literal: Literal) -> None:
    """Refuses pairs of types that Hive does not compare in the same order everywhere."""
    column, given = operand.type, literal.type
    if _numeric(column) and _numeric(given):
        return
    match column.kind, given.kind:
        case (Kind.BOOLEAN, Kind.BOOLEAN) | (Kind.BINARY, Kind.BINARY):
            return
        case (Kind.STRING | Kind.VARCHAR, Kind.STRING | Kind.VARCHAR):
            _refuse_text(op, literal)
            return
        case (Kind.DATE | Kind.TIMESTAMP, Kind.DATE | Kind.TIMESTAMP):
            day = literal.value
            assert isinstance(day, int)
            if given.kind is Kind.TIMESTAMP:
                day //= _MICROS_PER_DAY
            if day >= _GREGORIAN_START:
                return
    raise NotComparable


def _refuse_text(op: Op, literal: Literal) -> None:
    """Refuses text where Java strings sort surrogates before U+E000 to U+FFFF (rule 12)."""
    if op in _ORDERED and any(c >= _SURROGATES for c in _text(literal)):
        raise NotComparable


def _numeric(type: Type) -> bool:
    return type.is_integer or type.is_floating or type.kind is Kind.DECIMAL


def _text(literal: Literal) -> str:
    assert isinstance(literal.value, bytes)
    return literal.value.decode()


def _negative_zero(literal: Literal) -> bool:
    """Whether a literal is -0.0, which row mode orders before the 0.0 of an integer (rule 26)."""
    value = literal.value
    return isinstance(value, float) and value == 0 and math.copysign(1, value) < 0


def _floating(op: Op, operand: Operand, literals: tuple[Literal, ...], negated: bool) -> Compared:
    """Covers both of Hive's orders of NaN, and equal and unequal zeros (rules 1 and 2)."""
    if any(is_nan(v) for v in literals):
        raise NotComparable
    zeros = [v for v in literals if exact_number(v) == 0]
    exact = True
    if zeros:
        match op:
            case Op.LT | Op.GT:
                op, exact = _LOOSE[op], False
            case Op.NE | Op.NULL_SAFE_NE:
                raise NotComparable
            case Op.NOT_IN:
                literals, exact = tuple(v for v in literals if v not in zeros), False
    if op is Op.NOT_IN and not literals:
        return Compared(Predicate(Op.IS_NOT_NULL, operand.reference), exact=False)
    found = Predicate(op, operand.reference, literals)
    if negated and op in (Op.LT, Op.LE):
        # NOT (x > 5): under IEEE, NaN > 5 is false.
        return Compared(or_(found, Predicate(Op.IS_NAN, operand.reference)), exact=False)
    return Compared(found, exact)


def _varchar(op: Op, operand: Operand, literals: tuple[Literal, ...]) -> Compared:
    """Hive truncates text to n characters on read."""
    limit = operand.column_type.length
    if op in (Op.GT, Op.GE):  # text is not less than its prefix
        return Compared(Predicate(op, operand.reference, literals))
    if any(len(_text(v)) > limit for v in literals):
        raise NotComparable
    full = tuple(v for v in literals if len(_text(v)) == limit)
    found = Predicate(op, operand.reference, literals)
    if not full or op not in (Op.EQ, Op.NULL_SAFE_EQ, Op.IN, Op.LE):
        return Compared(found)
    begins = [Predicate(Op.STARTS_WITH, operand.reference, (v,)) for v in full]
    return Compared(or_(found, *begins), exact=False)
