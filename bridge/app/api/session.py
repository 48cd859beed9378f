"""A session: the settings, the catalog and the planners of one program."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from bridge.app.api.context import SessionContext
from bridge.app.api.html import page
from bridge.app.api.table import Table
from bridge.kernel.config import OPTIONS, load
from bridge.kernel.errors import InvalidConfiguration, InvalidRequest
from bridge.runtime.compose import is_location, resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bridge.segments.statements.context import SqlResult

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
    >>> bridge.connect(metastoreuri="thrift://metastore:9083")
    Traceback (most recent call last):
    bridge.kernel.errors.InvalidConfiguration: INVALID_CONFIGURATION: unknown setting 'metastoreuri'
      -> did you mean metastore_uri?
    """
    given: dict[str, str | None] = {}
    for name, value in settings.items():
        if name not in _KEYS:
            raise InvalidConfiguration(f"unknown setting {name!r}", _nearest(name))
        if value is None:
            raise InvalidConfiguration(
                f"the setting {name} is None", "leave it out, or give a value"
            )
        given[_KEYS[name]] = str(value).lower() if isinstance(value, bool) else str(value)
    return Session(load(given, Path(config_file) if config_file else None, origin="connect()"))


def _nearest(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, _KEYS, n=1)
    return f"did you mean {near[0]}?" if near else "see docs/reference/settings.md"


class Session(SessionContext):
    """Tables of a Hive Metastore and of directories; made by `connect`, safe for threads.

    Close it, or use it in a ``with`` statement.
    """

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

    def sql(
        self,
        statements: str,
        *,
        schema: str = "default",
        local: bool = False,
        spark: SparkSession | None = None,
    ) -> list[SqlResult]:
        """Runs statements about tables of segments; semicolons separate them.

        Args:
            schema: of names without one.
            local: builds in this process instead of on Spark.
            spark: a session of the caller, which stays open; takes precedence over ``local``.

        Errors:
            InvalidStatement, OperationBlocked, UnsupportedType: none of them ran.
            BridgeError: of a statement; those before it stay done.
        """
        from bridge.segments.statements.context import SqlContext
        from bridge.segments.statements.run import run_sql

        context = SqlContext(self._config, schema, local, spark)
        return list(run_sql(context, statements))

    def close(self) -> None:
        """Closes connections and ends threads; scans under way may fail."""
        with self._lock:
            planners = [*self._planners.values(), *self._outdated]
            catalog, self._catalog = self._catalog, None
            self._planners = {}
            self._outdated.clear()
        for planner in planners:
            planner.lister.close()
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


def _with_slash(path: str) -> str:
    return path if "/" in path else f"./{path}"
