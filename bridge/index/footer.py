"""Parquet footers: what they say about a file's leaf columns, and which of it may be trusted.

Not trusted, and therefore unknown (numbers of the correctness rules in brackets): bounds of INT96
(9), of bytes without a column order that says they compare unsigned (12), of a column order that
is not known (1), missing in one of several row groups unless all of that group is NULL (4),
counts below lists and maps (5), NaN counts (1), and dates and times before 1900 of writers
that may have used the hybrid calendar (9). Booleans with min > max fall out when decoded (13).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.index.stored import StoredColumn, StoredType
from bridge.storage.parquet_tail import open_footer

CUT_FROM = 32 * 1024 * 1024
"""Files larger than this are cut into splits at row groups, whose offsets are kept."""
_DAYS_1900 = -25_567
_MICROS_1900 = _DAYS_1900 * 86_400 * 1_000_000
_PER_MICRO = {"ms": 1000, "us": 1}


@dataclass(slots=True)
class LeafStatistics:
    """One leaf column of one file; None is unknown. Bounds are of the physical type."""

    key: str
    column: StoredColumn
    lower: Any
    upper: Any
    exact: bool
    nulls: int | None
    nans: int | None
    size: int


@dataclass(slots=True)
class FileStatistics:
    """What is known of a file: rows, offsets of the row groups of a large one, and its leaves."""

    rows: int
    row_groups: list[int] | None
    leaves: list[LeafStatistics]


@dataclass(slots=True)
class Footer(FileStatistics):
    """What a Parquet footer says.

    Attributes:
        metadata: all of it.
        legacy: dates before 1900 may have been written in the hybrid calendar.
    """

    metadata: pq.FileMetaData
    legacy: bool


@dataclass(frozen=True, slots=True)
class _Leaf:
    column: StoredColumn
    key: str
    dotted: str  # the path as Parquet spells it
    ordered: bool  # a signed number: its order is the same under every rule ever written
    bounded: bool
    dated: bool  # a date or time: the calendar matters
    exact: bool  # bounds are values: writers cut long strings, and few footers say whether
    nans: int | None


class FooterReader:
    """Reads footers; remembers the schemas it has met, since files of a table share a few."""

    def __init__(self) -> None:
        self._known: list[tuple[Any, list[_Leaf]]] = []

    def read(self, tail: bytes, size: int, uri: str) -> Footer:
        """Statistics from the end of a file.

        Args:
            tail: at least the footer.
            size: of the file.

        Errors:
            FileCorrupt.
        """
        metadata = open_footer(tail, uri)
        leaves = self._leaves(metadata.schema)
        # TypeDefinedOrder for every leaf, at the end of the footer: Thrift's compact bytes. Neither
        # pyarrow nor its C++ tells what order a footer declares, and C++ takes the deprecated
        # signed bounds where it declares none.
        ordered = tail.endswith(b"\x1c\x00\x00" * len(leaves) + b"\x00", 0, len(tail) - 8)
        calendar = _hybrid_calendar(metadata)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        groups = [group for group in groups if group.num_rows]
        found = [
            _leaf(leaf, [group.column(i) for group in groups], ordered, calendar)
            for i, leaf in enumerate(leaves)
        ]
        starts = None
        if size > CUT_FROM:
            starts = [_start(group.column(0)) for group in groups] if leaves else None
        return Footer(metadata.num_rows, starts, found, metadata, calendar)

    def _leaves(self, schema: Any) -> list[_Leaf]:
        for known, leaves in self._known:
            if known.equals(schema):
                return leaves
        leaves = [_describe(schema.column(i)) for i in range(len(schema))]
        _full_paths(schema, leaves)
        self._known.insert(0, (schema, leaves))
        del self._known[32:]
        return leaves


def stored_columns(metadata: pq.FileMetaData) -> list[StoredColumn]:
    """The leaf columns of a file, in order."""
    return [leaf.column for leaf in FooterReader()._leaves(metadata.schema)]


def _start(column: Any) -> int:
    dictionary = column.dictionary_page_offset
    first = column.data_page_offset
    return int(min(dictionary, first) if dictionary else first)


def _leaf(leaf: _Leaf, chunks: list[Any], ordered: bool, calendar: bool) -> LeafStatistics:
    if len(chunks) == 1:
        size = chunks[0].total_compressed_size
        lower, upper, nulls = _single(chunks[0])
    else:
        size = sum(chunk.total_compressed_size for chunk in chunks)
        lower, upper, nulls = _merged(leaf.column.type, chunks)
    if not (leaf.bounded and (ordered or leaf.ordered)):
        lower = upper = None
        if leaf.column.type.logical == "repeated":
            nulls = None
    elif calendar and leaf.dated and lower is not None:
        stored = leaf.column.type
        floor = _DAYS_1900 if stored.logical == "date" else _floor_1900(stored.unit)
        lower = None if lower < floor else lower
        upper = None if upper < floor else upper
    return LeafStatistics(leaf.key, leaf.column, lower, upper, leaf.exact, nulls, leaf.nans, size)


def _floor_1900(unit: str) -> int:
    return _MICROS_1900 * 1000 if unit == "ns" else _MICROS_1900 // _PER_MICRO[unit]


def _single(chunk: Any) -> tuple[Any, Any, int | None]:
    statistics = chunk.statistics
    if statistics is None:
        return None, None, None
    nulls = statistics.null_count if statistics.has_null_count else None
    if statistics.has_min_max:
        return statistics.min_raw, statistics.max_raw, nulls
    return None, None, nulls


def _merged(stored: StoredType, chunks: list[Any]) -> tuple[Any, Any, int | None]:
    """Lower, upper and null count over row groups; missing in one is missing in all (rule 4)."""
    nulls: int | None = 0
    lows: list[Any] = []
    highs: list[Any] = []
    missing = False
    for chunk in chunks:
        statistics = chunk.statistics
        if statistics is None:
            return None, None, None
        count = statistics.null_count if statistics.has_null_count else None
        nulls = None if nulls is None or count is None else nulls + count
        if statistics.has_min_max:
            lows.append(statistics.min_raw)
            highs.append(statistics.max_raw)
        elif count is None or count != chunk.num_values:
            missing = True
    if missing or not lows:
        return None, None, nulls
    order = _order(stored)
    if order is not None:
        return min(lows, key=order), max(highs, key=order), nulls
    if any(value != value for value in lows + highs):  # NaN
        return None, None, nulls
    return min(lows), max(highs), nulls


def _order(stored: StoredType) -> Any:
    if stored.logical == "decimal" and stored.physical.endswith("BYTE_ARRAY"):
        return lambda raw: int.from_bytes(raw, "big", signed=True)
    if stored.logical == "uint":
        mask = 2**64 - 1 if stored.physical == "INT64" else 2**32 - 1
        return lambda raw: raw & mask
    return None


def _hybrid_calendar(metadata: pq.FileMetaData) -> bool:
    """Whether dates before 1900 may have been written in the hybrid Julian calendar."""
    if not (metadata.created_by or "").startswith("parquet-mr"):
        return False
    keys = metadata.metadata or {}
    if b"org.apache.spark.legacyDateTime" in keys:
        return True
    if keys.get(b"writer.date.proleptic") == b"true":
        return False
    spark = keys.get(b"org.apache.spark.version", b"0").split(b".")[0]
    return not (spark.isdigit() and int(spark) >= 3)


def _describe(column: Any) -> _Leaf:
    stored = _stored_type(column)
    described = StoredColumn((column.path,), stored)
    signed = stored.logical in ("bool", "int", "date", "timestamp") or (
        stored.logical == "decimal" and stored.physical in ("INT32", "INT64")
    )
    return _leaf_of(described, column.path, signed)


def _leaf_of(column: StoredColumn, dotted: str, ordered: bool) -> _Leaf:
    stored = column.type
    return _Leaf(
        column,
        column.key(),
        dotted,
        ordered,
        bounded=stored.holds != "none",
        dated=stored.logical in ("date", "timestamp"),
        exact=stored.holds != "bytes",
        nans=None if stored.is_floating or stored.logical == "repeated" else 0,
    )


def _full_paths(schema: Any, leaves: list[_Leaf]) -> None:
    """Takes paths from the schema's tree: Parquet joins names by dots; names hold dots.

    ``a.b`` is a column or a field of ``a`` (correctness 14). Where the tree cannot be told, the
    leaf is kept as present and nothing is said of it.
    """
    if all("." not in leaf.dotted for leaf in leaves):
        return
    paths: list[tuple[str, ...]] = []
    try:
        for field in schema.to_arrow_schema():
            _walk(field, (), paths)
    except pa.ArrowException:
        paths = []
    if len(paths) != len(leaves):
        paths = [()] * len(leaves)
    for i, (leaf, path) in enumerate(zip(leaves, paths, strict=True)):
        stored = leaf.column.type
        if stored.logical != "repeated" and ".".join(path) != leaf.dotted:
            stored = StoredType(stored.physical, "repeated")
        column = StoredColumn(path or tuple(leaf.dotted.split(".")), stored)
        leaves[i] = _leaf_of(column, leaf.dotted, leaf.ordered)


def _walk(field: pa.Field, prefix: tuple[str, ...], paths: list[tuple[str, ...]]) -> None:
    path = (*prefix, field.name)
    if not pa.types.is_nested(field.type):
        paths.append(path)
    elif pa.types.is_struct(field.type):
        for i in range(field.type.num_fields):
            _walk(field.type.field(i), path, paths)
    else:  # all leaves below a list or map go by its own path: nothing is said of them
        paths += [path] * _count_leaves(field.type)


def _count_leaves(kind: pa.DataType) -> int:
    if pa.types.is_map(kind):
        return _count_leaves(kind.key_type) + _count_leaves(kind.item_type)
    if pa.types.is_nested(kind):
        return sum(_count_leaves(kind.field(i).type) for i in range(kind.num_fields))
    return 1


def _stored_type(column: Any) -> StoredType:
    physical = column.physical_type
    if column.max_repetition_level > 0:
        return StoredType(physical, "repeated")
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
        return StoredType(physical, logical, width)
    if kind == "Int":
        logical = "int" if annotation["isSigned"] else "uint"
        return StoredType(physical, logical, annotation["bitWidth"])
    if kind == "Decimal":
        width = column.length if physical == "FIXED_LEN_BYTE_ARRAY" else 0
        return StoredType(physical, "decimal", width, annotation["precision"], annotation["scale"])
    if kind == "Timestamp":
        unit = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}.get(
            annotation["timeUnit"], ""
        )
        if unit and physical == "INT64":
            return StoredType(
                physical, "timestamp", 64, unit=unit, utc=annotation["isAdjustedToUTC"]
            )
    simple = {"String": "string", "Enum": "string", "JSON": "string", "Date": "date"}
    return StoredType(physical, simple.get(kind, "other"))
