"""``skipbridge segment``: the segments of tables over fact files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from bridge.app.cli.lazy import Verbs
from bridge.app.cli.output import emit, emit_json, progress, say, settings
from bridge.kernel.config import Config

_SETTINGS = ("metastore.uri", "index.root")
_OUTPUT = click.option("--output", type=click.Choice(["text", "json"]), default="text")
_LOCAL = click.option("--local", is_flag=True, help="Read files in this process, without Spark.")
_TABLE = click.argument("table", metavar="TABLE")


@click.group(cls=Verbs)
def segment() -> None:
    """Segments of tables over fact files, which stay where they are.

    TABLE is schema.table in the metastore, or the table's own directory. `skipbridge sql` disables,
    enables and compacts segments, and cleans the log.
    """


@segment.command("add")
@_TABLE
@click.argument("paths", nargs=-1, metavar="[PATH...]")
@click.option(
    "--from-table",
    metavar="DB.TABLE",
    help="Add the files of this Hive table instead, read as its record in the metastore says.",
)
@click.option(
    "--partition",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --from-table: only partitions with this value.",
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="A property of these files where it differs from the table's, such as csv.header=c,a,b.",
)
@click.option("--format", help="The format of these files. [default: the table's]")
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse CSV files with a value that cannot be cast and would be NULL.",
)
@_LOCAL
@_OUTPUT
@settings(*_SETTINGS)
def add(
    config: Config,
    table: str,
    paths: tuple[str, ...],
    from_table: str | None,
    partition: tuple[str, ...],
    properties: tuple[str, ...],
    format: str | None,
    strict: bool,
    local: bool,
    output: str,
) -> None:
    """Add files, and all files in directories and below, as one segment.

    The columns of each file are checked now. The files are read once for all immediate indexes and
    views, and one commit makes all of it visible. A file that the table has already is an error.

    \b
    skipbridge segment add demo.calls /data/calls/2024-05,/data/calls/2024-06
    """
    from bridge.segments.commands.add import add_segment

    if bool(paths) == (from_table is not None) or (partition and from_table is None):
        raise click.UsageError("give paths, or --from-table and perhaps --partition")
    with progress(f"adding to {table}") as tick:
        report = add_segment(
            config,
            table,
            paths=paths,
            from_table=from_table,
            partition=pairs(partition),
            properties=pairs(properties),
            format=format,
            strict=strict,
            local=local,
            progress=tick,
            say=say,
        )
    if output == "json":
        emit_json(report)
        return
    from bridge.planner.reports.text import count_files

    files = count_files(int(report["files"]))
    emit(f"{report['table']}: segment {report['segment']}, {files}, {_human(report['bytes'])}")


@segment.command("list")
@_TABLE
@click.option("--history", is_flag=True, help="Also those that CLEAN FILES has forgotten lately.")
@_OUTPUT
@settings(*_SETTINGS)
def list_(config: Config, table: str, history: bool, output: str) -> None:
    """List the segments of a table: status, times, format, size, index and views.

    The size is that of the files when they were added. Times are in this machine's zone, which they
    name.
    """
    from bridge.segments.commands.manage import list_segments

    report = list_segments(config, table, history=history)
    if output == "json":
        emit_json(report)
        return
    rows = [("ID", "STATUS", "ADDED", "FORMAT", "FILES", "SIZE", "INDEXED", "VIEWS")]
    for one in report["segments"]:
        status = one["status"]
        if one["merged_into"] is not None:
            status += f" into {one['merged_into']}"
        indexed = one["indexed_files"]
        rows.append(
            (
                one["id"],
                status,
                _time(one["started"]),
                one["format"],
                str(one["files"]),
                _human(one["bytes"]),
                "-" if indexed is None else f"{indexed}/{one['files']}",
                ", ".join(f"{view}: {state}" for view, state in one["views"].items()) or "-",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        emit("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())


@segment.command("delete")
@_TABLE
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option(
    "--before",
    metavar="TIME",
    help="All segments that were added before this time, such as '2024-05-01 08:00:00+0200'. "
    "Without an offset it is in UTC.",
)
@_OUTPUT
@settings(*_SETTINGS)
def delete(
    config: Config, table: str, ids: tuple[str, ...], before: str | None, output: str
) -> None:
    """Take segments out of the table; their files stay where they are."""
    from bridge.segments.commands.manage import delete_segments, delete_segments_before
    from bridge.segments.sql.times import parse_time

    if bool(ids) == (before is not None):
        raise click.UsageError("give ids of segments, or --before")
    if before is not None:
        _told(delete_segments_before(config, table, time=parse_time(before)), "deleted", output)
        return
    _told(delete_segments(config, table, ids=ids), "deleted", output)


@segment.command("refresh")
@_TABLE
@click.argument("ids", nargs=-1, metavar="[ID...]")
@click.option(
    "--forget-missing", is_flag=True, help="Files that are gone leave the table, with their rows."
)
@_LOCAL
@_OUTPUT
@settings(*_SETTINGS)
def refresh(
    config: Config,
    table: str,
    ids: tuple[str, ...],
    forget_missing: bool,
    local: bool,
    output: str,
) -> None:
    """Take up files that were rewritten since they were added.

    Queries of a table whose files have changed fail until then. New files beside them are not taken
    up: add them as another segment. If the metastore's record of the table is not one by which Hive
    can read it, it is written anew.
    """
    from bridge.segments.commands.refresh import refresh_segments

    with progress(f"refreshing {table}") as tick:
        report = refresh_segments(
            config,
            table,
            segments=ids or None,
            forget_missing=forget_missing,
            local=local,
            progress=tick,
            say=say,
        )
    if output == "json":
        emit_json(report)
        return
    if report["recorded"]:
        say("the metastore's record is written anew")
    for uri in report["gone"]:
        say(f"gone, and out of the table: {uri}")
    emit(
        f"{report['table']}: {report['changed_files']} changed files in segments "
        f"{', '.join(report['segments']) or 'none'}"
    )


def pairs(texts: Sequence[str]) -> dict[str, str]:
    """``name=value`` options as a dict. Errors: click.UsageError."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise click.UsageError(f"--property {text!r}: give NAME=VALUE")
        found[name.strip()] = value
    return found


def _told(report: dict[str, Any], verb: str, output: str) -> None:
    if output == "json":
        emit_json(report)
        return
    emit(f"{report['table']}: {verb} {', '.join(report['segments']) or 'nothing'}")


def _human(size: int) -> str:
    from bridge.planner.reports.text import human_bytes

    return human_bytes(size)


def _time(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S%z")
