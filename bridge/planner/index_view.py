"""The planner's view of a table's index: the newest generation it could open, or why there is none.

Opening is shared by all plans of a process; a broken or foreign index is never trusted and never
fatal: the view says why and files are read.
"""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bridge import telemetry
from bridge.errors import BridgeError, GenerationNotFound, IndexCorrupt
from bridge.index.local_cache import CacheLimits
from bridge.index.snapshot import IndexSnapshot
from bridge.index.store import IndexStore
from bridge.planner.report import IndexNotUsed
from bridge.table.directory import SCHEMA as DIRECTORY
from bridge.table.model import Table

_MOST_TABLES = 1000


class IndexView:
    """One opened generation and what is derived from it once."""

    def __init__(self, serving: IndexSnapshot | None, not_used: tuple[IndexNotUsed, ...]) -> None:
        self.serving = serving
        self.not_used = not_used
        # Ordinals of all files; recognised by identity, so that whole-table answers are not copied.
        self.everything = np.arange(serving.num_files if serving is not None else 0, dtype=np.int64)
        self.total_bytes = int(serving.sizes.sum()) if serving is not None else 0
        self.all_trusted = serving is None or bool(serving.trusted.all())
        # The partition of each file where there is but one.
        self.one_owner = np.broadcast_to(np.int32(0), len(self.everything))
        # Whether a file belongs to several partitions: it is read for each of them.
        self.shared = serving is not None and any(len(names) > 1 for names in serving.owners)
        self._ranges: dict[str, npt.NDArray[np.int64]] | None = None
        self._lock = threading.Lock()

    @property
    def generation(self) -> int:
        return self.serving.generation if self.serving is not None else -1

    def ordinals_of(self, partition: str) -> npt.NDArray[np.int64]:
        """Ordinals of the indexed files of one partition, ascending."""
        serving = self.serving
        if serving is None:
            return np.empty(0, np.int64)
        if serving.owners == ((partition,),):
            return self.everything
        return self._by_owner(serving).get(partition, np.empty(0, np.int64))

    def owned(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], list[str]]:
        """Every file as often as partitions own it: its ordinal, its owner as an index into the
        names of all partitions, and these names.
        """
        serving = self.serving
        assert serving is not None
        if not self.shared:
            return self.everything, serving.partition, [name for (name,) in serving.owners]
        ranges = self._by_owner(serving)
        counts = [len(ordinals) for ordinals in ranges.values()]
        owner = np.repeat(np.arange(len(ranges), dtype=np.int32), counts)
        return np.concatenate(list(ranges.values())), owner, list(ranges)

    def _by_owner(self, serving: IndexSnapshot) -> dict[str, npt.NDArray[np.int64]]:
        with self._lock:
            if self._ranges is None:
                self._ranges = _by_partition(serving)
            return self._ranges


def _by_partition(serving: IndexSnapshot) -> dict[str, npt.NDArray[np.int64]]:
    order = np.argsort(serving.partition, kind="stable").astype(np.int64)
    edges = np.searchsorted(serving.partition[order], np.arange(len(serving.owners) + 1)).tolist()
    held: dict[str, list[npt.NDArray[np.int64]]] = {}
    for i, names in enumerate(serving.owners):
        for name in names:
            held.setdefault(name, []).append(order[edges[i] : edges[i + 1]])
    return {
        name: parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
        for name, parts in held.items()
    }


@dataclass(slots=True)
class _Entry:
    view: IndexView | None = None
    checked: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class IndexViews:
    """Views by index location; looks for a newer generation at most once in ``check_interval``
    seconds.

    While one thread opens a newer generation, the others go on with the one they know.
    """

    def __init__(
        self,
        open_store: Callable[[Table], IndexStore],
        cache_dir: Path,
        check_interval: float = 1.0,
        limits: CacheLimits | None = None,
    ) -> None:
        self._open_store = open_store
        self._cache_dir = cache_dir
        self._interval = check_interval
        self._limits = limits or CacheLimits()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def view(self, table: Table, generation: int | None = None) -> IndexView:
        """The newest generation, or the one asked for.

        Errors:
            GenerationNotFound: only if a generation was asked for by number.
        """
        if generation is not None:
            store = self._open_store(table)
            return IndexView(
                IndexSnapshot.open(
                    store.manifest(generation), store, self._cache_dir, self._limits
                ),
                (),
            )
        with self._lock:
            key = f"{table.name}@{table.location}"
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > _MOST_TABLES:  # dropped ones would be held for ever
                self._entries.popitem(last=False)
        known = entry.view
        if known is not None and time.monotonic() - entry.checked < self._interval:
            return known
        if not entry.lock.acquire(blocking=known is None):
            assert known is not None
            return known
        try:
            if entry.view is None or time.monotonic() - entry.checked >= self._interval:
                entry.view = self._refresh(table, entry.view)
                entry.checked = time.monotonic()
            return entry.view
        finally:
            entry.lock.release()

    def _refresh(self, table: Table, held: IndexView | None) -> IndexView:
        command = f"skipbridge index build {argument(table)}"
        try:
            store = self._open_store(table)
            manifest = store.latest()
            if manifest is None:
                return _absent("NO_INDEX", "the table has no index", command)
            if held is not None and held.serving is not None and held.serving.manifest == manifest:
                return held
            serving = IndexSnapshot.open(manifest, store, self._cache_dir, self._limits)
            if held is not None and held.serving is not None:
                # The others go on with the old generation while its columns are brought over.
                with contextlib.suppress(BridgeError):  # a plan that asks will be told
                    serving.prefetch(held.serving.used_columns())
            return IndexView(serving, ())
        except GenerationNotFound:
            return _absent("NO_INDEX", "the table has no index", command)
        except (BridgeError, OSError) as e:
            if not isinstance(e, BridgeError):
                return _absent("STORAGE_ERROR", str(e), command)
            rebuild = e.code == IndexCorrupt.code or not e.hint
            return _absent(e.code, e.message, command if rebuild else e.hint)


def argument(table: Table) -> str:
    """What names the table on the command line: ``schema.table``, or its directory."""
    if table.name.schema != DIRECTORY:
        return str(table.name)
    return shlex.quote(table.location.removeprefix("file://"))


def _absent(reason: str, detail: str, remedy: str) -> IndexView:
    telemetry.INDEX_IGNORED.labels(reason).inc()
    return IndexView(None, (IndexNotUsed("minmax", reason, detail, remedy),))
