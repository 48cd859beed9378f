"""``skipbridge table``: registers existing files as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from bridge.app.cli.lazy import Verbs
from bridge.app.cli.output import PROBLEMS, emit, emit_json, first_lines, progress, say, settings
from bridge.app.cli.segment import pairs
from bridge.kernel.config import Config


@click.group(cls=Verbs)
def table() -> None:
    """Tables in the metastore."""


@table.command("create")
@click.argument("name", metavar="DB.TABLE")
@click.option(
    "--location",
    help="Directory of Parquet or ORC files, Hive style (key=value/). With --format: the table's "
    "own directory. [default: below the database's]",
)
@click.option(
    "--format", help="Make a table of segments over files of this format, where they lie."
)
@click.option("--columns", metavar="'NAME TYPE, ...'", help="Columns of a table of segments.")
@click.option(
    "--partition-columns",
    metavar="'NAME TYPE, ...'",
    help="Columns of a table of segments that names of directories hold, such as day=2024-05-01/.",
)
@click.option(
    "--from",
    "sample",
    metavar="PATH",
    help="Files from which the columns of a table of segments are inferred; asks before creating.",
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="A property of the format, such as csv.delimiter=;.",
)
@click.option("--yes", is_flag=True, help="Do not ask about inferred columns.")
@click.option("--dry-run", is_flag=True, help="Print the changes without making them.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings("metastore.uri")
def create(
    config: Config,
    name: str,
    location: str | None,
    format: str | None,
    columns: str | None,
    partition_columns: str | None,
    sample: str | None,
    properties: tuple[str, ...],
    yes: bool,
    dry_run: bool,
    output: str,
) -> None:
    """Register a directory as an external table, or make a table of segments.

    Without --format the schema comes from the files. Footers of files from all partitions are
    compared. If they disagree in a way that no reader can reconcile, nothing is registered. Files
    are neither moved nor changed. Run it again to register new directories.

    With --format the table has no rows until `skipbridge segment add` adds files, which stay where
    they are. Exit status 3: a column or a member of a struct was left out, whose type Hive does
    not have.

    \b
    skipbridge table create demo.flights --location /data/flights
    skipbridge table create demo.calls --format csv --columns "id bigint, at timestamp" \\
        --property csv.header_lines=1
    """
    if format is not None:
        declared = _Declared(
            format, columns, partition_columns, sample, pairs(properties), location
        )
        report = _create_segments(config, name, declared, yes=yes, dry_run=dry_run, output=output)
    else:
        given = (columns, partition_columns, sample)
        if any(one is not None for one in given) or properties or location is None:
            raise click.UsageError(
                "give --location of a directory of files, or --format of a table of segments"
            )
        report = _create_directory(config, name, location, dry_run=dry_run, output=output)
    if report["left_out"]:
        raise SystemExit(PROBLEMS)


def _create_directory(
    config: Config, name: str, location: str, *, dry_run: bool, output: str
) -> dict[str, Any]:
    from bridge.runtime.create_table import create_table

    with progress(f"registering {name}") as tick:
        report = create_table(config, name, location, dry_run=dry_run, progress=tick)
    if output == "json":
        emit_json(report)
        return report
    for line in first_lines(
        [f"left out: column {c}, whose type Hive does not have" for c in report["left_out"]]
    ):
        say(line)
    if "added" in report:
        emit(f"{report['table']} was there; {report['added']} partitions added")
        return report
    verb = "would create" if dry_run else "created"
    emit(f"{verb} {report['table']} at {report['location']}, {report['partitions']} partitions")
    _show_columns(report["columns"])
    return report


@dataclass(frozen=True, slots=True)
class _Declared:
    """A table of segments as the command line declares it."""

    format: str
    columns: str | None
    partition_columns: str | None
    sample: str | None
    properties: dict[str, str]
    location: str | None


def _create_segments(
    config: Config, name: str, given: _Declared, *, yes: bool, dry_run: bool, output: str
) -> dict[str, Any]:
    from bridge.segments.commands.tables import create_table as create_segments
    from bridge.table.segments.declare import parse_columns

    columns = None if given.columns is None else parse_columns(given.columns)
    keys = parse_columns(given.partition_columns) if given.partition_columns else []

    def made(dry_run: bool) -> dict[str, Any]:
        return create_segments(
            config,
            name,
            format=given.format,
            columns=columns,
            partition_columns=keys,
            properties=given.properties,
            location=given.location,
            sample=given.sample,
            dry_run=dry_run,
        )

    if columns is None and not yes and not dry_run:
        found = made(True)
        inferred = [one for one in found["columns"] if not one["key"]]
        _say_left_out(found)
        say(f"columns of {name}, as inferred from {given.sample}:")
        for one in inferred:
            say(f"  {one['name']:<24} {one['type']}")
        columns = [(one["name"], one["type"]) for one in inferred]
        click.confirm("create the table with these columns?", abort=True, err=True)
    report = made(dry_run)
    for notice in report["notices"]:
        say(notice)
    if output == "json":
        emit_json(report)
        return report
    _say_left_out(report)
    verb = "would create" if dry_run else "created"
    emit(f"{verb} {report['table']}, of {report['format']} segments; its log is at "
         f"{report['location']}")  # fmt: skip
    _show_columns(report["columns"])
    return report


def _say_left_out(report: dict[str, Any]) -> None:
    """What is no column, as it was inferred."""
    lines = [
        f"left out: {name!r}: it is there twice, is no name of a column, or has no type of Hive"
        for name in report["left_out"]
    ]
    for line in first_lines(lines):
        say(line)


def _show_columns(columns: Sequence[dict[str, Any]]) -> None:
    for line in first_lines(
        [
            f"  {one['name']:<24} {one['type']}{'  (key)' if one.get('key') else ''}"
            for one in columns
        ]
    ):
        emit(line)


@table.command("drop")
@click.argument("name", metavar="DB.TABLE")
@click.option("--yes", is_flag=True, help="Do not ask.")
@settings("metastore.uri")
def drop(config: Config, name: str, yes: bool) -> None:
    """Drop a table of segments: its log, index and views. Its fact files stay."""
    from bridge.segments.commands.tables import drop_table

    if not yes:
        click.confirm(f"Drop {name}, with its log, index and views?", abort=True, err=True)
    drop_table(config, name)
    emit(f"dropped {name}; its fact files are where they were")


@table.command("show")
@click.argument("name", metavar="DB.TABLE")
@settings("metastore.uri")
def show(config: Config, name: str) -> None:
    """Columns, keys, location and properties of a table.

    A table of segments that is in no metastore is named by its directory.
    """
    from bridge.runtime.compose import is_location
    from bridge.runtime.create_table import describe_table

    found = {"table_format": "segments"} if is_location(name) else describe_table(config, name)
    if found["table_format"] == "segments":
        from bridge.segments.commands.tables import describe

        found |= describe(config, name)
    emit_json(found)
