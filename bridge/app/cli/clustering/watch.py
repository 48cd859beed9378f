"""``cluster run --watch`` and ``index refresh --cluster-after``: clustering by itself."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import click

from bridge.app.cli.clustering.publish import News, run_publish, show_published
from bridge.app.cli.lazy import INTERRUPTED
from bridge.app.cli.output import emit, emit_json, progress, say
from bridge.kernel.config import Config


@contextmanager
def interruptible() -> Iterator[None]:
    """Tells what a Ctrl-C means, and exits."""
    try:
        yield
    except KeyboardInterrupt:
        say("stopped; the old files are read as before, and the same command continues")
        raise SystemExit(INTERRUPTED) from None


def watch_options(command: Any) -> Any:
    """Adds the options of `cluster run --watch`."""
    options = [
        click.option(
            "--watch",
            metavar="TIME",
            help="Keep running: refresh the index at this interval, and cluster whenever a "
            "trigger says so, until stopped (Ctrl-C).",
        ),
        click.option(
            "--after-commits",
            type=click.IntRange(min=1),
            metavar="N",
            help="With --watch: after N generations of the index since the last clustering.  "
            "[default: 1 without other triggers]",
        ),
        click.option(
            "--after-small-files",
            type=click.IntRange(min=1),
            metavar="N",
            help="With --watch: when N small files are not clustered.",
        ),
        click.option(
            "--after-time",
            metavar="TIME",
            help="With --watch: so long after the last clustering, if there was a commit since.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def print_report(report: dict[str, Any], output: str) -> None:
    """Prints what a run did."""
    from bridge.planner.reports.text import count_files, human_bytes

    if output == "json":
        emit_json(report)
        return
    for each in report.get("rejected", ()):
        say(f"group {each['group']} stays as it was: {each['reason']}")
    for each in report.get("aside", ()):  # Hudi's clustering sets nothing aside
        say(f"left where it is: {each['path']}: {each['reason']}")
    emit(
        f"{report['table']} {report['instant']} {report['state']}: "
        f"{count_files(report['old_files'])} -> {count_files(report['new_files'])}, "
        f"{report['rows']:,} rows"
        + (f" @ generation {report['generation']}" if report["generation"] >= 0 else "")
    )
    if report["rows"]:
        # What an earlier run has rewritten took none of this run's seconds.
        speed = f"{report['rows'] / max(report['seconds'], 0.001):,.0f} rows/s"
        resumed = report.get("resumed")  # Hudi's clustering does not tell
        before = f"{resumed} of {report.get('groups')} groups were rewritten before"
        emit(
            f"  {human_bytes(report['old_bytes'])} -> {human_bytes(report['new_bytes'])}, "
            f"{before if resumed else speed}"
        )


def total_line(report: dict[str, Any]) -> str:
    """What several plans did together."""
    from bridge.planner.reports.text import count_files, human_bytes

    return (
        f"{report['table']} in {len(report['plans'])} plans: {count_files(report['old_files'])} -> "
        f"{count_files(report['new_files'])}, {human_bytes(report['old_bytes'])} -> "
        f"{human_bytes(report['new_bytes'])}"
    )


def watch_and_cluster(
    config: Config,
    table: str,
    seconds: float,
    strategy: Any,
    triggers: Any,
    *,
    local: bool,
    output: str,
    publish: bool,
) -> None:
    """Clusters whenever it is due, until the process is asked to end.

    The first Ctrl-C lets a clustering in progress end; a second one stops it: it is continued by
    the next run.
    """
    from bridge.clustering.commands.watch import watched_round
    from bridge.indexing.watch import watch

    stop = threading.Event()

    def asked(*_: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        say("stops after this round; Ctrl-C again stops now")

    held = {n: signal.signal(n, asked) for n in (signal.SIGINT, signal.SIGTERM)}
    rounds = itertools.count()
    news = News()

    def once() -> dict[str, Any]:
        with progress(f"clustering {table}") as tick:
            report = watched_round(
                config,
                table,
                strategy,
                triggers,
                local=local,
                progress=tick,
                say=say,
                check=next(rounds) == 0,
            )
        if report["committed"]:
            print_report(report, output)
        if publish:  # in each round: a partition becomes quiet long after its clustering
            made = run_publish(config, table, local)
            if news.are(made):
                show_published(made, output)
        return report

    try:
        done = watch(once, seconds, stop, told=lambda report: None, say=say)
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
    say(f"{done.rounds} rounds, {done.committed} clusterings, {done.failed} failures")


@dataclass(frozen=True, slots=True)
class Inline:
    """Clustering after a refresh of the index; see `index refresh --cluster-after`.

    Attributes:
        commits, small_files: triggers.
        columns: sort columns; empty: the layout of the last clustering.
        target: size of new files as text; None: the usual one.
    """

    commits: int | None
    small_files: int | None
    columns: tuple[str, ...]
    target: str | None
    output: str

    def run(self, config: Config, table: str) -> None:
        """Clusters the table in this process if it is due. The index is taken as it is."""
        from bridge.clustering.commands.watch import cluster_if_due
        from bridge.clustering.planning.scheduling import Strategy
        from bridge.clustering.planning.triggers import Triggers
        from bridge.kernel.config import parse_size

        columns = self.columns
        strategy = Strategy("", columns, "")
        if self.target is not None:
            limits = replace(strategy.limits, target=parse_size(self.target))
            strategy = replace(strategy, limits=limits)
        with interruptible(), progress(f"clustering {table}") as tick:
            report = cluster_if_due(
                config,
                table,
                strategy,
                Triggers(self.commits, self.small_files),
                as_before=not columns,
                progress=tick,
                say=say,
            )
        if report is not None:
            print_report(report, self.output)
