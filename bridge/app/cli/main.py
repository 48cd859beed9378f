"""The command line: ``skipbridge`` and ``python -m bridge``."""

from __future__ import annotations

import gc
import logging
import os
import sys
from pathlib import Path

import click

from bridge.app.cli.lazy import LazyGroup
from bridge.kernel.config import unknown_variables
from bridge.kernel.version import VERSION

_COMMANDS = {
    "demo": ("bridge.app.cli.demo:demo", "Index and query a sample table through a real Trino."),
    "explain": ("bridge.app.cli.explain:explain", "Show which files a query reads, and why."),
    "index": ("bridge.app.cli.index:index", "Build, refresh, show and clean indexes."),
    "cluster": (
        "bridge.app.cli.clustering.main:cluster",
        "Rewrite files in another order, so that indexes skip more.",
    ),
    "table": ("bridge.app.cli.table:table", "Register existing files as a table."),
    "segment": ("bridge.app.cli.segment:segment", "Segments of tables over fact files."),
    "sql": ("bridge.app.cli.sql:sql", "Run statements about tables of segments."),
    "timeline": (
        "bridge.app.cli.timeline:timeline",
        "Show the versions of a table, and the files of each.",
    ),
    "sync": ("bridge.app.cli.sync:sync", "Make the metastore match storage."),
    "metastore": ("bridge.app.cli.metastore:metastore", "A Hive Metastore for trials."),
    "serve": ("bridge.app.cli.serve:serve", "Start the planner service for Trino and Hive."),
    "plugin": ("bridge.app.cli.plugin:plugin", "Build the Trino connector."),
    "hive": ("bridge.app.cli.hive:hive", "Let Hive skip files: build the jar, which hooks plans."),
    "doctor": ("bridge.app.cli.doctor:doctor", "Report what is missing here, and how to fix it."),
    "config": ("bridge.app.cli.config:config_group", "Show settings and where they come from."),
}


@click.group(
    cls=LazyGroup,
    commands_at=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, prog_name="skipbridge")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with settings; see `skipbridge config show`.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Log actions, and errors with their trace, to stderr.",
)
@click.pass_context
def cli(ctx: click.Context, config_path: Path | None, verbose: bool) -> None:
    """Skip files that hold no matching row, in Trino and Hive, over existing tables.

    \b
    First steps:
      skipbridge demo                         a full example in a few minutes
      skipbridge explain DIRECTORY 'x > 5'    which files a query reads
      skipbridge index build DB.TABLE         index a table
      skipbridge serve                        start the planner for the engines
      skipbridge plugin build                 build the Trino connector
      skipbridge hive jar                     let Hive skip files
      skipbridge doctor                       what is missing on this machine

    Every command explains itself with --help. Data goes to stdout, everything else to stderr.
    Exit status: 0 done, 3 done but for a part that is named, 2 something to fix in the request or
    on this machine, 1 anything else.
    """
    ctx.obj = config_path
    handler = logging.StreamHandler()
    handler.setFormatter(_lines(verbose or ctx.invoked_subcommand == "serve"))
    logging.basicConfig(level=logging.DEBUG if verbose else logging.WARNING, handlers=[handler])
    for noisy in ("py4j", "sqlglot"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    # They log each refused connection; our errors already name the address and the remedy.
    for own in ("thrift", "trino"):
        logging.getLogger(own).setLevel(logging.CRITICAL)
    for name, near in unknown_variables():
        hint = f"did you mean {near}?" if near else "see skipbridge config show"
        click.echo(f"warning: {name} is not a setting and is ignored; {hint}", err=True)


class _Brief(logging.Formatter):
    """As other lines of a command: ``warning: ...``."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {super().format(record)}"


def _lines(whole: bool) -> logging.Formatter:
    """A server's lines, and those of ``-v``, say when and where as well."""
    if whole:
        return logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    return _Brief()


def main() -> None:
    """Entry point.

    The process ends without Python's finalisation: if an Arrow thread releases a Python buffer
    during finalisation, the process aborts with status 134 after its work is done.
    """
    gc.set_threshold(20_000, 20, 20)  # imports make many objects, and hardly any garbage
    status: object = 1
    try:
        cli(prog_name="skipbridge")
    except SystemExit as e:
        status = e.code
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            status = status or 1
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    main()
