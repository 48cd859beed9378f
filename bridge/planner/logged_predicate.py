"""Predicates as plain values, so that a log can be asked again.

A conjunction is ``["and", part, ...]``, a disjunction ``["or", part, ...]``, a comparison of a data
column ``[column, operator, values]``. What cannot be written so (nested fields, functions,
partition keys) is None: it excludes nothing. Without literals, ``values`` is their number.
"""

from __future__ import annotations

from typing import Any

from bridge.expression.nodes import (
    BoundAnd,
    BoundCall,
    BoundExpression,
    BoundFalse,
    BoundOr,
    BoundPredicate,
)
from bridge.kernel.types import Value

_MOST_VALUES = 100


def to_plain(predicate: BoundExpression, *, literals: bool) -> Any:
    """A predicate as values of JSON.

    >>> from bridge.expression.bind import bind
    >>> from bridge.expression.builders import and_, ge, in_
    >>> from bridge.kernel.types import BIGINT, STRING, TRINO, Field
    >>> fields = [Field("x", BIGINT), Field("s", STRING)]
    >>> bound = bind(and_(ge("x", 5), in_("s", ["a", "b"])), fields, [], TRINO)
    >>> to_plain(bound, literals=True)
    ['and', ['x', '>=', [5]], ['s', 'IN', ['a', 'b']]]
    >>> to_plain(bound, literals=False)
    ['and', ['x', '>=', 1], ['s', 'IN', 2]]
    """
    match predicate:
        case BoundAnd(children) | BoundOr(children):
            name = "and" if isinstance(predicate, BoundAnd) else "or"
            return [name, *(to_plain(child, literals=literals) for child in children)]
        case BoundFalse():
            return ["or"]
        case BoundPredicate(op, reference, values):
            column = reference.path[0]
            outside = reference.partition or isinstance(reference, BoundCall)
            if outside or len(reference.path) != 1 or column.startswith("$"):
                return None
            if not literals:
                return [column, op.value, len(values)]
            plain = [_plain(v) for v in values[:_MOST_VALUES]]
            return None if any(v is None for v in plain) else [column, op.value, plain]
    return None


def _plain(value: Value) -> Any:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
