"""Hive's words for expressions that are evaluated exactly."""

from __future__ import annotations

from typing import Any

from bridge.engines.hive.types import constant, type_named
from bridge.engines.terms import Words
from bridge.expression.nodes import Apply, Literal, Reference, Term
from bridge.kernel.types import BOOLEAN, Kind, Type

# Virtual columns, which Hive computes per row. Files have no statistics for them.
VIRTUAL = frozenset(
    {
        "input__file__name",
        "block__offset__inside__file",
        "row__offset__inside__block",
        "raw__data__size",
        "row__id",
        "row__is__deleted",
        "grouping__id",
        "partition__spec__id",
        "partition__hash",
        "file__path",
        "row__position",
        "partition__projection",
        "snapshot__id",
    }
)
FUNCTIONS = {
    "GenericUDFOPPlus": "add",
    "GenericUDFOPMinus": "subtract",
    "GenericUDFOPMultiply": "multiply",
    "GenericUDFOPMod": "modulus",
    "GenericUDFLower": "lower",
    "GenericUDFUpper": "upper",
    "UDFSubstr": "substring",
    "UDFYear": "year",
    "GenericUDFQuarter": "quarter",
    "UDFMonth": "month",
    "UDFDayOfMonth": "day",
}
"""Functions of `bridge.expression.function_catalog`, by Hive's class.

Java maps letters by its locale: hooks write lower and upper as text where it maps ASCII letters
otherwise.
"""
TRUTH = {
    "GenericUDFOPTrue": (True, False),
    "GenericUDFOPNotTrue": (True, True),
    "GenericUDFOPFalse": (False, False),
    "GenericUDFOPNotFalse": (False, True),
}
"""Whether each function tests for true or false, and whether it is negated."""
_OPERATIONS = {
    **FUNCTIONS,
    "GenericUDFOPAnd": "and",
    "GenericUDFOPOr": "or",
    "GenericUDFOPNot": "not",
    "GenericUDFOPNull": "is_null",
    "GenericUDFOPEqual": "=",
    "GenericUDFOPNotEqual": "<>",
    "GenericUDFOPLessThan": "<",
    "GenericUDFOPEqualOrLessThan": "<=",
    "GenericUDFOPGreaterThan": ">",
    "GenericUDFOPEqualOrGreaterThan": ">=",
    "GenericUDFOPEqualNS": "identical",
    "GenericUDFOPNotEqualNS": "distinct",
    "GenericUDFCoalesce": "coalesce",
    "GenericUDFNvl": "coalesce",
    "GenericUDFNullif": "nullif",
    "GenericUDFOPNegative": "negate",
    "GenericUDFAbs": "abs",
    "GenericUDFLength": "length",
    "GenericUDFConcat": "concat",
    **dict.fromkeys(
        (
            "UDFToByte",
            "UDFToShort",
            "UDFToInteger",
            "UDFToLong",
            "UDFToDouble",
            "UDFToString",
            "GenericUDFToString",
            "GenericUDFToDecimal",
            "GenericUDFToVarchar",
        ),
        "cast",
    ),
}


def _column(node: Any) -> Reference | None:
    match node:
        case {"column": str(name)} if name.lower() not in VIRTUAL:
            return Reference((name,))
        case {"field": str(name), "of": inner}:
            of = _column(inner)
            struct = type_named(inner.get("type", "")).kind is Kind.STRUCT
            return None if of is None or not struct else Reference((*of.path, name))
    return None


def _constant(node: Any) -> Literal | None:
    return constant(node["constant"], type_named(node.get("type")))


def _special(name: str, terms: list[Term], type: Type) -> Term | None:
    match name:
        case "GenericUDFOPNotNull" if len(terms) == 1:
            return Apply("not", BOOLEAN, (Apply("is_null", BOOLEAN, tuple(terms)),))
        case "GenericUDFIn" if len(terms) > 1:
            first, *others = terms
            if any(isinstance(each, Literal) and each.value is None for each in others):
                return None  # some of Hive's lists forget their NULLs
            equal = tuple(Apply("=", BOOLEAN, (first, other)) for other in others)
            return Apply("or", BOOLEAN, equal)
        case "GenericUDFBetween" if len(terms) == 4:
            inverted, value, low, high = terms
            if not isinstance(inverted, Literal) or not isinstance(inverted.value, bool):
                return None
            within = Apply(
                "and",
                BOOLEAN,
                (Apply(">=", BOOLEAN, (value, low)), Apply("<=", BOOLEAN, (value, high))),
            )
            return Apply("not", BOOLEAN, (within,)) if inverted.value else within
        case _ if name in TRUTH and len(terms) == 1 and terms[0].type == BOOLEAN:
            wanted, negated = TRUTH[name]
            operation = "distinct" if negated else "identical"
            return Apply(operation, BOOLEAN, (terms[0], Literal(wanted, BOOLEAN)))
        case "GenericUDFIf" if len(terms) == 3:
            return Apply("if", type, tuple(terms))
        case "GenericUDFWhen" if len(terms) > 1:
            return Apply("if", type, _with_else(terms, type))
        case "GenericUDFCase" if len(terms) > 2:
            value, *rest = terms
            pairs = list(_with_else(rest, type))
            for i in range(0, len(pairs) - 1, 2):
                pairs[i] = Apply("=", BOOLEAN, (value, pairs[i]))
            return Apply("if", type, tuple(pairs))
    return None


def _with_else(terms: list[Term], type: Type) -> tuple[Term, ...]:
    return tuple(terms) if len(terms) % 2 else (*terms, Literal(None, type))


WORDS = Words(
    functions=_OPERATIONS,
    type=lambda node: type_named(node.get("type", "")),
    column=_column,
    constant=_constant,
    special=_special,
)
