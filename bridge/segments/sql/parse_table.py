"""``CREATE TABLE``."""

from __future__ import annotations

from dataclasses import dataclass, field

from bridge.kernel.errors import InvalidStatement
from bridge.segments.sql.blocked import display_name, operation_blocked
from bridge.segments.sql.cursor import Cursor
from bridge.segments.sql.statements import ColumnDefinition, CreateTable, Name, Properties
from bridge.segments.sql.tokens import TokenKind

_STORED_BY = ("carbondata", "org.apache.carbondata.format", "org.apache.spark.sql.carbonsource")
_FORMATS = {"textfile": "text"}
_FORMAT_KEYS = ("format", "sourcetype")
_BUCKETS = ("bucketnumber", "bucketcolumns", "bucket_number", "bucket_columns")
_PARTITIONS = ("partition_type", "num_partitions", "list_info", "range_info")


@dataclass(slots=True)
class _Clauses:
    """What follows the columns, in any order."""

    stored: bool = False
    format: str | None = None
    properties: Properties | None = None
    comment: str | None = None
    location: str | None = None
    partition_columns: tuple[ColumnDefinition, ...] = ()
    said: set[str] = field(default_factory=set)


def parse_create_table(cursor: Cursor) -> CreateTable:
    """What follows CREATE. Errors: InvalidStatement, OperationBlocked, UnsupportedType."""
    external = cursor.accept("EXTERNAL")
    cursor.expect("TABLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    table = cursor.table()
    if external:
        raise operation_blocked("EXTERNAL TABLE", display_name(table))
    where = cursor.where()
    columns: tuple[ColumnDefinition, ...] = ()
    if cursor.sees("("):
        columns = cursor.parse_list(lambda: _column(cursor))
        cursor.unique(tuple(c.name for c in columns), "column")
    clauses = _Clauses()
    while not cursor.is_at_end():
        _clause(cursor, table, clauses)
    cursor.unique(tuple(c.name for c in (*columns, *clauses.partition_columns)), "column")
    format, properties = _properties(table, clauses)
    if not columns:
        raise InvalidStatement(
            f"{where}: the table {display_name(table)} has no columns",
            "write them in brackets; skipbridge table create can take them from a file",
        )
    return CreateTable(
        table,
        columns,
        format,
        properties,
        clauses.comment,
        clauses.location,
        if_not_exists,
        clauses.partition_columns,
    )


def _column(cursor: Cursor) -> ColumnDefinition:
    name = cursor.name("a column's name")
    type = cursor.type()
    comment = cursor.string("a comment in quotes") if cursor.accept("COMMENT") else None
    if not (cursor.sees(",") or cursor.sees(")")):
        raise cursor.error(
            ", or ) after a column", "a column is a name, a type and perhaps a COMMENT"
        )
    return ColumnDefinition(name, type, comment)


def _clause(cursor: Cursor, table: Name, clauses: _Clauses) -> None:
    where = cursor.where()
    if cursor.accept("PARTITION", "COLUMNS"):
        if clauses.partition_columns:
            raise InvalidStatement(f"{where}: PARTITION COLUMNS is said twice", "say it once")
        clauses.partition_columns = cursor.parse_list(lambda: _column(cursor))
        return
    if cursor.accept("PARTITIONED") or cursor.accept("PARTITION"):
        raise operation_blocked("PARTITION", display_name(table), "PARTITIONED BY")
    bucketing = cursor.accept_any(("CLUSTERED", "SORTED", "BUCKETED", "INTO", "SKEWED"))
    if bucketing is not None:
        raise operation_blocked(
            "BUCKETING", display_name(table), bucketing + ("" if bucketing == "INTO" else " BY")
        )
    if cursor.accept("AS") or cursor.sees("SELECT"):
        raise operation_blocked("CREATE TABLE AS SELECT", display_name(table))
    clause = cursor.accept_any(
        ("COMMENT", "STORED", "USING", "LOCATION", "TBLPROPERTIES", "OPTIONS")
    )
    key = {"USING": "STORED", "OPTIONS": "TBLPROPERTIES"}.get(clause or "", clause or "")
    if key in clauses.said:
        raise InvalidStatement(f"{where}: {clause} is said twice", "say it once")
    clauses.said.add(key)
    match clause:
        case "COMMENT":
            clauses.comment = cursor.string("a comment in quotes")
        case "STORED":
            _stored(cursor, clauses)
        case "USING":
            _provider(cursor, clauses)
        case "LOCATION":
            clauses.location = cursor.string("a directory in quotes")
        case "TBLPROPERTIES" | "OPTIONS":
            clauses.properties = cursor.properties()
        case _:
            raise cursor.error(
                "COMMENT, PARTITION COLUMNS, STORED BY, STORED AS, LOCATION or TBLPROPERTIES"
            )


def _stored(cursor: Cursor, clauses: _Clauses) -> None:
    if cursor.accept("BY"):
        if cursor.token.value.lower() not in _STORED_BY or cursor.token.kind not in (
            TokenKind.STRING, TokenKind.WORD):  # fmt: skip
            raise cursor.error("'CarbonData'", "only tables of segments are made here")
        cursor.take()
        clauses.stored = True
    else:
        cursor.expect("AS")
        _provider(cursor, clauses)


def _provider(cursor: Cursor, clauses: _Clauses) -> None:
    """A format in the place of the property, or carbondata."""
    string = cursor.token.kind is TokenKind.STRING
    word = (cursor.string() if string else cursor.name("a format's name")).lower()
    clauses.stored = True
    if word not in _STORED_BY:
        clauses.format = _FORMATS.get(word, word)


def _properties(table: Name, clauses: _Clauses) -> tuple[str, Properties]:
    """The format, and all other properties. Errors: InvalidStatement, OperationBlocked."""
    given = clauses.properties or ()
    for key, _ in given:
        if key.lower() in _BUCKETS:
            raise operation_blocked("BUCKETING", display_name(table), f"the property {key}")
        if key.lower() in _PARTITIONS:
            raise operation_blocked("PARTITION", display_name(table), f"the property {key}")
    formats = {value.strip().lower() for key, value in given if key.lower() in _FORMAT_KEYS}
    if clauses.format is not None:
        formats.add(clauses.format)
    if len(formats) > 1:
        raise InvalidStatement(
            f"{display_name(table)} has several formats: {', '.join(sorted(formats))}", "give one"
        )
    if not formats:
        raise InvalidStatement(
            f"{display_name(table)} has no format",
            "add TBLPROPERTIES('format'='csv'); 'sourceType' means the same",
        )
    if not clauses.stored:
        raise InvalidStatement(
            f"{display_name(table)} does not say what stores it", "add STORED BY 'CarbonData'"
        )
    rest = tuple((k, v) for k, v in given if k.lower() not in _FORMAT_KEYS)
    return formats.pop(), rest
