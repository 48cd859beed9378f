"""The SELECT of a materialised view: columns of one table, and nothing else."""

from __future__ import annotations

from bridge.kernel.errors import InvalidStatement
from bridge.segments.sql.cursor import Cursor
from bridge.segments.sql.statements import Name
from bridge.segments.sql.tokens import TokenKind, place

_REFUSED = {
    ",": "a join",
    "JOIN": "a join",
    "INNER": "a join",
    "LEFT": "a join",
    "RIGHT": "a join",
    "FULL": "a join",
    "CROSS": "a join",
    "NATURAL": "a join",
    "LATERAL": "a join",
    "WHERE": "a condition",
    "GROUP": "an aggregate",
    "HAVING": "an aggregate",
    "WINDOW": "an aggregate",
    "QUALIFY": "a condition",
    "ORDER": "ORDER BY",
    "CLUSTER": "CLUSTER BY",
    "DISTRIBUTE": "DISTRIBUTE BY",
    "LIMIT": "LIMIT",
    "OFFSET": "OFFSET",
    "FETCH": "FETCH",
    "UNION": "UNION",
    "INTERSECT": "INTERSECT",
    "EXCEPT": "EXCEPT",
    "MINUS": "MINUS",
    "DISTINCT": "DISTINCT",
    "TABLESAMPLE": "TABLESAMPLE",
}
_FOLLOWS = ("SORT", "WITH", "DMPROPERTIES", "PROPERTIES", "TBLPROPERTIES")
_AGGREGATES = frozenset({"sum", "count", "min", "max", "avg", "first", "last", "approx_distinct"})


def parse_view_query(cursor: Cursor) -> tuple[Name, tuple[str, ...]]:
    """The table and the columns; no columns stand for all.

    Errors:
        InvalidStatement: the query is more than columns of one table; names what.
    """
    cursor.expect("SELECT")
    if cursor.sees("DISTINCT"):
        raise _refused(cursor, "DISTINCT")
    cursor.accept("ALL")
    items: list[tuple[tuple[str, ...], str]] = []
    if not cursor.accept("*"):
        items.append(_column(cursor))
        while cursor.accept(","):
            items.append(_column(cursor))
    cursor.expect("FROM")
    if cursor.sees("("):
        raise _refused(cursor, "a subquery")
    table = cursor.table()
    alias = _alias(cursor)
    if not cursor.is_at_end() and not any(map(cursor.sees, _FOLLOWS)):
        what = _REFUSED.get(cursor.token.value.upper())
        raise _refused(cursor, what) if what else cursor.error("the end of the SELECT")
    for prefix, column in items:
        _check_prefix(prefix, column, table, alias)
    columns = tuple(column for _, column in items)
    return table, cursor.unique(columns, "column")


def _column(cursor: Cursor) -> tuple[tuple[str, ...], str]:
    """A column, and the table's name or alias before it."""
    if cursor.token.kind is TokenKind.STRING:
        raise cursor.error("a column's name")
    if cursor.token.kind is TokenKind.NUMBER or cursor.token.value in ("(", "-", "+", "*"):
        raise _refused(cursor, "an expression")
    parts = [cursor.name("a column's name")]
    if parts[0].upper() == "CASE" and not (cursor.sees(",") or cursor.sees("FROM")):
        raise _refused(cursor, "an expression")
    while cursor.accept("."):
        parts.append(cursor.name("a column's name"))
    if cursor.sees("("):
        aggregate = parts[-1].lower() in _AGGREGATES
        raise _refused(cursor, f"{'an aggregate' if aggregate else 'a function'} {parts[-1]}(...)")
    if cursor.sees("AS") or cursor.token.kind in (TokenKind.WORD, TokenKind.QUOTED):
        if not cursor.sees("FROM"):
            raise _refused(cursor, f"another name for {parts[-1]}")
    elif not (cursor.sees(",") or cursor.is_at_end()):
        raise _refused(cursor, "an expression")
    return tuple(parts[:-1]), parts[-1]


def _alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS"):
        return cursor.name("the table's other name")
    token = cursor.token
    if token.kind is TokenKind.QUOTED or (
        token.kind is TokenKind.WORD and token.value.upper() not in {*_REFUSED, *_FOLLOWS}
    ):
        return cursor.name()
    return None


def _check_prefix(prefix: tuple[str, ...], column: str, table: Name, alias: str | None) -> None:
    if not prefix:
        return
    known = [(alias,)] if alias is not None else [(table.name,), (table.schema, table.name)]
    if tuple(p.lower() for p in prefix) not in [
        tuple(part.lower() for part in each if part is not None) for each in known
    ]:
        raise InvalidStatement(
            f"{'.'.join(prefix)}.{column} is not a column of {table.name}",
            "a view holds top-level columns of one table",
        )


def _refused(cursor: Cursor, what: str) -> InvalidStatement:
    return InvalidStatement(
        f"{place(cursor.text, cursor.token.start)}: a view cannot hold {what}",
        "a view holds columns of one table: SELECT a, b FROM t",
    )
