"""The interfaces of table formats and of snapshots.

A table format opens snapshots; a snapshot provides file slices. Formats are found by name: a
package in `bridge.table` whose module ``format`` has a ``TABLE_FORMAT``, or an entry point of
another distribution in the group ``skipbridge.table_formats`` (see docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from bridge.expression.nodes import BoundExpression, Expression
from bridge.kernel.errors import BridgeError, ReadVersionUnsupported
from bridge.kernel.types import Semantics, Type
from bridge.storage.port import FileTable, Storage
from bridge.table.directory.discovered import Discovered
from bridge.table.directory.freshness import Freshness
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import (
    Catalog,
    CatalogTable,
    Partition,
    PartitionBatch,
    PartitionFetch,
    TableName,
)
from bridge.table.read_version import ReadVersion
from bridge.table.slices import IndexFiles, Int64Array, Mask, ReaderSpec, SliceBatch

Columns = frozenset[str] | None
"""Names of the columns that a scan reads, in lower case; None: all."""


@dataclass(frozen=True, slots=True)
class TableContext:
    """Services and settings for a table format.

    Attributes:
        lister: lists directories in parallel, and caches listings.
        index: the table's index; None if there is none.
        index_at: opens a generation by number. Errors: GenerationNotFound and others.
        freshness: how old a directory listing may be; formats that commit file sets ignore it.
        absent_is_empty: a partition whose directory does not exist is empty, as in Hive.
        arrived: when the query arrived, by the monotonic clock: what was read since is new enough
            for any freshness. None: now.
        index_of: the newest index of another table, such as the files of a view; None: it has none.
    """

    storage: Storage
    catalog: Catalog
    lister: DirectoryLister
    index: IndexFiles | None
    index_at: Callable[[int], IndexFiles | None]
    freshness: Freshness
    absent_is_empty: bool = False
    arrived: float | None = None
    index_of: Callable[[CatalogTable], IndexFiles | None] = lambda _: None


class Snapshot(Protocol):
    """One version of a table, as all scans of one query see it; safe for threads.

    Attributes:
        id: lets any planner reopen the same snapshot; empty if it cannot, as for a listing.
        table: with the schema of that version.
        index: the index that most slices are matched with; None if there is none.
        row_filter: rows outside it are not part of the version; readers enforce it.
        committed: the file set is authoritative: damage is an error, never a reason to list.
        freshness: as reports show it: ``live``, ``cached(60s)``, ``snapshot``, ``committed``.
        plans_without_io: slices need neither the metastore nor storage.
        listed_files: files held in memory, without those mapped from the index; a partition that is
            held counts as the files that take as much memory.

    Errors of every method: MetastoreUnavailable, StorageFailure and others; a failed read never
    counts as empty.
    """

    id: str
    table: CatalogTable
    index: IndexFiles | None
    row_filter: Expression
    committed: bool
    freshness: str
    plans_without_io: bool

    @property
    def listed_files(self) -> int: ...

    def partition_names(self) -> list[str]:
        """Names of all partitions; ``[""]`` for a table without partitions."""
        ...

    def partitions(self, names: list[str]) -> PartitionFetch:
        """Partitions in growing batches, in the order of ``names``."""
        ...

    def begin(self) -> None:
        """Starts the first I/O of a scan in the background.

        A failure surfaces when a scan repeats the request.
        """
        ...

    def slices(self, batch: PartitionBatch, columns: Columns) -> Iterator[SliceBatch]:
        """The slices of some partitions; a large partition yields several batches.

        Args:
            columns: all that the scan reads or compares, hidden columns among them. Slices may
                lack the others.
        """
        ...

    def indexed_slices(self, partition: Partition) -> SliceBatch | None:
        """What the index says a partition holds, if that is known earlier than `slices`.

        Each slice must pass `unchanged` before use. None if `slices` is as fast, or the index does
        not know.
        """
        ...

    def find_unchanged(self, slices: SliceBatch) -> Mask:
        """Marks slices of `indexed_slices` that are in storage exactly as indexed."""
        ...


@runtime_checkable
class HasFileSet(Protocol):
    """A snapshot whose file set may be that of an index generation, whatever storage holds."""

    @property
    def file_set(self) -> IndexFiles | None:
        """The generation that has all files of the scan; None if a listing may bring others."""
        ...


class OwnIndex(Protocol):
    """What a table format itself knows of base files, whoever built an index of ours.

    The law is that of `bridge.index.kinds.kind`. Nothing is said of slices with logs.

    Attributes:
        source: what keeps it, as reports show it.
        problem: why nothing is known; None if nothing has failed.
    """

    source: str
    problem: BridgeError | None

    @property
    def num_files(self) -> int: ...

    @property
    def files(self) -> FileTable:
        """The files in question; one that is not there has no path."""
        ...

    def match(self, files: FileTable) -> Int64Array:
        """The place of each file among `files`; -1 if it has none."""
        ...

    def ask(self, expression: BoundExpression) -> None:
        """Begins to read, in other threads, what is not known yet of the expression's columns."""
        ...

    def columns(self, expression: BoundExpression) -> tuple[str, ...]:
        """Columns of the expression of which something is known by now."""
        ...

    def never(self, expression: BoundExpression, semantics: Semantics) -> Mask | None:
        """Those of `files` in which no row satisfies the expression; None: nothing is known."""
        ...


@runtime_checkable
class HasOwnIndexes(Protocol):
    """A snapshot whose format may keep indexes of its own."""

    @property
    def own_indexes(self) -> Sequence[OwnIndex]:
        """The cheapest first; empty if this table has none."""
        ...


@dataclass(frozen=True, slots=True)
class ViewUse:
    """What a scan reads of one view of a table, or why it reads none of it.

    Attributes:
        segments: that are read from the view.
        facts: files of facts that are not read.
        files: files of the view that stand for them.
        bytes: size of those.
        not_built: segments whose facts are read, since the view has no current files of them.
        lacking: columns that the scan needs and the view does not hold; then no segment uses it.
    """

    view: str
    segments: int = 0
    facts: int = 0
    files: int = 0
    bytes: int = 0
    not_built: int = 0
    lacking: tuple[str, ...] = ()


ReadsAlike = Callable[[str, Type], bool]
"""Whether an engine reads the same values of a type from a view as from facts of a format."""


def always_alike(format: str, type: Type) -> bool:
    """Of a reader that leaves every conversion to itself."""
    return True


@runtime_checkable
class HasViews(Protocol):
    """A snapshot whose `slices` may stand for others that hold the same rows with fewer columns."""

    def fact_formats(self) -> frozenset[str]:
        """The names of the formats of those others."""
        ...

    def view_uses(self, columns: Columns) -> Sequence[ViewUse]:
        """What a scan of these columns makes of each view."""
        ...


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An action on a table, in its latest state.

    Attributes:
        instant: its name. Where it made a version, a query can name that version by it.
        completion: when it was completed, as the format spells it; None if it is pending, or the
            format does not tell.
        action: ``commit``, ``clean`` and others, in the format's words.
        state: ``requested``, ``inflight`` or ``completed``.
        size: bytes of its record; -1 if unknown.
        modified: of its record, in microseconds since the epoch; negative if unknown.
    """

    instant: str
    completion: str | None
    action: str
    state: str
    size: int = -1
    modified: int = -1


@runtime_checkable
class HasTimeline(Protocol):
    """A snapshot of a format that records its history. Formats without one leave this out."""

    def timeline(self) -> Sequence[TimelineEntry]:
        """The actions that the format still records, the oldest request first."""
        ...

    def commits(self, slices: SliceBatch) -> list[str | None]:
        """The instant that wrote each base file; None where there is none or it is not known."""
        ...


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """A segment of a table that consists of segments.

    Attributes:
        started, finished: microseconds since the epoch.
        files, size: as of when the files were added.
        indexed_files: files that the index knows as they are recorded; -1: there is no index.
        views: the state of each view, by its name.
        merged_into: the segment that holds its files now.
    """

    id: str
    status: str
    started: int
    finished: int
    format: str
    files: int
    size: int
    indexed_files: int
    views: Mapping[str, str]
    merged_into: str | None
    paths: tuple[str, ...]


@runtime_checkable
class HasSegments(Protocol):
    """A snapshot of a table that consists of segments."""

    def segment_entries(self) -> Sequence[SegmentEntry]:
        """All segments that the version names, also those that are not read."""
        ...

    def index_names(self) -> Sequence[str]:
        """The indexes that the table defines, whether they are built or not."""
        ...


def timeline_of(snapshot: Snapshot) -> Sequence[TimelineEntry]:
    """A snapshot's timeline. Errors: ReadVersionUnsupported: its format keeps none."""
    if not isinstance(snapshot, HasTimeline):
        raise ReadVersionUnsupported(
            f"{snapshot.table.name} has no timeline: its format, {snapshot.table.table_format}, "
            "keeps no history",
            "only tables of a versioned format have one",
        )
    return snapshot.timeline()


class TableFormat(Protocol):
    """The interface of a table format.

    Attributes:
        name: unique, in lower case.
        versioned: whether `snapshot` accepts versions other than the newest.

    A format whose tables describe themselves has a method ``define`` as well (`DefinesTables`).
    """

    name: str
    versioned: bool

    def recognises(self, properties: Mapping[str, str], input_format: str) -> bool:
        """Whether a table of the metastore has this format.

        Args:
            input_format: the Hive input format class in its storage descriptor.
        """
        ...

    def snapshot(
        self, table: CatalogTable, read: ReadVersion, context: TableContext, id: str = ""
    ) -> Snapshot:
        """Opens a version of a table.

        Args:
            id: of a snapshot opened earlier; empty: open what ``read`` names.

        Errors:
            ReadVersionNotFound: there is no such version, or it was cleaned up.
            ReadVersionUnsupported: the format does not support this read. ``read_optimized`` is
                never refused: a table without logs is read as it is.
            SnapshotExpired: ``id`` cannot be reopened.
        """
        ...

    def discover(self, location: str, storage: Storage, threads: int = 16) -> Discovered:
        """What a location holds, independent of the metastore; used by sync.

        Args:
            threads: listings in flight at once.

        Errors:
            StorageFailure, InvalidUri.
        """
        ...


@dataclass(frozen=True, slots=True)
class MergedSlice:
    """One slice with logs, or of logs alone.

    Attributes:
        base: URI and size of its base file; None: it has none.
        logs: URI and planned length of each log, in merge order.
        reader: how it is read.
    """

    base: tuple[str, int] | None
    logs: tuple[tuple[str, int], ...]
    reader: ReaderSpec


@runtime_checkable
class DefinesTables(Protocol):
    """A table format whose tables need no metastore: their root tells columns and keys.

    Attributes:
        marker: the directory directly below a table's root by which it is recognised.
    """

    marker: str

    def define(self, name: TableName, location: str, storage: Storage) -> CatalogTable:
        """The table at a location.

        Errors:
            UnsupportedTable, FileCorrupt, StorageFailure.
        """
        ...


@runtime_checkable
class MergesSlices(Protocol):
    """A table format whose slices with logs can be read in this process."""

    def read_slice(self, storage: Storage, slice: MergedSlice, schema: pa.Schema) -> pa.Table:
        """All rows of a slice after merging, unfiltered, with exactly the columns of ``schema``.

        Args:
            schema: all data columns of the table, names in lower case.

        Errors:
            UnsupportedTable: this table's merge is not done here.
            FileChanged, FileCorrupt, StorageFailure.
        """
        ...


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What the index entries of a table's files say about the rows that its own readers return.

    Attributes:
        logs: of logs too: a row after merging is a row of the base file or of one log.
        names: of the columns, as the table spells them. Its readers may miss other spellings.
        own_indexes: what the format itself knows of the newest base files.
    """

    logs: bool
    names: frozenset[str]
    own_indexes: Sequence[OwnIndex] = ()


@runtime_checkable
class ReadByHive(Protocol):
    """A table format that Hive reads through the format's own classes, which list its slices.

    The law: a file is identified by path and size alone. Hive may read a slice as of any version,
    so what is left out must hold no matching row whatever version it is.

    Attributes:
        hive_hooks: by Hive's input format, the class of the hooks that extends it.
    """

    hive_hooks: Mapping[str, str]

    def written_files(self, table: CatalogTable, context: TableContext) -> WrittenFiles:
        """What may be concluded from index entries.

        Errors:
            UnsupportedTable: nothing.
            TableNotFound, FileCorrupt, StorageFailure.
        """
        ...
