"""``skipbridge timeline``: the history of a table, and the files of its versions."""

from __future__ import annotations

import click

from bridge.app.cli.lazy import Verbs
from bridge.app.cli.output import emit, emit_json, first_lines, say, settings
from bridge.kernel.config import Config

_SETTINGS = ("metastore.uri", "index.root")


@click.group(cls=Verbs)
def timeline() -> None:
    """Versions of tables that keep them, such as Hudi's."""


@timeline.command("show")
@click.argument("table")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="The newest instants to show.",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_SETTINGS)
def show(config: Config, table: str, limit: int, output: str) -> None:
    """What was done to TABLE, the newest first.

    TABLE is schema.table in the metastore, or a table's directory. Each line is an instant: when it
    was requested (this names the version), when it was completed, the action and its state.
    A format that does not record when an instant was completed shows a dash.

    \b
    skipbridge timeline show lake.trips --limit 5
    """
    from bridge.app.timeline import timeline as read_timeline

    found = read_timeline(config, table, limit)
    if output == "json":
        emit_json(found)
        return
    width = max((len(each["instant"]) for each in found), default=0)
    for each in found:
        completion = each["completion"] or "-"
        times = f"{each['instant']:<{width}}  {completion:<{width}}"
        emit(f"{times}  {each['action']:<14} {each['state']}")
    if not found:
        say(f"nothing was done to {table} yet")


@timeline.command("files")
@click.argument("table")
@click.option("--at", metavar="INSTANT", help="A version other than the newest.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_SETTINGS)
def files(config: Config, table: str, at: str | None, output: str) -> None:
    """The files that make up a version of TABLE.

    Each line is a slice: its partition, base file and size, then the number and size of the logs
    that change it. A slice of logs alone shows a dash for its base file.

    \b
    skipbridge timeline files lake.trips --at 20240516120000000
    """
    from bridge.app.timeline import timeline_files
    from bridge.planner.reports.text import human_bytes

    found = timeline_files(config, table, at)
    if output == "json":
        emit_json(found)
        return
    lines = []
    for each in found:
        base = "-"
        if each["path"] is not None:
            base = f"{each['path'].rpartition('/')[2]}  {human_bytes(each['size'])}"
        logs = f"  + {each['logs']} logs  {human_bytes(each['log_bytes'])}" if each["logs"] else ""
        lines.append(f"{each['partition'] or '.'}  {base}{logs}")
    for line in first_lines(lines):
        emit(line)
    size = sum((each["size"] or 0) + each["log_bytes"] for each in found)
    logs = sum(each["logs"] for each in found)
    say(f"{len(found):,} slices with {logs:,} logs, {human_bytes(size)}")
