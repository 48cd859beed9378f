"""Formats and parses Trino's type names."""

from __future__ import annotations

import re

from bridge.kernel.errors import UnsupportedType
from bridge.kernel.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_TZ,
    TINYINT,
    UNKNOWN,
    Field,
    Kind,
    Type,
    array,
    char,
    decimal,
    map_of,
    struct,
    varchar,
    whole_number,
)

_NAMES = {
    Kind.BOOLEAN: "boolean",
    Kind.TINYINT: "tinyint",
    Kind.SMALLINT: "smallint",
    Kind.INTEGER: "integer",
    Kind.BIGINT: "bigint",
    Kind.FLOAT: "real",
    Kind.DOUBLE: "double",
    Kind.DATE: "date",
    # Files hold at most six fractional digits, so nothing is lost.
    Kind.TIMESTAMP: "timestamp(6)",
    Kind.TIMESTAMP_TZ: "timestamp(6) with time zone",
    Kind.STRING: "varchar",
    Kind.BINARY: "varbinary",
}


def to_trino(type: Type) -> str | None:
    """The type in Trino's syntax; None if Trino cannot read it, which hides the column.

    >>> from bridge.kernel.types import parse_hive_type
    >>> to_trino(parse_hive_type("struct<a:int,b:array<decimal(10,2)>>"))
    'row("a" integer,"b" array(decimal(10,2)))'
    """
    match type.kind:
        case Kind.DECIMAL | Kind.VARCHAR | Kind.CHAR:
            return str(type)
        case Kind.ARRAY | Kind.MAP | Kind.STRUCT:
            members = [to_trino(f.type) for f in type.fields]
            known = [m for m in members if m is not None]
            if len(known) < len(members):
                return None
            if type.kind is not Kind.STRUCT:
                return f"{type.kind.value}({','.join(known)})"
            named = (f'"{_quoted(f.name)}" {m}' for f, m in zip(type.fields, known, strict=True))
            return f"row({','.join(named)})"
    return _NAMES.get(type.kind)


def _quoted(name: str) -> str:
    return name.replace('"', '""')


_SIMPLE = {
    "boolean": BOOLEAN,
    "tinyint": TINYINT,
    "smallint": SMALLINT,
    "integer": INTEGER,
    "int": INTEGER,
    "bigint": BIGINT,
    "real": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "varchar": STRING,
    "varbinary": BINARY,
}
_TOKEN = re.compile(r'\s*("(?:[^"]|"")*"|[^\s(),"]+|[(),])')


def parse_trino_type(text: str) -> Type:
    """Parses a Trino type name; ``UNKNOWN`` if there is no counterpart.

    Errors:
        UnsupportedType: the text is not a type name.

    >>> str(parse_trino_type('row("a b" integer, c timestamp(3) with time zone)'))
    'struct<a b:int,c:timestamp with local time zone>'
    """
    parser = _Parser(_TOKEN.findall(text), text)
    found = parser.type()
    parser.end()
    return found


_TEMPORAL = re.compile(
    r"\s*time(?:stamp)?\s*(?:\(\s*([0-9]{1,9})\s*\))?(?![a-z0-9_])", re.IGNORECASE
)


def subsecond_digits(text: str) -> int:
    """The fractional digits of a Trino type's seconds; 0 for types without seconds.

    >>> [subsecond_digits(t) for t in ("timestamp(6) with time zone", "timestamp", "date")]
    [6, 3, 0]
    """
    match = _TEMPORAL.match(text)
    return 0 if match is None else int(match[1] or 3)


class _Parser:
    def __init__(self, tokens: list[str], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self._at = 0

    def type(self, depth: int = 0) -> Type:
        name = self._take().lower()
        if name in "()," or name.startswith('"') or depth > 100:
            raise self._error()
        match name:
            case "array":
                (element,) = self._types(1, depth)
                return array(element)
            case "map":
                key, value = self._types(2, depth)
                return map_of(key, value)
            case "row":
                return self._row(depth)
            case "timestamp" | "time":
                return self._temporal(name)
        arguments = self._numbers()
        return self._sized(name, arguments)

    def end(self) -> None:
        if self._at != len(self._tokens):
            raise self._error()

    def _sized(self, name: str, arguments: list[int]) -> Type:
        match name, arguments:
            case "decimal", [precision, scale]:
                return decimal(precision, scale)
            case "decimal", [precision]:
                return decimal(precision, 0)
            case "decimal", []:
                return decimal(38, 0)
            case "varchar", [length]:
                return varchar(length)
            case "char", [length]:
                return char(length)
            case "char", []:
                return char(1)
            case _, []:
                return _SIMPLE.get(name, UNKNOWN)
        return UNKNOWN

    def _temporal(self, name: str) -> Type:
        self._numbers()
        zoned = False
        if self._peek() in ("with", "without"):
            zoned = self._take() == "with"
            if [self._take(), self._take()] != ["time", "zone"]:
                raise self._error()
        if name == "time":
            return UNKNOWN
        return TIMESTAMP_TZ if zoned else TIMESTAMP

    def _row(self, depth: int) -> Type:
        self._expect("(")
        fields: list[Field] = []
        while True:
            name = self._take()
            if name in "(),":
                raise self._error()
            if self._peek() in (",", ")", "("):  # a field without a name, which no query can use
                self._at -= 1
                fields.append(Field("", self.type(depth + 1)))
            else:
                if name.startswith('"'):
                    name = name[1:-1].replace('""', '"')
                fields.append(Field(name, self.type(depth + 1)))
            if self._take() == ")":
                return struct(*fields)

    def _types(self, count: int, depth: int) -> list[Type]:
        found: list[Type] = []
        self._expect("(")
        for i in range(count):
            if i:
                self._expect(",")
            found.append(self.type(depth + 1))
        self._expect(")")
        return found

    def _numbers(self) -> list[int]:
        if self._peek() != "(":
            return []
        self._take()
        found: list[int] = []
        while True:
            token = self._take()
            number = whole_number(token)
            if number is None:
                raise self._error()
            found.append(number)
            if self._take() == ")":
                return found

    def _peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self) -> str:
        token = self._peek()
        if token is None:
            raise self._error()
        self._at += 1
        return token

    def _expect(self, expected: str) -> None:
        if self._take() != expected:
            raise self._error()

    def _error(self) -> UnsupportedType:
        return UnsupportedType(f"not a Trino type: {self._text!r}", "check the connector's version")
