"""Columns of Avro files: fields of primitive types that carry the column's exact name.

Engines resolve a file's schema against the table's. Here a field is read only where resolution
changes nothing: same name in the same case, same type, nullable or not. Timestamps are unknown,
because engines convert them between time zones differently.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.avro.container import LONGEST_DECIMAL, MAX_BLOCK, SIMPLE, Container, Plain
from bridge.formats.column_chunks import OTHER, Batch, ColumnChunks, declared_leaves
from bridge.formats.lines.lines import ambiguous_file_error
from bridge.formats.lines.recipe import Recipe
from bridge.formats.physical_column import PhysicalColumn
from bridge.kernel.types import Kind, Type
from bridge.storage.port import Storage
from bridge.storage.reading.source import is_passing, open_source

_ROWS = 32 * 1024
_LITERAL = "avro.schema.literal"
_KNOWN = frozenset({"serialization.lib", "serialization.format", "file.inputformat", _LITERAL})
_PRIMITIVE = {
    Kind.BOOLEAN: ("boolean", pa.bool_()),
    Kind.INTEGER: ("int", pa.int32()),
    Kind.BIGINT: ("long", pa.int64()),
    Kind.FLOAT: ("float", pa.float32()),
    Kind.DOUBLE: ("double", pa.float64()),
    Kind.STRING: ("string", pa.string()),
}
_OF_SHAPE = re.compile(r"[a-z_][a-z0-9_]*")
_FROM = -25_567
"""1900-01-01, as days after 1970."""
_READ_AHEAD = 4 << 20
_MOST_VALUES = 1 << 20
_MOST_BYTES = 16 << 20
_STEP = 1024
_WIDE = Context(prec=200)


def avro_columns(storage: Storage, uri: str, size: int, recipe: Recipe) -> ColumnChunks:
    """A `ChunkReader`. Errors: FileAmbiguous: it cannot be read for sure."""
    for name in recipe.property_map:
        if name not in _KNOWN:
            raise ambiguous_file_error(uri, f"the property {name!r} may change how it is read")
    return _Avro(storage, uri, size, recipe)


class _Avro:
    """One file; see `ColumnChunks`."""

    def __init__(self, storage: Storage, uri: str, size: int, recipe: Recipe) -> None:
        self._uri = uri
        self.doubts: dict[int, str] = {}
        self._rows: Any = None
        fields: dict[str, Any] = {}
        if size:
            try:
                # Numbers are read in single bytes.
                source = pa.input_stream(open_source(storage, uri, size), buffer_size=_READ_AHEAD)
                self._open(Container(source, size, MAX_BLOCK))
            except Exception as error:
                raise self._told(error) from error
            fields = self._fields(self._schema.document, recipe)
        self._types: dict[int, tuple[str, pa.DataType]] = {}
        leaves = []
        for i, (leaf, column) in enumerate(
            zip(declared_leaves(recipe), recipe.columns, strict=True)
        ):
            name, declared = column
            read = _read_as(fields.get(name), declared) if leaf.type != OTHER else None
            if read is None:
                leaf = PhysicalColumn(leaf.path, OTHER)
            else:
                self._types[i] = name, read
            leaves.append(leaf)
        self.leaves = tuple(leaves)

    def _open(self, container: Container) -> None:
        self._schema, self._source = container.schema, Plain(container)
        shape, record = self._schema.shape, self._schema.parsed
        wanted = None
        if shape.lists and isinstance(record, dict) and record["type"] == "record":
            # Lists and maps are passed over: each byte of them may become an object.
            simple = [field for field in record["fields"] if _is_simple(field["type"])]
            wanted = {"type": "record", "name": record["name"], "fields": simple}
        self._rows = fastavro.reader(self._source, wanted)
        self._most = max(1, min(_ROWS, _MOST_VALUES // shape.values))

    def _fields(self, schema: Any, recipe: Recipe) -> dict[str, Any]:
        """The types of the file's fields by name, without those that resolution may change."""
        if not isinstance(schema, dict) or schema.get("type") != "record":
            raise ambiguous_file_error(self._uri, "its schema is not a record")
        held = [(f["name"], f["type"]) for f in schema["fields"] if not f.get("aliases")]
        literal = recipe.property_map.get(_LITERAL)
        if literal is not None and not _same_schema(literal, schema):
            raise ambiguous_file_error(self._uri, f"{_LITERAL} is not the schema of the file")
        lower = [f["name"].lower() for f in schema["fields"]]
        return {
            name: type
            for name, type in held
            if _OF_SHAPE.fullmatch(name) and lower.count(name) == 1
        }

    def loose(self) -> Mapping[int, float]:
        return {}

    def batches(self) -> Iterator[tuple[int, Batch]]:
        while self._rows is not None:
            rows = self._some()
            if not rows:
                return
            found: dict[int, pa.ChunkedArray] = {}
            # Several times faster than one loop for each column.
            columns = dict(zip(rows[0], zip(*map(dict.values, rows), strict=True), strict=True))
            for leaf, (name, kind) in list(self._types.items()):
                values = _array(columns[name], kind)
                if values is None:
                    del self._types[leaf]
                else:
                    found[leaf] = pa.chunked_array([values])
            yield len(rows), found

    def _some(self) -> list[dict[str, Any]]:
        try:
            rows: list[dict[str, Any]] = []
            start = self._source.given
            while len(rows) < self._most and self._source.given - start < _MOST_BYTES:
                step = min(_STEP, self._most - len(rows))
                part = list(itertools.islice(self._rows, step))
                rows += part
                if len(part) < step:
                    break
            return rows
        except Exception as error:
            raise self._told(error) from error

    def _told(self, error: Exception) -> Exception:
        """A damaged file, and what fastavro cannot read, is ambiguous; other errors stay."""
        if is_passing(error) or type(error).__module__.startswith("bridge."):
            return error
        what = f"{type(error).__name__}: {error}".partition("\n")[0]
        return ambiguous_file_error(self._uri, f"it cannot be read as Avro: {what}")


def _is_simple(type: Any) -> bool:
    if isinstance(type, list):
        return all(map(_is_simple, type))
    return type in SIMPLE if isinstance(type, str) else _is_simple(type["type"])


def _same_schema(literal: str, schema: Any) -> bool:
    try:
        declared = json.loads(literal)
    except ValueError:
        return False
    wanted = fastavro.parse_schema(declared, _write_hint=False)
    return bool(wanted == fastavro.parse_schema(_plain(schema), _write_hint=False))


def _plain(schema: Any) -> Any:
    return {k: v for k, v in schema.items() if not k.startswith("__")}


def _read_as(type: Any, declared: Type) -> pa.DataType | None:
    """Arrow's type of a field's values; None if engines may read them differently."""
    if isinstance(type, list):
        others = [t for t in type if t != "null"]
        if len(others) != 1 or len(type) > 2:
            return None
        type = others[0]
    if isinstance(type, dict):
        logical = type.get("logicalType")
        if declared.kind is Kind.DATE and type.get("type") == "int" and logical == "date":
            return pa.date32()
        if declared.kind is Kind.DECIMAL and type.get("type") == "bytes" and logical == "decimal":
            same = (type.get("precision"), type.get("scale", 0))
            if same == (declared.precision, declared.scale):
                return pa.decimal128(declared.precision, declared.scale)
        if logical is not None or set(type) - {"type", "avro.java.string"}:
            return None
        type = type.get("type")
    name, read = _PRIMITIVE.get(declared.kind, (None, None))
    return read if type == name else None


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    try:
        if pa.types.is_decimal(kind):
            return pa.array([_decimal(v, kind.scale) for v in values], kind)
        if not pa.types.is_date32(kind):
            return pa.array(values, kind)
        days = pa.array(values, pa.int32())
        first = pc.min(days).as_py()
        return None if first is not None and first < _FROM else days.cast(kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None


def _decimal(value: bytes | None, scale: int) -> Decimal | None:
    if value is None:
        return None
    if len(value) > LONGEST_DECIMAL:
        raise ValueError(f"a decimal has {len(value)} bytes")
    return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, _WIDE)
