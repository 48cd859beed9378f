"""Hudi tables that this process knows: each timeline is read once and advanced by new instants."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.threads import Threads
from bridge.storage.port import Storage
from bridge.table.hudi.files import bloom_index, column_bounds, record_index, secondary_index
from bridge.table.hudi.files.bloom_index import BloomIndex
from bridge.table.hudi.files.column_bounds import HudiBounds
from bridge.table.hudi.files.file_sets import check_history, file_set
from bridge.table.hudi.files.file_slices import FileSlices
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.files.record_index import RecordIndex
from bridge.table.hudi.files.secondary_index import SecondaryIndex
from bridge.table.hudi.schema.schema_history import SchemaHistory, list_schemas, load_schema_history
from bridge.table.hudi.table_config import TableType
from bridge.table.snapshot import OwnIndex

_MOST = 256
_THREADS = 32
"""Requests in flight; threads start when they are needed."""
_DECODERS = 2
"""Of bounds of columns: Python runs one at a time, while the others wait for storage."""
_COW = TableType.COPY_ON_WRITE
_VERSIONS = 4
"""Versions of one table whose slices are held: the newest, and those of running queries."""


@dataclass(frozen=True, slots=True)
class Version:
    """Which instants count; without either: all.

    Attributes:
        as_of: those requested then or earlier.
        completed_by: those completed then or earlier; from table version 8 on.
    """

    as_of: str | None = None
    completed_by: str | None = None


NEWEST = Version()
_Version = tuple[int, Version, bool]


class OpenTable:
    """One table; safe for threads.

    The law: a view began to be read after the query that asks for it arrived. Queries that arrive
    while the timeline is being read share the next reading.
    """

    def __init__(self, storage: Storage, base: str, pool: Executor, decoders: Executor) -> None:
        self._storage, self._base, self._pool = storage, base, pool
        self._decoders = decoders
        self._reading = threading.Lock()
        self._listing = threading.RLock()
        self._files: tuple[FileSystemView, FileListing | None] | None = None
        self._history: tuple[FileSystemView, SchemaHistory | None] | None = None
        self._schemas: tuple[FileSystemView, Future[list[str]]] | None = None
        self._view: FileSystemView | None = None
        self._began = float("-inf")
        self._slices: BoundedCache[_Version, tuple[FileSystemView, FileSlices]] = BoundedCache(
            _VERSIONS
        )
        self._indexes: BoundedCache[tuple[int, bool], tuple[FileSlices, Sequence[OwnIndex]]] = (
            BoundedCache(_VERSIONS)
        )

    def view(self, age: float = 0.0, arrived: float | None = None) -> FileSystemView:
        """The table's timeline, at most ``age`` seconds older than the query.

        Args:
            arrived: when the query arrived, by the monotonic clock; None: with this call.

        Errors:
            TableNotFound, UnsupportedTable, FileCorrupt, StorageFailure.
        """
        oldest = (time.monotonic() if arrived is None else arrived) - age
        with self._reading:
            held = self._view
            if held is not None and self._began >= oldest:
                return held
            began = time.monotonic()
            view = (
                FileSystemView.open(self._storage, self._base, self._pool)
                if held is None
                else held.refresh()
            )
            if view is not held and not _goes_on(held, view):
                view = check_history(self._storage, view, self._pool)
            if view is not held and self._storage.is_remote(self._base):
                # Each query asks for it, after the commits, which take another round trip.
                self._schemas = (view, self._pool.submit(list_schemas, view))
            self._view, self._began = view, began
            return view

    def slices(
        self, view: FileSystemView, at: Version = NEWEST, base_only: bool = False
    ) -> FileSlices:
        """The latest slices of all partitions at a version.

        Errors:
            ReadVersionNotFound, FileCorrupt, StorageFailure.
        """
        key = (id(view), at, base_only)
        with self._listing:
            held = self._slices.get(key)
            if held is None:
                found = view.slices(
                    as_of=at.as_of,
                    completed_by=at.completed_by,
                    files=self.files(view),
                    base_only=base_only,
                )
                held = view, found
                self._slices.put(key, held)
            return held[1]

    def own_indexes(
        self, view: FileSystemView, schema: str, slices: FileSlices, newest: bool
    ) -> Sequence[OwnIndex]:
        """What the table's own metadata says of some slices; nothing is read yet.

        Args:
            schema: of the version of the slices, in Avro.
            newest: they are all slices of the newest version.
        """
        kept = view.config.metadata_partitions

        def make() -> tuple[FileSlices, Sequence[OwnIndex]]:
            made: list[OwnIndex] = []
            if column_bounds.PARTITION in kept:
                made.append(HudiBounds(view, schema, slices, self._decoders))
            tells_keys = (
                record_index.PARTITION in kept and newest and view.config.table_type is _COW
            )
            has_filters = bloom_index.PARTITION in kept
            keys = record_index.key_columns(view, schema) if tells_keys or has_filters else {}
            if tells_keys:
                records = RecordIndex(view, slices, self._decoders, keys)
                made.append(records)
                if any(name.startswith(secondary_index.PREFIX) for name in kept):
                    made.append(SecondaryIndex(view, schema, slices, self._decoders, records))
            if has_filters:
                made.append(BloomIndex(view, slices, self._decoders, keys))
            return slices, made

        if not schema or not keeps_indexes(view):
            return ()
        # The slices are held too, so that their id stays their own.
        return self._indexes.get_or_put((id(slices), newest), make)[1]

    def schema_history(self, view: FileSystemView) -> SchemaHistory | None:
        """How the table's columns were renamed and retyped; None if it keeps no such history.

        Errors:
            UnsupportedTable: the history is damaged or not known whole.
            FileUnreadable, FileCorrupt, StorageFailure.
        """
        with self._listing:
            if self._history is None or self._history[0] is not view:
                asked, self._schemas = self._schemas, None
                known = asked is not None and asked[0] is view
                paths = asked[1].result() if asked is not None and known else list_schemas(view)
                self._history = (view, load_schema_history(view, paths))
            return self._history[1]

    def files(self, view: FileSystemView) -> FileListing | None:
        """What `FileSystemView` needs besides commits: nothing, or the files of the table.

        Errors:
            FileCorrupt, StorageFailure.
        """
        with self._listing:
            if self._files is None or self._files[0] is not view:
                suffice = view.commits_suffice()
                found = None if suffice else file_set(self._storage, view, self._pool)
                self._files = (view, found)
            return self._files[1]


def keeps_indexes(view: FileSystemView) -> bool:
    """Whether the table's own metadata has an index that is read."""
    known = {column_bounds.PARTITION, record_index.PARTITION, bloom_index.PARTITION}
    return not known.isdisjoint(view.config.metadata_partitions)


def _goes_on(held: FileSystemView | None, view: FileSystemView) -> bool:
    """Whether nothing was archived before, and nothing left the timeline since."""
    return held is not None and held.history_is_empty and not held.timeline.lost_any(view.timeline)


class OpenTables:
    """The tables by location, the least recently used ones forgotten."""

    def __init__(self) -> None:
        self._pool = Threads(_THREADS, "hudi")
        self._decoders = Threads(_DECODERS, "hudi-bounds")
        self._held: BoundedCache[tuple[int, str], tuple[Storage, OpenTable]] = BoundedCache(_MOST)

    def get(self, storage: Storage, base: str) -> OpenTable:
        """The table at a location; nothing is read yet."""
        # The storage is held too, so that its id stays its own.
        return self._held.get_or_put(
            (id(storage), base),
            lambda: (storage, OpenTable(storage, base, self._pool, self._decoders)),
        )[1]
