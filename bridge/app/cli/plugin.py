"""``skipbridge plugin``: the Trino connector."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from bridge.app.cli.lazy import Verbs
from bridge.app.cli.output import emit, say
from bridge.trino.plugin import build_plugin, supported_versions


@click.group(cls=Verbs)
def plugin() -> None:
    """Build the Trino connector that reads the files that the planner keeps."""


@plugin.command("build")
@click.option("--trino-version", default="476", show_default=True, help="Version of the server.")
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("skipbridge-trino"),
    show_default=True,
    help="Build directory; the plugin is its subdirectory named like the connector.",
)
@click.option(
    "--from-server",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="An installed Trino with its hive plugin: compile against its jars, without Maven.",
)
@click.option(
    "--storage",
    "stores",
    multiple=True,
    type=click.Choice(["hdfs", "gcs", "azure", "cache"]),
    help="Add a store's client, or Trino's file system cache; may be repeated. S3 and local files"
    " are always read.",
)
@click.option(
    "--hudi", is_flag=True, help="Add Hudi's reader, for its merge-on-read tables. Maven only."
)
@click.option(
    "--hive",
    is_flag=True,
    help="Add Trino's hive connector, for a catalog that replaces one of it. For 476 it needs"
    " --from-server.",
)
@click.option("--name", default="skipbridge", show_default=True, help="Name of the connector.")
def build(
    trino_version: str,
    to: Path,
    from_server: Path | None,
    stores: tuple[str, ...],
    hudi: bool,
    hive: bool,
    name: str,
) -> None:
    """Generate, compile and assemble the connector for one Trino version.

    \b
    Then, on every Trino node (replace an older plugin completely: two versions of a jar clash):
      rm -rf $TRINO_HOME/plugin/skipbridge
      cp -r skipbridge-trino/skipbridge $TRINO_HOME/plugin/

    \b
    and in etc/catalog/bridge.properties of each node:
      connector.name=skipbridge
      skipbridge.planner=127.0.0.1:9527

    Restart Trino. Only the coordinator calls the planner: start `skipbridge serve` beside it.
    """
    made = build_plugin(
        trino_version, to.absolute(), from_server, name, say, stores, hudi=hudi, hive=hive
    )
    emit(str(made))
    say(
        "on every Trino node, instead of an older one:\n"
        f"  rm -rf $TRINO_HOME/plugin/{name}\n"
        f"  cp -r {shlex.quote(str(made))} $TRINO_HOME/plugin/\n"
        "then restart Trino; `plugin build --help` shows the catalog file"
    )


@plugin.command("versions")
def versions() -> None:
    """Trino versions this can build for."""
    for version in supported_versions():
        emit(version)
