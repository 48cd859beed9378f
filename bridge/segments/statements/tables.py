"""Statements about whole tables."""

from __future__ import annotations

from typing import Any

from bridge.kernel.errors import TableExists
from bridge.segments.commands import tables
from bridge.segments.sql import statements as s
from bridge.segments.statements.context import SqlContext, SqlResult, listing

_DESCRIBED = ("col_name", "data_type", "comment")


def create(context: SqlContext, statement: s.CreateTable) -> SqlResult:
    """CREATE TABLE. Errors: as `tables.create_table`."""
    table = context.table(statement.table)
    try:
        report = tables.create_table(
            context.config,
            table,
            format=statement.format,
            columns=[(c.name, c.type) for c in statement.columns],
            partition_columns=[(c.name, c.type) for c in statement.partition_columns],
            properties=dict(statement.properties),
            location=statement.location,
            comment=statement.comment,
            comments={
                c.name: c.comment
                for c in (*statement.columns, *statement.partition_columns)
                if c.comment is not None
            },
        )
    except TableExists:
        if not statement.if_not_exists:
            raise
        found = tables.what_exists(context.config, table)
        if not found:  # its place is that of another table
            raise
        return SqlResult(str(statement), f"{table} was there already: {found}")
    return SqlResult(
        str(statement),
        f"created {table} of {statement.format}",
        notices=tuple(report["notices"]),
        report=report,
    )


def drop(context: SqlContext, statement: s.DropTable) -> SqlResult:
    """DROP TABLE. Errors: TableNotFound, OperationBlocked."""
    table = context.table(statement.table)
    report = tables.drop_table(context.config, table, if_exists=statement.if_exists)
    said = (
        f"dropped {table}; its fact files stay" if report["dropped"] else f"{table} was not there"
    )
    return SqlResult(str(statement), said, report=report)


def rename(context: SqlContext, statement: s.RenameTable) -> SqlResult:
    """RENAME TO; without a schema the table stays in its own. Errors: TableExists, ..."""
    table, new = context.table(statement.table), statement.new
    if new.schema is None:
        new = s.Name(new.name, table.partition(".")[0])
    target = context.table(new)
    report = tables.rename_table(context.config, table, target)
    return SqlResult(str(statement), f"{table} is now {target}", report=report)


def drop_columns(context: SqlContext, statement: s.DropColumns) -> SqlResult:
    """DROP COLUMNS. Errors: ColumnNotFound, InvalidRequest."""
    table = context.table(statement.table)
    report = tables.drop_columns(context.config, table, statement.columns)
    return _altered(statement, f"{table} has no column {', '.join(statement.columns)} now", report)


def change_type(context: SqlContext, statement: s.ChangeType) -> SqlResult:
    """CHANGE a a type. Errors: ColumnNotFound, InvalidRequest."""
    table = context.table(statement.table)
    report = tables.change_type(context.config, table, statement.column, statement.type)
    return _altered(statement, f"{statement.column} of {table} is {statement.type} now", report)


def _altered(statement: s.Statement, said: str, report: dict[str, Any]) -> SqlResult:
    behind = report["record_behind"]
    return SqlResult(str(statement), said, notices=(behind,) if behind else (), report=report)


def set_properties(context: SqlContext, statement: s.SetProperties) -> SqlResult:
    """SET TBLPROPERTIES. Errors: OperationBlocked, InvalidRequest."""
    table = context.table(statement.table)
    report = tables.set_properties(context.config, table, dict(statement.properties))
    return _altered(statement, _properties(table, report), report)


def unset_properties(context: SqlContext, statement: s.UnsetProperties) -> SqlResult:
    """UNSET TBLPROPERTIES. Errors: OperationBlocked."""
    table = context.table(statement.table)
    report = tables.unset_properties(context.config, table, statement.keys)
    return _altered(statement, _properties(table, report), report)


def _properties(table: str, report: dict[str, Any]) -> str:
    """Segments keep the properties that they were added with."""
    held = ", ".join(f"{k}={v!r}" for k, v in report["properties"].items()) or "none"
    return f"properties of {table} for segments that will be added: {held}"


def describe(context: SqlContext, statement: s.Describe) -> SqlResult:
    """DESCRIBE: a row per column; FORMATTED: all else that is known too."""
    report = tables.describe(context.config, context.table(statement.table))
    rows: list[tuple[str, str, str]] = [
        (c["name"], c["type"], c["comment"] or "")
        for c in (*report["columns"], *report["partition_columns"])
    ]
    if statement.formatted:
        rows.append(("", "", ""))
        rows += [
            (f"## {name}", str(report[key]), "")
            for name, key in (
                *(("table", "table"), ("format", "format"), ("location", "location")),
                *(("segments", "segments"), ("files", "files"), ("bytes", "bytes")),
                ("version", "version"),
            )
        ]
        if report.get("comment"):
            rows.append(("## comment", report["comment"], ""))
        rows += [("## partition column", c["name"], c["type"]) for c in report["partition_columns"]]
        rows += [(f"## property {k}", v, "") for k, v in report["properties"].items()]
        rows += [
            (f"## index {i['name']}", i["kind"], ", ".join(i["columns"])) for i in report["indexes"]
        ]
        rows += [(f"## view {v['name']}", "mv", ", ".join(v["columns"])) for v in report["views"]]
    named = [dict(zip(_DESCRIBED, row, strict=True)) for row in rows]
    return SqlResult(str(statement), report=report, **listing(_DESCRIBED, named))


def show_create(context: SqlContext, statement: s.ShowCreateTable) -> SqlResult:
    """SHOW CREATE TABLE: a statement that makes a table of the same kind, elsewhere."""
    report = tables.describe(context.config, context.table(statement.table))
    made = s.CreateTable(
        statement.table,
        _definitions(report["columns"]),
        report["format"],
        tuple(report["properties"].items()),
        report.get("comment"),
        partition_columns=_definitions(report["partition_columns"]),
    )
    return SqlResult(str(statement), **listing(("statement",), [{"statement": str(made)}]))


def _definitions(columns: list[dict[str, Any]]) -> tuple[s.ColumnDefinition, ...]:
    return tuple(s.ColumnDefinition(c["name"], c["type"], c["comment"]) for c in columns)
