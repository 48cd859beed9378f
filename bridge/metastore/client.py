"""A client of Hive's metastore, versions 2.3 to 4.0.

Thread-safe: each call takes its own connection from a pool. After a lost connection, the creation
of a database or a table is retried only if it was never sent. Every other call may be executed
twice with the same result.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from bridge.kernel.errors import (
    InvalidRequest,
    MetastoreFailure,
    SchemaNotFound,
    TableExists,
    TableNotFound,
    UnsupportedTable,
)
from bridge.kernel.retry import Backoff
from bridge.metastore._gen import ttypes
from bridge.metastore.calls import Caller, MethodUnknown
from bridge.metastore.connection import Cancellation
from bridge.table.partition import NULL_MARKER, unescape

_NOT_A_NAME = re.compile("not a valid (object|table) name")
_LOCATION_FIELDS = [
    "values",
    "sd.location",
    "sd.inputFormat",
    "sd.serdeInfo.serializationLib",
]
_CAPABILITIES = ttypes.ClientCapabilities(values=[ttypes.ClientCapability.INSERT_ONLY_TABLES])


@dataclass(frozen=True, slots=True)
class FoundPartitions:
    """Partitions in the order of the requested names, and names that the metastore does not know.

    Attributes:
        names: the names of ``partitions``, in the same order.
    """

    names: tuple[str, ...]
    partitions: tuple[ttypes.Partition, ...]
    missing: tuple[str, ...]


class MetastoreClient(Caller):
    """A client; see `Caller` for its arguments and the errors of every call.

    ``context`` is Hive's environment context of an alteration: ``CASCADE``, ``DO_NOT_UPDATE_STATS``
    and others.
    """

    # Until a metastore reports that it does not support get_partitions_with_specs.
    _projects = True

    # databases

    def get_version(self) -> str:
        """The version that the metastore reports."""
        return str(self.call("getVersion"))

    def get_all_databases(self) -> list[str]:
        return sorted(self.call("get_all_databases"))

    def get_database(self, name: str) -> ttypes.Database:
        """Errors: SchemaNotFound."""
        try:
            return self.call("get_database", name)
        except ttypes.NoSuchObjectException:
            self._schema_not_found(name)

    def create_database(
        self,
        name: str,
        location: str | None = None,
        parameters: Mapping[str, str] | None = None,
        description: str | None = None,
    ) -> bool:
        """Creates a database; False if it already exists.

        Errors:
            InvalidRequest: the metastore does not allow this name.
        """
        database = ttypes.Database(
            name=name,
            description=description,
            locationUri=location,
            parameters=dict(parameters or {}),
        )
        try:
            self.call("create_database", database, repeatable=False)
        except ttypes.AlreadyExistsException:
            return False
        except ttypes.InvalidObjectException as error:
            raise _not_a_name("database", name, error) from error
        except MetastoreFailure:
            if name.lower() in self.get_all_databases():  # created concurrently
                return False
            raise
        return True

    # tables

    def get_all_tables(self, database: str) -> list[str]:
        """Errors: SchemaNotFound."""
        return self._tables_of(database, self.call("get_all_tables", database))

    def get_views(self, database: str) -> list[str]:
        """Views of a database, whoever created them.

        Empty if the metastore cannot list views (before 2.3).

        Errors:
            SchemaNotFound: the database does not exist.
        """
        try:
            names = self.call("get_tables_by_type", database, "*", "VIRTUAL_VIEW")
        except MethodUnknown:
            names = []
        return self._tables_of(database, names)

    def get_table(self, database: str, table: str) -> ttypes.Table:
        """Errors: SchemaNotFound, TableNotFound."""
        request = ttypes.GetTableRequest(dbName=database, tblName=table, capabilities=_CAPABILITIES)
        try:
            return self.call("get_table_req", request).table
        except ttypes.NoSuchObjectException:
            self._table_not_found(database, table)

    def get_tables_by_names(self, database: str, names: Sequence[str]) -> list[ttypes.Table]:
        """Records of tables in one call, in any order; tables that do not exist are left out.

        Errors:
            SchemaNotFound: the database does not exist.
            MetastoreFailure: also if one of the records cannot be read.
        """
        request = ttypes.GetTablesRequest(
            dbName=database, tblNames=list(names), capabilities=_CAPABILITIES
        )
        try:
            found: list[ttypes.Table] = self.call("get_table_objects_by_name_req", request).tables
        except ttypes.UnknownDBException:
            self._schema_not_found(database)
        except ttypes.InvalidOperationException as error:
            raise self.failure("get_table_objects_by_name_req", error) from error
        return found

    def create_table(self, table: ttypes.Table, context: Mapping[str, str] | None = None) -> None:
        """Errors: TableExists, SchemaNotFound, InvalidRequest for a name that is not allowed."""
        try:
            self.call(
                "create_table_with_environment_context",
                table,
                _environment(context),
                repeatable=False,
            )
        except ttypes.AlreadyExistsException as error:
            raise _exists(table) from error
        except MetastoreFailure as error:
            # Created concurrently: the metastore's database rejects the second by its unique key.
            if table.tableName.lower() in self.get_all_tables(table.dbName):
                raise _exists(table) from error
            raise
        except (ttypes.NoSuchObjectException, ttypes.InvalidObjectException) as error:
            if table.dbName.lower() not in self.get_all_databases():
                self._schema_not_found(table.dbName)
            if _NOT_A_NAME.search(error.message or ""):
                raise _not_a_name("table", table.tableName, error) from error
            raise self.failure("create_table", error) from error

    def alter_table(
        self,
        database: str,
        table: str,
        altered: ttypes.Table,
        context: Mapping[str, str] | None = None,
    ) -> None:
        """Replaces a table's record; fetch it, change it, write it back.

        Errors:
            TableNotFound: the table does not exist.
            UnsupportedTable: the table is skewed; the locations of its skewed values would be lost.
        """
        _refuse_skewed(altered.sd, f"{database}.{table}")
        try:
            self.call(
                "alter_table_with_environment_context",
                database,
                table,
                altered,
                _environment(context),
            )
        except (ttypes.InvalidOperationException, ttypes.NoSuchObjectException) as error:
            self.get_table(database, table)
            raise self.failure("alter_table", error) from error

    def drop_table(
        self,
        database: str,
        table: str,
        delete_data: bool = False,
        context: Mapping[str, str] | None = None,
    ) -> None:
        """Errors: SchemaNotFound, TableNotFound."""
        try:
            self.call(
                "drop_table_with_environment_context",
                database,
                table,
                delete_data,
                _environment(context),
            )
        except ttypes.NoSuchObjectException:
            self._table_not_found(database, table)

    # partitions

    def get_partition_names(self, database: str, table: str, limit: int = -1) -> list[str]:
        """Escaped names, ``month=1/day=2``; all with -1, else at most ``limit`` (up to 32767).

        Errors:
            SchemaNotFound, TableNotFound.
        """
        try:
            names: list[str] = self.call("get_partition_names", database, table, limit)
        except ttypes.NoSuchObjectException:
            self._table_not_found(database, table)
        except MetastoreFailure:
            self.get_table(database, table)  # 2.3 reports an unknown table as an internal error
            raise
        if not names:
            self.get_table(database, table)  # up to 4.0 an unknown table has no partitions
        return names

    def get_partitions_by_names(
        self,
        database: str,
        table: str,
        names: Sequence[str],
        cancellation: Cancellation | None = None,
    ) -> FoundPartitions:
        """Partitions by their escaped names, in one call.

        The metastore silently omits names that it does not know; the result lists them.

        Errors:
            SchemaNotFound, TableNotFound.
            concurrent.futures.CancelledError: the call was cancelled.
        """
        return self._by_names("get_partitions_by_names", database, table, names, cancellation)

    def _by_names(
        self,
        method: str,
        database: str,
        table: str,
        names: Sequence[str],
        cancellation: Cancellation | None,
    ) -> FoundPartitions:
        wanted = {_stored_values(n): n for n in names}
        if not wanted:
            return FoundPartitions((), (), ())
        found: list[ttypes.Partition]
        stop = None if cancellation is None else cancellation.event
        for _ in Backoff(0.1, growth=4.0, attempts=4, stop=stop):
            try:
                found = self.call(
                    method, database, table, list(wanted.values()), cancellation=cancellation
                )
            except (ttypes.NoSuchObjectException, ttypes.InvalidObjectException) as error:
                self.get_table(database, table)
                raise self.failure("get_partitions_by_names", error) from error
            # A partition that another adds or renames now is seen before its values: they are rows
            # of their own in the metastore's database, and 2.3 reads them by another query.
            if _as_asked(found, wanted):
                break
        return self._in_order(database, table, wanted, found)

    def get_partition_locations(
        self,
        database: str,
        table: str,
        names: Sequence[str],
        cancellation: Cancellation | None = None,
    ) -> FoundPartitions:
        """Like `get_partitions_by_names`, but with only what a reader of files needs.

        That is values, location, input format and SerDe. Other fields may be missing, so these
        partitions must not be altered. From 4.0 on the metastore reads nothing else from its
        database, which is 3 to 20 times as fast.
        """
        asked = ("get_partition_places_by_names", database, table, names, cancellation)
        if not self._projects:
            return self._by_names(*asked)
        wanted = {_stored_values(n): n for n in names}
        if not wanted:
            return FoundPartitions((), (), ())
        request = ttypes.GetPartitionsRequest(
            dbName=database,
            tblName=table,
            projectionSpec=ttypes.GetProjectionsSpec(fieldList=_LOCATION_FIELDS),
            filterSpec=ttypes.GetPartitionsFilterSpec(
                filterMode=ttypes.PartitionFilterMode.BY_NAMES, filters=list(wanted.values())
            ),
        )
        try:
            answer = self.call("get_partitions_with_specs", request, cancellation=cancellation)
        except MethodUnknown:  # before 4.0
            self._projects = False
            return self._by_names(*asked)
        except (MetastoreFailure, ttypes.NoSuchObjectException):
            # Also for an unknown table: the older call reports the cause.
            return self._by_names(*asked)
        found = _listed(answer.partitionSpec)
        if not _as_asked(found, wanted):  # the older call asks again
            return self._by_names(*asked)
        return self._in_order(database, table, wanted, found)

    def _in_order(
        self,
        database: str,
        table: str,
        wanted: dict[tuple[str, ...], str],
        found: Sequence[ttypes.Partition],
    ) -> FoundPartitions:
        """The partitions in the requested order, and the missing names."""
        by_values = {tuple(p.values): p for p in found}
        known = tuple(v for v in wanted if v in by_values)
        if len(known) != len(found):
            strange = next(v for v in by_values if v not in wanted)
            raise MetastoreFailure(
                f"asked for partitions of {database}.{table} by name, "
                f"got one with other values: {list(strange)}",
                "check this partition with Hive: its name and its values disagree",
            )
        if not known:
            self.get_table(database, table)  # 2.3 returns no partitions for an unknown table
        return FoundPartitions(
            tuple(wanted[v] for v in known),
            tuple(by_values[v] for v in known),
            tuple(n for v, n in wanted.items() if v not in by_values),
        )

    def add_partitions(
        self, database: str, table: str, partitions: Iterable[ttypes.Partition]
    ) -> list[ttypes.Partition]:
        """Adds partitions in one call; existing ones stay as they are.

        Returns:
            The partitions that this call has added.

        Errors:
            SchemaNotFound, TableNotFound.
        """
        parts = list(partitions)
        if not parts:
            return []
        request = ttypes.AddPartitionsRequest(
            dbName=database,
            tblName=table,
            parts=parts,
            ifNotExists=True,
            needResult=True,
        )
        try:
            return list(self.call("add_partitions_req", request).partitions or ())
        except (ttypes.InvalidObjectException, ttypes.MetaException, MetastoreFailure) as error:
            self.get_table(database, table)
            raise self.failure("add_partitions_req", error) from error

    def alter_partitions(
        self,
        database: str,
        table: str,
        partitions: Iterable[ttypes.Partition],
        context: Mapping[str, str] | None = None,
    ) -> None:
        """Replaces records of partitions, identified by their values, in one call: all or none.

        Errors:
            SchemaNotFound, TableNotFound.
            MetastoreFailure: a partition does not exist; none is altered.
            UnsupportedTable: a partition is skewed, see `alter_table`.
        """
        parts = list(partitions)
        if not parts:
            return
        for part in parts:
            _refuse_skewed(part.sd, f"a partition of {database}.{table}")
        method = "alter_partitions_with_environment_context"
        try:
            self.call(method, database, table, parts, _environment(context))
        except (ttypes.InvalidOperationException, MetastoreFailure) as error:
            self.get_table(database, table)
            raise self.failure(method, error) from error

    def drop_partitions(
        self,
        database: str,
        table: str,
        names: Iterable[str],
        delete_data: bool = False,
        context: Mapping[str, str] | None = None,
    ) -> None:
        """Drops partitions by their escaped names in one call; missing ones are ignored.

        Errors:
            SchemaNotFound, TableNotFound.
        """
        wanted = list(names)
        if not wanted:
            return
        request = ttypes.DropPartitionsRequest(
            dbName=database,
            tblName=table,
            parts=ttypes.RequestPartsSpec(names=wanted),
            deleteData=delete_data,
            ifExists=True,
            environmentContext=_environment(context),
            needResult=False,
        )
        try:
            self.call("drop_partitions_req", request)
        except (ttypes.NoSuchObjectException, MetastoreFailure) as error:
            self.get_table(database, table)
            raise self.failure("drop_partitions_req", error) from error

    # notifications

    def get_current_notification_id(self) -> int:
        """The number of the newest event; 0 if no events are recorded."""
        return int(self.call("get_current_notificationEventId").eventId)

    def get_next_notifications(self, after: int, limit: int) -> list[ttypes.NotificationEvent]:
        """Events after event ``after``, oldest first, at most ``limit``.

        The metastore silently omits events that it no longer keeps: check the number of the first
        one.
        """
        request = ttypes.NotificationEventRequest(lastEvent=after, maxEvents=limit)
        return list(self.call("get_next_notification", request).events)

    def get_config_value(self, name: str, default: str) -> str:
        """A setting of the server; ``default`` if it is not set or not disclosed."""
        try:
            return str(self.call("get_config_value", name, default))
        except (ttypes.ConfigValSecurityException, MetastoreFailure):
            return default

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


def _exists(table: ttypes.Table) -> TableExists:
    return TableExists(
        f"table {table.dbName}.{table.tableName} exists already",
        "choose another name, or drop it first",
    )


def _environment(context: Mapping[str, str] | None) -> ttypes.EnvironmentContext | None:
    return None if context is None else ttypes.EnvironmentContext(properties=dict(context))


def _listed(specs: Sequence[ttypes.PartitionSpec]) -> list[ttypes.Partition]:
    """The partitions of a response: listed, or grouped below a shared directory."""
    found: list[ttypes.Partition] = []
    for spec in specs:
        if spec.partitionList is not None:
            found += spec.partitionList.partitions
        shared = spec.sharedSDPartitionSpec
        for part in shared.partitions if shared is not None else ():
            descriptor = copy.copy(shared.sd)
            descriptor.location = f"{spec.rootPath}{part.relativePath}"
            found.append(ttypes.Partition(values=part.values, sd=descriptor))
    return found


def _refuse_skewed(descriptor: ttypes.StorageDescriptor | None, what: str) -> None:
    skewed = descriptor.skewedInfo if descriptor is not None else None
    if skewed is not None and skewed.skewedColNames:
        raise UnsupportedTable(
            f"{what} is skewed by {', '.join(skewed.skewedColNames)}; "
            "this client cannot alter it without losing the locations of its values",
            "alter it with Hive",
        )


def _as_asked(found: Iterable[ttypes.Partition], wanted: Container[tuple[str, ...]]) -> bool:
    return all(tuple(p.values or ()) in wanted for p in found)


def _stored_values(name: str) -> tuple[str, ...]:
    """The values of a partition with this name, as the metastore stores them."""
    return tuple([unescape(level.partition("=")[2]) or NULL_MARKER for level in name.split("/")])


def _not_a_name(kind: str, name: str, error: Exception) -> InvalidRequest:
    said = getattr(error, "message", None) or str(error)
    return InvalidRequest(
        f"the metastore does not allow a {kind} of the name {name!r}: {said}",
        "use letters, digits and _",
    )


def _nearest(name: str, known: Sequence[str], prefix: str = "") -> str:
    near = difflib.get_close_matches(name.lower(), known, n=3)
    if near:
        return "did you mean " + " or ".join(prefix + n for n in near) + "?"
    if not known and prefix:
        return f"the schema {prefix[:-1]} has no table: write SCHEMA.TABLE for another's"
    if not known:
        return "there are none"
    shown = ", ".join(prefix + n for n in known[:10])
    return f"there are: {shown}" + (f" and {len(known) - 10} more" if len(known) > 10 else "")
