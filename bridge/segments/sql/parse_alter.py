"""``ALTER TABLE``, ``ALTER INDEX``, ``ALTER DATAMAP`` and ``ALTER MATERIALIZED VIEW``."""

from __future__ import annotations

from bridge.kernel.errors import InvalidStatement
from bridge.segments.sql.blocked import display_name, operation_blocked
from bridge.segments.sql.cursor import Cursor
from bridge.segments.sql.parse_objects import parse_alter_object
from bridge.segments.sql.statements import (
    AddSegment,
    ChangeType,
    Compact,
    CompactionKind,
    DropColumns,
    Name,
    Properties,
    RefreshSegments,
    RenameTable,
    SetProperties,
    Statement,
    SwitchSegments,
    UnsetProperties,
)

_PARTITION_VERBS = ("PARTITION", "SPLIT", "EXCHANGE", "RECOVER")


def parse_alter(cursor: Cursor) -> Statement:
    """What follows ALTER. Errors: InvalidStatement, OperationBlocked, UnsupportedType."""
    if not cursor.accept("TABLE"):
        return parse_alter_object(cursor)
    table = cursor.table()
    if cursor.accept_any(_PARTITION_VERBS) is not None:
        raise operation_blocked("PARTITION", display_name(table))
    if cursor.accept_any(("CLUSTERED", "SORTED", "INTO", "SKEWED")) is not None:
        raise operation_blocked("BUCKETING", display_name(table))
    if cursor.accept("NOT") and cursor.accept_any(("CLUSTERED", "SORTED", "SKEWED")) is not None:
        raise operation_blocked("BUCKETING", display_name(table))
    if cursor.accept("MERGE"):
        raise operation_blocked("MERGE INDEX", display_name(table))
    match cursor.accept_any(_VERBS):
        case "ADD":
            return _add(cursor, table)
        case "RENAME":
            return _rename(cursor, table)
        case "DROP":
            return _drop(cursor, table)
        case "CHANGE":
            return _change(cursor, table)
        case "ALTER":
            return _alter_column(cursor, table)
        case "REPLACE":
            cursor.expect("COLUMNS")
            raise operation_blocked("REPLACE COLUMNS", display_name(table))
        case "SET":
            _require_properties(cursor, table)
            return SetProperties(table, cursor.properties())
        case "UNSET":
            _require_properties(cursor, table)
            cursor.accept("IF", "EXISTS")
            return UnsetProperties(table, cursor.keys())
        case "COMPACT":
            return _compact(cursor, table)
        case "ENABLE" | "DISABLE" as verb:
            _segments(cursor)
            return SwitchSegments(table, cursor.ids(), verb == "ENABLE")
        case "REFRESH":
            _segments(cursor)
            return RefreshSegments(table, () if cursor.is_at_end() else cursor.ids())
        case _:
            raise cursor.error(", ".join(_VERBS[:-1]) + f" or {_VERBS[-1]}")


_VERBS = (
    "ADD", "RENAME", "DROP", "CHANGE", "ALTER", "REPLACE", "SET", "UNSET",
    "COMPACT", "ENABLE", "DISABLE", "REFRESH",
)  # fmt: skip


_STORAGE = {
    "LOCATION": "SET LOCATION",
    "FILEFORMAT": "SET FILEFORMAT",
    "SERDE": "SET SERDEPROPERTIES",
    "SERDEPROPERTIES": "SET SERDEPROPERTIES",
}


def _require_properties(cursor: Cursor, table: Name) -> None:
    """What SET and UNSET change: TBLPROPERTIES, or what Hive's tables have besides."""
    word = cursor.accept_any(_STORAGE)
    if word is not None:
        raise operation_blocked(_STORAGE[word], display_name(table))
    if cursor.accept("SKEWED"):
        raise operation_blocked("BUCKETING", display_name(table), "SKEWED")
    cursor.expect("TBLPROPERTIES")


def _segments(cursor: Cursor) -> None:
    if cursor.accept_any(("SEGMENTS", "SEGMENT")) is None:
        raise cursor.error("SEGMENTS")


def _add(cursor: Cursor, table: Name) -> AddSegment:
    if cursor.sees("COLUMNS") or cursor.sees("COLUMN"):
        raise operation_blocked("ADD COLUMNS", display_name(table))
    if cursor.sees("PARTITION") or cursor.sees("IF"):
        raise operation_blocked("PARTITION", display_name(table), "ADD PARTITION")
    cursor.expect("SEGMENT")
    path: str | None = None
    source, partition = _source(cursor)
    if source is None and not cursor.sees("OPTIONS"):
        cursor.accept("LOCATION")
        path = cursor.string("paths in quotes")
    where = cursor.where()
    options = cursor.properties() if cursor.accept("OPTIONS") else ()
    by_key = {key.lower(): value for key, value in options}
    if "path" in by_key and path is not None:
        raise InvalidStatement(f"{where}: the segment has two paths", "give LOCATION alone")
    path = by_key.get("path", path)
    if source is not None and path is not None:
        raise InvalidStatement(f"{where}: the segment has a table and a path", "give one of them")
    if source is None and (not path or not path.strip()):
        raise InvalidStatement(f"{where}: the segment has no path", "LOCATION 'file:///data/calls'")
    format = by_key.get("format")
    rest = tuple((k, v) for k, v in options if k.lower() not in ("path", "format"))
    spelled = format.strip().lower() if format is not None else None
    return AddSegment(table, path or "", spelled, rest, source, partition)


def _source(cursor: Cursor) -> tuple[Name | None, Properties]:
    """``FROM TABLE t PARTITION (day='2024-05-01')``."""
    if not cursor.accept("FROM", "TABLE"):
        return None, ()
    source = cursor.table()
    return source, cursor.properties() if cursor.accept("PARTITION") else ()


def _rename(cursor: Cursor, table: Name) -> RenameTable:
    if cursor.accept("COLUMN"):
        raise operation_blocked("RENAME COLUMN", display_name(table))
    cursor.expect("TO")
    return RenameTable(table, cursor.table())


def _drop(cursor: Cursor, table: Name) -> DropColumns:
    if cursor.sees("PARTITION") or cursor.sees("IF"):
        raise operation_blocked("PARTITION", display_name(table), "DROP PARTITION")
    if cursor.accept_any(("COLUMNS", "COLUMN")) is None:
        raise cursor.error("COLUMNS")
    if cursor.sees("("):
        return DropColumns(table, cursor.names())
    return DropColumns(table, (cursor.name("a column's name"),))


def _change(cursor: Cursor, table: Name) -> ChangeType:
    cursor.accept("COLUMN")
    column = cursor.name("a column's name")
    new = cursor.name("the column's name again")
    if new.lower() != column.lower():
        raise operation_blocked("RENAME COLUMN", display_name(table), f"{column} to {new}")
    return ChangeType(table, column, cursor.type())


def _alter_column(cursor: Cursor, table: Name) -> ChangeType:
    cursor.expect("COLUMN")
    column = cursor.name("a column's name")
    if cursor.accept("SET"):
        cursor.expect("DATA")
    cursor.expect("TYPE")
    return ChangeType(table, column, cursor.type())


def _compact(cursor: Cursor, table: Name) -> Compact:
    where = cursor.where()
    word = cursor.string("'MINOR', 'MAJOR' or 'CUSTOM'").upper()
    if word == "SEGMENT_INDEX":
        raise operation_blocked("MERGE INDEX", display_name(table), "COMPACT 'SEGMENT_INDEX'")
    if word not in CompactionKind.__members__:
        raise InvalidStatement(
            f"{where}: no such compaction: '{word[:40]}'", "write 'MINOR', 'MAJOR' or 'CUSTOM'"
        )
    kind = CompactionKind[word]
    if cursor.accept("PARTITION"):
        raise operation_blocked("PARTITION", display_name(table))
    ids: tuple[str, ...] = ()
    if kind is CompactionKind.CUSTOM:
        cursor.expect("WHERE", "SEGMENT", ".", "ID", "IN")
        ids = cursor.ids()
    elif cursor.sees("WHERE"):
        raise cursor.error("the end of the statement", "COMPACT 'CUSTOM' takes chosen segments")
    clean = cursor.accept("AND")
    if clean:
        cursor.expect("CLEAN", "FILES")
    return Compact(table, kind, ids, clean)
