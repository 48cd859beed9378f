"""Translates Trino's predicate, a TupleDomain and a ConnectorExpression, to an expression.

The law: every row that satisfies Trino's predicate satisfies the expression. Parts that cannot be
expressed become `Unknown`, so that NOT and OR above them stay sound (M2, M4).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bridge.engines.terms import condition
from bridge.engines.translation import (
    MAX_DEPTH,
    MAX_NODES,
    TOO_DEEP,
    NotTranslatable,
    Translation,
    keeps_order,
    malformed_predicate,
    read_document,
)
from bridge.engines.trino.bits import BITS, among, by_bits
from bridge.engines.trino.terms import FUNCTIONS, WORDS
from bridge.engines.trino.tuple_domain import Domain, TupleDomain, reference, type_of
from bridge.engines.trino.types import subsecond_digits
from bridge.engines.trino.values import decode
from bridge.expression.builders import and_, or_
from bridge.expression.function_catalog import call
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
    Unknown,
)
from bridge.expression.parsing.like import matches, parse_like
from bridge.kernel.types import BOOLEAN, Kind, Value

_COMPARISONS = {
    "$equal": Op.EQ,
    "$not_equal": Op.NE,
    "$less_than": Op.LT,
    "$less_than_or_equal": Op.LE,
    "$greater_than": Op.GT,
    "$greater_than_or_equal": Op.GE,
    "$is_distinct_from": Op.NULL_SAFE_NE,
    "$identical": Op.NULL_SAFE_EQ,
}
_FUNCTIONS = {
    **FUNCTIONS,
    "hour": "hour",
    "minute": "minute",
    "great_circle_distance": "great_circle_distance",
    "json_extract_scalar": "json_extract_scalar",
}
_MIRRORED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}


def translate(json_text: str) -> Translation:
    """Translates the document of docs/reference/predicates.md. Empty text means no predicate.

    Errors:
        InvalidPredicate: the document is malformed, or of another version.

    >>> translate('{"version": 1, "domains": [{"column": "a", "type": "bigint",'
    ...           ' "null_allowed": false, "all": true}]}').expression.op
    <Op.IS_NOT_NULL: 'IS NOT NULL'>
    """
    if not json_text.strip():
        return Translation(AlwaysTrue())
    document = read_document(json_text, "Trino")
    domains = TupleDomain.parse(document)
    parts: list[Expression] = [AlwaysFalse()] if domains.is_none else []
    parts.extend(domain_expression(d) for d in domains.domains)
    dropped = list(domains.dropped)
    parts.extend(Unknown(text) for text in domains.dropped)
    if document.get("expression") is not None:
        reader = _Reader()
        try:
            parts.append(reader.condition(document["expression"], 0))
            dropped.extend(reader.dropped)
        except RecursionError:  # the stack was almost full
            parts.append(Unknown(TOO_DEEP))
            dropped.append(TOO_DEEP)
    expression = and_(*parts)
    exact = not dropped and not _in_doubt(expression)
    return Translation(expression, tuple(dict.fromkeys(dropped)), exact=exact)


def _in_doubt(expression: Expression) -> bool:
    pending = [expression]
    while pending:
        match pending.pop():
            case And(children) | Or(children):
                pending.extend(children)
            case Not(child):
                pending.append(child)
            case Unknown() as found if found is BITS:
                return True
    return False


def domain_expression(domain: Domain) -> Expression:
    """Translates one domain, exactly."""
    null = Predicate(Op.IS_NULL, domain.reference)
    not_null = Predicate(Op.IS_NOT_NULL, domain.reference)
    values = domain.values
    if values.is_all:
        return AlwaysTrue() if domain.null_allowed else not_null
    if values.is_none:
        return null if domain.null_allowed else AlwaysFalse()
    found = _values_expression(domain)
    return or_(null, found) if domain.null_allowed else found


def _values_expression(domain: Domain) -> Expression:
    ranges = domain.values.ranges
    gaps = domain.values.excluded or _gaps(domain)
    if gaps:
        if any(by_bits(Literal(v, domain.type)) for v in gaps):
            return Not(_among(domain, gaps))
        return _predicate(Op.NOT_IN, domain, gaps)
    singles = tuple(r.low for r in ranges if r.is_single and r.low is not None)
    parts: list[Expression] = [_among(domain, singles)] if singles else []
    for left, right in pairwise(ranges):  # a value between adjacent ranges may come from NOT IN
        meet = left.high is not None and left.high == right.low
        if meet and by_bits(Literal(left.high, domain.type)):
            parts.append(_among(domain, (left.high,)))
    for each in ranges:
        if each.is_single:
            continue
        sides: list[Expression] = []
        if each.low is not None:
            op = Op.GE if each.low_inclusive else Op.GT
            sides.append(_predicate(op, domain, (each.low,)))
        if each.high is not None:
            op = Op.LE if each.high_inclusive else Op.LT
            sides.append(_predicate(op, domain, (each.high,)))
        parts.append(and_(*sides))
    return or_(*parts)


def _gaps(domain: Domain) -> tuple[Value, ...]:
    """The excluded values, if the ranges are everything but single values; otherwise empty.

    Not for real and double: NOT IN would include NaN, which no range contains.
    """
    ranges = domain.values.ranges
    if domain.type.is_floating or ranges[0].low is not None or ranges[-1].high is not None:
        return ()
    gaps = tuple(r.low for r in ranges[1:] if r.low is not None)
    highs = tuple(r.high for r in ranges[:-1])
    return gaps if gaps == highs else ()


def _among(domain: Domain, values: Iterable[Value | None]) -> Expression:
    return among(domain.reference, [Literal(v, domain.type) for v in values])


def _predicate(op: Op, domain: Domain, values: tuple[Value, ...]) -> Predicate:
    return Predicate(op, domain.reference, tuple(Literal(v, domain.type) for v in values))


@dataclass(slots=True)
class _Reader:
    """Translates one ConnectorExpression and collects dropped parts."""

    dropped: list[str] = field(default_factory=list)
    nodes: int = 0

    def condition(self, node: Any, depth: int) -> Expression:
        """Translates a boolean part."""
        self._count(node)
        if depth > MAX_DEPTH:
            return self._drop(TOO_DEEP)
        if self.nodes > MAX_NODES:
            return self._drop(f"what follows {MAX_NODES} parts")
        try:
            return self._condition(node, depth)
        except NotTranslatable as reason:
            dropped = self._drop(str(reason))
            return condition(node, dropped.text, WORDS) or dropped

    def _condition(self, node: dict[str, Any], depth: int) -> Expression:
        if "call" in node:
            return self._call(node, depth)
        found = self._operand(node, depth)
        if isinstance(found, Reference):
            return Predicate(Op.EQ, found, (Literal(True, BOOLEAN),))
        if found.value is True:
            return AlwaysTrue()
        if found.value is False:
            return AlwaysFalse()
        raise NotTranslatable(describe(node))  # NULL: neither it nor its negation is true

    def _call(self, node: dict[str, Any], depth: int) -> Expression:
        name, args = node["call"], _arguments(node)
        match name:
            case "$and":
                return And(tuple(self.condition(a, depth + 1) for a in args))
            case "$or":
                return Or(tuple(self.condition(a, depth + 1) for a in args))
            case "$not" if len(args) == 1:
                return Not(self.condition(args[0], depth + 1))
            case "$is_null" if len(args) == 1:
                return Predicate(Op.IS_NULL, self._reference(args[0], depth + 1))
            case "$in" if len(args) == 2:
                return self._in(args, depth + 1)
            case "$like" if len(args) in (2, 3):
                return self._like(node, args, depth + 1)
            case "$between" if len(args) == 3:
                low = self._comparison(Op.GE, node, args[:2], depth + 1)
                return And((low, self._comparison(Op.LE, node, [args[0], args[2]], depth + 1)))
        if name in _COMPARISONS and len(args) == 2:
            return self._comparison(_COMPARISONS[name], node, args, depth + 1)
        raise NotTranslatable(describe(node))

    def _comparison(self, op: Op, node: dict[str, Any], args: list[Any], depth: int) -> Expression:
        left, right = (self._operand(a, depth, node) for a in args)
        if isinstance(left, Literal):
            left, right = right, left
            op = _MIRRORED.get(op, op)
        if not isinstance(left, Reference) or not isinstance(right, Literal):
            raise NotTranslatable(describe(node))
        if op in (Op.NULL_SAFE_EQ, Op.NULL_SAFE_NE) and by_bits(right):
            found = And((Predicate(Op.NULL_SAFE_EQ, left, (right,)), BITS))
            return found if op is Op.NULL_SAFE_EQ else Not(found)
        return Predicate(op, left, (right,))

    def _in(self, args: list[Any], depth: int) -> Expression:
        found = self._reference(args[0], depth)
        if not isinstance(args[1], dict) or args[1].get("call") != "$array":
            raise NotTranslatable(describe({"call": "$in", "args": args}))
        values = [self._operand(a, depth, args[1]) for a in _arguments(args[1])]
        literals = tuple(v for v in values if isinstance(v, Literal))
        if len(literals) < len(values) or not literals:
            raise NotTranslatable(describe({"call": "$in", "args": args}))
        return among(found, literals)

    def _like(self, node: dict[str, Any], args: list[Any], depth: int) -> Expression:
        found = self._reference(args[0], depth)
        texts = [self._operand(a, depth, node) for a in args[1:]]
        known = [
            v.value.decode() for v in texts if isinstance(v, Literal) and isinstance(v.value, bytes)
        ]
        if len(known) < len(texts) or type_of(args[0]).kind is Kind.CHAR:
            raise NotTranslatable(describe(node))
        pattern, escape = known[0], known[1] if len(known) == 2 else None
        if escape is not None and len(escape) != 1:
            raise NotTranslatable(describe(node))
        like = parse_like(pattern, escape)
        predicate = like.predicate(found, Op.EQ)
        if like.exact:
            return predicate
        return And((predicate, matches(found, pattern, escape) or self._drop(describe(node))))

    def _reference(self, node: Any, depth: int) -> Reference:
        found = self._operand(node, depth)
        if isinstance(found, Literal):
            raise NotTranslatable(describe(node))
        return found

    def _operand(self, node: Any, depth: int, whole: Any = None) -> Reference | Literal:
        """A column, possibly widened by a cast, or a constant."""
        self._count(node)
        if depth > MAX_DEPTH + 1:
            raise NotTranslatable(TOO_DEEP)
        if "column" in node:
            return reference(node)
        if "constant" in node:
            decoded = decode(node["constant"], type_of(node))
            if decoded.beyond:
                raise NotTranslatable(describe(whole or node))
            return decoded.literal
        name = _FUNCTIONS.get(node.get("call", ""))
        if name is not None:
            arguments = [self._operand(a, depth + 1, whole or node) for a in _arguments(node)]
            made = call(name, arguments)
            if made is None:
                raise NotTranslatable(describe(whole or node))
            return made
        if node.get("call") == "$cast" and len(_arguments(node)) == 1:
            (inner,) = _arguments(node)
            found = self._operand(inner, depth + 1)
            if isinstance(found, Reference) and _changes_no_value(inner, node):
                return found
        raise NotTranslatable(describe(whole or node))

    def _count(self, node: Any) -> None:
        if not isinstance(node, dict):
            raise malformed_predicate("Trino", "an expression that is no object")
        self.nodes += 1

    def _drop(self, text: str) -> Unknown:
        self.dropped.append(text)
        return Unknown(text)


def _changes_no_value(inner: dict[str, Any], cast: dict[str, Any]) -> bool:
    """Whether a cast changes no value (rule 24). A lower timestamp precision rounds."""
    if not keeps_order(type_of(inner), type_of(cast)):
        return False
    return subsecond_digits(cast["type"]) >= subsecond_digits(inner["type"])


def _arguments(node: dict[str, Any]) -> list[Any]:
    args = node.get("args")
    if not isinstance(args, list) or not isinstance(node.get("call"), str):
        raise malformed_predicate("Trino", "a call without arguments")
    return args


_SIGNS = {
    "$equal": "=",
    "$not_equal": "<>",
    "$less_than": "<",
    "$less_than_or_equal": "<=",
    "$greater_than": ">",
    "$greater_than_or_equal": ">=",
    "$like": "LIKE",
    "$in": "IN",
}


def describe(node: Any, depth: int = 0) -> str:
    """A part as text for the report, cut to 200 characters."""
    text = _describe(node, depth)
    return text if len(text) <= 200 else f"{text[:199]}…"


def _describe(node: Any, depth: int) -> str:
    if not isinstance(node, dict) or depth > 6:
        return "…"
    if "opaque" in node:
        return str(node["opaque"])
    if "column" in node:
        return ".".join(reference(node).path)
    if "constant" in node:
        value = node["constant"]
        return "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
    args = node.get("args")
    shown = [_describe(a, depth + 1) for a in args[:5]] if isinstance(args, list) else []
    name = str(node.get("call"))
    if name in _SIGNS and len(shown) == 2:
        return f"{shown[0]} {_SIGNS[name]} {shown[1]}"
    more = ", …" if isinstance(args, list) and len(args) > 5 else ""
    return f"{name.lstrip('$')}({', '.join(shown)}{more})"
