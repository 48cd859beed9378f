"""Where the other tables of a metastore lie: nothing that they may read is deleted."""

from __future__ import annotations

from contextlib import suppress

from bridge.clustering.publishing import OtherTable
from bridge.errors import (
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


def other_tables(client: MetastoreClient, table: TableName) -> list[OtherTable]:
    """All tables but one, with a request for every hundred of them.

    A table whose record the metastore cannot give is taken to lie where tables of its database lie
    by default.

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
                found += _described(client, schema, names[start : start + _AT_ONCE])
    return found


def _described(client: MetastoreClient, schema: str, names: list[str]) -> list[OtherTable]:
    try:
        return _placed(schema, client.get_tables_by_names(schema, names))
    except (MetastoreFailure, MetastoreUnavailable):  # of one of them, or of the call
        found = []
        for name in names:
            try:
                with suppress(TableNotFound):  # dropped meanwhile
                    found += _placed(schema, [client.get_table(schema, name)])
            except (MetastoreFailure, MetastoreUnavailable):
                client.get_all_databases()  # it answers: this record ends its calls
                usual = join(_directory(client, schema), name.lower())
                found.append(OtherTable(f"{schema}.{name}", usual, unreadable=True))
        return found


def _placed(schema: str, tables: list[records.Table]) -> list[OtherTable]:
    found = []
    for table in tables:
        place = None if table.sd is None else table.sd.location
        with suppress(InvalidUri):  # in no storage that we know
            if place:  # else a view
                found.append(OtherTable(f"{schema}.{table.tableName}", canonical(place)))
    return found


def _directory(client: MetastoreClient, schema: str) -> str:
    try:
        return canonical(client.get_database(schema).locationUri or "")
    except (MetastoreFailure, InvalidUri):
        return ""
