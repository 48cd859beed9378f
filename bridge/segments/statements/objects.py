"""Statements about indexes and views of tables of segments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bridge.kernel.config import Config
from bridge.kernel.errors import BridgeError, InvalidStatement, TableNotFound
from bridge.runtime.compose import hive_catalog_of
from bridge.segments.commands import indexes, view_indexes, views
from bridge.segments.commands.opened import open_segments
from bridge.segments.sql import statements as s
from bridge.segments.sql.blocked import display_name
from bridge.segments.statements.context import SqlContext, SqlResult, listing
from bridge.table.model import TableName
from bridge.table.segments.format import NAME
from bridge.table.segments.manifest import IndexDefinition, TableDefinition, ViewRecord

_SHOWN = ("name", "kind", "on", "columns", "properties", "deferred", "visible")
_NEEDLESS = {
    "BLOOM_SIZE": "the size of a bloom filter follows from the number of values",
    "BLOOM_COMPRESS": "bloom filters are stored as they are",
}


@dataclass(frozen=True, slots=True)
class _Place:
    """A table of segments, or one of its views."""

    table: str
    view: str | None
    definition: TableDefinition


def _place(context: SqlContext, name: s.Name) -> _Place:
    """What a name after ON stands for. Errors: TableNotFound, OperationBlocked."""
    if name.schema is not None and "/" in name.schema:  # a view of a table without a metastore
        definition, view = _definition(context.config, name.schema), name.name.lower()
        if definition.view(view) is None:
            raise TableNotFound(f"{name.schema} has no view {name.name}", "SHOW MATERIALIZED VIEWS")
        return _Place(name.schema, view, definition)
    table = context.table(name)
    try:
        return _Place(table, None, _definition(context.config, table))
    except TableNotFound:
        if "/" in table:
            raise
        schema, _, view = table.partition(".")
        with suppress(TableNotFound):
            base = views.find_view(context.config, schema, view)
            return _Place(base, view, _definition(context.config, base))
        raise


def _definition(config: Config, table: str) -> TableDefinition:
    with open_segments(config, table) as opened:
        return opened.manifest.definition


def create_index(context: SqlContext, statement: s.CreateIndex) -> SqlResult:
    """CREATE DATAMAP or CREATE INDEX, on a table or a view.

    Errors:
        InvalidStatement: a property that this kind does not have; and as `indexes.create_index`.
    """
    place = _place(context, statement.table)
    options, notices = _options(statement)
    given: dict[str, Any] = {
        "name": statement.name,
        "kind": statement.kind,
        "columns": statement.columns,
        "options": options,
    }
    on = place.view or place.table
    if place.view is None:
        report = indexes.create_index(
            context.config,
            place.table,
            **given,
            deferred=statement.deferred,
            if_not_exists=statement.if_not_exists,
            say=context.say,
            **context.building(),
        )
    elif statement.if_not_exists and _of_view(place, statement.name) is not None:
        report = {"index": statement.name, "created": False}
    else:
        if statement.deferred:
            notices.append("an index of a view is built with the view, never later")
        report = view_indexes.create_view_index(
            context.config,
            place.table,
            view=place.view,
            **given,
            local=context.local,
            spark=context.spark,
        )
    verb = "created" if report["created"] else "was there already:"
    said = f"{verb} index {statement.name} on {on}"
    return SqlResult(str(statement), said, notices=tuple(notices), report=report)


def _options(statement: s.CreateIndex) -> tuple[dict[str, str], list[str]]:
    """An index kind's options, and notices of what it does not need."""
    options: dict[str, str] = {}
    notices: list[str] = []
    for key, value in statement.properties:
        if key.upper() in _NEEDLESS:
            notices.append(f"{key} changes nothing: {_NEEDLESS[key.upper()]}")
        elif statement.kind == "minmax":
            raise InvalidStatement(f"minmax has no property {key}", "leave it out")
        else:
            options[key.lower().removeprefix("bloom_")] = value
    return options, notices


def _of_view(place: _Place, name: str) -> IndexDefinition | None:
    """An index of the place's view."""
    found = place.definition.view(place.view) if place.view is not None else None
    held = found.indexes if found is not None else ()
    return next((index for index in held if index.name == name.lower()), None)


def create_view(context: SqlContext, statement: s.CreateView) -> SqlResult:
    """CREATE DATAMAP ... USING 'mv' and CREATE MATERIALIZED VIEW. Errors: `views.create_view`."""
    table = context.table(statement.table)
    schema = statement.view.schema
    own = table if "/" in table else table.partition(".")[0]
    if schema is not None and schema.lower() != own.lower():
        raise InvalidStatement(
            f"the view {display_name(statement.view)} is of another schema than its table {table}",
            f"call it {statement.view.name}",
        )
    report = views.create_view(
        context.config,
        table,
        name=statement.view.name,
        columns=statement.columns or ("*",),
        sort_by=statement.sort_columns,
        properties=dict(statement.properties),
        deferred=statement.deferred,
        if_not_exists=statement.if_not_exists,
        **context.building(),
    )
    verb = "was there already:" if report.get("created") is False else "created"
    return SqlResult(
        str(statement),
        f"{verb} view {statement.view.name} of {table}",
        notices=tuple(report.get("notices", ())),
        report=report,
    )


@dataclass(frozen=True, slots=True)
class _Target:
    """An index or a view, by its name.

    Attributes:
        is_view: False for an index.
        view: of whose index it is.
    """

    table: str
    name: str
    is_view: bool
    view: str | None = None

    def __str__(self) -> str:
        return f"{'view' if self.is_view else 'index'} {self.name} of {self.view or self.table}"


def _target(
    context: SqlContext, kind: s.ObjectKind, name: s.Name, table: s.Name | None
) -> _Target | None:
    """What a statement names; None if there is none.

    Errors:
        TableNotFound: of the table.
    """
    own = name.name.lower()
    if table is None and name.schema is not None and "/" in name.schema:
        held = _definition(context.config, name.schema).view(own)
        return None if held is None else _Target(name.schema, own, True)
    if table is None:
        schema, _, own = context.table(name).partition(".")
        try:
            return _Target(views.find_view(context.config, schema, own), own, True)
        except TableNotFound:
            return None
    place = _place(context, table)
    if kind is not s.ObjectKind.VIEW:
        if place.view is not None and _of_view(place, own) is not None:
            return _Target(place.table, own, False, place.view)
        if place.view is None and place.definition.index(own) is not None:
            return _Target(place.table, own, False)
    if kind is not s.ObjectKind.INDEX and place.definition.view(own) is not None:
        return _Target(place.table, own, True)
    return None


def _required(
    context: SqlContext, kind: s.ObjectKind, name: s.Name, table: s.Name | None
) -> _Target:
    found = _target(context, kind, name, table)
    if found is None:
        raise _unknown(kind, name, table)
    return found


def _unknown(kind: s.ObjectKind, name: s.Name, table: s.Name | None) -> InvalidStatement:
    what = {s.ObjectKind.VIEW: "materialized view"}.get(kind, kind.value.lower())
    if table is None:
        hint = "an index is named with its table: DROP DATAMAP d ON TABLE t"
        return InvalidStatement(f"there is no view {display_name(name)}", hint)
    show = {s.ObjectKind.INDEX: "INDEXES"}.get(kind, f"{kind.value}S")
    return InvalidStatement(
        f"{display_name(table)} has no {what} {display_name(name)}",
        f"SHOW {show} ON {display_name(table)}",
    )


def drop(context: SqlContext, statement: s.DropObject) -> SqlResult:
    """DROP DATAMAP, DROP INDEX, DROP MATERIALIZED VIEW. Errors: InvalidStatement: there is none."""
    found = _target(context, statement.kind, statement.name, statement.table)
    if found is None:
        if not statement.if_exists:
            raise _unknown(statement.kind, statement.name, statement.table)
        return SqlResult(str(statement), f"{display_name(statement.name)} was not there")
    if found.view is not None:
        report = view_indexes.drop_view_index(
            context.config, found.table, view=found.view, name=found.name
        )
    else:
        job = views.drop_view if found.is_view else indexes.drop_index
        report = job(context.config, found.table, name=found.name)
    return SqlResult(str(statement), f"dropped {found}", report=report)


def rebuild(context: SqlContext, statement: s.RebuildObject) -> SqlResult:
    """REBUILD and REFRESH: builds what is missing. Errors: InvalidStatement: there is none."""
    found = _required(context, statement.kind, statement.name, statement.table)
    if found.is_view:
        report = views.rebuild_view(
            context.config, found.table, name=found.name, **context.building()
        )
    elif found.view is not None:
        report = view_indexes.rebuild_view_index(
            context.config,
            found.table,
            view=found.view,
            name=found.name,
            local=context.local,
            spark=context.spark,
        )
    else:
        report = indexes.rebuild_index(
            context.config, found.table, name=found.name, say=context.say, **context.building()
        )
    return SqlResult(str(statement), f"built {found}", report=report)


def switch(context: SqlContext, statement: s.SwitchObject) -> SqlResult:
    """ALTER INDEX and ALTER MATERIALIZED VIEW. Errors: InvalidStatement: there is none."""
    found = _required(context, statement.kind, statement.name, statement.table)
    on = statement.switch in (s.IndexSwitch.ENABLE, s.IndexSwitch.VISIBLE)
    if found.is_view:
        if statement.switch in (s.IndexSwitch.VISIBLE, s.IndexSwitch.INVISIBLE):
            raise InvalidStatement(
                f"the {found} cannot be {statement.switch.value}", "write ENABLE or DISABLE"
            )
        report = views.enable_view(context.config, found.table, name=found.name, enabled=on)
    elif found.view is not None:
        report = view_indexes.show_view_index(
            context.config, found.table, view=found.view, name=found.name, visible=on
        )
    else:
        report = indexes.show_index(context.config, found.table, name=found.name, visible=on)
    words = ("enabled", "disabled") if found.is_view else ("visible", "invisible")
    return SqlResult(str(statement), f"{found} is {words[not on]}", report=report)


def show(context: SqlContext, statement: s.ShowObjects) -> SqlResult:
    """SHOW DATAMAP, SHOW INDEXES, SHOW MATERIALIZED VIEWS: of a table, a view or a schema."""
    if statement.table is not None:
        places = [_place(context, statement.table)]
    else:
        places = list(_places(context))
    rows: list[dict[str, Any]] = []
    for place in places:
        if place.view is None and statement.kind is not s.ObjectKind.VIEW:
            rows += [_index_row(i, place.table) for i in place.definition.indexes]
        for view in place.definition.views:
            if place.view not in (None, view.name):
                continue
            if statement.kind is not s.ObjectKind.INDEX and place.view is None:
                rows.append(_view_row(view, place.table))
            if statement.kind is not s.ObjectKind.VIEW:
                rows += [_index_row(i, view.name) for i in view.indexes]
    return SqlResult(str(statement), **listing(_SHOWN, rows))


def _index_row(index: IndexDefinition, on: str) -> dict[str, Any]:
    return {
        "name": index.name,
        "kind": index.kind,
        "on": on,
        "columns": ", ".join(index.columns),
        "properties": _spelled(index.options),
        "deferred": index.deferred,
        "visible": index.visible,
    }


def _view_row(view: ViewRecord, on: str) -> dict[str, Any]:
    sorted_by = [("SORT_COLUMNS", ", ".join(view.sort_columns))] if view.sort_columns else []
    return {
        "name": view.name,
        "kind": "mv",
        "on": on,
        "columns": ", ".join(view.columns),
        "properties": _spelled((*sorted_by, *view.properties)),
        "deferred": view.deferred,
        "visible": view.enabled,
    }


def _spelled(properties: Any) -> str:
    return ", ".join(f"{key}={value}" for key, value in properties)


def _places(context: SqlContext) -> Iterator[_Place]:
    """All tables of segments of the schema; one that cannot be opened does not hide the others."""
    with hive_catalog_of(context.config) as catalog:
        for table in sorted(catalog.tables(context.schema)):
            name = TableName(context.schema, table)
            with suppress(BridgeError):
                if catalog.table(name).table_format == NAME:
                    yield _Place(str(name), None, _definition(context.config, str(name)))
