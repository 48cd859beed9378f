"""``skipbridge table``: registers existing files as a table."""

from __future__ import annotations

import click

from bridge.cli.lazy import Verbs
from bridge.cli.output import emit, emit_json, first_lines, progress, say, settings
from bridge.config import Config
from bridge.jobs.create_table import create_table, describe_table


@click.group(cls=Verbs)
def table() -> None:
    """Tables in the metastore."""


@table.command("create")
@click.argument("name", metavar="DB.TABLE")
@click.option(
    "--location", required=True, help="Directory of Parquet or ORC files, Hive style (key=value/)."
)
@click.option("--dry-run", is_flag=True, help="Print the changes without making them.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings("metastore.uri")
def create(config: Config, name: str, location: str, dry_run: bool, output: str) -> None:
    """Register a directory as an external table; the schema comes from the files.

    Footers of files from all partitions are compared. If they disagree in a way that no reader can
    reconcile, nothing is registered. Files are neither moved nor changed. Run it again to register
    new directories.

    \b
    skipbridge table create demo.flights --location /data/flights
    """
    with progress(f"registering {name}") as tick:
        report = create_table(config, name, location, dry_run=dry_run, progress=tick)
    if output == "json":
        emit_json(report)
        return
    for line in first_lines(
        [f"left out: column {c}, whose type Hive does not have" for c in report["left_out"]]
    ):
        say(line)
    if "added" in report:
        emit(f"{report['table']} was there; {report['added']} partitions added")
        return
    verb = "would create" if dry_run else "created"
    emit(f"{verb} {report['table']} at {report['location']}, {report['partitions']} partitions")
    for line in first_lines(
        [
            f"  {column['name']:<24} {column['type']}{'  (key)' if column['key'] else ''}"
            for column in report["columns"]
        ]
    ):
        emit(line)


@table.command("show")
@click.argument("name", metavar="DB.TABLE")
@settings("metastore.uri")
def show(config: Config, name: str) -> None:
    """Columns, keys, location and properties of a table."""
    emit_json(describe_table(config, name))
