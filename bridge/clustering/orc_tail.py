"""The tail of ORC files: the parts of its footers that Arrow neither shows nor writes.

Footers are Protocol Buffers in compressed chunks, as the ORC specification says. A footer that is
written anew lies in chunks that are not compressed, which every reader takes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, overload

import pyarrow as pa

from bridge.errors import FileCorrupt

_CODECS = {0: "none", 1: "zlib", 2: "snappy", 3: "lzo", 4: "lz4", 5: "zstd"}
_ORIGINAL = 1
_LARGEST = 1 << 26
"""Bytes of a footer at most."""
_FOOTER_LENGTH, _COMPRESSION, _BLOCK_SIZE, _METADATA_LENGTH = 1, 2, 3, 5
_STRIPES, _TYPES, _USER_METADATA, _ENCRYPTION, _CALENDAR = 3, 4, 5, 10, 11
KINDS = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary",
    "timestamp", "list", "map", "struct", "uniontype", "decimal", "date", "varchar", "char",
    "timestamp with local time zone",
)  # fmt: skip
"""Names of types by the numbers that footers have for them."""


class _Bad(Exception):
    """The bytes are no message."""


def _number(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(raw) or shift > 63:
            raise _Bad
        byte = raw[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _fields(raw: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of a message's fields."""
    at = 0
    while at < len(raw):
        key, at = _number(raw, at)
        kind = key & 7
        if kind == 0:
            value, at = _number(raw, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _number(raw, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise _Bad
        if at + length > len(raw):
            raise _Bad
        yield key >> 3, raw[at : at + length]
        at += length


def _spelled(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _spelled(number << 3) + _spelled(value)
    return _spelled(number << 3 | 2) + _spelled(len(value)) + value


def _all(message: Sequence[tuple[int, int | bytes]], number: int) -> list[bytes]:
    return [value for n, value in message if n == number and isinstance(value, bytes)]


def _one(message: Sequence[tuple[int, int | bytes]], number: int, default: int = 0) -> int:
    found = [value for n, value in message if n == number and isinstance(value, int)]
    return found[-1] if found else default


@dataclass(frozen=True, slots=True)
class OrcType:
    """One type of the tree.

    Attributes:
        kind: a name of `KINDS`, or its number.
        children: numbers of types.
        names: of a struct's fields.
        precision: of a decimal; 0 in files of old Hive versions, which declared none.
    """

    kind: str
    children: tuple[int, ...]
    names: tuple[str, ...]
    precision: int


class Content(Protocol):
    """The bytes of a file, which may be read as they are asked for."""

    def __len__(self) -> int: ...

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> bytes: ...


class OrcTail:
    """What the footers of a file say.

    Errors: FileCorrupt: of the constructor and of every attribute.
    """

    def __init__(self, content: Content) -> None:
        self._content = content
        try:
            end = len(content) - 1
            self._begin_of_postscript = end - content[end]
            self._postscript = list(_fields(content[self._begin_of_postscript : end]))
            number = _one(self._postscript, _COMPRESSION)
            self.compression = _CODECS.get(number, str(number))
            self._block = _one(self._postscript, _BLOCK_SIZE, 1 << 18)
            self._begin = self._begin_of_postscript - _one(self._postscript, _FOOTER_LENGTH)
            raw = content[self._begin : self._begin_of_postscript]
            self._footer = list(_fields(self._inflated(raw)))
        except (_Bad, IndexError) as error:
            raise _damaged() from error

    def _inflated(self, raw: bytes) -> bytes:
        """The bytes of compressed chunks."""
        if self.compression == "none":
            return raw
        found: list[bytes] = []
        at = 0
        while at < len(raw):
            header = int.from_bytes(raw[at : at + 3], "little")
            part = raw[at + 3 : at + 3 + (header >> 1)]
            if len(part) != header >> 1:
                raise _Bad
            at += 3 + len(part)
            found.append(part if header & _ORIGINAL else self._decompressed(part))
            if sum(map(len, found)) > _LARGEST:
                raise _Bad
        return b"".join(found)

    def _decompressed(self, part: bytes) -> bytes:
        try:
            match self.compression:
                case "zlib":
                    return zlib.decompressobj(-15).decompress(part, self._block)
                case "snappy":
                    size, _ = _number(part, 0)
                    if size > self._block:
                        raise _Bad
                    return bytes(pa.Codec("snappy").decompress(part, size))
                case "zstd":
                    with pa.CompressedInputStream(pa.BufferReader(part), "zstd") as stream:
                        return bytes(stream.read(self._block))
                case "lz4":
                    return _lz4(part, self._block)
        except (zlib.error, pa.ArrowException, OSError) as error:
            raise _Bad from error
        raise _Bad

    @property
    def raw_types(self) -> list[bytes]:
        """The types as they are stored, in their order."""
        return _all(self._footer, _TYPES)

    @cached_property
    def types(self) -> list[OrcType]:
        """The tree of types, the root first."""
        try:
            return [_type(raw) for raw in self.raw_types]
        except (_Bad, UnicodeDecodeError) as error:
            raise _damaged() from error

    def name_of(self, number: int) -> str:
        """The path of a type below the root, as ``a.b``."""
        for parent in self.types:
            if number in parent.children:
                above = self.name_of(self.types.index(parent)) if parent != self.types[0] else ""
                place = parent.children.index(number)
                own = parent.names[place] if place < len(parent.names) else ""
                return ".".join(filter(None, (above, own)))
        return ""

    @cached_property
    def user_metadata(self) -> dict[bytes, bytes]:
        """Properties that the writer has set."""
        try:
            found = {}
            for raw in _all(self._footer, _USER_METADATA):
                item = list(_fields(raw))
                found[b"".join(_all(item, 1)[-1:])] = b"".join(_all(item, 2)[-1:])
            return found
        except _Bad as error:
            raise _damaged() from error

    @property
    def is_encrypted(self) -> bool:
        """Whether a column is encrypted or masked."""
        return bool(_all(self._footer, _ENCRYPTION))

    @property
    def calendar(self) -> int:
        """The calendar of dates and timestamps: 0 not said, 1 hybrid, 2 proleptic Gregorian."""
        return _one(self._footer, _CALENDAR)

    @cached_property
    def zones(self) -> set[str]:
        """The time zones of the writers of all stripes; ``""`` for one that has not said it."""
        try:
            found = set()
            for raw in _all(self._footer, _STRIPES):
                stripe = list(_fields(raw))
                begin = sum(_one(stripe, n) for n in (1, 2, 3))
                footer = self._inflated(self._content[begin : begin + _one(stripe, 4)])
                found.add(b"".join(_all(list(_fields(footer)), 3)[-1:]).decode())
            return found
        except (_Bad, UnicodeDecodeError) as error:
            raise _damaged() from error

    def described_as(self, other: OrcTail, user_metadata: dict[bytes, bytes]) -> bytes:
        """This file with the types, the calendar and the user metadata of another one."""
        kept = [
            (number, value)
            for number, value in self._footer
            if number not in (_TYPES, _USER_METADATA, _CALENDAR)
        ]
        items = [_field(1, key) + _field(2, value) for key, value in user_metadata.items()]
        kept += [(_TYPES, raw) for raw in other.raw_types]
        kept += [(_USER_METADATA, item) for item in items]
        if other.calendar:
            kept.append((_CALENDAR, other.calendar))
        footer = b"".join(_field(number, value) for number, value in kept)
        if self.compression != "none":
            parts = [footer[i : i + self._block] for i in range(0, len(footer), self._block)]
            footer = b"".join(
                (len(part) << 1 | _ORIGINAL).to_bytes(3, "little") + part for part in parts
            )
        ending = b"".join(
            _field(number, len(footer) if number == _FOOTER_LENGTH else value)
            for number, value in self._postscript
        )
        return self._content[: self._begin] + footer + ending + bytes([len(ending)])


def _type(raw: bytes) -> OrcType:
    fields = list(_fields(raw))
    kind = _one(fields, 1)
    children: list[int] = []
    for number, value in fields:
        if number == 2 and isinstance(value, int):
            children.append(value)
        elif number == 2:
            at, packed = 0, bytes(value)
            while at < len(packed):
                child, at = _number(packed, at)
                children.append(child)
    names = tuple(name.decode() for name in _all(fields, 3))
    return OrcType(
        KINDS[kind] if kind < len(KINDS) else str(kind), tuple(children), names, _one(fields, 5)
    )


def _lz4(part: bytes, largest: int) -> bytes:
    """The bytes of one LZ4 block, which does not tell their number."""
    found = bytearray()
    at = 0
    while at < len(part):
        token = part[at]
        at += 1
        literals, at = _length(part, at, token >> 4)
        found += part[at : at + literals]
        at += literals
        if at >= len(part):
            break
        distance = int.from_bytes(part[at : at + 2], "little")
        matched, at = _length(part, at + 2, token & 15)
        if not 0 < distance <= len(found) or len(found) + matched > largest:
            raise _Bad
        for _ in range(matched + 4):
            found.append(found[-distance])
    return bytes(found)


def _length(part: bytes, at: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            more = part[at]
            at += 1
            length += more
            if more < 255:
                break
    return length, at


def _damaged() -> FileCorrupt:
    return FileCorrupt("a footer of an ORC file cannot be read", "rewrite the file")
