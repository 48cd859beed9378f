"""Statements about segments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from bridge.kernel.errors import InvalidStatement
from bridge.segments.commands import add as adding
from bridge.segments.commands import compaction, manage
from bridge.segments.commands.refresh import refresh_segments
from bridge.segments.sql import statements as s
from bridge.segments.sql.listing_query import COLUMNS, run_listing_query
from bridge.segments.sql.times import parse_time
from bridge.segments.statements.context import SqlContext, SqlResult, listing

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def add(context: SqlContext, statement: s.AddSegment) -> SqlResult:
    """ADD SEGMENT. Errors: as `adding.add_segment`."""
    table = context.table(statement.table)
    properties = dict(statement.properties)
    strict = _flag(properties, "strict")
    report = adding.add_segment(
        context.config,
        table,
        paths=[statement.path] if statement.source is None else [],
        from_table=None if statement.source is None else context.table(statement.source),
        partition=dict(statement.partition),
        properties=properties,
        format=statement.format,
        strict=strict,
        say=context.say,
        **context.building(),
    )
    return SqlResult(
        str(statement),
        f"added segment {report['segment']} to {table}: {report['files']} files",
        report=report,
    )


_FORCE = {"keep": 1, "older_than": 0.0, "running": 3600.0}


def _flag(properties: dict[str, str], name: str) -> bool:
    """Takes an option out of the properties. Errors: InvalidStatement: neither true nor false."""
    key = next((k for k in properties if k.lower() == name), name)
    text = properties.pop(key, "false")
    if text.lower() not in ("true", "false"):
        raise InvalidStatement(f"{name} is {text[:40]!r}", "write 'true' or 'false'")
    return text.lower() == "true"


def show(context: SqlContext, statement: s.ShowSegments) -> SqlResult:
    """SHOW SEGMENTS, newest first. Errors: OperationBlocked, InvalidStatement."""
    table = context.table(statement.table)
    report = manage.list_segments(context.config, table, history=statement.history)
    found = sorted(report["segments"], key=lambda one: one["started"], reverse=True)
    rows = [_row(one) for one in found[: statement.limit]]
    if statement.query is None:
        return SqlResult(str(statement), report=report, **listing(COLUMNS, rows))
    columns, chosen = run_listing_query(statement.query, statement.table.name, rows)
    return SqlResult(str(statement), columns=columns, rows=tuple(chosen))


def _row(segment: dict[str, Any]) -> dict[str, Any]:
    return segment | {
        "started": _time(segment["started"]),
        "finished": _time(segment["finished"]),
        "views": ", ".join(f"{name}: {state}" for name, state in segment["views"].items()),
        "paths": ",".join(segment["paths"]),
    }


def _time(micros: int) -> str:
    """A time in UTC, which it says, as DELETE ... BEFORE takes it."""
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(" ")


def delete(context: SqlContext, statement: s.DeleteSegments) -> SqlResult:
    """DELETE ... WHERE SEGMENT.ID IN. Errors: SegmentNotFound."""
    table = context.table(statement.table)
    report = manage.delete_segments(context.config, table, ids=statement.ids)
    return SqlResult(str(statement), _deleted(table, report), report=report)


def delete_before(context: SqlContext, statement: s.DeleteSegmentsBefore) -> SqlResult:
    """DELETE ... WHERE SEGMENT.STARTTIME BEFORE; a time without an offset is in UTC."""
    table = context.table(statement.table)
    report = manage.delete_segments_before(context.config, table, time=parse_time(statement.time))
    return SqlResult(str(statement), _deleted(table, report), report=report)


def _deleted(table: str, report: dict[str, Any]) -> str:
    ids = report["segments"]
    if not ids:
        return f"no segment of {table} to delete"
    return f"deleted {_segments(ids)} of {table}; fact files stay"


def switch(context: SqlContext, statement: s.SwitchSegments) -> SqlResult:
    """ENABLE or DISABLE SEGMENTS. Errors: SegmentNotFound."""
    table = context.table(statement.table)
    report = manage.switch_segments(
        context.config, table, ids=statement.ids, enabled=statement.enabled
    )
    verb = "enabled" if statement.enabled else "disabled"
    said = f"{verb} {_segments(report['segments'])} of {table}"
    if not report["segments"]:
        said = f"{_segments(statement.ids)} of {table} was {verb} already"
    return SqlResult(str(statement), said, report=report)


def refresh(context: SqlContext, statement: s.RefreshSegments) -> SqlResult:
    """REFRESH SEGMENTS. Errors: FileUnreadable, SegmentNotFound, SegmentSchemaMismatch."""
    table = context.table(statement.table)
    report = refresh_segments(
        context.config,
        table,
        segments=statement.ids or None,
        say=context.say,
        **context.building(),
    )
    return SqlResult(
        str(statement),
        f"{report['changed_files']} changed files of {table}",
        notices=("the metastore's record is written anew",) if report["recorded"] else (),
        report=report,
    )


def compact(context: SqlContext, statement: s.Compact) -> SqlResult:
    """COMPACT. Errors: SegmentNotFound, InvalidRequest, SegmentConflict."""
    table = context.table(statement.table)
    kind = statement.kind.value.lower()
    report = compaction.compact(context.config, table, kind=kind, ids=statement.ids)  # type: ignore[arg-type]
    merged = report["merged"]
    said = "; ".join(f"{_segments(before)} became {after}" for after, before in merged.items())
    summary = f"{table}: {said or 'nothing to merge'}"
    if statement.clean:
        report["cleaned"] = manage.clean(context.config, table)
        summary += "; " + _cleaned(report["cleaned"])
    return SqlResult(str(statement), summary, report=report)


def clean(context: SqlContext, statement: s.CleanFiles) -> SqlResult:
    """CLEAN FILES; ``force`` spares nothing that running queries may read, but running commands.

    Errors:
        OperationBlocked.
    """
    table = context.table(statement.table)
    given = {key.lower(): value.lower() == "true" for key, value in statement.options}
    options: dict[str, Any] = _FORCE if given.get("force") else {}
    report = manage.clean(context.config, table, dry_run=given.get("dryrun", False), **options)
    notices = ("statistics changes nothing: files are always counted",)
    return SqlResult(
        str(statement),
        f"{table}: {_cleaned(report)}",
        notices=notices if "statistics" in given else (),
        report=report,
    )


def _cleaned(report: dict[str, Any]) -> str:
    would = "would be " if report["dry_run"] else ""
    forgotten = f"{_segments(report['segments'])} {would}forgotten, " if report["segments"] else ""
    return (
        f"{forgotten}{report['deleted_files']} of skipbridge's own files {would}deleted, "
        "no fact file"
    )


def _segments(ids: Any) -> str:
    return f"segment{'s' if len(ids) > 1 else ''} {', '.join(ids)}"
