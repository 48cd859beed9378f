"""Avro files cut into blocks that a decoder may take: what a file states is held against its bytes.

A library decodes by the schema that the file brings. A type that contains itself, or is nested
deeply, ends the process; an item of no bytes lets one byte state any number of values; a compressed
block grows a thousandfold. So schemas are walked, counts are compared with the bytes that are
there, and blocks are unpacked up to a limit, before a library sees them.

Source: the Avro specification 1.12, "Object Container Files".
"""

from __future__ import annotations

import bz2
import json
import lzma
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import IO, Any

import pyarrow as pa

MAGIC = b"Obj\x01"
MAX_BLOCK = 64 << 20
"""Bytes of an unpacked block. Writers make blocks of some KiB; one of them holds a whole value."""
_DEEPEST = 64
_DEEPEST_JSON = 4 * _DEEPEST
_TOO_DEEP = f"its schema is nested more than {_DEEPEST} levels deep"
_MOST_VALUES = 1 << 16
_VALUES_PER_BYTE = 64
_MOST_OF_NO_BYTES = 1 << 20
_SYNC = 16
_HEADER = (b"avro.codec", b"avro.schema")
LONGEST_DECIMAL = 64
"""Bytes of a decimal. Those of 38 digits have 16; the time of longer ones grows with the square."""
SIMPLE: Mapping[str, int] = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "string": 1,
    "bytes": 1,
}
"""Types without parts, and the fewest bytes of a value."""


class NoBytes(ValueError):
    """A list has items of no bytes, so that one number states any amount of memory."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How the values of a schema relate to bytes.

    Attributes:
        least: the fewest bytes of a value.
        values: the values in one, itself and nested ones, each list and map taken as empty.
        depth: levels of nesting.
        lists: whether it has lists or maps, so that one value may hold any number of others.
    """

    least: int
    values: int
    depth: int
    lists: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """A schema that a library may decode by.

    Attributes:
        text: as the file has it.
        document: the same, as JSON's values.
        parsed: as fastavro's functions take it.
    """

    text: str | bytes
    document: Any
    parsed: Any
    shape: Shape


@lru_cache(64)
def checked_schema(schema: str | bytes) -> Checked:
    """A schema, after a walk of it.

    Args:
        schema: Avro JSON.

    Errors:
        ValueError: it is no schema, a type contains itself, it is nested more than 64 levels deep,
            the items of a list have no bytes, or one value has too many others for its bytes.
    """
    import fastavro

    try:
        document = json.loads(schema)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    _check_depth(document)
    try:
        parsed = fastavro.parse_schema(without_logical(document), expand=False)
    except (fastavro.schema.SchemaParseException, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"its schema is none: {error}") from error
    return Checked(schema, document, parsed, shape_of(parsed))


def shape_of(parsed: Any) -> Shape:
    """The shape of a schema that fastavro has parsed, so that each name is in full.

    Errors: as `checked_schema`.
    """
    return _Walk().of(parsed)


class _Walk:
    def __init__(self) -> None:
        self._named: dict[str, Shape | None] = {}

    def of(self, type: Any) -> Shape:
        found = self._plain(type)
        if found.depth > _DEEPEST:
            raise ValueError(_TOO_DEEP)
        if found.values > min(_MOST_VALUES, _VALUES_PER_BYTE * (found.least + 1)):
            raise ValueError(f"a value of {found.least} bytes has {found.values} others in it")
        return found

    def _plain(self, type: Any) -> Shape:
        if isinstance(type, list):
            parts = [self.of(part) for part in type]
            if not parts:
                raise ValueError("a union has no types")
            return _joined(parts, 1 + min(part.least for part in parts), max)
        if isinstance(type, str):
            if type in SIMPLE:
                return Shape(SIMPLE[type], 1, 1, False)
            named = self._named[type]
            if named is None:
                raise ValueError(f"the type {type} contains itself")
            return named
        kind = type["type"]
        if not isinstance(kind, str):
            return self.of(kind)
        if kind in ("record", "error"):
            self._named[type["name"]] = None
            parts = [self.of(field["type"]) for field in type["fields"]]
            found = _joined(parts, sum(part.least for part in parts), sum)
            self._named[type["name"]] = found
            return found
        if kind in ("enum", "fixed"):
            size = type["size"] if kind == "fixed" else 1
            if not isinstance(size, int) or size < 0:
                raise ValueError(f"the type {type['name']} has the size {size!r}")
            self._named[type["name"]] = Shape(size, 1, 1, False)
            return self._named[type["name"]] or Shape(size, 1, 1, False)
        if kind in ("array", "map"):
            item = self.of(type["items" if kind == "array" else "values"])
            if kind == "array" and not item.least:
                raise NoBytes("the items of a list have no bytes")
            return Shape(1, 1, 1 + item.depth, True)
        return self.of(kind)


def _joined(parts: list[Shape], least: int, total: Any) -> Shape:
    return Shape(
        least,
        1 + total(part.values for part in parts) if parts else 1,
        1 + max((part.depth for part in parts), default=0),
        any(part.lists for part in parts),
    )


def _check_depth(document: Any) -> None:
    level, depth = [document], 0
    while level:
        depth += 1
        if depth > _DEEPEST_JSON:
            raise ValueError(_TOO_DEEP)
        nested = [part for part in level if isinstance(part, (dict, list))]
        level = [p for part in nested for p in (part.values() if isinstance(part, dict) else part)]


def without_logical(schema: Any) -> Any:
    """The same schema, whose values stay numbers and bytes."""
    if isinstance(schema, list):
        return [without_logical(part) for part in schema]
    if isinstance(schema, dict):
        return {
            name: part if name == "default" else without_logical(part)
            for name, part in schema.items()
            if name != "logicalType"
        }
    return schema


class Container:
    """An Avro file.

    Args:
        source: a file object at its beginning.
        size: its bytes.
        longest: bytes of its longest part; each is held in memory at once.

    Attributes:
        schema: checked.

    Errors of every method:
        ValueError: it is damaged, or states more than its bytes can hold; lzma.LZMAError,
        zlib.error, OSError, EOFError: a block cannot be unpacked; and what the source raises.
    """

    def __init__(self, source: IO[bytes], size: int, longest: int | None = None) -> None:
        self._source, self._left = source, size
        self._longest = size if longest is None else longest
        if self._take(len(MAGIC)) != MAGIC:
            raise ValueError("it does not begin as Avro files do")
        meta: dict[bytes, bytes] = {}
        entries = 0
        while count := self._number():
            if count < 0:
                count = -count
                self._number()
            entries += count
            if entries > _MOST_VALUES:
                raise ValueError(f"its header has {entries} entries")
            for _ in range(count):
                key, value = self._part(), self._part()
                if key in _HEADER:
                    meta[key] = value
        self._sync = self._take(_SYNC)
        self._codec = meta.get(b"avro.codec", b"null").decode()
        if self._codec not in _UNPACK:
            raise ValueError(f"its codec is {self._codec}")
        if b"avro.schema" not in meta:
            raise ValueError("it has no schema")
        self.schema = checked_schema(meta[b"avro.schema"])

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """The rows of each block, and its bytes, unpacked."""
        least, of_no_bytes = self.schema.shape.least, 0
        while self._left:
            rows = self._number()
            data = _UNPACK[self._codec](self._part())
            if self._take(_SYNC) != self._sync:
                raise ValueError("the marker after a block is another one")
            of_no_bytes += 0 if least else rows
            if rows < 0 or least * rows > len(data) or of_no_bytes > _MOST_OF_NO_BYTES:
                raise ValueError(f"a block of {len(data)} bytes states {rows} rows")
            yield rows, data

    def _part(self) -> bytes:
        length = self._number()
        if self._longest < length <= self._left:
            raise ValueError(f"a part has {length} bytes, and at most {self._longest} are read")
        return self._take(length)

    def _take(self, count: int) -> bytes:
        if not 0 <= count <= self._left:
            raise ValueError(f"a part has the length {count}, and {self._left} bytes are left")
        part = self._source.read(count)
        if len(part) != count:
            raise ValueError("it ends early")
        self._left -= count
        return part

    def _number(self) -> int:
        value = shift = 0
        while shift < 70:
            (byte,) = self._take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
        raise ValueError("a number is too long")


class Plain:
    """The checked blocks of a file as another Avro file without compression, for a library.

    Attributes:
        given: bytes of blocks that were read so far.
    """

    def __init__(self, container: Container) -> None:
        schema = json.dumps(without_logical(container.schema.document)).encode()
        self._parts = _parts(container, schema)
        self._held = BytesIO()
        self.given = 0

    def read(self, count: int) -> bytes:
        found = self._held.read(count)
        while len(found) < count:
            part = next(self._parts, None)
            if part is None:
                break
            self.given += len(part)
            if not found and len(part) == count:
                return part
            self._held = BytesIO(part)
            found += self._held.read(count - len(found))
        return found


def _parts(container: Container, schema: bytes) -> Iterator[bytes]:
    mark = bytes(_SYNC)
    yield MAGIC + _long(1) + b"".join(_long(len(p)) + p for p in (b"avro.schema", schema))
    yield _long(0) + mark
    for rows, data in container.blocks():
        yield _long(rows) + _long(len(data))
        yield data
        yield mark


def _long(number: int) -> bytes:
    number <<= 1  # none is negative
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*found, number))


def _bounded(unpacker: Any) -> Any:
    def unpack(data: bytes) -> bytes:
        return _small(unpacker().decompress(data, MAX_BLOCK + 1))

    return unpack


def _small(data: bytes) -> bytes:
    if len(data) > MAX_BLOCK:
        raise ValueError(f"a block unpacks to more than {MAX_BLOCK} bytes")
    return data


def _snappy(data: bytes) -> bytes:
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if size > MAX_BLOCK:
        raise ValueError(f"a block unpacks to more than {MAX_BLOCK} bytes")
    found: bytes = pa.Codec("snappy").decompress(data[:-4], size, asbytes=True)
    if zlib.crc32(found) != int.from_bytes(data[-4:], "big"):
        raise ValueError("a block differs from its checksum")
    return found


def _zstandard(data: bytes) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        return _small(stream.read(MAX_BLOCK + 1))


_UNPACK: Mapping[str, Any] = {
    "null": lambda data: data,
    "deflate": _bounded(lambda: zlib.decompressobj(-zlib.MAX_WBITS)),
    "bzip2": _bounded(bz2.BZ2Decompressor),
    "xz": _bounded(lzma.LZMADecompressor),
    "snappy": _snappy,
    "zstandard": _zstandard,
}
