"""Builds the files of views from the facts of a segment.

A chunk of facts becomes files of its own, in one thread or in one task of Spark. Files of facts
that store a column in different ways become different files of the view. GLOBAL_SORT merges the
chunks' files at the end. Nothing here commits: files that no version of the table names are
garbage, which a cleanup removes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pyarrow as pa

from bridge.formats.parquet.tables import table_file
from bridge.formats.rows_in_child import damage_as_errors
from bridge.kernel.errors import FileAmbiguous, FileCorrupt, StorageFailure
from bridge.kernel.threads import Threads
from bridge.segments.views.definition import SortScope, ViewDefinition
from bridge.segments.views.facts import FactFile, NotCertain, open_facts, require_same
from bridge.segments.views.sorted_files import RUN_BYTES, SortedFiles, WrittenFile
from bridge.storage.child import ChildReader
from bridge.storage.port import Storage
from bridge.storage.reading.one_read import OneRead
from bridge.storage.reading.source import is_passing, open_source
from bridge.table.model import Column

CHUNK_BYTES = 256 << 20
"""Bytes of facts that one task reads."""
_THREADS = 4


@dataclass(frozen=True, slots=True)
class ViewFile:
    """A file of a view in storage.

    Attributes:
        modified, etag: as storage tells them after the file was written.
        rows: -1 if it is not known here.
        partition: the name of the one that all its rows are of.
    """

    uri: str
    size: int
    modified: int
    etag: str | None
    rows: int = -1
    partition: str = ""


@dataclass(frozen=True, slots=True)
class ViewTarget:
    """A view to build.

    Attributes:
        columns: the view's columns, with the table's types.
        directory: canonical URI; files get unique names in it.
    """

    view: ViewDefinition
    columns: tuple[Column, ...]
    directory: str


@dataclass(frozen=True, slots=True)
class Built:
    """What became of one view of some facts.

    Attributes:
        files: empty also where the facts have no row.
        rows: of all files, as many as the facts have; of a merge not known.
        reason: why the view was not built from these facts; empty: it was.
    """

    files: tuple[ViewFile, ...] = ()
    rows: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BuiltChunk:
    """What became of a chunk.

    Attributes:
        facts: the URIs of its facts.
        views: one result for each target.
    """

    facts: tuple[str, ...]
    views: list[Built]


@dataclass(frozen=True, slots=True)
class ViewTask:
    """The task of one thread or executor."""

    facts: tuple[FactFile, ...]
    targets: tuple[ViewTarget, ...]


Runner = Callable[[Sequence[ViewTask]], Iterator[list[Built]]]
"""Runs `build_chunk` for each chunk; yields the results in the order of the chunks."""


def build(
    facts: Sequence[FactFile],
    targets: Sequence[ViewTarget],
    storage: Storage,
    run: Runner,
    *,
    made: Sequence[list[Built]] = (),
    chunk_bytes: int = CHUNK_BYTES,
) -> list[Built]:
    """Builds views from all facts of a segment; one result for each target.

    A view whose values are not certain is left out with the reason; it never fails the others.

    Args:
        made: results of further facts of the segment, for the same targets; see `BuildBeside`.

    Errors:
        FileChanged, FileUnreadable, StorageFailure, StorageFull: nothing is built.
    """
    results = [*made, *run(chunks(facts, targets, chunk_bytes))]
    return [
        _joined(target, [found[i] for found in results], storage)
        for i, target in enumerate(targets)
    ]


def chunks(
    facts: Sequence[FactFile], targets: Sequence[ViewTarget], chunk_bytes: int = CHUNK_BYTES
) -> list[ViewTask]:
    """The facts in pieces of about ``chunk_bytes``, in their order."""
    found: list[ViewTask] = []
    held: list[FactFile] = []
    size = 0
    for fact in facts:
        if held and size + fact.size > chunk_bytes:
            found.append(ViewTask(tuple(held), tuple(targets)))
            held, size = [], 0
        held.append(fact)
        size += fact.size
    if held:
        found.append(ViewTask(tuple(held), tuple(targets)))
    return found


def in_threads(storage: Storage, threads: int = _THREADS) -> Runner:
    """Runs chunks in this process."""

    def run(tasks: Sequence[ViewTask]) -> Iterator[list[Built]]:
        with Threads(min(threads, len(tasks)), "view") as pool:
            yield from pool.map(lambda task: build_chunk(task, storage), tasks)

    return run


def build_chunk(chunk: ViewTask, storage: Storage) -> list[Built]:
    """One result for each target of the chunk. Errors: as `build`."""
    once = OneRead(storage, {fact.uri: fact.size for fact in chunk.facts})  # for all targets
    with ChunkBuild(chunk, cast(Storage, once)) as building:
        for fact in chunk.facts:
            building.take(fact.uri)
            once.forget(fact.uri)
        return building.finish().views


class ChunkBuild:
    """Builds all views of a chunk, fact by fact; a context that leaves no file if it fails."""

    def __init__(self, chunk: ViewTask, storage: Storage) -> None:
        self._facts = {fact.uri: fact for fact in chunk.facts}
        self._storage = storage
        self._views = [_ViewBuild(target, storage) for target in chunk.targets]
        self._taken: list[str] = []

    def __enter__(self) -> ChunkBuild:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for view in self._views:
            view.discard(failed=error is not None)

    def take(self, uri: str) -> None:
        """Adds the rows of a fact; of a file that is none, nothing. Errors: as `build`."""
        fact = self._facts.get(uri)
        if fact is None:
            return
        for view in self._views:
            view.take(fact)
        require_same(self._storage, fact)
        self._taken.append(uri)

    def finish(self) -> BuiltChunk:
        """Ends the files. Errors: as `build`."""
        return BuiltChunk(tuple(self._taken), [view.finish() for view in self._views])


class _ViewBuild:
    """One view of the facts of a chunk."""

    def __init__(self, target: ViewTarget, storage: Storage, run_bytes: int = RUN_BYTES) -> None:
        self._target, self._storage = target, storage
        self._place = _Place(storage, target.directory)
        self._writers = _Writers(target.view, self._place, run_bytes)
        self._reason = ""

    def take(self, fact: FactFile) -> None:
        if self._reason:
            return
        try:
            opened = open_facts(self._storage, fact, self._target.columns)
            writer = self._writers.of(opened.schema, fact.partition)
            for batch in opened.batches():
                writer.add(batch)
        except (NotCertain, FileCorrupt, FileAmbiguous) as error:
            # Facts that are damaged fail the queries that read them, as without a view.
            self._reason = str(error)
            self.discard(failed=True)

    def finish(self) -> Built:
        if self._reason:
            return Built(reason=self._reason)
        return self._place.built(self._writers.finish())

    def discard(self, *, failed: bool) -> None:
        """Frees memory and temporary files, and takes written files away if it failed."""
        self._writers.discard()
        if failed:
            self._place.clear()


@dataclass(frozen=True, slots=True)
class BuildPart:
    """A chunk that is built while its facts are read for something else."""

    chunk: ViewTask

    def open(self, storage: Storage) -> ChunkBuild:
        return ChunkBuild(self.chunk, storage)


class BuildBeside:
    """Builds views in the pass that reads facts for an index.

    The law: each fact is in the result once. If the other pass reads a fact twice, all that was
    built is thrown away; what it did not read is told by `left`.
    """

    def __init__(
        self, facts: Sequence[FactFile], targets: Sequence[ViewTarget], storage: Storage
    ) -> None:
        self._facts = {fact.uri: fact for fact in facts}
        self._targets, self._storage = tuple(targets), storage
        self._made: list[BuiltChunk] = []

    def part(self, uris: Sequence[str]) -> BuildPart:
        """What one chunk of the other pass needs."""
        mine = tuple(self._facts[uri] for uri in uris if uri in self._facts)
        return BuildPart(ViewTask(mine, self._targets if mine else ()))

    def accept_result(self, result: object) -> None:
        """Takes the result of one chunk."""
        chunk = cast(BuiltChunk, result)
        if chunk.facts:
            self._made.append(chunk)

    def split_results(self) -> tuple[list[list[Built]], list[FactFile]]:
        """The results so far, and the facts that are in none of them."""
        taken = [uri for chunk in self._made for uri in chunk.facts]
        if len(set(taken)) < len(taken):
            self.discard()
            taken = []
        rest = self._facts.keys() - set(taken)
        return [c.views for c in self._made], [f for u, f in self._facts.items() if u in rest]

    def discard(self) -> None:
        """Deletes what was built."""
        for chunk in self._made:
            _delete(self._storage, chunk.views)
        self._made = []


def merge(parts: Sequence[Built], target: ViewTarget, storage: Storage) -> Built:
    """One sorted file set of the rows of all parts, whose own files stay as they are.

    Errors:
        FileCorrupt: a view's file is damaged.
        FileUnreadable, StorageFailure, StorageFull.
    """
    every = sorted((f for part in parts for f in part.files), key=lambda file: file.partition)
    with _Place(storage, target.directory) as place:
        scope = SortScope.GLOBAL_SORT if target.view.sort_columns else SortScope.NO_SORT
        view = _with_scope(target.view, scope)
        writers = _Writers(view, place, RUN_BYTES)
        try:
            for file in every:
                read = _BATCHES.stream(storage, file.uri, file.size)
                schema, stated = next(read)
                writer = writers.of(schema, file.partition)
                rows = 0
                for batch in read:
                    rows += batch.num_rows
                    writer.add(batch)
                if rows != stated or file.rows not in (-1, rows):
                    raise FileCorrupt(f"{file.uri} lacks rows", "rebuild the view")
            written = writers.finish()
        except (pa.ArrowException, OSError, ValueError) as error:
            if is_passing(error):
                raise
            raise FileCorrupt(f"a file of view {view.name}: {error}", "rebuild the view") from error
        finally:
            writers.discard()
        return place.built(written)


def batches(storage: Storage, uri: str, size: int) -> Iterator[Any]:
    """The schema and number of rows of a view's file, then its rows. Runs in the child."""
    with damage_as_errors(uri):
        reader = table_file(open_source(storage, uri, size))
        yield reader.schema_arrow.remove_metadata(), reader.metadata.num_rows
        for batch in reader.iter_batches():
            yield batch.replace_schema_metadata(None)


_BATCHES: ChildReader[Any] = ChildReader(batches)


def _with_scope(view: ViewDefinition, scope: SortScope) -> ViewDefinition:
    return ViewDefinition(
        view.name, view.columns, view.sort_columns, scope, view.file_bytes, view.dictionary
    )


def _joined(target: ViewTarget, parts: Sequence[Built], storage: Storage) -> Built:
    refused = next((part for part in parts if part.reason), None)
    if refused is not None:
        _delete(storage, parts)
        return Built(reason=refused.reason)
    whole = Built(tuple(f for p in parts for f in p.files), sum(p.rows for p in parts))
    if target.view.sort_scope is not SortScope.GLOBAL_SORT or len(parts) < 2:
        return whole
    merged = merge(parts, target, storage)
    _delete(storage, parts)
    return merged


def _delete(storage: Storage, parts: Sequence[Built]) -> None:
    """Removes files that nobody refers to; a cleanup would remove them later."""
    for part in parts:
        for file in part.files:
            try:
                storage.delete(file.uri)
            except StorageFailure:
                return


class _Writers:
    """Writes rows of one partition after another; what is stored in different ways apart."""

    def __init__(self, view: ViewDefinition, place: _Place, run_bytes: int) -> None:
        self._view, self._place, self._run_bytes = view, place, run_bytes
        self._open: dict[pa.Schema, SortedFiles] = {}
        self._partition = ""
        self._rows = 0

    def of(self, schema: pa.Schema, partition: str) -> SortedFiles:
        """The writer of some rows. It ends the files of another partition."""
        if partition != self._partition:
            self.finish()
            self._partition = partition
        if schema not in self._open:
            share = max(self._run_bytes // (1 + len(self._open)), 1 << 20)
            put = partial(self._place.put, partition=partition)
            self._open[schema] = SortedFiles(self._view, schema, put, run_bytes=share)
        return self._open[schema]

    def finish(self) -> int:
        """Ends all files; the number of rows that were written."""
        for writer in self._open.values():
            writer.finish()
        self._rows += sum(writer.rows for writer in self._open.values())
        self._open = {}
        return self._rows

    def discard(self) -> None:
        """Frees memory and temporary files."""
        for writer in self._open.values():
            writer.discard()


class _Place:
    """Puts files into storage, and takes them away again if their making fails."""

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage, self._directory = storage, directory.rstrip("/")
        self._files: list[ViewFile] = []

    def __enter__(self) -> _Place:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            self.clear()

    def put(self, file: WrittenFile, partition: str = "") -> None:
        uri = f"{self._directory}/{uuid.uuid4().hex}.parquet"
        self._storage.put(uri, file.content)
        stat = self._storage.stat(uri)
        if stat is None or stat.size != len(file.content):
            raise StorageFailure(f"{uri} was written and is not there", "try again")
        self._files.append(
            ViewFile(stat.uri, stat.size, stat.modified, stat.etag, file.rows, partition)
        )

    def built(self, rows: int) -> Built:
        written = sum(file.rows for file in self._files)
        if written != rows:  # never commit a view that lacks a row
            self.clear()
            raise AssertionError(f"{written} rows were written of {rows}")
        return Built(tuple(self._files), rows)

    def clear(self) -> None:
        _delete(self._storage, [Built(tuple(self._files))])
        self._files = []
