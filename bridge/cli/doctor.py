"""``skipbridge doctor``: reports what is missing before the first query."""

from __future__ import annotations

from dataclasses import asdict

import click

from bridge.cli.output import PROBLEMS, emit_json, settings
from bridge.config import Config

_MARKS = {"ok": "[green]ok[/]     ", "warning": "[yellow]warning[/]", "error": "[red]error[/]  "}


@click.command()
@click.argument("table", required=False)
@click.option("--trino", metavar="HOST:PORT", help="Also check this Trino.")
@click.option("--hive", metavar="HOST:PORT", help="Also check this HiveServer2.")
@click.option(
    "--hive-authentication",
    type=click.Choice(["NONE", "NOSASL"]),
    default="NONE",
    show_default=True,
    help="Value of hive.server2.authentication there.",
)
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings("metastore.uri", "service.host", "service.port", "index.root")
def doctor(
    config: Config,
    table: str | None,
    trino: str | None,
    hive: str | None,
    hive_authentication: str,
    output: str,
) -> None:
    """Check JDKs, Maven, metastore, planner, Trino and Hive; for TABLE, also check that its index
    is fresh, that all its partitions have Hive's hook, and that its object store lists what it
    holds: two hidden objects are written to the index's directory, and deleted.

    Changes nothing else. Exit status 1 if something that was requested is broken; 3 if files lie in
    directories that TABLE was published from, and no engine reads them.
    """
    from bridge.jobs.doctor import LEFT, examine
    from bridge.jobs.doctor_hive import HiveAddress

    findings = list(
        examine(config, table, trino, HiveAddress(hive, hive_authentication) if hive else None)
    )
    if output == "json":
        emit_json([asdict(f) for f in findings])
    else:
        from rich.console import Console

        console = Console(highlight=False, soft_wrap=True)
        for finding in findings:
            console.print(f"{_MARKS[finding.status]}  ", end="")
            console.print(f"{finding.check}: {finding.detail}", markup=False)
            if finding.remedy:
                console.print(f"           -> {finding.remedy}", markup=False)
    if any(f.status == "error" for f in findings):
        raise SystemExit(1)
    if any(f.check.startswith(LEFT) for f in findings):
        raise SystemExit(PROBLEMS)
