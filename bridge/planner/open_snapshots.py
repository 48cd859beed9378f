"""Snapshots by query: all scans of one (query, table, read version) see the same snapshot.

Two listings in one self-join could join two states of the table. A query that outlives its snapshot
reopens the same snapshot by id, or fails; it never mixes two.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import SnapshotExpired
from bridge.planner.index_view import IndexView
from bridge.table.directory.freshness import Freshness
from bridge.table.model import TableName
from bridge.table.read_version import ReadVersion
from bridge.table.snapshot import Snapshot

_MOST_GONE = 10_000


@dataclass(frozen=True, slots=True)
class SnapshotKey:
    """Identifies a snapshot within a process.

    Attributes:
        generation: the index generation; None means the newest.
    """

    query_id: str
    table: TableName
    read: ReadVersion
    freshness: Freshness
    generation: int | None
    absent_is_empty: bool


@dataclass(slots=True, weakref_slot=True, eq=False)
class OpenSnapshot:
    """A snapshot, the table's index, and whether a scan has read from it.

    Attributes:
        key: set by `OpenSnapshots`; None if no other scan shares the snapshot.
        files: number of files that it held when it was last counted.
    """

    snapshot: Snapshot
    view: IndexView
    read: bool = False
    key: SnapshotKey | None = None
    files: int = 0


@dataclass(frozen=True, slots=True)
class _Gone:
    """A snapshot that the cache no longer holds; open plans may still use it."""

    opened: weakref.ref[OpenSnapshot]
    id: str
    read: bool


class OpenSnapshots:
    """Bounded in number, files and age; a snapshot that an open plan still uses is found again.

    Args:
        seconds: how long a snapshot is held after a scan of it was last opened or closed.
        most: number of snapshots held.
        most_files: number of files held by all snapshots together.
    """

    def __init__(
        self, seconds: float = 600.0, most: int = 4096, most_files: int = 2_000_000
    ) -> None:
        self._held: BoundedCache[SnapshotKey, OpenSnapshot] = BoundedCache(
            most,
            capacity=most_files,
            weigh=lambda opened: opened.files,
            seconds=seconds,
            on_drop=self._remember,
        )
        self._gone: BoundedCache[SnapshotKey, _Gone] = BoundedCache(_MOST_GONE)
        self._newest: SnapshotKey | None = None
        self._lock = self._held.lock

    def get(self, key: SnapshotKey) -> OpenSnapshot | None:
        """The snapshot that the query sees; None if none is open."""
        if not key.query_id:
            return None
        with self._lock:
            self._held.expire()
            found = self._held.get(key)
            if found is None:
                gone = self._gone.get(key)
                found = None if gone is None else gone.opened()
                if found is None:
                    return None
            self._touch(key, found)
            return found

    def expired_id(self, key: SnapshotKey) -> str:
        """The id of a snapshot that the query has read and that is no longer open; empty if none.

        Errors:
            SnapshotExpired: it cannot be opened again.
        """
        gone = self._gone.get(key)
        if gone is None or not gone.read:
            return ""
        if not gone.id:
            raise SnapshotExpired(
                f"the files of {key.table} that this query saw are no longer held",
                "run the query again",
            )
        return gone.id

    def put(self, key: SnapshotKey, opened: OpenSnapshot) -> OpenSnapshot:
        """Adds a snapshot; if another thread added one first, returns that one."""
        if not key.query_id:
            return opened
        with self._lock:
            found = self._held.get(key)
            if found is None:
                found, opened.key = opened, key
                self._touch(key, opened)
            before = None if self._newest is None else self._held.get(self._newest)
            self._newest = key
        if before is not None and before is not found and not before.files:
            self._count(before)  # what was listed ahead of its scans
        return found

    def begin_scan(self, opened: OpenSnapshot) -> None:
        """A scan starts to read from the snapshot: its query must not see another one."""
        opened.read = True
        self._use(opened)

    def end_scan(self, opened: OpenSnapshot) -> None:
        """A scan ended: drops the oldest snapshots while all together hold too many files."""
        self._use(opened)
        self._count(opened)

    def _use(self, opened: OpenSnapshot) -> None:
        if opened.key is not None:
            with self._lock:
                self._touch(opened.key, opened)

    def _touch(self, key: SnapshotKey, opened: OpenSnapshot) -> None:
        """Marks the snapshot as used last; holds it again if it was dropped. Needs the lock."""
        if self._held.get(key, opened) is opened:
            self._gone.pop(key)
            self._held.put(key, opened)

    def _count(self, opened: OpenSnapshot) -> None:
        """Counts only this snapshot again: thousands of others may be held."""
        files = opened.snapshot.listed_files
        with self._lock:
            if opened.key is None or self._held.get(opened.key) is not opened:
                return
            opened.files = files
            self._held.reweigh(opened.key)

    def _remember(self, key: SnapshotKey, opened: OpenSnapshot) -> None:
        self._gone.put(key, _Gone(weakref.ref(opened), opened.snapshot.id, opened.read))


def require_same(opened: OpenSnapshot, id: str) -> OpenSnapshot:
    """Returns the snapshot if it has this id. Errors: SnapshotExpired."""
    if id and opened.snapshot.id != id:
        raise SnapshotExpired(
            f"{opened.snapshot.table.name} is now {opened.snapshot.id or 'a listing'}, the query "
            f"saw {id}",
            "run the query again",
        )
    return opened
