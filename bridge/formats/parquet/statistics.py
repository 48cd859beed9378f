"""Parquet footers: statistics of a file's leaf columns, as far as they can be trusted.

Not trusted, and therefore unknown (numbers of the correctness rules in brackets): bounds of INT96
(9); bounds of bytes without a column order that declares unsigned comparison (12); bounds with an
unknown column order (1); bounds missing in a row group that is not all NULL (4); counts below lists
and maps (5); NaN counts (1); dates and timestamps before 1900 by writers that may use the hybrid
calendar (9); and contradictions, such as a minimum above the maximum or more NULLs than values (13,
27). What of the rest is believed of which writer: `bridge.formats.parquet.writers`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.formats.parquet.footer import PHYSICAL, Chunk, End, Leaf, Schema, Speller, Spelling
from bridge.formats.parquet.stored_file import (
    StoredFile,
    StoredSchema,
    hybrid_calendar,
    old_times,
    stored_schema,
    stored_type,
)
from bridge.formats.parquet.tail import open_footer, read_tail
from bridge.formats.parquet.writers import doubts_about, writer_of
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.formats.statistics import RESTS, FileStatistics, LeafStatistics
from bridge.kernel.errors import FileCorrupt
from bridge.storage.port import Storage
from bridge.storage.reading.source import is_passing

CUT_FROM = 32 * 1024 * 1024
"""Files larger than this are split at row groups, so their offsets are recorded. Bytes."""
_DAYS_1900 = -25_567
_MICROS_1900 = _DAYS_1900 * 86_400 * 1_000_000
_PER_MICRO = {"ms": 1000, "us": 1}
_OLD_WRITER = re.compile(rb"parquet-mr version 1\.[0-9]\.|parquet-cpp version 1\.[0-2]\.")
"""Writers with wrong bounds of bytes, whatever order they declare (PARQUET-251, -686)."""


@dataclass(slots=True)
class Footer(FileStatistics):
    """The statistics of a Parquet footer.

    Attributes:
        legacy: dates before 1900 may be in the hybrid calendar.
        groups: the row groups that have rows: the number of rows, and the chunk of every leaf.
        tail: the bytes from which the footer was read.
    """

    legacy: bool
    groups: list[tuple[int, list[Chunk]]]
    tail: bytes
    uri: str

    @property
    def metadata(self) -> pq.FileMetaData:
        """Metadata for pyarrow's readers. Do not read its statistics: see
        `bridge.formats.parquet.footer`. Errors: FileCorrupt."""
        return open_footer(self.tail, self.uri)


@dataclass(frozen=True, slots=True)
class _Leaf:
    column: PhysicalColumn
    key: str
    ordered: bool  # a signed number, whose order is the same under every column order
    bounded: bool
    dated: bool  # a date or timestamp: the calendar matters
    exact: bool  # bounds are values of the file; writers may truncate long strings
    nans: int | None
    unpack: Callable[[bytes], Any]  # decodes a bound of the physical type
    order: Callable[[Any], Any] | None  # sort key of bounds, if not themselves
    twice: bool  # deprecated bounds, if present, must be equal
    uncounted: bool  # NULL counts do not count rows
    nothing: bool  # a type without values


class FooterReader:
    """Reads footers. Caches schemas, because the files of a table share a few."""

    def __init__(self) -> None:
        self._speller = Speller()
        self._known: list[_Described] = []

    def read_file(self, storage: Storage, uri: str, size: int) -> Footer:
        """Statistics of one file of ``size`` bytes.

        Errors:
            FileCorrupt, FileUnreadable, StorageFailure.
        """
        return self.read(read_tail(storage, uri, size), size, uri)

    def read(self, tail: bytes, size: int, uri: str) -> Footer:
        """Statistics from the end of a file.

        Args:
            tail: at least the footer.
            size: the file's size in bytes.

        Errors:
            FileCorrupt.
        """
        length = int.from_bytes(tail[-8:-4], "little")
        found = self._speller.read(tail[len(tail) - 8 - length : len(tail) - 8], uri)
        groups = found.groups
        described = self._describe(found.schema, tail, uri)
        leaves = described.leaves
        calendar = hybrid_calendar(found.end)
        orders = _orders(found.end, leaves)
        writer = writer_of(found.end.created_by, found.end.keys)
        if _overlap(
            groups, size - 8 - length, uri
        ):  # statistics and data of such a file do not belong together
            orders = (_NO_ORDER,) * len(leaves)
            for _, chunks in groups:
                for chunk in chunks:
                    chunk.nulls = None
        if len(groups) == 1:
            statistics = []
            for leaf, chunk, order in zip(leaves, groups[0][1], orders, strict=True):
                lower, upper = _bounds(leaf, chunk, order)
                nulls = _nulls(leaf, chunk)
                held = lower, upper, nulls, chunk.exact, 0
                statistics.append(_leaf(leaf, *held, chunk.size, calendar))
        else:
            statistics = []
            for i, leaf in enumerate(leaves):
                chunks = [held[i] for _, held in groups]
                size_of_all = sum(chunk.size for chunk in chunks)
                merged = _merged(leaf, chunks, orders[i])
                statistics.append(_leaf(leaf, *merged, size_of_all, calendar))
        _forget(writer, leaves, groups)
        starts = None
        if size > CUT_FROM:
            starts = [chunks[0].start for _, chunks in groups] if leaves else None
        kept = calendar, groups, tail, uri
        largest = max((rows for rows, _ in groups), default=0)
        stored = None if described.stored is None else described.spell(found, calendar)
        return Footer(
            *(found.rows, starts, statistics, *kept),
            writer=writer,
            group_rows=largest,
            stored=stored,
        )

    def _describe(self, schema: Schema, tail: bytes, uri: str) -> _Described:
        for known in self._known:
            if known.schema is schema:
                return known
        leaves = _described(schema, open_footer(tail, uri), uri)
        try:
            stored = stored_schema(schema.spelled, tail, uri)
        except FileCorrupt:  # readers by name say so themselves
            stored = None
        found = _Described(schema, leaves, stored)
        self._known.insert(0, found)
        del self._known[32:]
        return found


@dataclass(slots=True)
class _Described:
    """A schema as statistics need it, and as readers by name do; None: they cannot read it."""

    schema: Schema
    leaves: list[_Leaf]
    stored: StoredSchema | None
    _spelled: dict[tuple[str, ...], str] = field(default_factory=dict)

    def spell(self, found: Spelling, calendar: bool) -> str:
        """What `bridge.formats.parquet.stored_file.parse_stored` reads."""
        assert self.stored is not None
        old = old_times(self.stored, found) if calendar else ()
        if old not in self._spelled:
            self._spelled[old] = StoredFile(self.stored, -1, old).spell()
        return self._spelled[old]


def _described(schema: Schema, metadata: pq.FileMetaData, uri: str) -> list[_Leaf]:
    """The leaves with logical types, from old and new annotations as pyarrow reads them."""
    try:
        columns = [metadata.schema.column(i) for i in range(len(metadata.schema))]
        types = [_stored_type(column) for column in columns]
        same = [column.physical_type for column in columns] == [
            PHYSICAL[leaf.physical] for leaf in schema.leaves
        ]
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
        if is_passing(error):
            raise
        raise FileCorrupt(f"{uri}: the schema is damaged: {error}", "rewrite it") from error
    if not same:
        raise FileCorrupt(f"{uri}: the schema is damaged: its tree is invalid", "rewrite it")
    return [_describe(leaf, stored) for leaf, stored in zip(schema.leaves, types, strict=True)]


def _overlap(groups: list[tuple[int, list[Chunk]]], end: int, uri: str) -> bool:
    """Whether two chunks overlap, which no writer produces.

    Errors:
        FileCorrupt: data is not between the first four bytes of the file and its footer.
    """
    last, rising = 4, True
    for _, chunks in groups:
        for chunk in chunks:
            start = chunk.start
            after = start + chunk.size
            if start < 4 or after > end:
                raise FileCorrupt(
                    f"{uri}: the footer says that a column lies at {start} to {after}, data ends "
                    f"at {end}",
                    "rewrite the file",
                )
            if start < last:
                rising = False
            last = after
    if rising:
        return False
    places = sorted((c.start, c.start + c.size) for _, chunks in groups for c in chunks)
    return any(places[i][1] > places[i + 1][0] for i in range(len(places) - 1))


_NO_ORDER, _TYPE_ORDER, _SIGNED_ORDER = 0, 1, 2


def _orders(end: End, leaves: list[_Leaf]) -> Sequence[int]:
    """The column order of each leaf's bounds; 0 if unknown."""
    if end.orders is not None and not _OLD_WRITER.match(end.created_by):
        if end.orders == (_TYPE_ORDER,) * len(leaves):
            return end.orders
        return [order if order == _TYPE_ORDER else _NO_ORDER for order in end.orders]
    declared = _TYPE_ORDER if end.orders is not None else _SIGNED_ORDER
    return [declared if leaf.ordered else _NO_ORDER for leaf in leaves]


def _forget(writer: str, leaves: list[_Leaf], groups: list[tuple[int, list[Chunk]]]) -> None:
    """Forgets NULL counts of row groups that are not believed: indexes are built on the others."""
    doubts = doubts_about(writer)
    for i, leaf in enumerate(leaves):
        stored, top = leaf.column.type, leaf.column.path[0] if leaf.column.path else ""
        if not (doubts.some or doubts.doubts_counts(stored, top)):
            continue
        for _, chunks in groups:
            if chunks[i].nulls or not doubts.some:
                chunks[i].nulls = None


_Merged = tuple[Any, Any, int | None, bool, int]


def _leaf(
    leaf: _Leaf,
    lower: Any,
    upper: Any,
    nulls: int | None,
    exact: bool,
    basis: int,
    size: int,
    calendar: bool,
) -> LeafStatistics:
    if calendar and leaf.dated and lower is not None:
        stored = leaf.column.type
        floor = _DAYS_1900 if stored.logical == "date" else _floor_1900(stored.unit)
        lower = None if lower < floor else lower
        upper = None if upper < floor else upper
    return LeafStatistics(
        leaf.key, leaf.column, lower, upper, leaf.exact and exact, nulls, leaf.nans, size, basis
    )


def _bounds(leaf: _Leaf, chunk: Chunk, order: int) -> tuple[Any, Any]:
    """Both bounds, or none if they contradict each other."""
    if order == _TYPE_ORDER:
        lower, upper = chunk.lower, chunk.upper
    elif order == _SIGNED_ORDER:
        lower, upper = chunk.old_lower, chunk.old_upper
    else:
        return None, None
    if lower is None or upper is None or not leaf.bounded:
        return None, None
    try:
        lower, upper = leaf.unpack(lower), leaf.unpack(upper)
    except struct.error:  # wrong width
        return None, None
    if lower is None or upper is None:
        return None, None
    if leaf.twice and _disagree(chunk):
        return None, None
    if leaf.order is None:
        return (None, None) if lower > upper else (lower, upper)
    return (None, None) if leaf.order(lower) > leaf.order(upper) else (lower, upper)


def _disagree(chunk: Chunk) -> bool:
    """Whether the deprecated bounds differ from the new ones, so that one pair is damaged."""
    return (
        chunk.old_lower is not None and chunk.old_lower != chunk.lower and chunk.lower is not None
    ) or (
        chunk.old_upper is not None and chunk.old_upper != chunk.upper and chunk.upper is not None
    )


def _nulls(leaf: _Leaf, chunk: Chunk) -> int | None:
    """The NULL count; None if unknown, or if values and bounds contradict it."""
    nulls = chunk.nulls
    if nulls is None or leaf.uncounted or not 0 <= nulls <= chunk.values:
        return None
    if nulls == chunk.values and nulls and (chunk.lower is not None or chunk.upper is not None):
        return None  # bounds of nothing
    return None if leaf.nothing and nulls != chunk.values else nulls


def _merged(leaf: _Leaf, chunks: list[Chunk], order: int) -> _Merged:
    """Bounds and NULL count of all row groups. Missing in one means missing (rule 4)."""
    nulls: int | None = 0
    exact = True
    lows: list[Any] = []
    highs: list[Any] = []
    missing = rests = False
    for chunk in chunks:
        count = _nulls(leaf, chunk)
        nulls = None if nulls is None or count is None else nulls + count
        lower, upper = _bounds(leaf, chunk, order)
        exact &= chunk.exact
        if lower is not None:
            lows.append(lower)
            highs.append(upper)
        elif count is None or count != chunk.values:
            missing = True
        else:
            rests = True
    if missing or not lows or any(value != value for value in lows + highs):  # NaN
        return None, None, nulls, exact, 0
    found = min(lows, key=leaf.order), max(highs, key=leaf.order)
    return *found, nulls, exact, RESTS if rests else 0


def _floor_1900(unit: str) -> int:
    return _MICROS_1900 * 1000 if unit == "ns" else _MICROS_1900 // _PER_MICRO[unit]


def _order(stored: PhysicalType) -> Any:
    if stored.logical == "decimal" and stored.physical.endswith("BYTE_ARRAY"):
        return lambda raw: int.from_bytes(raw, "big", signed=True)
    if stored.logical == "uint":
        mask = 2**64 - 1 if stored.physical == "INT64" else 2**32 - 1
        return lambda raw: raw & mask
    return None


def _describe(leaf: Leaf, stored: PhysicalType) -> _Leaf:
    if leaf.repeated or not leaf.alone:
        stored = PhysicalType(stored.physical, "repeated")
    column = PhysicalColumn(leaf.path, stored)
    return _Leaf(
        column,
        column.key(),
        ordered=stored.logical in ("bool", "int", "date", "timestamp")
        or (stored.logical == "decimal" and stored.physical in ("INT32", "INT64")),
        bounded=stored.holds != "none",
        dated=stored.logical in ("date", "timestamp"),
        exact=stored.holds != "bytes",
        nans=None if stored.is_floating or stored.logical == "repeated" else 0,
        unpack=_unpacker(leaf),
        order=_order(stored),
        twice=stored.physical in _NUMBERS and stored.logical != "uint",
        uncounted=stored.logical == "repeated",
        nothing=stored.logical == "null",
    )


_NUMBERS = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}


def _unpacker(leaf: Leaf) -> Callable[[bytes], Any]:
    physical = PHYSICAL[leaf.physical]
    if physical in _NUMBERS:
        unpack = struct.Struct(_NUMBERS[physical]).unpack
        return lambda raw: unpack(raw)[0]
    if physical == "BOOLEAN":
        return {b"\0": False, b"\1": True}.get
    if physical == "FIXED_LEN_BYTE_ARRAY":
        return lambda raw: raw if len(raw) == leaf.width else None
    return lambda raw: raw


def _stored_type(column: Any) -> PhysicalType:
    if column.max_repetition_level > 0:
        return PhysicalType(column.physical_type, "repeated")
    return stored_type(column)
