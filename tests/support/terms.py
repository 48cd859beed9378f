"""Random expressions of columns, in the words of engines, and what each engine computes of a row.

An expression is a nested tuple: an operation, its type, and its arguments. Engines are as plain as
they can be written down: Hive wraps and gives NULL where Trino fails.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Mapping
from typing import Any

from bridge.expression.parsing.calendar import format_date
from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    INTEGER,
    INTEGER_RANGE,
    STRING,
    Kind,
    Type,
    varchar,
)
from tests.support.hive_filters import encoded

Node = tuple[Any, ...]
"""(operation, type, arguments ...); of ``column`` its path, of ``value`` the value."""
_WHOLE = ("add", "subtract", "multiply", "modulus")
_COMPARED = ("=", "<>", "<", "<=", ">", ">=")
_PARTS = ("year", "month", "day", "quarter")
_EPOCH = dt.date(1970, 1, 1)


class Failed(Exception):
    """The engine fails on this row."""


class Terms:
    """Draws expressions over the columns of a table."""

    def __init__(
        self, rng: random.Random, paths: Mapping[tuple[str, ...], Type], pools: Mapping[Any, Any]
    ) -> None:
        self._rng, self._paths, self._pools = rng, paths, pools

    def condition(self, depth: int) -> Node:
        rng = self._rng
        kind = rng.random()
        if depth and kind < 0.25:
            parts = [self.condition(depth - 1) for _ in range(2)]
            return rng.choice(("and", "or")), BOOLEAN, *parts
        if depth and kind < 0.35:
            return "not", BOOLEAN, self.condition(depth - 1)
        of = rng.choice((INTEGER, BIGINT, STRING, STRING, DATE))
        value = self.value(of, depth)
        if kind < 0.45:
            return "is_null", BOOLEAN, value
        if kind < 0.6:
            return "in", BOOLEAN, value, *(self.literal(of) for _ in range(rng.choice((1, 3))))
        if kind < 0.7:
            return "between", BOOLEAN, value, self.literal(of), self.literal(of)
        if kind < 0.8:
            return rng.choice(("identical", "distinct")), BOOLEAN, value, self.literal(of)
        if depth and kind < 0.85:
            truths = [("value", BOOLEAN, rng.random() < 0.5) for _ in range(2)]
            return "if", BOOLEAN, self.condition(depth - 1), truths[0], truths[1]
        if depth and kind < 0.9:
            wanted = "value", BOOLEAN, rng.random() < 0.5
            operation = rng.choice(("identical", "distinct"))
            return operation, BOOLEAN, self.condition(depth - 1), wanted
        other = self.literal(of) if rng.random() < 0.7 else self.value(of, depth)
        return rng.choice(_COMPARED), BOOLEAN, value, other

    def literal(self, of: Type) -> Node:
        rng = self._rng
        pools = [self._pools[p] for p, t in self._paths.items() if _alike(t, of)]
        if pools and rng.random() < 0.7:
            value = rng.choice(rng.choice(pools))
            least, greatest = INTEGER_RANGE.get(of.kind, (0, 0))
            if not of.is_integer or least <= value <= greatest:
                return "value", of, value
        if of.is_integer:
            return "value", of, rng.choice((0, 1, 2, 3, 5, 7, 10, -1, 770))
        texts = (b"", b"a", b"1", b"7", b"ab", b"2024-03-01", b"x7")
        return "value", of, rng.choice((0, 19_783, 18_000) if of == DATE else texts)

    def value(self, of: Type, depth: int) -> Node:
        rng = self._rng
        columns = [("column", t, p) for p, t in self._paths.items() if _alike(t, of)]
        if not depth or rng.random() < 0.3:
            return rng.choice(columns) if columns else self.literal(of)
        less = depth - 1
        if rng.random() < 0.25:
            if rng.random() < 0.5:
                return "coalesce", of, self._cast(of, less), self.literal(of)
            return "if", of, self.condition(less), self._cast(of, less), self.literal(of)
        if rng.random() < 0.1:
            return "nullif", of, self._cast(of, less), self.literal(of)
        if of == DATE:
            return rng.choice(columns) if columns else self.literal(of)
        if of == STRING:
            return self._text(less)
        drawn = rng.random()
        if drawn < 0.5:
            operation = rng.choice(_WHOLE)
            return operation, of, self._cast(of, less), self.literal(of)
        if drawn < 0.7:
            return rng.choice(("abs", "negate")), of, self._cast(of, less)
        if drawn < 0.8:
            return "cast", of, ("length", BIGINT, self._text(less))
        if drawn < 0.9:
            return "cast", of, (rng.choice(_PARTS), BIGINT, self.value(DATE, less))
        return "cast", of, self.value(rng.choice((INTEGER, BIGINT, STRING)), less)

    def _cast(self, of: Type, depth: int) -> Node:
        """A value of exactly this type: engines cast columns to it."""
        found = self.value(of, depth)
        return found if found[1] == of else ("cast", of, found)

    def _text(self, depth: int) -> Node:
        rng = self._rng
        drawn = rng.random()
        if drawn < 0.25:
            return rng.choice(("lower", "upper")), STRING, self._cast(STRING, depth)
        if drawn < 0.4:
            numbers = [("value", INTEGER, n) for n in rng.choice(((1, 1), (2,), (1, 2)))]
            return "substring", STRING, self._cast(STRING, depth), *numbers
        if drawn < 0.5:
            return "concat", STRING, self._cast(STRING, depth), self.literal(STRING)
        if drawn < 0.6:
            short = "cast", varchar(rng.choice((1, 3, 12))), self.value(INTEGER, depth)
            return "cast", STRING, short
        of = rng.choice((INTEGER, BIGINT, DATE))
        return "cast", STRING, self.value(of, depth)


def _alike(one: Type, other: Type) -> bool:
    texts = one.kind in (Kind.STRING, Kind.VARCHAR) and other.kind is Kind.STRING
    return one == other or texts or (one.is_integer and other == BIGINT)


def truth(node: Node, row: Mapping[Any, Any], engine: str) -> Any:
    """The value of an expression for a row; None is NULL. Errors: Failed."""
    operation, of, *rest = node
    if operation == "value":
        return rest[0]
    if operation == "column":
        value = row[rest[0]]
        return _cut(value, of) if isinstance(value, bytes) else value
    if operation == "if":
        return truth(rest[1] if truth(rest[0], row, engine) is True else rest[2], row, engine)
    if operation in ("and", "or"):
        return _together(operation == "or", rest, row, engine)
    if operation == "not" and rest[0][0] in ("and", "or"):
        # Engines and planner push NOT to the leaves, so a part settles as it does there.
        inner, _, *parts = rest[0]
        parts = [("not", BOOLEAN, part) for part in parts]
        return _together(inner == "and", parts, row, engine)
    given = [truth(a, row, engine) for a in rest]
    match operation:
        case "is_null":
            return given[0] is None
        case "coalesce":
            return next((v for v in given if v is not None), None)
        case "nullif":
            return None if given[0] is not None and given[0] == given[1] else given[0]
        case "identical" | "distinct":
            return (given[0] == given[1]) is (operation == "identical")
        case "in":
            if given[0] is None or given[0] in given[1:]:
                return None if given[0] is None else True
            return None if None in given else False
        case "between":
            low = truth((">=", BOOLEAN, rest[0], rest[1]), row, engine)
            high = truth(("<=", BOOLEAN, rest[0], rest[2]), row, engine)
            return False if False in (low, high) else None if None in (low, high) else True
    if None in given:
        return None
    return _strict(operation, of, given, [a[1] for a in rest], engine)


def _together(sure: bool, parts: list[Node], row: Mapping[Any, Any], engine: str) -> Any:
    """AND and OR: what one part settles, the failure of another does not unsettle."""
    given: list[Any] = []
    failed = False
    for part in parts:
        try:
            given.append(truth(part, row, engine))
        except Failed:
            failed = True
    if sure in given:
        return sure
    if not sure and None in given:
        return None  # whatever the other part is, the row is not returned
    if failed:
        raise Failed
    return None if None in given else not sure


def _strict(operation: str, of: Type, given: list[Any], types: list[Type], engine: str) -> Any:
    if operation in _COMPARED:
        a, b = given
        if isinstance(a, bytes) and engine == "hive":  # row by row, in Java's order
            a, b = (v.decode().encode("utf-16-be") for v in given)
        order = (a > b) - (a < b)
        return {
            "=": order == 0,
            "<>": order != 0,
            "<": order < 0,
            "<=": order <= 0,
            ">": order > 0,
            ">=": order >= 0,
        }[operation]
    match operation:
        case "not":
            return not given[0]
        case "add" | "subtract" | "multiply" | "modulus" | "abs" | "negate":
            return _fitted(_computed(operation, given, engine), of, engine)
        case "lower":
            return given[0].decode().lower().encode()
        case "upper":
            return given[0].decode().upper().encode()
        case "length":
            return len(given[0].decode())
        case "concat":
            return b"".join(given)
        case "substring":
            text, begin, *count = (given[0].decode(), *given[1:])
            end = begin - 1 + count[0] if count else None
            return text[begin - 1 : end].encode()
        case "cast":
            return _cast(given[0], types[0], of, engine)
    try:
        day = _EPOCH + dt.timedelta(days=given[0])
    except OverflowError:
        raise Failed from None  # beyond what Python knows
    return (day.month + 2) // 3 if operation == "quarter" else getattr(day, operation)


def _computed(operation: str, given: list[int], engine: str) -> int | None:
    match operation:
        case "add":
            return given[0] + given[1]
        case "subtract":
            return given[0] - given[1]
        case "multiply":
            return given[0] * given[1]
        case "abs":
            return abs(given[0])
        case "negate":
            return -given[0]
    value, by = given
    if not by:
        if engine == "trino":
            raise Failed
        return None
    return (-1 if value < 0 else 1) * (abs(value) % abs(by))


def _fitted(number: int | None, of: Type, engine: str) -> int | None:
    if number is None:
        return None
    least, greatest = INTEGER_RANGE[of.kind]
    if least <= number <= greatest:
        return number
    if engine == "trino":
        raise Failed
    return (number - least) % (greatest - least + 1) + least


def _cast(value: Any, source: Type, of: Type, engine: str) -> Any:
    if of.is_integer:
        if isinstance(value, bytes):
            if not re.fullmatch(rb"[+-]?[0-9]+", value):
                if engine == "trino":
                    raise Failed
                return None
            value = int(value)
            least, greatest = INTEGER_RANGE[of.kind]
            if engine == "hive" and not least <= value <= greatest:
                return None
        return _fitted(value, of, engine)
    text = value
    if isinstance(value, int):
        text = (format_date(value) if source == DATE else str(value)).encode()
    if of.length and len(text) > of.length and not isinstance(value, bytes) and engine == "trino":
        raise Failed
    return _cut(text, of)


def _cut(text: bytes, of: Type) -> bytes:
    return text.decode()[: of.length].encode() if of.length else text


_HIVE = {
    "and": "GenericUDFOPAnd",
    "or": "GenericUDFOPOr",
    "not": "GenericUDFOPNot",
    "is_null": "GenericUDFOPNull",
    "=": "GenericUDFOPEqual",
    "<>": "GenericUDFOPNotEqual",
    "<": "GenericUDFOPLessThan",
    "<=": "GenericUDFOPEqualOrLessThan",
    ">": "GenericUDFOPGreaterThan",
    ">=": "GenericUDFOPEqualOrGreaterThan",
    "identical": "GenericUDFOPEqualNS",
    "distinct": "GenericUDFOPNotEqualNS",
    "coalesce": "GenericUDFCoalesce",
    "nullif": "GenericUDFNullif",
    "if": "GenericUDFWhen",
    "in": "GenericUDFIn",
    "add": "GenericUDFOPPlus",
    "subtract": "GenericUDFOPMinus",
    "multiply": "GenericUDFOPMultiply",
    "modulus": "GenericUDFOPMod",
    "negate": "GenericUDFOPNegative",
    "abs": "GenericUDFAbs",
    "length": "GenericUDFLength",
    "concat": "GenericUDFConcat",
    "lower": "GenericUDFLower",
    "upper": "GenericUDFUpper",
    "substring": "UDFSubstr",
    "year": "UDFYear",
    "month": "UDFMonth",
    "day": "UDFDayOfMonth",
    "quarter": "GenericUDFQuarter",
}
_HIVE_CASTS = {
    Kind.INTEGER: "UDFToInteger",
    Kind.BIGINT: "UDFToLong",
    Kind.STRING: "UDFToString",
    Kind.VARCHAR: "GenericUDFToVarchar",
}
_TRINO = {
    "and": "$and",
    "or": "$or",
    "not": "$not",
    "is_null": "$is_null",
    "=": "$equal",
    "<>": "$not_equal",
    "<": "$less_than",
    "<=": "$less_than_or_equal",
    ">": "$greater_than",
    ">=": "$greater_than_or_equal",
    "identical": "$identical",
    "distinct": "$is_distinct_from",
    "coalesce": "$coalesce",
    "nullif": "$nullif",
    "if": "$if",
    "between": "$between",
    "add": "$add",
    "subtract": "$subtract",
    "multiply": "$multiply",
    "modulus": "$modulo",
    "negate": "$negate",
    "cast": "$cast",
}
_TRINO_TYPES = {Kind.STRING: "varchar", Kind.INTEGER: "integer"}


def to_hive(node: Node) -> dict[str, Any]:
    """An expression as the hooks write it."""
    operation, of, *rest = node
    type = str(of)
    if operation == "value":
        return {"constant": encoded(rest[0], of), "type": type}
    if operation == "column":
        found: dict[str, Any] = {"column": rest[0][0], "type": type}
        if len(rest[0]) > 1:
            found["type"] = f"struct<{rest[0][1]}:{type}>"
            found = {"field": rest[0][1], "of": found, "type": type}
        return found
    args = [to_hive(a) for a in rest]
    if operation == "between":
        args = [{"constant": False, "type": "boolean"}, *args]
        return {"call": "GenericUDFBetween", "type": type, "args": args}
    name = _HIVE_CASTS[of.kind] if operation == "cast" else _HIVE[operation]
    if operation in ("identical", "distinct") and rest[0][1] == BOOLEAN:  # Hive's IS TRUE
        name = f"GenericUDFOP{'Not' * (operation == 'distinct')}{args.pop()['constant']}"
    return {"call": name, "type": type, "args": args}


def to_trino(node: Node) -> dict[str, Any]:
    """An expression as the connector writes it."""
    operation, of, *rest = node
    type = _TRINO_TYPES.get(of.kind, str(of))
    if operation == "value":
        value = rest[0].decode() if isinstance(rest[0], bytes) else rest[0]
        return {"constant": value, "type": type}
    if operation == "column":
        path = {"path": list(rest[0][1:])} if len(rest[0]) > 1 else {}
        return {"column": rest[0][0], "type": type, **path}
    args = [to_trino(a) for a in rest]
    if operation == "in":
        array = {"call": "$array", "type": f"array({args[0]['type']})", "args": args[1:]}
        return {"call": "$in", "type": type, "args": [args[0], array]}
    return {"call": _TRINO.get(operation, operation), "type": type, "args": args}


_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "modulus": "%"}
_SQL_TYPES = {
    "hive": {Kind.INTEGER: "int", Kind.STRING: "string"},
    "trino": {Kind.INTEGER: "integer", Kind.STRING: "varchar"},
}


def to_sql(node: Node, row: Mapping[Any, Any], engine: str) -> str:
    """An expression of one row's values in an engine's SQL."""
    operation, of, *rest = node
    if operation in ("value", "column"):
        value = rest[0] if operation == "value" else row[rest[0]]
        return _literal(value, of, engine)
    given = [to_sql(a, row, engine) for a in rest]
    if operation in _SIGNS or operation in _COMPARED or operation in ("and", "or"):
        return f"({given[0]} {_SIGNS.get(operation, operation)} {given[1]})"
    match operation:
        case "not":
            return f"(NOT {given[0]})"
        case "negate":
            return f"(- {given[0]})"
        case "is_null":
            return f"({given[0]} IS NULL)"
        case "in":
            return f"({given[0]} IN ({', '.join(given[1:])}))"
        case "between":
            return f"({given[0]} BETWEEN {given[1]} AND {given[2]})"
        case "identical" | "distinct":
            if engine == "hive" and rest[0][1] == BOOLEAN:
                return f"({given[0]} IS {'NOT ' * (operation == 'distinct')}{given[1]})"
            words = "<=>" if engine == "hive" else "IS NOT DISTINCT FROM"
            same = f"({given[0]} {words} {given[1]})"
            return same if operation == "identical" else f"(NOT {same})"
        case "if":
            return f"(CASE WHEN {given[0]} THEN {given[1]} ELSE {given[2]} END)"
        case "cast":
            return f"CAST({given[0]} AS {_SQL_TYPES[engine].get(of.kind, of)})"
    return f"{operation}({', '.join(given)})"


def _literal(value: Any, of: Type, engine: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if of == DATE and value is not None:
        return f"DATE '{format_date(value)}'"
    text = "NULL" if value is None else str(value)
    if isinstance(value, bytes):
        shown = value.decode().replace("\\", "\\\\") if engine == "hive" else value.decode()
        quote = "\\'" if engine == "hive" else "''"
        text = "'" + shown.replace("'", quote) + "'"
    return f"CAST({text} AS {_SQL_TYPES[engine].get(of.kind, of)})"
