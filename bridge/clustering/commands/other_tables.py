"""Where the other tables of a metastore lie: nothing that they may read is deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from bridge.clustering.publication.places import OtherTable
from bridge.kernel.errors import (
    InvalidUri,
    MetastoreFailure,
    MetastoreUnavailable,
    SchemaNotFound,
    TableNotFound,
)
from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from bridge.storage.uri import canonical, join
from bridge.table.model import TableName

_AT_ONCE = 100
_PARTITIONS_AT_ONCE = 500
MOST_PARTITIONS = 30_000
"""Of one table. Of larger ones, no partition is looked at."""


def other_tables(
    client: MetastoreClient, table: TableName, near: Callable[[str], bool]
) -> list[OtherTable]:
    """All tables but one, with a request for every hundred of them.

    Partitioned tables cost another one each, and one for every 500 partitions. A table of which the
    metastore does not tell all places is unreadable. If its own is not told, it has the one where
    tables of its database lie by default.

    Args:
        near: which locations of partitions are wanted.

    Errors:
        MetastoreUnavailable: a list of tables is not known; run it again.
    """
    found: list[OtherTable] = []
    for schema in client.get_all_databases():
        with suppress(SchemaNotFound):  # dropped meanwhile
            names = [
                name
                for name in client.get_all_tables(schema)
                if TableName(schema.lower(), name.lower()) != table
            ]
            for start in range(0, len(names), _AT_ONCE):
                found += _described(client, schema, names[start : start + _AT_ONCE], near)
    return found


def _described(
    client: MetastoreClient, schema: str, names: list[str], near: Callable[[str], bool]
) -> list[OtherTable]:
    try:
        held = client.get_tables_by_names(schema, names)
    except (MetastoreFailure, MetastoreUnavailable):  # of one of them, or of the call
        found = []
        for name in names:
            try:
                with suppress(TableNotFound):  # dropped meanwhile
                    found += _placed(client, schema, [client.get_table(schema, name)], near)
            except (MetastoreFailure, MetastoreUnavailable):
                client.get_all_databases()  # it answers: this record ends its calls
                found.append(_unreadable(client, schema, name))
        return found
    return _placed(client, schema, held, near)


def _placed(
    client: MetastoreClient,
    schema: str,
    tables: Sequence[records.Table],
    near: Callable[[str], bool],
) -> list[OtherTable]:
    found = []
    for table in tables:
        place = None if table.sd is None else table.sd.location
        if not place:  # a view
            continue
        try:
            made = OtherTable(f"{schema}.{table.tableName}", canonical(place))
        except InvalidUri:  # engines may know where it is
            made = _unreadable(client, schema, table.tableName)
        if table.partitionKeys:
            made = _with_partitions(client, schema, table.tableName, made, near)
        found.append(made)
    return found


def _unreadable(client: MetastoreClient, schema: str, name: str) -> OtherTable:
    usual = join(_directory(client, schema), name.lower())
    return OtherTable(f"{schema}.{name}", usual, unreadable=True)


def _with_partitions(
    client: MetastoreClient,
    schema: str,
    name: str,
    table: OtherTable,
    near: Callable[[str], bool],
) -> OtherTable:
    try:
        names = client.get_partition_names(schema, name, MOST_PARTITIONS + 1)
        if len(names) > MOST_PARTITIONS:
            return replace(table, unasked=True)
        places = set(_locations(client, schema, name, names))
    except (TableNotFound, SchemaNotFound):  # dropped meanwhile
        return table
    except (MetastoreFailure, MetastoreUnavailable):
        client.get_all_databases()  # it answers: these records end its calls
        return replace(table, unreadable=True)
    known = sorted(place for place in places if place is not None and near(place))
    unreadable = table.unreadable or None in places
    return replace(table, partitions=tuple(known), unreadable=unreadable)


def _locations(
    client: MetastoreClient, schema: str, table: str, names: Sequence[str]
) -> Iterator[str | None]:
    """Canonical URIs; None: it is none that is known here."""
    for start in range(0, len(names), _PARTITIONS_AT_ONCE):
        part = names[start : start + _PARTITIONS_AT_ONCE]
        for each in client.get_partition_locations(schema, table, part).partitions:
            if each.sd is None or not each.sd.location:
                yield None
                continue
            try:
                yield canonical(each.sd.location)
            except InvalidUri:
                yield None


def _directory(client: MetastoreClient, schema: str) -> str:
    try:
        return canonical(client.get_database(schema).locationUri or "")
    except (MetastoreFailure, InvalidUri):
        return ""
