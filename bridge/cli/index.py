"""``skipbridge index``: build, refresh, show and clean file-level indexes."""

from __future__ import annotations

import click

from bridge.cli.kinds import kind_options
from bridge.cli.output import emit, emit_json, progress, say, settings
from bridge.config import Config
from bridge.index.collect import Nan
from bridge.index.kinds.request import Asked
from bridge.jobs.index_table import clean_index, describe_index, index_table
from bridge.report.text import human_bytes

_SETTINGS = ("metastore.uri", "index.root")


@click.group()
def index() -> None:
    """File-level indexes: min, max, null and NaN counts of every column of every file."""


def _build(
    config: Config,
    table: str,
    nan: Nan,
    local: bool,
    full: bool,
    output: str,
    asked: Asked | None = None,
) -> None:
    with progress(f"indexing {table}") as tick:
        report = index_table(
            config,
            table,
            nan=nan,
            local=local,
            full=full,
            asked=asked or Asked(),
            progress=tick,
            say=say,
        )
    if output == "json":
        emit_json(report)
        return
    emit(
        f"{report['table']} @ generation {report['generation']}: {report['files']} files, "
        f"{report['read']} read, {report['removed']} removed, "
        f"{human_bytes(int(report['bytes_written']))} written in {report['seconds']:.1f} s"
    )


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
@settings(*_SETTINGS)
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

    \b
    skipbridge index build demo.flights
    skipbridge index build ./warehouse/flights --local
    skipbridge index build demo.flights --bloom tailnum:fpp=0.001 --values carrier --values dest
    skipbridge index build demo.flights --mode comment=none --without 'values(dest)'
    """
    _build(config, table, nan, local, full, output, asked)


@index.command("refresh")
@click.argument("table")
@click.option("--nan", type=click.Choice(["footer", "scan"]), default="footer", show_default=True)
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_SETTINGS)
def refresh(config: Config, table: str, nan: Nan, output: str) -> None:
    """Index new and changed files, forget vanished ones; in this process, since they are few.

    Run it after writes. Until then new files are read by every query: slower, never wrong.
    """
    _build(config, table, nan, True, False, output)


@index.command("show")
@click.argument("table")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings(*_SETTINGS)
def show(config: Config, table: str, output: str) -> None:
    """The newest generation: files, columns, size, age."""
    found = describe_index(config, table)
    if output == "json":
        emit_json(found)
        return
    for key, value in found.items():
        emit(f"{key:<12} {value}")


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
