"""``skipbridge cluster publish``, ``revert``, ``accept``, ``originals`` and ``clean``."""

from __future__ import annotations

import re
import signal
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from bridge.app.cli.lazy import INTERRUPTED
from bridge.app.cli.output import PROBLEMS, emit, emit_json, emit_path, progress, say, settings
from bridge.kernel.config import Config

_SETTINGS = ("metastore.uri", "index.root")
_WORK = (*_SETTINGS, "clustering.settled", "clustering.memory", "clustering.verify")
_OUTPUT = click.option("--output", type=click.Choice(["text", "json"]), default="text")
_LOCAL = click.option("--local", is_flag=True, help="Refresh the index with threads, not Spark.")
_SETTLED = click.option(
    "--settled",
    metavar="TIME",
    help="Time for which nothing in a partition may have changed; 0: any. [default: "
    "clustering.settled]",
)


def _seconds(text: str, option: str) -> float:
    from bridge.kernel.config import parse_seconds

    return parse_seconds("0s" if text == "0" else text, option, "flag")


def _settled(text: str | None) -> float | None:
    return None if text is None else _seconds(text, "--settled")


@click.command("publish")
@click.argument("table")
@_LOCAL
@_SETTLED
@click.option("--watch", metavar="TIME", help="Keep running and publish at this interval.")
@_OUTPUT
@settings(*_WORK)
def publish(
    config: Config, table: str, local: bool, settled: str | None, watch: str | None, output: str
) -> None:
    """Let engines without skipbridge read the clustered files of TABLE, too.

    Each quiet partition with clustered files gets a new directory, with copies of all files that
    were not rewritten. One update of the metastore then switches its location. The old directory
    stays whole, with a marker. What a writer puts there later is listed, with the statement that
    brings it over, until it is accepted.

    \b
    skipbridge cluster publish demo.flights
    skipbridge cluster publish demo.flights --watch 1h

    Exit status 3: a partition was left as it is, with the reason; or files are listed.
    """
    seconds = _settled(settled)
    if watch is None:
        made = run_publish(config, table, local, seconds)
        show_published(made, output)
        exit_if_kept(made)
        return
    from bridge.indexing.watch import watch as keep_watching
    from bridge.kernel.config import parse_seconds

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    news = News()

    def once() -> dict[str, Any]:
        made = run_publish(config, table, local, seconds)
        return {**made, "committed": news.are(made)}

    done = keep_watching(
        once,
        parse_seconds(watch, "--watch", "flag"),
        stop,
        told=lambda made: show_published(made, output),
        say=say,
    )
    say(f"{done.rounds} rounds, {done.committed} with news, {done.failed} failures")


@click.command("revert")
@click.argument("table")
@click.option("--partition", multiple=True, metavar="PATTERN", help="As day=2026-01-*; repeat it.")
@_LOCAL
@_SETTLED
@_OUTPUT
@settings(*_WORK)
def revert(
    config: Config,
    table: str,
    partition: tuple[str, ...],
    local: bool,
    settled: str | None,
    output: str,
) -> None:
    """Switch published partitions of TABLE back to the directories that they were published from.

    Only if the present directory holds exactly what was published, the old one all files that its
    marker names, and both are quiet. What writers have put into the old directory since is then
    read, too.

    \b
    skipbridge cluster revert demo.flights --partition 'day=2026-01-*'

    Exit status 3: a partition was left as it is, with the reason; or files are listed.
    """
    from bridge.clustering.commands.publish import revert as run

    seconds = _settled(settled)
    with _continued(), progress(f"indexing {table}") as tick:
        made = run(config, table, partition, local=local, settled=seconds, progress=tick, say=say)
    show_published(made, output, "reverted")
    exit_if_kept(made)


@click.command("accept")
@click.argument("table")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@settings(*_SETTINGS)
def accept(config: Config, table: str, files: tuple[str, ...]) -> None:
    """End the listing of files in directories that TABLE was published from.

    Nothing is moved or deleted, and no engine reads the files: bring their rows over first, with
    the statement that is printed for each. Delete the files then: a reader of **/*.parquet finds
    their rows twice. A file that is written again is listed again.
    """
    from bridge.clustering.commands.publish import accept as run

    made = run(config, table, files)
    emit(f"{made['table']}: {len(made['accepted'])} files accepted")


@click.command("originals")
@click.argument("table")
@click.option(
    "--retain",
    default="7d",
    show_default=True,
    help="Only of directories that were left longer ago: at least the longest query, and the "
    "longest cache of locations.",
)
@click.option("-0", "--null", is_flag=True, help="End each path with NUL, not with a line end.")
@_OUTPUT
@settings(*_SETTINGS)
def originals(config: Config, table: str, retain: str, null: bool, output: str) -> None:
    """List the files of writers that nobody needs after TABLE was published, one path a line.

    For your own tool to delete: skipbridge never does. Run `clean` first: files that an older
    generation of the index names are still needed.

    \b
    skipbridge cluster originals demo.flights -0 | xargs -0 -n 1 aws s3 rm

    Exit status 3: without -0, files are not listed whose names a line cannot hold. hadoop fs takes
    names as patterns: escape them.
    """
    from bridge.clustering.commands.publish import originals as run

    made = run(config, table, _seconds(retain, "--retain"))
    if output == "json":
        emit_json(made)
        return
    odd = [] if null else [path for path in made["files"] if not _fits_line(path)]
    for path in made["files"]:
        if path not in odd:
            emit_path(path, "\0" if null else "\n")
    for each in made["needed"]:
        say(f"{each['partition'] or table}: nothing is listed, since {each['reason']}")
    if made["in_use"]:
        say(
            f"{table}: {made['in_use']:,} more are named by generations of the index, or by plans "
            f"that wait: run skipbridge cluster clean {table}, which ends old generations"
        )
    for path in odd:
        say(f"not listed, since its name has control characters: {path!r}; -0 lists it")
    if odd:
        raise SystemExit(PROBLEMS)


def _fits_line(path: str) -> bool:
    """Whether all tools take it as one line of text."""
    return not any(unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp") for each in path)


def check_publish(config: Config, table: str) -> None:
    """Refuses a table that cannot be published, before it is clustered."""
    from bridge.clustering.commands.publish import check

    check(config, table)


@contextmanager
def _continued() -> Iterator[None]:
    """Says how to go on if it is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        say("stopped; each partition is published or as it was, and the same command continues")
        raise SystemExit(INTERRUPTED) from None


def run_publish(
    config: Config, table: str, local: bool, settled: float | None = None
) -> dict[str, Any]:
    """Publishes once; says how to go on if it is interrupted."""
    from bridge.clustering.commands.publish import publish as run

    with _continued(), progress(f"indexing {table}") as tick:
        return run(config, table, local=local, settled=settled, progress=tick, say=say)


class News:
    """Of the rounds of a watch: only one that is unlike the round before is told."""

    def __init__(self) -> None:
        self._told: list[list[Any]] = [[], []]

    def are(self, made: dict[str, Any]) -> bool:
        """Whether a report of `run_publish` says something new. Ages in reasons do not count."""
        kept = [(e["partition"], re.sub(r"\d+ s (ago|in)", "", e["reason"])) for e in made["kept"]]
        before, self._told = self._told, [kept, made["left"]]
        return bool(made["published"]) or (self._told != before and any(self._told))


def show_published(made: dict[str, Any], output: str, what: str = "published") -> None:
    """Prints a report of `run_publish`."""
    from bridge.planner.reports.text import human_bytes

    if output == "json":
        emit_json(made)
    else:
        emit(
            f"{made['table']}: {len(made['published'])} partitions {what}, {made['files']} "
            f"files, {human_bytes(made['bytes'])}"
        )
    for each in made["kept"]:
        say(f"{each['partition'] or made['table']} stays as it was: {each['reason']}")
    for path in made["dead"]:
        say(f"taken as left by a writer that died: {path}")
    show_left(made["left"])


def show_left(found: list[dict[str, Any]]) -> None:
    """Prints what lies in left directories."""
    from bridge.clustering.commands.left_text import lines

    for each in found:
        for line in lines(each):
            say(line)


def exit_if_kept(made: dict[str, Any]) -> None:
    """Ends the process with status 3 if something was left as it is."""
    if made["kept"] or made["left"]:
        raise SystemExit(PROBLEMS)


@click.command("clean")
@click.argument("table")
@click.option("--retain", default="7d", show_default=True, help="Keep what ended later than this.")
@click.option("--dry-run", is_flag=True, help="Tell what would be deleted, and delete nothing.")
@_OUTPUT
@settings(*_SETTINGS)
def clean(config: Config, table: str, retain: str, dry_run: bool, output: str) -> None:
    """Delete what clustering and publishing of TABLE have written, and nobody reads.

    Deleted are new files that no generation of the index and no plan names, what failed attempts
    to publish have written, old generations, and records of plans that ended. Files of writers
    stay: see `originals`. Queries that are older than the retention may fail.

    \b
    skipbridge cluster clean demo.flights --dry-run
    skipbridge cluster clean demo.flights --retain 2d
    """
    from bridge.clustering.commands.publish import clean as run
    from bridge.planner.reports.text import human_bytes

    seconds = _seconds(retain, "--retain")
    made = run(config, table, seconds, dry_run=dry_run)
    if output == "json":
        emit_json(made)
        return
    emit(
        f"{made['table']}: {made['rewritten']} new files that nobody reads, {made['attempts']} of "
        f"failed attempts, {made['generations']} generations, records of {made['plans']} plans "
        f"{'would be ' if dry_run else ''}deleted, {human_bytes(made['bytes'])}"
    )
    for instant in made["unknown"]:
        say(
            f"left alone: files of plan {instant}, which this index does not know -> if its index "
            f"was dropped, no query reads them: delete .skipbridge_clustered/{instant}"
        )
    for name in made["shared"]:
        say(f"left alone: what {name} may read, which lies in the same place")
