"""Table definitions with a time to live; concurrent requests for one table share one call."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from math import inf

from bridge.kernel.bounded_cache import BoundedCache
from bridge.table.model import Catalog, CatalogTable, TableName

_MOST = 10_000


class TableCache:
    """Tables of one catalog; all threads share it.

    Args:
        ttl: seconds for which a definition is valid, counted from its request.
    """

    def __init__(self, catalog: Catalog, ttl: float) -> None:
        self._catalog = catalog
        self._ttl = ttl
        self._lock = threading.Lock()
        self._known: BoundedCache[TableName, tuple[float, CatalogTable]] = BoundedCache(_MOST)
        self._asked: dict[TableName, tuple[float, Future[CatalogTable]]] = {}

    def table(self, name: TableName, age: float = inf) -> CatalogTable:
        """A definition that is no older than ``age`` seconds either.

        Errors: SchemaNotFound, TableNotFound, UnsupportedTable, MetastoreUnavailable.
        """
        now, most = time.monotonic(), min(self._ttl, age)
        held = self._known.get(name)
        if held is not None and now - held[0] <= most:
            return held[1]
        with self._lock:
            under_way = self._asked.get(name)
            joins = under_way is not None and now - under_way[0] <= most
            if under_way is None or not joins:
                under_way = self._asked[name] = (now, Future())
        if joins:
            return under_way[1].result()
        try:
            table = self._catalog.table(name)
        except BaseException as error:
            with self._lock:
                self._taken_back(name, under_way)
            under_way[1].set_exception(error)
            raise
        with self._lock:
            if self._taken_back(name, under_way):  # else `forget` was called meanwhile
                self._known.put(name, (now, table))
        under_way[1].set_result(table)
        return table

    def _taken_back(self, name: TableName, under_way: tuple[float, Future[CatalogTable]]) -> bool:
        """Whether the request was still the one to join; removes it. Held: self._lock."""
        if self._asked.get(name) is not under_way:
            return False
        del self._asked[name]
        return True

    def forget(self, name: TableName) -> None:
        """Ensures that the next definition of the table is requested after this call."""
        with self._lock:
            self._known.pop(name)
            self._asked.pop(name, None)
        self._catalog.forget(name)
