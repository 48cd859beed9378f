"""The planner's view of an index: the newest generation it could open, or why there is none.

All plans of a process share opened generations. A broken or foreign index is never trusted and
never fatal: the view says why it is not used, and files are read.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bridge.index.generations.store import IndexStore, ListedManifest
from bridge.index.reading.local_cache import CacheLimits
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel import telemetry
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import BridgeError, GenerationNotFound, IndexCorrupt, LimitExceeded
from bridge.planner.reports.report import IndexNotUsed, Remedy
from bridge.storage.local_disk.local_errors import refuse_exhausted
from bridge.storage.native import deadline_for_optional_calls
from bridge.table.directory.catalog import SCHEMA as DIRECTORY
from bridge.table.model import CatalogTable

_MOST_TABLES = 1000
_PATIENCE = 10.0
"""Seconds for finding the newest generation. Without an index a query goes on, and reads more."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexView:
    """One opened generation, or why there is none.

    Attributes:
        index: None if no index can be used.
        not_used: the reasons why not, or why not for all files.
    """

    index: IndexSnapshot | None
    not_used: tuple[IndexNotUsed, ...] = ()

    @staticmethod
    def of(index: IndexSnapshot, table: CatalogTable) -> IndexView:
        """The view of an opened generation."""
        return IndexView(index)

    @property
    def generation(self) -> int:
        """The generation, or -1 if there is no index."""
        return self.index.generation if self.index is not None else -1


@dataclass(slots=True)
class _Entry:
    view: IndexView | None = None
    listed: ListedManifest | None = None
    checked: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class IndexViews:
    """Views by index location; checks for a newer generation once per ``check_interval`` seconds.

    While one thread opens a newer generation, other threads keep using the current one.
    """

    def __init__(
        self,
        open_store: Callable[[CatalogTable], IndexStore],
        cache_dir: Path,
        check_interval: float = 1.0,
        limits: CacheLimits | None = None,
    ) -> None:
        self._open_store = open_store
        self._cache_dir = cache_dir
        self._interval = check_interval
        self._limits = limits or CacheLimits()
        # Bounded, else dropped tables would stay forever.
        self._entries: BoundedCache[str, _Entry] = BoundedCache(_MOST_TABLES)

    def view(self, table: CatalogTable, generation: int | None = None) -> IndexView:
        """The newest generation, or the requested one.

        Errors:
            GenerationNotFound: only if a generation was requested by number.
        """
        if generation is not None:
            store = self._open_store(table)
            manifest = store.manifest(generation)
            opened = IndexSnapshot.open(manifest, store, self._cache_dir, self._limits)
            return IndexView.of(opened, table)
        entry = self._entries.get_or_put(f"{table.name}@{table.location}", _Entry)
        known = entry.view
        if known is not None and time.monotonic() - entry.checked < self._interval:
            return known
        if not entry.lock.acquire(blocking=known is None):
            assert known is not None
            return known
        try:
            if entry.view is None or time.monotonic() - entry.checked >= self._interval:
                entry.view = self._refresh(table, entry)
                entry.checked = time.monotonic()
            return entry.view
        finally:
            entry.lock.release()

    def _refresh(self, table: CatalogTable, entry: _Entry) -> IndexView:
        build = Remedy("build", argument(table))
        held = entry.view
        index = None if held is None else held.index
        was, entry.listed = entry.listed, None
        try:
            store = self._open_store(table)
            with deadline_for_optional_calls(_PATIENCE):
                listed = store.newest()
            if held is not None and index is not None and listed is not None and listed == was:
                entry.listed = listed
                return held
            with deadline_for_optional_calls(_PATIENCE):
                manifest = None if listed is None else store.latest(listed)
            if manifest is None:
                return _absent("NO_INDEX", "the table has no index", build)
            entry.listed = listed
            if held is not None and index is not None and index.manifest == manifest:
                return held
            opened = IndexSnapshot.open(manifest, store, self._cache_dir, self._limits)
            if index is not None:
                # Other plans keep using the old generation while the columns are loaded.
                with contextlib.suppress(BridgeError):  # the plan that needs the column reports it
                    opened.prefetch(index.used_columns())
            return IndexView.of(opened, table)
        except GenerationNotFound:
            return _absent("NO_INDEX", "the table has no index", build)
        except LimitExceeded:  # of this process: it tells nothing of the index
            raise
        except (BridgeError, OSError) as e:
            if not isinstance(e, BridgeError):
                refuse_exhausted(e)
                return _absent("STORAGE_ERROR", str(e), build)
            rebuild = e.code == IndexCorrupt.code or not e.hint
            return _absent(e.code, e.message, build if rebuild else Remedy(text=e.hint))


def argument(table: CatalogTable) -> str:
    """The table as commands here name it: ``schema.table``, or its directory."""
    if table.name.schema != DIRECTORY:
        return str(table.name)
    path = table.location.removeprefix("file://")
    with contextlib.suppress(OSError):  # the directory that this process began in is gone
        here = f"{Path.cwd()}/"
        return f"./{path.removeprefix(here)}" if path.startswith(here) else path
    return path


def _absent(reason: str, detail: str, remedy: Remedy) -> IndexView:
    telemetry.INDEX_IGNORED.labels(reason).inc()
    return IndexView(None, (IndexNotUsed("minmax", reason, detail, remedy),))
