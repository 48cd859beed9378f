"""``skipbridge doctor``: what is missing before the first query."""

from __future__ import annotations

from dataclasses import asdict

import click
from rich.console import Console

from bridge.cli.output import emit_json, settings
from bridge.config import Config
from bridge.jobs.doctor import examine

_MARKS = {"ok": "[green]ok[/]     ", "warning": "[yellow]warning[/]", "error": "[red]error[/]  "}


@click.command()
@click.argument("table", required=False)
@click.option("--trino", metavar="HOST:PORT", help="Also look at this Trino.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings("metastore.uri", "service.host", "service.port", "index.root")
def doctor(config: Config, table: str | None, trino: str | None, output: str) -> None:
    """Check JDKs, Maven, metastore, planner, Trino, and whether the index of TABLE is fresh.

    Nothing is changed. Exit status 1 if something that was asked for is broken.
    """
    findings = list(examine(config, table, trino))
    if output == "json":
        emit_json([asdict(f) for f in findings])
    else:
        console = Console(highlight=False, soft_wrap=True)
        for finding in findings:
            console.print(f"{_MARKS[finding.status]}  ", end="")
            console.print(f"{finding.check}: {finding.detail}", markup=False)
            if finding.mend:
                console.print(f"           -> {finding.mend}", markup=False)
    if any(f.status == "error" for f in findings):
        raise SystemExit(1)
