"""What a footer says of a file's columns to readers that find them by name: paths, types, rows.

Such readers find columns by a mapping of names, and read values by the file's types. What they
would read wrongly can be found here, before they read: a column without its name in the mapping
reads as NULL, a unit or a sign that differs as another value.
"""

from __future__ import annotations

import base64
import json
import threading
import zlib
from dataclasses import dataclass
from typing import Any

from bridge.formats.parquet.footer import End, Speller, Spelling
from bridge.formats.parquet.tail import open_footer, read_tail
from bridge.formats.parquet.thrift_compact import (
    I32,
    STRUCT,
    Fields,
    optional_field,
    read_count,
    read_fields,
    read_list_head,
)
from bridge.formats.parquet.writers import doubts_about, writer_of
from bridge.formats.physical_column import PhysicalType
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import FileCorrupt
from bridge.kernel.types import whole_number
from bridge.storage.port import FileStat, Storage

_DAYS_1900 = -25_567
_OF_A_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_MOST_SCHEMAS = 1000
_LIST, _MAP = (3,), (1, 2)
"""Converted types; the logical types are 3 and 2."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A leaf of a file.

    Attributes:
        path: the names as stored; below lists ``element``, below maps ``key`` and ``value``.
        plain: its lists and maps have the levels that the format asks for.
    """

    path: tuple[str, ...]
    type: PhysicalType
    plain: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class StoredSchema:
    """The leaves of a file; files of one schema share one object.

    Attributes:
        numbered: columns have field ids, by which clients find them instead of by name.
    """

    columns: tuple[StoredColumn, ...]
    numbered: bool

    @property
    def nanoseconds(self) -> list[int]:
        """The leaves that Arrow reads as nanoseconds: INT96 among them."""
        types = [each.type for each in self.columns]
        return [i for i, t in enumerate(types) if t.physical == "INT96" or t.unit == "ns"]


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file.

    Attributes:
        rows: -1 if its writer's number is not believed.
        old: a column with times before 1900 in the old calendar, which clients read as they are.
        far: those of `StoredSchema.nanoseconds` that are `bridge.formats.parquet.int96.far_leaves`;
            None: the values were not read.
    """

    schema: StoredSchema
    rows: int
    old: tuple[str, ...] = ()
    far: tuple[int, ...] | None = None

    def spell(self) -> str:
        """All but the rows, as an index keeps it."""
        columns = [[c.path, c.plain, _type_parts(c.type)] for c in self.schema.columns]
        parts = [columns, self.schema.numbered, self.old, self.far]
        whole = json.dumps(parts, separators=(",", ":"))
        return base64.b64encode(zlib.compress(whole.encode())).decode()


def parse_stored(text: str) -> StoredFile:
    """The inverse of `StoredFile.spell`; the rows are unknown."""
    columns, numbered, old, *more = json.loads(zlib.decompress(base64.b64decode(text)))
    schema = StoredSchema(
        tuple(
            StoredColumn(tuple(path), PhysicalType(*type), plain) for path, plain, type in columns
        ),
        numbered,
    )
    far = more[0] if more else None  # earlier builds say nothing of it
    return StoredFile(schema, -1, tuple(old), None if far is None else tuple(far))


def _type_parts(t: PhysicalType) -> list[Any]:
    return [t.physical, t.logical, t.width, t.precision, t.scale, t.unit, t.utc]


class StoredFileReader:
    """Reads footers; safe for threads."""

    def __init__(self) -> None:
        self._schemas: BoundedCache[bytes, StoredSchema] = BoundedCache(_MOST_SCHEMAS)
        self._local = threading.local()

    def read(self, storage: Storage, file: FileStat) -> StoredFile:
        """Errors: FileCorrupt, FileUnreadable, StorageFailure."""
        speller = getattr(self._local, "speller", None)
        if speller is None:
            speller = self._local.speller = Speller()
        tail = read_tail(storage, file.uri, file.size)
        length = int.from_bytes(tail[-8:-4], "little")
        spelled = speller.read(tail[len(tail) - 8 - length : len(tail) - 8], file.uri)
        raw = spelled.schema.spelled
        schema = self._schemas.load(raw, lambda: stored_schema(raw, tail, file.uri))
        doubts = doubts_about(writer_of(spelled.end.created_by, spelled.end.keys))
        old = old_times(schema, spelled) if hybrid_calendar(spelled.end) else ()
        return StoredFile(schema, -1 if doubts.rows else spelled.rows, old)


def old_times(schema: StoredSchema, spelled: Spelling) -> tuple[str, ...]:
    """A column whose bounds show times before 1900; empty if there is none."""
    for i, column in enumerate(schema.columns):
        units = 1 if column.type.logical == "date" else _OF_A_DAY.get(column.type.unit)
        if units is None:
            continue
        floor = _DAYS_1900 * units
        for _, chunks in spelled.groups:
            lower = chunks[i].lower or chunks[i].old_lower
            if lower and int.from_bytes(lower, "little", signed=True) < floor:
                return column.path
    return ()


def hybrid_calendar(end: End) -> bool:
    """Whether dates before 1900 may have been written in the hybrid Julian calendar."""
    if not end.created_by.startswith(b"parquet-mr"):
        return False
    keys = end.keys
    if b"org.apache.spark.legacyDateTime" in keys:
        return True
    if keys.get(b"writer.date.proleptic") == b"true":
        return False
    spark = keys.get(b"org.apache.spark.version", b"0").split(b".")[0]
    return (whole_number(spark.decode("latin-1")) or 0) < 3


def stored_schema(raw: bytes, tail: bytes, uri: str) -> StoredSchema:
    """The schema at the start of a footer that was parsed before. Errors: FileCorrupt."""
    _, at = read_count(raw, 1)
    _, count, at = read_list_head(raw, at + 1)
    elements: list[Fields] = []
    for _ in range(count):
        fields, at = read_fields(raw, at)
        elements.append(fields)
    leaves = _Tree(elements).leaves
    known = open_footer(tail, uri).schema
    if len(known) != len(leaves):
        raise FileCorrupt(f"{uri}: the schema is damaged: its tree is invalid", "rewrite the file")
    types = [stored_type(known.column(i)) for i in range(len(known))]
    columns = tuple(
        StoredColumn(path, type, plain) for (path, plain), type in zip(leaves, types, strict=True)
    )
    return StoredSchema(columns, any(9 in element for element in elements[1:]))


class _Tree:
    """The tree of a schema's elements, and the leaves met so far."""

    def __init__(self, elements: list[Fields]) -> None:
        self._elements = elements
        self.leaves: list[tuple[tuple[str, ...], bool]] = []
        place = 1
        while place < len(elements):
            place = self._walk(place, (), True)

    def _walk(self, place: int, parents: tuple[str, ...], plain: bool) -> int:
        """Adds the leaves at and below an element; returns the place after them."""
        element = self._elements[place]
        name, children = _name(element), _children(element)
        plain = plain and element[3][1] != 2  # repeated, and no part of a list or map
        path = (*parents, name)
        if not children:
            self.leaves.append((path, plain))
            return place + 1
        if _annotated(element, _LIST, 3):
            return self._list(place, path, plain)
        if _annotated(element, _MAP, 2):
            return self._map(place, path, plain)
        place += 1
        for _ in range(children):
            place = self._walk(place, path, plain)
        return place

    def _list(self, place: int, path: tuple[str, ...], plain: bool) -> int:
        """A list has one repeated group, and that one element."""
        inner = _name(self._elements[place + 1])
        if self._repeats(place, 1) and inner not in ("array", f"{path[-1]}_tuple"):
            return self._inner(place + 2, (*path, "element"), plain)
        return self._others(place, (*path, "element"))

    def _map(self, place: int, path: tuple[str, ...], plain: bool) -> int:
        if self._repeats(place, 2):
            after = self._inner(place + 2, (*path, "key"), plain)
            return self._inner(after, (*path, "value"), plain)
        return self._others(place, (*path, "key"))

    def _repeats(self, place: int, children: int) -> bool:
        """Whether an element holds one repeated group alone, and this so many others."""
        repeated = self._elements[place + 1]
        alone = _children(self._elements[place]) == 1 and repeated[3][1] == 2
        return alone and _children(repeated) == children

    def _inner(self, place: int, path: tuple[str, ...], plain: bool) -> int:
        """What a list or map holds, under the name that Iceberg gives it."""
        first, depth = len(self.leaves), len(path)
        after = self._walk(place, path[:-1], plain)
        self.leaves[first:] = [((*path, *held[depth:]), ok) for held, ok in self.leaves[first:]]
        return after

    def _others(self, place: int, path: tuple[str, ...]) -> int:
        """Leaves below a list or map of other levels."""
        left = _children(self._elements[place])
        place += 1
        while left:
            children = _children(self._elements[place])
            if not children:
                self.leaves.append((path, False))
            left += children - 1
            place += 1
        return place


def _name(element: Fields) -> str:
    name: bytes = element[4][1]
    return name.decode()


def _children(element: Fields) -> int:
    return 0 if 1 in element else int(optional_field(element, 5, I32, "a number") or 0)


def _annotated(element: Fields, converted: tuple[int, ...], logical: int) -> bool:
    if optional_field(element, 6, I32, "a type") in converted:
        return True
    return logical in (optional_field(element, 10, STRUCT, "a logical type") or {})


def stored_type(column: Any) -> PhysicalType:
    """The type of a pyarrow column of a footer's schema, also below lists and maps."""
    physical = column.physical_type
    annotation = json.loads(column.logical_type.to_json())
    kind = annotation["Type"]
    if kind == "None":
        plain = {
            "BOOLEAN": ("bool", 1),
            "INT32": ("int", 32),
            "INT64": ("int", 64),
            "FLOAT": ("float", 0),
            "DOUBLE": ("double", 0),
            "BYTE_ARRAY": ("binary", 0),
            "INT96": ("timestamp", 0),
        }
        logical, width = plain.get(physical, ("other", 0))
        return PhysicalType(physical, logical, width)
    if kind == "Int":
        logical = "int" if annotation["isSigned"] else "uint"
        return PhysicalType(physical, logical, annotation["bitWidth"])
    if kind == "Decimal":
        width = column.length if physical == "FIXED_LEN_BYTE_ARRAY" else 0
        return PhysicalType(
            physical, "decimal", width, annotation["precision"], annotation["scale"]
        )
    if kind == "Timestamp":
        unit = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}.get(
            annotation["timeUnit"], ""
        )
        if unit and physical == "INT64":
            return PhysicalType(
                physical, "timestamp", 64, unit=unit, utc=annotation["isAdjustedToUTC"]
            )
    simple = {
        "String": "string",
        "Enum": "string",
        "JSON": "string",
        "Date": "date",
        "Null": "null",
    }
    return PhysicalType(physical, simple.get(kind, "other"))
