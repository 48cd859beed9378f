"""The SELECT of ``SHOW SEGMENTS ... AS SELECT``: rows of the listing, chosen and sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bridge.kernel.errors import InvalidStatement

if TYPE_CHECKING:
    from sqlglot import exp

COLUMNS = (
    *("id", "status", "started", "finished", "format", "files", "bytes", "indexed_files"),
    *("views", "merged_into", "paths"),
)
"""The columns of SHOW SEGMENTS."""

_CLAUSES = {"expressions", "from", "from_", "where", "order", "limit"}
_HINT = "SELECT columns or * FROM {table}_segments WHERE ... ORDER BY ... LIMIT n"


def parse_listing_query(text: str, table: str) -> exp.Select:
    """The query, if it is of the form that `run_listing_query` runs.

    Args:
        table: the name of the table without its schema, or its directory; the listing is named
            after it.

    Errors:
        InvalidStatement: it is not of this form; names what is not.
    """
    # Imported here, because only this statement needs it.
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    table = table.rstrip("/").rpartition("/")[2]
    hint = _HINT.replace("{table}", table)
    try:
        found = parse_one(text, read="spark").unnest()
    except (SqlglotError, RecursionError, ValueError) as e:
        reason = str(e).splitlines()[0][:200] if str(e) else type(e).__name__
        raise InvalidStatement(f"SHOW SEGMENTS AS: not a query: {reason}", hint) from e
    simple = (
        *(exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Neg, exp.Boolean, exp.Star),
        *(exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
        *(exp.In, exp.Like, exp.Is, exp.Between, exp.Where, exp.Order, exp.Ordered, exp.Limit),
        *(exp.Select, exp.From, exp.Table),
    )
    for node in found.walk():
        if not isinstance(node, simple) or (isinstance(node, exp.Select) and node is not found):
            inner = isinstance(node, (exp.Select, exp.Subquery))
            what = "a subquery" if inner else node.sql("spark")[:60]
            raise InvalidStatement(f"SHOW SEGMENTS AS cannot do {what}", hint)
    tables = list(found.find_all(exp.Table))
    if not isinstance(found, exp.Select) or len(tables) != 1:
        raise InvalidStatement("SHOW SEGMENTS AS needs a SELECT from the listing", hint)
    more = {name for name, value in found.args.items() if value} - _CLAUSES
    if more:
        raise InvalidStatement(f"SHOW SEGMENTS AS cannot do {min(more).upper()}", hint)
    if tables[0].sql("spark").replace("`", "").lower() != f"{table}_segments".lower():
        raise InvalidStatement(f"SHOW SEGMENTS AS reads {tables[0].sql('spark')[:60]}", hint)
    for column in found.find_all(exp.Column):
        if not isinstance(column.this, exp.Star) and column.name.lower() not in COLUMNS:
            raise InvalidStatement(
                f"the listing has no column {column.name}", f"it has {', '.join(COLUMNS)}"
            )
    return found


def run_listing_query(
    text: str, table: str, rows: Sequence[Mapping[str, Any]]
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Columns and rows of the query. Errors: InvalidStatement."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError
    from sqlglot.executor import execute

    query = parse_listing_query(text, table)
    for node in query.find_all(exp.Table):
        node.set("this", exp.to_identifier("listing"))
    try:
        found = execute(query, tables={"listing": [dict(row) for row in rows]}, dialect="spark")
    except (SqlglotError, TypeError) as e:
        raise InvalidStatement(
            f"SHOW SEGMENTS AS: {str(e).splitlines()[0][:200]}", _HINT.replace("{table}", table)
        ) from e
    return tuple(found.columns), [tuple(row) for row in found.rows]
