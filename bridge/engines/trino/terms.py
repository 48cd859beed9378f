"""Trino's words for expressions that are evaluated exactly."""

from __future__ import annotations

from typing import Any

from bridge.engines.terms import Words
from bridge.engines.translation import NotTranslatable
from bridge.engines.trino.tuple_domain import reference, type_of
from bridge.engines.trino.values import decode
from bridge.expression.nodes import Apply, Literal, Reference, Term
from bridge.kernel.types import BOOLEAN, Kind, Type

FUNCTIONS = {
    "$add": "add",
    "$subtract": "subtract",
    "$multiply": "multiply",
    "$modulo": "modulus",
    "$modulus": "modulus",
    "mod": "modulus",
    "lower": "lower",
    "upper": "upper",
    "substring": "substring",
    "substr": "substring",
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "day_of_month": "day",
    "date_trunc": "date_trunc",
}
"""Functions of `bridge.expression.function_catalog`, by Trino's name."""
_OPERATIONS = {
    **FUNCTIONS,
    "$and": "and",
    "$or": "or",
    "$not": "not",
    "$is_null": "is_null",
    "$equal": "=",
    "$not_equal": "<>",
    "$less_than": "<",
    "$less_than_or_equal": "<=",
    "$greater_than": ">",
    "$greater_than_or_equal": ">=",
    "$identical": "identical",
    "$is_distinct_from": "distinct",
    "$coalesce": "coalesce",
    "$nullif": "nullif",
    "$if": "if",
    "$divide": "divide",
    "$negate": "negate",
    "abs": "abs",
    "length": "length",
    "concat": "concat",
    "$cast": "cast",
    "$array": "array",
}


def _column(node: Any) -> Reference | None:
    return reference(node) if "column" in node else None


def _constant(node: Any) -> Literal | None:
    decoded = decode(node["constant"], type_of(node))
    return None if decoded.beyond else decoded.literal


def _type(node: Any) -> Type:
    if not isinstance(node.get("type"), str):
        raise NotTranslatable
    return type_of(node)


def _special(name: str, terms: list[Term], type: Type) -> Term | None:
    match name, terms:
        case "$in", [value, Apply("array", _, values)] if type.kind is Kind.BOOLEAN:
            equal = tuple(Apply("=", BOOLEAN, (value, other)) for other in values)
            return Apply("or", BOOLEAN, equal)
        case "$between", [value, low, high]:
            parts = Apply(">=", BOOLEAN, (value, low)), Apply("<=", BOOLEAN, (value, high))
            return Apply("and", BOOLEAN, parts)
    return None


WORDS = Words(
    functions=_OPERATIONS, type=_type, column=_column, constant=_constant, special=_special
)
