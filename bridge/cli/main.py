"""The command line: ``skipbridge`` and ``python -m bridge``."""

from __future__ import annotations

import logging
from pathlib import Path

import click

from bridge import __version__
from bridge.cli.config import config_group
from bridge.cli.demo import demo
from bridge.cli.doctor import doctor
from bridge.cli.explain import explain
from bridge.cli.index import index
from bridge.cli.metastore import metastore
from bridge.cli.output import ErrorGroup
from bridge.cli.plugin import plugin
from bridge.cli.serve import serve
from bridge.cli.table import table


@click.group(cls=ErrorGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="skipbridge")
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="TOML file with settings; see `skipbridge config show`.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log what is done, to stderr.")
@click.pass_context
def cli(ctx: click.Context, config_path: Path | None, verbose: bool) -> None:
    """Skip files that hold no matching row, in Trino and Hive, over tables that exist.

    \b
    First steps:
      skipbridge demo                         the whole story in a few minutes
      skipbridge explain DIRECTORY 'x > 5'    which files a query would read
      skipbridge index build DB.TABLE         index a table with Spark
      skipbridge serve                        start the planner for the engines
      skipbridge plugin build                 build the Trino connector
    """
    ctx.obj = config_path
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    for noisy in ("py4j", "thrift", "sqlglot"):
        logging.getLogger(noisy).setLevel(logging.ERROR)


for command in (
    demo,
    explain,
    index,
    table,
    metastore,
    serve,
    plugin,
    doctor,
    config_group,
):
    cli.add_command(command)


def main() -> None:
    """Entry point."""
    cli(prog_name="skipbridge")


if __name__ == "__main__":
    main()
