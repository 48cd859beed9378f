"""Translates Hive's filter to an expression, or its SearchArgument if there is no filter.

The law: every row that satisfies Hive's predicate satisfies the expression. Parts that Hive has
weakened (``YES_NO_NULL``) become `Unknown`, like all parts that are not understood.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from bridge.engines.hive.expression_tree import TreeReader
from bridge.engines.hive.search_argument import (
    Operator,
    PredicateLeaf,
    SearchArgument,
    Tree,
    TruthValue,
)
from bridge.engines.translation import TOO_DEEP, Translation, malformed_predicate, read_document
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
from bridge.expression.parsing.calendar import parse_date, parse_timestamp
from bridge.expression.parsing.literals import domain, is_nan, parse_decimal, parse_float
from bridge.kernel.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP, UNKNOWN

_OPERATORS = {
    Operator.EQUALS: Op.EQ,
    Operator.NULL_SAFE_EQUALS: Op.NULL_SAFE_EQ,
    Operator.LESS_THAN: Op.LT,
    Operator.LESS_THAN_EQUALS: Op.LE,
    Operator.IN: Op.IN,
    Operator.IS_NULL: Op.IS_NULL,
}
_NANOS = re.compile(r"(.*\.\d{6})(\d{1,3})")


def translate(json_text: str) -> Translation:
    """Translates the document of docs/reference/predicates.md. Empty text means no predicate.

    Errors:
        InvalidPredicate: the document is malformed, or of another version.

    >>> translate('{"version": 1, "search_argument": {"leaves": [{"operator": "IS_NULL",'
    ...           ' "type": "LONG", "column": "k"}], "tree": {"op": "LEAF", "leaf": 0}}}').exact
    True
    """
    if not json_text.strip():
        return Translation(AlwaysTrue())
    document = read_document(json_text, "Hive")
    try:
        return _translated(document)
    except RecursionError:  # the stack was almost full
        return Translation(Unknown(TOO_DEEP), (TOO_DEEP,), exact=False)


def _translated(document: dict[str, Any]) -> Translation:
    if "expression" in document:
        reader = TreeReader()
        found = reader.condition(document["expression"])
        return Translation(found, tuple(dict.fromkeys(reader.dropped)), exact=reader.exact)
    argument = SearchArgument.parse(document)
    translator = _Translator()
    expression = translator.expression(argument.tree, negated=False)
    return Translation(expression, tuple(dict.fromkeys(translator.dropped)), exact=translator.exact)


@dataclass(slots=True)
class _Translator:
    dropped: list[str] = field(default_factory=list)
    exact: bool = True

    def expression(self, tree: Tree, *, negated: bool) -> Expression:
        """Translates a node.

        Args:
            negated: whether the number of NOTs above it is odd, which constants need.
        """
        match tree.op:
            case "AND":
                return And(tuple(self.expression(c, negated=negated) for c in tree.children))
            case "OR":
                return Or(tuple(self.expression(c, negated=negated) for c in tree.children))
            case "NOT":
                return Not(self.expression(tree.children[0], negated=not negated))
        if tree.leaf is not None:
            return self._leaf(tree.leaf, negated)
        if tree.constant is not None:
            return self._constant(tree.constant, negated)
        return self._drop(tree.text)

    def _drop(self, text: str) -> Unknown:
        self.dropped.append(text)
        self.exact = False
        return Unknown(text)

    def _constant(self, constant: TruthValue, negated: bool) -> Expression:
        """False if no row can pass, true if all rows pass, otherwise unknown.

        NULL passes neither plain nor negated, so below a NOT it is translated to true.
        """
        outcomes = constant.outcomes
        passing = "NO" if negated else "YES"
        if outcomes == {passing}:
            return AlwaysFalse() if negated else AlwaysTrue()
        if passing not in outcomes:
            return AlwaysTrue() if negated else AlwaysFalse()
        self.exact = False
        return Unknown(f"a part that Hive left out ({constant.value})")

    def _leaf(self, leaf: PredicateLeaf, negated: bool) -> Expression:
        reference = Reference((leaf.column,))
        if leaf.operator is None or leaf.column_type.startswith(("varchar", "char")):
            # The stored values differ from those Hive reads, and the filter tree covers this case.
            return self._drop(str(leaf))
        literals = [self._literal(v, leaf) for v in leaf.literals]
        known = tuple(v for v in literals if v is not None)
        if len(known) < len(literals) or (leaf.operator is Operator.IN and not known):
            return self._drop(str(leaf))
        if leaf.type == "FLOAT":
            return self._floating(leaf, reference, known, negated)
        if leaf.operator is Operator.BETWEEN:
            low, high = known
            return And((Predicate(Op.GE, reference, (low,)), Predicate(Op.LE, reference, (high,))))
        return Predicate(_OPERATORS[leaf.operator], reference, known)

    def _floating(
        self,
        leaf: PredicateLeaf,
        reference: Reference,
        literals: tuple[Literal, ...],
        negated: bool,
    ) -> Expression:
        """The leaf under its NOTs, for both of Hive's orders of NaN and zeros (see `comparison`).

        A leaf does not tell whether the query had < or NOT >=.
        """
        if any(is_nan(v) or v.value == 0 for v in literals):
            return self._drop(str(leaf))
        nan = Predicate(Op.IS_NAN, reference)
        match leaf.operator:
            case Operator.BETWEEN:
                low, high = literals
                within = And(
                    (Predicate(Op.GE, reference, (low,)), Predicate(Op.LE, reference, (high,)))
                )
                self.exact = self.exact and negated
                return within if negated else Or((within, nan))
            case Operator.LESS_THAN | Operator.LESS_THAN_EQUALS if not negated:
                self.exact = False
                return Or((Predicate(_OPERATORS[leaf.operator], reference, literals), nan))
        assert leaf.operator is not None
        return Predicate(_OPERATORS[leaf.operator], reference, literals)

    def _literal(self, value: Any, leaf: PredicateLeaf) -> Literal | None:
        """Parses a literal; None if it has no exact counterpart, which drops the leaf.

        Errors:
            InvalidPredicate: the value does not have its type.
        """
        if value is None:
            return Literal(None, UNKNOWN)
        match leaf.type:
            case "LONG" if type(value) is int:
                least, greatest = domain(BIGINT) or (0, 0)
                if least <= value <= greatest:
                    return Literal(value, BIGINT)
            case "BOOLEAN" if isinstance(value, bool):
                return Literal(value, BOOLEAN)
            case "STRING" if isinstance(value, str):
                return _text(value)
            case "FLOAT" if isinstance(value, str):
                return _double(value)
            case "DECIMAL" if isinstance(value, str):
                return parse_decimal(value)
            case "DATE" if isinstance(value, str):
                days = parse_date(value)
                return None if days is None else Literal(days, DATE)
            case "TIMESTAMP" if isinstance(value, str):
                return _timestamp(value)
            case "LONG" | "BOOLEAN" | "STRING" | "FLOAT" | "DECIMAL" | "DATE" | "TIMESTAMP":
                pass
            case _:
                return None
        raise malformed_predicate("Hive", f"{str(value)[:100]!r} is no {leaf.type}")


def _text(value: str) -> Literal | None:
    try:
        return Literal(value.encode(), STRING)
    except UnicodeEncodeError:  # lone surrogate
        return None


def _double(value: str) -> Literal | None:
    try:
        return Literal(parse_float(value, single=False), DOUBLE)
    except ValueError:
        return None


def _timestamp(value: str) -> Literal | None:
    """Microseconds; None for finer timestamps, which equal no value of a file."""
    match = _NANOS.fullmatch(value)
    if match is not None:
        if match[2].strip("0"):
            return None
        value = match[1]
    micros = parse_timestamp(value)
    return None if micros is None else Literal(micros, TIMESTAMP)
