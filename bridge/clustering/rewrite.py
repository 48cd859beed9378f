"""Rewrites the files of one group: reads them, orders their rows, writes and checks new files.

The law: the new files hold exactly the rows of the old ones, bit by bit, under the same schema. A
group of which that cannot be shown is rejected with a reason, and its old files stay. Old files are
never touched. Files whose schemas differ go to different new files.

Values are read and written as they are stored, without a calendar or time zone of this program, and
the footer's properties that tell engines how to read them are copied.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.clustering.checksum import checksum
from bridge.clustering.layouts.layout import Layout
from bridge.errors import BridgeError, FileUnreadable, StorageFailure, StorageFull
from bridge.index.replacements import FileState
from bridge.storage.port import Storage
from bridge.storage.uri import join

_CODECS = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}
_OWN = (b"pandas", b"ARROW:schema")
"""Properties that describe one file's rows, or are made anew."""


@dataclass(frozen=True, slots=True)
class GroupTask:
    """What one task rewrites.

    Attributes:
        outputs: how many new files.
        directory: URI of where they are written.
        compression: None: as the old files.
    """

    id: int
    partition: str
    files: tuple[FileState, ...]
    outputs: int
    layout: str
    columns: tuple[str, ...]
    directory: str
    compression: str | None
    row_group_bytes: int


@dataclass(frozen=True, slots=True)
class GroupResult:
    """What became of a group.

    Attributes:
        new: the files that replace the old ones; empty if it was rejected.
        checksum: of all rows, in hexadecimal.
        rejected: why the old files stay; empty if they are replaced.
    """

    id: int
    new: tuple[FileState, ...] = ()
    rows: int = 0
    checksum: str = ""
    rejected: str = ""
    seconds: float = 0.0


class _Rejected(Exception):
    """The group's old files stay."""


@dataclass(slots=True)
class _Source:
    """Old files of one schema, read into memory."""

    file: pq.ParquetFile
    tables: list[pa.Table]
    num_bytes: int = 0


def rewrite_group(task: GroupTask, storage: Storage, layout: Layout) -> GroupResult:
    """Rewrites one group.

    Errors:
        StorageFailure, StorageFull: the task can be repeated.
    """
    started = time.monotonic()
    written: list[str] = []
    try:
        sources, rows, total = _read(task, storage)
        new: list[FileState] = []
        seen_rows = seen_sum = 0
        for state, table in _write(task, storage, layout, sources, written):
            new.append(state)
            seen_rows += table.num_rows
            seen_sum = (seen_sum + checksum(table)) % 2**64
        if (seen_rows, seen_sum) != (rows, total):
            raise _Rejected(
                f"VERIFICATION: the old files hold {rows} rows with checksum {total:016x}, and "
                f"the new ones {seen_rows} with {seen_sum:016x}"
            )
    except (StorageFailure, StorageFull):
        _delete(storage, written)
        raise
    except _Rejected as reason:
        _delete(storage, written)
        return GroupResult(task.id, rejected=str(reason), seconds=time.monotonic() - started)
    except (BridgeError, pa.ArrowException, OSError, ValueError, TypeError, KeyError) as error:
        _delete(storage, written)
        what = f"{type(error).__name__}: {error}".partition("\n")[0]
        return GroupResult(task.id, rejected=what, seconds=time.monotonic() - started)
    seconds = time.monotonic() - started
    return GroupResult(task.id, tuple(new), rows, f"{total:016x}", seconds=seconds)


def _delete(storage: Storage, uris: Sequence[str]) -> None:
    for uri in uris:
        try:
            storage.delete(uri)
        except BridgeError:
            return  # nobody names it; a cleanup finds it


def _read(task: GroupTask, storage: Storage) -> tuple[list[_Source], int, int]:
    found: dict[Any, _Source] = {}
    rows = total = 0
    for state in task.files:
        content = _content(storage, state)
        file = pq.ParquetFile(pa.BufferReader(content))
        table = file.read()
        _check_int96(file, content, table)
        rows += table.num_rows
        total = (total + checksum(table)) % 2**64
        source = found.setdefault(_fingerprint(file), _Source(file, []))
        source.tables.append(table)
        source.num_bytes += state.size
    return list(found.values()), rows, total


def _content(storage: Storage, state: FileState) -> bytes:
    """All bytes of an old file. Errors: _Rejected: it is not in the planned state."""
    try:
        (content,), now = storage.read_state(state.path, [(0, state.size)])
    except FileUnreadable:
        content, now = b"", storage.stat(state.path)
        if now is not None and same_state(
            state, FileState(now.uri, now.size, now.modified, now.etag)
        ):
            raise
    if now is None or not same_state(state, FileState(now.uri, now.size, now.modified, now.etag)):
        raise _Rejected(f"FILE_CHANGED: {state.path} is not the file that was planned")
    return content


def same_state(planned: FileState, now: FileState) -> bool:
    """Whether a file is as planned."""
    same_time = planned.modified == now.modified
    if planned.etag and now.etag:
        # Some stores list milliseconds, and answer a read in whole seconds.
        same_time = planned.modified // 1_000_000 == now.modified // 1_000_000
        same_time = same_time and planned.etag.strip('"') == now.etag.strip('"')
    return same_time and planned.size == now.size


def _check_int96(file: pq.ParquetFile, content: bytes, table: pa.Table) -> None:
    """Errors: _Rejected: a timestamp is outside the years that nanoseconds can count."""
    if "INT96" not in {file.schema.column(i).physical_type for i in range(len(file.schema))}:
        return
    coarse = pq.ParquetFile(pa.BufferReader(content), coerce_int96_timestamp_unit="us").read()
    # Not Table.equals, to which NaN differs from itself.
    if checksum(table.cast(coarse.schema, safe=False)) != checksum(coarse):
        raise _Rejected("UNSUPPORTED: an INT96 timestamp is too far from 1970 to be kept exactly")


def _properties(file: pq.ParquetFile) -> dict[bytes, bytes]:
    """Properties of the footer that new files take over."""
    held = dict(file.metadata.metadata or {})
    return {key: value for key, value in held.items() if key not in _OWN}


def _leaves(file: pq.ParquetFile) -> tuple[Any, ...]:
    """How each leaf is stored, so that a reader of one file reads the other alike."""
    schema = file.schema
    return tuple(
        (
            column.physical_type,
            column.converted_type,
            column.length,
            column.precision,
            column.scale,
            column.max_definition_level,
            column.max_repetition_level,
        )
        for column in (schema.column(i) for i in range(len(schema)))
    )


def _fields(fields: Sequence[pa.Field]) -> tuple[Any, ...]:
    """Names, ids and nullability at every depth; inner names of lists do not matter."""
    found = []
    for field in fields:
        id = (field.metadata or {}).get(b"PARQUET:field_id")
        type, inner = field.type, []
        if pa.types.is_struct(type):
            inner = [type.field(i) for i in range(type.num_fields)]
        elif pa.types.is_map(type):
            inner = [type.key_field.with_name(""), type.item_field.with_name("")]
        elif hasattr(type, "value_field"):
            inner = [type.value_field.with_name("")]
        found.append((field.name, id, field.nullable, type.id, _fields(inner)))
    return tuple(found)


def _fingerprint(file: pq.ParquetFile) -> Any:
    properties = tuple(sorted(_properties(file).items()))
    schema = file.schema_arrow
    names = tuple(file.schema.column(i).path for i in range(len(file.schema)))
    return _fields(list(schema)), _leaves(file), names, properties, str(schema.remove_metadata())


def _write(
    task: GroupTask,
    storage: Storage,
    layout: Layout,
    sources: Sequence[_Source],
    written: list[str],
) -> Iterator[tuple[FileState, pa.Table]]:
    """Writes the new files; yields each with its rows as they were read back."""
    whole = sum(source.num_bytes for source in sources)
    for number, source in enumerate(sources):
        table = pa.concat_tables(source.tables)
        source.tables.clear()
        count = max(1, round(task.outputs * source.num_bytes / whole))
        order = _order(table, task, layout)
        edges = np.linspace(0, table.num_rows, count + 1).astype(np.int64).tolist()
        bytes_per_row = max(source.num_bytes / max(table.num_rows, 1), 1e-9)
        group_rows = int(min(max(task.row_group_bytes / bytes_per_row, 1), 64 * 1024**2))
        for i in range(count):
            begin, end = edges[i], edges[i + 1]
            if begin == end and count > 1:
                continue
            if order is None:
                piece = table.slice(begin, end - begin)
            else:
                piece = table.take(pa.array(order[begin:end]))
            content = _encode(piece, source.file, task.compression, group_rows)
            name = f"c{task.id:05}-{number}-{i:04}-{uuid.uuid4().hex[:12]}.parquet"
            uri = join(task.directory, name)
            written.append(uri)
            storage.put(uri, content)
            back, now = storage.read_state(uri, [(0, len(content))])
            if now is None:
                raise _Rejected(f"FILE_UNREADABLE: {uri} was deleted while it was written")
            file = pq.ParquetFile(pa.BufferReader(back[0]))
            _check_schema(source.file, file)
            listed = storage.stat(uri)
            if listed is None:
                raise _Rejected(f"FILE_UNREADABLE: {uri} was deleted while it was written")
            state = FileState(uri, listed.size, listed.modified, listed.etag)
            yield state, file.read()


def _order(table: pa.Table, task: GroupTask, layout: Layout) -> Any:
    names = {name.lower(): i for i, name in enumerate(table.column_names)}
    if not task.columns:
        return layout.order(table.select([]))
    columns = [
        # A file that is older than a column holds NULL in it.
        table.column(names[c.lower()]) if c.lower() in names else pa.nulls(len(table), pa.int64())
        for c in task.columns
    ]
    return layout.order(pa.table(columns, [f"c{i}" for i in range(len(columns))]))


def _encode(
    table: pa.Table, like: pq.ParquetFile, compression: str | None, group_rows: int
) -> bytes:
    physical = [like.schema.column(i).physical_type for i in range(len(like.schema))]
    decimals = {
        like.schema.column(i).physical_type
        for i in range(len(like.schema))
        if like.schema.column(i).converted_type == "DECIMAL"
    }
    sink = BytesIO()
    writer = pq.ParquetWriter(
        sink,
        table.schema.remove_metadata(),
        compression=compression or _codecs(like),
        use_deprecated_int96_timestamps="INT96" in physical,
        store_decimal_as_integer=bool(decimals & {"INT32", "INT64"}),
        store_schema=b"ARROW:schema" in (like.metadata.metadata or {}),
        version="2.6",
    )
    with writer:
        writer.write_table(table.replace_schema_metadata(None), row_group_size=group_rows)
        if properties := _properties(like):
            writer.add_key_value_metadata(properties)
    return sink.getvalue()


def _codecs(like: pq.ParquetFile) -> str | dict[str, str]:
    if not like.metadata.num_row_groups:
        return "snappy"
    group = like.metadata.row_group(0)
    found = {}
    for i in range(group.num_columns):
        codec = group.column(i).compression
        found[group.column(i).path_in_schema] = _CODECS.get(codec, codec.lower())
    return next(iter(found.values())) if len(set(found.values())) == 1 else found


def _check_schema(old: pq.ParquetFile, new: pq.ParquetFile) -> None:
    """Errors: _Rejected: the new file stores a column in another way than the old one."""
    if _leaves(old) == _leaves(new) and _fields(list(old.schema_arrow)) == _fields(
        list(new.schema_arrow)
    ):
        return
    for i, (one, other) in enumerate(zip(_leaves(old), _leaves(new), strict=False)):
        if one != other:
            raise _Rejected(
                f"UNSUPPORTED: {old.schema.column(i).path} is stored as {one[0]} {one[1]}, and "
                f"would be as {other[0]} {other[1]}"
            )
    raise _Rejected("UNSUPPORTED: names, ids or nullability of columns would change")
