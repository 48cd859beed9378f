"""Statements about indexes and views: datamaps in the older spelling."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.kernel.errors import InvalidStatement
from bridge.segments.sql.blocked import display_name, operation_blocked
from bridge.segments.sql.cursor import Cursor
from bridge.segments.sql.statements import (
    CreateIndex,
    CreateView,
    DropObject,
    IndexSwitch,
    Name,
    ObjectKind,
    Properties,
    RebuildObject,
    ShowObjects,
    Statement,
    SwitchObject,
)
from bridge.segments.sql.tokens import TokenKind
from bridge.segments.sql.view_query import parse_view_query

_BLOCKED_KINDS = {"preaggregate": "PREAGGREGATE", "timeseries": "TIMESERIES", "lucene": "LUCENE"}
_PROPERTIES = ("DMPROPERTIES", "PROPERTIES", "INDEXPROPERTIES", "IDXPROPERTIES", "OPTIONS",
               "TBLPROPERTIES")  # fmt: skip


@dataclass(slots=True)
class _Clauses:
    """What follows an index's or a view's name, in any order."""

    table: Name | None = None
    columns: tuple[str, ...] = ()
    kind: str | None = None
    deferred: bool = False
    sort: tuple[str, ...] = ()
    properties: Properties = ()
    query: tuple[Name, tuple[str, ...]] | None = None
    said: set[str] = field(default_factory=set)


def parse_datamap(cursor: Cursor) -> Statement:
    """What follows CREATE DATAMAP. Errors: InvalidStatement, OperationBlocked."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    where, name = cursor.where(), cursor.table("a datamap's name")
    clauses = _clauses(cursor, ("ON", "USING", "WITH", "PROPERTIES", "AS"))
    if clauses.kind is None:
        raise InvalidStatement(
            f"{where}: the datamap {display_name(name)} has no kind",
            "add USING 'minmax', 'bloomfilter' or 'mv'",
        )
    if clauses.kind == "mv":
        return _view(where, name, clauses, if_not_exists)
    if clauses.query is not None:
        raise InvalidStatement(
            f"{where}: the datamap {display_name(name)} of kind {clauses.kind} has a SELECT",
            "only USING 'mv' takes one",
        )
    return _index(where, name, clauses, if_not_exists)


def parse_create_index(cursor: Cursor) -> CreateIndex:
    """What follows CREATE INDEX. Errors: InvalidStatement, OperationBlocked."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    where, name = cursor.where(), cursor.table("an index's name")
    clauses = _clauses(cursor, ("ON", "(", "USING", "AS KIND", "WITH", "PROPERTIES"))
    return _index(where, name, clauses, if_not_exists)


def parse_create_view(cursor: Cursor) -> CreateView:
    """What follows CREATE MATERIALIZED VIEW. Errors: InvalidStatement, OperationBlocked."""
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    where, name = cursor.where(), cursor.table("a view's name")
    if cursor.sees("PARTITIONED"):
        raise operation_blocked("PARTITION", display_name(name), "PARTITIONED BY")
    clauses = _clauses(cursor, ("ON", "(", "SORT", "WITH", "PROPERTIES", "AS"))
    return _view(where, name, clauses, if_not_exists)


def _clauses(cursor: Cursor, allowed: tuple[str, ...]) -> _Clauses:
    clauses = _Clauses()
    while not cursor.is_at_end():
        where = cursor.where()
        key = _clause(cursor, allowed, clauses)
        if key in clauses.said:
            raise InvalidStatement(f"{where}: {key} is said twice", "say it once")
        clauses.said.add(key)
    return clauses


def _clause(cursor: Cursor, allowed: tuple[str, ...], clauses: _Clauses) -> str:
    """Takes one clause; its name."""
    if "ON" in allowed and cursor.accept("ON"):
        cursor.accept("TABLE")
        clauses.table = cursor.table()
        return "ON"
    if "(" in allowed and cursor.sees("("):
        clauses.columns = cursor.names()
        return "("
    if "USING" in allowed and cursor.accept("USING"):
        clauses.kind = _kind(cursor, clauses.table)
        return "USING"
    if "AS KIND" in allowed and cursor.accept("AS"):
        clauses.kind = _kind(cursor, clauses.table)
        return "USING"
    if "WITH" in allowed and cursor.accept("WITH"):
        cursor.expect("DEFERRED")
        if cursor.accept_any(("REBUILD", "REFRESH")) is None:
            raise cursor.error("REBUILD")
        clauses.deferred = True
        return "WITH"
    if "SORT" in allowed and cursor.accept("SORT"):
        cursor.expect("BY")
        clauses.sort = _sort(cursor)
        return "SORT"
    if cursor.accept_any(_PROPERTIES) is not None:
        clauses.properties = cursor.properties()
        return "PROPERTIES"
    if "AS" in allowed and cursor.accept("AS"):
        clauses.query = _query(cursor)
        return "AS"
    bucketing = cursor.accept_any(("CLUSTERED", "PARTITIONED"))
    if bucketing is not None:
        operation = {"CLUSTERED": "BUCKETING", "PARTITIONED": "PARTITION"}[bucketing]
        raise operation_blocked(operation, "a view", f"{bucketing} BY")
    words = {"(": "columns", "SORT": "SORT BY", "WITH": "WITH DEFERRED REBUILD", "AS KIND": "AS",
             "PROPERTIES": "DMPROPERTIES"}  # fmt: skip
    raise cursor.error(" or ".join(words.get(word, word) for word in allowed))


def _kind(cursor: Cursor, table: Name | None) -> str:
    string = cursor.token.kind is TokenKind.STRING
    kind = (cursor.string() if string else cursor.name("a kind of index")).strip().lower()
    if kind in _BLOCKED_KINDS:
        on = "a table of segments" if table is None else display_name(table)
        raise operation_blocked(_BLOCKED_KINDS[kind], on, f"USING '{kind}'")
    return kind


def _sort(cursor: Cursor) -> tuple[str, ...]:
    """``(a, b)``, or the same without brackets."""
    if cursor.sees("("):
        return cursor.names()
    found = [cursor.name("a column's name")]
    while cursor.accept(","):
        found.append(cursor.name("a column's name"))
    return cursor.unique(tuple(found), "column")


def _query(cursor: Cursor) -> tuple[Name, tuple[str, ...]]:
    """A SELECT, or one in quotes."""
    if cursor.token.kind is not TokenKind.STRING:
        return parse_view_query(cursor)
    where = cursor.where()
    inner = Cursor(cursor.string())
    try:
        found = parse_view_query(inner)
        if not inner.is_at_end():
            raise inner.error("the end of the SELECT")
        inner.accept(";")
        if not inner.is_at_end():
            raise inner.error("the end of the SELECT")
    except InvalidStatement as e:
        raise InvalidStatement(f"{where}, in the SELECT: {e.message}", e.hint) from None
    return found


def _index(where: str, name: Name, clauses: _Clauses, if_not_exists: bool) -> CreateIndex:
    if name.schema is not None:
        raise InvalidStatement(
            f"{where}: an index has no schema: {display_name(name)}", f"write {name.name}"
        )
    if clauses.table is None or clauses.kind is None:
        missing = "table" if clauses.table is None else "kind"
        raise InvalidStatement(
            f"{where}: the index {name.name} has no {missing}",
            "CREATE INDEX i ON TABLE t (a, b) AS 'bloomfilter'",
        )
    columns, properties = _taken(where, clauses.properties, "INDEX_COLUMNS", clauses.columns)
    return CreateIndex(
        name.name,
        clauses.table,
        clauses.kind,
        columns,
        properties,
        clauses.deferred,
        if_not_exists,
    )


def _view(where: str, name: Name, clauses: _Clauses, if_not_exists: bool) -> CreateView:
    sort, properties = _taken(where, clauses.properties, "SORT_COLUMNS", clauses.sort)
    if clauses.query is None:
        if clauses.table is None or not clauses.columns:
            raise InvalidStatement(
                f"{where}: the view {display_name(name)} has no columns",
                "add AS SELECT a, b FROM t, or ON t (a, b)",
            )
        table, columns = clauses.table, clauses.columns
    else:
        table, columns = clauses.query
        if clauses.columns:
            raise InvalidStatement(
                f"{where}: the view {display_name(name)} has columns and a SELECT",
                "give the SELECT alone",
            )
        if clauses.table is not None and clauses.table != table:
            raise InvalidStatement(
                f"{where}: the view {display_name(name)} is ON {display_name(clauses.table)}, "
                f"and its SELECT reads {display_name(table)}",
                "leave ON TABLE out",
            )
    return CreateView(name, table, columns, sort, properties, clauses.deferred, if_not_exists)


def _taken(
    where: str, properties: Properties, key: str, columns: tuple[str, ...]
) -> tuple[tuple[str, ...], Properties]:
    """The columns that a property or a clause names, and the other properties."""
    text = next((value for name, value in properties if name.upper() == key), None)
    if text is None:
        return columns, properties
    if columns:
        raise InvalidStatement(f"{where}: {key} repeats what is said before", f"leave {key} out")
    found = tuple(part.strip().strip("`") for part in text.split(","))
    if "..." in found or not all(found):
        raise InvalidStatement(
            f"{where}: {key} does not name columns: '{text[:100]}'", f"'{key}'='a, b'"
        )
    if len({column.lower() for column in found}) < len(found):
        raise InvalidStatement(
            f"{where}: {key} names a column twice: '{text[:100]}'", "name it once"
        )
    return found, tuple((k, v) for k, v in properties if k.upper() != key)


def _object(cursor: Cursor, *, plural: bool = False) -> ObjectKind:
    if cursor.accept("DATAMAP") or (plural and cursor.accept("DATAMAPS")):
        return ObjectKind.DATAMAP
    if cursor.accept("INDEX") or (plural and cursor.accept_any(("INDEXES", "INDICES"))):
        return ObjectKind.INDEX
    if cursor.accept_any(("MATERIALIZED", "MATERIALIZE")):
        if not (plural and cursor.accept("VIEWS")):
            cursor.expect("VIEW")
        return ObjectKind.VIEW
    more = "SEGMENTS, CREATE TABLE, " if plural else ""
    raise cursor.error(f"{more}DATAMAP, INDEX or MATERIALIZED VIEW")


def _on(cursor: Cursor, kind: ObjectKind) -> Name | None:
    """``ON TABLE t``; an index must have it."""
    if not cursor.accept("ON"):
        if kind is ObjectKind.INDEX:
            raise cursor.error("ON")
        return None
    cursor.accept("TABLE")
    return cursor.table()


def parse_drop_object(cursor: Cursor) -> DropObject:
    """What follows DROP. Errors: InvalidStatement."""
    kind = _object(cursor)
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.table(f"the {_spelled(kind)}'s name")
    return DropObject(kind, name, _on(cursor, kind), if_exists)


def parse_rebuild(cursor: Cursor) -> RebuildObject:
    """What follows REBUILD or REFRESH. Errors: InvalidStatement, OperationBlocked."""
    kind = _object(cursor)
    concurrently = cursor.accept("CONCURRENTLY")
    name = cursor.table(f"the {_spelled(kind)}'s name")
    table = _on(cursor, kind)
    if concurrently or cursor.accept("CONCURRENTLY"):
        raise operation_blocked("CONCURRENT REBUILD", display_name(name))
    return RebuildObject(kind, name, table)


def parse_alter_object(cursor: Cursor) -> Statement:
    """What follows ALTER, other than TABLE. Errors: InvalidStatement."""
    if not any(map(cursor.sees, ("DATAMAP", "INDEX", "MATERIALIZED", "MATERIALIZE"))):
        raise cursor.error("TABLE, DATAMAP, INDEX or MATERIALIZED VIEW")
    kind = _object(cursor)
    name = cursor.table(f"the {_spelled(kind)}'s name")
    table = _on(cursor, kind)
    if cursor.accept_any(("REBUILD", "REFRESH")) is not None:
        return RebuildObject(kind, name, table)
    cursor.accept("SET")
    word = cursor.accept_any(IndexSwitch.__members__)
    if word is None:
        raise cursor.error("ENABLE, DISABLE, VISIBLE, INVISIBLE or REBUILD")
    if kind is ObjectKind.VIEW and word in ("ENABLE", "DISABLE"):
        cursor.accept("REWRITE")
    return SwitchObject(kind, name, IndexSwitch[word], table)


def parse_show_objects(cursor: Cursor) -> ShowObjects:
    """What follows SHOW. Errors: InvalidStatement."""
    kind = _object(cursor, plural=True)
    if not cursor.accept("ON") and not cursor.accept("FROM") and not cursor.accept("FOR"):
        return ShowObjects(kind)
    cursor.accept("TABLE")
    return ShowObjects(kind, cursor.table())


def _spelled(kind: ObjectKind) -> str:
    return {ObjectKind.VIEW: "view"}.get(kind, kind.value.lower())
