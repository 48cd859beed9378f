"""Rewrites the files of one group: reads them, orders their rows, writes and checks new files.

The law: the new files hold exactly the rows of the old ones, bit by bit, under the same schema. A
group of which that cannot be shown is rejected with a reason, and its old files stay. Old files are
never touched. Files whose schemas differ go to different new files.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bridge.clustering.checksum import checksum
from bridge.clustering.data_files import DataFile, DataFiles, Rejected, data_files
from bridge.clustering.layouts.layout import Layout
from bridge.errors import BridgeError, FileUnreadable, StorageFailure, StorageFull
from bridge.index.replacements import FileState
from bridge.storage.port import Storage
from bridge.storage.uri import join

_NAMELESS = re.compile(r"_col\d+")
"""Names of columns in ORC files of old Hive versions."""


@dataclass(frozen=True, slots=True)
class GroupTask:
    """What one task rewrites.

    Attributes:
        outputs: how many new files.
        directory: URI of where they are written.
        compression: None: as the old files.
        format: of the files.
        places: of the columns in the table, by which engines find those of ORC files without names.
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
    format: str = "parquet"
    places: tuple[int, ...] = ()


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


@dataclass(slots=True)
class _Source:
    """Old files of one schema, read into memory."""

    file: DataFile
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
        files = data_files(task.format)
        sources, rows, total = _read(task, storage, files)
        new: list[FileState] = []
        seen_rows = seen_sum = 0
        for state, table in _write(task, storage, layout, files, sources, written):
            new.append(state)
            seen_rows += table.num_rows
            seen_sum = (seen_sum + checksum(table)) % 2**64
        if (seen_rows, seen_sum) != (rows, total):
            raise Rejected(
                f"VERIFICATION: the old files hold {rows} rows with checksum {total:016x}, and "
                f"the new ones {seen_rows} with {seen_sum:016x}"
            )
    except (StorageFailure, StorageFull):
        _delete(storage, written)
        raise
    except Rejected as reason:
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


def _read(task: GroupTask, storage: Storage, files: DataFiles) -> tuple[list[_Source], int, int]:
    found: dict[Any, _Source] = {}
    rows = total = 0
    for state in task.files:
        file: DataFile = files.open(_content(storage, state))
        table = file.read()
        rows += table.num_rows
        total = (total + checksum(table)) % 2**64
        source = found.setdefault(file.fingerprint, _Source(file, []))
        source.tables.append(table)
        source.num_bytes += state.size
    return list(found.values()), rows, total


def _content(storage: Storage, state: FileState) -> bytes:
    """All bytes of an old file. Errors: Rejected: it is not in the planned state."""
    try:
        (content,), now = storage.read_state(state.path, [(0, state.size)])
    except FileUnreadable:
        content, now = b"", storage.stat(state.path)
        if now is not None and same_state(
            state, FileState(now.uri, now.size, now.modified, now.etag)
        ):
            raise
    if now is None or not same_state(state, FileState(now.uri, now.size, now.modified, now.etag)):
        raise Rejected(f"FILE_CHANGED: {state.path} is not the file that was planned")
    return content


def same_state(planned: FileState, now: FileState) -> bool:
    """Whether a file is as planned."""
    same_time = planned.modified == now.modified
    if planned.etag and now.etag:
        # Some stores list milliseconds, and answer a read in whole seconds.
        same_time = planned.modified // 1_000_000 == now.modified // 1_000_000
        same_time = same_time and planned.etag.strip('"') == now.etag.strip('"')
    return same_time and planned.size == now.size


def _write(
    task: GroupTask,
    storage: Storage,
    layout: Layout,
    files: DataFiles,
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
        row_bytes = max(source.num_bytes / max(table.num_rows, 1), 1e-9)
        for i in range(count):
            begin, end = edges[i], edges[i + 1]
            if begin == end and count > 1:
                continue
            if order is None:
                piece = table.slice(begin, end - begin)
            else:
                piece = table.take(pa.array(order[begin:end]))
            content = files.encode(
                piece, source.file, task.compression, task.row_group_bytes, row_bytes
            )
            name = f"c{task.id:05}-{number}-{i:04}-{uuid.uuid4().hex[:12]}.{files.suffix}"
            uri = join(task.directory, name)
            written.append(uri)
            storage.put(uri, content)
            back, now = storage.read_state(uri, [(0, len(content))])
            if now is None:
                raise Rejected(f"FILE_UNREADABLE: {uri} was deleted while it was written")
            file = files.open(back[0])
            files.check(source.file, file)
            listed = storage.stat(uri)
            if listed is None:
                raise Rejected(f"FILE_UNREADABLE: {uri} was deleted while it was written")
            state = FileState(uri, listed.size, listed.modified, listed.etag)
            yield state, file.read()


def _order(table: pa.Table, task: GroupTask, layout: Layout) -> Any:
    names = {name.lower(): i for i, name in enumerate(table.column_names)}
    if not task.columns:
        return layout.order(table.select([]))
    if task.places and all(_NAMELESS.fullmatch(name) for name in table.column_names):
        found = [i if 0 <= i < table.num_columns else None for i in task.places]
    else:
        found = [names.get(c.lower()) for c in task.columns]
    # A file that is older than a column holds NULL in it.
    columns = [pa.nulls(len(table), pa.int64()) if i is None else table.column(i) for i in found]
    return layout.order(pa.table(columns, [f"c{i}" for i in range(len(columns))]))
