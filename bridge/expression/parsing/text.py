"""Translates WHERE clauses of three dialects to unbound expressions.

The law: every row that satisfies the clause satisfies the expression. A part that cannot be
expressed becomes `Unknown` and is named in ``dropped``.

Literals get the type of the dialect: 5 is a bigint, 1.5 a decimal (a double in Hive), 1e3 a double,
'a' a string. Binding converts text that is compared with a date column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sqlglot import exp

from bridge.expression.format import brief, format, format_bound
from bridge.expression.function_catalog import call
from bridge.expression.nodes import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    Call,
    Expression,
    Literal,
    Not,
    Op,
    Or,
    Predicate,
    Reference,
    Unknown,
)
from bridge.expression.parsing.calendar import parse_date
from bridge.expression.parsing.like import matches, parse_like
from bridge.expression.parsing.literals import (
    domain,
    exact_number,
    neighbor_floats,
    parse_decimal,
    parse_float,
    parse_moment,
)
from bridge.expression.parsing.sql_parser import own_parts, parse_condition, spelling
from bridge.expression.rewrite import NEGATED
from bridge.kernel.errors import InvalidPredicate, UnsupportedType
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER_RANGE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    UNKNOWN,
    Kind,
    Type,
    char,
    parse_hive_type,
    whole_number,
)

__all__ = ["DIALECTS", "brief", "format", "format_bound", "parse_where"]

DIALECTS = ("trino", "hive", "spark")
MAX_LENGTH = 1_000_000
_COMPARISONS: dict[type[Any], Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
    exp.NullSafeEQ: Op.NULL_SAFE_EQ,
    exp.NullSafeNEQ: Op.NULL_SAFE_NE,
}
_MIRRORED = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
# The negation of each of these is exactly one operator.
_FUSED = frozenset({Op.IN, Op.IS_NULL, Op.IS_NAN, Op.STARTS_WITH, Op.LIKE})


def parse_where(text: str, dialect: str = "trino") -> tuple[Expression, tuple[str, ...]]:
    """Parses a condition, with or without the word WHERE.

    Args:
        dialect: one of `DIALECTS`. Determines quotes, literals and LIKE's escape (rule 7).

    Returns:
        The expression, and the texts of the parts that could not be expressed.

    Errors:
        InvalidPredicate: the text does not parse (the message has the position), or it contains an
            aggregate, which no engine accepts in a WHERE clause.

    >>> parse_where("reverse(name) = 'X' AND day < 5")[1]
    ("REVERSE(name) = 'X'",)
    """
    if dialect not in DIALECTS:
        raise InvalidPredicate(f"no dialect {dialect!r}", f"one of {', '.join(DIALECTS)}")
    if len(text) > MAX_LENGTH:
        raise InvalidPredicate(
            f"a condition of {len(text)} characters", f"at most {MAX_LENGTH} are read"
        )
    try:
        parser = _Parser(dialect)
        tree = _tree(text, dialect)
        _refuse_aggregates(tree, dialect)
        expression = parser.condition(tree)
    except RecursionError:
        raise InvalidPredicate("the condition is nested too deeply", "simplify it") from None
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise InvalidPredicate(f"{half!r} is half of a character", "write it in whole") from None
    return expression, tuple(dict.fromkeys(parser.dropped))


def parse_call(text: str) -> Call | None:
    """Parses a function of columns in Trino's dialect; None if no index can hold its values.

    Errors:
        InvalidPredicate: the text does not parse.

    >>> parse_call("Lower( Name )").text
    'lower(name)'
    """
    found = _Parser("trino")._reference(_tree(text, "trino"))
    return found if isinstance(found, Call) else None


def _tree(text: str, dialect: str) -> exp.Expression:
    words = text.strip()
    if words[:6].lower() == "where " or words[:6].lower() == "where\n":
        words = words[6:].lstrip()
    if not words:
        raise InvalidPredicate("the condition is empty", "write for example: day >= '2024-03-01'")
    return parse_condition(words, dialect)


def _refuse_aggregates(tree: exp.Expression, dialect: str) -> None:
    """Errors: InvalidPredicate: an aggregate or window function outside a subquery."""
    for found in own_parts(tree, exp.AggFunc):
        raise InvalidPredicate(
            f"{found.sql(dialect=spelling(dialect))} needs several rows, and a condition sees one",
            "give what stands after WHERE alone, without HAVING",
        )


@dataclass(slots=True)
class _Parser:
    """Parses one clause and collects dropped parts."""

    dialect: str
    dropped: list[str] = field(default_factory=list)

    def condition(self, node: exp.Expression) -> Expression:
        match node:
            case exp.Paren():
                return self.condition(node.this)
            case _ if not _understood(node):
                return self._drop(node)
            case exp.And():
                return And(tuple(self.condition(n) for n in _operands(node, exp.And)))
            case exp.Or():
                return Or(tuple(self.condition(n) for n in _operands(node, exp.Or)))
            case exp.Not():
                return _negated(self.condition(node.this))
            case exp.Boolean():
                return AlwaysTrue() if node.this else AlwaysFalse()
            case exp.Column() | exp.Dot():
                reference = self._reference(node)
                if reference is not None:  # a boolean column
                    return Predicate(Op.EQ, reference, (Literal(True, BOOLEAN),))
        return self._leaf(node) or self._drop(node)

    def _leaf(self, node: exp.Expression) -> Expression | None:
        if not _understood(node):
            return None
        if type(node) in _COMPARISONS:
            return self._comparison(_COMPARISONS[type(node)], node.this, node.expression)
        match node:
            case exp.Between():
                low = self._comparison(Op.GE, node.this, node.args["low"])
                high = self._comparison(Op.LE, node.this, node.args["high"])
                return And((low, high)) if low and high else None
            case exp.In():
                return self._in(node)
            case exp.Is():
                return self._is(node)
            case exp.Like():
                return self._like(node, None)
            case exp.Escape() if isinstance(node.this, exp.Like):
                return self._like(node.this, node.expression)
            case exp.StartsWith():
                prefix = self._literal(node.expression)
                reference = self._reference(node.this)
                return (
                    Predicate(Op.STARTS_WITH, reference, (prefix,))
                    if reference and prefix
                    else None
                )
            case exp.IsNan():
                return self._is_nan(node)
        return None

    def _drop(self, node: exp.Expression) -> Expression:
        text = node.sql(dialect=spelling(self.dialect))
        self.dropped.append(text)
        # Subqueries and lambdas have names of their own.
        own = own_parts(node, exp.Column, exp.Lambda)
        named = [self._reference(c) for c in own if c.sql().lower() not in _NO_COLUMNS]
        return Unknown(text, tuple(c for c in named if c is not None))

    def _comparison(self, op: Op, left: exp.Expression, right: exp.Expression) -> Expression | None:
        reference, literal = self._reference(left), self._literal(right)
        if reference is None:
            reference, literal = self._reference(right), self._literal(left)
            op = _MIRRORED.get(op, op)
        if reference is not None and literal is not None:
            return Predicate(op, reference, (literal,))
        one, other = self._literal(left), self._literal(right)
        if op is Op.EQ and one is not None and one == other and one.value is not None:
            return AlwaysTrue()  # WHERE 1 = 1
        return None

    def _in(self, node: exp.In) -> Expression | None:
        reference = self._reference(node.this)
        literals = [self._literal(n) for n in node.expressions]
        known = tuple(v for v in literals if v is not None)
        if reference is None or not known or len(known) < len(literals):
            return None
        return Predicate(Op.IN, reference, known)

    def _is(self, node: exp.Is) -> Expression | None:
        """IS NULL, IS TRUE and IS FALSE. The last two are never NULL (rule 6)."""
        what = node.expression
        reference = self._reference(node.this)
        if isinstance(what, exp.Null) and reference is not None:
            return Predicate(Op.IS_NULL, reference)
        if not isinstance(what, exp.Boolean):
            return None
        if reference is not None:
            literal = Literal(bool(what.this), BOOLEAN)
            return Predicate(Op.NULL_SAFE_EQ, reference, (literal,))
        if not what.this:
            return None
        # (p) IS TRUE passes the rows that p passes, but its negation also passes NULL. Of what is
        # never NULL it changes nothing.
        inner = node.this.unnest()
        while isinstance(inner, exp.Is) and _is_true(inner):
            inner = inner.this.unnest()
        return And((self.condition(inner), self._drop(node)))

    def _is_nan(self, node: exp.IsNan) -> Expression | None:
        reference = self._reference(node.this)
        if reference is None:
            return None
        predicate = Predicate(Op.IS_NAN, reference)
        if self.dialect == "trino":
            return predicate
        return And((Predicate(Op.IS_NOT_NULL, reference), predicate))  # Spark: isnan(NULL) is false

    def _like(self, node: exp.Like, escape: exp.Expression | None) -> Expression | None:
        reference, literal = self._reference(node.this), self._literal(node.expression)
        if reference is None or literal is None or not isinstance(literal.value, bytes):
            return None
        if not literal.type.is_text or literal.type.kind is Kind.CHAR:
            return None  # bytes in hexadecimal, or a pattern that engines pad and trim
        mark = None if self.dialect == "trino" else "\\"
        if escape is not None:
            given = self._literal(escape)
            if given is None or not isinstance(given.value, bytes) or len(given.value) != 1:
                return None
            mark = given.value.decode()
        pattern = parse_like(literal.value.decode(), mark)
        known: Expression = pattern.predicate(reference)
        if not pattern.exact:
            # Hive and Spark read some patterns differently.
            trino = self.dialect == "trino"
            whole = matches(reference, literal.value.decode(), mark) if trino else None
            known = And((known, whole or self._drop(node)))
        return _negated(known) if node.args.get("negate") else known

    def _reference(self, node: exp.Expression) -> Reference | None:
        if not _understood(node):
            return None
        match node:
            case exp.Paren():
                return self._reference(node.this)
            case exp.Column():
                if all(isinstance(part, exp.Identifier) for part in node.parts):
                    return Reference(tuple(part.name for part in node.parts))
            case exp.Dot():
                head = self._reference(node.this)
                if head is not None and isinstance(node.expression, exp.Identifier):
                    return Reference((*head.path, node.expression.name))
            case _:
                return self._call(node)
        return None

    def _call(self, node: exp.Expression) -> Reference | None:
        """A function whose values an index may hold."""
        name = _FUNCTIONS.get(type(node))
        if isinstance(node, exp.Anonymous):
            name = node.name
            parts = list(node.expressions)
        elif isinstance(node, exp.DateTrunc | exp.TimestampTrunc):
            unit = node.args["unit"]
            parts = [exp.Literal.string(unit.name), node.this]
        elif self._is_day(node):
            name, parts = "date_trunc", [exp.Literal.string("day"), node.this]
        elif isinstance(node, exp.JSONExtractScalar):
            parts = [node.this, _path_text(node.expression)]
        elif isinstance(node, exp.Year | exp.Month | exp.Day | exp.DayOfMonth):
            inner = node.this  # other dialects also accept text here
            parts = [inner.this if isinstance(inner, exp.TsOrDsToDate) else inner]
        else:
            parts = [
                node.args[k] for k in ("this", "expression", "start", "length") if k in node.args
            ]
            parts = [part for part in parts if part is not None]
        if name is None or not all(isinstance(part, exp.Expression) for part in parts):
            return None
        arguments = [self._literal(p) or self._reference(p) for p in parts]
        known = [a for a in arguments if a is not None]
        return call(name, known) if len(known) == len(arguments) else None

    def _is_day(self, node: exp.Expression) -> bool:
        """Whether a node is Trino's ``date(x)`` or ``CAST(x AS DATE)``."""
        if self.dialect != "trino":
            return False
        to_date = isinstance(node, exp.Cast) and node.to.this == exp.DataType.Type.DATE
        return isinstance(node, exp.Date) or (to_date and type(node) is exp.Cast)

    def _literal(self, node: exp.Expression) -> Literal | None:
        if not _understood(node):
            return None
        match node:
            case exp.Paren():
                return self._literal(node.this)
            case exp.Null():
                return Literal(None, UNKNOWN)
            case exp.Boolean():
                return Literal(bool(node.this), BOOLEAN)
            case exp.Literal():
                if node.is_string:
                    return Literal(node.name.encode(), STRING)
                return _number(node.name, self.dialect)
            case exp.Neg():
                return _negative(self._literal(node.this))
            case exp.HexString():
                return _hex(node.name)
            case exp.Cast() | exp.TryCast():
                return _cast(self._literal(node.this), node.to, self.dialect)
            case exp.Anonymous() if not node.expressions:
                constant = {"nan": math.nan, "infinity": math.inf}.get(node.name.lower())
                return None if constant is None else Literal(constant, DOUBLE)
        return None


_NO_COLUMNS = frozenset(
    {
        "current_catalog",
        "current_database",
        "current_path",
        "current_role",
        "current_schema",
        "current_time",
        "localtime",
        "localtimestamp",
        "now",
        "session_user",
        "user",
    }
)
"""Functions called without parentheses, which sqlglot parses as columns."""
_FUNCTIONS: dict[type[Any], str] = {
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Substring: "substring",
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.DateTrunc: "date_trunc",
    exp.TimestampTrunc: "date_trunc",
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Mod: "modulus",
    exp.JSONExtractScalar: "json_extract_scalar",
}
# The arguments that a node may have. sqlglot also stores negation and variants as arguments, so a
# node with an unknown argument must not be translated.
_ARGUMENTS: dict[type[Any], frozenset[str]] = {
    exp.Between: frozenset({"this", "low", "high"}),
    exp.In: frozenset({"this", "expressions"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.DateTrunc: frozenset({"this", "unit"}),
    exp.TimestampTrunc: frozenset({"this", "unit"}),
}
_PLAIN = frozenset({"this", "expression"})


def _is_true(node: exp.Is) -> bool:
    what = node.expression
    return _understood(node) and isinstance(what, exp.Boolean) and bool(what.this)


def _path_text(path: exp.Expression) -> exp.Expression | None:
    """The original text of a JSON path that consists only of keys."""
    if not isinstance(path, exp.JSONPath):
        return None
    root, *steps = path.expressions
    if not isinstance(root, exp.JSONPathRoot):
        return None
    keys = [step.this for step in steps if isinstance(step, exp.JSONPathKey)]
    if len(keys) < len(steps) or not all(isinstance(key, str) for key in keys):
        return None
    return exp.Literal.string(".".join(["$", *keys]))


def _understood(node: exp.Expression) -> bool:
    known = _ARGUMENTS.get(type(node), _PLAIN)
    return all(name in known for name, value in node.args.items() if value)


def _operands(node: exp.Expression, kind: type[Any]) -> Iterator[exp.Expression]:
    """Operands of a chain, left to right, without recursion: sqlglot nests long chains deeply."""
    pending: list[exp.Expression] = [node]
    while pending:
        top = pending.pop()
        if isinstance(top, kind):
            pending.extend((top.expression, top.this))
        else:
            yield top


def _negated(expression: Expression) -> Expression:
    if isinstance(expression, Predicate) and expression.op in _FUSED:
        return Predicate(NEGATED[expression.op], expression.reference, expression.literals)
    return Not(expression)


def _number(text: str, dialect: str) -> Literal | None:
    lower = text.lower()
    if lower.isdigit():
        value = whole_number(lower.lstrip("0") or "0")
        if value is not None and value <= INTEGER_RANGE[Kind.BIGINT][1]:
            return Literal(value, BIGINT)
        return parse_decimal(lower)
    if "e" in lower or dialect == "hive":
        try:
            return Literal(float(lower), DOUBLE)
        except ValueError:
            return None
    return parse_decimal(lower)


def _negative(literal: Literal | None) -> Literal | None:
    if literal is None or isinstance(literal.value, bool | bytes) or literal.value is None:
        return None
    if literal.type.kind is Kind.DECIMAL and literal.value == 2**63 and not literal.type.scale:
        return Literal(-(2**63), BIGINT)  # the least bigint is written as a negated literal
    return Literal(-literal.value, literal.type)


def _hex(text: str) -> Literal | None:
    try:
        return Literal(bytes.fromhex(text), BINARY)
    except ValueError:
        return None


def _cast(literal: Literal | None, target: exp.DataType, dialect: str) -> Literal | None:
    """A literal cast to a type; None if the cast loses information."""
    type = _cast_type(literal, target, dialect)
    if literal is None or type is None:
        return None
    value = literal.value
    if value is None:
        return Literal(None, type)
    if isinstance(value, bytes):
        if literal.type.kind is Kind.BINARY:
            return Literal(value, type) if type.is_bytes else None
        text = value.decode()
        if not text.isascii() and not type.is_text:
            return None
        found = _from_text(text, type, dialect)
    elif isinstance(value, bool):
        return literal if type == BOOLEAN else None
    else:
        found = _from_number(literal, type)
    return None if found is None or _rounds(found, target) else found


def _rounds(literal: Literal, target: exp.DataType) -> bool:
    """Whether a cast to so many digits of a second changes the value."""
    if target.this not in (*_ZONED, *_TIMESTAMPS) or not target.expressions:
        return False
    digits = whole_number(target.expressions[0].name) or 0
    return isinstance(literal.value, int) and literal.value % 10 ** max(6 - digits, 0) != 0


def _cast_type(literal: Literal | None, target: exp.DataType, dialect: str) -> Type | None:
    if target.this in _ZONED and dialect == "spark":
        return TIMESTAMP  # the type of the table's own columns, in the session's zone
    if target.this in _ZONED:
        return TIMESTAMP_TZ  # without an offset it depends on the session
    sql = target.sql(dialect="hive").lower()
    if target.this == exp.DataType.Type.DECIMAL and not target.expressions:
        # DECIMAL '1.50' keeps its digits.
        text = literal.value.decode() if literal and isinstance(literal.value, bytes) else ""
        natural = parse_decimal(text) if literal and literal.value is not None else None
        return natural.type if natural else None
    if target.this == exp.DataType.Type.CHAR and not target.expressions:
        # CHAR 'abc' is as long as its text; Hive has no such literal.
        if dialect != "trino" or literal is None or not isinstance(literal.value, bytes):
            return None
        return char(max(len(literal.value.decode()), 1))
    if target.this in _TIMESTAMPS:
        return TIMESTAMP
    try:
        type = parse_hive_type(sql)
    except UnsupportedType:
        return None
    return None if type.is_nested or type is UNKNOWN else type


_ZONED = (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ)
_TIMESTAMPS = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ)


def _from_text(text: str, type: Type, dialect: str) -> Literal | None:
    match type:
        case Type(kind=Kind.DATE):
            days = parse_date(text)
            return None if days is None else Literal(days, DATE)
        case Type(kind=Kind.TIMESTAMP | Kind.TIMESTAMP_TZ):
            return parse_moment(text, type, zoned=dialect == "spark")
        case Type(kind=Kind.BOOLEAN):
            known = {"true": True, "false": False}.get(text.lower())
            return None if known is None else Literal(known, BOOLEAN)
        case Type(kind=Kind.STRING):
            return Literal(text.encode(), STRING)
        case Type(kind=Kind.VARCHAR | Kind.CHAR):
            return Literal(text.encode(), type) if len(text) <= type.length else None
        case Type(kind=Kind.FLOAT | Kind.DOUBLE):
            return _floating(text, type)
    number = parse_decimal(text) or _number(text, "trino")
    return None if number is None else _from_number(number, type)


def _floating(text: str, type: Type) -> Literal | None:
    if "_" in text:  # which only Python reads as a number
        return None
    try:
        return Literal(parse_float(text, single=type.kind is Kind.FLOAT), type)
    except ValueError:
        return None


def _from_number(literal: Literal, type: Type) -> Literal | None:
    if isinstance(literal.value, float) and not math.isfinite(literal.value):
        return Literal(literal.value, type) if type.is_floating else None
    number = exact_number(literal)
    if not isinstance(number, Fraction):
        return literal if literal.type == type else None
    if type.is_integer or type.kind is Kind.DECIMAL:
        scaled = number * 10**type.scale
        edges = domain(type)
        if scaled.denominator != 1 or edges is None or not edges[0] <= scaled <= edges[1]:
            return None
        return Literal(int(scaled), type)
    if type.is_floating:
        value = float(number)
        if type == FLOAT:
            value = neighbor_floats(number, single=True)[0]
        return Literal(value, type) if Fraction(value) == number else None
    return None
