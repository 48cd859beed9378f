"""Expressions as text: SQL that parses back, and a short form for reports.

The law: ``parse_where(format(e))[0] == e`` for every expression that a parser can produce.
"""

from __future__ import annotations

import math
import re

import numpy as np

from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundAnd,
    BoundCall,
    BoundExpression,
    BoundFalse,
    BoundOr,
    BoundPredicate,
    BoundTrue,
    Call,
    Computed,
    Expression,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    Reference,
    Unknown,
    reference_text,
)
from bridge.expression.parsing.calendar import format_date, format_timestamp
from bridge.kernel.types import Kind, Type, Value

_SIMPLE_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def format(expression: Expression) -> str:
    """The expression as a condition in Trino's dialect.

    >>> from bridge.expression.builders import and_, eq, starts_with
    >>> format(and_(eq("a", 5), starts_with("b", "it's")))
    '"a" = 5 AND starts_with("b", \\'it\\'\\'s\\')'
    """
    match expression:
        case AlwaysTrue():
            return "true"
        case AlwaysFalse():
            return "false"
        case Unknown(text):
            return f"({text})"
        case And(children):
            return " AND ".join(_grouped(c) for c in children) or "true"
        case Or(children):
            return " OR ".join(_grouped(c) for c in children) or "false"
        case Not(child):
            return f"NOT ({format(child)})"
        case Predicate():
            return _predicate(expression)
    raise AssertionError(expression)


def brief(predicate: Predicate) -> str:
    """A comparison for a report: only the first literals, and at most 200 characters."""
    shown = Predicate(predicate.op, predicate.reference, predicate.literals[:5])
    return _cut(format(shown), 200)


def _grouped(child: Expression) -> str:
    text = format(child)
    return f"({text})" if isinstance(child, And | Or | Not) else text


def _predicate(predicate: Predicate) -> str:
    if isinstance(predicate.reference, Computed):
        (truth,) = predicate.literals
        return f"{'' if truth.value else 'NOT '}{predicate.reference.text}"
    name = _reference(predicate.reference)
    values = [_literal(v) for v in predicate.literals]
    match predicate.op:
        case Op.IN | Op.NOT_IN:
            return f"{name} {predicate.op.value} ({', '.join(values)})"
        case Op.IS_NULL | Op.IS_NOT_NULL:
            return f"{name} {predicate.op.value}"
        case Op.IS_NAN:
            return f"is_nan({name})"
        case Op.IS_NOT_NAN:
            return f"NOT is_nan({name})"
        case Op.STARTS_WITH:
            return f"starts_with({name}, {values[0]})"
        case Op.NOT_STARTS_WITH:
            return f"NOT starts_with({name}, {values[0]})"
        case Op.LIKE | Op.NOT_LIKE:
            return f"{name} {predicate.op.value} {_pattern(predicate.literals[0])}"
    return f"{name} {predicate.op.value} {values[0]}"


def _pattern(literal: Literal) -> str:
    """A text as a pattern that matches it alone."""
    shown = _literal(literal)
    if "%" not in shown and "_" not in shown:
        return shown
    return re.sub("[%_!]", r"!\g<0>", shown) + " ESCAPE '!'"


def _reference(reference: Reference) -> str:
    if isinstance(reference, Computed):
        return reference.text
    if isinstance(reference, Call):
        shown = [
            _reference(a) if isinstance(a, Reference) else _literal(a) for a in reference.arguments
        ]
        if reference.function == "date_trunc":
            shown.reverse()
        sign = {"add": "+", "subtract": "-", "multiply": "*", "modulus": "%"}
        if reference.function in sign:
            return f"({shown[0]} {sign[reference.function]} {shown[1]})"
        return f"{reference.function}({', '.join(shown)})"
    return ".".join('"' + part.replace('"', '""') + '"' for part in reference.path)


def _literal(literal: Literal) -> str:
    value, type = literal.value, literal.type
    if value is None:
        return "NULL" if type.kind is Kind.UNKNOWN else f"CAST(NULL AS {_sql_type(type)})"
    if isinstance(value, bytes):
        return _text(value, type)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value, type)
    match type.kind:
        case Kind.BIGINT:
            return str(value)
        case Kind.DATE:
            return f"DATE '{format_date(value)}'"
        case Kind.TIMESTAMP:
            return f"TIMESTAMP '{format_timestamp(value)}'"
        case Kind.TIMESTAMP_TZ:
            return f"TIMESTAMP '{format_timestamp(value)} UTC'"
        case Kind.DECIMAL:
            return f"CAST('{format_decimal(value, type.scale)}' AS {_sql_type(type)})"
    return f"CAST({value} AS {_sql_type(type)})"


def _text(value: bytes, type: Type) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return _hex(value, type)
    if type.kind is Kind.BINARY:
        return _hex(value, type)
    quoted = "'" + text.replace("'", "''") + "'"
    return quoted if type.kind is Kind.STRING else f"CAST({quoted} AS {_sql_type(type)})"


def _hex(value: bytes, type: Type) -> str:
    text = f"X'{value.hex()}'"
    return text if type.kind is Kind.BINARY else f"CAST({text} AS {_sql_type(type)})"


def _float(value: float, type: Type) -> str:
    if math.isnan(value):
        text = "nan()"
    elif math.isinf(value):
        text = "infinity()" if value > 0 else "-infinity()"
    else:
        text = f"{value!r}E0" if "e" not in repr(value) else repr(value)
        if type.kind is Kind.FLOAT:
            return f"CAST('{_shortest(value)}' AS REAL)"
    return text if type.kind is Kind.DOUBLE else f"CAST({text} AS REAL)"


def _shortest(value: float) -> str:
    """The fewest digits that identify a 32-bit float: 0.1, not 0.10000000149011612."""
    return str(np.float32(value))


def _sql_type(type: Type) -> str:
    match type.kind:
        case Kind.STRING:
            return "VARCHAR"
        case Kind.FLOAT:
            return "REAL"
        case Kind.BINARY:
            return "VARBINARY"
        case Kind.TIMESTAMP_TZ:
            return "TIMESTAMP WITH TIME ZONE"
    return str(type).upper()


def format_decimal(unscaled: int, scale: int) -> str:
    """An unscaled integer as a decimal number.

    >>> format_decimal(-5, 2), format_decimal(1234, 0)
    ('-0.05', '1234')
    """
    if not scale:
        return str(unscaled)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def format_bound(expression: BoundExpression, max_values: int = 3) -> str:
    """A bound expression for a report. Longer IN lists than ``max_values`` show their length.

    >>> from bridge.expression.bind import bind
    >>> from bridge.expression.builders import and_, ge, in_
    >>> from bridge.kernel.types import BIGINT, DATE, TRINO, Field
    >>> clause = and_(ge("o_date", "2024-03-01"), in_("cust_id", range(9)))
    >>> format_bound(bind(clause, [Field("cust_id", BIGINT)], [Field("o_date", DATE)], TRINO))
    'o_date >= 2024-03-01 AND cust_id IN (9 values)'
    """
    match expression:
        case BoundTrue():
            return "true"
        case BoundFalse():
            return "false"
        case BoundAnd(children):
            # An inexact true stands for a dropped part, which the report names elsewhere.
            shown = [c for c in children if not isinstance(c, BoundTrue)]
            return " AND ".join(_grouped_bound(c, max_values) for c in shown)
        case BoundOr(children):
            return " OR ".join(_grouped_bound(c, max_values) for c in children)
        case BoundPredicate():
            return _bound_predicate(expression, max_values)
    raise AssertionError(expression)


def _grouped_bound(child: BoundExpression, max_values: int) -> str:
    text = format_bound(child, max_values)
    return f"({text})" if isinstance(child, BoundAnd | BoundOr) else text


def _bound_predicate(predicate: BoundPredicate, max_values: int) -> str:
    op, values, type = predicate.op, predicate.values, predicate.reference.type
    if isinstance(predicate.reference, BoundCall):
        name = reference_text(predicate.reference)
    else:
        name = ".".join(_name(part) for part in predicate.reference.path)
    if op in (Op.IN, Op.NOT_IN):
        if len(values) > max_values:
            return f"{name} {op.value} ({len(values)} values)"
        return f"{name} {op.value} ({', '.join(format_value(v, type) for v in values)})"
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        prefix = format_value(values[0], type)
        pattern = f"{prefix[:-1]}%'" if prefix.endswith("'") else f"{prefix}…"
        return f"{name} {'LIKE' if op is Op.STARTS_WITH else 'NOT LIKE'} {pattern}"
    return " ".join([name, op.value, *(format_value(v, type) for v in values)])


def _name(part: str) -> str:
    return part if _SIMPLE_NAME.fullmatch(part.lower()) or part.startswith("$") else f'"{part}"'


def format_value(value: Value, type: Type) -> str:
    """A canonical value for a report. Long text and binary values are cut."""
    if isinstance(value, bytes):
        try:
            if type.kind is Kind.BINARY:
                return _cut(f"0x{value.hex()}")
            return f"'{_cut(value.decode())}'"
        except UnicodeDecodeError:
            return _cut(f"0x{value.hex()}")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _shortest(value) if type.kind is Kind.FLOAT else repr(value)
    match type.kind:
        case Kind.DATE:
            return format_date(value)
        case Kind.TIMESTAMP:
            return format_timestamp(value)
        case Kind.TIMESTAMP_TZ:
            return f"{format_timestamp(value)} UTC"
        case Kind.DECIMAL:
            return format_decimal(value, type.scale)
    return str(value)


def _cut(text: str, length: int = 60) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
