"""Columns of delimited text: Hive's OpenCSVSerde, and LazySimpleSerDe.

Fields beyond the declared columns are ignored, and columns beyond the fields are NULL, as in both
engines. Lines of CSV are cut in any form: see `bridge.formats.lines.csv_fields`. In files of
LazySimpleSerDe, escape characters, empty lines, and lines with different numbers of fields make the
file ambiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa

from bridge.formats.column_chunks import OTHER, Batch, ColumnChunks, declared_leaves
from bridge.formats.lines.csv_fields import FieldCutter, FieldSyntax
from bridge.formats.lines.lines import ambiguous_file_error, header_lines, line_blocks
from bridge.formats.lines.recipe import CAST, FIELDS, Recipe
from bridge.formats.lines.spelled import first_doubtful, parse
from bridge.formats.physical_column import PhysicalColumn
from bridge.kernel.arrow_types import arrow_type
from bridge.kernel.types import STRING, Kind, Type, whole_number
from bridge.storage.port import Storage

_DATES = "skipbridge.date_format"
_CSV = frozenset({"separatorChar", "quoteChar", "escapeChar", "serialization.format"})
_TEXT = frozenset(
    {
        "field.delim",
        "serialization.format",
        "serialization.null.format",
        "escape.delim",
        "line.delim",
        # Only values of nested types and timestamps depend on these.
        "collection.delim",
        "colelction.delim",
        "mapkey.delim",
        "timestamp.formats",
    }
)
_OF_CASTS = frozenset({FIELDS, CAST, "serialization.null.format", "timestamp.formats", _DATES})
"""Properties of segment tables, whose fields are cast from text."""


def csv_columns(storage: Storage, uri: str, size: int, recipe: Recipe) -> ColumnChunks:
    """A `ChunkReader` for OpenCSVSerde. Errors: FileAmbiguous: it cannot be read for sure."""
    properties = recipe.property_map
    cast = properties.get(CAST)
    header, syntax = csv_syntax(uri, properties)
    names = _fields(uri, properties, recipe)
    custom = {Kind.TIMESTAMP: "timestamp.formats", Kind.DATE: _DATES}
    types = {
        name: type if cast and custom.get(type.kind) not in properties else None
        for name, type in recipe.columns
    }
    if cast is None:  # the SerDe knows only text
        types = {n: type if type.kind is Kind.STRING else None for n, type in recipe.columns}
    strict = cast == "fail"
    return _Delimited(storage, uri, size, header, syntax, recipe, names, types, strict=strict)


def csv_syntax(uri: str, properties: Mapping[str, str]) -> tuple[int, FieldSyntax]:
    """The number of header lines, and how lines are cut. Errors: FileAmbiguous."""
    cast = properties.get(CAST)
    if cast not in (None, "try", "fail"):
        raise ambiguous_file_error(uri, f"{CAST}={cast!r} is not known")
    header = header_lines(uri, properties, _CSV if cast is None else _CSV | _OF_CASTS)
    separator = _character(uri, properties, "separatorChar", ",")
    quote = _character(uri, properties, "quoteChar", '"')
    escape = _character(uri, properties, "escapeChar", "\\")
    if escape == '"':  # the SerDe replaces it
        escape = "\\"
    if len({separator, quote, escape}) != 3:
        raise ambiguous_file_error(
            uri, "its separator, quote and escape characters are not distinct"
        )
    null = properties.get("serialization.null.format")
    return header, FieldSyntax(separator, quote, escape, null)


def text_columns(storage: Storage, uri: str, size: int, recipe: Recipe) -> ColumnChunks:
    """A `ChunkReader` for LazySimpleSerDe. Errors: FileAmbiguous: it cannot be read for sure."""
    properties = recipe.property_map
    header = header_lines(uri, properties, _TEXT)
    if properties.get("line.delim", "\n") != "\n":
        raise ambiguous_file_error(uri, f"its lines end with {properties['line.delim']!r}")
    text = properties.get("field.delim", properties.get("serialization.format", "\x01"))
    code = whole_number(text)
    if code is not None:
        text = chr(code) if len(text) < 4 and code < 128 else ""
    if len(text) != 1 or not text.isascii() or text in '\n\r\0"':
        raise ambiguous_file_error(uri, f"its separator is {text!r}")
    null = properties.get("serialization.null.format", "\\N")
    if not null.isascii() or text in null:
        raise ambiguous_file_error(uri, f"its text for NULL is {null!r}")
    escape = properties.get("escape.delim", "")
    if escape and (len(escape) != 1 or not escape.isascii() or escape.isdigit()):
        raise ambiguous_file_error(uri, f"its escape character is {escape!r}")
    custom = "timestamp.formats" in properties
    types = {
        name: None if custom and type.kind is Kind.TIMESTAMP else type
        for name, type in recipe.columns
    }
    names = [name for name, _ in recipe.columns]
    # An escape character also stands in the text for NULL.
    syntax = FieldSyntax(text, "", escape, null)
    return _Delimited(storage, uri, size, header, syntax, recipe, names, types)


def _character(uri: str, properties: Mapping[str, str], name: str, default: str) -> str:
    found = properties.get(name, default)
    if len(found) != 1 or not found.isascii() or found in "\n\r\0":
        raise ambiguous_file_error(uri, f"{name}={found!r} is not one character of ASCII")
    return found


def _fields(uri: str, properties: Mapping[str, str], recipe: Recipe) -> list[str]:
    """Names of the file's fields in order, in lower case."""
    if FIELDS not in properties:
        return [name for name, _ in recipe.columns]
    names = [name.strip().lower() for name in properties[FIELDS].split(",")]
    missing = [name for name, _ in recipe.columns if names.count(name) != 1]
    if missing:
        raise ambiguous_file_error(
            uri, f"the column {missing[0]!r} is not exactly one of its fields"
        )
    return names


class _Delimited:
    """One file; see `ColumnChunks`.

    Args:
        strict: a value that may not be cast is an error, so that its file must be read.
    """

    def __init__(
        self,
        storage: Storage,
        uri: str,
        size: int,
        header: int,
        syntax: FieldSyntax,
        recipe: Recipe,
        names: list[str],
        types: Mapping[str, Type | None],
        *,
        strict: bool = False,
    ) -> None:
        self._uri, self._strict = uri, strict
        self._blocks = line_blocks(storage, uri, size, header)
        self._place = {name: names.index(name) for name, _ in recipe.columns}
        leaves = declared_leaves(recipe)
        self.leaves = tuple(
            leaf if types[leaf.path[0]] is not None else PhysicalColumn(leaf.path, OTHER)
            for leaf in leaves
        )
        self._types = {
            i: types[leaf.path[0]] or STRING
            for i, leaf in enumerate(self.leaves)
            if leaf.type != OTHER
        }
        if strict and len(self._types) < len(self.leaves):
            raise ambiguous_file_error(uri, "a column has a type whose values are not checked here")
        wanted = {self._place[self.leaves[leaf].path[0]] for leaf in self._types}
        self._cutter = FieldCutter(uri, syntax, sorted(wanted))
        self._loose: dict[int, float] = {}
        self.doubts: dict[int, str] = {}

    def batches(self) -> Iterator[tuple[int, Batch]]:
        for block in self._blocks:
            yield self._parsed(block)

    def loose(self) -> Mapping[int, float]:
        return self._loose

    def _parsed(self, block: bytes) -> tuple[int, Batch]:
        table = self._cutter.cut(block)
        found: dict[int, pa.ChunkedArray] = {}
        for leaf, declared in self._types.items():
            place = self._place[self.leaves[leaf].path[0]]
            values = self._typed(leaf, table.column(str(place)), declared)
            if values is not None:
                found[leaf] = values
            elif self._strict:
                name = self.leaves[leaf].path[0]
                raise ambiguous_file_error(
                    self._uri, f"a value of {name!r}: {self.doubts[leaf]} ({CAST}=fail)"
                )
        for leaf in set(self._types) - set(found):
            del self._types[leaf]  # doubtful from here on
        return table.num_rows, found

    def _typed(self, leaf: int, column: pa.ChunkedArray, declared: Type) -> pa.ChunkedArray | None:
        read = partial(parse, declared=declared, empty_is_null=not self._strict)
        chunks = []
        for chunk in column.chunks:
            parsed = read(chunk)
            if parsed is None:
                self.doubts[leaf] = f"{first_doubtful(chunk, read)} does not fit {declared}"
                return None
            if parsed.loose:
                self._loose[leaf] = max(parsed.loose, self._loose.get(leaf, 0.0))
            chunks.append(parsed.values)
        return pa.chunked_array(chunks, arrow_type(declared))
