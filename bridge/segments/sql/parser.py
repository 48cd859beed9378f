"""Parses statements about tables of segments.

The law: a text gives statements, or an error that names the place. Nothing of a statement is
ignored, and statements that such tables do not have are refused by name before any of them runs.
"""

from __future__ import annotations

from bridge.kernel.errors import BridgeError, InvalidStatement
from bridge.segments.sql.blocked import display_name, next_table_name, operation_blocked
from bridge.segments.sql.cursor import Cursor
from bridge.segments.sql.listing_query import parse_listing_query
from bridge.segments.sql.parse_alter import parse_alter
from bridge.segments.sql.parse_objects import (
    parse_create_index,
    parse_create_view,
    parse_datamap,
    parse_drop_object,
    parse_rebuild,
    parse_show_objects,
)
from bridge.segments.sql.parse_table import parse_create_table
from bridge.segments.sql.statements import (
    CLEAN_OPTIONS,
    CleanFiles,
    DeleteSegments,
    DeleteSegmentsBefore,
    Describe,
    DropTable,
    ShowCreateTable,
    ShowSegments,
    Statement,
)
from bridge.segments.sql.times import parse_time

_HEADS = (
    *("ALTER", "CLEAN", "CREATE", "DELETE", "DESC", "DESCRIBE", "DROP", "INSERT", "LOAD", "MERGE"),
    *("MSCK", "REBUILD", "REFRESH", "SELECT", "SET", "SHOW", "TRUNCATE", "UPDATE"),
)
_ELSEWHERE = {
    "EXPLAIN": "skipbridge explain TABLE CONDITION",
    "SELECT": "query the table in Trino or Hive, or with Session.table(...).scan(...)",
    "USE": "write schema.table, or give --schema",
    "WITH": "query the table in Trino or Hive, or with Session.table(...).scan(...)",
}


def parse(text: str) -> tuple[Statement, ...]:
    """All statements of a text; semicolons separate them.

    Errors:
        InvalidStatement: the text is no such statement.
        OperationBlocked: tables of segments do not have this operation.
        UnsupportedType: a column's type is not one of Hive's.

    >>> parse("SHOW SEGMENTS FOR TABLE lake.calls")
    (ShowSegments(table=Name(name='calls', schema='lake'), limit=None, query=None, history=False),)
    """
    cursor = Cursor(text)
    found: list[Statement] = []
    while True:
        while cursor.accept(";"):
            pass
        if cursor.is_at_end():
            return tuple(found)
        found.append(_statement(cursor))
        if not cursor.is_at_end():
            raise cursor.error("the end of the statement")


def _statement(cursor: Cursor) -> Statement:
    match cursor.accept_any(_HEADS):
        case "ALTER":
            return parse_alter(cursor)
        case "CLEAN":
            return _clean(cursor)
        case "CREATE":
            return _create(cursor)
        case "DELETE":
            return _delete(cursor)
        case "DESC" | "DESCRIBE":
            return _describe(cursor)
        case "DROP":
            return _drop(cursor)
        case "REBUILD" | "REFRESH":
            return parse_rebuild(cursor)
        case "SHOW":
            return _show(cursor)
        case "SET":
            raise _set(cursor)
        case "SELECT":
            raise cursor.error("a statement about a table", _ELSEWHERE["SELECT"])
        case None:
            raise _unknown(cursor)
        case head:
            raise _blocked(cursor, head)


def _unknown(cursor: Cursor) -> BridgeError:
    # Imported here, because only errors need it.
    import difflib

    word = cursor.token.value.upper()
    near = difflib.get_close_matches(word[:40], _HEADS, n=1)
    return cursor.error(
        "a statement", _ELSEWHERE.get(word, f"did you mean {near[0]}?" if near else "")
    )


def _blocked(cursor: Cursor, head: str) -> BridgeError:
    """LOAD, INSERT, MERGE, MSCK, TRUNCATE and UPDATE."""
    before = ("INTO", "OVERWRITE", "TABLE")
    table = "a table of segments"
    found = head == "UPDATE"
    while not cursor.is_at_end():
        if cursor.accept_any(before) is not None:
            found = True
        elif found:
            table = next_table_name(cursor)
            break
        else:
            cursor.take()
    return operation_blocked({"LOAD": "LOAD DATA", "MSCK": "PARTITION"}.get(head, head), table)


def _set(cursor: Cursor) -> BridgeError:
    word = cursor.name("a setting's name").lower()
    hints = {
        "session": "SET SESSION is a statement of Trino: run it there",
        "carbon": "in Trino: SET SESSION bridge.segments = 'db.t:3,5'; for indexes: ALTER INDEX i "
        "ON t INVISIBLE",
    }
    return cursor.error(
        "a statement about a table, not SET",
        hints.get(word, "settings: skipbridge config show"),
    )


def _clean(cursor: Cursor) -> CleanFiles:
    cursor.expect("FILES", "FOR", "TABLE")
    table = cursor.table()
    where = cursor.where()
    options = cursor.properties() if cursor.accept("OPTIONS") else ()
    for key, value in options:
        if key.lower() not in CLEAN_OPTIONS:
            raise InvalidStatement(
                f"{where}: CLEAN FILES has no option {key[:40]!r}",
                f"it has {', '.join(CLEAN_OPTIONS)}",
            )
        if value.lower() not in ("true", "false"):
            raise InvalidStatement(
                f"{where}: the option {key} is {value[:40]!r}", "write 'true' or 'false'"
            )
    return CleanFiles(table, options)


def _create(cursor: Cursor) -> Statement:
    mark = cursor.mark()
    if cursor.accept_any(("EXTERNAL", "TEMPORARY", "TABLE")) is not None:
        cursor.rewind(mark)
        return parse_create_table(cursor)
    if cursor.accept("DATAMAP"):
        return parse_datamap(cursor)
    if cursor.accept("INDEX"):
        return parse_create_index(cursor)
    if cursor.accept("MATERIALIZED", "VIEW") or cursor.accept("MATERIALIZE", "VIEW"):
        return parse_create_view(cursor)
    raise cursor.error("TABLE, DATAMAP, INDEX or MATERIALIZED VIEW")


def _delete(cursor: Cursor) -> Statement:
    cursor.expect("FROM")
    cursor.accept("TABLE")
    table = cursor.table()
    if cursor.accept("WHERE", "SEGMENT", ".", "ID"):
        cursor.expect("IN")
        return DeleteSegments(table, cursor.ids())
    if cursor.accept("WHERE", "SEGMENT", ".", "STARTTIME"):
        cursor.expect("BEFORE")
        time = cursor.string("a time in quotes")
        parse_time(time)
        return DeleteSegmentsBefore(table, time)
    raise operation_blocked(
        "DELETE", display_name(table), "rows stay; only whole segments can be taken out"
    )


def _describe(cursor: Cursor) -> Describe:
    mark = cursor.mark()
    formatted = cursor.accept_any(("FORMATTED", "EXTENDED")) is not None
    if formatted and (cursor.is_at_end() or cursor.sees(".")):  # a table of this name
        cursor.rewind(mark)
        formatted = False
    if cursor.accept("TABLE") and (cursor.is_at_end() or cursor.sees(".")):
        raise cursor.error("a table's name")
    return Describe(cursor.table(), formatted)


def _drop(cursor: Cursor) -> Statement:
    if cursor.accept("TABLE"):
        if_exists = cursor.accept("IF", "EXISTS")
        return DropTable(cursor.table(), if_exists)
    return parse_drop_object(cursor)


def _show(cursor: Cursor) -> Statement:
    history = cursor.accept("HISTORY")
    if cursor.accept("SEGMENTS"):
        return _show_segments(cursor, history)
    if history:
        raise cursor.error("SEGMENTS")
    if cursor.accept("CREATE", "TABLE"):
        return ShowCreateTable(cursor.table())
    if cursor.accept("PARTITIONS"):
        raise operation_blocked("PARTITION", next_table_name(cursor))
    return parse_show_objects(cursor)


def _show_segments(cursor: Cursor, history: bool) -> ShowSegments:
    if not cursor.accept("FOR", "TABLE"):
        cursor.expect("ON")
        cursor.accept("TABLE")
    table = cursor.table()
    limit = cursor.integer("a number of segments") if cursor.accept("LIMIT") else None
    if not cursor.accept("AS"):
        return ShowSegments(table, limit, history=history)
    if not (cursor.sees("SELECT") or cursor.sees("(")):
        raise cursor.error("SELECT")
    query = cursor.rest()
    parse_listing_query(query, table.name)
    return ShowSegments(table, limit, query, history)
