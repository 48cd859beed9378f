"""Evaluates a predicate on one row in SQL's three-valued logic.

It shares no code with rewriting, binding and pruning, and is as simple as possible: exact
fractions, one row, no shortcuts. The law tests compare the other modules with it. The Python API
filters rows by it where Arrow does not compute as the engine does (`app/api/row_filter.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import numpy as np

from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundAnd,
    BoundExpression,
    BoundFalse,
    BoundOr,
    BoundPredicate,
    BoundTrue,
    Expression,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    Unknown,
)
from bridge.expression.parsing.calendar import MICROS_PER_DAY, parse_date, parse_timestamp
from bridge.kernel.errors import InvalidPredicate
from bridge.kernel.types import Kind, NanOrder, Semantics, Type, Value

Row = Mapping[tuple[str, ...], Value | None]
Truth = bool | None


class Rounding(Enum):
    """How an engine compares an exact number with a floating one. Engines use all of these."""

    EXACT = "exact"
    DOUBLE = "double"
    SINGLE = "single"
    """In float if the column is float or an exact number meets a float; otherwise in double."""


@dataclass(frozen=True, slots=True)
class Oracle:
    """Evaluates predicates like one engine.

    Attributes:
        types: column types by path. A bound expression has its own.
        unknown: the truth value of an `Unknown` for a row.
    """

    semantics: Semantics
    types: Mapping[tuple[str, ...], Type]
    rounding: Rounding = Rounding.EXACT
    unknown: Callable[[Unknown, Row], Truth] = lambda unknown, row: True

    def truth(self, expression: Expression | BoundExpression, row: Row) -> Truth:
        """True, False, or None for NULL."""
        match expression:
            case AlwaysTrue() | BoundTrue():
                return True
            case AlwaysFalse() | BoundFalse():
                return False
            case Unknown():
                return self.unknown(expression, row)
            case Not(child):
                return _not(self.truth(child, row))
            case And(children) | BoundAnd(children):
                return _all([self.truth(c, row) for c in children])
            case Or(children) | BoundOr(children):
                return _not(_all([_not(self.truth(c, row)) for c in children]))
            case Predicate(op, reference, literals):
                type = self.types[reference.path]
                return self._operator(op, row[reference.path], type, list(literals))
            case BoundPredicate(op, bound, values):
                known = [Literal(v, bound.type) for v in values]
                return self._operator(op, row[bound.path], bound.type, known)
        raise AssertionError(expression)

    def _operator(self, op: Op, value: Value | None, type: Type, literals: list[Literal]) -> Truth:
        match op:
            case Op.IS_NULL:
                return value is None
            case Op.IS_NOT_NULL:
                return value is not None
            case Op.NULL_SAFE_EQ:
                return self._identical(value, type, literals[0])
            case Op.NULL_SAFE_NE:
                return not self._identical(value, type, literals[0])
        if value is None:
            return None
        match op:
            case Op.IS_NAN:
                return _is_nan(value)
            case Op.IS_NOT_NAN:
                return not _is_nan(value)
            case Op.IN:
                return _not(_all([_not(self._compare(Op.EQ, value, type, v)) for v in literals]))
            case Op.NOT_IN:
                return _all([self._compare(Op.NE, value, type, v) for v in literals])
        return self._compare(op, value, type, literals[0])

    def _identical(self, value: Value | None, type: Type, literal: Literal) -> bool:
        if value is None or literal.value is None:
            return value is None and literal.value is None
        if _is_nan(value) or _is_nan(literal.value):
            return _is_nan(value) and _is_nan(literal.value)
        return self._compare(Op.EQ, value, type, literal) is True

    def _compare(self, op: Op, value: Value, type: Type, literal: Literal) -> Truth:
        if literal.value is None:
            return None
        if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
            assert isinstance(value, bytes) and isinstance(literal.value, bytes)
            return value.startswith(literal.value) is (op is Op.STARTS_WITH)
        op = {Op.LIKE: Op.EQ, Op.NOT_LIKE: Op.NE}.get(op, op)
        if _is_nan(value) or _is_nan(literal.value):
            if self.semantics.nan is NanOrder.IEEE:
                return op is Op.NE
            left, right = int(_is_nan(value)), int(_is_nan(literal.value))
            return _ordered(op, (left > right) - (left < right))
        one, other = self.comparable(value, type, literal)
        return _ordered(op, (one > other) - (one < other))  # type: ignore[operator]

    def comparable(self, value: Value, type: Type, literal: Literal) -> tuple[object, object]:
        """Both sides in the form that the engine compares.

        That of the value depends on the literal's kind alone.
        """
        given = literal.value
        assert given is not None
        one, other = _number(value, type), _number(given, literal.type)
        if one is not None and other is not None:
            return self._rounded(one, other, type, literal.type)
        if isinstance(given, bytes) and type.kind in (Kind.DATE, Kind.TIMESTAMP):
            parse = parse_date if type.kind is Kind.DATE else parse_timestamp
            parsed = parse(given.decode())
            if parsed is not None:
                return value, parsed
        elif type.kind is literal.type.kind or (type.is_text and literal.type.is_text):
            return value, given
        else:
            here, there = _micros(value, type), _micros(given, literal.type)
            if here is not None and there is not None:
                return here, there
        raise InvalidPredicate(f"{type} does not compare with {literal.type}", "cast one of them")

    def _rounded(
        self, one: Fraction | float, other: Fraction | float, left: Type, right: Type
    ) -> tuple[Fraction | float, Fraction | float]:
        floats = left.is_floating, right.is_floating
        if self.rounding is Rounding.EXACT or floats == (False, False):
            return one, other
        single = left.kind is Kind.FLOAT or (right.kind is Kind.FLOAT and not left.is_floating)
        if self.rounding is Rounding.SINGLE and single:
            with np.errstate(over="ignore"):
                return tuple(float(np.float32(_double(v))) for v in (one, other))  # type: ignore[return-value]
        return _double(one), _double(other)


def matches(
    expression: Expression | BoundExpression,
    row: Row,
    semantics: Semantics,
    types: Mapping[tuple[str, ...], Type] | None = None,
) -> bool:
    """Whether the row passes the filter: the predicate is true, not false or NULL.

    Args:
        row: canonical values by path; None is NULL.
        types: column types; required for an unbound expression.

    >>> from bridge.expression.builders import not_, gt
    >>> from bridge.kernel.types import DOUBLE, HIVE, TRINO
    >>> nan = {("x",): math.nan}
    >>> [matches(not_(gt("x", 5)), nan, s, {("x",): DOUBLE}) for s in (TRINO, HIVE)]
    [True, False]
    """
    return Oracle(semantics, types or {}).truth(expression, row) is True


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _all(truths: list[Truth]) -> Truth:
    if any(t is False for t in truths):
        return False
    return None if any(t is None for t in truths) else True


def _ordered(op: Op, order: int) -> bool:
    match op:
        case Op.EQ:
            return order == 0
        case Op.NE:
            return order != 0
        case Op.LT:
            return order < 0
        case Op.LE:
            return order <= 0
        case Op.GT:
            return order > 0
    return order >= 0


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _number(value: Value, type: Type) -> Fraction | float | None:
    if type.is_floating and isinstance(value, float):
        return value
    if type.is_integer and isinstance(value, int):
        return Fraction(value)
    if type.kind is Kind.DECIMAL and isinstance(value, int):
        return Fraction(value, 10**type.scale)
    return None


def _double(value: Fraction | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _micros(value: Value, type: Type) -> int | None:
    if not isinstance(value, int):
        return None
    match type.kind:
        case Kind.DATE:
            return value * MICROS_PER_DAY
        case Kind.TIMESTAMP:
            return value
    return None
