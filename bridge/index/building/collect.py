"""Reads from data files what the index needs, in local threads or on Spark.

A `Collector` distributes the tasks. Each chunk of tasks is read by `collect_chunk`, both in local
threads and in Spark executors. On HDFS and object stores it keeps many requests in flight; see
`bridge.storage.reading.ahead`.
"""

from __future__ import annotations

import contextlib
import heapq
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, cast

import numpy as np
import numpy.typing as npt

from bridge.formats.column_chunks import ChunkReader, ValueReader
from bridge.formats.file_format import FileFormat, StatisticsReader
from bridge.formats.lines.recipe import Recipe
from bridge.formats.parquet.statistics import Footer
from bridge.formats.parquet.stored_file import parse_stored
from bridge.formats.parquet.writers import doubts_about
from bridge.formats.registry import file_formats
from bridge.formats.statistics import FileStatistics
from bridge.index.building.column_scan import ColumnScan
from bridge.index.building.evidence import LARGEST, MOST, compare, evidence_to_text
from bridge.index.building.file_listeners import FileListener, file_listeners, notify
from bridge.index.building.listed import Listed
from bridge.index.building.sample import SCHEMA, SIGNATURE, Sampling, merge
from bridge.index.building.scan import column_ranges, leaf_scans, nanosecond_leaves
from bridge.index.building.value_scan import DEEP, READER
from bridge.index.generations.shard import Collected, CollectedBuilder
from bridge.index.kinds.definition import KindDefinition
from bridge.index.kinds.kind import FileFacts, Gathering, IndexKind, Row
from bridge.index.kinds.modes import Modes
from bridge.index.kinds.payload import rows_schema, table_of
from bridge.index.reading.column_resolution import width_leaf
from bridge.kernel.errors import (
    FileAmbiguous,
    FileCorrupt,
    FileUnreadable,
    StorageFailure,
    StorageFull,
)
from bridge.kernel.threads import Threads
from bridge.storage.batches import batches
from bridge.storage.port import Range, Storage, same_state
from bridge.storage.reading.ahead import REQUESTS, Fetch, Job, ReadFile, run_jobs
from bridge.storage.reading.one_read import OneRead
from bridge.storage.reading.source import WHOLE

Nan = Literal["footer", "scan"]
CHUNK = 256
REMOTE_CHUNK = 512
"""Larger where requests are in flight: few are at the end of a chunk."""
_SMALL = 1024 * 1024
"""Remote files up to this size are read whole if more than the footer is needed. Bytes."""
_AHEAD = 32 * 1024 * 1024
"""Most bytes of columns that are fetched ahead for one file. Larger ones are read in pieces."""
_WHOLE_FILES = 64 * 1024 * 1024
"""Bytes of a chunk of files that are read to their end."""
_BESIDE = 256 * 1024 * 1024
"""Most bytes of a chunk of which something else is made, too."""
CHANGED = "FILE_CHANGED: written while it was read"


@dataclass(frozen=True, slots=True)
class FileTask:
    """One file to read, as listed.

    Attributes:
        file: the number by which results refer to the file.
        format: the file format's name, one of `bridge.formats.registry.indexed_formats`.
        recipe: how the table declares it; None if the file says so itself.
    """

    file: int
    uri: str
    size: int
    modified: int
    etag: str | None = None
    format: str = "parquet"
    recipe: Recipe | None = None


def tasks_of(listed: Listed, numbers: npt.NDArray[np.int64], default_format: str) -> list[FileTask]:
    """Some of the listed files, by their numbers there."""
    return [
        FileTask(
            number,
            *(file.uri, file.size, file.modified, file.etag),
            listed.format_of(number, default_format),
            listed.recipe_of(number),
        )
        for number, file in zip(numbers.tolist(), listed.files.take(numbers).stats(), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Reading:
    """What to read from each file, in one pass.

    Attributes:
        nan: ``scan`` reads float columns to count NaN.
        kinds: the definitions other than min/max, each with its kind.
        modes: how much min/max keeps, by column; see `bridge.index.kinds.modes`.
        sampling: which files are sampled; see `bridge.index.building.sample`.
        shown: the most rows of files that were read to learn of a writer, if they are enough; see
            `bridge.index.building.evidence`.
        listeners: hear of each file.
    """

    nan: Nan = "footer"
    kinds: tuple[tuple[IndexKind, KindDefinition], ...] = ()
    modes: tuple[tuple[str, str], ...] = ()
    sampling: Sampling | None = None
    shown: Mapping[str, int] = field(default_factory=dict)
    listeners: tuple[FileListener, ...] = field(default_factory=file_listeners)


class Collector(Protocol):
    """Distributes the reading of files over threads or machines."""

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        """Yields the results in any order; each task appears once."""
        ...


class Beside(Protocol):
    """Makes something else of files in the pass that reads them for an index."""

    def part(self, uris: Sequence[str]) -> BesidePart:
        """What a chunk of files needs of it; it can be sent to an executor."""
        ...

    def accept_result(self, result: object) -> None:
        """Takes the result of a part, in the process of the caller."""
        ...


class BesidePart(Protocol):
    def open(self, storage: Storage) -> contextlib.AbstractContextManager[BesideChunk]: ...


class BesideChunk(Protocol):
    def take(self, uri: str) -> None:
        """Uses one file, which the storage has in memory if it is small."""
        ...

    def finish(self) -> object: ...


class ThreadCollector:
    """Reads in this process, for small refreshes and tests."""

    def __init__(
        self,
        storage: Storage,
        threads: int = 8,
        requests: int = REQUESTS,
        beside: Beside | None = None,
    ) -> None:
        self._storage = storage
        self._threads = threads
        self._requests = requests
        self._beside = beside

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        remote = any_remote(self._storage, tasks)
        size = REMOTE_CHUNK if remote else CHUNK
        cores = os.cpu_count() or 1
        chunks = chunks_of(tasks, size, cores, self._beside is not None)
        if len(chunks) == 1:
            yield self._chunk(chunks[0], reading)
            return
        # Each chunk of remote files has requests in flight; two of them leave no gap between.
        with Threads(2 if remote else self._threads, "build") as pool:
            yield from pool.map(lambda chunk: self._chunk(chunk, reading), chunks)

    def _chunk(self, tasks: Sequence[FileTask], reading: Reading) -> Collected:
        part = None if self._beside is None else self._beside.part([t.uri for t in tasks])
        found, other = collect_beside(tasks, self._storage, reading, part, None, self._requests)
        if self._beside is not None:
            self._beside.accept_result(other)
        return found


def chunks_of(
    tasks: Sequence[FileTask], most: int, cores: int, beside: bool
) -> list[list[FileTask]]:
    """The tasks in chunks, in their order.

    Args:
        most: files of a chunk. Files that are read to their end are also limited by their bytes.
        beside: something else is made of them.
    """
    total = sum(task.size for task in tasks)
    limit = _WHOLE_FILES
    if beside:
        limit = max(limit, min(_BESIDE, total // (2 * max(cores, 1))))

    def own(task: FileTask) -> int:
        return task.size if beside or task.recipe is not None else 0

    return list(batches(tasks, own, limit, most))


def collect_beside(
    tasks: Sequence[FileTask],
    storage: Storage,
    reading: Reading,
    part: BesidePart | None,
    formats: Mapping[str, FileFormat] | None = None,
    requests: int = REQUESTS,
) -> tuple[Collected, object]:
    """`collect_chunk`, and what a part makes of the same files, each of which is read once.

    Errors: of `collect_chunk`, and of the part.
    """
    if part is None:
        return collect_chunk(tasks, storage, reading, formats, requests), None
    once = OneRead(storage, {task.uri: task.size for task in tasks})
    with part.open(cast(Storage, once)) as beside:

        def also(uri: str) -> None:
            beside.take(uri)
            once.forget(uri)

        found = collect_chunk(tasks, cast(Storage, once), reading, formats, requests, also)
        return found, beside.finish()


def any_remote(storage: Storage, tasks: Sequence[FileTask]) -> bool:
    """Whether a request for one of the files waits for a network."""
    return any(storage.is_remote(task.uri) for task in tasks)


def collect_chunk(
    tasks: Sequence[FileTask],
    storage: Storage,
    reading: Reading,
    formats: Mapping[str, FileFormat] | None = None,
    requests: int = REQUESTS,
    also: Callable[[str], None] | None = None,
) -> Collected:
    """Reads some files. The result does not depend on the order in which requests are answered.

    One file never fails the others (correctness 27). A file that is damaged, deleted or changed
    since it was listed yields a problem instead of statistics, and so does any unexpected error.
    Only damage is remembered: an unexpected error may be the fault of this machine or program, so
    the file is retried. If the footer is intact and the data is damaged, the footer's statistics
    are kept.

    Args:
        formats: the formats of the tasks, by name; None: the installed ones.
        requests: most requests in flight on HDFS and object stores.
        also: called with the URI of each file after it was read, or could not be.

    Errors:
        StorageFailure: the storage cannot be reached. No result is returned for any file.
    """
    remote = any_remote(storage, tasks)
    known = formats if formats is not None else file_formats()
    chunk = _Chunk(storage, reading, known, _SMALL if remote else 0, _telling(tasks), also)
    run_jobs((chunk.read(task) for task in tasks), requests if remote else 1)
    return chunk.finish()


def _telling(tasks: Sequence[FileTask]) -> frozenset[int]:
    """The files that are read to learn of their writers, if those are not on the list."""
    fit = [task for task in tasks if task.recipe is None and task.size <= LARGEST]
    return frozenset(t.file for t in heapq.nlargest(MOST, fit, lambda t: (t.size, t.uri)))


@dataclass(slots=True)
class _Chunk:
    storage: Storage
    reading: Reading
    formats: Mapping[str, FileFormat]
    small: int
    telling: frozenset[int] = frozenset()
    also: Callable[[str], None] | None = None
    readers: dict[object, Callable[..., Footer]] = field(default_factory=dict)
    builder: CollectedBuilder = field(default_factory=CollectedBuilder)
    modes: Modes = field(init=False)
    rows: dict[str, list[Row]] = field(init=False)

    def __post_init__(self) -> None:
        self.modes = Modes(self.reading.modes)
        self.rows = {definition.signature: [] for _, definition in self.reading.kinds}
        self.rows[SIGNATURE] = []

    def read(self, task: FileTask) -> Job:
        listeners = self.reading.listeners
        notify(listeners, lambda each: each.begin(task.uri))
        problem = yield from self._indexed(task)
        notify(listeners, lambda each: each.end(task.uri, problem))
        if self.also is not None:
            self.also(task.uri)

    def _indexed(self, task: FileTask) -> Generator[Fetch, None, str | None]:
        """Returns what is wrong with the file."""
        file = ReadFile(self.storage, task.uri, task.size)
        format = self.formats[task.format]
        assert format.collect is not None, f"{format.name} is not indexed"
        entry = _Entry(self, task, file, format.by_position)
        try:
            yield from format.collect(entry)
            statistics = entry.statistics
        except FileUnreadable as error:
            return self._failed(task, f"{error.code}: {error.message}")
        except (FileAmbiguous, FileCorrupt) as error:
            return self._failed(task, f"{error.code}: {error.message} (read as {task.format})")
        except (StorageFailure, StorageFull, KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:  # Rust's panics are no Exception; correctness 27
            what = f"{type(error).__name__}: {error}".partition("\n")[0]
            return self._failed(task, f"{FileUnreadable.code}: {task.uri}: cannot be read: {what}")
        # Every byte must be of the listed file (correctness 19).
        states = file.states or [self.storage.stat(task.uri)]
        if not all(state is not None and same_state(task, state) for state in states):
            self.builder.add_failure(task.file, CHANGED)
            return CHANGED
        problem = entry.problem and _legible(entry.problem)
        if self.modes:
            for leaf in statistics.leaves:
                self.modes.apply(leaf)
        self.builder.add(task.file, statistics, problem)
        for signature, found in entry.rows.items():
            self.rows[signature] += ({"file": task.file, **row} for row in found)
        return problem

    def _failed(self, task: FileTask, reason: str) -> str:
        after = self.storage.stat(task.uri)
        changed = after is not None and not same_state(task, after)
        told = CHANGED if changed else _legible(reason)
        self.builder.add_failure(task.file, told)
        return told

    def finish(self) -> Collected:
        collected = self.builder.finish()
        tables = {}
        for kind, definition in self.reading.kinds:
            schema = rows_schema(kind.schema, kind.has_body)
            tables[definition.signature] = kind.reduce(
                table_of(self.rows[definition.signature], schema)
            )
        if self.reading.sampling is not None:
            tables[SIGNATURE] = merge(table_of(self.rows[SIGNATURE], SCHEMA))
        return Collected(collected.files, collected.columns, tables)


@dataclass(slots=True)
class _Entry:
    """The entry of one file of a chunk; implements `EntryBuilder`.

    Attributes:
        by_position: engines may find columns of the file by position.
        statistics: for min/max.
        rows: for the other indexes, by signature of their definition.
        problem: that the data is damaged or cannot be read; the statistics hold all the same.
    """

    chunk: _Chunk
    task: FileTask
    file: ReadFile
    by_position: bool
    statistics: FileStatistics = field(init=False)
    rows: dict[str, list[Row]] = field(default_factory=dict)
    problem: str | None = None

    @property
    def has_kinds(self) -> bool:
        return bool(self.chunk.reading.kinds)

    def from_columns(self, read: ChunkReader) -> Job:
        yield from self._fetch_small()
        task = self.task
        if task.recipe is None:
            raise FileAmbiguous(
                f"{task.uri}: the table does not say how {task.format} files are read",
                "declare the table in a metastore",
            )
        chunks = read(self._stored, task.uri, task.size, task.recipe)
        facts = FileFacts(task.uri, task.size, None, chunks.leaves, False, lambda ranges: [])
        self.statistics, gatherings = ColumnScan(chunks, self._gatherings(facts)).run()
        self.rows = _finish(gatherings)

    def from_values(self, read: ValueReader) -> Job:
        yield from self._fetch_small()
        definitions = [definition for _, definition in self.chunk.reading.kinds]
        asked = self.task.uri, self.task.size, read, definitions
        self.statistics, self.rows = READER.read(self._stored, *asked)
        self._add_width()

    def from_statistics(self, read: StatisticsReader) -> Job:
        yield from self._fetch_small()
        self.statistics = read(self._stored, self.task.uri, self.task.size)
        self._add_width()

    def from_footer(self, open_reader: Callable[[], Callable[..., Footer]], tail: int) -> Job:
        task, file, reading = self.task, self.file, self.chunk.reading
        yield Fetch(file, [self._end(tail)])
        readers = self.chunk.readers
        if open_reader not in readers:
            readers[open_reader] = open_reader()
        footer = readers[open_reader](self._stored, task.uri, task.size)
        self.statistics = footer
        sampling = reading.sampling
        if sampling is not None and not sampling.takes(task.uri):
            sampling = None
        facts = self._facts(footer)
        known = [r for kind, d in reading.kinds for r in kind.ahead(d, facts)]
        known = file.missing(known)
        if known:
            with contextlib.suppress(FileUnreadable):  # it is asked for again, and then decided
                yield Fetch(file, known)
        gatherings = self._gatherings(facts)
        tells, counted = self._tells(footer), reading.nan == "scan"
        scans = leaf_scans(footer) if counted or tells else []
        times = nanosecond_leaves(footer) if counted or tells else []
        every: list[Gathering] = [*scans, *gatherings.values()]
        columns = file.missing(column_ranges(footer, every, times))
        if columns and sum(end - start for start, end in columns) <= _AHEAD:
            yield Fetch(file, columns)
        deep = [
            (kind, d)
            for kind, d in reading.kinds
            if d.signature in gatherings and gatherings[d.signature].leaves
        ]
        self.rows = _finish({s: g for s, g in gatherings.items() if not g.leaves})
        if not footer.rows or not (deep or scans or times or sampling):
            for each in scans:
                each.finish()
            self.rows = _finish(gatherings)
            return
        asked = task.uri, task.size, footer.tail, bool(scans or times), deep, sampling
        stated = footer.leaves
        try:
            found = DEEP.read(self._stored, *asked, ahead=False)
            footer.leaves, rows, far, self.problem = found
        except Exception as error:
            if not (deep or counted):  # the sample is a help
                return
            if not isinstance(error, FileCorrupt):
                raise
            self.problem = f"{error.code}: {error.message}"
            return
        if far is not None and footer.stored is not None:
            footer.stored = replace(parse_stored(footer.stored), far=far).spell()
        if tells:
            footer.shown = evidence_to_text(compare(stated, footer, self.problem))
            self.problem = self.problem if deep or counted else None
        self.rows |= rows

    @property
    def _stored(self) -> Storage:
        """The file as readers take it: they use ``read`` and ``read_ranges`` alone."""
        return cast(Storage, self.file)

    def _fetch_small(self) -> Job:
        """Reads a small file whole; of another the format's reader decides."""
        if self.task.size <= WHOLE:
            yield Fetch(self.file, [(0, self.task.size)])

    def _end(self, tail: int) -> Range:
        """What is read first of a file with a footer."""
        reading, task, whole = self.chunk.reading, self.task, tail
        if reading.nan == "scan" or reading.kinds:
            whole = max(whole, self.chunk.small)
        if self.chunk.small and reading.sampling and reading.sampling.takes(task.uri):
            whole = max(whole, WHOLE)
        return (0 if task.size <= whole else task.size - tail, task.size)

    def _tells(self, footer: Footer) -> bool:
        """Whether the file's values are compared with what its writer states."""
        if self.task.file not in self.chunk.telling or not doubts_about(footer.writer).provable:
            return False
        return footer.rows > self.chunk.reading.shown.get(footer.writer or "", -1)

    def _add_width(self) -> None:
        if self.by_position:
            self.statistics.leaves.append(width_leaf(len(self.statistics.leaves)))

    def _facts(self, footer: Footer) -> FileFacts:
        task, file, tail = self.task, self.file, footer.tail
        start = task.size - len(tail)

        def read_ranges(ranges: Sequence[Range]) -> list[bytes]:
            if all(begin >= start for begin, _ in ranges):
                return [tail[begin - start : end - start] for begin, end in ranges]
            return file.read_ranges(task.uri, ranges)

        return FileFacts(
            task.uri,
            task.size,
            footer.groups,
            tuple(leaf.column for leaf in footer.leaves),
            footer.legacy,
            read_ranges,
        )

    def _gatherings(self, facts: FileFacts) -> dict[str, Gathering]:
        found: dict[str, Gathering] = {}
        for kind, definition in self.chunk.reading.kinds:
            gathering = kind.gather(definition, facts)
            if gathering is not None:
                found[definition.signature] = gathering
        return found


def _finish(gatherings: Mapping[str, Gathering]) -> dict[str, list[Row]]:
    """The rows of a file, by the signature of their definition."""
    return {signature: list(gathering.finish()) for signature, gathering in gatherings.items()}


def _legible(reason: str) -> str:
    """Escapes what is not valid UTF-8: errors quote values from files."""
    return reason.encode("utf-8", "backslashreplace").decode()
