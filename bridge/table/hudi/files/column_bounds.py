"""Bounds of columns that Hudi keeps itself: ``column_stats`` of a table's metadata table.

An entry is what some writer noted of a file. It becomes a bound only if

- its key, its file and its column are those that are asked for: the file's name holds the instant
  that wrote it, and no name is used twice;
- the table's version and the form of its record are those of a release, and the column's type one
  of the types, that `TESTED` names;
- its value has the class of the column's type there, and so converts exactly.

Of numbers and dates both bounds are taken as they are. Of texts, the writer has compared those of a
file's row groups as Java does, and may have decoded bytes that are no text. Engines agree on the
order of text only up to the first character beyond ASCII, so only that prefix is used. A row group
whose bounds Parquet left out, since its texts are long, is counted by the writer as one of NULLs
alone: texts are believed only where no NULL is counted. Counts themselves are not believed, and so
no entry tells that a file holds no NULL, or nothing else. Floats have no bounds: they may leave out
NaN. An entry that is absent, or there twice with different bounds, is unknown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Executor, Future
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa

from bridge.expression.nodes import BoundExpression, BoundReference, reference_text
from bridge.expression.prune import prune
from bridge.expression.residual import references
from bridge.expression.statistics import ColumnStatistics, Mask
from bridge.formats.avro.container import checked_schema
from bridge.formats.avro.skipping import require_few
from bridge.formats.hudi.avro_rows import DAMAGE
from bridge.formats.hudi.hfile import HFile
from bridge.formats.hudi.index_keys import column_statistics_key
from bridge.formats.hudi.log_format import BlockType, Header, blocks_in_merge_order, read_logs
from bridge.formats.hudi.log_records import deletes_of
from bridge.kernel.errors import BridgeError, LimitExceeded
from bridge.kernel.types import DATE, INTEGER_RANGE, Kind, Semantics, Type
from bridge.table.hudi.files.base_files import (
    FIRST_DAY,
    PATIENCE,
    BaseFiles,
    answer_until,
    metadata_damage,
)
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.files.metadata_table import (
    list_partition,
    metadata_slices,
    metadata_timeline,
    validity,
)
from bridge.table.hudi.schema.avro_schema import avro_names

PARTITION = "column_stats"
_FIELDS = frozenset(
    {
        "fileName",
        "columnName",
        "minValue",
        "maxValue",
        "valueCount",
        "nullCount",
        "totalSize",
        "totalUncompressedSize",
        "isDeleted",
    }
)
_KINDS = frozenset({Kind.INTEGER, Kind.BIGINT, Kind.STRING, Kind.DATE})
TESTED: Mapping[tuple[int, frozenset[str]], frozenset[Kind]] = {
    (6, _FIELDS): _KINDS,
    (8, _FIELDS | {"isTightBound"}): _KINDS,
    (9, _FIELDS | {"isTightBound", "valueType"}): _KINDS,
}
"""By table version and the fields of a record, as Hudi 0.15, 1.0 and 1.2 write them: the types of
columns of which the tables in ``tests/fixtures/hudi`` have bounds by such a release."""
_CLASSES: Mapping[Kind, frozenset[str]] = {
    Kind.INTEGER: frozenset({"IntWrapper"}),
    Kind.BIGINT: frozenset({"IntWrapper", "LongWrapper"}),
    Kind.DATE: frozenset({"DateWrapper"}),
    Kind.STRING: frozenset({"StringWrapper"}),
}
"""The class of a bound that converts exactly to a type."""
_VALUE_TYPES: Mapping[int, str] = {
    3: "IntWrapper",
    4: "LongWrapper",
    7: "StringWrapper",
    12: "DateWrapper",
}
"""From 1.1 on a record says what its bounds are, and a date has the class of a number."""
_LAST_DAY = 2932896
"""9999-12-31."""
_TYPE = 3
_AT_ONCE = 20_000
"""Files whose entries a query waits for, some 20 µs each. Of more, later queries have them."""
_MOST_BYTES = 128 << 20
"""Of the logs of ``column_stats``, which are read as a whole."""
_HELD_BYTES = 4 << 20
"""Of files that are held for further columns while the table has the same instants."""
NOT_PARTITIONED = "."
_LOW, _HIGH = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_Source = tuple[HFile | frozenset[bytes], str]
"""Records and their schema, or keys that were deleted."""
_Pair = tuple[Any, Any]


class HudiBounds(BaseFiles):
    """Bounds of the base files of some slices; safe for threads.

    Nothing is read before `column` is called. Each column is decoded once, in another thread.

    Attributes:
        source: for reports.
    """

    source = PARTITION

    def __init__(
        self, view: FileSystemView, schema: str, slices: FileSlices, pool: Executor
    ) -> None:
        super().__init__(view, slices, pool)
        self._reading = threading.Lock()
        self._held: list[_Source] | None = None
        self._columns: dict[tuple[str, Type], tuple[Future[ColumnStatistics | None], float]] = {}
        self._names = avro_names(schema)

    def ask(self, expression: BoundExpression) -> None:
        for reference in references(expression):
            self._ask(reference)

    def columns(self, expression: BoundExpression) -> tuple[str, ...]:
        self.ask(expression)
        known = (r for r in references(expression) if self.column(r) is not None)
        return tuple(sorted(reference_text(r) for r in known))

    def never(self, expression: BoundExpression, semantics: Semantics) -> Mask | None:
        return prune(expression, self, semantics).never

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        """The bounds of a column; None: nothing is known, or not yet."""
        asked = self._ask(reference)
        if asked is None:
            return None
        read, deadline = asked
        few = len(self._slices) <= _AT_ONCE
        return answer_until(read, deadline if few else 0.0)

    def _ask(
        self, reference: BoundReference
    ) -> tuple[Future[ColumnStatistics | None], float] | None:
        """What another thread reads, and until when queries wait for it."""
        kind = reference.type
        name = None if len(reference.path) != 1 else self._names.get(reference.path[0].lower())
        if name is None or kind.kind not in _CLASSES or reference.partition:
            return None
        key = (name, kind)
        with self._lock:
            asked = self._columns.get(key)
            if asked is None:
                read = self._pool.submit(self._column, name, kind)
                asked = self._columns[key] = read, time.monotonic() + PATIENCE
        return asked

    def _column(self, name: str, type: Type) -> ColumnStatistics | None:
        try:
            with self._reading:
                sources = self._held or self._read()
            found = self._statistics(name, type, sources)
        except (BridgeError, *DAMAGE) as error:
            if self._fail(error):
                with self._lock:
                    self._columns.pop((name, type), None)
            return None
        self.problem = None
        return found

    def _read(self) -> list[_Source]:
        """All that the metadata table has, the oldest first; held if it is little."""
        view, storage = self._view, self._view.storage
        config = view.config
        own = metadata_timeline(storage, config)
        listing = list_partition(storage, config, PARTITION)
        valid = validity(own, view.timeline)
        found = metadata_slices(listing, own, config.completes)
        size = sum(size for each in found for _, size in each.logs)
        if size > _MOST_BYTES:
            raise LimitExceeded(
                f"the logs of {PARTITION} of {config.base} have {size:,} bytes, and at most "
                f"{_MOST_BYTES:,} are read",
                "compact the metadata table: hoodie.metadata.compact.max.delta.commits",
            )
        sources: list[_Source] = []
        for each in found:
            if each.base is not None:
                hfile = HFile.open(storage, *each.base)
                schema = hfile.info.get(b"schema", b"").decode(errors="replace")
                sources.append((hfile, schema))
                size += each.base[1]
            blocks = read_logs(storage, each.logs)
            for block in blocks_in_merge_order(blocks, valid):
                if block.type is BlockType.DELETE:
                    sources.append((frozenset(r.key.encode() for r in deletes_of(block)), ""))
                elif block.type is BlockType.HFILE_DATA:
                    hfile = HFile.parse(block.content, block.uri)
                    sources.append((hfile, block.text(Header.SCHEMA)))
        if size <= _HELD_BYTES:
            self._held = sources
        return sources

    def _statistics(self, name: str, type: Type, sources: list[_Source]) -> ColumnStatistics | None:
        slices = self._slices
        places = np.flatnonzero(slices.has_base & (slices.log_counts == 0))
        partitions = [p or NOT_PARTITIONED for p in slices.partitions]
        files = slices.base_paths.take(pa.array(places)).to_pylist()
        keys: dict[bytes, tuple[int, str]] = {}
        for place, path in zip(places.tolist(), files, strict=True):
            file = path.rpartition("/")[2]
            partition = partitions[slices.partition[place]]
            keys[column_statistics_key(name, partition, file)] = (place, file)
        entries: dict[bytes, list[tuple[HFile, str, bytes]]] = {}
        for source, schema in sources:
            if isinstance(source, HFile):
                for key, value in source.get(keys).items():
                    entries.setdefault(key, []).append((source, schema, value))
            else:
                for key in source & keys.keys():
                    entries.pop(key, None)
        rows = {
            keys[key][0]: bounds
            for key, found in entries.items()
            if (bounds := self._bounds(found, name, keys[key][1], type)) is not None
        }
        return _as_statistics(rows, len(slices), type)

    def _bounds(
        self, entries: list[tuple[HFile, str, bytes]], column: str, file: str, type: Type
    ) -> _Pair | None:
        """The bounds that all entries of one key agree about."""
        found: list[_Pair | None] = []
        for hfile, schema, value in entries:
            record = _record(schema, value, hfile.uri)
            if record["isDeleted"]:
                found = []
                continue
            right = record["fileName"] == file and record["columnName"] == column
            written = (self._view.config.version, frozenset(record))
            known = right and type.kind in TESTED.get(written, ())
            found.append(_converted(record, type) if known else None)
        return found[0] if found and all(each == found[0] for each in found) else None


def _record(schema: str, value: bytes, uri: str) -> dict[str, Any]:
    """The bounds of a record of the metadata table. Errors: FileCorrupt."""
    import fastavro

    try:
        parsed = checked_schema(schema).parsed
        require_few(parsed, value)
        row: Any = fastavro.schemaless_reader(BytesIO(value), parsed, None, return_record_name=True)
        if row["type"] != _TYPE:
            raise ValueError(f"a record has the type {row['type']}")
        _, record = row["ColumnStatsMetadata"]
        found: dict[str, Any] = record
        if not found.keys() >= _FIELDS:
            raise ValueError(f"a record lacks {', '.join(sorted(_FIELDS - found.keys()))}")
        return found
    except DAMAGE as error:
        raise metadata_damage(f"{uri}: {error}") from error


def _converted(record: Mapping[str, Any], type: Type) -> _Pair | None:
    """The bounds as canonical values of the type; None: unknown."""
    lower, upper = record["minValue"], record["maxValue"]
    if lower is None or upper is None:
        return None
    classes = {name.rpartition(".")[2] for name, _ in (lower, upper)}
    said = record.get("valueType")
    if "valueType" in record:
        known = None if said is None else _VALUE_TYPES.get(said[1]["typeOrdinal"])
        stored = "IntWrapper" if known == "DateWrapper" else known
        if known is None or classes != {stored}:
            return None
        classes = {known}
    if not classes <= _CLASSES[type.kind]:
        return None
    least, greatest = lower[1]["value"], upper[1]["value"]
    if type.kind is Kind.STRING:
        return _texts(least, greatest) if record["nullCount"] == 0 else None
    first, last = (FIRST_DAY, _LAST_DAY) if type == DATE else INTEGER_RANGE[type.kind]
    return (least, greatest) if first <= least <= greatest <= last else None


def _texts(least: str, greatest: str) -> _Pair | None:
    """Bounds of texts that are sure; the upper one is None where it is unknown."""
    if not isinstance(least, str) or not isinstance(greatest, str):
        return None
    lower, upper = _ascii(least), _ascii(greatest)
    if upper == greatest:
        return (lower.encode(), upper.encode()) if least <= greatest else None
    if not upper:
        return lower.encode(), None
    return lower.encode(), upper[:-1].encode() + bytes([ord(upper[-1]) + 1])


def _ascii(text: str) -> str:
    """What stands before the first character beyond ASCII."""
    return text if text.isascii() else text[: next(i for i, c in enumerate(text) if c > "\x7f")]


def _as_statistics(rows: Mapping[int, _Pair], count: int, type: Type) -> ColumnStatistics | None:
    """Columns of bounds over all slices; None if nothing is known of any."""
    if not rows:
        return None
    at = np.fromiter(rows, np.int64, len(rows))
    known = np.zeros(count, np.bool_)
    known[at] = True
    unknown = np.full(count, -1, np.int64)
    if type.kind is Kind.STRING:

        def bounds(side: int, edge: int) -> Any:
            held: list[bytes | None] = [None] * count
            for place, pair in rows.items():
                held[place] = pair[side]
            return pa.array(held, pa.large_binary())
    else:

        def bounds(side: int, edge: int) -> Any:
            held = np.full(count, edge, np.int64)
            held[at] = np.fromiter((pair[side] for pair in rows.values()), np.int64, len(rows))
            return held

    upper = bounds(1, _HIGH)
    upper_known = known
    if type.kind is Kind.STRING:
        upper_known = upper.is_valid().to_numpy(zero_copy_only=False)
    return ColumnStatistics(
        type,
        bounds(0, _LOW),
        upper,
        known,
        upper_known,
        np.zeros(count, np.bool_),
        null_count=unknown,
        nan_count=np.zeros(count, np.int64),
        row_count=unknown,
        all_null=None,
    )
