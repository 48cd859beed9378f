"""Trino's casts in the plainest way there is: one value, exact fractions, picoseconds (rule 24).

A type is its name and its numbers, ``("timestamp", 3)``; a varchar without a number has no end.
Values are those of Python: a fraction for a decimal, text without a char's padding, days of a date,
picoseconds of a timestamp or an instant.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

from bridge.kernel.types import INTEGER_RANGE, Kind, Type
from tests.support.strategies import single

Model = tuple[Any, ...]
INTEGERS = {
    "tinyint": INTEGER_RANGE[Kind.TINYINT],
    "smallint": INTEGER_RANGE[Kind.SMALLINT],
    "integer": INTEGER_RANGE[Kind.INTEGER],
    "bigint": INTEGER_RANGE[Kind.BIGINT],
}
NUMBERS = (*INTEGERS, "real", "double", "decimal", "boolean")
TEXTS = ("varchar", "char")
TIMES = ("date", "timestamp", "instant")
DAY = 86_400 * 10**12
ZONE = 19_800 * 10**12
"""Of the session: five and a half hours east."""


class Failed(Exception):
    """There is no such cast, or it fails for this value: the query has no rows at all."""


def named(type: Model) -> str:
    """The type as it goes over the wire."""
    base, *numbers = type
    shown = f"({','.join(map(str, numbers))})" if numbers else ""
    return f"timestamp{shown} with time zone" if base == "instant" else f"{base}{shown}"


def model(type: Type) -> Model:
    """The type that a column of a table has in Trino."""
    match type.kind:
        case Kind.DECIMAL:
            return "decimal", type.precision, type.scale
        case Kind.TIMESTAMP:
            return "timestamp", 6
        case Kind.TIMESTAMP_TZ:
            return "instant", 6
        case Kind.VARCHAR | Kind.CHAR:
            return type.kind.value, type.length
        case Kind.STRING:
            return ("varchar",)
        case Kind.FLOAT:
            return ("real",)
        case Kind.INTEGER:
            return ("integer",)
    return (type.kind.value,)


def plain(value: Any, type: Type) -> Any:
    """A column's canonical value as this module has it."""
    match type.kind:
        case _ if value is None:
            return None
        case Kind.DECIMAL:
            return Fraction(value, 10**type.scale)
        case Kind.TIMESTAMP | Kind.TIMESTAMP_TZ:
            return value * 10**6
    return value.decode() if isinstance(value, bytes) else value


def some_type(rng: random.Random, like: Model) -> Model:
    """A type to cast to, often of the same family with other numbers."""
    family = next((f for f in (NUMBERS, TEXTS, TIMES) if like[0] in f), NUMBERS)
    base = rng.choice(family if rng.random() < 0.75 else (*NUMBERS, *TEXTS, *TIMES))
    if rng.random() < 0.3 and base not in INTEGERS:
        base = like[0]
    match base:
        case "decimal":
            precision = rng.randint(1, 38)
            return base, precision, rng.randint(0, precision)
        case "timestamp" | "instant":
            return base, rng.randint(0, 12)
        case "char":
            return base, rng.choice((1, 2, 4, 12))
        case "varchar":
            return (base,) if rng.random() < 0.3 else (base, rng.choice((1, 2, 5, 10, 12, 200)))
    return (base,)


def cast(value: Any, source: Model, target: Model) -> Any:
    """Errors: Failed."""
    if value is None or source == target:
        return value
    base = target[0]
    if base in TEXTS:
        return _text(value, source, target)
    if source[0] in TEXTS:
        return _parsed(value, target)
    if base in TIMES and source[0] in TIMES:
        return _time(value, source, target)
    if base in NUMBERS and source[0] in NUMBERS:
        return _number(value, target)
    raise Failed


def _number(value: Any, target: Model) -> Any:
    base = target[0]
    if base == "boolean":
        return value != 0
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        if base in ("real", "double"):
            return value
        raise Failed
    if base in ("real", "double"):
        try:
            return single(float(value)) if base == "real" else float(value)
        except OverflowError:
            raise Failed from None
    scale = target[2] if base == "decimal" else 0
    unscaled = half_up(Fraction(value) * 10**scale)
    least, greatest = INTEGERS.get(base) or (1 - 10 ** target[1], 10 ** target[1] - 1)
    if not least <= unscaled <= greatest:
        raise Failed
    return Fraction(unscaled, 10**scale) if base == "decimal" else unscaled


def half_up(number: Fraction) -> int:
    """Halves go away from zero."""
    whole = int(abs(number) + Fraction(1, 2))
    return whole if number >= 0 else -whole


def _time(value: int, source: Model, target: Model) -> int:
    local = value * DAY if source[0] == "date" else value
    if source[0] == "instant" and target[0] != "instant":
        local += ZONE
    elif source[0] != "instant" and target[0] == "instant":
        local -= ZONE
    return local // DAY if target[0] == "date" else rounded(local, target[1])


def rounded(picos: int, digits: int) -> int:
    """To so many digits of a second; halves go up, before the epoch too."""
    step: int = 10 ** (12 - digits)
    return (picos + step // 2) // step * step


def _text(value: Any, source: Model, target: Model) -> str:
    if source[0] in TEXTS:
        text = value.ljust(source[1]) if source[0] == "char" else value
        text = text[: target[1]] if len(target) > 1 else text
        return str(text.rstrip(" ") if target[0] == "char" else text)
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, int) and source[0] in INTEGERS:
        text = str(value)
    else:
        raise Failed  # the spelling of other values is not asked about
    if len(target) > 1 and len(text) > target[1]:
        raise Failed
    return text


def _parsed(value: str, target: Model) -> Any:
    if target[0] not in INTEGERS or not value.isascii():
        raise Failed
    try:
        return _number(int(value), target)
    except ValueError:
        raise Failed from None


def wire(value: Any, type: Model) -> Any:
    """A constant of docs/reference/predicates.md."""
    match type:
        case _ if value is None:
            return None
        case "real" | "double", *_:
            return str(value).replace("inf", "Infinity").replace("nan", "NaN")
        case "decimal", _, scale:
            return str(int(value * 10**scale))
        case "timestamp", digits:
            micros, picos = divmod(value, 10**6)
            return micros if digits <= 6 else f"{micros}.{picos:06d}"
        case "instant", digits:
            millis, picos = divmod(value, 10**9)
            return millis if digits <= 3 else f"{millis}.{picos:09d}"
    return value
