"""Small functions that build unbound expressions, for callers and tests.

>>> from bridge.kernel.types import BIGINT
>>> eq("a", 5, BIGINT)
Predicate(op=<Op.EQ: '='>, reference=Reference(path=('a',)), literals=(Literal(value=5, type=Type(kind=<Kind.BIGINT: 'bigint'>, precision=0, scale=0, length=0, fields=())),))
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterable

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
)
from bridge.kernel.types import BIGINT, BOOLEAN, DOUBLE, STRING, UNKNOWN, Type, Value

ColumnName = str | tuple[str, ...] | Reference
Given = Value | str | None | Literal


def ref(name: ColumnName) -> Reference:
    """A reference. A string is one name and is never split at dots (rule 14)."""
    if isinstance(name, Reference):
        return name
    return Reference((name,) if isinstance(name, str) else name)


def literal(value: Given, type: Type | None = None) -> Literal:
    """A literal. The default type is the type in SQL. Text becomes UTF-8 bytes."""
    if isinstance(value, Literal):
        return value
    if isinstance(value, str):
        value = value.encode()
    return Literal(value, type or _natural(value))


def _natural(value: Value | None) -> Type:
    match value:
        case bool():
            return BOOLEAN
        case int():
            return BIGINT
        case float():
            return DOUBLE
        case bytes():
            return STRING
    return UNKNOWN


def compare(op: Op, name: ColumnName, value: Given, type: Type | None = None) -> Predicate:
    return Predicate(op, ref(name), (literal(value, type),))


def eq(name: ColumnName, value: Given, type: Type | None = None) -> Predicate:
    return compare(Op.EQ, name, value, type)


def ne(name: ColumnName, value: Given, type: Type | None = None) -> Predicate:
    return compare(Op.NE, name, value, type)


def lt(name: ColumnName, value: Given, type: Type | None = None) -> Predicate:
    return compare(Op.LT, name, value, type)


def le(name: ColumnName, value: Given, type: Type | None = None) -> Predicate:
    return compare(Op.LE, name, value, type)


def gt(name: ColumnName, value: Given, type: Type | None = None) -> Predicate:
    return compare(Op.GT, name, value, type)


def ge(name: ColumnName, value: Given, type: Type | None = None) -> Predicate:
    return compare(Op.GE, name, value, type)


def null_safe_eq(name: ColumnName, value: Given, type: Type | None = None) -> Predicate:
    return compare(Op.NULL_SAFE_EQ, name, value, type)


def null_safe_ne(name: ColumnName, value: Given, type: Type | None = None) -> Predicate:
    return compare(Op.NULL_SAFE_NE, name, value, type)


def in_(name: ColumnName, values: Iterable[Given], type: Type | None = None) -> Predicate:
    return Predicate(Op.IN, ref(name), tuple(literal(v, type) for v in values))


def not_in(name: ColumnName, values: Iterable[Given], type: Type | None = None) -> Predicate:
    return Predicate(Op.NOT_IN, ref(name), tuple(literal(v, type) for v in values))


def between(name: ColumnName, low: Given, high: Given, type: Type | None = None) -> Expression:
    return and_(ge(name, low, type), le(name, high, type))


def starts_with(name: ColumnName, prefix: Given, type: Type | None = None) -> Predicate:
    return compare(Op.STARTS_WITH, name, prefix, type)


def is_null(name: ColumnName) -> Predicate:
    return Predicate(Op.IS_NULL, ref(name))


def is_not_null(name: ColumnName) -> Predicate:
    return Predicate(Op.IS_NOT_NULL, ref(name))


def is_nan(name: ColumnName) -> Predicate:
    return Predicate(Op.IS_NAN, ref(name))


def and_(*children: Expression) -> Expression:
    if len(children) == 1:
        return children[0]
    return And(children) if children else AlwaysTrue()


def or_(*children: Expression) -> Expression:
    if len(children) == 1:
        return children[0]
    return Or(children) if children else AlwaysFalse()


def not_(child: Expression) -> Expression:
    return Not(child)
