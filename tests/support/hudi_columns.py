"""Columns with ids, simple and nested: what a table shows of values that were written earlier.

A model of its own. Values are kept by the ids of columns, each with the type it was written in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from random import Random
from typing import Any

import pyarrow as pa

Value = Any
"""None; of a simple type the type and the value; of a record values by id; a list; key, value."""
NAMES = ("a", "b", "c", "d")
_ARROW = {
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
}
_DECIMALS = {"decimal(9, 2)": (9, 2), "decimal(12, 1)": (12, 1), "decimal(14, 2)": (14, 2)}
_WIDER = {
    "int": ("long", "double", "decimal(14, 2)", "string"),
    "long": ("double", "decimal(14, 2)", "string"),
    "float": ("double",),
    "double": ("decimal(12, 1)",),
    "decimal(9, 2)": ("decimal(14, 2)", "string"),
    "date": ("string",),
}
SIMPLE = ("int", "string", "long", "float", "double", "decimal(9, 2)", "date")
_FIRST_DAY = date(2020, 1, 1)


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a part of a nested one.

    Attributes:
        type: of a simple column as Hudi spells it; else ``record``, ``array`` or ``map``.
        parts: fields of a record, the ``element`` of an array, the ``value`` of a map.
        before: the types that the column had under its id.
    """

    id: int
    name: str
    type: str
    parts: tuple[Column, ...] = ()
    before: tuple[str, ...] = ()

    @property
    def spelled(self) -> str:
        """The name in files, where the column is not part of another one."""
        return self.name.upper() if self.id % 3 == 2 else self.name

    @property
    def wider(self) -> list[str]:
        """The types that it may change to, whatever the files hold."""
        known = (self.type, *self.before)
        return [t for t in _WIDER.get(self.type, ()) if all(t in _WIDER.get(b, ()) for b in known)]

    def shown(self, value: Value) -> Any:
        """A value as the table shows it, in the types of now."""
        if value is None:
            return None
        match self.type:
            case "record":
                return {part.name: part.shown(value.get(part.id)) for part in self.parts}
            case "array":
                return [self.parts[0].shown(each) for each in value]
            case "map":
                return [(key, self.parts[0].shown(each)) for key, each in value]
        return _converted(*value, self.type)

    def rewritten(self, value: Value) -> Value:
        """A value as a file of now holds it."""
        if value is None:
            return None
        match self.type:
            case "record":
                return {part.id: part.rewritten(value.get(part.id)) for part in self.parts}
            case "array":
                return [self.parts[0].rewritten(each) for each in value]
            case "map":
                return [(key, self.parts[0].rewritten(each)) for key, each in value]
        return self.type, _converted(*value, self.type)

    def random(self, random: Random, near: int) -> Value:
        """A value of now; numbers and texts are near ``near``, so that files differ."""
        if random.random() < 0.1:
            return None
        match self.type:
            case "record":
                return {part.id: part.random(random, near) for part in self.parts}
            case "array":
                return [self.parts[0].random(random, near) for _ in range(random.randint(0, 2))]
            case "map":
                keys = random.sample(["x", "y", "z"], random.randint(0, 2))
                return [(key, self.parts[0].random(random, near)) for key in keys]
        return self.type, _of_number(self.type, near * 10 + random.randint(0, 3))

    @property
    def arrow(self) -> pa.DataType:
        match self.type:
            case "record":
                return pa.struct([(part.name, part.arrow) for part in self.parts])
            case "array":
                return pa.list_(self.parts[0].arrow)
            case "map":
                return pa.map_(pa.string(), self.parts[0].arrow)
        if self.type in _DECIMALS:
            return pa.decimal128(*_DECIMALS[self.type])
        return _ARROW[self.type]

    def avro(self) -> list[Any]:
        """The type in a schema of Avro."""
        return ["null", self._avro()]

    def _avro(self) -> Any:
        match self.type:
            case "record":
                fields = [{"name": p.name, "type": p.avro(), "default": None} for p in self.parts]
                return {"type": "record", "name": f"r{self.id}", "fields": fields}
            case "array":
                return {"type": "array", "items": self.parts[0].avro()}
            case "map":
                return {"type": "map", "values": self.parts[0].avro()}
            case "date":
                return {"type": "int", "logicalType": "date"}
        if self.type in _DECIMALS:
            precision, scale = _DECIMALS[self.type]
            told = {"logicalType": "decimal", "precision": precision, "scale": scale}
            return {"type": "bytes", **told}
        return self.type

    def avro_value(self, shown: Any) -> Any:
        """A shown value as a writer of Avro takes it."""
        if shown is None:
            return None
        match self.type:
            case "record":
                return {part.name: part.avro_value(shown[part.name]) for part in self.parts}
            case "array":
                return [self.parts[0].avro_value(each) for each in shown]
            case "map":
                return {key: self.parts[0].avro_value(each) for key, each in shown}
        return shown

    def told(self) -> Any:
        """The type in a history of schemas."""
        match self.type:
            case "record":
                return {"type": "record", "fields": [field(part) for part in self.parts]}
            case "array":
                element = self.parts[0]
                told = {"element_id": element.id, "element": element.told()}
                return {"type": "array", **told, "element_optional": True}
            case "map":
                value = self.parts[0]
                told = {"key_id": 9000 + value.id, "key": "string", "value_id": value.id}
                return {"type": "map", **told, "value": value.told(), "value_optional": True}
        return self.type


def field(column: Column) -> dict[str, Any]:
    """A column in a history of schemas."""
    return {"id": column.id, "name": column.name, "optional": True, "type": column.told()}


def _of_number(type: str, number: int) -> Any:
    match type:
        case "int" | "long":
            return number
        case "float" | "double":
            return number / 4
        case "date":
            return _FIRST_DAY + timedelta(number)
        case "string":
            return f"s{number:03d}"
    scale = _DECIMALS[type][1]
    return (Decimal(number) / 4).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


class Narrowed(Exception):
    """A late writer gave the table the older, narrower type of a column."""


def _converted(have: str, value: Any, wanted: str) -> Any:
    """A value of a file in the table's type. Errors: Narrowed."""
    if have == wanted:
        return value
    if wanted not in _WIDER.get(have, ()):
        raise Narrowed(have, wanted)
    if wanted == "double":
        return float(value)
    if wanted == "long":
        return int(value)
    if wanted == "string":
        return value.isoformat() if have == "date" else str(value)
    scale = _DECIMALS[wanted][1]
    return Decimal(str(value)).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)


def condition(column: Column, random: Random) -> tuple[str, Callable[[Any], bool]]:
    """A condition in SQL on a column or on a field in it, and what it says of a shown value."""
    name, place, path = column.name, column, []
    while place.type == "record":
        place = random.choice(place.parts)
        path.append(place.name)
        name += f".{place.name}"

    def leaf(value: Any) -> Any:
        for part in path:
            value = None if value is None else value[part]
        return value

    text, holds = _of_leaf(name, place, random)
    return text, lambda value: holds(leaf(value))


def _of_leaf(name: str, column: Column, random: Random) -> tuple[str, Callable[[Any], bool]]:
    roll = random.random()
    if roll < 0.1 or column.type in ("array", "map"):
        if random.random() < 0.5:
            return f"{name} IS NULL", lambda v: v is None
        return f"{name} IS NOT NULL", lambda v: v is not None
    if roll < 0.3:
        found = _of_function(name, column.type, random)
        if found is not None:
            return found
    low, high = sorted(_literals(column.type, random) for _ in range(2))
    some, other = _spelled(column.type, low), _spelled(column.type, high)
    match random.choice(("=", "=", ">=", "<", "<>", "IN", "BETWEEN")):
        case "=":
            return f"{name} = {some}", lambda v: v is not None and v == low
        case ">=":
            return f"{name} >= {some}", lambda v: v is not None and v >= low
        case "<":
            return f"{name} < {other}", lambda v: v is not None and v < high
        case "<>":
            return f"{name} <> {some}", lambda v: v is not None and v != low
        case "IN":
            return f"{name} IN ({some}, {other})", lambda v: v is not None and v in (low, high)
    return f"{name} BETWEEN {some} AND {other}", lambda v: v is not None and low <= v <= high


def _of_function(name: str, type: str, random: Random) -> tuple[str, Callable[[Any], bool]] | None:
    number = random.randint(0, 9)
    match type:
        case "int" | "long":
            return f"{name} % 10 = {number}", lambda v: v is not None and v % 10 == number
        case "string":
            text = random.choice((f"s0{number}", f"S0{number}", str(number), "202"))
            if random.random() < 0.5:
                return (
                    f"substring({name}, 1, 3) = '{text}'",
                    lambda v: v is not None and v[:3] == text,
                )
            whole = f"{text}{random.randint(0, 3)}".lower()
            return f"lower({name}) = '{whole}'", lambda v: v is not None and v.lower() == whole
        case "date":
            month = random.randint(1, 4)
            return f"month({name}) = {month}", lambda v: v is not None and v.month == month
    return None


def function_of(name: str, type: str, random: Random) -> str | None:
    """A function of a column that an index may be of; None: there is none of its type."""
    match type:
        case "int" | "long":
            return f"{name} % 10"
        case "string":
            return random.choice((f"substring({name}, 1, 3)", f"lower({name})"))
        case "date":
            return f"month({name})"
    return None


def _literals(type: str, random: Random) -> Any:
    number = random.randint(0, 9) * 10 + random.randint(-1, 4)
    if type == "string":
        texts = (f"s{number:03d}", str(number), f"{number / 4}", f"{number}.00")
        return random.choice((*texts, (_FIRST_DAY + timedelta(number)).isoformat()))
    return _of_number(type, number)


def _spelled(type: str, value: Any) -> str:
    if type == "string":
        return f"'{value}'"
    return f"DATE '{value}'" if type == "date" else str(value)


def walk(column: Column) -> Iterator[Column]:
    """A column and all its parts."""
    yield column
    for part in column.parts:
        yield from walk(part)
