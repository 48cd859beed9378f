"""A session: the settings, the catalogue and the planners of one program."""

from __future__ import annotations

import threading
import time
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from bridge.api.html import page
from bridge.api.table import Table
from bridge.config import OPTIONS, Config, load
from bridge.errors import InvalidConfiguration, InvalidRequest
from bridge.jobs.compose import hive_catalog_of, is_location, planner_of, resolve, storage_of
from bridge.planner.freshness import FRESH, parse_freshness

if TYPE_CHECKING:
    from bridge.metastore.catalog import HiveCatalog
    from bridge.planner.planner import Planner
    from bridge.table.model import Catalog, TableName
    from bridge.table.model import Table as Definition

_KEYS = {option.key.replace(".", "_"): option.key for option in OPTIONS}


def connect(
    config_file: str | PathLike[str] | None = None, **settings: str | int | float | bool
) -> Session:
    """Opens a session. Nothing is contacted before it is needed.

    Args:
        config_file: a TOML file of settings; without it, the user's own is read if there is one.
        settings: those of `docs/reference/settings.md` with ``_`` for the dot
            (``metastore_uri="thrift://metastore:9083"``). They win over the environment, which wins
            over the file.

    Errors:
        InvalidConfiguration: an unknown setting, a wrong value, or no such file.

    >>> import bridge
    >>> with bridge.connect(planner_freshness="cached(60s)") as session:
    ...     session
    <bridge.Session metastore='thrift://127.0.0.1:9083'>
    >>> bridge.connect(metastore_url="thrift://metastore:9083")
    Traceback (most recent call last):
    bridge.errors.InvalidConfiguration: INVALID_CONFIGURATION: unknown setting 'metastore_url'
      -> did you mean metastore_uri?
    """
    given: dict[str, str | None] = {}
    for name, value in settings.items():
        if name not in _KEYS:
            raise InvalidConfiguration(f"unknown setting {name!r}", _nearest(name))
        given[_KEYS[name]] = str(value).lower() if isinstance(value, bool) else str(value)
    return Session(load(given, Path(config_file) if config_file else None, origin="connect()"))


def _nearest(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, _KEYS, n=1)
    return f"did you mean {near[0]}?" if near else "see docs/reference/settings.md"


class Session:
    """Tables of a Hive Metastore and of directories; made by `connect`, safe for threads.

    Close it, or use it in a ``with`` statement.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._storage = storage_of(config)
        self._lock = threading.Lock()
        self._catalog: HiveCatalog | None = None
        self._planners: dict[str, Planner] = {}
        self._looked: dict[str, float] = {}
        self._outdated: list[Planner] = []

    def schemas(self) -> list[str]:
        """Names of the metastore's databases, sorted. Errors: MetastoreUnavailable."""
        return sorted(self._hive().schemas())

    def tables(self, schema: str) -> list[str]:
        """Names of a database's tables and views, sorted.

        Errors:
            SchemaNotFound, MetastoreUnavailable.
        """
        return sorted(self._hive().tables(schema.lower()))

    def table(self, name: str | PathLike[str]) -> Table:
        """A table by name, or a directory of data files.

        The table itself is looked up when it is first used.

        Args:
            name: ``schema.table``, ``table`` of the database default, or a directory: a path or URI
                with a slash (``./flights``, ``s3://lake/flights``).

        Errors:
            InvalidRequest: it is none of these.
            TableNotFound: there is no such directory.
        """
        text = str(name) if isinstance(name, str) else _with_slash(str(name))
        if is_location(text):
            resolve(self._config, text, self._storage)
        elif text.count(".") > 1 or not all(text.split(".")):
            raise InvalidRequest(
                f"not a table: {text!r}",
                "give schema.table, or a directory with a slash: ./flights",
            )
        return Table(self, text)

    def close(self) -> None:
        """Closes connections and ends threads; scans under way fail."""
        with self._lock:
            planners = [*self._planners.values(), *self._outdated]
            catalog, self._catalog = self._catalog, None
            self._planners, self._outdated = {}, []
        for planner in planners:
            planner.listings.close()
        if catalog is not None:
            catalog.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<bridge.Session metastore={self._config.text('metastore.uri')!r}>"

    def _repr_html_(self) -> str:
        rows = [("metastore", self._config.text("metastore.uri")),
                ("index root", self._config.text("index.root") or ".skipbridge under each table"),
                ("freshness", self._config.text("planner.freshness"))]  # fmt: skip
        return page("session", rows)

    def _hive(self) -> HiveCatalog:
        with self._lock:
            if self._catalog is None:
                self._catalog = hive_catalog_of(self._config)
            return self._catalog

    def _planner(self, table: str) -> tuple[Planner, TableName]:
        """The planner of a table's catalogue, and the table's name there."""
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
        """A table as its catalogue describes it."""
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
            if looked is not None and (mode.mode == "snapshot" or now - looked < mode.ttl):
                return asked
            self._looked[table] = now
        return asked if looked is None else FRESH

    def _renew(self, table: str) -> None:
        """The next scan looks at the table's index, columns and partitions anew."""
        with self._lock:
            held = self._planners.pop(table if is_location(table) else "", None)
            self._looked.pop(table, None)
            if held is not None:
                self._outdated.append(held)  # scans under way go on


def _with_slash(path: str) -> str:
    return path if "/" in path else f"./{path}"
