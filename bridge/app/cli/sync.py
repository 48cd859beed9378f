"""``skipbridge sync``: updates the metastore from storage, for one table or many."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bridge.app.cli.output import PROBLEMS, emit, emit_json, progress, say, settings
from bridge.kernel.config import Config, parse_seconds
from bridge.kernel.errors import InvalidRequest

if TYPE_CHECKING:
    from bridge.sync.job import SyncJob
    from bridge.sync.run_all import Outcome


@click.command()
@click.argument("name", metavar="[DB.TABLE]", required=False)
@click.option("--location", help="Directory of the table; later runs know it.")
@click.option(
    "--all",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="TOML file of many tables, synced several at once; see docs/how-to/sync.md.",
)
@click.option(
    "--extractor",
    help="How directories name partitions: hive (key=value), single, multi (one key per level), "
    "month, day, hour (2024/03/08), none, or one of another package. [default: as before; hive]",
)
@click.option(
    "--partition-keys",
    multiple=True,
    metavar="NAME[:TYPE],...",
    help="Keys of a new table, if directories do not name them, or to set their types.",
)
@click.option(
    "--format",
    help="Format of a new table's files: parquet, orc, avro, json, csv, text. "
    "[default: as Parquet, ORC and Avro files say themselves]",
)
@click.option(
    "--columns",
    metavar="'NAME TYPE, ...'",
    help="Columns of a new table whose files do not tell them; of CSV the names alone.",
)
@click.option("--header", is_flag=True, help="The first line of each CSV file names its fields.")
@click.option("--delimiter", help="Between the fields of CSV or text. [default: , or Hive's ^A]")
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@click.option("--full", is_flag=True, help="Compare every partition, even if an earlier run did.")
@click.option("--adopt", is_flag=True, help="Take over a table that skipbridge did not create.")
@click.option("--move", is_flag=True, help="The table has moved to --location.")
@click.option(
    "--relocate",
    is_flag=True,
    help="Point partitions registered elsewhere back to their directory here.",
)
@click.option(
    "--hold-wider",
    is_flag=True,
    help="Accept files narrower than the table's types; the table keeps its types.",
)
@click.option(
    "--drop-now",
    is_flag=True,
    help="Drop partitions without data in this run, without waiting for another.",
)
@click.option(
    "--drop-all",
    is_flag=True,
    help="Drop partitions without data, however many; of an empty location, all and at once.",
)
@click.option(
    "--index",
    is_flag=False,
    flag_value="local",
    type=click.Choice(["local", "spark"]),
    help="Refresh the index at the end, in this process or with Spark. [value omitted: local]",
)
@click.option("--watch", metavar="TIME", help="Keep running and sync at this interval (30s, 5m).")
@click.option("--listen", is_flag=True, help="Keep running and sync on metastore events.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings("metastore.uri", "index.root")
def sync(
    config: Config,
    name: str | None,
    location: str | None,
    file: Path | None,
    extractor: str | None,
    partition_keys: tuple[str, ...],
    format: str | None,
    columns: str | None,
    header: bool,
    delimiter: str | None,
    dry_run: bool,
    full: bool,
    adopt: bool,
    move: bool,
    relocate: bool,
    hold_wider: bool,
    drop_now: bool,
    drop_all: bool,
    index: str | None,
    watch: str | None,
    listen: bool,
    output: str,
) -> None:
    """Make the metastore match storage: database, table, columns and partitions.

    Directories with data become partitions. Partitions without data are dropped by a later run
    (files are never touched). New columns are appended and types widened, in the table and in its
    partitions. It may be stopped at any point and run again, even twice at once. Directories that
    are not partitions are reported and left alone.

    \b
    skipbridge sync demo.flights --location s3a://lake/flights --index
    skipbridge sync demo.flights --dry-run              the difference, as a diff
    skipbridge sync demo.calls --location /data/calls --format csv --header
    skipbridge sync demo.events --location /data/events --extractor day --partition-keys dt:date
    skipbridge sync --all tables.toml --output json     1,000 tables
    skipbridge sync demo.flights --watch 5m --listen    keep running

    Exit status: 0 in step; 3 in step except for rows that are in no partition or in two,
    partitions that the metastore refused, columns whose type Hive does not have, files whose
    columns could not be read, drops that are too many, and files in directories that the table was
    published from; 2 something to fix first; 1 anything else (with --all: a table failed), run
    again.
    """
    from bridge.clustering.commands.publish import left_lines
    from bridge.runtime.create_table import table_name
    from bridge.sync.job import SyncJob, parse_keys
    from bridge.sync.request import SyncRequest
    from bridge.sync.run_all import read_jobs
    from bridge.sync.schemas.file_options import given_columns

    if (name is None) == (file is None):
        raise InvalidRequest("neither or both of DB.TABLE and --all", "give one of the two")
    if dry_run and (watch or listen):
        raise InvalidRequest("--dry-run with --watch or --listen", "leave one of them out")
    if file is not None:
        given = [location, extractor, *partition_keys, index, format, columns]
        flags = [adopt, move, relocate, hold_wider, drop_all, header, delimiter is not None]
        if any(g is not None for g in given) or any(flags):
            raise InvalidRequest(
                "options of one table together with --all", f"write them into {file}"
            )
        jobs = read_jobs(file, full=full, dry_run=dry_run, drop_now=drop_now)
    else:
        assert name is not None
        request = SyncRequest(
            name=table_name(name),
            location=location,
            extractor=extractor,
            keys=parse_keys(partition_keys),
            adopt=adopt,
            full=full,
            dry_run=dry_run,
            move=move,
            relocate=relocate,
            hold_wider=hold_wider,
            drop_now=drop_now,
            drop_all=drop_all,
            format=format,
            columns=given_columns(columns, format),
            header=header,
            delimiter=delimiter,
        )
        jobs = [SyncJob(request, index)]
    jobs = [replace(job, left_lines=left_lines) for job in jobs]
    if watch or listen:
        _stay(
            config, jobs, parse_seconds(watch, "--watch", "flag") if watch else None, listen, output
        )
    elif file is not None:
        _many(config, jobs, output)
    else:
        _one(config, jobs[0], output)


def _one(config: Config, job: SyncJob, output: str) -> None:
    from bridge.sync.job import run_job
    from bridge.sync.report import diff_text, index_line, summary, table_changes, warnings

    with progress(f"syncing {job.request.name}") as tick:
        report = run_job(config, job, progress=tick, say=say)
    if output == "json":
        emit_json(report.to_dict())
    elif job.request.dry_run:
        emit(diff_text(report))
        emit(summary(report))
    else:
        for line in table_changes(report):
            emit(line)
        emit(summary(report))
        if job.index is not None:
            emit(index_line(report.index))
    if output == "json" or not job.request.dry_run:
        for line in warnings(report):
            say(line)
    if report.problems:
        raise SystemExit(PROBLEMS)


def _many(config: Config, jobs: Sequence[SyncJob], output: str) -> None:
    from bridge.sync.run_all import sync_all

    outcomes: list[Outcome] = []
    with progress(f"syncing {len(jobs)} tables") as tick:
        for outcome in sync_all(config, jobs, say=say, progress=tick):
            outcomes.append(outcome)
            if output == "text":
                emit(_line(outcome))
    failed = [o for o in outcomes if o.error is not None]
    problems = [o for o in outcomes if o.report is not None and o.report.problems]
    counts = {
        "tables": len(jobs),
        "in_step": sum(o.status == "in step" for o in outcomes),
        "synced": sum(o.status in ("synced", "planned") for o in outcomes),
        "problems": len(problems),
        "failed": len(failed),
    }
    if output == "json":
        emit_json({"summary": counts, "tables": [o.to_dict() for o in outcomes]})
    else:
        emit(", ".join(f"{n:,} {word.replace('_', ' ')}" for word, n in counts.items()))
    if failed:
        raise SystemExit(1)
    if problems:
        raise SystemExit(PROBLEMS)


def _line(outcome: Outcome) -> str:
    from bridge.sync.report import summary, warnings

    if outcome.error is not None:
        return f"{outcome.table} failed: {outcome.error.code}: {outcome.error.message}"
    assert outcome.report is not None
    return "\n".join([summary(outcome.report), *(f"  {w}" for w in warnings(outcome.report))])


def _stay(
    config: Config, jobs: Sequence[SyncJob], every: float | None, listen: bool, output: str
) -> None:
    from bridge.runtime.compose import metastore_of
    from bridge.sync.run_all import sync_all
    from bridge.sync.watch import Events, Watch

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())

    def run(due: Sequence[SyncJob]) -> None:
        quiet = lambda done, total: None  # noqa: E731
        for outcome in sync_all(config, due, say=say, progress=quiet, stopped=stop.is_set):
            if output == "json":
                emit_json(outcome.to_dict())
            elif outcome.status != "in step":
                emit(_line(outcome))

    if not listen:
        Watch(jobs, run, say, stop, every).loop()
        return
    with metastore_of(config) as client:
        Watch(jobs, run, say, stop, every, Events(client)).loop()
