"""Columns of JSON, one object per line: Hive's JSON SerDes, and OpenX's.

Arrow's reader takes a column's values only from JSON of the declared type: integers without
fraction or exponent, ``true`` and ``false``, text in quotes without lone surrogates. It refuses
duplicate keys, and, if asked, keys that are no columns. Where a file has such keys, what Arrow does
not see is checked before: keys in other case, escaped keys, and numbers that are not JSON. Each
line must hold one object. Where a check fails, the lines are read one by one by the same rules.
Values of nested types are not read.

A column of which a value is of another JSON type is doubtful, and the others are not: engines take
such a value by itself, or fail. Not so an object or a list where the column, or a member of it, is
neither: Hive 2 and 3 then take what is in it for members of the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson

from bridge.formats.column_chunks import OTHER, Batch, ColumnChunks, declared_leaves
from bridge.formats.lines.lines import ambiguous_file_error, header_lines, line_blocks
from bridge.formats.lines.recipe import Recipe
from bridge.formats.lines.spelled import Parsed, as_float, exact_decimals, first_doubtful, parse
from bridge.formats.physical_column import PhysicalColumn
from bridge.kernel.types import INTEGER_RANGE, UNKNOWN, Kind, Type
from bridge.storage.port import Storage

_KNOWN = frozenset({"serialization.format", "timestamp.formats"})
_OPENX = "org.openx.data.jsonserde.JsonSerDe"
_SERDES = frozenset(
    {
        "org.apache.hive.hcatalog.data.JsonSerDe",
        "org.apache.hadoop.hive.serde2.JsonSerDe",
        _OPENX,
    }
)
_OF_OPENX = (Kind.STRING, Kind.BOOLEAN, Kind.INTEGER, Kind.BIGINT, Kind.DOUBLE)
"""Types that OpenX's SerDe reads as the others do."""
_DEEPEST = 200
_BY_PLACE = re.compile(r"_col[0-9]+")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")
_ODD_KEY = r'(?:[A-Z\x80-\xff]|[A-Z\x80-\xff\\][^"]*[^"\\])"[ \t:]'
"""The rest of a key, from a byte that is a capital, beyond ASCII, or an escape.

Text before a quote counts as a key if a colon or space follows: more is found than there is. Keys
that end with a backslash are not found; names of columns hold none.
"""
_STRANGE = r'"_col[0-9]|"[ \t]*[:,\]}][^"]*(?:NaN|Inf)'
"""Keys by place, and numbers that are not JSON."""
_SAMPLE = 50
"""Lines of a block whose keys are taken for those of all lines, until this is checked."""
_SLOW = 256 * 1024 * 1024
"""Bytes of a file that are read line by line; more would take too long."""
_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int64(),
    Kind.SMALLINT: pa.int64(),
    Kind.INTEGER: pa.int64(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.DOUBLE: pa.float64(),
}
"""Types that Arrow parses; dates and timestamps are parsed from text."""


def json_columns(storage: Storage, uri: str, size: int, recipe: Recipe) -> ColumnChunks:
    """A `ChunkReader`. Errors: FileAmbiguous: it cannot be read for sure."""
    properties = recipe.property_map
    header = header_lines(uri, properties, _KNOWN)
    serde = properties.get("serialization.lib", "")
    if serde not in _SERDES:
        raise ambiguous_file_error(uri, f"its SerDe is {serde!r}")
    return _JsonLines(storage, uri, size, header, recipe)


class _JsonLines:
    """One file; see `ColumnChunks`."""

    def __init__(self, storage: Storage, uri: str, size: int, header: int, recipe: Recipe) -> None:
        properties = recipe.property_map
        openx = properties["serialization.lib"] == _OPENX
        formats = "timestamp.formats" in properties
        self._uri = uri
        self._blocks = line_blocks(storage, uri, size, header)
        leaves = declared_leaves(recipe)
        self._types: dict[int, Type] = {}
        for i, (name, declared) in enumerate(recipe.columns):
            sure = leaves[i].type != OTHER and name.isprintable() and '"' not in name
            sure &= "\\" not in name and name == name.lower()
            sure &= not (formats and declared.kind is Kind.TIMESTAMP)
            if sure and (declared.kind in _OF_OPENX or not openx):
                self._types[i] = declared
        self.leaves = tuple(
            leaf if i in self._types else PhysicalColumn(leaf.path, OTHER)
            for i, leaf in enumerate(leaves)
        )
        self._names = [name for name, _ in recipe.columns]
        self._declared = {name: type for name, type in recipe.columns if type != UNKNOWN}
        self._nested = {n: type for n, type in self._declared.items() if type.is_nested}
        self._only_columns = not any(map(_BY_PLACE.fullmatch, self._names))
        """Whether Arrow may be asked to refuse keys that are no columns: no key is then odd."""
        self._loose: dict[int, float] = {}
        self.doubts: dict[int, str] = {}
        self._slowly = 0

    def loose(self) -> Mapping[int, float]:
        return self._loose

    def batches(self) -> Iterator[tuple[int, Batch]]:
        for block in self._blocks:
            rows = block.count(b"\n")
            read = self._read_block(block) or self._read_lines(block)
            found: dict[int, pa.ChunkedArray] = {}
            for leaf, declared in list(self._types.items()):
                values = read.get(leaf)
                parsed = None if values is None else _checked(values, declared)
                if parsed is None:
                    self.doubts[leaf] = _doubt(values, declared)
                    del self._types[leaf]  # doubtful from here on
                    continue
                if parsed.loose:
                    self._loose[leaf] = max(parsed.loose, self._loose.get(leaf, 0.0))
                found[leaf] = pa.chunked_array([parsed.values])
            yield rows, found

    def _read_block(self, block: bytes) -> dict[int, pa.Array] | None:
        """The values, read by Arrow; None if a check fails."""
        raw = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(raw == ord("\n"))
        if block[0] != ord("{") or not (raw[ends[:-1] + 1] == ord("{")).all():
            return None
        if not (raw[ends - 1] == ord("}")).all():
            return None
        try:
            rows = [_object(line) for line in block[: ends[:_SAMPLE][-1]].split(b"\n")]
        except (ValueError, RecursionError):
            return None
        seen = {key for row in rows for key, _ in row}
        keys = {key.lower(): key for key in seen if key != key.lower()}
        if any(map(_has_twins, keys.values())):
            return None
        table = None
        if self._only_columns:
            table = self._parsed(block, keys, "error")
            self._only_columns = table is not None
        if table is None:
            inner = {key for row in rows for _, value in row for key in _keys_in(value)}
            text = _one_text(block)
            sure = self._are_sure(text, seen, inner) and not self._may_nest(text)
            if sure and self._are_shaped(block):
                table = self._parsed(block, keys, "ignore")
        # Each line begins and ends an object: with as many objects, none shares a line.
        if table is None or table.num_rows != len(ends):
            return None
        return {leaf: _one(table.column(place)) for place, leaf in enumerate(self._types)}

    def _parsed(self, block: bytes, keys: Mapping[str, str], others: str) -> pa.Table | None:
        """The columns, if Arrow reads them.

        Args:
            keys: how columns are spelled whose key is not in lower case.
            others: what is done with other keys: ``error`` or ``ignore``.
        """
        names = [(leaf, self._names[leaf]) for leaf in self._types]
        schema = pa.schema(
            [(keys.get(name, name), _parsed_as(self._types[leaf])) for leaf, name in names]
        )
        try:
            return pajson.read_json(
                pa.BufferReader(block),
                pajson.ReadOptions(use_threads=False, block_size=len(block) + 1),
                pajson.ParseOptions(explicit_schema=schema, unexpected_field_behavior=others),
            )
        except (pa.ArrowInvalid, UnicodeDecodeError):
            return None

    def _are_sure(self, text: pa.Array, seen: set[str], inner: set[str]) -> bool:
        """Whether all keys that may name a column are known, and no column has two of them.

        Args:
            seen: the keys of the first lines.
            inner: the keys of objects inside of their values.
        """
        if not _holds(text, f"{_STRANGE}|{_ODD_KEY}"):
            return True
        odd = {key for key in seen | inner if key != key.lower() or not key.isascii()}
        if not odd or _holds(text, _STRANGE) or any(map(_has_twins, odd)):
            return False
        found = {key.lower() for key in odd & seen}
        if len(found) < len(odd & seen) or not found.isdisjoint(seen - odd):
            return False
        mine = {key.lower() for key in odd if key != key.lower()}.intersection(self._names)
        if not mine <= found or (mine and _holds(text, _key(mine))):
            return False
        return _count(text, _ODD_KEY) == _count(text, _key(odd))

    def _may_nest(self, text: pa.Array) -> bool:
        """Whether a column that Arrow is not asked for may hold an object or a list it should not.

        The others are of Arrow's types. Keys that are spelled otherwise are known to be none.
        """
        others = self._declared.keys() - self._nested - {self._names[leaf] for leaf in self._types}
        if any(json.dumps(name, ensure_ascii=False) != f'"{name}"' for name in others):
            return True
        return bool(others) and _holds(text, f"(?i:{_key(others)})[ \\t:]*[\\[{{]")

    def _are_shaped(self, block: bytes) -> bool:
        """Whether no nested column holds an object or a list too deep inside."""
        if not self._nested:
            return True
        nested, read = self._nested, json.JSONDecoder(object_pairs_hook=_Members).decode
        try:
            return all(
                _is_shaped(value, nested[name])
                for line in block[:-1].decode().split("\n")
                for key, value in read(line)
                if (name := key.lower()) in nested
            )
        except (ValueError, RecursionError):
            return False

    def _read_lines(self, block: bytes) -> dict[int, pa.Array]:
        """The values line by line; doubtful columns are missing.

        Errors:
            FileAmbiguous: a line is not one JSON object, names a column twice, or has an object or
                a list where a column is neither.
        """
        self._slowly += len(block)
        if self._slowly > _SLOW:
            raise ambiguous_file_error(
                self._uri, "its lines are not plain JSON, and it is too large"
            )
        place = {self._names[leaf]: leaf for leaf in self._types}
        columns: dict[int, list[Any]] = {leaf: [] for leaf in self._types}
        names = set(self._names)
        for line in block[:-1].split(b"\n"):
            try:
                row = _object(line)
            except (ValueError, RecursionError) as error:
                raise ambiguous_file_error(
                    self._uri, f"a line is not one JSON object: {error}"
                ) from error
            seen: dict[str, Any] = {}
            for key, value in row:
                name = key.lower()
                if name in seen or _BY_PLACE.fullmatch(name):
                    raise ambiguous_file_error(
                        self._uri, f"a line has the key {key!r} twice, or by place"
                    )
                if name in names:
                    if not key.isascii() and not name.isascii() and key != name:
                        raise ambiguous_file_error(self._uri, f"the key {key!r} may name a column")
                    declared = self._declared.get(name)
                    if declared is not None and not _is_shaped(value, declared):
                        raise ambiguous_file_error(
                            self._uri,
                            f"{name!r} holds an object or a list where {declared} has none: change "
                            "its type, or leave it out of the table's columns",
                        )
                    seen[name] = value
            for name, leaf in place.items():
                columns[leaf].append(seen.get(name))
        found = {}
        for leaf, values in columns.items():
            array = _typed(values, self._types[leaf])
            if array is not None:
                found[leaf] = array
        return found


def _is_shaped(value: Any, declared: Type) -> bool:
    """Whether no object or list stands where the type has a number, a text or the like.

    Hive refuses an object in a list's place and the reverse, and passes over unknown members.
    """
    if not isinstance(value, list):
        return True
    if not declared.is_nested:
        return declared == UNKNOWN
    if isinstance(value, _Members) is (declared.kind is Kind.ARRAY):
        return True
    if declared.kind is Kind.ARRAY:
        return all(_is_shaped(each, declared.fields[0].type) for each in value)
    if declared.kind is Kind.MAP:
        return all(_is_shaped(each, declared.fields[1].type) for _, each in value)
    types = {field.name.lower(): field.type for field in declared.fields}
    known = ((types.get(key.lower(), UNKNOWN), each) for key, each in value)
    return all(_is_shaped(each, type) for type, each in known)


def _parsed_as(declared: Type) -> pa.DataType:
    if declared.kind is Kind.DECIMAL:
        return pa.decimal128(declared.precision, declared.scale)
    return _ARROW.get(declared.kind, pa.string())


def _one(values: pa.ChunkedArray) -> pa.Array:
    return values.chunk(0) if values.num_chunks == 1 else pa.concat_arrays(values.chunks)


def _one_text(block: bytes) -> pa.Array:
    """The block as a column of one row, not copied, on which Arrow runs RE2."""
    ends = pa.py_buffer(np.array([0, len(block)], np.int64))
    return pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, pa.py_buffer(block)])


def _holds(text: pa.Array, pattern: str) -> bool:
    return bool(pc.match_substring_regex(text, pattern)[0].as_py())


def _count(text: pa.Array, pattern: str) -> int:
    return int(pc.count_substring_regex(text, pattern)[0].as_py())


def _key(names: Iterable[str]) -> str:
    """A pattern of bytes for any of these keys, as they are."""
    spelled = (name.encode("utf-8", "surrogatepass") for name in names)
    escaped = ("".join(f"\\x{byte:02x}" for byte in one) for one in spelled)
    return f'"(?:{"|".join(escaped)})"[ \\t:]'


def _keys_in(value: Any) -> Iterator[str]:
    """The keys of all objects in a value."""
    if isinstance(value, _Members):
        for key, inner in value:
            yield key
            yield from _keys_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _keys_in(inner)


def _has_twins(key: str) -> bool:
    """Whether an engine may take a key for a column that `str.lower` does not lead to.

    The Kelvin sign is a k in lower case, and the long s is an S in upper case.
    """
    if _BY_PLACE.fullmatch(key.lower()) or "\\" in key or '"' in key:
        return True
    return any(
        c.lower() != c or (len(c.upper()) == 1 and c.upper().isascii())
        for c in key
        if not c.isascii()
    )


def _object(line: bytes) -> list[tuple[str, Any]]:
    """The members of a line's object, in order. Errors: ValueError, RecursionError."""
    if not (line.startswith(b"{") and line.endswith(b"}")):
        raise ValueError("it does not begin with { and end with }")
    if line.count(b"{") + line.count(b"[") > _DEEPEST:
        raise ValueError("it is nested too deeply")
    found = json.loads(
        line,
        object_pairs_hook=_Members,
        parse_int=_Number,
        parse_float=_Number,
        parse_constant=_refuse,
    )
    return list(found)


class _Members(list[tuple[str, Any]]):
    """A JSON object."""


class _Number(str):
    """A number as it is spelled."""

    __slots__ = ()


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _typed(values: list[Any], declared: Type) -> pa.Array | None:
    """The values as Arrow's reader would give them; None if one is of another JSON type."""
    kind = declared.kind
    present = [value for value in values if value is not None]
    try:
        if kind is Kind.BOOLEAN:
            return pa.array(values, pa.bool_()) if _are(present, bool) else None
        if declared.is_integer or declared.is_floating or kind is Kind.DECIMAL:
            if not _are(present, _Number):
                return None
            form = _INTEGER if declared.is_integer else _NUMBER
            if not all(form.fullmatch(value) for value in present):
                return None
            if declared.is_integer:
                return pa.array([None if v is None else int(v) for v in values], pa.int64())
            if declared.is_floating:
                return pa.array([None if v is None else float(v) for v in values], pa.float64())
            parsed = [None if v is None else Decimal(v) for v in values]
            return pa.array(parsed, pa.decimal128(declared.precision, declared.scale))
        if not _are(present, str):
            return None
        return pa.array(values, pa.string())  # a lone surrogate raises
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError, ValueError):
        return None


def _are(values: list[Any], kind: type) -> bool:
    return all(type(value) is kind for value in values)


def _doubt(values: pa.Array | None, declared: Type) -> str:
    if values is None:
        return f"one of them is no {declared} in JSON"
    value = first_doubtful(values, lambda some: _checked(some, declared))
    return f"{value} does not fit {declared}"


def _checked(values: pa.Array, declared: Type) -> Parsed | None:
    """Values of Arrow's types as values of the declared one; None if one is doubtful."""
    kind = declared.kind
    if declared.is_integer:
        low, high = INTEGER_RANGE[kind]
        found = pc.min_max(values).as_py()
        if found["min"] is not None and not low <= found["min"] <= found["max"] <= high:
            return None
        narrow = {Kind.TINYINT: pa.int8(), Kind.SMALLINT: pa.int16(), Kind.INTEGER: pa.int32()}
        return Parsed(values.cast(narrow.get(kind, pa.int64())))
    if declared.is_floating:
        if not pc.all(pc.is_finite(values)).as_py() and values.null_count < len(values):
            return None
        return Parsed(values) if kind is Kind.DOUBLE else as_float(values, sure=True)
    if kind is Kind.DECIMAL:
        return Parsed(values) if exact_decimals(values) else None
    if kind is Kind.BOOLEAN:
        return Parsed(values)
    return parse(values, declared, empty_is_null=False)
