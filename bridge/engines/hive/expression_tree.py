"""Translates Hive's filter, a tree of functions on columns and constants, to an expression.

The law: every row that satisfies Hive's filter satisfies the expression. NOT is pushed down to the
comparisons while the tree is parsed (M2). Parts that cannot be expressed become `Unknown`, so that
an OR above them stays sound (M4). Functions are identified by Hive's class names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bridge.engines.hive.comparison import NotComparable, Operand, compare
from bridge.engines.hive.terms import FUNCTIONS, TRUTH, VIRTUAL, WORDS
from bridge.engines.hive.types import constant, type_named
from bridge.engines.terms import condition
from bridge.engines.translation import (
    MAX_DEPTH,
    MAX_NODES,
    TOO_DEEP,
    NotTranslatable,
    keeps_order,
    malformed_predicate,
)
from bridge.expression.function_catalog import call
from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Expression,
    Literal,
    Op,
    Or,
    Predicate,
    Reference,
    Unknown,
)
from bridge.expression.parsing.like import matches, parse_like
from bridge.expression.rewrite import NEGATED
from bridge.kernel.types import BOOLEAN, DATE, STRING, TIMESTAMP, Kind, Type

_COMPARISONS = {
    "GenericUDFOPEqual": Op.EQ,
    "GenericUDFOPNotEqual": Op.NE,
    "GenericUDFOPLessThan": Op.LT,
    "GenericUDFOPEqualOrLessThan": Op.LE,
    "GenericUDFOPGreaterThan": Op.GT,
    "GenericUDFOPEqualOrGreaterThan": Op.GE,
    "GenericUDFOPEqualNS": Op.NULL_SAFE_EQ,
    "GenericUDFOPNotEqualNS": Op.NULL_SAFE_NE,
}
_MIRRORED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
_CASTS = frozenset(
    {
        "UDFToByte",
        "UDFToShort",
        "UDFToInteger",
        "UDFToLong",
        "UDFToFloat",
        "UDFToDouble",
        "UDFToString",
        "GenericUDFToString",
        "GenericUDFToDecimal",
        "GenericUDFToVarchar",
        "GenericUDFTimestamp",
    }
)
_FUNCTIONS = {
    **FUNCTIONS,
    "UDFHour": "hour",
    "UDFMinute": "minute",
    "UDFJson": "json_extract_scalar",
}
_DAY_OF = frozenset({"GenericUDFToDate", "GenericUDFDate"})
_MICROS_PER_DAY = 86_400_000_000


@dataclass(slots=True)
class TreeReader:
    """Translates one tree. Collects dropped parts, and whether anything was widened."""

    dropped: list[str] = field(default_factory=list)
    exact: bool = True
    nodes: int = 0

    def condition(self, node: Any, *, negated: bool = False, depth: int = 0) -> Expression:
        """Translates a boolean part.

        Args:
            negated: whether the number of NOTs above it is odd.
        """
        self._count(node)
        if depth > MAX_DEPTH:
            return self._drop(TOO_DEEP)
        if self.nodes > MAX_NODES:
            return self._drop(f"what follows {MAX_NODES} parts")
        try:
            return self._condition(node, negated, depth)
        except NotComparable:
            return self._drop(describe(node))
        except NotTranslatable:
            dropped = self._drop(describe(node))
            found = condition(node, dropped.text, WORDS)
            if found is None:
                return dropped
            return Predicate(Op.EQ, found.reference, (Literal(not negated, BOOLEAN),))

    def _condition(self, node: dict[str, Any], negated: bool, depth: int) -> Expression:
        name = node.get("call")
        if name is None:
            return self._bare(node, negated)
        args = _arguments(node)
        match name:
            case "GenericUDFOPAnd" | "GenericUDFOPOr":
                parts = tuple(self.condition(a, negated=negated, depth=depth + 1) for a in args)
                return And(parts) if (name == "GenericUDFOPAnd") is not negated else Or(parts)
            case "GenericUDFOPNot" if len(args) == 1:
                return self.condition(args[0], negated=not negated, depth=depth + 1)
            case "GenericUDFOPNull" | "GenericUDFOPNotNull" if len(args) == 1:
                is_null = (name == "GenericUDFOPNull") is not negated
                return self._is_null(args[0], is_null)
            case "GenericUDFIn" if len(args) > 1:
                return self._in(args, negated)
            case "GenericUDFBetween" if len(args) == 4:
                return self._between(args, negated)
            case "UDFLike" | "GenericUDFLike" if len(args) == 2:
                return self._like(node, args, negated)
        if name in TRUTH and len(args) == 1:
            return self._truth(name, args[0], negated)
        if name in _COMPARISONS and len(args) == 2:
            return self._comparison(_COMPARISONS[name], args, negated)
        raise NotTranslatable

    def _bare(self, node: dict[str, Any], negated: bool) -> Expression:
        if "constant" in node:
            match node["constant"]:
                case None:
                    return AlwaysFalse()  # NULL: neither it nor its negation is true
                case bool(value):
                    return AlwaysTrue() if value is not negated else AlwaysFalse()
            raise NotTranslatable
        operand = self._operand(node)
        if operand.type.kind is not Kind.BOOLEAN:
            raise NotTranslatable
        return Predicate(Op.EQ, operand.reference, (Literal(not negated, BOOLEAN),))

    def _truth(self, name: str, node: Any, negated: bool) -> Expression:
        """IS TRUE and its variants, which are never NULL."""
        wanted, opposite = TRUTH[name]
        operand = self._operand(node)
        if operand.type.kind is not Kind.BOOLEAN:
            raise NotTranslatable
        op = Op.NULL_SAFE_NE if opposite is not negated else Op.NULL_SAFE_EQ
        return Predicate(op, operand.reference, (Literal(wanted, BOOLEAN),))

    def _is_null(self, node: Any, is_null: bool) -> Expression:
        self._count(node)
        operand = self._operand(node)
        if operand.type.is_nested or operand.type.kind is Kind.UNKNOWN:
            raise NotTranslatable
        return Predicate(Op.IS_NULL if is_null else Op.IS_NOT_NULL, operand.reference)

    def _comparison(self, op: Op, args: list[Any], negated: bool) -> Expression:
        left, right = args
        if "constant" in _node(left):
            left, right = right, left
            op = _MIRRORED.get(op, op)
        literal = self._literal(right)
        if negated:
            op = NEGATED[op]
        if _node(left).get("call") in _DAY_OF:
            return self._of_day(op, left, literal, negated)
        return self._compare(op, left, (literal,), negated)

    def _between(self, args: list[Any], negated: bool) -> Expression:
        inverted = _node(args[0]).get("constant")
        if not isinstance(inverted, bool):
            raise NotTranslatable
        low, high = (self._literal(a) for a in args[2:])
        if inverted is not negated:
            below = self._compare(Op.LT, args[1], (low,), negated=True)
            return Or((below, self._compare(Op.GT, args[1], (high,), negated=True)))
        above = self._compare(Op.GE, args[1], (low,), negated)
        return And((above, self._compare(Op.LE, args[1], (high,), negated)))

    def _in(self, args: list[Any], negated: bool) -> Expression:
        literals = tuple(self._literal(a) for a in args[1:])
        return self._compare(Op.NOT_IN if negated else Op.IN, args[0], literals, negated)

    def _compare(
        self, op: Op, node: Any, literals: tuple[Literal, ...], negated: bool
    ) -> Expression:
        found = compare(op, self._operand(node), literals, negated=negated)
        self.exact = self.exact and found.exact
        return found.expression

    def _of_day(self, op: Op, node: Any, literal: Literal, negated: bool) -> Expression:
        """The day of a timestamp, as a comparison of the timestamp with midnights (rule 8)."""
        (inner,) = _arguments(node) if len(_arguments(node)) == 1 else (None,)
        if inner is None or literal.type != DATE or not isinstance(literal.value, int):
            raise NotTranslatable
        operand = self._operand(inner)
        if operand.type == DATE:
            return self._compare(op, inner, (literal,), negated)
        if operand.type != TIMESTAMP:
            raise NotTranslatable
        begin, end = (Literal((literal.value + add) * _MICROS_PER_DAY, TIMESTAMP) for add in (0, 1))

        def side(op: Op, midnight: Literal) -> Expression:
            return self._compare(op, inner, (midnight,), negated)

        match op:
            case Op.LT | Op.GE:
                return side(op, begin)
            case Op.LE:
                return side(Op.LT, end)
            case Op.GT:
                return side(Op.GE, end)
            case Op.EQ | Op.NULL_SAFE_EQ:
                return And((side(Op.GE, begin), side(Op.LT, end)))
            case Op.NE:
                return Or((side(Op.LT, begin), side(Op.GE, end)))
        raise NotTranslatable

    def _like(self, node: dict[str, Any], args: list[Any], negated: bool) -> Expression:
        operand, literal = self._operand(args[0]), self._literal(args[1])
        if literal.value is None:
            return AlwaysFalse()
        texts = (Kind.STRING, Kind.VARCHAR)
        if operand.type.kind not in texts or not isinstance(literal.value, bytes):
            raise NotTranslatable
        pattern = literal.value.decode()
        listed = None if "\\" in pattern else matches(operand.reference, pattern, None)
        if "\\\\" in pattern:  # two backslashes are two characters to Hive
            pattern = pattern[: pattern.index("\\\\")] + "_%"
        like = parse_like(pattern, "\\")
        # Hive turns other patterns into regular expressions, whose dots may not match line ends.
        plain = like.whole or (pattern.endswith("%") and pattern.count("%") == 1)
        if negated and not (like.exact and plain):
            return self._unlike(pattern, listed)
        if like.prefix or like.whole:
            op = Op.EQ if like.whole else Op.STARTS_WITH
            prefix = Literal(like.prefix.encode(), STRING)
            found = compare(NEGATED[op] if negated else op, operand, (prefix,), negated=negated)
            self.exact = self.exact and found.exact
            begins = found.expression
        elif negated:
            raise NotTranslatable
        else:
            begins = Predicate(Op.IS_NOT_NULL, operand.reference)
        if like.exact:
            return begins
        self.exact = False
        return And((begins, listed or self._drop(describe(node))))

    def _unlike(self, pattern: str, listed: Predicate | None) -> Expression:
        """NOT LIKE of a pattern whose only wildcards are % at its ends: no regular expression."""
        text = pattern.removeprefix("%").removesuffix("%")
        if listed is None or not text or "%" in text or "_" in text:
            raise NotTranslatable
        self.exact = False
        return Predicate(Op.EQ, listed.reference, (Literal(False, BOOLEAN),))

    def _literal(self, node: Any) -> Literal:
        self._count(node)
        if "constant" not in node:
            raise NotTranslatable
        found = constant(node["constant"], type_named(node.get("type")))
        if found is None:
            raise NotTranslatable
        return found

    def _operand(self, node: Any, depth: int = 0) -> Operand:
        """A column or nested field, possibly inside lossless casts."""
        self._count(node)
        if depth > MAX_DEPTH:
            raise NotTranslatable
        type = type_named(node.get("type", ""))
        match node:
            case {"column": str(name)}:
                if name.lower() in VIRTUAL:
                    raise NotTranslatable
                return Operand(Reference((name,)), type, type)
            case {"field": str(name), "of": inner}:
                of = self._operand(inner, depth + 1)
                if of.type.kind is not Kind.STRUCT:
                    raise NotTranslatable
                return Operand(Reference((*of.reference.path, name)), type, type)
            case {"call": str(name)} if name in _CASTS and len(_arguments(node)) == 1:
                of = self._operand(_arguments(node)[0], depth + 1)
                if keeps_order(of.type, type):
                    return Operand(of.reference, of.column_type, type)
            case {"call": str(name)} if name in _FUNCTIONS:
                return self._function(_FUNCTIONS[name], _arguments(node), type, depth)
        raise NotTranslatable

    def _function(self, name: str, args: list[Any], type: Type, depth: int) -> Operand:
        """A function of one column and constants, see `bridge.expression.function_catalog`."""
        arguments: list[Reference | Literal] = []
        for node in args:
            if "constant" in _node(node):
                arguments.append(self._literal(node))
                continue
            operand = self._operand(node, depth + 1)
            if not _alike(operand.type, operand.column_type):
                raise NotTranslatable  # Hive computes in the type of the cast
            arguments.append(operand.reference)
        made = call(name, arguments)
        if made is None:
            raise NotTranslatable
        return Operand(made, STRING if type.is_text else type, type)

    def _count(self, node: Any) -> None:
        _node(node)
        self.nodes += 1

    def _drop(self, text: str) -> Unknown:
        self.dropped.append(text)
        self.exact = False
        return Unknown(text)


def _alike(one: Type, other: Type) -> bool:
    families = (one.is_text and other.is_text) or (one.is_integer and other.is_integer)
    return families or one.kind is other.kind


def _node(node: Any) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise malformed_predicate("Hive", "an expression that is no object")
    return node


def _arguments(node: dict[str, Any]) -> list[Any]:
    args = node.get("args")
    if not isinstance(args, list) or not isinstance(node.get("call"), str):
        raise malformed_predicate("Hive", "a call without arguments")
    return args


_SIGNS = {name: op.value for name, op in _COMPARISONS.items()} | {"UDFLike": "LIKE"}


def describe(node: Any, depth: int = 0) -> str:
    """A part as text for the report, cut to 200 characters."""
    text = _describe(node, depth)
    return text if len(text) <= 200 else f"{text[:199]}…"


def _describe(node: Any, depth: int) -> str:
    match node:
        case _ if depth > 6:
            return "…"
        case {"opaque": text}:
            return str(text)
        case {"column": name}:
            return str(name)
        case {"constant": value}:
            return (
                "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
            )
        case {"field": name, "of": inner}:
            return f"{_describe(inner, depth + 1)}.{name}"
        case {"call": str(name), "args": list(args)}:
            shown = [_describe(a, depth + 1) for a in args[:5]]
            if name in _SIGNS and len(shown) == 2:
                return f"{shown[0]} {_SIGNS[name]} {shown[1]}"
            plain = name.rpartition(".")[2].removeprefix("GenericUDF").removeprefix("UDF")
            more = ", …" if len(args) > 5 else ""
            return f"{plain.removeprefix('OP').lower()}({', '.join(shown)}{more})"
    return "…"
