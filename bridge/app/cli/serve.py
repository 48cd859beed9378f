"""``skipbridge serve``: runs the planner service."""

from __future__ import annotations

import click

from bridge.app.cli.output import say, settings
from bridge.kernel.config import Config


@click.command()
@settings(
    "service.host",
    "service.port",
    "service.processes",
    "service.http_port",
    "service.metrics_port",
    "metastore.uri",
    "index.root",
    "planner.freshness",
)
def serve(config: Config) -> None:
    """Start the planner service for Trino and Hive, and with --http-port for Spark and PyIceberg.

    It listens on loopback only, since it does not authenticate clients yet. Ctrl-C or SIGTERM let
    calls in flight finish. --processes starts several processes behind one port; by default there
    is one for every four cores, at most 4. It asks the metastore first. Without an answer it starts
    all the same, since the metastore may come later, and the line of readiness says so.

    \b
    In etc/catalog/bridge.properties of every Trino node:
      connector.name=skipbridge
      skipbridge.planner=127.0.0.1:9527
    """
    from bridge.app.serve import ask_metastore, process_count, serve_many
    from bridge.app.serve import serve as run

    answers = ask_metastore(config, say)
    processes = process_count(config)
    if processes > 1:
        serve_many(config, processes, say, answers=answers)
    else:
        run(config, say, answers=answers)
