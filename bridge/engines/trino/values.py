"""Decodes and encodes values of the wire format."""

from __future__ import annotations

import base64
import binascii
import math
from dataclasses import dataclass
from typing import Any

from bridge.engines.translation import NotTranslatable, malformed_predicate
from bridge.expression.nodes import Literal
from bridge.expression.parsing.literals import domain, parse_float
from bridge.kernel.types import Kind, Type, Value


@dataclass(frozen=True, slots=True)
class DecodedValue:
    """A decoded value.

    Attributes:
        beyond: whether it exceeds ``literal`` by less than the type's smallest step: picoseconds
            of a timestamp, where files hold only microseconds.
    """

    literal: Literal
    beyond: bool = False


def decode(value: Any, type: Type) -> DecodedValue:
    """Decodes one value of docs/reference/predicates.md.

    Errors:
        InvalidPredicate: the value does not have its type.
        NotTranslatable: values of the type are not supported.
    """
    if value is None:
        return DecodedValue(Literal(None, type))
    match type.kind:
        case Kind.BOOLEAN if isinstance(value, bool):
            return DecodedValue(Literal(value, type))
        case Kind.TIMESTAMP | Kind.TIMESTAMP_TZ:
            return _timestamp(value, type)
        case Kind.FLOAT | Kind.DOUBLE if isinstance(value, str):
            return DecodedValue(Literal(_floating(value, type), type))
        case Kind.DECIMAL if isinstance(value, str):
            return DecodedValue(Literal(_unscaled(value, type), type))
        case Kind.STRING | Kind.VARCHAR | Kind.CHAR if isinstance(value, str):
            return DecodedValue(Literal(_utf8(value), type))
        case Kind.BINARY if isinstance(value, str):
            return DecodedValue(Literal(_base64(value), type))
        case Kind.UNKNOWN | Kind.ARRAY | Kind.MAP | Kind.STRUCT:
            raise NotTranslatable(f"values of type {type}")
    if isinstance(value, int) and not isinstance(value, bool):
        edges = (-(2**31), 2**31 - 1) if type.kind is Kind.DATE else domain(type)
        if type.kind is not Kind.BOOLEAN and edges and edges[0] <= value <= edges[1]:
            return DecodedValue(Literal(value, type))
    raise _bad(value, type)


def _bad(value: Any, type: Type) -> Exception:
    return malformed_predicate("Trino", f"{str(value)[:100]!r} is no {type}")


def _unscaled(text: str, type: Type) -> int:
    """A decimal's digits, which may be more than declared: filters hold what files hold."""
    try:
        value = int(text)
    except ValueError:
        raise _bad(text, type) from None
    if not -(2**127) <= value < 2**127:
        raise _bad(text, type)
    return value


def _floating(text: str, type: Type) -> float:
    try:
        value = parse_float(text, single=type.kind is Kind.FLOAT)
    except ValueError:
        raise _bad(text, type) from None
    if math.isnan(value) and text != "NaN":
        raise _bad(text, type)
    return value


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:  # lone surrogate
        raise _bad(text.encode("utf-8", "replace"), Type(Kind.STRING)) from None


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise _bad(text, Type(Kind.BINARY)) from None


def _timestamp(value: Any, type: Type) -> DecodedValue:
    """Decodes microseconds (milliseconds with zone), or text with picoseconds beyond those."""
    zoned = type.kind is Kind.TIMESTAMP_TZ
    unit, picos_per_micro = (1000, 1_000_000) if zoned else (1, 1_000_000)
    if isinstance(value, int) and not isinstance(value, bool):
        return DecodedValue(Literal(value * unit, type))
    if not isinstance(value, str):
        raise _bad(value, type)
    whole, _, picos = value.partition(".")
    digits = 9 if zoned else 6
    try:
        units, rest = int(whole), int(picos.ljust(digits, "0") or "0")
    except ValueError:
        raise _bad(value, type) from None
    if rest < 0 or rest >= 10**digits:
        raise _bad(value, type)
    micros, left = divmod(rest, picos_per_micro)
    return DecodedValue(Literal(units * unit + micros, type), beyond=left > 0)


def encode(value: Value | None, type: Type) -> Any:
    """The JSON value (docs/reference/predicates.md) of a canonical value. Inverse of `decode`.

    Errors:
        NotTranslatable: text that is not UTF-8, or a type whose values are not sent.
    """
    if value is None:
        return None
    match type.kind:
        case Kind.BOOLEAN:
            return bool(value)
        case Kind.FLOAT | Kind.DOUBLE:
            number = float(value)
            if math.isinf(number):
                return "Infinity" if number > 0 else "-Infinity"
            return "NaN" if math.isnan(number) else repr(number)
        case Kind.DECIMAL:
            return str(value)
        case Kind.TIMESTAMP_TZ if isinstance(value, int):
            millis, micros = divmod(value, 1000)
            return f"{millis}.{micros * 1_000_000:09d}"
        case Kind.STRING | Kind.VARCHAR if isinstance(value, bytes):
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise NotTranslatable("text that is not UTF-8") from None
        case Kind.BINARY if isinstance(value, bytes):
            return base64.b64encode(value).decode()
    if isinstance(value, int):
        return int(value)
    raise NotTranslatable(f"values of type {type}")
