"""ORC: bounds and counts of top-level columns, computed from the data one stripe at a time.

Unknown (numbers of the correctness rules in brackets): nested columns and unions, two columns with
the same name (14), dates and timestamps before 1900 (9), timestamps with time zone (Hive 4.0 cannot
read back those it wrote), timestamps that do not fit nanoseconds, and decimals with more digits
than their type (10). Arrow returns CHAR as text padded with spaces. Bounds of text hold with and
without the padding (11).

ORC stores timestamps in the writer's zone, and readers convert them differently. Bounds are
therefore widened by two days on each side, so that they hold under any zone. A query for one day of
a year still skips most files.

Old Hive versions name columns ``_col0``, ``_col1`` and so on. Readers find them only by position.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc as po

from bridge.formats.column_chunks import ValueSink
from bridge.formats.leaf_scan import LeafScan, unscaled_digits
from bridge.formats.orc.rows import batches
from bridge.formats.physical_column import NAMELESS, PhysicalColumn, PhysicalType
from bridge.formats.rows import expect_rows
from bridge.formats.statistics import FileStatistics, LeafStatistics
from bridge.kernel.errors import FileCorrupt
from bridge.storage.child import ChildReader
from bridge.storage.port import Storage
from bridge.storage.reading.source import is_gap, is_passing, open_source

_NAMELESS = re.compile(r"_col\d+")
_OTHER = PhysicalType("BYTE_ARRAY", "other")
_DAYS_1900 = -25_567
_MICROS_PER_DAY = 86_400 * 1_000_000
_ASTRAY = 2 * _MICROS_PER_DAY
# Older versions return wrong timestamps where nanoseconds overflow.
_TIMES_CHECKED = int(pa.__version__.split(".")[0]) >= 26
_SIMPLE = {
    pa.bool_(): PhysicalType("BOOLEAN", "bool", 1),
    pa.int8(): PhysicalType("INT32", "int", 8),
    pa.int16(): PhysicalType("INT32", "int", 16),
    pa.int32(): PhysicalType("INT32", "int", 32),
    pa.int64(): PhysicalType("INT64", "int", 64),
    pa.float32(): PhysicalType("FLOAT", "float"),
    pa.float64(): PhysicalType("DOUBLE", "double"),
    pa.date32(): PhysicalType("INT32", "date"),
    pa.string(): PhysicalType("BYTE_ARRAY", "string"),
    pa.binary(): PhysicalType("BYTE_ARRAY", "binary"),
}


def read(storage: Storage, uri: str, size: int, sink: ValueSink | None = None) -> FileStatistics:
    """Statistics of one file of ``size`` bytes.

    Args:
        sink: takes values of columns in the same pass; not of timestamps, text that may be padded,
            and decimals with too many digits.

    Errors:
        FileCorrupt: not ORC, or its data cannot be decoded.
        FileUnreadable, StorageFailure.
    """
    try:
        source = open_source(storage, uri, size)
        file = po.ORCFile(source)
        columns = stored_columns(file.schema)
        found = [_Column(i, column) for i, column in enumerate(columns)]
        names = file.schema.names
        plain = [c for c in found if c.known and not c.is_time]
        times = [c for c in found if c.known and c.is_time]
        if sink is not None:
            sink.begin(tuple(columns), {c.number for c in plain})
        if plain:
            _read(source, file, plain, names, sink)
        for column in times:
            try:
                _read(source, file, [column], names)
            except pa.ArrowInvalid:
                column.known = False
        for column in found:
            if column.known:
                expect_rows(column.rows, file.nrows, uri)
        leaves = [column.finish() for column in found]
        if sink is not None:
            for column in plain:
                if not column.same_for_all:
                    sink.drop(column.number)
        return FileStatistics(file.nrows, None, leaves)
    except (pa.ArrowException, OSError, ValueError) as error:
        if is_passing(error) or is_gap(error):
            raise
        first = str(error).partition("\n")[0]
        raise FileCorrupt(f"{uri}: cannot be read as ORC: {first}", "rewrite the file") from error


def stored_columns(schema: pa.Schema) -> list[PhysicalColumn]:
    """The top-level columns for the index, in file order."""
    names = schema.names
    nameless = all(_NAMELESS.fullmatch(name) for name in names)
    columns = []
    for i, field in enumerate(schema):
        # The reader finds columns by name, and treats a name with a dot as a path.
        sure = names.count(field.name) == 1 and "." not in field.name
        stored = _stored(field.type) if sure else _OTHER
        columns.append(PhysicalColumn(NAMELESS if nameless else (field.name,), stored, i))
    return columns


def _stored(arrow: pa.DataType) -> PhysicalType:
    if pa.types.is_timestamp(arrow) and arrow.tz is None and _TIMES_CHECKED:
        return PhysicalType("INT64", "timestamp", 64, unit="us")
    if pa.types.is_decimal128(arrow) and (arrow.precision, arrow.scale) != (38, 6):
        # Hive 0.11 declared no precision; Arrow reads that as (38, 6).
        return PhysicalType("FIXED_LEN_BYTE_ARRAY", "decimal", 16, arrow.precision, arrow.scale)
    return _SIMPLE.get(arrow, _OTHER)


def _read(
    source: Any,
    file: Any,
    columns: list[_Column],
    names: list[str],
    sink: ValueSink | None = None,
) -> None:
    wanted = [names[column.number] for column in columns]
    for batch in batches(source, file, wanted):
        if batch.schema.names != wanted:
            raise FileCorrupt(f"asked for the columns {wanted}, it has {batch.schema.names}", "")
        for column, values in zip(columns, batch.columns, strict=True):
            column.update(values)
        if sink is not None and batch.num_rows:
            read = zip(columns, batch.columns, strict=True)
            sink.add({column.number: pa.chunked_array([values]) for column, values in read})


class _Column:
    """Gathers one column over the stripes."""

    def __init__(self, number: int, column: PhysicalColumn) -> None:
        self.number = number
        self.known = column.type.holds != "none"
        self._type = column.type
        self._leaf = LeafStatistics(column.key(), column, None, None, True, None, None, 0)
        self._scan = LeafScan(number, self._leaf)
        self._trimmed: bytes | None = None
        self.rows = 0

    @property
    def is_time(self) -> bool:
        return self._type.logical == "timestamp"

    @property
    def same_for_all(self) -> bool:
        """Whether every engine reads the values as Arrow does, after `finish`."""
        return self._trimmed is None and self._leaf.nulls is not None

    def update(self, values: pa.Array) -> None:
        self.rows += len(values)
        if self.is_time:
            values = values.cast(pa.int64())
        elif self._type.logical == "string":
            self._trim(values)
        self._scan.update({self.number: pa.chunked_array([values])})

    def _trim(self, values: pa.Array) -> None:
        """Finds the least text without trailing spaces, which sorts before the padded text."""
        if pc.any(pc.ends_with(values, " ")).as_py():
            trimmed = pc.ascii_rtrim(values, " ").cast(pa.large_binary())
            least = pc.min(trimmed).as_py()
            self._trimmed = least if self._trimmed is None else min(self._trimmed, least)

    def finish(self) -> LeafStatistics:
        leaf = self._leaf
        if not self.known:
            return leaf
        self._scan.finish()
        if self._trimmed is not None:
            leaf.lower, leaf.exact = min(leaf.lower, self._trimmed), False
        if leaf.nans is None and not self._type.is_floating:
            leaf.nans = 0
        if leaf.lower is not None:
            _settle(leaf)
        return leaf


def _settle(leaf: LeafStatistics) -> None:
    """Converts bounds for the index. Drops those that engines may read differently."""
    stored = leaf.column.type
    floor = _DAYS_1900
    if stored.logical == "decimal":
        lower, upper = (
            unscaled_digits(leaf.lower, stored.scale),
            unscaled_digits(leaf.upper, stored.scale),
        )
        if max(abs(lower), abs(upper)) >= 10**stored.precision:
            leaf.lower = leaf.upper = leaf.nulls = None  # Hive may read NULL
            return
        leaf.lower = lower.to_bytes(16, "big", signed=True)
        leaf.upper = upper.to_bytes(16, "big", signed=True)
    elif stored.logical == "timestamp":
        leaf.lower = leaf.lower // 1000 - _ASTRAY
        leaf.upper = -(-leaf.upper // 1000) + _ASTRAY
        leaf.exact = False
        floor *= _MICROS_PER_DAY
    if stored.logical in ("date", "timestamp"):
        leaf.lower = None if leaf.lower < floor else leaf.lower
        leaf.upper = None if leaf.upper < floor else leaf.upper


READER = ChildReader(read)
"""Reads in a child process, because some damaged files crash Arrow's reader."""
