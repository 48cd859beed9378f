"""What a Parquet footer spells, read here byte by byte.

pyarrow's access to statistics ends the process (an exception that its C++ does not expect) where
they are damaged: it is not asked. The law: a footer that is not whole, contradicts its own schema
or leads out of the file is FileCorrupt, and no bytes whatever do worse than that.

Thrift's compact protocol. Nearly all column chunks are spelt alike: one regular expression takes
such a chunk at once, twenty times as fast as the reader of single fields that takes the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from bridge.errors import FileCorrupt

PHYSICAL = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
_WIDTH = {0: 1, 1: 4, 2: 8, 4: 4, 5: 8}
_BOOLEANS, _INTEGERS = (1, 2), (4, 5, 6)
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
_REMEMBERED = 4 * 1024 * 1024
"""Bytes of ends that are remembered, the last one apart: keys of writers may take megabytes."""
_DEEPEST = 64
_SIGNATURE = 28
"""Bytes of a nonce and a tag."""
_GROUPED = {1: (1, 2, 3), 10: (2, 3)}
"""By field of a schema element (converted type, logical type) the values that mean list or map."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the schema.

    Attributes:
        physical: number of its physical type, see `PHYSICAL`.
        width: bytes of a statistic; None where any are possible.
        path: its names. Of a leaf below a list or map those down to that list or map.
        repeated: it lies below a list or map.
        required: neither it nor a parent can be NULL.
        spelled: its path as column chunks spell it.
    """

    physical: int
    width: int | None
    path: tuple[str, ...]
    repeated: bool
    required: bool
    spelled: bytes


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a footer.

    Attributes:
        spelled: the bytes that a footer with this schema begins with. Nothing else was looked at:
            two footers that begin so have the same schema, parents and all (correctness 23).
    """

    spelled: bytes
    leaves: tuple[Leaf, ...]


@dataclass(slots=True)
class Chunk:
    """One leaf in one row group; bounds are the bytes that the footer holds.

    Attributes:
        old_lower, old_upper: the deprecated bounds, of signed order.
        exact: bounds are not said to be cut.
        dictionary: its offset, 0 where there is none.
        bloom: offset and length of the bloom filter, 0 where they are not told.
    """

    values: int
    size: int
    data: int
    dictionary: int
    nulls: int | None = None
    lower: bytes | None = None
    upper: bytes | None = None
    old_lower: bytes | None = None
    old_upper: bytes | None = None
    exact: bool = True
    bloom: tuple[int, int] = (0, 0)

    @property
    def start(self) -> int:
        dictionary, data = self.dictionary, self.data
        return dictionary if 0 < dictionary < data else data


@dataclass(frozen=True, slots=True)
class End:
    """What stands behind the row groups, the same in most files of a table.

    Attributes:
        keys: the writer's own keys and values.
        created_by: the writer.
        orders: of each leaf: 1 for the order that its type defines, another number for one that is
            not known; None where none is declared.
    """

    keys: dict[bytes, bytes]
    created_by: bytes
    orders: tuple[int, ...] | None


@dataclass(slots=True)
class Spelling:
    """A whole footer; ``groups`` are row groups with rows: their rows and their chunks."""

    schema: Schema
    rows: int
    groups: list[tuple[int, list[Chunk]]]
    end: End


class Speller:
    """Reads footers; remembers schemas and ends, since files of a table share a few."""

    def __init__(self) -> None:
        self._schemas: list[Schema] = []
        self._ends: dict[bytes, End] = {}
        self._room = _REMEMBERED

    def read(self, raw: bytes, uri: str) -> Spelling:
        """The footer in ``raw``, which holds nothing else. Errors: FileCorrupt."""
        try:
            return self._read(raw)
        except (_Damaged, IndexError, UnicodeDecodeError, RecursionError) as error:
            what = str(error) if isinstance(error, _Damaged) else "it ends within a field"
            if isinstance(error, UnicodeDecodeError):
                what = f"a column's name is not UTF-8: {error.object[:80]!r}"
            raise FileCorrupt(f"{uri}: the Parquet footer is damaged: {what}", "rewrite it") from (
                error
            )

    def _read(self, raw: bytes) -> Spelling:
        schema = self._schema(raw)
        at = len(schema.spelled)
        _expect(raw[at] == 0x16, "the number of rows is missing")
        rows, at = _number(raw, at + 1)
        _expect(raw[at] == 0x19, "the row groups are missing")
        kind, count, at = _list_head(raw, at + 1)
        _expect(kind == _STRUCT or not count, "the row groups are no structs")
        groups: list[tuple[int, list[Chunk]]] = []
        total = 0
        for _ in range(count):
            held, chunks, at = _row_group(raw, at, schema.leaves)
            total += held
            if held:
                groups.append((held, chunks))
        _expect(total == rows, f"it counts {rows} rows, its row groups {total}")
        return Spelling(schema, rows, groups, self._end(raw[at:], len(schema.leaves)))

    def _schema(self, raw: bytes) -> Schema:
        for schema in self._schemas:
            if raw.startswith(schema.spelled):
                return schema
        schema = _schema(raw)
        self._schemas.insert(0, schema)
        del self._schemas[32:]
        return schema

    def _end(self, raw: bytes, leaves: int) -> End:
        end = self._ends.get(raw)
        if end is None or (end.orders is not None and len(end.orders) != leaves):
            end = _end(raw, leaves)
            if len(self._ends) >= 64 or len(raw) > self._room:
                self._ends.clear()
                self._room = _REMEMBERED
            self._ends[raw] = end
            self._room -= len(raw)
        return end


class _Damaged(Exception):
    pass


def _expect(right: bool, what: str) -> None:
    if not right:
        raise _Damaged(what)


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    byte = raw[at]
    if byte < 128:
        return byte, at + 1
    result, shift = byte & 127, 7
    while True:
        at += 1
        byte = raw[at]
        result |= (byte & 127) << shift
        if byte < 128:
            _expect(result < 2**64, "a number has more than 64 bits")
            return result, at + 1
        shift += 7
        _expect(shift < 70, "a number has more than 64 bits")


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """A number that may not be negative."""
    found, at = _varint(raw, at)
    _expect(not found & 1, "a count or an offset is negative")
    return found >> 1, at


def _binary(raw: bytes, at: int) -> tuple[bytes, int]:
    length, at = _varint(raw, at)
    end = at + length
    _expect(end <= len(raw), "a text is longer than the footer")
    return raw[at:end], end


def _list_head(raw: bytes, at: int) -> tuple[int, int, int]:
    head = raw[at]
    count, at = head >> 4, at + 1
    if count == 15:
        count, at = _varint(raw, at)
    _expect(count <= len(raw) - at, "a list is longer than the footer")
    return head & 15, count, at


def _value(raw: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        found, at = _varint(raw, at)
        return (found >> 1) ^ -(found & 1), at
    if kind == _BINARY:
        return _binary(raw, at)
    if kind == _STRUCT:
        return _fields(raw, at, depth + 1)
    if kind in (_LIST, 10):
        inner, count, at = _list_head(raw, at)
        values = []
        for _ in range(count):
            if inner in _BOOLEANS:
                value, at = raw[at] == 1, at + 1
            else:
                value, at = _value(raw, at, inner, depth + 1)
            values.append(value)
        return (inner, values), at
    if kind == 3:
        return raw[at], at + 1
    if kind == 7:
        _expect(at + 8 <= len(raw), "a number is longer than the footer")
        return raw[at : at + 8], at + 8
    raise _Damaged(f"a field has the type {kind}")


_Fields = dict[int, tuple[int, Any]]


def _fields(raw: bytes, at: int, depth: int = 0) -> tuple[_Fields, int]:
    """A struct: by number of the field its type and value."""
    _expect(depth < _DEEPEST, "its structs are nested too deeply")
    found: _Fields = {}
    last = 0
    while True:
        head = raw[at]
        at += 1
        if not head:
            return found, at
        kind, delta = head & 15, head >> 4
        if delta:
            number = last + delta
        else:
            packed, at = _varint(raw, at)
            number = (packed >> 1) ^ -(packed & 1)
        _expect(number > last, "a field stands twice or out of order")
        last = number
        if kind in _BOOLEANS:
            found[number] = kind, kind == 1
        else:
            value, at = _value(raw, at, kind, depth)
            found[number] = kind, value


def _get(fields: _Fields, number: int, kind: int, what: str) -> Any:
    """A field that may be missing."""
    held = fields.get(number)
    if held is None:
        return None
    _expect(held[0] == kind, f"{what} has the type {held[0]}, not {kind}")
    return held[1]


def _need(fields: _Fields, number: int, kind: int, what: str) -> Any:
    found = _get(fields, number, kind, what)
    _expect(found is not None, f"{what} is missing")
    return found


def _whole(fields: _Fields, number: int, kind: int, what: str) -> int:
    found: int = _need(fields, number, kind, what)
    _expect(found >= 0, f"{what} is {found}")
    return found


def _schema(raw: bytes) -> Schema:
    _expect(raw[0] == 0x15, "the version is missing")
    _, at = _number(raw, 1)
    _expect(raw[at] == 0x19, "the schema is missing")
    kind, count, at = _list_head(raw, at + 1)
    _expect(kind == _STRUCT and count > 0, "the schema is empty")
    elements = []
    for _ in range(count):
        fields, at = _fields(raw, at)
        elements.append(fields)
    leaves: list[Leaf] = []
    children = _children(elements[0])
    place = 1
    for _ in range(children):
        place = _walk(elements, place, (), b"", 0, (False, True), leaves)
    _expect(place == count, "the schema's tree has elements left over")
    return Schema(raw[:at], tuple(leaves))


def _children(element: _Fields) -> int:
    found = _get(element, 5, _I32, "the number of children")
    _expect(found is None or found >= 0, "a number of children is negative")
    return int(found or 0)


def _walk(
    elements: list[_Fields],
    place: int,
    parents: tuple[str, ...],
    spelled: bytes,
    depth: int,
    state: tuple[bool, bool],
    leaves: list[Leaf],
) -> int:
    """Adds the leaves at and below an element; the place of the one behind them."""
    _expect(place < len(elements), "the schema's tree lacks elements")
    _expect(depth < _DEEPEST, "the schema's tree is too deep")
    element = elements[place]
    name: bytes = _need(element, 4, _BINARY, "a column's name")
    text = name.decode()
    repetition = _need(element, 3, _I32, "a column's repetition")
    _expect(repetition in (0, 1, 2), "a column's repetition is not known")
    repeated, required = state[0] or repetition == 2, state[1] and repetition == 0
    # All below a list or map goes by its own name: nothing is said of it.
    path = parents if state[0] else (*parents, text)
    if repetition == 2 and not state[0] and parents and _is_grouped(elements[place - 1]):
        path = parents
    spelled += _spell(name)
    children = _children(element)
    if 1 in element and not children:  # some writers count a leaf's children: none
        physical = _need(element, 1, _I32, "a column's type")
        _expect(0 <= physical < len(PHYSICAL), "a column's type is not known")
        width = _WIDTH.get(physical)
        if physical == 7:
            width = _whole(element, 2, _I32, "the length of a column's type")
        _expect(depth + 1 < 2**14, "the schema's tree is too deep")
        head = bytes([(depth + 1) << 4 | _BINARY]) if depth < 14 else _long_head(depth + 1)
        leaves.append(Leaf(physical, width, path, repeated, required, b"\x19" + head + spelled))
        return place + 1
    _expect(1 not in element, "an element of the schema is a leaf and a group")
    place += 1
    for _ in range(children):
        place = _walk(elements, place, path, spelled, depth + 1, (repeated, required), leaves)
    return place


def _is_grouped(element: _Fields) -> bool:
    """A list or map by its annotation: its name is its parent's."""
    if 6 in element and element[6] in ((_I32, 1), (_I32, 2), (_I32, 3)):
        return True
    logical = _get(element, 10, _STRUCT, "a logical type") or {}
    return 2 in logical or 3 in logical


def _long_head(count: int) -> bytes:
    return bytes([0xF0 | _BINARY]) + _spelled_number(count)


def _spell(name: bytes) -> bytes:
    return _spelled_number(len(name)) + name


def _spelled_number(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _row_group(raw: bytes, at: int, leaves: Sequence[Leaf]) -> tuple[int, list[Chunk], int]:
    _expect(raw[at] == 0x19, "a row group has no columns")
    kind, count, at = _list_head(raw, at + 1)
    _expect(kind == _STRUCT or not count, "a row group's columns are no structs")
    _expect(count == len(leaves), f"a row group has {count} columns, the schema {len(leaves)}")
    chunks = []
    for leaf in leaves:
        chunk, at = _chunk(raw, at, leaf)
        chunks.append(chunk)
    # The number of the field before, 1, is what the fields' heads count from.
    _expect(raw[at] == 0x16, "a row group has no size")
    _, at = _varint(raw, at + 1)  # some writers' is negative; nobody needs it
    _expect(raw[at] == 0x16, "a row group has no number of rows")
    rows, at = _number(raw, at + 1)
    _, at = _fields(raw, at)  # counted from 0 instead of 3: nobody needs them
    for leaf, chunk in zip(leaves, chunks, strict=True):
        if chunk.values != rows and not leaf.repeated:
            raise _Damaged(f"a column has {chunk.values} values, its row group {rows} rows")
    return rows, chunks, at


_V = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_FIRST = re.compile(
    rb"\x26" + _V + rb"\x1c\x15([\x00-\x0e])\x19([\x00-\xff])([\x00\x04-\x12]*)(?=\x19)"
)
"""A column chunk up to its path: place, type, encodings."""


@cache
def _second(width: int | None) -> re.Pattern[bytes]:
    """A column chunk behind its path, with statistics of so many bytes.

    Each field's head says how far its number lies from the one before: what is optional comes with
    the head of what follows.
    """
    lengths = range(128) if width is None else (width,)
    text = b"|".join(re.escape(bytes([n])) + rb"[\x00-\xff]{%d}" % n for n in lengths)
    page = rb"\x15%b\x15%b\x15%b\x00" % (_V, _V, _V)
    heads = ((re.escape(bytes([n << 4 | 12])), n) for n in range(1, 6))
    pages = b"|".join(head + rb"(?:%b){%d}" % (page, n) for head, n in heads)
    heads = ((re.escape(bytes([n << 4 | 6])), n) for n in range(6))
    levels = b"|".join(head + rb"(?:%b){%d}" % (_V, n) for head, n in heads)
    parts = {b"V": _V, b"text": text, b"pages": pages, b"levels": levels}
    parts[b"sizes"] = (
        rb"(?:(?:\x16%(V)b\x19|\x29)(?:%(levels)b)(?:\x19(?:%(levels)b))?)?\x00" % parts
    )
    return re.compile(
        # codec, values, sizes, offsets of data and dictionary
        rb"\x15%(V)b\x16(%(V)b)\x16%(V)b\x16(%(V)b)\x26(%(V)b)(?:\x26(%(V)b))?"
        # statistics: the count of NULL, perhaps with deprecated bounds before it; bounds
        rb"(?:(?(4)\x1c|\x3c)(?:\x36(%(V)b)|\x18(%(text)b)\x18(%(text)b)\x16(%(V)b))"
        rb"(?:(?:\x16%(V)b\x18|\x28)(%(text)b)\x18(%(text)b)(?:([\x11\x12]{2})(?:\x16%(V)b)?)?)?\x00"
        rb"(?:\x19(?:%(pages)b)|(?=\x00))|(?(4)\x29|\x49)(?:%(pages)b))"
        # bloom filter, sizes of values, the end of the chunk's metadata, page indexes
        rb"(?:\x16(%(V)b)\x15(%(V)b)(?:\x1c%(sizes)b)?|\x3c%(sizes)b)?\x00"
        rb"(?:\x16%(V)b\x15%(V)b\x16%(V)b\x15%(V)b)?\x00" % parts
    )


def _chunk(raw: bytes, at: int, leaf: Leaf) -> tuple[Chunk, int]:
    first = _FIRST.match(raw, at)
    if first is not None:
        physical, head, encodings = first.groups()
        end = first.end()
        if (
            physical[0] == leaf.physical << 1
            and head[0] == len(encodings) << 4 | _I32
            and raw.startswith(leaf.spelled, end)
        ):
            width = leaf.width if leaf.physical in _WIDTH else None
            second = _second(width).match(raw, end + len(leaf.spelled))
            if second is not None:
                return _matched(second), second.end()
    fields, at = _fields(raw, at)
    return _built(fields, leaf), at


def _matched(match: re.Match[bytes]) -> Chunk:
    (values, size, data, dictionary, nulls, old_upper, old_lower, old_nulls, upper, lower, exact,
     bloom, bloom_length) = match.groups()  # fmt: skip
    chunk = Chunk(_plain(values), _plain(size), _plain(data), 0)
    if dictionary is not None:
        chunk.dictionary = _plain(dictionary)
    if nulls is not None:
        chunk.nulls = _told(nulls)
    elif old_nulls is not None:
        chunk.nulls = _told(old_nulls)
        chunk.old_lower, chunk.old_upper = old_lower[1:], old_upper[1:]
    if lower is not None:
        chunk.lower, chunk.upper = lower[1:], upper[1:]
        chunk.exact = exact is None or exact == b"\x11\x11"
    if bloom is not None:
        chunk.bloom = _told(bloom) or 0, _told(bloom_length) or 0
    return chunk


def _told(text: bytes) -> int | None:
    """A number that nobody needs to read the column, from its bytes; None: negative, unknown."""
    return None if text[0] & 1 else _plain(text)


def _plain(text: bytes) -> int:
    """A number that may not be negative, from its bytes alone."""
    first = text[0]
    if first & 1:
        raise _Damaged("a count or an offset is negative")
    if first < 128:
        return first >> 1
    length = len(text)
    if length == 2:
        return (first & 127 | text[1] << 7) >> 1
    if length == 3:
        return (first & 127 | (text[1] & 127) << 7 | text[2] << 14) >> 1
    return _varint(text, 0)[0] >> 1


def _built(fields: _Fields, leaf: Leaf) -> Chunk:
    other = _get(fields, 1, _BINARY, "a column's file")
    _expect(not other, f"a column lies in another file: {other!r:.80}")
    held: _Fields = _need(fields, 3, _STRUCT, "a column's metadata")
    physical = _need(held, 1, _I32, "a column's type")
    _expect(physical == leaf.physical, "a column's type is not the schema's")
    kind, path = _need(held, 3, _LIST, "a column's path")
    _expect(kind == _BINARY and path, "a column's path is no list of names")
    head = bytes([len(path) << 4 | _BINARY]) if len(path) < 15 else _long_head(len(path))
    spelled = b"\x19" + head + b"".join(map(_spell, path))
    _expect(spelled == leaf.spelled, "a column's path is not the schema's")
    chunk = Chunk(
        _whole(held, 5, _I64, "a column's number of values"),
        _whole(held, 7, _I64, "a column's size"),
        _whole(held, 9, _I64, "a column's offset"),
        _get(held, 11, _I64, "a dictionary's offset") or 0,
    )
    length = _get(held, 15, _I32, "a bloom filter's length") or 0
    chunk.bloom = max(0, _get(held, 14, _I64, "a bloom filter's offset") or 0), max(0, length)
    statistics: _Fields | None = _get(held, 12, _STRUCT, "a column's statistics")
    if statistics is None:
        return chunk
    nulls = _get(statistics, 3, _I64, "a count of NULL")
    chunk.nulls = None if nulls is None or nulls < 0 else nulls
    chunk.old_upper, chunk.old_lower, chunk.upper, chunk.lower = (
        _get(statistics, number, _BINARY, "a bound") for number in (1, 2, 5, 6)
    )
    if leaf.physical in _WIDTH:
        for bound in (chunk.old_lower, chunk.old_upper, chunk.lower, chunk.upper):
            right = not bound or len(bound) == leaf.width
            _expect(right, f"a bound of {PHYSICAL[leaf.physical]} is {bound!r:.80}")
    for number in (7, 8):
        chunk.exact &= statistics.get(number, (1, True)) == (1, True)
    return chunk


def _end(raw: bytes, leaves: int) -> End:
    """Of the bytes behind the row groups, whose field has the number 4."""
    fields, at = _fields(raw, 0)
    # The footer of a file with encrypted columns is signed where it is not encrypted itself.
    signed = _get(fields, 4, _STRUCT, "the encryption's name") is not None
    rest = len(raw) - at
    _expect(not rest or (signed and rest == _SIGNATURE), f"{rest} bytes stand behind its end")
    kind, pairs = _get(fields, 1, _LIST, "the list of keys") or (_STRUCT, [])
    _expect(kind == _STRUCT or not pairs, "the writer's keys are no structs")
    keys = {}
    for pair in pairs:
        key = _need(pair, 1, _BINARY, "a key")
        keys[key] = _get(pair, 2, _BINARY, "a key's value") or b""
    created_by = _get(fields, 2, _BINARY, "the writer's name") or b""
    held = _get(fields, 3, _LIST, "the list of column orders")
    orders = None
    if held is not None:
        kind, found = held
        right = (kind == _STRUCT or not found) and len(found) == leaves
        _expect(right, f"it has {len(found)} column orders and {leaves} columns")
        orders = tuple(next(iter(order), 0) if len(order) == 1 else 0 for order in found)
    return End(keys, created_by, orders)
