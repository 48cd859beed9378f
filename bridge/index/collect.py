"""Reads from data files what the index needs, in local threads or on Spark.

A `Collector` distributes the tasks. Each chunk of tasks is read by `collect_chunk`, both in local
threads and in Spark executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal, Protocol

from bridge.errors import FileCorrupt, FileUnreadable, StorageFailure, StorageFull
from bridge.file_formats.file_format import FileFormat, StatisticsReader
from bridge.file_formats.readers.parquet_statistics import Footer
from bridge.file_formats.registry import file_formats
from bridge.file_formats.statistics import FileStatistics
from bridge.index.column_resolution import width_leaf
from bridge.index.kinds.definition import Definition
from bridge.index.kinds.kind import FileFacts, Gathering, IndexKind, Row
from bridge.index.kinds.modes import Modes
from bridge.index.kinds.payload import rows_schema, table_of
from bridge.index.scan import leaf_scans, scan
from bridge.index.shard import Collected, CollectedBuilder
from bridge.storage.port import FileStat, Storage

Nan = Literal["footer", "scan"]
CHUNK = 256
CHANGED = "FILE_CHANGED: written while it was read"


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file to read, as listed.

    Attributes:
        file: the number by which results refer to the file.
        format: the file format's name, one of `bridge.file_formats.registry.indexed_formats`.
    """

    file: int
    uri: str
    size: int
    modified: int
    etag: str | None = None
    format: str = "parquet"


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read from each file, in one pass.

    Attributes:
        nan: ``scan`` reads float columns to count NaN.
        kinds: the definitions other than min/max, each with its kind.
        modes: how much min/max keeps, by column; see `bridge.index.kinds.modes`.
    """

    nan: Nan = "footer"
    kinds: tuple[tuple[IndexKind, Definition], ...] = ()
    modes: tuple[tuple[str, str], ...] = ()


class Collector(Protocol):
    """Distributes the reading of files over threads or machines."""

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        """Yields the results in any order; each task appears once."""
        ...


class ThreadCollector:
    """Reads in this process, for small refreshes and tests."""

    def __init__(self, storage: Storage, threads: int = 8) -> None:
        self._storage = storage
        self._threads = threads

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        chunks = [tasks[i : i + CHUNK] for i in range(0, len(tasks), CHUNK)]
        if len(chunks) == 1:
            yield collect_chunk(chunks[0], self._storage, reading)
            return
        with ThreadPoolExecutor(self._threads) as pool:
            yield from pool.map(lambda chunk: collect_chunk(chunk, self._storage, reading), chunks)


def collect_chunk(
    tasks: Sequence[FileTask],
    storage: Storage,
    reading: Reading,
    formats: Mapping[str, FileFormat] | None = None,
) -> Collected:
    """Reads some files one after another.

    One file never fails the others (correctness 27). A file that is damaged, deleted or changed
    since it was listed yields a problem instead of statistics, and so does any unexpected error.
    Only damage is remembered: an unexpected error may be the fault of this machine or program, so
    the file is retried. If the footer is intact and the data is damaged, the footer's statistics
    are kept.

    Args:
        formats: the formats of the tasks, by name; None: the installed ones.

    Errors:
        StorageFailure: the storage cannot be reached. No result is returned for any file.
    """
    chunk = _Chunk(storage, reading, formats if formats is not None else file_formats())
    for task in tasks:
        chunk.read(task)
    return chunk.finish()


@dataclass(slots=True)
class _Chunk:
    storage: Storage
    reading: Reading
    formats: Mapping[str, FileFormat]
    readers: dict[str, StatisticsReader] = field(default_factory=dict)
    builder: CollectedBuilder = field(default_factory=CollectedBuilder)
    modes: Modes = field(init=False)
    rows: dict[str, list[Row]] = field(init=False)

    def __post_init__(self) -> None:
        self.modes = Modes(self.reading.modes)
        self.rows = {definition.signature: [] for _, definition in self.reading.kinds}

    def read(self, task: FileTask) -> None:
        try:
            footer, rows, problem = self._read(task)
        except (FileCorrupt, FileUnreadable) as error:
            self._failed(task, f"{error.code}: {error.message}")
            return
        except (StorageFailure, StorageFull, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # Rust's panics are no Exception; correctness 27
            what = f"{type(error).__name__}: {error}".partition("\n")[0]
            self._failed(task, f"{FileUnreadable.code}: {task.uri}: cannot be read: {what}")
            return
        # The listing was the check before the read; this is the check after it (correctness 19).
        after = self.storage.stat(task.uri)
        if after is None or not _same(task, after):
            self.builder.failed(task.file, CHANGED)
            return
        if self.modes:
            for leaf in footer.leaves:
                self.modes.apply(leaf)
        self.builder.add(task.file, footer, problem and _legible(problem))
        for signature, found in rows.items():
            self.rows[signature] += found

    def _failed(self, task: FileTask, reason: str) -> None:
        after = self.storage.stat(task.uri)
        changed = after is not None and not _same(task, after)
        self.builder.failed(task.file, CHANGED if changed else _legible(reason))

    def finish(self) -> Collected:
        collected = self.builder.finish()
        tables = {}
        for kind, definition in self.reading.kinds:
            schema = rows_schema(kind.schema, kind.has_body)
            tables[definition.signature] = kind.reduce(
                table_of(self.rows[definition.signature], schema)
            )
        return Collected(collected.files, collected.columns, tables)

    def _read(self, task: FileTask) -> tuple[FileStatistics, dict[str, list[Row]], str | None]:
        """Statistics for min/max, rows for each definition, and a problem if data is damaged."""
        footer = self._statistics(task)
        if not isinstance(footer, Footer) or (
            self.reading.nan == "footer" and not self.reading.kinds
        ):
            return footer, {}, None
        gatherings = self._gatherings(footer, task)
        scans = leaf_scans(footer) if self.reading.nan == "scan" else []
        every: list[Gathering] = [*scans, *gatherings.values()]
        problem = None
        try:
            scan(footer, every, self.storage, task.uri, task.size)
            for each in scans:
                each.finish()
        except FileCorrupt as error:
            problem = f"{error.code}: {error.message}"
            gatherings = {s: g for s, g in gatherings.items() if not g.leaves}
        found = {
            signature: [{"file": task.file, **row} for row in gathering.finish()]
            for signature, gathering in gatherings.items()
        }
        return footer, found, problem

    def _statistics(self, task: FileTask) -> FileStatistics:
        format = self.formats[task.format]
        if task.format not in self.readers:
            assert format.statistics is not None, f"{format.name} is not indexed"
            self.readers[task.format] = format.statistics()
        found = self.readers[task.format](self.storage, task.uri, task.size)
        if format.by_position:
            found.leaves.append(width_leaf(len(found.leaves)))
        return found

    def _gatherings(self, footer: Footer, task: FileTask) -> dict[str, Gathering]:
        tail = footer.tail
        start = task.size - len(tail)

        def read_ranges(ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            if all(begin >= start for begin, _ in ranges):
                return [tail[begin - start : end - start] for begin, end in ranges]
            return self.storage.read_ranges(task.uri, ranges)

        facts = FileFacts(
            task.uri,
            task.size,
            footer.groups,
            tuple(leaf.column for leaf in footer.leaves),
            footer.legacy,
            read_ranges,
        )
        found: dict[str, Gathering] = {}
        for kind, definition in self.reading.kinds:
            gathering = kind.gather(definition, facts)
            if gathering is not None:
                found[definition.signature] = gathering
        return found


def _legible(reason: str) -> str:
    """Escapes what is not valid UTF-8: errors quote values from files."""
    return reason.encode("utf-8", "backslashreplace").decode()


def _same(task: FileTask, after: FileStat) -> bool:
    if (after.size, after.modified) != (task.size, task.modified):
        return False
    return not (task.etag and after.etag) or task.etag == after.etag
