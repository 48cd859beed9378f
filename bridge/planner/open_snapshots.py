"""Snapshots by query: all scans of one (query, table, read version) see the same snapshot.

Two listings in one self-join could join two states of the table. A query that outlives its snapshot
reopens the same snapshot by id, or fails; it never mixes two.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from dataclasses import dataclass, field

from bridge.errors import SnapshotExpired
from bridge.planner.index_view import IndexView
from bridge.table.freshness import Freshness
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
    """A snapshot, the table's index, and whether a scan has read from it."""

    snapshot: Snapshot
    view: IndexView
    read: bool = False
    used: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class _Gone:
    """A snapshot that the cache no longer holds; open plans may still use it."""

    opened: weakref.ref[OpenSnapshot]
    id: str
    read: bool


class OpenSnapshots:
    """Bounded in number, files and age; a snapshot that an open plan still uses is found again.

    Args:
        seconds: how long a snapshot is held after its last use.
        most: number of snapshots held.
        most_files: number of files held by all snapshots together.
    """

    def __init__(
        self, seconds: float = 600.0, most: int = 4096, most_files: int = 2_000_000
    ) -> None:
        self._seconds, self._most, self._most_files = seconds, most, most_files
        self._held: OrderedDict[SnapshotKey, OpenSnapshot] = OrderedDict()
        self._gone: OrderedDict[SnapshotKey, _Gone] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: SnapshotKey) -> OpenSnapshot | None:
        """The snapshot that the query sees; None if none is open."""
        if not key.query_id:
            return None
        with self._lock:
            self._expire()
            found = self._held.get(key)
            if found is None:
                gone = self._gone.get(key)
                found = None if gone is None else gone.opened()
                if found is None:
                    return None
                del self._gone[key]
                self._held[key] = found
            found.used = time.monotonic()
            self._held.move_to_end(key)
            return found

    def expired_id(self, key: SnapshotKey) -> str:
        """The id of a snapshot that the query has read and that is no longer open; empty if none.

        Errors:
            SnapshotExpired: it cannot be opened again.
        """
        with self._lock:
            gone = self._gone.get(key)
        if gone is None or not gone.read:
            return ""
        if not gone.id:
            raise SnapshotExpired(
                f"the files of {key.table} that this query saw are not held any more",
                "run the query again",
            )
        return gone.id

    def put(self, key: SnapshotKey, opened: OpenSnapshot) -> OpenSnapshot:
        """Adds a snapshot; if another thread added one first, returns that one."""
        if not key.query_id:
            return opened
        with self._lock:
            self._gone.pop(key, None)
            return self._held.setdefault(key, opened)

    def trim(self) -> None:
        """Drops the oldest snapshots while all together hold too many files."""
        with self._lock:
            counts = [opened.snapshot.listed_files for opened in self._held.values()]
            total = sum(counts)
            for count in counts[:-1]:
                if total <= self._most_files:
                    return
                self._drop_oldest()
                total -= count

    def _expire(self) -> None:
        now = time.monotonic()
        while self._held:
            oldest = next(iter(self._held.values()))
            if len(self._held) <= self._most and now - oldest.used < self._seconds:
                return
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        key, opened = self._held.popitem(last=False)
        self._gone[key] = _Gone(weakref.ref(opened), opened.snapshot.id, opened.read)
        while len(self._gone) > _MOST_GONE:
            self._gone.popitem(last=False)


def require_same(opened: OpenSnapshot, id: str) -> OpenSnapshot:
    """Returns the snapshot if it has this id. Errors: SnapshotExpired."""
    if id and opened.snapshot.id != id:
        raise SnapshotExpired(
            f"{opened.snapshot.table.name} is now {opened.snapshot.id or 'a listing'}, the query "
            f"saw {id}",
            "run the query again",
        )
    return opened
