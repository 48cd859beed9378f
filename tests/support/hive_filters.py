"""Random filters of Hive, and a judge that reads them on its own.

It judges in each way in which one of Hive's readers might: row by row (NaN largest, -0.0 below 0.0,
text by Java's order of UTF-16 units) and in vectors (IEEE, text by its bytes).
"""

from __future__ import annotations

import base64
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any, cast

from bridge.expression.evaluate import Row
from bridge.expression.format import format_decimal
from bridge.expression.nodes import Literal
from bridge.expression.parsing.calendar import format_date, format_timestamp
from bridge.kernel.types import BOOLEAN, DOUBLE, INTEGER_RANGE, Kind, Type, Value
from tests.support.hive_casts import CASTS, cast_value, some_type
from tests.support.hive_functions import Function, random_function
from tests.support.strategies import Table, literal, single, value

Node = dict[str, Any]
Truth = bool | None
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "GenericUDFOPEqual": lambda c: c == 0,
    "GenericUDFOPNotEqual": lambda c: c != 0,
    "GenericUDFOPLessThan": lambda c: c < 0,
    "GenericUDFOPEqualOrLessThan": lambda c: c <= 0,
    "GenericUDFOPGreaterThan": lambda c: c > 0,
    "GenericUDFOPEqualOrGreaterThan": lambda c: c >= 0,
}
_UNORDERED = 2
"""The outcome of a comparison with NaN by IEEE: neither less, equal nor greater, but unequal."""
_DAY = 86_400_000_000


def encoded(value: Value | None, type: Type) -> Any:
    """A canonical value as the hooks write it."""
    match type.kind:
        case _ if value is None:
            return None
        case Kind.FLOAT | Kind.DOUBLE:
            return str(value).replace("inf", "Infinity").replace("nan", "NaN")
        case Kind.DECIMAL:
            return format_decimal(cast(int, value), type.scale)
        case Kind.DATE:
            return format_date(cast(int, value))
        case Kind.TIMESTAMP | Kind.TIMESTAMP_TZ:
            return format_timestamp(cast(int, value))
        case Kind.BINARY:
            return base64.b64encode(cast(bytes, value)).decode()
    return value.decode() if isinstance(value, bytes) else value


class Filter:
    """A random tree, and the constants in it as values."""

    def __init__(self, rng: random.Random, data: Table, *, functions: float = 0.0) -> None:
        self._rng = rng
        self._data = data
        self._functions = functions
        self.functions: dict[int, Function] = {}
        self.constants: dict[int, Literal] = {}
        self.columns: dict[int, tuple[str, ...]] = {}
        self.casts: dict[int, tuple[Type, Type]] = {}
        self._alive: list[Node] = []  # identities stay apart only as long as nodes live

    def condition(self, depth: int) -> Node:
        rng = self._rng
        kind = rng.random() if depth else 1.0
        if kind < 0.2:
            return call("GenericUDFOPNot", self.condition(depth - 1))
        if kind < 0.6:
            name = "GenericUDFOPAnd" if kind < 0.4 else "GenericUDFOPOr"
            return call(name, *(self.condition(depth - 1) for _ in range(rng.choice((1, 2, 3)))))
        if rng.random() < 0.05:
            return {"opaque": f"f{rng.randint(0, 3)}(x)"}
        return self._leaf()

    def _leaf(self) -> Node:
        rng = self._rng
        path = rng.choice(list(self._data.paths))
        type = self._data.paths[path]
        column, pool = self.column(path, type), self._data.pools[path]
        wrapped = self._functions
        while wrapped and rng.random() < wrapped:
            wrapped = 0.15
            of = random_function(rng, type)
            if of is None:
                break
            made = [of.apply(v) for v in pool]
            pool = [v for v in made if v is not None] or [value(rng, of.type)]
            column, type = self._called(of, column), of.type
        casts = (0, 0, 0, 0, 0, 1) if self._functions else (0, 0, 0, 1, 1, 2)
        for _ in range(rng.choice(casts)):
            target = some_type(rng, type)
            if target is None:
                break
            made = [cast_value(v, type, target) for v in pool]
            pool = [v for v in made if v is not None] or [value(rng, target)]
            column, type = self._cast(column, type, target), target

        def constant() -> Node:
            if rng.random() < 0.2 and (type.is_integer or type.is_floating):
                return self.constant(Literal(rng.choice((0.0, -0.0)), DOUBLE))
            return self.constant(literal(rng, type, pool))

        kind = rng.random()
        if kind < 0.08:
            return call(rng.choice(("GenericUDFOPNull", "GenericUDFOPNotNull")), column)
        if kind < 0.2:
            return call("GenericUDFIn", column, *(constant() for _ in range(rng.choice((1, 3)))))
        if kind < 0.3:
            inverted = self.constant(Literal(rng.random() < 0.4, BOOLEAN))
            return call("GenericUDFBetween", inverted, column, constant(), constant())
        if kind < 0.4 and type.is_text:
            return call("UDFLike", column, self._pattern(pool))
        if kind < 0.5 and type == BOOLEAN:
            names = ("Bare", "OPTrue", "OPFalse", "OPNotTrue", "OPNotFalse")
            name = rng.choice(names)
            return column if name == "Bare" else call(f"GenericUDF{name}", column)
        if kind < 0.55 and type.kind is Kind.TIMESTAMP:
            day = Literal(rng.choice((0, 1, 19783, 19784, -25568)), Type(Kind.DATE))
            of_day = call("GenericUDFToDate", column, type="date")
            return call(rng.choice(list(_COMPARISONS)), of_day, self.constant(day))
        if kind < 0.65:
            return call(
                rng.choice(("GenericUDFOPEqualNS", "GenericUDFOPNotEqualNS")), column, constant()
            )
        sides = [column, constant()]
        if rng.random() < 0.2:
            sides.reverse()
        return call(rng.choice(list(_COMPARISONS)), *sides)

    def _pattern(self, pool: list[Value]) -> Node:
        rng = self._rng
        text = cast(bytes, rng.choice(pool)).decode()
        cut = text[: rng.randint(0, min(len(text), 4))]
        tail = rng.choice(("", "%", "%%", "_", "\\%", "\\\\%", "%x", "_%"))
        return self.constant(Literal((cut + tail).encode(), Type(Kind.STRING)))

    def column(self, path: tuple[str, ...], type: Type) -> Node:
        node: Node = {"column": path[0], "type": str(type)}
        if len(path) > 1:
            node["type"] = f"struct<{path[1]}:{type}>"
            node = {"field": path[1], "of": node, "type": str(type)}
        self._alive.append(node)
        self.columns[id(node)] = path
        return node

    def _cast(self, node: Node, source: Type, target: Type) -> Node:
        made = call(CASTS[target.kind], node, type=str(target))
        self._alive.append(made)
        self.casts[id(made)] = source, target
        return made

    def _called(self, of: Function, column: Node) -> Node:
        constants = [self.constant(each) for each in of.constants]
        made = call(of.name, column, *constants, type=str(of.type))
        self._alive.append(made)
        self.functions[id(made)] = of
        return made

    def constant(self, found: Literal) -> Node:
        node = {"constant": encoded(found.value, found.type), "type": str(found.type)}
        self._alive.append(node)
        self.constants[id(node)] = found
        return node


def call(name: str, *args: Node, type: str = "boolean") -> Node:
    return {"call": name, "type": type, "args": list(args)}


class Judge:
    """One of Hive's readers, value by value, in three-valued logic."""

    def __init__(self, of: Filter, data: Table, *, vectorised: bool) -> None:
        self._of = of
        self._data = data
        self._vectorised = vectorised

    def truth(self, node: Node, row: Row) -> Truth:
        name = node.get("call")
        if "opaque" in node:
            return (len(node["opaque"]) + hash(str(node["opaque"])) + len(row)) % 2 == 0
        if name is None:
            return cast(Truth, self._value(node, row)[0])
        args = node["args"]
        match name:
            case "GenericUDFOPNot":
                found = self.truth(args[0], row)
                return None if found is None else not found
            case "GenericUDFOPAnd" | "GenericUDFOPOr":
                return _together([self.truth(a, row) for a in args], name == "GenericUDFOPAnd")
            case "GenericUDFOPNull" | "GenericUDFOPNotNull":
                return (self._value(args[0], row)[0] is None) is (name == "GenericUDFOPNull")
            case "GenericUDFOPTrue" | "GenericUDFOPFalse":
                return self._value(args[0], row)[0] is (name == "GenericUDFOPTrue")
            case "GenericUDFOPNotTrue" | "GenericUDFOPNotFalse":
                return self._value(args[0], row)[0] is not (name == "GenericUDFOPNotTrue")
            case "GenericUDFIn":
                found = [self._compared("GenericUDFOPEqual", args[0], a, row) for a in args[1:]]
                if self._vectorised and self._value(args[0], row)[0] is not None:
                    found = [f is True for f in found]  # some lists forget their NULLs
                return _together(found, every=False)
            case "GenericUDFBetween":
                low = self._compared("GenericUDFOPEqualOrGreaterThan", args[1], args[2], row)
                high = self._compared("GenericUDFOPEqualOrLessThan", args[1], args[3], row)
                within = _together([low, high], every=True)
                inverted = self._of.constants[id(args[0])].value
                return within if not inverted or within is None else not within
            case "UDFLike":
                return self._like(args, row)
            case "GenericUDFOPEqualNS" | "GenericUDFOPNotEqualNS":
                left, right = (self._value(a, row)[0] for a in args)
                same = left is right
                if left is not None and right is not None:
                    same = self._compared("GenericUDFOPEqual", *args, row) is True
                return same is (name == "GenericUDFOPEqualNS")
        return self._compared(name, *args, row)

    def _compared(self, name: str, left: Node, right: Node, row: Row) -> Truth:
        (a, of_a), (b, of_b) = self._value(left, row), self._value(right, row)
        if a is None or b is None:
            return None
        order = self._order(a, of_a, b, of_b)
        if order == _UNORDERED:
            return name == "GenericUDFOPNotEqual"
        return _COMPARISONS[name](order)

    def _order(self, a: Any, of_a: Type, b: Any, of_b: Type) -> int:
        if of_a.is_text:
            if Kind.CHAR in (of_a.kind, of_b.kind):
                a, b = a.rstrip(b" "), b.rstrip(b" ")
            if not self._vectorised:
                a, b = (v.decode().encode("utf-16-be") for v in (a, b))
            return (a > b) - (a < b)
        if of_a.kind in (Kind.DATE, Kind.TIMESTAMP) and of_a != of_b:
            a, b = (v * _DAY if t.kind is Kind.DATE else v for v, t in ((a, of_a), (b, of_b)))
        if of_a.is_floating or of_b.is_floating or Kind.DECIMAL in (of_a.kind, of_b.kind):
            return self._numbers(a, of_a, b, of_b)
        return (a > b) - (a < b)

    def _numbers(self, a: Any, of_a: Type, b: Any, of_b: Type) -> int:
        nan = [isinstance(v, float) and math.isnan(v) for v in (a, b)]
        if any(nan):
            return _UNORDERED if self._vectorised else nan[0] - nan[1]
        x, y = (
            v if isinstance(v, float) and math.isinf(v) else Fraction(v) / 10**t.scale
            for v, t in ((a, of_a), (b, of_b))
        )
        if x == y == 0 and not self._vectorised and (of_a.is_floating or of_b.is_floating):
            return int(math.copysign(1, a) > math.copysign(1, b)) - int(
                math.copysign(1, a) < math.copysign(1, b)
            )
        if of_a.is_floating or of_b.is_floating:
            # Compared as the wider of the two, or exactly: which, depends on the version.
            floats = {of_a.kind, of_b.kind} <= {Kind.FLOAT, *INTEGER_RANGE}
            if floats and self._vectorised:
                x, y = single(float(x)), single(float(y))
            elif self._vectorised:
                x, y = float(x), float(y)
        return (x > y) - (x < y)

    def _like(self, args: list[Node], row: Row) -> Truth:
        (value, type), (pattern, _) = self._value(args[0], row), self._value(args[1], row)
        if value is None or pattern is None:
            return None
        text = value.decode()
        if type.kind is Kind.CHAR:
            text = text.rstrip(" ")
        return _like(text, pattern.decode())

    def _value(self, node: Node, row: Row) -> tuple[Any, Type]:
        if id(node) in self._of.constants:
            found = self._of.constants[id(node)]
            return found.value, found.type
        if node.get("call") == "GenericUDFToDate":
            micros, _ = self._value(node["args"][0], row)
            return None if micros is None else micros // _DAY, Type(Kind.DATE)
        if id(node) in self._of.functions:
            of = self._of.functions[id(node)]
            given, _ = self._value(node["args"][0], row)
            return None if given is None else of.apply(given), of.type
        if id(node) in self._of.casts:
            source, target = self._of.casts[id(node)]
            inner, _ = self._value(node["args"][0], row)
            return cast_value(inner, source, target), target
        path = self._of.columns[id(node)]
        value, type = row[path], self._data.paths[path]
        if type.kind is Kind.VARCHAR and isinstance(value, bytes):
            value = value.decode()[: type.length].encode()
        return value, type


def _like(text: str, pattern: str) -> bool:
    if not pattern:
        return not text
    if pattern[0] == "\\" and pattern[1:2] in ("%", "_") and pattern[1:]:
        return text[:1] == pattern[1] and _like(text[1:], pattern[2:])
    if pattern[0] == "%":
        return any(_like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    if not text or (pattern[0] != "_" and text[0] != pattern[0]):
        return False
    return _like(text[1:], pattern[1:])


def _together(found: list[Truth], every: bool) -> Truth:
    if (not every) in found:
        return not every
    return None if None in found else every
