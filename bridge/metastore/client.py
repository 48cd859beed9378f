"""A client of Hive's metastore, versions 2.3 to 4.0.

Thread-safe: each call takes a connection of its own from a pool. A lost connection is opened again,
and the call repeated, with growing pauses until a deadline. What must not happen twice (creating a
database or a table) is repeated only if it was never sent.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn

import tenacity
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from bridge.errors import (
    MetastoreFailure,
    MetastoreUnavailable,
    SchemaNotFound,
    TableExists,
    TableNotFound,
    UnsupportedTable,
)
from bridge.metastore._gen import ttypes
from bridge.metastore.connection import Cancellation, Connection, Pool, parse_addresses
from bridge.table.partition import NULL_MARKER, parse_partition_name

_CAPABILITIES = ttypes.ClientCapabilities(values=[ttypes.ClientCapability.INSERT_ONLY_TABLES])


@dataclass(frozen=True, slots=True)
class MetastoreSettings:
    """How calls are made; all times in seconds.

    Attributes:
        connect_timeout: for opening a connection, and for the first answer on it.
        call_timeout: without a byte of an answer, the connection counts as lost.
        retry_deadline: no new attempt after that long; 0 means no second attempt.
        retry_pause, retry_longest_pause: before the second attempt, and at most.
        idle_connections: kept open.
    """

    connect_timeout: float = 5.0
    call_timeout: float = 60.0
    retry_deadline: float = 30.0
    retry_pause: float = 0.1
    retry_longest_pause: float = 5.0
    idle_connections: int = 8


@dataclass(frozen=True, slots=True)
class FoundPartitions:
    """Partitions in the order of the names asked for, and the names the metastore did not know.

    Attributes:
        names: of ``partitions``, one each.
    """

    names: tuple[str, ...]
    partitions: tuple[ttypes.Partition, ...]
    missing: tuple[str, ...]


class _Lost(Exception):
    """The connection was lost; ``sent`` tells whether the server may have carried the call out."""

    def __init__(self, cause: Exception, sent: bool) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.sent = sent


class MetastoreClient:
    """A client; a context manager that closes its connections.

    Args:
        uris: ``thrift://host:port[,thrift://host:port]``; if one does not answer, the next is.

    Errors (of every call):
        MetastoreUnavailable: no address answers.
        MetastoreFailure: the server's own exception, or what answers is not a metastore.
    """

    def __init__(self, uris: str, settings: MetastoreSettings | None = None) -> None:
        self.uris = uris
        self.settings = settings if settings is not None else MetastoreSettings()
        s = self.settings
        self._pool = Pool(
            parse_addresses(uris), s.idle_connections, s.connect_timeout, s.call_timeout
        )

    def __enter__(self) -> MetastoreClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    # databases

    def get_version(self) -> str:
        """The version of the metastore's service as it names it."""
        return str(self._call("getVersion"))

    def get_all_databases(self) -> list[str]:
        return sorted(self._call("get_all_databases"))

    def get_database(self, name: str) -> ttypes.Database:
        """Errors: SchemaNotFound."""
        try:
            return self._call("get_database", name)
        except ttypes.NoSuchObjectException:
            self._schema_not_found(name)

    def create_database(self, name: str, location: str | None = None) -> bool:
        """Creates a database; false if it was there already."""
        database = ttypes.Database(name=name, locationUri=location, parameters={})
        try:
            self._call("create_database", database, repeatable=False)
        except ttypes.AlreadyExistsException:
            return False
        return True

    def drop_database(self, name: str, delete_data: bool = False, cascade: bool = False) -> None:
        """Errors: SchemaNotFound."""
        try:
            self._call("drop_database", name, delete_data, cascade)
        except ttypes.NoSuchObjectException:
            self._schema_not_found(name)
        except MetastoreFailure:
            self.get_database(name)  # 2.3 stumbles over an unknown one
            raise

    # tables

    def get_all_tables(self, database: str) -> list[str]:
        """Errors: SchemaNotFound."""
        return self._tables_of(database, self._call("get_all_tables", database))

    def get_tables(self, database: str, pattern: str) -> list[str]:
        """Tables whose name matches; ``*`` for any text, ``|`` between alternatives.

        Errors:
            SchemaNotFound: the database is unknown.
        """
        return self._tables_of(database, self._call("get_tables", database, pattern))

    def get_table(self, database: str, table: str) -> ttypes.Table:
        """Errors: SchemaNotFound, TableNotFound."""
        request = ttypes.GetTableRequest(dbName=database, tblName=table, capabilities=_CAPABILITIES)
        try:
            return self._call("get_table_req", request).table
        except ttypes.NoSuchObjectException:
            self._table_not_found(database, table)

    def create_table(self, table: ttypes.Table) -> None:
        """Errors: TableExists, SchemaNotFound."""
        try:
            self._call("create_table", table, repeatable=False)
        except ttypes.AlreadyExistsException as error:
            raise TableExists(
                f"table {table.dbName}.{table.tableName} exists already",
                "choose another name, or drop it first",
            ) from error
        except (ttypes.NoSuchObjectException, ttypes.InvalidObjectException) as error:
            if table.dbName.lower() not in self.get_all_databases():
                self._schema_not_found(table.dbName)
            raise self._failure("create_table", error) from error

    def alter_table(self, database: str, table: str, altered: ttypes.Table) -> None:
        """Replaces a table's description; fetch it, change it, hand it back.

        Errors:
            TableNotFound: it does not exist.
            UnsupportedTable: it is skewed; the locations of its skewed values would be lost.
        """
        skewed = altered.sd.skewedInfo if altered.sd is not None else None
        if skewed is not None and skewed.skewedColNames:
            raise UnsupportedTable(
                f"{database}.{table} is skewed by {', '.join(skewed.skewedColNames)}; "
                "this client cannot alter it without losing where its values lie",
                "alter it with Hive",
            )
        try:
            self._call("alter_table", database, table, altered)
        except (ttypes.InvalidOperationException, ttypes.NoSuchObjectException) as error:
            self.get_table(database, table)
            raise self._failure("alter_table", error) from error

    def drop_table(self, database: str, table: str, delete_data: bool = False) -> None:
        """Errors: SchemaNotFound, TableNotFound."""
        try:
            self._call("drop_table", database, table, delete_data)
        except ttypes.NoSuchObjectException:
            self._table_not_found(database, table)

    # partitions

    def get_partition_names(self, database: str, table: str, limit: int = -1) -> list[str]:
        """Escaped names, ``month=1/day=2``; all of them with -1, else at most ``limit`` (to 32767).

        Errors:
            SchemaNotFound, TableNotFound.
        """
        try:
            names: list[str] = self._call("get_partition_names", database, table, limit)
        except ttypes.NoSuchObjectException:
            self._table_not_found(database, table)
        except MetastoreFailure:
            self.get_table(database, table)  # 2.3 calls an unknown table an internal error
            raise
        if not names:
            self.get_table(database, table)  # and to 4.0 it is a table without partitions
        return names

    def get_partitions_by_names(
        self,
        database: str,
        table: str,
        names: Sequence[str],
        cancellation: Cancellation | None = None,
    ) -> FoundPartitions:
        """Partitions by their escaped names, in one call.

        The metastore leaves out names it does not know, in silence; here they are told apart.

        Errors:
            SchemaNotFound, TableNotFound.
            concurrent.futures.CancelledError: cancelled.
        """
        wanted = {_stored_values(n): n for n in names}
        if not wanted:
            return FoundPartitions((), (), ())
        try:
            found: list[ttypes.Partition] = self._call(
                "get_partitions_by_names",
                database,
                table,
                list(wanted.values()),
                cancellation=cancellation,
            )
        except (ttypes.NoSuchObjectException, ttypes.InvalidObjectException) as error:
            self.get_table(database, table)
            raise self._failure("get_partitions_by_names", error) from error
        by_values = {tuple(p.values): p for p in found}
        known = tuple(v for v in wanted if v in by_values)
        if len(known) != len(found):
            strange = next(v for v in by_values if v not in wanted)
            raise MetastoreFailure(
                f"asked for partitions of {database}.{table} by name, "
                f"got one with other values: {list(strange)}",
                "look at this partition with Hive: its name and its values disagree",
            )
        if not known:
            self.get_table(database, table)  # 2.3 knows no partitions of unknown tables
        return FoundPartitions(
            tuple(wanted[v] for v in known),
            tuple(by_values[v] for v in known),
            tuple(n for v, n in wanted.items() if v not in by_values),
        )

    def add_partitions(
        self, database: str, table: str, partitions: Iterable[ttypes.Partition]
    ) -> None:
        """Adds partitions in one call; those that exist already stay as they are.

        Errors:
            SchemaNotFound, TableNotFound.
        """
        parts = list(partitions)
        if not parts:
            return
        request = ttypes.AddPartitionsRequest(
            dbName=database,
            tblName=table,
            parts=parts,
            ifNotExists=True,
            needResult=False,
        )
        try:
            self._call("add_partitions_req", request)
        except (ttypes.InvalidObjectException, ttypes.MetaException, MetastoreFailure) as error:
            self.get_table(database, table)
            raise self._failure("add_partitions_req", error) from error

    # how a call is made

    def _call(
        self,
        method: str,
        *arguments: object,
        repeatable: bool = True,
        cancellation: Cancellation | None = None,
    ) -> Any:
        held = cancellation if cancellation is not None else Cancellation()
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(
                lambda e: isinstance(e, _Lost) and (repeatable or not e.sent)
            ),
            stop=tenacity.stop_before_delay(self.settings.retry_deadline)
            | tenacity.stop_when_event_set(held.event),
            wait=tenacity.wait_exponential(
                multiplier=self.settings.retry_pause, max=self.settings.retry_longest_pause
            )
            # Many clients that lost one metastore do not come back in step.
            + tenacity.wait_random(0, self.settings.retry_pause),
            sleep=tenacity.sleep_using_event(held.event),
            reraise=True,
        )
        try:
            return attempts(self._attempt, method, arguments, held)
        except _Lost as lost:
            if held.cancelled:
                raise CancelledError from lost
            raise self._unavailable(lost) from lost.cause

    def _attempt(self, method: str, arguments: tuple[object, ...], held: Cancellation) -> Any:
        if held.cancelled:
            raise CancelledError
        try:
            connection = self._pool.take()
        except (OSError, TTransportException) as error:
            raise _Lost(error, sent=False) from error
        in_step = False  # a connection whose answer was not read to its end is of no more use
        try:
            with held.holding(connection):
                answer = getattr(connection.client, method)(*arguments)
            in_step = True
        except (OSError, TTransportException) as error:
            raise _Lost(error, sent=True) from error
        except TApplicationException as error:
            in_step = error.type != TApplicationException.MISSING_RESULT
            raise self._not_understood(connection, method, error) from error
        except TProtocolException as error:
            raise self._failure(method, error) from error
        except ttypes.MetaException as error:
            in_step = True
            raise self._failure(method, error) from error
        except TException:
            in_step = True
            raise
        finally:
            if in_step:
                self._pool.give_back(connection)
            else:
                connection.close()
        return answer

    # errors

    def _unavailable(self, lost: _Lost) -> MetastoreUnavailable:
        addresses = ", ".join(str(a) for a in parse_addresses(self.uris))
        cause = getattr(lost.cause, "strerror", None) or lost.cause
        return MetastoreUnavailable(
            f"no metastore answers at {addresses}: {cause}",
            "start one with `skipbridge metastore start`, or set the address of yours "
            "(metastore.uri)",
        )

    def _failure(self, method: str, error: Exception) -> MetastoreFailure:
        if isinstance(error, MetastoreFailure):
            return error
        text = _shortened(getattr(error, "message", None) or str(error) or type(error).__name__)
        return MetastoreFailure(
            f"the metastore could not carry out {method}: {text}", "its log says more"
        )

    def _not_understood(
        self, connection: Connection, method: str, error: TApplicationException
    ) -> MetastoreFailure:
        if error.type == TApplicationException.UNKNOWN_METHOD:
            return MetastoreFailure(
                f"the metastore at {connection.address} knows no {method}",
                "Hive's metastore from 2.3 to 4.0 is supported",
            )
        return self._failure(method, error)

    def _tables_of(self, database: str, names: list[str]) -> list[str]:
        if not names and database.lower() not in self.get_all_databases():
            self._schema_not_found(database)
        return sorted(names)

    def _schema_not_found(self, database: str) -> NoReturn:
        known = self.get_all_databases()
        raise SchemaNotFound(f"no schema {database!r} in the metastore", _nearest(database, known))

    def _table_not_found(self, database: str, table: str) -> NoReturn:
        known = self.get_all_tables(database)  # raises SchemaNotFound
        raise TableNotFound(
            f"no table {database}.{table} in the metastore",
            _nearest(table, known, prefix=f"{database}."),
        )


def _stored_values(name: str) -> tuple[str, ...]:
    """The values of a partition with this name, as the metastore holds them."""
    return tuple(value or NULL_MARKER for _, value in parse_partition_name(name))


def _shortened(text: str) -> str:
    """Its beginning and its end: SQL in between may run to pages, and the root cause is last."""
    return text if len(text) <= 600 else f"{text[:300]} ... {text[-250:]}"


def _nearest(name: str, known: Sequence[str], prefix: str = "") -> str:
    near = difflib.get_close_matches(name.lower(), known, n=3)
    if near:
        return "did you mean " + " or ".join(prefix + n for n in near) + "?"
    if not known:
        return "there are none"
    shown = ", ".join(prefix + n for n in known[:10])
    return f"there are: {shown}" + (f" and {len(known) - 10} more" if len(known) > 10 else "")
