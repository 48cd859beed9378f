"""``skipbridge index``: build, refresh, show and clean file-level indexes."""

from __future__ import annotations

import itertools
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from bridge.api.index import TableIndex
from bridge.api.session import Session
from bridge.cli.kinds import kind_options
from bridge.cli.lazy import INTERRUPTED, Verbs
from bridge.cli.output import emit, emit_json, progress, say, settings
from bridge.config import Config
from bridge.index.collect import Nan
from bridge.index.kinds.request import Asked
from bridge.jobs.index_table import (
    NOTHING_NEW,
    clean_index,
    drop_from_index,
    failure,
    show_index_to_planners,
)
from bridge.jobs.index_watch import watch
from bridge.report.effectiveness_text import effectiveness_text
from bridge.report.text import human_bytes

_SETTINGS = ("metastore.uri", "index.root")
_BUILD_SETTINGS = (*_SETTINGS, "index.files_per_commit", "index.shard_entries")


@click.group(cls=Verbs)
def index() -> None:
    """File-level indexes: min, max, null and NaN counts of every column of every file."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What a build is to do, round after round where it stays."""

    nan: Nan
    local: bool = True
    full: bool = False
    asked: Asked = NOTHING_NEW
    output: str = "text"

    def once(self, config: Config, table: str, *, check: bool = True) -> dict[str, Any]:
        try:
            with progress(f"indexing {table}") as tick, Session(config) as session:
                made = session.table(table).index._index(
                    self.asked,
                    nan=self.nan,
                    local=self.local,
                    full=self.full,
                    progress=tick,
                    say=say,
                    check=check,
                )
                return made.to_dict()
        except KeyboardInterrupt:
            say(
                "stopped; the earlier index stays in use, and the same command goes on after the "
                f"last commit (every {config.integer('index.files_per_commit'):,} files)"
            )
            raise SystemExit(INTERRUPTED) from None

    def told(self, report: dict[str, Any]) -> None:
        if self.output == "json":
            emit_json(report)
            return
        emit(
            f"{report['table']} @ generation {report['generation']}: {report['files']} files, "
            f"{report['read']} read, {report['removed']} removed, "
            f"{human_bytes(int(report['bytes_written']))} written in {report['seconds']:.1f} s"
        )

    def stay(self, config: Config, table: str, seconds: float) -> None:
        """Refreshes until the process is asked to end; a round under way is finished."""
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        rounds = itertools.count()
        # What the first round has read whole need not be read whole by the others.
        done = watch(
            lambda: self.once(config, table, check=next(rounds) == 0),
            seconds,
            stop,
            told=self.told,
            say=say,
        )
        say(f"{done.rounds} rounds, {done.committed} generations, {done.failed} failures")


@index.command("build")
@click.argument("table")
@click.option(
    "--nan",
    type=click.Choice(["footer", "scan"]),
    default="footer",
    show_default=True,
    help="scan also reads float columns, to count NaN: > and <> on them can then prune.",
)
@kind_options
@click.option("--local", is_flag=True, help="Without Spark, with threads of this process.")
@click.option("--full", is_flag=True, help="Forget earlier generations' entries, read every file.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_BUILD_SETTINGS)
def build(
    config: Config, table: str, nan: Nan, local: bool, full: bool, output: str, asked: Asked
) -> None:
    """Index TABLE with Spark: schema.table, or a directory.

    The first build reads the footer of every file, a later one only those of new and changed
    files. The index is one directory, .skipbridge under the table unless --index-root says
    otherwise; planners take the new generation within a second, and keep the old one if a build
    fails. Spark needs `pip install 'skipbridge[spark]'` and a JDK 17; --local needs neither.

    Beside min and max of every column an index may hold others, each over columns that are named.
    They are kept from then on, by this command and by refresh; all come from one read of each file.

    Writers need not wait: what they write meanwhile is read by queries until the next refresh.
    After every --index-files-per-commit files what is there is committed: planners use it at once,
    and a build that dies is taken up where it was by running it again. `create` is the same.

    \b
    skipbridge index build demo.flights
    skipbridge index build ./warehouse/flights --local
    skipbridge index build demo.flights --bloom tailnum:fpp=0.001 --values carrier --values dest
    skipbridge index build demo.flights --mode comment=none --without 'values(dest)'
    """
    work = _Work(nan, local, full, asked, output)
    work.told(work.once(config, table))


index.add_command(build, "create")


@index.command("refresh")
@click.argument("table")
@click.option("--nan", type=click.Choice(["footer", "scan"]), default="footer", show_default=True)
@click.option(
    "--watch",
    "seconds",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Stay, and refresh every so often until ended (Ctrl-C).",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_BUILD_SETTINGS)
def refresh(config: Config, table: str, nan: Nan, seconds: float | None, output: str) -> None:
    """Index new and changed files, forget vanished ones; in this process, since they are few.

    Run it after writes, or let it stay with --watch. Until then new files are read by every query:
    slower, never wrong. Several may run at once: one commits first, the others add what it lacks.
    """
    work = _Work(nan, output=output)
    if seconds is None:
        work.told(work.once(config, table))
    else:
        work.stay(config, table, seconds)


@index.command("hide")
@click.argument("table")
@click.argument("name", metavar="INDEX")
@settings(*_SETTINGS)
def hide(config: Config, table: str, name: str) -> None:
    """Make planners pass over one INDEX of TABLE: minmax, or as `show` spells it.

    It is kept up to date all the same; reports say INVISIBLE. To see what an index is worth.
    """
    done = show_index_to_planners(config, table, name, visible=False)
    emit(f"{done['table']} @ generation {done['generation']}: {name} is invisible to planners")


@index.command("reveal")
@click.argument("table")
@click.argument("name", metavar="INDEX")
@settings(*_SETTINGS)
def reveal(config: Config, table: str, name: str) -> None:
    """Make planners use an INDEX again that was hidden."""
    done = show_index_to_planners(config, table, name, visible=True)
    emit(f"{done['table']} @ generation {done['generation']}: {name} is visible to planners")


@index.command("drop")
@click.argument("table")
@click.argument("name", metavar="[INDEX]", required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@settings(*_SETTINGS)
def drop(config: Config, table: str, name: str | None, yes: bool) -> None:
    """Drop one INDEX of TABLE, or all of its indexes; no file of the table is touched."""
    if name is None and not yes:
        click.confirm(f"Drop all indexes of {table}?", abort=True, err=True)
    done = drop_from_index(config, table, name)
    if name is None:
        emit(f"{done['table']}: all indexes dropped, {done['files']} files of them deleted")
    else:
        emit(f"{done['table']} @ generation {done['generation']}: {name} dropped")


@index.command("show")
@click.argument("table")
@click.option("--failed", is_flag=True, help="The files that could not be read, and why.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_SETTINGS)
def show(config: Config, table: str, failed: bool, output: str) -> None:
    """The newest generation: files, columns, size, age.

    A file that could not be read is read by every query, and tried again when it changes;
    `index build --full` tries all again.
    """
    if failed:
        _show_failed(_index_of(config, table).failed(), output)
        return
    found = _index_of(config, table).show()
    if output == "json":
        emit_json(found)
        return
    for key, value in found.items():
        emit(f"{key:<12} {_shown(key, value)}")


def _index_of(config: Config, table: str) -> TableIndex:
    return Session(config).table(table).index


def _shown(key: str, value: object) -> str:
    """A value as a person reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name}={held}" for name, held in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(str(each) for each in value) or "-"
    return human_bytes(value) if key == "bytes" and isinstance(value, int) else str(value)


def _show_failed(files: list[dict[str, Any]], output: str) -> None:
    if output == "json":
        emit_json(files)
        return
    for each in files:
        emit(failure(each["file"], each["reason"]))
    if not files:
        say("every file of the index could be read")


@index.command("report")
@click.argument("table")
@click.option(
    "--log",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Log of predicates; without it the one of planner.predicate_log, if planners keep one.",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_SETTINGS)
def report(config: Config, table: str, log: Path | None, output: str) -> None:
    """How much the index of TABLE helps, by column, and what would make it help more.

    Tells for each column how many files hold a value, what share of the files a predicate keeps,
    and what it takes to store; which column the table should be sorted by, and which index is dead
    weight. The last two need to know what queries ask: set planner.predicate_log.
    """
    found = _index_of(config, table).report(log)
    if output == "json":
        emit_json(found.to_dict())
    else:
        emit(effectiveness_text(found))


@index.command("clean")
@click.argument("table")
@click.option(
    "--keep", type=click.IntRange(min=1), default=2, show_default=True, help="Generations to keep."
)
@settings(*_SETTINGS)
def clean(config: Config, table: str, keep: int) -> None:
    """Delete generations but the newest, and files that none of those kept names.

    Nothing younger than an hour is deleted: a planner or a build may still need it.
    """
    say(f"{clean_index(config, table, keep)} files deleted")
