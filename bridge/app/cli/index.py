"""``skipbridge index``: build, refresh, show and clean file-level indexes."""

from __future__ import annotations

import itertools
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bridge.app.cli.clustering.publish import show_left
from bridge.app.cli.clustering.watch import Inline
from bridge.app.cli.kinds import KindOptions, asked_kinds
from bridge.app.cli.lazy import INTERRUPTED, Verbs
from bridge.app.cli.output import PROBLEMS, emit, emit_json, progress, say, settings
from bridge.kernel.config import Config
from bridge.kernel.errors import FileChanged, InvalidRequest

if TYPE_CHECKING:
    from bridge.app.api.index import TableIndex
    from bridge.index.building.collect import Nan
    from bridge.index.kinds.request import RequestedIndexes

_SETTINGS = ("metastore.uri", "index.root")


@click.group(cls=Verbs)
def index() -> None:
    """File-level indexes: min, max, null and NaN counts of every column of every file."""


@dataclass(frozen=True, slots=True)
class _Work:
    """The options of a build, for one run or for repeated runs."""

    nan: Nan
    local: bool | None = True
    full: bool = False
    asked: RequestedIndexes | None = None
    output: str = "text"
    inline: Inline | None = None

    def once(self, config: Config, table: str, *, check: bool = True) -> dict[str, Any]:
        from bridge.app.api.session import Session
        from bridge.indexing.table import NOTHING_NEW

        try:
            with progress(f"indexing {table}") as tick, Session(config) as session:
                made = session.table(table).index._index(
                    self.asked or NOTHING_NEW,
                    nan=self.nan,
                    local=self.local,
                    full=self.full,
                    progress=tick,
                    say=say,
                    check=check,
                )
        except KeyboardInterrupt:
            from bridge.indexing.table import FILES_PER_COMMIT

            say(
                "stopped; the earlier index stays in use, and the same command continues after the "
                f"last commit (every {FILES_PER_COMMIT:,} files)"
            )
            raise SystemExit(INTERRUPTED) from None
        return made.to_dict()

    def cluster(self, config: Config, table: str) -> None:
        """What follows the refresh, told after it."""
        if self.inline is not None:
            self.inline.run(config, table)

    def told(self, report: dict[str, Any]) -> None:
        if self.output == "json":
            emit_json(report)
            return
        from bridge.planner.reports.text import count_files, human_bytes, old_entries, read_files

        files = count_files(int(report["files"]))
        emit(
            f"{report['table']} @ generation {report['generation']}: {files}, "
            f"{read_files(int(report['read']), len(report['failed']))}, "
            f"{old_entries(int(report['removed']))}, "
            f"{human_bytes(int(report['bytes_written']))} written in {report['seconds']:.1f} s"
        )

    def stay(self, config: Config, table: str, seconds: float) -> None:
        """Refreshes until the process is asked to end; finishes the round in progress."""
        from bridge.indexing.watch import watch

        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        rounds = itertools.count()

        def one_round() -> dict[str, Any]:
            # The first round checks the whole index for damage; the others need not.
            made = self.once(config, table, check=next(rounds) == 0)
            if made["committed"]:
                self.told(made)
            self.cluster(config, table)
            return made

        done = watch(one_round, seconds, stop, told=lambda _: None, say=say)
        say(f"{done.rounds} rounds, {done.committed} generations, {done.failed} failures")


@index.command("build", cls=KindOptions)
@click.argument("table")
@click.option(
    "--nan",
    type=click.Choice(["footer", "scan"]),
    default="footer",
    show_default=True,
    help="scan also reads float columns to count NaN, so that <> can prune on them, and > too in "
    "Hive and Spark; and INT96 times, of which PyIceberg cannot read all.",
)
@click.option(
    "--local/--spark",
    default=None,
    help="Use threads of this process, or Spark.  [default: Spark for 20,000 files or more, or for "
    "2 GiB to read beyond footers]",
)
@click.option("--full", is_flag=True, help="Ignore earlier generations, read every file again.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_SETTINGS)
def build(
    config: Config,
    table: str,
    nan: Nan,
    local: bool | None,
    full: bool,
    output: str,
    **given: Any,
) -> None:
    """Index TABLE: schema.table, or a directory.

    The first build reads the footer of every file; a later build reads only those of new and
    changed files. The index is one directory, .skipbridge in the table's directory unless
    --index-root is set. Planners use the new generation within a second; if a build fails, they
    keep the old one. Spark needs `pip install 'skipbridge[spark]'` and a JDK 17; threads need
    neither, and take over where Spark is missing, unless --spark is given.

    Beside min and max of every column, an index may hold other kinds over named columns. This
    command and refresh keep them up to date from then on; each file is read once for all of them.

    Writers need not wait: until the next refresh, queries read every file written meanwhile. The
    build commits after every 50,000 files. Planners use each commit at once, and
    a failed build continues from its last commit when run again.
    Exit status 3: some files could not be indexed in this run (`index show --failed` names those of
    all runs; they are tried again when they change); every query reads them. Or a partition could
    not be listed, since its place or a file has no URI; the rest is done.

    \b
    skipbridge index build demo.flights
    skipbridge index build ./warehouse/flights
    skipbridge index build demo.flights --bloom tailnum:fpp=0.001 --values carrier --values dest
    skipbridge index build demo.flights --mode comment=none --without 'values(dest)'
    """
    work = _Work(nan, local, full, asked_kinds(given), output)
    made = work.once(config, table)
    work.told(made)
    _leave(made)


def _leave(report: dict[str, Any]) -> None:
    """Ends the process with status 3 if a file could not be indexed, unless it was in change."""
    if report["refused"] or any(
        not each["reason"].startswith(FileChanged.code) for each in report["failed"]
    ):
        raise SystemExit(PROBLEMS)


@index.command("refresh")
@click.argument("table")
@click.option("--nan", type=click.Choice(["footer", "scan"]), default="footer", show_default=True)
@click.option(
    "--watch",
    "seconds",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="Keep running and refresh at this interval until stopped (Ctrl-C).",
)
@click.option(
    "--cluster-after",
    type=click.IntRange(min=1),
    metavar="N",
    help="Then cluster the table in this process if it has had N commits since it was last "
    "clustered.",
)
@click.option(
    "--cluster-small-files",
    type=click.IntRange(min=1),
    metavar="N",
    help="Then cluster it if N small files are not clustered.",
)
@click.option(
    "--cluster-by",
    multiple=True,
    metavar="COLUMN",
    help="Sort column; repeat it.  [default: the layout of the last clustering, else binpack]",
)
@click.option("--cluster-target", metavar="SIZE", help="Size of new files. [default: 1GiB]")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_SETTINGS, "hudi.spark")
def refresh(
    config: Config,
    table: str,
    nan: Nan,
    seconds: float | None,
    cluster_after: int | None,
    cluster_small_files: int | None,
    cluster_by: tuple[str, ...],
    cluster_target: str | None,
    output: str,
) -> None:
    """Index new and changed files and remove deleted ones, in this process, since they are few.

    Run it after writes, or repeat it with --watch. Until then every query reads new files: slower,
    never wrong. Several may run at once: one commits first, the others add what it lacks.
    Exit status 3: some files could not be indexed in this run, and every query reads them (later
    runs do not name them again: `index show --failed`); or files lie in directories that the table
    was published from, and no query reads them.
    """
    inline = None
    if cluster_after is not None or cluster_small_files is not None:
        inline = Inline(cluster_after, cluster_small_files, cluster_by, cluster_target, output)
    elif cluster_by or cluster_target:
        raise InvalidRequest(
            "--cluster-by and --cluster-target say how, and nothing says when",
            "give --cluster-after or --cluster-small-files",
        )
    work = _Work(nan, output=output, inline=inline)
    if seconds is None:
        made = work.once(config, table)
        work.told(made)
        work.cluster(config, table)
        left = _left(config, table)
        show_left(left)
        _leave(made)
        if left:
            raise SystemExit(PROBLEMS)
    else:
        work.stay(config, table, seconds)


def _left(config: Config, table: str) -> list[dict[str, Any]]:
    """Files in directories that the table was published from, if it was."""
    from bridge.clustering.commands.publish import list_left_files

    return list_left_files(config, table)


@index.command("hide")
@click.argument("table")
@click.argument("name", metavar="INDEX")
@settings(*_SETTINGS)
def hide(config: Config, table: str, name: str) -> None:
    """Make planners ignore one INDEX of TABLE: minmax, or a name that `show` prints.

    The index stays up to date; reports say INVISIBLE. Use it to measure what an index is worth.
    """
    from bridge.indexing.table import show_index_to_planners

    done = show_index_to_planners(config, table, name, visible=False)
    emit(f"{done['table']} @ generation {done['generation']}: {name} is invisible to planners")


@index.command("reveal")
@click.argument("table")
@click.argument("name", metavar="INDEX")
@settings(*_SETTINGS)
def reveal(config: Config, table: str, name: str) -> None:
    """Make planners use a hidden INDEX again."""
    from bridge.indexing.table import show_index_to_planners

    done = show_index_to_planners(config, table, name, visible=True)
    emit(f"{done['table']} @ generation {done['generation']}: {name} is visible to planners")


@index.command("drop")
@click.argument("table")
@click.argument("name", metavar="[INDEX]", required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@settings(*_SETTINGS)
def drop(config: Config, table: str, name: str | None, yes: bool) -> None:
    """Drop one INDEX of TABLE, or all of its indexes; no data file is touched."""
    from bridge.indexing.table import drop_from_index, list_clustered

    if name is None and not yes:
        click.confirm(f"Drop all indexes of {table}?", abort=True, err=True)
    done = drop_from_index(config, table, name)
    if name is None:
        emit(f"{done['table']}: all indexes dropped, {done['files']} files of them deleted")
        for directory in list_clustered(config, table):
            say(f"left: {directory}: no query reads its rewritten files now: delete it")
    else:
        emit(f"{done['table']} @ generation {done['generation']}: {name} dropped")


@index.command("show")
@click.argument("table")
@click.option("--failed", is_flag=True, help="List the files that could not be read, and why.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_SETTINGS)
def show(config: Config, table: str, failed: bool, output: str) -> None:
    """The newest generation: files, columns, size, age.

    Every query reads a file that could not be indexed. The next refresh after the file changes
    tries it again; `index build --full` tries all files again.
    """
    if failed:
        _show_failed(_index_of(config, table).list_failed(), output)
        return
    found = _index_of(config, table).show()
    if output == "json":
        emit_json(found)
        return
    for key, value in found.items():
        emit(f"{key:<12} {_shown(key, value)}")


def _index_of(config: Config, table: str) -> TableIndex:
    from bridge.app.api.session import Session

    return Session(config).table(table).index


def _shown(key: str, value: object) -> str:
    """A value formatted for people."""
    from bridge.planner.reports.text import human_bytes

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
    from bridge.indexing.table import failure

    for each in files:
        emit(failure(each["file"], each["reason"]))
    if not files:
        say("every file of the index could be read")


@index.command("report")
@click.argument("table")
@click.option(
    "--log",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Log of predicates. [default: planner.predicate_log]",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_SETTINGS)
def report(config: Config, table: str, log: Path | None, output: str) -> None:
    """How much the index of TABLE helps, by column, and what would make it help more.

    For each column, shows how many files hold a value, what share of the files a predicate keeps,
    and the storage it takes. Recommends a column to sort the table by, and names indexes that are
    never useful. The last two need a log of predicates: set planner.predicate_log.
    """
    from bridge.planner.reports.effectiveness_text import effectiveness_text

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
    """Delete all but the newest generations, and files that no kept generation needs.

    Nothing younger than an hour is deleted: a planner or a build may still need it.
    """
    from bridge.indexing.table import clean_index

    say(f"{clean_index(config, table, keep)} files deleted")
