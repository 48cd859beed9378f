"""Hive's casts in the plainest way there is; what cannot be cast is NULL (rule 24)."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

from bridge.kernel.types import INTEGER_RANGE, Kind, Type, Value, char, decimal, varchar
from tests.support.strategies import TYPES, single

CASTS = {
    Kind.TINYINT: "UDFToByte",
    Kind.SMALLINT: "UDFToShort",
    Kind.INTEGER: "UDFToInteger",
    Kind.BIGINT: "UDFToLong",
    Kind.FLOAT: "UDFToFloat",
    Kind.DOUBLE: "UDFToDouble",
    Kind.STRING: "UDFToString",
    Kind.DECIMAL: "GenericUDFToDecimal",
    Kind.VARCHAR: "GenericUDFToVarchar",
    Kind.CHAR: "GenericUDFToChar",
    Kind.TIMESTAMP: "GenericUDFTimestamp",
}
_DAY = 86_400_000_000


def some_type(rng: random.Random, source: Type) -> Type | None:
    """A type to cast to, often of the same family; None where there is none."""
    if source.kind in (Kind.BINARY, Kind.TIMESTAMP_TZ, Kind.BOOLEAN):
        return None
    numeric = _numeric(source)
    found = [t for t in TYPES if t.kind in CASTS]
    near = [t for t in found if _numeric(t) == numeric and t.is_text == source.is_text]
    target = rng.choice(near if near and rng.random() < 0.8 else found)
    match target.kind:
        case Kind.DECIMAL:
            precision = rng.randint(1, 38)
            return decimal(precision, rng.randint(0, precision))
        case Kind.VARCHAR:
            return varchar(rng.choice((1, 3, 9, 10, 11, 80)))
        case Kind.CHAR:
            return char(rng.choice((1, 4, 10)))
    return target


def _numeric(type: Type) -> bool:
    return type.is_integer or type.is_floating or type.kind is Kind.DECIMAL


def cast_value(value: Value | None, source: Type, target: Type) -> Any:
    """A canonical value of one type as one of the other; None is NULL."""
    if value is None or source == target:
        return value
    if target.is_text:
        text = _spelled(value, source)
        return None if text is None else _cut(text, target)
    if target.kind is Kind.TIMESTAMP:
        return value * _DAY if source.kind is Kind.DATE else None
    if not _numeric(source) or not _numeric(target):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return value if target.is_floating else None
    number = Fraction(value) / 10**source.scale
    if target.is_floating:
        return single(float(number)) if target.kind is Kind.FLOAT else float(number)
    if target.kind is Kind.DECIMAL:
        half = Fraction(1, 2) if number >= 0 else Fraction(-1, 2)
        unscaled = int(number * 10**target.scale + half)
        return unscaled if abs(unscaled) < 10**target.precision else None
    least, greatest = INTEGER_RANGE[target.kind]
    return (int(number) - least) % (greatest - least + 1) + least


def _spelled(value: Any, source: Type) -> str | None:
    if isinstance(value, bytes):
        text = value.decode()
        return text.rstrip(" ") if source.kind is Kind.CHAR else text
    return str(value) if source.is_integer else None


def _cut(text: str, target: Type) -> bytes:
    cut = text[: target.length] if target.length else text
    return (cut.rstrip(" ") if target.kind is Kind.CHAR else cut).encode()
