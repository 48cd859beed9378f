"""Rewrites the files of one group: reads them, orders their rows, writes and checks new files.

The law: the new files hold exactly the rows of the old ones, bit by bit, under the same schema. A
group of which that cannot be shown is rejected with a reason, and its old files stay. Old files are
never touched. Files whose schemas differ go to different new files.

A file whose values cannot be decoded, or not be kept exactly, is set aside: the new files hold the
rows of the others, and replace only them. Readers get it, and its error, as before.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, TypeVar

import pyarrow as pa

from bridge.clustering.checksum import checksum
from bridge.clustering.data_files import DataFile, Rejected, Writing, data_files
from bridge.clustering.entries import gathered
from bridge.clustering.layouts.layout import Layout, arranged
from bridge.clustering.shuffle import Shuffle
from bridge.errors import BridgeError, FileCorrupt, FileUnreadable, StorageFailure, StorageFull
from bridge.index.collect import Reading
from bridge.index.replacements import FileState
from bridge.index.shard import Collected
from bridge.storage.port import Storage, same_state
from bridge.storage.source import is_passing
from bridge.storage.uri import join

T = TypeVar("T")
_FEWEST = 2
"""Files that are worth a rewrite, once others of their group were set aside."""
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
        page_index, bloom, stored: see `Writing`.
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
    places: tuple[int, ...] = ()
    page_index: bool = False
    bloom: tuple[str, ...] = ()
    stored: tuple[tuple[str, tuple[str, ...]], ...] = ()
    reading: Reading | None = None

    @property
    def writing(self) -> Writing:
        return Writing(
            self.compression, self.row_group_bytes, self.page_index, self.bloom, self.stored
        )


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

    def taken(self, files: Sequence[FileState]) -> tuple[FileState, ...]:
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


class _Undecodable(Exception):
    """The values of one file cannot be decoded, or not be kept exactly; says why."""


class _Damaged(Exception):
    """Files cannot be rewritten.

    Args:
        files: the reason of each, by path.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        super().__init__(", ".join(files))
        self.files = files


@contextmanager
def _decoding() -> Iterator[None]:
    """Errors: _Undecodable: the file is to blame, not the machine or its storage."""
    try:
        yield
    except FileCorrupt as error:
        raise _Undecodable(error.message) from error
    except Rejected as error:
        raise _Undecodable(str(error)) from error
    except (BridgeError, _Undecodable):
        raise
    except Exception as error:
        if is_passing(error):
            raise
        raise _Undecodable(_described(error)) from error


@dataclass(frozen=True, slots=True)
class _Opened:
    """One old file, its number of rows and its sort columns."""

    file: DataFile
    fingerprint: Hashable
    rows: int
    keys: pa.Table


@dataclass(slots=True)
class _Source:
    """Old files of one schema.

    Attributes:
        like: one of them.
        numbers: their places in the task.
        keys: their sort columns.
    """

    like: DataFile
    numbers: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    keys: list[pa.Table] = field(default_factory=list)
    num_bytes: int = 0


def rewrite_group(
    task: GroupTask, storage: Storage, layout: Layout, effort: Effort | None = None
) -> GroupResult:
    """Rewrites one group.

    Errors:
        StorageFailure, StorageFull: the task can be repeated.
    """
    started = time.monotonic()
    aside: dict[str, str] = {}
    while True:
        written: list[str] = []
        left = without(task, aside)
        try:
            if left is None:
                path, why = next(iter(aside.items()))
                code, found, rest = why.rpartition("UNSUPPORTED: ")
                raise Rejected(f"{found or 'FILE_CORRUPT: '}{path}: {code}{rest}")
            rewrite = _Rewrite(left, storage, layout, effort or Effort(), written)
            new, rows, total = rewrite.run()
            gathered = rewrite.gathered()
            break
        except _Damaged as error:  # once more without them
            _delete(storage, written)
            aside.update(error.files)
        except (StorageFailure, StorageFull):
            _delete(storage, written)
            raise
        except Exception as error:  # one group must not end the others
            _delete(storage, written)
            what = str(error) if isinstance(error, Rejected) else _described(error)
            seconds = time.monotonic() - started
            return GroupResult(task.id, rejected=what, seconds=seconds, aside=tuple(aside.items()))
    return GroupResult(
        task.id,
        tuple(new),
        rows,
        total,
        seconds=time.monotonic() - started,
        aside=tuple(aside.items()),
        gathered=gathered,
    )


def without(task: GroupTask, aside: Collection[str]) -> GroupTask | None:
    """A task without some of its files; None if what is left is not worth a rewrite."""
    files = tuple(file for file in task.files if file.path not in aside)
    if not files or (aside and len(files) < _FEWEST):
        return None
    share = sum(file.size for file in files) / max(sum(file.size for file in task.files), 1)
    return replace(task, files=files, outputs=max(1, round(task.outputs * share)))


def _check_rows(table: pa.Table, count: int) -> None:
    """Errors: _Undecodable: a file does not hold the rows that its footer tells of."""
    if len(table) != count:
        raise _Undecodable(f"{len(table)} rows can be read of {count}")


def _described(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "OUT_OF_MEMORY: the group needs more memory; use a smaller --group-bytes"
    return f"{type(error).__name__}: {error}".partition("\n")[0]


def _delete(storage: Storage, uris: Sequence[str]) -> None:
    for uri in uris:
        try:
            storage.delete(uri)
        except BridgeError:
            return  # nobody names it; a cleanup finds it


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
    """One group on its way. The sort columns of all old files are read first, and give the order;
    then each file is read once, and its rows wait for the new files to which they go."""

    def __init__(
        self,
        task: GroupTask,
        storage: Storage,
        layout: Layout,
        effort: Effort,
        written: list[str],
    ) -> None:
        self._task, self._storage, self._layout = task, storage, layout
        self._effort, self._written = effort, written
        self._formats = data_files(task.format)
        whole = sum(state.size for state in task.files)
        self._keeps = whole <= effort.memory // 2
        self._open: list[DataFile | None] = [None] * len(task.files)
        self._gathered: list[Collected | None] = []

    def gathered(self) -> bytes:
        """What the index needs of all new files; empty if it is not known of each."""
        parts = [part for part in self._gathered if part is not None]
        if not parts or len(parts) < len(self._gathered):
            return b""
        return Collected.concatenate(parts).to_bytes()

    def run(self) -> tuple[list[FileState], int, str]:
        """The new files, the number of rows and the checksum (empty if nothing is verified)."""
        new: list[FileState] = []
        old_sum = new_sum = rows = new_rows = 0
        with ThreadPoolExecutor(self._effort.threads) as pool:
            try:
                sources = self._sources(pool)
                whole = sum(source.num_bytes for source in sources)
                for number, source in enumerate(sources):
                    outputs = max(1, round(self._task.outputs * source.num_bytes / whole))
                    with self._shuffled(pool, source, outputs) as (shuffle, found, places):
                        old_sum += found
                        write = partial(self._write, source, shuffle, number)
                        at = count(len(new))
                        for state, seen, rows_here, part in pool.map(write, places, at):
                            new.append(state)
                            self._gathered.append(part)
                            new_sum += seen
                            new_rows += rows_here
                    rows += sum(source.counts)
            finally:
                pool.shutdown(cancel_futures=True)
        old_sum, new_sum = old_sum % 2**64, new_sum % 2**64
        if (new_rows, new_sum) != (rows, old_sum):
            raise Rejected(
                f"VERIFICATION: the old files hold {rows} rows with checksum {old_sum:016x}, and "
                f"the new ones {new_rows} with {new_sum:016x}"
            )
        return new, rows, f"{old_sum:016x}" if self._effort.verify else ""

    def _of_each(
        self, pool: ThreadPoolExecutor, work: Callable[[int], T], numbers: Sequence[int]
    ) -> list[T]:
        """What comes of each file. Errors: _Damaged: all files that cannot be decoded."""

        def one(number: int) -> T | _Undecodable:
            try:
                return work(number)
            except _Undecodable as error:
                return error

        found, damaged = [], {}
        for number, result in zip(numbers, pool.map(one, numbers), strict=True):
            if isinstance(result, _Undecodable):
                damaged[self._task.files[number].path] = str(result)
            else:
                found.append(result)
        if damaged:
            raise _Damaged(damaged)
        return found

    def _sources(self, pool: ThreadPoolExecutor) -> list[_Source]:
        found: dict[Any, _Source] = {}
        every = range(len(self._task.files))
        for number, opened in enumerate(self._of_each(pool, self._opened, every)):
            source = found.setdefault(opened.fingerprint, _Source(opened.file))
            source.numbers.append(number)
            source.counts.append(opened.rows)
            source.keys.append(opened.keys)
            source.num_bytes += self._task.files[number].size
        return list(found.values())

    def _file(self, number: int) -> DataFile:
        held = self._open[number]
        if held is not None:
            return held
        content = _content(self._storage, self._task.files[number])
        with _decoding():
            file: DataFile = self._formats.open(content)
        return file

    def _opened(self, number: int) -> _Opened:
        file = self._file(number)
        with _decoding():
            found = _Opened(file, file.fingerprint, file.num_rows, self._keys(file))
            _check_rows(found.keys, found.rows if self._task.columns else 0)
        if self._keeps:
            self._open[number] = file
        return found

    def _keys(self, file: DataFile) -> pa.Table:
        """The sort columns of a file."""
        places = _places(file.names, self._task)
        held = [place for place in places if place is not None]
        table = file.read(sorted(set(held))) if held else None
        columns = [
            # A file that is older than a column holds NULL in it.
            pa.nulls(file.num_rows, pa.int64())
            if place is None or table is None
            else table.column(sorted(set(held)).index(place))
            for place in places
        ]
        return pa.table(columns, [f"c{i}" for i in range(len(columns))])

    @contextmanager
    def _shuffled(
        self, pool: ThreadPoolExecutor, source: _Source, outputs: int
    ) -> Iterator[tuple[Shuffle, int, list[int]]]:
        """The rows of a source, their checksum, and the numbers of the new files to write."""
        rows = sum(source.counts)
        keys = pa.concat_tables(source.keys)
        if not self._task.columns:
            keys = pa.table({"": pa.nulls(rows)}).select([])
        order, edges = arranged(self._layout, keys, rows, outputs)
        source.keys.clear()
        with Shuffle(order, source.counts, edges, self._effort.memory) as shuffle:

            def add(number: int) -> int:
                file = self._file(number)
                with _decoding():
                    table = file.read()
                    _check_rows(table, count_of[number])
                    found = checksum(table) if self._effort.verify else 0
                self._open[number] = None
                shuffle.add(place_of[number], table)
                return found

            place_of = {number: place for place, number in enumerate(source.numbers)}
            count_of = dict(zip(source.numbers, source.counts, strict=True))
            total = sum(self._of_each(pool, add, source.numbers))
            yield (
                shuffle,
                total,
                [i for i in range(outputs) if edges[i] < edges[i + 1] or outputs == 1],
            )

    def _write(
        self, source: _Source, shuffle: Shuffle, number: int, place: int, at: int
    ) -> tuple[FileState, int, int, Collected | None]:
        """Writes one new file.

        Args:
            at: its place among all new files.

        Returns:
            Its state; checksum and rows as they were read back; what the index needs of it.
        """
        task, formats, storage = self._task, self._formats, self._storage
        row_bytes = max(source.num_bytes / max(sum(source.counts), 1), 1e-9)
        content = formats.encode(shuffle.gather(place), source.like, task.writing, row_bytes)
        name = f"c{task.id:05}-{number}-{place:04}-{uuid.uuid4().hex[:12]}.{formats.suffix}"
        uri = join(task.directory, name)
        self._written.append(uri)
        storage.put(uri, content)
        (back,), now = storage.read_state(uri, [(0, len(content))])
        listed = None if now is None else storage.stat(uri)
        if listed is None:
            raise Rejected(f"FILE_UNREADABLE: {uri} was deleted while it was written")
        file = formats.open(back)
        formats.check(source.like, file)
        found = sum(map(checksum, file.batches())) if self._effort.verify else 0
        state, part = FileState(uri, listed.size, listed.modified, listed.etag), None
        if task.reading is not None and now is not None and same_state(state, now):
            part = gathered(at, state, back, task.format, task.reading)
        return state, found, file.num_rows, part


def _places(names: Sequence[str], task: GroupTask) -> list[int | None]:
    """Places of the sort columns in a file; None: it does not have them."""
    if task.places and all(_NAMELESS.fullmatch(name) for name in names):
        return [place if 0 <= place < len(names) else None for place in task.places]
    held = {name.lower(): place for place, name in enumerate(names)}
    return [held.get(column.lower()) for column in task.columns]
