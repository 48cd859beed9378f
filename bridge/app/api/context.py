"""What tables, scans and indexes of a session share: its settings, storage and planners."""

from __future__ import annotations

import threading
import time
import weakref
from typing import TYPE_CHECKING

from bridge.kernel.config import Config
from bridge.runtime.compose import hive_catalog_of, is_location, planner_of, resolve, storage_of
from bridge.table.directory.freshness import FRESH, Indexed, max_age, parse_freshness

if TYPE_CHECKING:
    from bridge.metastore.catalog import HiveCatalog
    from bridge.planner.planner import Planner
    from bridge.table.model import Catalog, TableName
    from bridge.table.model import CatalogTable as Definition


class SessionContext:
    """The part of a session that does not know its tables; safe for threads."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._storage = storage_of(config)
        self._lock = threading.Lock()
        self._catalog: HiveCatalog | None = None
        self._planners: dict[str, Planner] = {}
        self._looked: dict[str, float] = {}
        self._outdated: weakref.WeakSet[Planner] = weakref.WeakSet()

    def _hive(self) -> HiveCatalog:
        with self._lock:
            if self._catalog is None:
                self._catalog = hive_catalog_of(self._config)
            return self._catalog

    def _planner(self, table: str) -> tuple[Planner, TableName]:
        """The planner of a table's catalog, and the table's name there."""
        catalog: Catalog
        catalog, name = resolve(self._config, table, self._storage)
        directory = is_location(table)
        key = table if directory else ""
        with self._lock:
            held = self._planners.get(key)
        if held is None:
            held = planner_of(self._config, catalog if directory else self._hive(), self._storage)
            with self._lock:
                held = self._planners.setdefault(key, held)
        return held, name

    def _definition(self, table: str) -> Definition:
        """A table as its catalog describes it."""
        planner, name = self._planner(table)
        if self._freshness(table, None) == FRESH:
            planner.catalog.forget(name)
        return planner.table(name)

    def _freshness(self, table: str, asked: str | None) -> str | None:
        """What a scan is to ask of the planner.

        A directory's partitions and columns are remembered for no longer than its files: not at all
        where these are listed for each scan.

        Errors:
            InvalidConfiguration: it is no freshness.
        """
        if not is_location(table):
            return asked
        mode = parse_freshness(asked or self._config.text("planner.freshness"))
        now = time.monotonic()
        with self._lock:
            looked = self._looked.get(table)
            if looked is not None and (isinstance(mode, Indexed) or now - looked < max_age(mode)):
                return asked
            self._looked[table] = now
        return asked if looked is None else FRESH

    def _renew(self, table: str) -> None:
        """The next scan looks at the table's index, columns and partitions anew."""
        with self._lock:
            held = self._planners.pop(table if is_location(table) else "", None)
            self._looked.pop(table, None)
            if held is not None:
                self._outdated.add(held)  # scans under way go on, and hold it
