"""The statements, as frozen dataclasses. ``str()`` of one parses to an equal one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

Properties = tuple[tuple[str, str], ...]
CLEAN_OPTIONS = ("dryrun", "force", "statistics")


def literal(text: str) -> str:
    """A string literal.

    >>> print(literal("it's"))
    'it\\'s'
    """
    for character, escape in (("\\", "\\\\"), ("'", "\\'"), ("\n", "\\n"), ("\0", "\\u0000")):
        text = text.replace(character, escape)
    return f"'{text}'"


def identifier(name: str) -> str:
    """A name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def _names(names: Iterable[str]) -> str:
    return "(" + ", ".join(map(identifier, names)) + ")"


def _ids(ids: Iterable[str]) -> str:
    return "(" + ", ".join(map(literal, ids)) + ")"


def _properties(word: str, properties: Properties) -> str:
    if not properties:
        return ""
    return f" {word} (" + ", ".join(f"{literal(k)}={literal(v)}" for k, v in properties) + ")"


@dataclass(frozen=True, slots=True)
class Name:
    """A table's or view's name; without a schema, it is of the session's."""

    name: str
    schema: str | None = None

    def __str__(self) -> str:
        parts = (self.schema, self.name) if self.schema is not None else (self.name,)
        return ".".join(map(identifier, parts))


class ObjectKind(Enum):
    """What a statement calls an index or view. A datamap is either."""

    DATAMAP = "DATAMAP"
    INDEX = "INDEX"
    VIEW = "MATERIALIZED VIEW"


class IndexSwitch(Enum):
    """What ALTER does to an index or view."""

    ENABLE = "ENABLE"
    DISABLE = "DISABLE"
    VISIBLE = "VISIBLE"
    INVISIBLE = "INVISIBLE"


class CompactionKind(Enum):
    """By number of segments, by size, or as chosen."""

    MINOR = "MINOR"
    MAJOR = "MAJOR"
    CUSTOM = "CUSTOM"


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column; its type as Hive spells it."""

    name: str
    type: str
    comment: str | None = None

    def __str__(self) -> str:
        comment = "" if self.comment is None else f" COMMENT {literal(self.comment)}"
        return f"{identifier(self.name)} {self.type}{comment}"


@dataclass(frozen=True, slots=True)
class Statement:
    """Base of all statements."""


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    """Makes a table.

    Attributes:
        format: lower case.
        properties: all others, as written.
        partition_columns: those that names of directories hold.
    """

    table: Name
    columns: tuple[ColumnDefinition, ...]
    format: str
    properties: Properties = ()
    comment: str | None = None
    location: str | None = None
    if_not_exists: bool = False
    partition_columns: tuple[ColumnDefinition, ...] = ()

    def __str__(self) -> str:
        keys = ", ".join(map(str, self.partition_columns))
        return (
            f"CREATE TABLE {'IF NOT EXISTS ' if self.if_not_exists else ''}{self.table} ("
            + ", ".join(map(str, self.columns))
            + ")"
            + (f" PARTITION COLUMNS ({keys})" if keys else "")
            + ("" if self.comment is None else f" COMMENT {literal(self.comment)}")
            + " STORED BY 'CarbonData'"
            + ("" if self.location is None else f" LOCATION {literal(self.location)}")
            + _properties("TBLPROPERTIES", (("format", self.format), *self.properties))
        )


@dataclass(frozen=True, slots=True)
class DropTable(Statement):
    table: Name
    if_exists: bool = False

    def __str__(self) -> str:
        return f"DROP TABLE {'IF EXISTS ' if self.if_exists else ''}{self.table}"


@dataclass(frozen=True, slots=True)
class RenameTable(Statement):
    table: Name
    new: Name

    def __str__(self) -> str:
        return f"ALTER TABLE {self.table} RENAME TO {self.new}"


@dataclass(frozen=True, slots=True)
class DropColumns(Statement):
    table: Name
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"ALTER TABLE {self.table} DROP COLUMNS {_names(self.columns)}"


@dataclass(frozen=True, slots=True)
class ChangeType(Statement):
    table: Name
    column: str
    type: str

    def __str__(self) -> str:
        name = identifier(self.column)
        return f"ALTER TABLE {self.table} CHANGE {name} {name} {self.type}"


@dataclass(frozen=True, slots=True)
class SetProperties(Statement):
    table: Name
    properties: Properties

    def __str__(self) -> str:
        return f"ALTER TABLE {self.table} SET{_properties('TBLPROPERTIES', self.properties)}"


@dataclass(frozen=True, slots=True)
class UnsetProperties(Statement):
    table: Name
    keys: tuple[str, ...]

    def __str__(self) -> str:
        return f"ALTER TABLE {self.table} UNSET TBLPROPERTIES {_ids(self.keys)}"


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    table: Name
    formatted: bool = False

    def __str__(self) -> str:
        return f"DESCRIBE {'FORMATTED ' if self.formatted else ''}{self.table}"


@dataclass(frozen=True, slots=True)
class ShowCreateTable(Statement):
    table: Name

    def __str__(self) -> str:
        return f"SHOW CREATE TABLE {self.table}"


@dataclass(frozen=True, slots=True)
class AddSegment(Statement):
    """Adds files.

    Attributes:
        path: paths with commas between them; empty with ``source``.
        properties: of these files alone.
        source: the table of the metastore whose files they are, of ``partition`` alone.
    """

    table: Name
    path: str
    format: str | None = None
    properties: Properties = ()
    source: Name | None = None
    partition: Properties = ()

    def __str__(self) -> str:
        options = self.properties if self.format is None else (
            ("format", self.format), *self.properties)  # fmt: skip
        where = f"LOCATION {literal(self.path)}"
        if self.source is not None:
            where = f"FROM TABLE {self.source}{_properties('PARTITION', self.partition)}"
        return f"ALTER TABLE {self.table} ADD SEGMENT {where}" + _properties("OPTIONS", options)


@dataclass(frozen=True, slots=True)
class ShowSegments(Statement):
    """Attributes: query: text of a SELECT over the listing; history: forgotten segments too."""

    table: Name
    limit: int | None = None
    query: str | None = None
    history: bool = False

    def __str__(self) -> str:
        return (
            f"SHOW {'HISTORY ' if self.history else ''}SEGMENTS FOR TABLE {self.table}"
            + ("" if self.limit is None else f" LIMIT {self.limit}")
            + ("" if self.query is None else f" AS {self.query}")
        )


@dataclass(frozen=True, slots=True)
class DeleteSegments(Statement):
    table: Name
    ids: tuple[str, ...]

    def __str__(self) -> str:
        return f"DELETE FROM TABLE {self.table} WHERE SEGMENT.ID IN {_ids(self.ids)}"


@dataclass(frozen=True, slots=True)
class DeleteSegmentsBefore(Statement):
    """Attributes: time: as written."""

    table: Name
    time: str

    def __str__(self) -> str:
        return f"DELETE FROM TABLE {self.table} WHERE SEGMENT.STARTTIME BEFORE {literal(self.time)}"


@dataclass(frozen=True, slots=True)
class SwitchSegments(Statement):
    table: Name
    ids: tuple[str, ...]
    enabled: bool

    def __str__(self) -> str:
        verb = "ENABLE" if self.enabled else "DISABLE"
        return f"ALTER TABLE {self.table} {verb} SEGMENTS {_ids(self.ids)}"


@dataclass(frozen=True, slots=True)
class RefreshSegments(Statement):
    """Attributes: ids: none for all segments."""

    table: Name
    ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        ids = f" {_ids(self.ids)}" if self.ids else ""
        return f"ALTER TABLE {self.table} REFRESH SEGMENTS{ids}"


@dataclass(frozen=True, slots=True)
class Compact(Statement):
    """Attributes: clean: CLEAN FILES follows."""

    table: Name
    kind: CompactionKind
    ids: tuple[str, ...] = ()
    clean: bool = False

    def __str__(self) -> str:
        where = f" WHERE SEGMENT.ID IN {_ids(self.ids)}" if self.ids else ""
        clean = " AND CLEAN FILES" if self.clean else ""
        return f"ALTER TABLE {self.table} COMPACT '{self.kind.value}'{where}{clean}"


@dataclass(frozen=True, slots=True)
class CleanFiles(Statement):
    """Attributes: options: as written."""

    table: Name
    options: Properties = ()

    def __str__(self) -> str:
        return f"CLEAN FILES FOR TABLE {self.table}{_properties('OPTIONS', self.options)}"


@dataclass(frozen=True, slots=True)
class CreateIndex(Statement):
    """Attributes: table: a table or a view; columns: none for all; properties: all others."""

    name: str
    table: Name
    kind: str
    columns: tuple[str, ...] = ()
    properties: Properties = ()
    deferred: bool = False
    if_not_exists: bool = False

    def __str__(self) -> str:
        return (
            f"CREATE INDEX {'IF NOT EXISTS ' if self.if_not_exists else ''}{identifier(self.name)}"
            f" ON TABLE {self.table}"
            + (f" {_names(self.columns)}" if self.columns else "")
            + f" AS {literal(self.kind)}"
            + (" WITH DEFERRED REBUILD" if self.deferred else "")
            + _properties("PROPERTIES", self.properties)
        )


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    """Attributes: columns: none for all; properties: all but the sort columns, as written."""

    view: Name
    table: Name
    columns: tuple[str, ...] = ()
    sort_columns: tuple[str, ...] = ()
    properties: Properties = ()
    deferred: bool = False
    if_not_exists: bool = False

    def __str__(self) -> str:
        columns = ", ".join(map(identifier, self.columns)) or "*"
        return (
            f"CREATE MATERIALIZED VIEW {'IF NOT EXISTS ' if self.if_not_exists else ''}{self.view}"
            + (" WITH DEFERRED REBUILD" if self.deferred else "")
            + (f" SORT BY {_names(self.sort_columns)}" if self.sort_columns else "")
            + _properties("PROPERTIES", self.properties)
            + f" AS SELECT {columns} FROM {self.table}"
        )


@dataclass(frozen=True, slots=True)
class DropObject(Statement):
    kind: ObjectKind
    name: Name
    table: Name | None = None
    if_exists: bool = False

    def __str__(self) -> str:
        return f"DROP {self.kind.value} {'IF EXISTS ' if self.if_exists else ''}{self.name}" + _on(
            self.table
        )


@dataclass(frozen=True, slots=True)
class RebuildObject(Statement):
    kind: ObjectKind
    name: Name
    table: Name | None = None

    def __str__(self) -> str:
        return f"REBUILD {self.kind.value} {self.name}{_on(self.table)}"


@dataclass(frozen=True, slots=True)
class SwitchObject(Statement):
    kind: ObjectKind
    name: Name
    switch: IndexSwitch
    table: Name | None = None

    def __str__(self) -> str:
        return f"ALTER {self.kind.value} {self.name}{_on(self.table)} {self.switch.value}"


@dataclass(frozen=True, slots=True)
class ShowObjects(Statement):
    """Attributes: table: none for all tables of the schema."""

    kind: ObjectKind
    table: Name | None = None

    def __str__(self) -> str:
        plural = {"INDEX": "INDEXES"}.get(self.kind.value, f"{self.kind.value}S")
        return f"SHOW {plural}{_on(self.table)}"


def _on(table: Name | None) -> str:
    return "" if table is None else f" ON TABLE {table}"
