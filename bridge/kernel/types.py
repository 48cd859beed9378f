"""Logical types of table columns and the canonical form of their values.

The planner holds every value in one canonical Python form per type. Literals, statistics and rows
therefore compare alike, whatever engine or file they come from:

=====================  =============================================================
type                   canonical value
=====================  =============================================================
boolean                ``bool``
tinyint ... bigint     ``int``
float, double          ``float`` (a float's value widened exactly)
decimal(p, s)          ``int``, unscaled at the type's own scale
date                   ``int``, days since 1970-01-01 (proleptic Gregorian)
timestamp              ``int``, microseconds since 1970-01-01 00:00, no zone
timestamp_tz           ``int``, microseconds since the epoch, UTC
string, varchar, char  ``bytes``, UTF-8; compared as unsigned bytes
binary                 ``bytes``
=====================  =============================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from bridge.kernel.errors import UnsupportedType

Value = bool | int | float | bytes
_MOST_DIGITS = 40


def whole_number(text: str) -> int | None:
    """The number that a text spells in ASCII digits; None if it does not, or in more than 40.

    >>> whole_number("007"), whole_number("-1"), whole_number("²"), whole_number("9" * 5000)
    (7, None, None, None)
    """
    plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if plain else None


class Kind(Enum):
    """A type without its parameters. The values are Hive's names."""

    __hash__ = object.__hash__  # members are singletons, and Enum's own hash is slow Python code

    BOOLEAN = "boolean"
    TINYINT = "tinyint"
    SMALLINT = "smallint"
    INTEGER = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMP_TZ = "timestamp with local time zone"
    STRING = "string"
    VARCHAR = "varchar"
    CHAR = "char"
    BINARY = "binary"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"
    UNKNOWN = "unknown"


INTEGER_RANGE: dict[Kind, tuple[int, int]] = {
    Kind.TINYINT: (-(2**7), 2**7 - 1),
    Kind.SMALLINT: (-(2**15), 2**15 - 1),
    Kind.INTEGER: (-(2**31), 2**31 - 1),
    Kind.BIGINT: (-(2**63), 2**63 - 1),
}
_TEXT = frozenset({Kind.STRING, Kind.VARCHAR, Kind.CHAR})
_NESTED = frozenset({Kind.ARRAY, Kind.MAP, Kind.STRUCT})


@dataclass(frozen=True, slots=True)
class Field:
    """A named member of a struct, or a column."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Type:
    """A logical type.

    Attributes:
        kind: the type without its parameters.
        precision, scale: for decimal.
        length: for varchar and char.
        fields: members of a struct; ``element`` of an array; ``key`` and ``value`` of a map.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    length: int = 0
    fields: tuple[Field, ...] = field(default=())

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_RANGE

    @property
    def is_floating(self) -> bool:
        return self.kind in (Kind.FLOAT, Kind.DOUBLE)

    @property
    def is_text(self) -> bool:
        return self.kind in _TEXT

    @property
    def is_bytes(self) -> bool:
        """Canonical values are ``bytes``."""
        return self.kind in _TEXT or self.kind is Kind.BINARY

    @property
    def is_nested(self) -> bool:
        return self.kind in _NESTED

    def __str__(self) -> str:
        """The type in Hive's syntax."""
        match self.kind:
            case Kind.DECIMAL:
                return f"decimal({self.precision},{self.scale})"
            case Kind.VARCHAR | Kind.CHAR:
                return f"{self.kind.value}({self.length})"
            case Kind.ARRAY:
                return f"array<{self.fields[0].type}>"
            case Kind.MAP:
                return f"map<{self.fields[0].type},{self.fields[1].type}>"
            case Kind.STRUCT:
                return "struct<" + ",".join(f"{f.name}:{f.type}" for f in self.fields) + ">"
        return str(self.kind.value)


BOOLEAN = Type(Kind.BOOLEAN)
TINYINT = Type(Kind.TINYINT)
SMALLINT = Type(Kind.SMALLINT)
INTEGER = Type(Kind.INTEGER)
BIGINT = Type(Kind.BIGINT)
FLOAT = Type(Kind.FLOAT)
DOUBLE = Type(Kind.DOUBLE)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
TIMESTAMP_TZ = Type(Kind.TIMESTAMP_TZ)
STRING = Type(Kind.STRING)
BINARY = Type(Kind.BINARY)
UNKNOWN = Type(Kind.UNKNOWN)
NOTHING = Type(Kind.UNKNOWN, length=1)
"""Of a column, or a part of one, in which every value is NULL: it goes with any type."""


def decimal(precision: int, scale: int) -> Type:
    """decimal(precision, scale); 1 <= precision <= 38, 0 <= scale <= precision."""
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise UnsupportedType(
            f"decimal({precision},{scale}) is outside decimal(38,38)", "declare at most 38 digits"
        )
    return Type(Kind.DECIMAL, precision=precision, scale=scale)


def varchar(length: int) -> Type:
    return Type(Kind.VARCHAR, length=length)


def char(length: int) -> Type:
    return Type(Kind.CHAR, length=length)


def array(element: Type) -> Type:
    return Type(Kind.ARRAY, fields=(Field("element", element),))


def map_of(key: Type, value: Type) -> Type:
    return Type(Kind.MAP, fields=(Field("key", key), Field("value", value)))


def struct(*fields: Field) -> Type:
    return Type(Kind.STRUCT, fields=fields)


_SIMPLE = {
    kind.value: Type(kind) for kind in Kind if kind not in _NESTED and kind is not Kind.DECIMAL
} | {
    "integer": INTEGER,
    "double precision": DOUBLE,
    "timestamp_ntz": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP_TZ,
    "timestamptz": TIMESTAMP_TZ,
    "timestamp with time zone": TIMESTAMP_TZ,
    "real": FLOAT,
}
_TOKEN = re.compile(r"\s*(`[^`]*`|[^<>():,`]+|[<>():,])")


def parse_hive_type(text: str) -> Type:
    """Parses a type as the metastore stores it.

    Errors:
        UnsupportedType: the text is not a Hive type. Types such as uniontype and interval are
            returned as ``UNKNOWN``, because a table may hold columns that no query reads.

    >>> str(parse_hive_type("struct<a:int,b:array<decimal(10,2)>>"))
    'struct<a:int,b:array<decimal(10,2)>>'
    """
    tokens = [t.strip() for t in _TOKEN.findall(text)]
    if "".join(tokens).replace(" ", "") != text.replace(" ", "") or not tokens:
        raise UnsupportedType(f"not a Hive type: {text!r}", "check the table's schema")
    stream = _Tokens(iter(tokens), text)
    parsed = _parse(stream)
    if stream.peek is not None:
        raise stream.error()
    return parsed


class _Tokens:
    def __init__(self, tokens: Iterator[str], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self.peek: str | None = next(tokens, None)

    def take(self, expected: str | None = None) -> str:
        token = self.peek
        if token is None or (expected is not None and token != expected):
            raise self.error()
        self.peek = next(self._tokens, None)
        return token

    def number(self) -> int:
        token = self.take()
        found = whole_number(token)
        if found is None:
            raise self.error()
        return found

    def error(self) -> UnsupportedType:
        return UnsupportedType(f"not a Hive type: {self._text!r}", "check the table's schema")


def _parse(stream: _Tokens) -> Type:
    name = stream.take().lower()
    if name == "array":
        stream.take("<")
        element = _parse(stream)
        stream.take(">")
        return array(element)
    if name == "map":
        stream.take("<")
        key = _parse(stream)
        stream.take(",")
        value = _parse(stream)
        stream.take(">")
        return map_of(key, value)
    if name == "struct":
        return _parse_struct(stream)
    if name in ("decimal", "numeric", "varchar", "char") and stream.peek == "(":
        return _parse_sized(name, stream)
    if name in ("decimal", "numeric"):
        return decimal(10, 0)
    if name in _SIMPLE:
        return _SIMPLE[name]
    while stream.peek not in (None, ",", ">"):  # such as uniontype<...> or interval: never read
        if stream.take() == "<":
            _skip(stream)
    return UNKNOWN


def _skip(stream: _Tokens) -> None:
    depth = 1
    while depth:
        token = stream.take()
        depth += (token == "<") - (token == ">")


def _parse_struct(stream: _Tokens) -> Type:
    stream.take("<")
    fields: list[Field] = []
    while True:
        name = stream.take().strip("`")
        stream.take(":")
        fields.append(Field(name, _parse(stream)))
        if stream.peek != ",":
            break
        stream.take()
    stream.take(">")
    return struct(*fields)


def _parse_sized(name: str, stream: _Tokens) -> Type:
    stream.take("(")
    first = stream.number()
    second = 0
    if stream.peek == ",":
        stream.take()
        second = stream.number()
    stream.take(")")
    if name in ("decimal", "numeric"):
        return decimal(first, second)
    return varchar(first) if name == "varchar" else char(first)


class NanOrder(Enum):
    """How an engine compares NaN."""

    IEEE = "ieee"
    """Trino: every comparison with NaN is false, ``<>`` is true."""
    LARGEST = "largest"
    """Spark and Hive: NaN equals NaN and is greater than every other value."""


@dataclass(frozen=True, slots=True)
class Semantics:
    """The value semantics of the requesting engine, for the planner and the test oracle.

    Attributes:
        nan: the order of NaN.
        raw_timestamps: the engine reads stored timestamps unchanged and ignores their
            UTC-adjustment flag (Trino on Hive tables). If False, bounds of a UTC-adjusted column
            are unknown for a column without zone, and vice versa.
        rescales_decimals: the engine always reads a decimal that is stored as an integer with the
            file's scale. Hive does not outside of vectorised tasks: 1.25 is 0.0125 where the
            table's scale is 4.
        reads_minutes: a text such as ``2024-01-02 03:04`` is that minute where a timestamp is
            compared with it. In Hive it is not.
    """

    nan: NanOrder = NanOrder.IEEE
    raw_timestamps: bool = True
    rescales_decimals: bool = True
    reads_minutes: bool = True

    @property
    def reading(self) -> tuple[bool, bool]:
        """All on which it depends how stored values are converted: the key of what is cached."""
        return self.raw_timestamps, self.rescales_decimals


TRINO = Semantics(NanOrder.IEEE, raw_timestamps=True)
HIVE = Semantics(
    NanOrder.LARGEST, raw_timestamps=False, rescales_decimals=False, reads_minutes=False
)
SPARK = Semantics(NanOrder.LARGEST, raw_timestamps=False, rescales_decimals=False)
