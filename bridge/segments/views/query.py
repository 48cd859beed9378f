"""The query of a view: ``SELECT a, b FROM t`` and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from bridge.kernel.errors import InvalidRequest

_REFUSED = {
    "joins": "JOIN",
    "laterals": "LATERAL VIEW",
    "where": "WHERE",
    "group": "GROUP BY",
    "having": "HAVING",
    "qualify": "QUALIFY",
    "windows": "WINDOW",
    "distinct": "DISTINCT",
    "order": "ORDER BY",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "sample": "TABLESAMPLE",
}


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """What a query names, in lower case.

    Attributes:
        schema: empty if the table is named without one.
        columns: ``("*",)`` for all.
    """

    schema: str
    table: str
    columns: tuple[str, ...]


def parse_view_query(text: str) -> ViewQuery:
    """Parses the query.

    Errors:
        InvalidRequest: it is no query, or does more than name columns of one table; by name.

    >>> parse_view_query("SELECT a, B FROM db.t")
    ViewQuery(schema='db', table='t', columns=('a', 'b'))
    """
    try:
        found = sqlglot.parse(text, dialect="spark")
    except SqlglotError as error:
        first = str(error).partition("\n")[0]
        raise _refused(f"does not parse: {first}") from error
    if len(found) != 1 or found[0] is None:
        raise _refused("is not one query")
    query = found[0]
    if isinstance(query, exp.SetOperation):
        raise _refused(f"has {query.key.upper()}")
    if not isinstance(query, exp.Select):
        raise _refused(f"is a {query.key.upper()}")
    if query.args.get("with_") or query.args.get("with"):
        raise _refused("has WITH")
    for part, spelled in _REFUSED.items():
        if query.args.get(part):
            raise _refused(f"has {spelled}")
    source = query.args.get("from_") or query.args.get("from")
    table = source.this if source is not None else None
    if not isinstance(table, exp.Table) or table.args.get("joins") or not table.name:
        raise _refused("does not read one table by its name")
    if table.args.get("sample") or table.catalog:
        raise _refused(f"reads {table.sql('spark')}")
    schema, name = table.db.lower(), table.name.lower()
    names = {name, table.alias.lower()}
    return ViewQuery(schema, name, tuple(_column(each, names) for each in query.expressions))


def _column(found: exp.Expression, tables: set[str]) -> str:
    if isinstance(found, exp.Star) and not any(found.args.values()):
        return "*"
    if isinstance(found, exp.Alias):
        raise _refused(f"renames a column: {found.sql('spark')}")
    if isinstance(found, exp.AggFunc):
        raise _refused(f"has an aggregate: {found.sql('spark')}")
    aggregate = found.find(exp.AggFunc)
    if aggregate is not None:
        raise _refused(f"has an aggregate: {aggregate.sql('spark')}")
    if not isinstance(found, exp.Column) or isinstance(found.this, exp.Star):
        raise _refused(f"has an expression: {found.sql('spark')}")
    if found.table and found.table.lower() not in tables:
        raise _refused(f"has an expression: {found.sql('spark')}")
    return str(found.name).lower()


def _refused(what: str) -> InvalidRequest:
    return InvalidRequest(
        f"the query of a materialized view {what}",
        "a view holds columns of one table: SELECT a, b FROM t",
    )
