"""Refreshes indexes in the background after their tables were written."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence

from bridge.kernel.errors import BridgeError
from bridge.kernel.threads import Threads
from bridge.table.model import TableName

log = logging.getLogger(__name__)
MOST_TABLES = 1000
MOST_PARTITIONS = 1000
"""Of one table; if more were written, the whole table is refreshed."""

Refresh = Callable[[TableName, Collection[str]], None]


class Refreshes:
    """One table after another, each once for all that was written while it waited.

    What fails is logged, and what is too much is left to the next refresh: queries read files that
    the index does not know.

    Args:
        refresh: refreshes some partitions of a table, or all without one. None: nothing does.
    """

    def __init__(self, refresh: Refresh | None) -> None:
        self._refresh = refresh
        self._pool = Threads(1, "refresh")
        self._lock = threading.Lock()
        self._waiting: dict[TableName, set[str] | None] = {}

    def add(self, table: TableName, partitions: Sequence[str]) -> None:
        """Notes what was written; returns at once.

        Args:
            partitions: their names; none: any.
        """
        if self._refresh is None:
            return
        with self._lock:
            if table not in self._waiting:
                if len(self._waiting) >= MOST_TABLES:
                    log.warning(
                        "%d tables wait for a refresh: the index of %s waits for the next one",
                        MOST_TABLES, table,
                    )  # fmt: skip
                    return
                self._waiting[table] = set()
                self._pool.submit(self._next)
            waiting = self._waiting[table]
            if waiting is not None:
                waiting.update(partitions)
                if not partitions or len(waiting) > MOST_PARTITIONS:
                    self._waiting[table] = None

    def _next(self) -> None:
        assert self._refresh is not None
        with self._lock:
            table = next(iter(self._waiting))
            partitions = self._waiting.pop(table)
        try:
            self._refresh(table, sorted(partitions or ()))
        except BridgeError as error:
            log.warning("%s was not refreshed: %s: %s", table, error.code, error.message)
        except Exception:
            log.exception("%s was not refreshed", table)

    def close(self) -> None:
        """Ends without waiting: what waits is left to the next refresh."""
        self._pool.close()
