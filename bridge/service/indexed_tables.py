"""Tells a hook in Hive of which tables an index, or their format itself, can leave out files."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Executor, Future, wait

from bridge.formats.registry import file_formats, hive_hooks
from bridge.kernel.errors import BridgeError, InvalidRequest, LimitExceeded
from bridge.planner.planner import Planner
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from bridge.table.model import CatalogTable, TableName
from bridge.table.registry import DIRECTORY, table_hooks
from bridge.table.snapshot import OwnIndex

log = logging.getLogger(__name__)
MOST_TABLES = 1000
"""Limit on the tables of one call."""
_PATIENCE = 1.0


class IndexedTables:
    """Decides about the tables of a call side by side; one answer may be in the works per table.

    The law: a table without a location is read as without the hook, so everything that is
    uncertain has none. What is late is named as undecided, for the hook to ask again.

    Args:
        pool: runs the decisions, which call the metastore and the index store.
    """

    def __init__(self, pool: Executor, planner: Planner) -> None:
        self._pool = pool
        self._planner = planner
        self._pending: dict[TableName, Future[str | None]] = {}
        self._lock = threading.Lock()

    def among(self, names: Sequence[str]) -> ttypes.IndexedTables:
        """Answers within about a second.

        Errors:
            InvalidRequest: too many tables, or something that names no table.
        """
        if len(names) > MOST_TABLES:
            raise InvalidRequest(
                f"{len(names)} tables in one call", f"ask for at most {MOST_TABLES}"
            )
        asked = {name: self._decision(_table_name(name)) for name in names}
        wait(asked.values(), _PATIENCE)
        known = {name: future.result() for name, future in asked.items() if future.done()}
        return ttypes.IndexedTables(
            protocol=PROTOCOL,
            locations={name: at for name, at in known.items() if at is not None},
            input_formats={**hive_hooks(), **table_hooks()},
            undecided=[name for name in asked if name not in known],
        )

    def _decision(self, name: TableName) -> Future[str | None]:
        with self._lock:
            pending = self._pending.get(name)
            if pending is not None:
                return pending
            pending = self._pending[name] = self._pool.submit(self._location, name)
        pending.add_done_callback(lambda _: self._decided(name))
        return pending

    def _decided(self, name: TableName) -> None:
        with self._lock:
            self._pending.pop(name, None)

    def _location(self, name: TableName) -> str | None:
        """The table's canonical URI; None if nothing may be left out of it."""
        try:
            table = self._planner.table(name)
            return table.location if self._has_index(table) else None
        except LimitExceeded:  # tells nothing of the table
            raise
        except BridgeError as error:
            log.debug("%s is left to Hive: %s", name, error)
            return None
        except Exception:  # one damaged index must not hide the others
            log.warning("%s is left to Hive", name, exc_info=True)
            return None

    def _has_index(self, table: CatalogTable) -> bool:
        """Whether some class leaves out files of such a table, and something is known of them."""
        own: Sequence[OwnIndex] = ()
        if table.table_format == DIRECTORY:
            classes = file_formats()[table.format].hive
            hooked = classes is not None and classes.hook is not None
        else:
            hooked = table.input_format in table_hooks()
            written = self._planner.written_files(table) if hooked else None
            hooked = written is not None
            own = () if written is None else written.own_indexes
        return hooked and (bool(own) or self._planner.views.view(table).index is not None)


def _table_name(text: str) -> TableName:
    schema, dot, table = text.partition(".")
    if not schema or not dot or not table:
        raise InvalidRequest(f"not a table: {text!r}", "name a schema and a table: schema.table")
    return TableName(schema.lower(), table.lower())
