"""``skipbridge cluster``: rewrite small or unsorted files, so that indexes skip more."""

from __future__ import annotations

from typing import Any

import click

from bridge.cli.lazy import INTERRUPTED, Verbs
from bridge.cli.output import emit, emit_json, progress, say, settings
from bridge.config import Config

_SETTINGS = ("metastore.uri", "index.root")
_OUTPUT = click.option("--output", type=click.Choice(["text", "json"]), default="text")


@click.group(cls=Verbs)
def cluster() -> None:
    """Rewrite files of a table in another order, beside the old ones, without stopping writers.

    Trino and the Python API read the new files as soon as a plan is committed. Hive and engines
    without skipbridge go on reading the old ones, which stay.
    """


def _strategy(command: Any) -> Any:
    options = [
        click.option(
            "--layout",
            help="binpack, linear, zorder, hilbert or an installed one.  [default: linear with one "
            "column, hilbert with several, binpack with none]",
        ),
        click.option(
            "--by", "columns", multiple=True, metavar="COLUMN", help="Sort column; repeat it."
        ),
        click.option(
            "--group",
            help="Which files are rewritten together: overlap, range, time, size, random or an "
            "installed one.  [default: overlap with sort columns, else size]",
        ),
        click.option("--target", default="1GiB", show_default=True, help="Size of new files."),
        click.option(
            "--small", default="600MiB", show_default=True, help="Only smaller files are rewritten."
        ),
        click.option(
            "--group-bytes",
            default="2GiB",
            show_default=True,
            help="Most bytes of one group. A task holds the rows of its group in memory.",
        ),
        click.option("--groups", type=click.IntRange(min=1), default=30, show_default=True),
        click.option(
            "--min-files",
            type=click.IntRange(min=1),
            default=2,
            show_default=True,
            help="Least number of files in a group.",
        ),
        click.option(
            "--partition", multiple=True, metavar="PATTERN", help="As day=2026-01-*; repeat it."
        ),
        click.option(
            "--recent", type=click.IntRange(min=1), metavar="N", help="The N newest partitions."
        ),
        click.option(
            "--skip",
            type=click.IntRange(min=0),
            default=0,
            metavar="N",
            help="Leave out the N newest partitions.",
        ),
        click.option("--oldest-first", is_flag=True, help="Plan old partitions before new ones."),
        click.option(
            "--again", is_flag=True, help="Also rewrite what was clustered, from its old files."
        ),
        click.option(
            "--compression",
            type=click.Choice(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
            help="[default: that of the old files]",
        ),
        click.option("--row-group", default="128MiB", show_default=True, help="Its size."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _chosen(given: dict[str, Any]) -> Any:
    from bridge.clustering.eligibility import Limits, PartitionFilter
    from bridge.clustering.scheduling import Strategy
    from bridge.config import parse_size

    columns = tuple(given["columns"])
    usual = "binpack" if not columns else "linear" if len(columns) == 1 else "hilbert"
    return Strategy(
        given["layout"] or usual,
        columns,
        given["group"] or ("overlap" if columns else "size"),
        Limits(
            parse_size(given["target"]),
            parse_size(given["small"]),
            parse_size(given["group_bytes"]),
            given["groups"],
            given["min_files"],
        ),
        PartitionFilter(
            tuple(given["partition"]), not given["oldest_first"], given["recent"], given["skip"]
        ),
        given["compression"],
        parse_size(given["row_group"]),
        given["again"],
    )


@cluster.command("schedule")
@click.argument("table")
@_strategy
@_OUTPUT
@settings(*_SETTINGS)
def schedule(config: Config, table: str, output: str, **given: Any) -> None:
    """Save a plan of what is worth a rewrite, and print its instant.

    TABLE is schema.table, or a directory; its files are Parquet. The index is brought up to date
    first. No data is written. Nothing is printed if there is nothing to rewrite.

    \b
    skipbridge cluster schedule demo.flights --by carrier --by dep_delay
    skipbridge cluster schedule ./flights --target 256MiB --recent 7
    """
    made = _schedule(config, table, given)
    if output == "json":
        emit_json(made)
    elif made["instant"] is not None:
        emit(made["instant"])


def _schedule(config: Config, table: str, given: dict[str, Any]) -> dict[str, Any]:
    from bridge.jobs.cluster import schedule as plan

    made = plan(config, table, _chosen(given), say)
    if made["instant"] is None:
        say(f"{table}: nothing is worth a rewrite")
    else:
        say(_line(made))
    return made


def _line(made: dict[str, Any]) -> str:
    from bridge.report.text import human_bytes

    if "problem" in made:
        return f"{made['instant']}  {made['problem']}"
    by = f" by {', '.join(made['columns'])}" if made["columns"] else ""
    return (
        f"{made['instant']}  {made['layout']}{by}: {made['old_files']} files, "
        f"{human_bytes(made['bytes'])} -> {made['new_files']} files, in {made['groups']} groups of "
        f"{made['partitions']} partitions"
    )


@cluster.command("run")
@click.argument("table")
@click.argument("instant", required=False)
@click.option("--now", is_flag=True, help="Schedule a plan first, and execute it.")
@click.option("--local", is_flag=True, help="Use threads of this process instead of Spark.")
@_strategy
@_OUTPUT
@settings(*_SETTINGS)
def run(
    config: Config,
    table: str,
    instant: str | None,
    now: bool,
    local: bool,
    output: str,
    **given: Any,
) -> None:
    """Execute the plan of an INSTANT, or the oldest plan that waits.

    New files are checked against the old ones (rows and checksums) before one commit makes readers
    use them. A run that was stopped is repeated: groups that were done are not done again.
    The options of `schedule` count with --now.

    \b
    skipbridge cluster run demo.flights --now --by carrier
    skipbridge cluster run demo.flights 20260102030405678
    """
    from bridge.errors import InvalidRequest
    from bridge.jobs.cluster import run as execute

    if now:
        if instant is not None:
            raise InvalidRequest(
                "an instant and --now were given", "give the instant of a plan, or --now"
            )
        instant = _schedule(config, table, given)["instant"]
        if instant is None:
            return
    try:
        with progress(f"clustering {table}") as tick:
            report = execute(config, table, instant, local=local, progress=tick)
    except KeyboardInterrupt:
        say("stopped; the old files are read as before, and the same command continues")
        raise SystemExit(INTERRUPTED) from None
    if output == "json":
        emit_json(report)
        return
    for each in report["rejected"]:
        say(f"group {each['group']} stays as it was: {each['reason']}")
    emit(
        f"{report['table']} {report['instant']} {report['state']}: {report['old_files']} files -> "
        f"{report['new_files']} files, {report['rows']:,} rows"
        + (f" @ generation {report['generation']}" if report["generation"] >= 0 else "")
    )


@cluster.command("show")
@click.argument("table")
@click.argument("instant", required=False)
@_OUTPUT
@settings(*_SETTINGS)
def show(config: Config, table: str, instant: str | None, output: str) -> None:
    """The plans of TABLE and their states; with an INSTANT, the groups of that plan."""
    from bridge.jobs.cluster import show as plans

    found = plans(config, table, instant)
    if output == "json":
        emit_json(found)
        return
    for each in found:
        emit(f"{each['state']:<10} {_line(each)}")
        for group in each.get("plan", ()):
            emit(f"  group {group['id']} {group['partition'] or '.'} -> {group['outputs']} files")
            for place, file in enumerate(group["files"]):
                spans = "  ".join(
                    f"{column} {bounds[place][0]} .. {bounds[place][1]}"
                    for column, bounds in group["metrics"]
                )
                emit(f"    {file['path'].rpartition('/')[2]}  {file['size']}  {spans}".rstrip())
    if not found:
        say(f"{table} has no clustering plans")


@cluster.command("cancel")
@click.argument("table")
@click.argument("instant")
@settings(*_SETTINGS)
def cancel(config: Config, table: str, instant: str) -> None:
    """Cancel a plan that is not committed yet; what was written for it is never read."""
    from bridge.jobs.cluster import cancel as stop

    done = stop(config, table, instant)
    emit(f"{done['table']} {done['instant']} cancelled")
