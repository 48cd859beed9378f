"""Encodes a snapshot's row filter for an engine, as a conjunction of column domains."""

from __future__ import annotations

import json
from typing import Any

from bridge.engines.engine import Engine
from bridge.engines.translation import NotTranslatable
from bridge.expression.nodes import (
    BoundAnd,
    BoundCall,
    BoundExpression,
    BoundFalse,
    BoundPredicate,
    BoundTrue,
    Op,
)
from bridge.expression.parsing.text import format_bound
from bridge.kernel.errors import UnsupportedTable

_RANGES: dict[Op, tuple[str, bool]] = {
    Op.LT: ("high", False),
    Op.LE: ("high", True),
    Op.GT: ("low", False),
    Op.GE: ("low", True),
}


def encode_row_filter(filter: BoundExpression, engine: Engine) -> str:
    """The filter in the format of docs/reference/predicates.md; empty if there is none.

    Errors:
        UnsupportedTable: the filter cannot be expressed, and reading without it would be wrong.
    """
    if isinstance(filter, BoundTrue) and filter.exact:
        return ""
    conjuncts = filter.children if isinstance(filter, BoundAnd) else (filter,)
    try:
        if any(isinstance(each, BoundFalse) for each in conjuncts):
            return json.dumps({"version": 1, "none": True, "domains": []})
        domains = [_domain(each, engine) for each in conjuncts]
    except NotTranslatable as error:
        raise UnsupportedTable(
            f"this version of the table has a row filter that {engine.spelled} cannot apply: "
            f"{format_bound(filter)} ({error})",
            "read another version, or read it with the Python API",
        ) from error
    return json.dumps({"version": 1, "none": False, "domains": domains})


def _domain(filter: BoundExpression, engine: Engine) -> dict[str, Any]:
    if not isinstance(filter, BoundPredicate):
        raise NotTranslatable("it is not a conjunction of comparisons")
    reference, op = filter.reference, filter.op
    name = engine.spell_type(reference.type)
    if len(reference.path) != 1 or isinstance(reference, BoundCall) or name is None:
        raise NotTranslatable("it is not over plain columns")
    domain: dict[str, Any] = {"column": reference.path[0], "type": name, "null_allowed": False}
    values = [engine.encode(value, reference.type) for value in filter.values]
    if op in (Op.EQ, Op.IN, Op.NE, Op.NOT_IN):
        return {**domain, "values": values, "inclusive": op in (Op.EQ, Op.IN)}
    if op in _RANGES:
        side, inclusive = _RANGES[op]
        bound = {side: values[0], f"{side}_inclusive": inclusive}
        return {**domain, "ranges": [bound]}
    if op is Op.IS_NULL:
        return {**domain, "null_allowed": True, "none": True}
    if op is Op.IS_NOT_NULL:
        return {**domain, "all": True}
    raise NotTranslatable(f"it holds {op.value}")
