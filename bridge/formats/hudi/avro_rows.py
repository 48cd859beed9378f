"""Rows in Avro's binary form, as Arrow arrays in the types of the schema that wrote them.

Values stay numbers and bytes until Arrow has them: Python's own dates and times do not reach as far
as Avro's. Unions of more than one type besides null, and values of no bytes, are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import lru_cache
from io import BytesIO
from struct import Struct
from struct import error as struct_error
from typing import Any

import pyarrow as pa

from bridge.formats.avro.container import LONGEST_DECIMAL, NoBytes, checked_schema
from bridge.kernel.errors import FileCorrupt, UnsupportedTable

Convert = Callable[[Any], Any]
DAMAGE = (
    EOFError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    OverflowError,
    AttributeError,
    StopIteration,
    struct_error,
    pa.ArrowException,
)
"""What decoding of damaged bytes raises."""
_LONGEST_SYMBOL = 255
"""Characters of an enumeration's symbol, which a byte stands for."""
_INTS = Struct(">ii")
_INT = Struct(">i")
_WIDE = Context(prec=100)
_PLAIN: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}


@dataclass(frozen=True, slots=True)
class RowDecoder:
    """Decodes records of one schema.

    Attributes:
        lists: whether it has lists or maps, so that each byte may become an object.
        fields: name, Arrow type and conversion of each field, in order.
    """

    _read: Callable[..., Any]
    _parsed: Any
    lists: bool
    fields: tuple[tuple[str, pa.DataType, Convert | None], ...]

    def decode(self, data: bytes | memoryview) -> dict[str, Any]:
        """One record. Errors: those in `DAMAGE`; also if bytes are left over."""
        source = BytesIO(data)
        row: dict[str, Any] = self._read(source, self._parsed, None)
        if source.tell() != len(data):
            raise ValueError("a record is longer than its fields")
        return row

    def columns(
        self, rows: Sequence[Mapping[str, Any]], wanted: Sequence[str]
    ) -> dict[str, pa.Array]:
        """The columns of some rows, by the wanted names, which may differ in case; absent ones are
        left out.

        Errors:
            Those in `DAMAGE`.
        """
        lowered = {name.lower(): (name, type, convert) for name, type, convert in self.fields}
        found: dict[str, pa.Array] = {}
        for name in wanted:
            if name.lower() in lowered:
                stored, type, convert = lowered[name.lower()]
                values = [row[stored] for row in rows]
                if convert is not None:
                    values = [None if value is None else convert(value) for value in values]
                found[name] = pa.array(values, type)
        return found


@lru_cache(64)
def row_decoder(schema: str, uri: str = "") -> RowDecoder:
    """The decoder for records of a schema.

    Args:
        schema: Avro JSON.
        uri: for errors.

    Errors:
        FileCorrupt: this is no schema of records.
        UnsupportedTable: it has a type that is not read.
    """
    import fastavro

    try:
        checked = checked_schema(schema)
        # With logical types.
        parsed = fastavro.parse_schema(checked.document, expand=False)
        if not isinstance(parsed, dict) or parsed.get("type") != "record":
            raise ValueError("it is no record")
        names: dict[str, Any] = {}
        fields = tuple((f["name"], *_node(f["type"], names, uri)) for f in parsed["fields"])
        if len({name.lower() for name, _, _ in fields}) != len(fields):
            raise ValueError("two fields differ only in case")
    except UnsupportedTable:
        raise
    except NoBytes as error:
        raise _not_read(uri, "a list of values without a byte") from error
    except (fastavro.schema.SchemaParseException, RecursionError, *DAMAGE) as error:
        raise FileCorrupt(f"{uri}: the Avro schema is damaged: {error}", "restore it") from error
    return RowDecoder(fastavro.schemaless_reader, checked.parsed, checked.shape.lists, fields)


def record_bounds(content: memoryview) -> tuple[list[int], list[int]]:
    """Where the records in the content of a block of Avro data begin and end.

    Errors:
        ValueError, struct.error.
    """
    version, count = _INTS.unpack_from(content)
    if not 1 <= version <= 3:
        raise ValueError(f"its content has version {version}")
    if not 0 <= count <= len(content) // _INT.size:
        raise ValueError(f"it has {count} records")
    at = _INTS.size
    starts: list[int] = []
    ends: list[int] = []
    for _ in range(count):
        (length,) = _INT.unpack_from(content, at)
        at += _INT.size
        if not 0 <= length <= len(content) - at:
            raise ValueError(f"a record has the length {length}")
        starts.append(at)
        at += length
        ends.append(at)
    if at != len(content):
        raise ValueError("it is longer than its records")
    return starts, ends


def record_slices(content: memoryview) -> Iterator[memoryview]:
    """The records in the content of a block of Avro data. Errors: as `record_bounds`."""
    return (content[begin:end] for begin, end in zip(*record_bounds(content), strict=True))


def _node(schema: Any, names: dict[str, Any], uri: str) -> tuple[pa.DataType, Convert | None]:
    """The Arrow type of a schema, and what makes its values fit for Arrow."""
    if isinstance(schema, list):
        members = [part for part in schema if part != "null"]
        if len(members) > 1:
            raise _not_read(uri, f"a union of {len(members)} types besides null")
        return _node(members[0], names, uri) if members else (pa.null(), None)
    if isinstance(schema, str):
        if schema in _PLAIN:
            return _PLAIN[schema], None
        return _node(names[schema], names, uri)
    kind = schema["type"]
    if kind in ("record", "enum", "fixed", "error"):
        names[schema["name"]] = schema
    if schema.get("logicalType") == "decimal" and kind in ("bytes", "fixed"):
        scale = int(schema.get("scale", 0))
        return pa.decimal128(int(schema["precision"]), scale), _decimal(scale)
    if kind == "record":
        return _record(schema, names, uri)
    if kind == "enum":
        longest = max(map(len, schema["symbols"]), default=0)
        if longest > _LONGEST_SYMBOL:
            raise _not_read(uri, f"{schema['name']}, a symbol of which has {longest} characters")
        return pa.string(), None
    if kind == "fixed":
        if schema["size"] < 1:
            raise _not_read(uri, f"{schema['name']}, whose values have no byte")
        return pa.binary(schema["size"]), None
    if kind == "array":
        item, convert = _node(schema["items"], names, uri)
        return pa.list_(item), None if convert is None else _items(convert)
    if kind == "map":
        value, convert = _node(schema["values"], names, uri)
        return pa.map_(pa.string(), value), _entries(convert)
    if isinstance(kind, str):
        logical = _LOGICAL.get((kind, schema.get("logicalType", "")))
        if logical is not None:
            return logical, None
    return _node(kind, names, uri)


def _record(schema: Any, names: dict[str, Any], uri: str) -> tuple[pa.DataType, Convert | None]:
    if not schema["fields"]:
        raise _not_read(uri, f"{schema['name']}, a record without fields")
    parts = [(f["name"], *_node(f["type"], names, uri)) for f in schema["fields"]]
    type = pa.struct([pa.field(name, type) for name, type, _ in parts])
    converts = [(name, convert) for name, _, convert in parts if convert is not None]
    if not converts:
        return type, None

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        for name, inner in converts:
            if value[name] is not None:
                value[name] = inner(value[name])
        return value

    return type, convert


def _not_read(uri: str, what: str) -> UnsupportedTable:
    return UnsupportedTable(
        f"{uri}: its Avro schema has {what}, which is not read",
        "compact the table, or read it with the engine that wrote it",
    )


def _decimal(scale: int) -> Convert:
    def convert(value: bytes) -> Decimal:
        if len(value) > LONGEST_DECIMAL:
            raise ValueError(f"a decimal has {len(value)} bytes")
        return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, _WIDE)

    return convert


def _items(inner: Convert) -> Convert:
    return lambda values: [None if value is None else inner(value) for value in values]


def _entries(inner: Convert | None) -> Convert:
    if inner is None:
        return lambda value: list(value.items())
    known = inner
    return lambda value: [(k, None if v is None else known(v)) for k, v in value.items()]
