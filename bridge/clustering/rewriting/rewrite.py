"""Rewrites the files of one group: reads them, orders their rows, writes and checks new files.

The law: the new files hold exactly the rows of the old ones, bit by bit, under the same schema. A
group of which that cannot be shown is rejected with a reason, and its old files stay. Old files are
never touched. Files whose schemas differ go to different new files.

A file whose values cannot be decoded, or not be kept exactly, is set aside: the new files hold the
rows of the others, and replace only them. Readers get it, and its error, as before.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice, pairwise
from math import isqrt

import pyarrow as pa

from bridge.clustering.entries import gather_entry
from bridge.clustering.layouts.layout import Layout, arrange
from bridge.clustering.planning.depth import rewrites_of
from bridge.clustering.rewriting.shuffle import GatheredRows, Room, Shuffle, WaitingRows, Waits
from bridge.formats.checksum import checksum
from bridge.formats.data_files import (
    DataFile,
    Decoded,
    Rejected,
    Writing,
    describe,
    rewrite_problem,
)
from bridge.formats.registry import data_files
from bridge.index.building.collect import Reading
from bridge.index.generations.replacements import FileState
from bridge.index.generations.shard import Collected
from bridge.kernel.errors import (
    BridgeError,
    FileCorrupt,
    FileUnreadable,
    StorageFailure,
    StorageFull,
)
from bridge.kernel.threads import Threads
from bridge.storage.batches import batches
from bridge.storage.port import Storage, same_state
from bridge.storage.reading.ahead import REQUESTS
from bridge.storage.uri import join

_BATCH_FILES, _BATCH_BYTES = 256, 4 << 20
"""Files that are decoded in one request, at most; a larger one has a request of its own."""
_LOCAL = 64
"""Files on a local disk that one thread reads one after another."""
_AHEAD = 2
"""Batches that are read ahead of those that are decoded."""
_FEWEST = 2
"""Files that are worth a rewrite, once others of their group were set aside."""
CountFiles = Callable[[int], None]
"""Gets the number of old files that were read since it was called last, from any thread."""


@dataclass(frozen=True, slots=True)
class GroupTask:
    """What one task rewrites.

    Attributes:
        outputs: how many new files.
        directory: URI of where they are written.
        compression: None: as the old files.
        format: of the files.
        bloom, stored: see `Writing`.
        reading: what the index needs of the new files; None: nothing is gathered.
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
    bloom: tuple[str, ...] = ()
    stored: tuple[tuple[str, tuple[str, ...]], ...] = ()
    reading: Reading | None = None

    @property
    def writing(self) -> Writing:
        return Writing(self.compression, self.row_group_bytes, self.bloom, self.stored)


@dataclass(frozen=True, slots=True)
class GroupResult:
    """What became of a group.

    Attributes:
        new: the files that replace the old ones; empty if it was rejected.
        checksum: of all rows, in hexadecimal.
        rejected: why the old files stay; empty if they are replaced.
        aside: path and reason of each old file that stays: damaged, or not to be kept exactly.
        gathered: what the index needs of the new files, by their places in ``new``, as bytes of a
            `Collected`; empty if they must be read for it.
    """

    id: int
    new: tuple[FileState, ...] = ()
    rows: int = 0
    checksum: str = ""
    rejected: str = ""
    seconds: float = 0.0
    aside: tuple[tuple[str, str], ...] = ()
    gathered: bytes = field(default=b"", repr=False, compare=False)

    def without_aside(self, files: Sequence[FileState]) -> tuple[FileState, ...]:
        """Those of a group's files that were not set aside."""
        left = {path for path, _ in self.aside}
        return tuple(file for file in files if file.path not in left)


@dataclass(frozen=True, slots=True)
class Effort:
    """How a task works.

    Attributes:
        threads: that it may use.
        memory: bytes of rows that it holds; more wait in temporary files.
        verify: whether new files are read back, and their checksum compared with the old ones'.
    """

    threads: int = 1
    memory: int = 1 << 30
    verify: bool = True


@dataclass(slots=True)
class _Part:
    """Some rows of old files, and their sort columns."""

    rows: int
    waiting: WaitingRows
    keys: pa.Table


@dataclass(slots=True)
class _Source:
    """Old files of one schema; ``like`` is one of them."""

    fingerprint: Hashable
    like: DataFile
    parts: list[_Part]
    checksum: int
    num_bytes: int
    rows: int

    @property
    def row_bytes(self) -> float:
        """Of one row in the old files."""
        return max(self.num_bytes / max(self.rows, 1), 1e-9)

    def add(self, other: _Source) -> None:
        self.parts += other.parts
        self.checksum += other.checksum
        self.num_bytes += other.num_bytes
        self.rows += other.rows


def rewrite_group(
    task: GroupTask,
    storage: Storage,
    layout: Layout,
    effort: Effort | None = None,
    room: Room | None = None,
    seen: CountFiles = lambda count: None,
) -> GroupResult:
    """Rewrites one group.

    Args:
        room: for the rows that it holds; None: its own, of the effort's memory.
        seen: is told of the old files as they are read.

    Errors:
        StorageFailure, StorageFull: the task can be repeated.
    """
    started = time.monotonic()
    effort = effort or Effort()
    rewrite = _Rewrite(task, storage, layout, effort, room or Room(effort.memory), seen)
    new: Sequence[FileState] = ()
    rows, total, rejected, needed = 0, "", "", b""
    try:
        new, rows, total = rewrite.run()
        needed = rewrite.index_entries()
    except (StorageFailure, StorageFull):
        delete_files(storage, rewrite.written)
        raise
    except Exception as error:  # one group must not end the others
        delete_files(storage, rewrite.written)
        rejected = str(error) if isinstance(error, Rejected) else describe(error)
    return GroupResult(
        task.id,
        tuple(new),
        rows,
        total,
        rejected,
        seconds=time.monotonic() - started,
        aside=tuple(rewrite.aside.items()),
        gathered=needed,
    )


def delete_files(storage: Storage, uris: Sequence[str]) -> None:
    """Deletes what nobody names."""
    for uri in uris:
        try:
            storage.delete(uri)
        except BridgeError:
            return  # a cleanup finds it


def _content(storage: Storage, state: FileState) -> bytes:
    """All bytes of an old file. Errors: Rejected: it is not in the planned state."""
    try:
        (content,), now = storage.read_state(state.path, [(0, state.size)])
    except FileUnreadable:
        content, now = b"", storage.stat(state.path)
        if now is not None and same_state(state, now):
            raise
    if now is None or not same_state(state, now):
        raise Rejected(f"FILE_CHANGED: {state.path} is not the file that was planned")
    return content


class _Rewrite:
    """One group on its way. Each old file is read and decoded once; its rows wait until the order
    of all is known, and then for the new files to which they go.

    Attributes:
        aside: why old files stay, by path.
        written: URIs of new files.
    """

    def __init__(
        self,
        task: GroupTask,
        storage: Storage,
        layout: Layout,
        effort: Effort,
        room: Room,
        seen: CountFiles,
    ) -> None:
        self.aside: dict[str, str] = {}
        self.written: list[str] = []
        self._task, self._storage, self._layout = task, storage, layout
        self._effort, self._room, self._seen = effort, room, seen
        self._formats = data_files(task.format)
        self._gathered: list[Collected | None] = []

    def index_entries(self) -> bytes:
        """What the index needs of all new files; empty if it is not known of each."""
        parts = [part for part in self._gathered if part is not None]
        if not parts or len(parts) < len(self._gathered):
            return b""
        return Collected.concatenate(parts).to_bytes()

    def run(self) -> tuple[list[FileState], int, str]:
        """The new files, the number of rows and the checksum (empty if nothing is verified)."""
        new: list[FileState] = []
        new_sum = new_rows = 0
        with Threads(self._effort.threads, "rewrite") as pool, Waits(self._room) as waits:
            try:
                sources = self._sources(pool, waits)
                rows = sum(source.rows for source in sources)
                old_sum = sum(source.checksum for source in sources) % 2**64
                whole = sum(source.num_bytes for source in sources)
                share = whole / max(sum(state.size for state in self._task.files), 1)
                for number, source in enumerate(sources):
                    outputs = self._task.outputs * share * source.num_bytes / max(whole, 1)
                    shuffle, places = self._shuffled(pool, waits, source, max(1, round(outputs)))
                    write = partial(self._write, source, shuffle, number)
                    at = count(len(new))
                    for state, seen, rows_here, part in pool.map(write, places.items(), at):
                        new.append(state)
                        self._gathered.append(part)
                        new_sum += seen
                        new_rows += rows_here
                    shuffle.drop()
            finally:
                pool.shutdown(cancel_futures=True)
        new_sum %= 2**64
        if (new_rows, new_sum) != (rows, old_sum):
            raise Rejected(
                f"VERIFICATION: the old files hold {rows} rows with checksum {old_sum:016x}, and "
                f"the new ones {new_rows} with {new_sum:016x}"
            )
        return new, rows, f"{old_sum:016x}" if self._effort.verify else ""

    def _sources(self, pool: Threads, waits: Waits) -> list[_Source]:
        """Reads all old files. Errors: Rejected: too few of them can be decoded."""
        found: dict[Hashable, _Source] = {}
        for source in self._decoded(pool, waits):
            held = found.setdefault(source.fingerprint, source)
            if held is not source:
                held.add(source)
        files = self._task.files
        self.aside = {f.path: self.aside[f.path] for f in files if f.path in self.aside}
        left = len(files) - len(self.aside)
        if not left or (self.aside and left < _FEWEST):
            path, why = next(iter(self.aside.items()))
            before, code, rest = why.rpartition("UNSUPPORTED: ")
            raise Rejected(f"{code or 'FILE_CORRUPT: '}{path}: {before}{rest}")
        return list(found.values())

    def _decoded(self, pool: Threads, waits: Waits) -> Iterator[_Source]:
        """Decodes batch after batch, in order, while the next ones are read."""
        files, threads = self._task.files, self._effort.threads
        remote = self._storage.is_remote(files[0].path)
        each = 1 if remote else _LOCAL
        coming = batches(range(len(files)), lambda i: files[i].size, _BATCH_BYTES, _BATCH_FILES)
        running: deque[Future[list[_Source]]] = deque()
        with Threads(REQUESTS if remote else threads, "read") as requests:
            try:
                for numbers in coming:
                    size = sum(files[number].size for number in numbers)
                    # A few small batches wait; of large ones only as many as are decoded at once.
                    while len(running) >= threads + (_AHEAD if size <= _BATCH_BYTES else 0):
                        yield from running.popleft().result()
                    contents = [
                        requests.submit(self._contents, numbers[i : i + each])
                        for i in range(0, len(numbers), each)
                    ]
                    running.append(pool.submit(self._decode, numbers, contents, waits))
                while running:
                    yield from running.popleft().result()
            finally:
                requests.close()

    def _contents(self, numbers: Sequence[int]) -> list[bytes]:
        return [_content(self._storage, self._task.files[number]) for number in numbers]

    def _decode(
        self, numbers: Sequence[int], reading: list[Future[list[bytes]]], waits: Waits
    ) -> list[_Source]:
        contents = [content for some in reading for content in some.result()]
        reading.clear()
        found = self._decode_some(numbers, contents, waits)
        self._seen(len(numbers))
        return found

    def _decode_some(
        self, numbers: Sequence[int], contents: Sequence[bytes], waits: Waits
    ) -> list[_Source]:
        """The rows of some files. Those that cannot be decoded are noted, and left out."""
        parts: list[_Part] = []
        decoded = Decoded((), {})
        try:
            for item in self._formats.decode(contents, self._effort.verify):
                if isinstance(item, Decoded):
                    decoded = item
                else:
                    parts.append(self._part(item, waits))
            _check_counts(decoded, parts, len(numbers))
        except (FileCorrupt, FileUnreadable) as error:
            for part in parts:
                part.waiting.drop()
            if len(numbers) > 1:  # one of them ended the process: a few deaths find it
                step = isqrt(len(numbers))
                return [
                    source
                    for i in range(0, len(numbers), step)
                    for source in self._decode_some(
                        numbers[i : i + step], contents[i : i + step], waits
                    )
                ]
            decoded, parts = Decoded((), {0: rewrite_problem(error)}), []
        for place, why in decoded.failed.items():
            self.aside[self._task.files[numbers[place]].path] = why
        found, coming = [], iter(parts)
        for run in decoded.runs:
            mine = list(islice(coming, run.tables))
            size = sum(self._task.files[numbers[place]].size for place in run.files)
            like = self._formats.open(contents[run.files[0]], decoded=True)
            total, rows = run.checksum, sum(run.counts)
            found.append(_Source(run.fingerprint, like, mine, total, size, rows))
        for part in coming:  # of a file that is damaged further on
            part.waiting.drop()
        return found

    def _part(self, table: pa.Table, waits: Waits) -> _Part:
        waiting = waits.keep(table)
        keys = self._keys(table)
        if not waiting.in_memory:  # a column alone would hold the memory of all
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, keys.schema) as writer:
                writer.write_table(keys)
            keys = pa.ipc.open_stream(sink.getvalue()).read_all()
        return _Part(len(table), waiting, keys)

    def _keys(self, table: pa.Table) -> pa.Table:
        """The sort columns of some rows."""
        columns = []
        for place in _places(table.column_names, self._task):
            # A file that is older than a column holds NULL in it.
            column = pa.nulls(len(table)) if place is None else table.column(place)
            if pa.types.is_null(column.type):
                column = pa.nulls(len(table), pa.int64())
            elif pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            columns.append(column)
        return pa.table(columns, [f"c{i}" for i in range(len(columns))])

    def _shuffled(
        self, pool: Threads, waits: Waits, source: _Source, outputs: int
    ) -> tuple[Shuffle, dict[int, range]]:
        """The rows of a source on their way, and the places of each new file that is to be written,
        by its number."""
        keys = pa.concat_tables([part.keys for part in source.parts])
        if not self._task.columns:
            keys = pa.table({"": pa.nulls(source.rows)}).select([])
        waiting = [part.waiting for part in source.parts]
        counts = [part.rows for part in source.parts]
        source.parts.clear()  # with the sort columns
        order, edges = arrange(self._layout, keys, source.rows, outputs)
        del keys
        places: dict[int, range] = {}
        cuts: list[int] = []
        for i, (begin, end) in enumerate(pairwise(edges)):
            if begin < end or outputs == 1:
                inner = self._formats.cuts(end - begin, self._task.writing, source.row_bytes)
                places[i] = range(len(cuts), len(cuts) + len(inner) - 1)
                cuts += [begin + cut for cut in inner[:-1]]
        shuffle = Shuffle(order, counts, [*cuts, edges[-1]], waits)

        def add(number: int) -> None:
            table = waiting[number].part(0)
            waiting[number].drop()
            shuffle.add(number, table)

        list(pool.map(add, range(len(waiting))))
        return shuffle, places

    def _write(
        self, source: _Source, shuffle: Shuffle, number: int, target: tuple[int, range], at: int
    ) -> tuple[FileState, int, int, Collected | None]:
        """Writes one new file.

        Args:
            target: its number among those of the source, and its places in the shuffle.
            at: its place among all new files.

        Returns:
            Its state; checksum and rows as they were read back; what the index needs of it.
        """
        task, formats, storage = self._task, self._formats, self._storage
        with GatheredRows(shuffle, target[1], self._room) as groups:
            content = formats.encode(groups, source.like, task.writing)
        rewrites = 1 + max(rewrites_of(state.path) for state in task.files)
        name = f"c{task.id:05}-{number}-{target[0]:04}-{uuid.uuid4().hex[:12]}-{rewrites}"
        uri = join(task.directory, f"{name}.{formats.suffix}")
        self.written.append(uri)
        storage.put(uri, content)
        (back,), now = storage.read_state(uri, [(0, len(content))])
        listed = None if now is None else storage.stat(uri)
        if listed is None:
            raise Rejected(f"FILE_UNREADABLE: {uri} was deleted while it was written")
        if back != content:
            raise Rejected(f"VERIFICATION: {uri} is read with other bytes than were written")
        file = formats.open(back, decoded=True)
        formats.check(source.like, file)
        found = sum(map(checksum, file.batches())) if self._effort.verify else 0
        state, part = FileState(uri, listed.size, listed.modified, listed.etag), None
        if task.reading is not None and now is not None and same_state(state, now):
            part = gather_entry(at, state, back, task.format, task.reading)
        return state, found, file.num_rows, part


def _check_counts(decoded: Decoded, parts: Sequence[_Part], files: int) -> None:
    """Errors: FileCorrupt: what was decoded does not agree with what is said of it."""
    places = sorted([*decoded.failed, *(place for run in decoded.runs for place in run.files)])
    wanted = sum(count for run in decoded.runs for count in run.counts)
    tables = sum(run.tables for run in decoded.runs)
    rows = sum(part.rows for part in parts[:tables])
    if places != list(range(files)) or (tables, rows) != (min(tables, len(parts)), wanted):
        raise FileCorrupt(f"{rows} rows can be read of {wanted}", "rewrite the file")


def _places(names: Sequence[str], task: GroupTask) -> list[int | None]:
    """Places of the sort columns in a file; None: it does not have them."""
    held = {name.lower(): place for place, name in enumerate(names)}
    return [held.get(column.lower()) for column in task.columns]
