"""``skipbridge cluster publish`` and ``cluster clean``."""

from __future__ import annotations

import signal
import threading
from typing import Any

import click

from bridge.cli.lazy import INTERRUPTED
from bridge.cli.output import PROBLEMS, emit, emit_json, progress, say, settings
from bridge.config import Config

_SETTINGS = ("metastore.uri", "index.root")
_OUTPUT = click.option("--output", type=click.Choice(["text", "json"]), default="text")


@click.command("publish")
@click.argument("table")
@click.option("--local", is_flag=True, help="Refresh the index with threads instead of Spark.")
@click.option(
    "--watch", metavar="TIME", help="Keep running: publish and bring late files at this interval."
)
@_OUTPUT
@settings(*_SETTINGS, "clustering.settled", "clustering.memory")
def publish(config: Config, table: str, local: bool, watch: str | None, output: str) -> None:
    """Let engines without skipbridge read the clustered files of TABLE, too.

    Each partition with clustered files gets a new directory, with copies of all files that were not
    rewritten. One update of the metastore then switches its location. Files that writers put into
    an old directory meanwhile are brought over by the next run. Old directories stay until
    `skipbridge cluster clean`.

    \b
    skipbridge cluster publish demo.flights
    skipbridge cluster publish demo.flights --watch 5m

    Exit status 3: a partition was left as it is, with the reason.
    """
    if watch is None:
        made = run_publish(config, table, local)
        show_published(made, output)
        leave(made)
        return
    from bridge.config import parse_seconds
    from bridge.jobs.index_watch import watch as keep_watching

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())

    def once() -> dict[str, Any]:
        made = run_publish(config, table, local)
        # Only such a round is told.
        news = ("published", "late", "kept", "taken_back")
        return {**made, "committed": any(made[name] for name in news)}

    done = keep_watching(
        once,
        parse_seconds(watch, "--watch", "flag"),
        stop,
        told=lambda made: show_published(made, output),
        say=say,
    )
    say(f"{done.rounds} rounds, {done.committed} with news, {done.failed} failures")


def check_publish(config: Config, table: str) -> None:
    """Refuses a table that cannot be published, before it is clustered."""
    from bridge.jobs.publish import check

    check(config, table)


def run_publish(config: Config, table: str, local: bool) -> dict[str, Any]:
    """Publishes once; says how to go on if it is interrupted."""
    from bridge.jobs.publish import publish as run

    try:
        with progress(f"indexing {table}") as tick:
            return run(config, table, local=local, progress=tick, say=say)
    except KeyboardInterrupt:
        say("stopped; each partition is published or as it was, and the same command continues")
        raise SystemExit(INTERRUPTED) from None


def show_published(made: dict[str, Any], output: str) -> None:
    """Prints a report of `run_publish`."""
    from bridge.report.text import human_bytes

    if output == "json":
        emit_json(made)
    else:
        emit(
            f"{made['table']}: {len(made['published'])} partitions published, {made['copied']} "
            f"files, {human_bytes(made['bytes'])}; {made['late']} late files brought over"
        )
    for each in made["kept"]:
        say(f"{each['partition'] or made['table']} stays as it was: {each['reason']}")
    for path in made["waiting"]:
        say(f"not brought over yet, since it is young or its writer has not ended: {path}")
    for path in made["taken_back"]:
        say(f"taken back, since its rows had been published before it was written: {path}")
    for path in made["doubtful"]:
        say(f"brought over, and files that it may replace were deleted later; look at it: {path}")
    for path in made["overwritten"]:
        say(f"overwritten after its directory was left, and not read by engines: {path}")
    for path in made["withheld"]:
        say(f"may replace files that were deleted in a left directory, and not read: {path}")


def leave(made: dict[str, Any]) -> None:
    """Ends the process with status 3 if something was left as it is."""
    if made["kept"] or made["overwritten"] or made["withheld"] or made["doubtful"]:
        raise SystemExit(PROBLEMS)


@click.command("clean")
@click.argument("table")
@click.option("--retain", default="7d", show_default=True, help="Keep what ended later than this.")
@click.option("--dry-run", is_flag=True, help="Tell what would be deleted, and delete nothing.")
@click.option(
    "--elsewhere",
    metavar="TABLE",
    multiple=True,
    help="Another table that has no file below the location of this one. For tables of which the "
    "metastore does not tell where they lie. May be repeated.",
)
@_OUTPUT
@settings(*_SETTINGS, "clustering.records")
def clean(
    config: Config,
    table: str,
    retain: str,
    dry_run: bool,
    elsewhere: tuple[str, ...],
    output: str,
) -> None:
    """Delete what clustering and publishing of TABLE have left behind.

    Deleted are files of directories that were published elsewhere, new files that no generation of
    the index and no plan names, old generations, and records of plans that ended. Late files that
    are not brought over stay. Queries that are older than the retention may fail.

    \b
    skipbridge cluster clean demo.flights --dry-run
    skipbridge cluster clean demo.flights --retain 2d
    """
    from bridge.config import parse_seconds
    from bridge.jobs.publish import clean as run
    from bridge.report.text import human_bytes

    seconds = parse_seconds(retain, "--retain", "flag")
    made = run(config, table, seconds, dry_run=dry_run, elsewhere=elsewhere)
    if output == "json":
        emit_json(made)
        return
    emit(
        f"{made['table']}: {made['replaced']} replaced files, {made['rewritten']} new files that "
        f"nobody reads, {made['attempts']} of failed attempts, {made['generations']} generations, "
        f"records of {made['plans']} plans "
        f"{'would be ' if dry_run else ''}deleted, {human_bytes(made['bytes'])}"
    )
    for instant in made["unknown"]:
        say(f"left alone: files of plan {instant}, which this index does not know")
    for name in made["shared"]:
        say(f"left alone: what {name} may read, which lies in the same place")
    for name in made["unreadable"]:
        say(
            f"left alone: {made['withheld']} replaced files, since the metastore does not tell "
            f"where {name} lies; repair or drop it, or say that it lies elsewhere: "
            f"--elsewhere {name}"
        )
    for name in made["unasked"]:
        say(f"{name} has too many partitions to look at: they are taken to lie below its location")
