"""Parses Parquet footers, and checks every byte.

pyarrow is not used, because damaged statistics can crash its C++ code and with it the process. The
law: a footer that is incomplete, contradicts its own schema or points outside the file raises
FileCorrupt. No bytes do any worse.

The footer is in Thrift's compact protocol. Nearly all column chunks have the same layout, which one
regular expression parses, twenty times as fast as field by field. Other chunks are parsed field by
field.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from bridge.formats.parquet.thrift_compact import (
    BINARY,
    DEEPEST,
    I32,
    I64,
    LIST,
    STRUCT,
    Damaged,
    Fields,
    count_field,
    expect,
    needed_field,
    optional_field,
    read_count,
    read_fields,
    read_list_head,
    read_varint,
    spell_binary,
    spell_long_list,
)
from bridge.kernel.errors import FileCorrupt

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
_REMEMBERED = 4 * 1024 * 1024
"""Limit in bytes of the cached ends, except the last one: writers' keys may take megabytes."""
_SIGNATURE = 28
"""Bytes of a nonce and a tag (encrypted footers)."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the schema.

    Attributes:
        physical: number of its physical type; see `PHYSICAL`.
        width: length of a statistic in bytes; None if it varies.
        path: its names; below a list or map only the names down to that list or map.
        repeated: whether it is below a list or map.
        required: whether neither it nor a parent can be NULL.
        spelled: its path as encoded in column chunks.
        alone: whether no other column or struct shares its name. Of two columns with the same name,
            readers differ in which one they take (correctness 14).
    """

    physical: int
    width: int | None
    path: tuple[str, ...]
    repeated: bool
    required: bool
    spelled: bytes
    alone: bool = True


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a footer.

    Attributes:
        spelled: the bytes at the start of every footer with this schema. The schema depends on
            nothing else, so footers that start with them have the same schema, including parents
            (correctness 23).
    """

    spelled: bytes
    leaves: tuple[Leaf, ...]


@dataclass(slots=True)
class Chunk:
    """One leaf in one row group. Bounds are the bytes in the footer.

    Attributes:
        old_lower, old_upper: the deprecated bounds, in signed order.
        exact: whether the bounds are not declared as truncated.
        dictionary: offset of the dictionary; 0 if there is none.
        bloom: offset and length of the bloom filter; 0 if unknown.
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
    """The footer after the row groups, which is the same in most files of a table.

    Attributes:
        keys: the writer's key-value metadata.
        created_by: the writer.
        orders: the column order of each leaf: 1 for the type-defined order, another number for an
            unknown order; None if none is declared.
    """

    keys: dict[bytes, bytes]
    created_by: bytes
    orders: tuple[int, ...] | None


@dataclass(slots=True)
class Spelling:
    """A parsed footer; ``groups`` are the row groups that have rows: row count and chunks."""

    schema: Schema
    rows: int
    groups: list[tuple[int, list[Chunk]]]
    end: End


class Speller:
    """Parses footers. Caches schemas and ends, because the files of a table share a few."""

    def __init__(self) -> None:
        self._schemas: list[Schema] = []
        self._ends: dict[bytes, End] = {}
        self._room = _REMEMBERED

    def read(self, raw: bytes, uri: str) -> Spelling:
        """Parses ``raw``, which is exactly one footer. Errors: FileCorrupt."""
        try:
            return self._read(raw)
        except (Damaged, IndexError, UnicodeDecodeError, RecursionError) as error:
            what = str(error) if isinstance(error, Damaged) else "it ends within a field"
            if isinstance(error, UnicodeDecodeError):
                what = f"a column's name is not UTF-8: {error.object[:80]!r}"
            raise FileCorrupt(f"{uri}: the Parquet footer is damaged: {what}", "rewrite it") from (
                error
            )

    def _read(self, raw: bytes) -> Spelling:
        schema = self._schema(raw)
        at = len(schema.spelled)
        expect(raw[at] == 0x16, "the number of rows is missing")
        rows, at = read_count(raw, at + 1)
        expect(raw[at] == 0x19, "the row groups are missing")
        kind, count, at = read_list_head(raw, at + 1)
        expect(kind == STRUCT or not count, "the row groups are no structs")
        groups: list[tuple[int, list[Chunk]]] = []
        total = 0
        for _ in range(count):
            held, chunks, at = _row_group(raw, at, schema.leaves)
            total += held
            if held:
                groups.append((held, chunks))
        expect(total == rows, f"it counts {rows} rows, its row groups {total}")
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


def _schema(raw: bytes) -> Schema:
    expect(raw[0] == 0x15, "the version is missing")
    _, at = read_count(raw, 1)
    expect(raw[at] == 0x19, "the schema is missing")
    kind, count, at = read_list_head(raw, at + 1)
    expect(kind == STRUCT and count > 0, "the schema is empty")
    elements = []
    for _ in range(count):
        fields, at = read_fields(raw, at)
        elements.append(fields)
    tree = _Tree(elements)
    children = _children(elements[0])
    place = 1
    for _ in range(children):
        place = _walk(tree, place, (), b"", 0, (False, True))
    expect(place == count, "the schema's tree has elements left over")
    return Schema(raw[:at], tree.told_apart())


@dataclass(slots=True)
class _Tree:
    """A schema's elements, and the state of the walk through them."""

    elements: list[Fields]
    leaves: list[Leaf] = field(default_factory=list)
    groups: list[tuple[str, ...]] = field(default_factory=list)

    def told_apart(self) -> tuple[Leaf, ...]:
        """The leaves, with `Leaf.alone` set."""
        times = Counter(leaf.path for leaf in self.leaves)
        met = Counter(_folded(path) for path in self.groups)
        met.update({_folded(leaf.path) for leaf in self.leaves if not leaf.repeated})
        twice = {path for path, times in met.items() if times > 1}

        def doubtful(leaf: Leaf) -> bool:
            path = _folded(leaf.path)
            return times[leaf.path] > 1 or any(path[: i + 1] in twice for i in range(len(path)))

        return tuple(replace(leaf, alone=False) if doubtful(leaf) else leaf for leaf in self.leaves)


def _folded(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.lower() for name in path)


def _children(element: Fields) -> int:
    found = optional_field(element, 5, I32, "the number of children")
    expect(found is None or found >= 0, "a number of children is negative")
    return int(found or 0)


def _walk(
    tree: _Tree,
    place: int,
    parents: tuple[str, ...],
    spelled: bytes,
    depth: int,
    state: tuple[bool, bool],
) -> int:
    """Adds the leaves at and below an element. Returns the index of the element after them."""
    elements = tree.elements
    expect(place < len(elements), "the schema's tree lacks elements")
    expect(depth < DEEPEST, "the schema's tree is too deep")
    element = elements[place]
    name: bytes = needed_field(element, 4, BINARY, "a column's name")
    text = name.decode()
    repetition = needed_field(element, 3, I32, "a column's repetition")
    expect(repetition in (0, 1, 2), "a column's repetition is not known")
    repeated, required = state[0] or repetition == 2, state[1] and repetition == 0
    # Leaves below a list or map share its path, because their statistics are not used.
    path = parents if state[0] else (*parents, text)
    if repetition == 2 and not state[0] and parents and _is_grouped(elements[place - 1]):
        path = parents
    spelled += spell_binary(name)
    children = _children(element)
    if 1 in element and not children:  # some writers give a leaf a child count of 0
        physical = needed_field(element, 1, I32, "a column's type")
        expect(0 <= physical < len(PHYSICAL), "a column's type is not known")
        width = _WIDTH.get(physical)
        if physical == 7:
            width = count_field(element, 2, I32, "the length of a column's type")
        expect(depth + 1 < 2**14, "the schema's tree is too deep")
        head = bytes([(depth + 1) << 4 | BINARY]) if depth < 14 else spell_long_list(depth + 1)
        found = Leaf(physical, width, path, repeated, required, b"\x19" + head + spelled)
        tree.leaves.append(found)
        return place + 1
    expect(1 not in element, "an element of the schema is a leaf and a group")
    if not repeated:
        tree.groups.append(path)
    place += 1
    for _ in range(children):
        place = _walk(tree, place, path, spelled, depth + 1, (repeated, required))
    return place


def _is_grouped(element: Fields) -> bool:
    """Whether an element is annotated as a list or map."""
    if 6 in element and element[6] in ((I32, 1), (I32, 2), (I32, 3)):
        return True
    logical = optional_field(element, 10, STRUCT, "a logical type") or {}
    return 2 in logical or 3 in logical


def _row_group(raw: bytes, at: int, leaves: Sequence[Leaf]) -> tuple[int, list[Chunk], int]:
    expect(raw[at] == 0x19, "a row group has no columns")
    kind, count, at = read_list_head(raw, at + 1)
    expect(kind == STRUCT or not count, "a row group's columns are no structs")
    expect(count == len(leaves), f"a row group has {count} columns, the schema {len(leaves)}")
    chunks = []
    for leaf in leaves:
        chunk, at = _chunk(raw, at, leaf)
        chunks.append(chunk)
    # Field headers count from the number of the previous field, which is 1.
    expect(raw[at] == 0x16, "a row group has no size")
    _, at = read_varint(raw, at + 1)  # some writers store a negative size; it is not used
    expect(raw[at] == 0x16, "a row group has no number of rows")
    rows, at = read_count(raw, at + 1)
    _, at = read_fields(raw, at)  # numbers count from 0 instead of 3, but are not used
    for leaf, chunk in zip(leaves, chunks, strict=True):
        if chunk.values != rows and not leaf.repeated:
            raise Damaged(f"a column has {chunk.values} values, its row group {rows} rows")
    return rows, chunks, at


_V = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
_FIRST = re.compile(
    rb"\x26" + _V + rb"\x1c\x15([\x00-\x0e])\x19([\x00-\xff])([\x00\x04-\x12]*)(?=\x19)"
)
"""A column chunk up to its path: offset, type, encodings."""


@cache
def _second(width: int | None) -> re.Pattern[bytes]:
    """Matches a column chunk after its path, with statistics of ``width`` bytes.

    A field's header holds the difference to the previous field number, so an optional field changes
    the header of the field after it.
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
        # statistics: optional deprecated bounds, the NULL count, and bounds
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
            and head[0] == len(encodings) << 4 | I32
            and raw.startswith(leaf.spelled, end)
        ):
            width = leaf.width if leaf.physical in _WIDTH else None
            second = _second(width).match(raw, end + len(leaf.spelled))
            if second is not None:
                return _matched(second), second.end()
    fields, at = read_fields(raw, at)
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
    """Decodes a number that is not essential for reading; None if negative or unknown."""
    return None if text[0] & 1 else _plain(text)


def _plain(text: bytes) -> int:
    """Decodes a number that must not be negative."""
    first = text[0]
    if first & 1:
        raise Damaged("a count or an offset is negative")
    if first < 128:
        return first >> 1
    length = len(text)
    if length == 2:
        return (first & 127 | text[1] << 7) >> 1
    if length == 3:
        return (first & 127 | (text[1] & 127) << 7 | text[2] << 14) >> 1
    return read_varint(text, 0)[0] >> 1


def _built(fields: Fields, leaf: Leaf) -> Chunk:
    other = optional_field(fields, 1, BINARY, "a column's file")
    expect(not other, f"a column lies in another file: {other!r:.80}")
    held: Fields = needed_field(fields, 3, STRUCT, "a column's metadata")
    physical = needed_field(held, 1, I32, "a column's type")
    expect(physical == leaf.physical, "a column's type is not the schema's")
    kind, path = needed_field(held, 3, LIST, "a column's path")
    if path:  # some writers leave it empty: chunks are in the schema's order
        expect(kind == BINARY, "a column's path is no list of names")
        head = bytes([len(path) << 4 | BINARY]) if len(path) < 15 else spell_long_list(len(path))
        spelled = b"\x19" + head + b"".join(map(spell_binary, path))
        expect(spelled == leaf.spelled, "a column's path is not the schema's")
    chunk = Chunk(
        count_field(held, 5, I64, "a column's number of values"),
        count_field(held, 7, I64, "a column's size"),
        count_field(held, 9, I64, "a column's offset"),
        optional_field(held, 11, I64, "a dictionary's offset") or 0,
    )
    length = optional_field(held, 15, I32, "a bloom filter's length") or 0
    chunk.bloom = (
        max(0, optional_field(held, 14, I64, "a bloom filter's offset") or 0),
        max(0, length),
    )
    statistics: Fields | None = optional_field(held, 12, STRUCT, "a column's statistics")
    if statistics is None:
        return chunk
    nulls = optional_field(statistics, 3, I64, "a count of NULL")
    chunk.nulls = None if nulls is None or nulls < 0 else nulls
    chunk.old_upper, chunk.old_lower, chunk.upper, chunk.lower = (
        optional_field(statistics, number, BINARY, "a bound") for number in (1, 2, 5, 6)
    )
    if leaf.physical in _WIDTH:
        for bound in (chunk.old_lower, chunk.old_upper, chunk.lower, chunk.upper):
            right = not bound or len(bound) == leaf.width
            expect(right, f"a bound of {PHYSICAL[leaf.physical]} is {bound!r:.80}")
    for number in (7, 8):
        chunk.exact &= statistics.get(number, (1, True)) == (1, True)
    return chunk


def _end(raw: bytes, leaves: int) -> End:
    """Parses the bytes after the row groups, which are field 4."""
    fields, at = read_fields(raw, 0)
    # A plaintext footer of a file with encrypted columns is signed.
    signed = optional_field(fields, 4, STRUCT, "the encryption's name") is not None
    rest = len(raw) - at
    expect(not rest or (signed and rest == _SIGNATURE), f"{rest} bytes stand behind its end")
    kind, pairs = optional_field(fields, 1, LIST, "the list of keys") or (STRUCT, [])
    expect(kind == STRUCT or not pairs, "the writer's keys are no structs")
    keys = {}
    for pair in pairs:
        key = needed_field(pair, 1, BINARY, "a key")
        keys[key] = optional_field(pair, 2, BINARY, "a key's value") or b""
    created_by = optional_field(fields, 2, BINARY, "the writer's name") or b""
    held = optional_field(fields, 3, LIST, "the list of column orders")
    orders = None
    if held is not None:
        kind, found = held
        right = (kind == STRUCT or not found) and len(found) == leaves
        expect(right, f"it has {len(found)} column orders and {leaves} columns")
        orders = tuple(next(iter(order), 0) if len(order) == 1 else 0 for order in found)
    return End(keys, created_by, orders)
