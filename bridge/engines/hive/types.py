"""Types and constants of Hive's expressions, as sent by the hooks."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from bridge.engines.translation import malformed_predicate
from bridge.expression.nodes import Literal
from bridge.expression.parsing.calendar import parse_date, parse_timestamp
from bridge.expression.parsing.literals import domain, parse_decimal, parse_float
from bridge.kernel.errors import UnsupportedType
from bridge.kernel.types import UNKNOWN, Kind, Type, parse_hive_type

_FRACTION = re.compile(r"(.*\.)(\d{1,9})")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def type_named(text: Any) -> Type:
    """Parses Hive's name of a type; UNKNOWN if there is no counterpart.

    Errors:
        InvalidPredicate: not a string.
    """
    if not isinstance(text, str):
        raise malformed_predicate("Hive", f"a type {str(text)[:100]!r}")
    try:
        return parse_hive_type(text)
    except UnsupportedType:  # void, intervals
        return UNKNOWN


def constant(value: Any, type: Type) -> Literal | None:
    """Parses a constant; None if it has no exact counterpart.

    Errors:
        InvalidPredicate: the value does not have its type.
    """
    if value is None:
        return Literal(None, type)
    match type.kind:
        case Kind.BOOLEAN if isinstance(value, bool):
            return Literal(value, type)
        case Kind.TINYINT | Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            least, greatest = domain(type) or (0, -1)
            whole = isinstance(value, int) and not isinstance(value, bool)
            if whole and least <= value <= greatest:
                return Literal(value, type)
        case Kind.FLOAT | Kind.DOUBLE if isinstance(value, str):
            return _floating(value, type)
        case Kind.DECIMAL if isinstance(value, str) and _NUMBER.fullmatch(value):
            return parse_decimal(value)
        case Kind.STRING | Kind.VARCHAR | Kind.CHAR if isinstance(value, str):
            return _utf8(value, type)
        case Kind.BINARY if isinstance(value, str):
            return _base64(value, type)
        case Kind.DATE if isinstance(value, str):
            days = parse_date(value)
            return None if days is None else Literal(days, type)
        case Kind.TIMESTAMP if isinstance(value, str):
            return _timestamp(value, type)
        case Kind.TIMESTAMP_TZ | Kind.UNKNOWN | Kind.ARRAY | Kind.MAP | Kind.STRUCT:
            return None
    raise malformed_predicate("Hive", f"{str(value)[:100]!r} is no {type}")


def _floating(text: str, type: Type) -> Literal | None:
    try:
        return Literal(parse_float(text, single=type.kind is Kind.FLOAT), type)
    except ValueError:
        raise malformed_predicate("Hive", f"{text[:100]!r} is no {type}") from None


def _utf8(text: str, type: Type) -> Literal | None:
    try:
        return Literal(text.encode(), type)
    except UnicodeEncodeError:  # lone surrogate
        return None


def _base64(text: str, type: Type) -> Literal:
    try:
        return Literal(base64.b64decode(text, validate=True), type)
    except binascii.Error:
        raise malformed_predicate("Hive", f"{text[:100]!r} is no {type}") from None


def _timestamp(text: str, type: Type) -> Literal | None:
    """Microseconds; None for finer timestamps, which equal no value of a file."""
    match = _FRACTION.fullmatch(text)
    if match is not None:
        if match[2][6:].strip("0"):
            return None
        text = match[1] + match[2][:6]
    micros = parse_timestamp(text)
    return None if micros is None else Literal(micros, type)
