"""Hive's functions in the plainest way there is, a value at a time, for the laws."""

from __future__ import annotations

import datetime as dt
import json
import random
from dataclasses import dataclass
from typing import Any

from bridge.expression.nodes import Literal
from bridge.kernel.types import BIGINT, INTEGER, INTEGER_RANGE, STRING, Kind, Type

_EPOCH = dt.datetime(1970, 1, 1)
_TIMES = {
    "UDFYear": lambda t: t.year,
    "GenericUDFQuarter": lambda t: (t.month + 2) // 3,
    "UDFMonth": lambda t: t.month,
    "UDFDayOfMonth": lambda t: t.day,
}
_CLOCK = {"UDFHour": lambda t: t.hour, "UDFMinute": lambda t: t.minute}
_TEXTS = ("GenericUDFLower", "GenericUDFUpper", "UDFSubstr", "UDFSubstr", "UDFJson")
_ARITHMETIC = ("GenericUDFOPPlus", "GenericUDFOPMinus", "GenericUDFOPMultiply", "GenericUDFOPMod")


@dataclass(frozen=True)
class Function:
    """A function of a column and constants.

    Attributes:
        type: of what it gives.
    """

    name: str
    constants: tuple[Literal, ...]
    source: Type
    type: Type

    def apply(self, value: Any) -> Any:
        """Its value of one that is not NULL; None is NULL."""
        others = [c.value for c in self.constants]
        if self.name in _ARITHMETIC:
            return _wrapped(_computed(self.name, value, others[0]), self.type)
        if self.name in _TIMES or self.name in _CLOCK:
            days = self.source.kind is Kind.DATE
            try:
                moment = _EPOCH + dt.timedelta(
                    days=value if days else 0, microseconds=0 if days else value
                )
            except OverflowError:
                return None  # beyond what Python knows
            return {**_TIMES, **_CLOCK}[self.name](moment)
        text = _cut(value, self.source)
        match self.name:
            case "GenericUDFLower":
                return text.lower().encode("utf-8", "surrogatepass")
            case "GenericUDFUpper":
                return text.upper().encode("utf-8", "surrogatepass")
            case "UDFSubstr":
                units = text.encode("utf-16-le", "surrogatepass")
                begin = 2 * (others[0] - 1)
                found = units[begin:] if len(others) == 1 else units[begin : begin + 2 * others[1]]
                return found.decode("utf-16-le", "replace").encode()
        try:
            held = json.loads(text)["a"]
        except (ValueError, KeyError, TypeError):
            return None
        return held.encode() if isinstance(held, str) else None


def random_function(rng: random.Random, type: Type) -> Function | None:
    """A function that takes a type; None where there is none."""
    if type.kind in (Kind.STRING, Kind.VARCHAR, Kind.CHAR):
        name = rng.choice(
            ("GenericUDFLower", "GenericUDFUpper", "UDFSubstr", "UDFSubstr", "UDFJson")
        )
        if name == "UDFJson":
            return Function(name, (Literal(b"$.a", STRING),), type, STRING)
        if name != "UDFSubstr":
            return Function(name, (), type, type)
        numbers = rng.choice(((1, 1), (2,), (1, 2), (2, 0)))
        return Function(name, tuple(Literal(n, INTEGER) for n in numbers), type, STRING)
    if type.kind in (Kind.DATE, Kind.TIMESTAMP):
        clock = list(_CLOCK) if type.kind is Kind.TIMESTAMP else []
        return Function(rng.choice([*_TIMES, *clock]), (), type, INTEGER)
    if type.is_integer:
        constant = Literal(rng.choice((-3, 1, 2, 7, 10)), rng.choice((INTEGER, INTEGER, BIGINT)))
        result = max(type, constant.type, key=lambda t: INTEGER_RANGE[t.kind][1])
        return Function(rng.choice(_ARITHMETIC), (constant,), type, result)
    return None


def _computed(name: str, value: int, constant: int) -> int:
    match name:
        case "GenericUDFOPPlus":
            return value + constant
        case "GenericUDFOPMinus":
            return value - constant
        case "GenericUDFOPMultiply":
            return value * constant
    return (-1 if value < 0 else 1) * (abs(value) % abs(constant))


def _wrapped(number: int, type: Type) -> int:
    least, greatest = INTEGER_RANGE[type.kind]
    return (number - least) % (greatest - least + 1) + least


def _cut(value: bytes, type: Type) -> str:
    text = value.decode("utf-8", "surrogatepass")
    return text[: type.length] if type.length else text
