"""The tables that a query will ask for next, so that all of them are fetched side by side.

An engine asks for a query's tables one after another, and each may cost a call of the metastore.
The last query that began with the same table tells which tables follow: dashboards repeat their
queries. A wrong guess costs calls, never an answer.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from bridge.kernel.bounded_cache import BoundedCache
from bridge.table.model import TableName

_MOST = 1000
_MOST_TABLES = 32


class ExpectedTables:
    """Fetches the tables that are expected to follow the first table of a query.

    Args:
        fetch: called in the pool for each of them; it raises nothing.
    """

    def __init__(self, pool: Executor, fetch: Callable[[TableName], None]) -> None:
        self._pool = pool
        self._fetch = fetch
        self._queries: BoundedCache[str, list[TableName]] = BoundedCache(_MOST)
        self._last: BoundedCache[TableName, list[TableName]] = BoundedCache(_MOST)

    def note(self, query_id: str, name: TableName) -> bool:
        """The query asks for this table. Without a query id nothing is expected.

        Returns:
            Whether the query may soon scan it: not if it asks for very many tables, or has no id.
            Such a query describes them.
        """
        if not query_id:
            return False
        expected: list[TableName] = []
        with self._queries.lock:
            tables = self._queries.get(query_id)
            if tables is None:
                tables = [name]
                self._queries.put(query_id, tables)
                expected = self._last.get(name, [])[1:]
            elif name not in tables and len(tables) < _MOST_TABLES:
                tables.append(name)
                self._last.put(tables[0], tables)
            scanned = name in tables
        for each in expected:
            self._pool.submit(self._fetch, each)
        return scanned
