"""Iceberg's expressions as JSON: read into the planner's, and written as residuals.

The law: a row that satisfies the expression for any client satisfies `to_expression`, and a row
satisfies the residual of a client exactly if it satisfies the expression for that client.

Iceberg's logic has two values. A comparison is false for NULL, but ``not-eq``, ``not-in``,
``not-starts-with`` and ``not-nan`` are true. ``not`` is pushed to the leaves first. Clients differ
about NaN, -0.0 and 0.0: Java orders NaN and 0.0 last, Arrow compares by IEEE. What holds for one of
them may hold.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge.expression.builders import and_, or_
from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    Expression,
    Literal,
    Op,
    Predicate,
    Reference,
    Unknown,
)
from bridge.expression.parsing.calendar import parse_date, parse_instant, parse_timestamp
from bridge.expression.parsing.literals import exact_number, parse_decimal
from bridge.kernel.errors import InvalidRequest
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER_RANGE,
    STRING,
    Kind,
    NanOrder,
    Semantics,
    Type,
)

SEMANTICS = Semantics(NanOrder.LARGEST, raw_timestamps=True)
"""A zoned time is stored as UTC, and so are its literals: raw values are compared."""
MOST_NODES = 200_000
MOST_LEVELS = 100
"""Changes between AND and OR; what is deeper tells nothing."""
MOST_VALUES = 200_000
"""Of all lists of values together; what comes after tells nothing."""

_NEGATED = {
    "eq": "not-eq",
    "in": "not-in",
    "lt": "gt-eq",
    "lt-eq": "gt",
    "is-null": "not-null",
    "is-nan": "not-nan",
    "starts-with": "not-starts-with",
}
_NEGATED |= {negated: op for op, negated in _NEGATED.items()}
_ORDER = {"lt": Op.LT, "lt-eq": Op.LE, "gt": Op.GT, "gt-eq": Op.GE}
_LOOSER = {"lt": Op.LE, "gt": Op.GE}
_UNARY = ("is-null", "not-null", "is-nan", "not-nan")
_SETS = ("in", "not-in")
_LARGEST_FLOAT = (2**24 - 1) * 2**104
_KNOWN = frozenset(_NEGATED) | frozenset(_NEGATED.values())
_MAY_BE_NAN = ("gt", "gt-eq", "not-eq", "not-in")
_HOLD_FOR_EQUAL = ("eq", "in", "lt-eq", "gt-eq")
_INFINITIES = ("Infinity", "-Infinity")


@dataclass(frozen=True, slots=True)
class IcebergColumn:
    """What a term names.

    Attributes:
        path: as the table spells it.
        zoned: an Iceberg ``timestamptz``.
    """

    path: tuple[str, ...]
    type: Type
    zoned: bool = False


Resolve = Callable[[str], IcebergColumn | None]


@dataclass(frozen=True, slots=True)
class Constant:
    holds: bool


@dataclass(frozen=True, slots=True)
class Junction:
    """A conjunction or disjunction, flat."""

    kind: str
    children: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """A leaf.

    Attributes:
        op: with all negations applied; empty if it is not known.
        node: as the client sent it.
        negated: whether ``op`` is the negation of the node's.
        large: the planner does not look at the values.
    """

    op: str
    term: str
    values: tuple[Any, ...]
    node: Any
    negated: bool
    large: bool = False


Filter = Constant | Junction | Condition


@dataclass(slots=True)
class _Open:
    """A junction whose parts are still being read."""

    kind: str
    parts: list[Any]
    depth: int = 0
    made: Junction | None = None


def parse(body: Any) -> Filter:
    """Reads an expression, and pushes ``not`` to its leaves.

    Depth costs no stack; an unknown kind of node is a leaf that tells nothing.

    Errors:
        InvalidRequest: it has more than `MOST_NODES` nodes.
    """
    root = _Open("", [])
    opened: list[_Open] = []
    pending: list[tuple[Any, bool, _Open]] = [(body, False, root)]
    count = values = 0
    while pending:
        node, negated, within = pending.pop()
        count += 1
        if count > MOST_NODES:
            raise InvalidRequest(
                f"the filter has more than {MOST_NODES} nodes", "filter by fewer conditions"
            )
        kind = node.get("type") if isinstance(node, dict) else node
        if kind == "not" and "child" in node:
            pending.append((node["child"], not negated, within))
        elif kind in ("and", "or") and "left" in node and "right" in node:
            found = kind if not negated else "or" if kind == "and" else "and"
            if found != within.kind:
                if within.depth == MOST_LEVELS:
                    within.parts.append(Condition("", "", (), node, negated))
                    continue
                inner = _Open(found, [], within.depth + 1)
                within.parts.append(inner)
                opened.append(inner)
                within = inner
            pending += ((node["right"], negated, within), (node["left"], negated, within))
        elif kind is True or kind is False or kind in ("true", "false"):
            within.parts.append(Constant((kind in (True, "true")) is not negated))
        else:
            leaf = _leaf(node, kind, negated)
            values += len(leaf.values)
            within.parts.append(replace(leaf, large=True) if values > MOST_VALUES else leaf)
    for one in reversed(opened):  # what is within another was opened after it
        one.made = Junction(one.kind, tuple(map(_closed, one.parts)))
    return _closed(root.parts[0])


def _closed(part: Any) -> Filter:
    return part.made if isinstance(part, _Open) else part  # type: ignore[return-value]


def _leaf(node: Any, kind: Any, negated: bool) -> Condition:
    unknown = Condition("", "", (), node, negated)
    if not isinstance(node, dict) or not isinstance(kind, str) or kind not in _KNOWN:
        return unknown
    term = node.get("term")
    if isinstance(term, dict) and term.get("type") == "reference":
        term = term.get("term")
    if not isinstance(term, str):
        return unknown  # a transform
    values: tuple[Any, ...] = ()
    if kind in _SETS:
        given = node.get("values")
        if not isinstance(given, list):
            return unknown
        values = tuple(given)
    elif kind not in _UNARY:
        values = (node.get("value"),)
    return Condition(_NEGATED[kind] if negated else kind, term, values, node, negated)


def terms(found: Filter) -> frozenset[str] | None:
    """The terms of an expression; None if a part of it is not understood."""
    names: set[str] = set()
    pending = [found]
    while pending:
        one = pending.pop()
        if isinstance(one, Junction):
            pending.extend(one.children)
        elif isinstance(one, Condition):
            if not one.op:
                return None
            names.add(one.term)
    return frozenset(names)


# The planner's expression


def to_expression(found: Filter, resolve: Resolve) -> Expression:
    """What the planner prunes by. Terms and values that are not understood are `Unknown`."""
    match found:
        case Constant(holds):
            return AlwaysTrue() if holds else AlwaysFalse()
        case Junction(kind, children):
            parts = tuple(to_expression(child, resolve) for child in children)
            return and_(*parts) if kind == "and" else or_(*parts)
    return _predicate(found, resolve)


def _predicate(test: Condition, resolve: Resolve) -> Expression:
    column = resolve(test.term) if test.op and not test.large else None
    if column is None:
        return Unknown(reprlib.repr(test.node)[:200])
    name, op, type = Reference(column.path), test.op, column.type
    null = Predicate(Op.IS_NULL, name)
    match op:
        case "is-null":
            return null
        case "not-null":
            return Predicate(Op.IS_NOT_NULL, name)
        case "is-nan":
            return Predicate(Op.IS_NAN, name)
        case "not-nan":
            return or_(Predicate(Op.IS_NOT_NAN, name), null)
    literals = [_literal(value, column) for value in test.values]
    known = [each for each in literals if each is not None]
    if len(known) < len(literals):
        return Unknown(reprlib.repr(test.node)[:200], (name,))
    match op:
        case "eq" | "in":
            return Predicate(Op.IN, name, tuple(known)) if known else AlwaysFalse()
        case "not-eq" | "not-in":
            # To Java -0.0 is another number than 0.0.
            if not known or (type.is_floating and any(each.value == 0 for each in known)):
                return AlwaysTrue()
            return or_(Predicate(Op.NOT_IN, name, tuple(known)), null)
        case "starts-with":
            return Predicate(Op.STARTS_WITH, name, tuple(known))
        case "not-starts-with":
            return or_(Predicate(Op.NOT_STARTS_WITH, name, tuple(known)), null)
    order = _ORDER[op]
    if type.is_floating and known[0].value == 0:
        order = _LOOSER.get(op, order)
    plain: Expression = Predicate(order, name, tuple(known))
    if test.negated and type.is_floating:  # by IEEE no comparison with NaN holds
        plain = or_(plain, Predicate(Op.IS_NAN, name))
    # To clients a comparison that every value of the type satisfies is true, for NULL, too.
    return plain if _in_range(known[0], type) else or_(plain, null)


def _in_range(literal: Literal, type: Type) -> bool:
    least, greatest = INTEGER_RANGE.get(type.kind, (-_LARGEST_FLOAT, _LARGEST_FLOAT))
    if not (type.is_integer or type.kind is Kind.FLOAT):
        return True
    number = exact_number(literal)
    return number is not None and least <= number <= greatest


def _literal(value: Any, column: IcebergColumn) -> Literal | None:
    """A value as either client spells it; None if it is not one of the column's type."""
    type = column.type
    if isinstance(value, bool):
        return Literal(value, BOOLEAN) if type.kind is Kind.BOOLEAN else None
    if isinstance(value, str):
        return _text(value, column)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            return parse_decimal(str(value)) if _is_number(type) else None
        if type.kind is Kind.DATE:
            return Literal(value, DATE) if -(2**31) <= value < 2**31 else None
        if type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_TZ):
            return Literal(value, type)
        return Literal(value, BIGINT) if _is_number(type) else None
    if isinstance(value, float):  # clients round it to the scale of a decimal
        return Literal(value, DOUBLE) if type.is_integer or type.is_floating else None
    return None


def _is_number(type: Type) -> bool:
    return type.is_integer or type.is_floating or type.kind is Kind.DECIMAL


def _text(value: str, column: IcebergColumn) -> Literal | None:
    match column.type.kind:
        case Kind.STRING | Kind.VARCHAR:
            return Literal(value.encode("utf-8", "surrogatepass"), STRING)
        case Kind.BINARY:
            try:
                return Literal(bytes.fromhex(value), BINARY)
            except ValueError:
                return None
        case Kind.DECIMAL:
            return parse_decimal(value)
        case Kind.DATE:
            days = parse_date(value)
            return None if days is None else Literal(days, DATE)
        case Kind.TIMESTAMP | Kind.TIMESTAMP_TZ:
            micros = parse_instant(value) if column.zoned else parse_timestamp(value)
            return None if micros is None else Literal(micros, column.type)
    return None


# Residuals


def to_plain(found: Filter) -> Any:
    """The expression as JSON, with its leaves as they came."""
    match found:
        case Constant(holds):
            return holds
        case Junction(kind, children):
            return _balanced(kind, [to_plain(child) for child in children])
    return {"type": "not", "child": found.node} if found.negated else found.node


def to_java(found: Filter, resolve: Resolve) -> Any:
    """The residual for Iceberg's Java readers, as JSON.

    Row groups are judged by it, and the judge knows no NaN: what may hold for NaN says so.

    Errors:
        InvalidRequest: what lies deeper than `MOST_LEVELS` could not say so.
    """
    match found:
        case Constant(holds):
            return holds
        case Junction(kind, children):
            return _balanced(kind, [to_java(child, resolve) for child in children])
    if isinstance(found.node, dict) and found.node.get("type") in ("and", "or", "not"):
        raise InvalidRequest(
            f"the filter changes between AND and OR more than {MOST_LEVELS} times",
            "filter by fewer levels of conditions",
        )
    column = resolve(found.term) if found.op else None
    if column is None:
        return to_plain(found)
    if column.type.is_floating:
        return _floating(found, column.type)
    return _java_leaf(found.op, found.term, found.values)


def _java_leaf(op: str, term: Any, values: Sequence[Any] = ()) -> dict[str, Any]:
    if op in _SETS:
        return {"type": op, "term": term, "values": list(values)}
    return {"type": op, "term": term, **({"value": values[0]} if values else {})}


def _floating(test: Condition, type: Type) -> Any:
    """A residual on floating numbers.

    To the judge of row groups -0.0 and 0.0 are two numbers, which are one to Spark; it does not
    judge by a transform. Java writes infinity as a text that it cannot read as a number.
    """
    op, term = test.op, test.term
    plain = [value for value in test.values if value not in _INFINITIES]
    parts = [_at_infinity(op, term, v, type) for v in test.values if v in _INFINITIES]
    if plain or not parts:
        zero = op in _HOLD_FOR_EQUAL and any(isinstance(v, int | float) and v == 0 for v in plain)
        whole = {"type": "transform", "transform": "identity", "term": term} if zero else term
        parts.append(_java_leaf(op, whole, plain))
    found = _balanced("and" if op == "not-in" else "or", parts)
    if op in _MAY_BE_NAN:
        return {"type": "or", "left": found, "right": _java_leaf("is-nan", term)}
    return found


def _at_infinity(op: str, term: str, value: str, type: Type) -> Any:
    """A comparison with infinity by the number next to it; `_MAY_BE_NAN` are right save for NaN."""
    most = float(_LARGEST_FLOAT) if type.kind is Kind.FLOAT else sys.float_info.max
    above = value == "Infinity"
    edge = [most if above else -most]
    toward, back = ("gt", "lt") if above else ("lt", "gt")
    beyond, within = _java_leaf(toward, term, edge), _java_leaf(f"{back}-eq", term, edge)
    if op in ("not-eq", "not-in"):
        return _balanced("or", [within, _java_leaf("is-null", term)])
    if op == toward:
        return False
    if op == back:
        return within
    least = _java_leaf("not-null", term) if op == f"{back}-eq" else beyond
    return _balanced("and", [least, _java_leaf("not-nan", term)])


def _balanced(kind: str, parts: Sequence[Any]) -> Any:
    """Pairs of pairs: readers of JSON bound the depth."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return {
        "type": kind,
        "left": _balanced(kind, parts[:half]),
        "right": _balanced(kind, parts[half:]),
    }
