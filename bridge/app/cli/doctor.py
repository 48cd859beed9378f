"""``skipbridge doctor``: reports what is missing before the first query."""

from __future__ import annotations

from dataclasses import asdict

import click

from bridge.app.cli.output import PROBLEMS, emit_json, settings
from bridge.kernel.config import Config

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
@click.option("--all", "every", is_flag=True, help="Also print the checks that found no fault.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings("metastore.uri", "service.host", "service.port", "index.root")
def doctor(
    config: Config,
    table: str | None,
    trino: str | None,
    hive: str | None,
    hive_authentication: str,
    every: bool,
    output: str,
) -> None:
    """Check JDKs, Maven, metastore, planner, Trino and Hive; for TABLE, also check that its index
    is fresh, that no files in subdirectories are left out, that no record of it is hooked, and that
    its object store lists what it holds: two hidden objects are written to the index's directory,
    and deleted.

    Changes nothing else. Prints what it found, and ends with one of three sentences: all is well;
    works, but (what is missing or costs speed); broken (what). Exit status 1 if something that was
    requested is broken; 3 if files lie in directories that TABLE was published from, and no engine
    reads them.
    """
    from bridge.app.doctor import LEFT_FILES, examine
    from bridge.hive.checks import HiveAddress
    from bridge.runtime.diagnostic import verdict

    findings = list(
        examine(config, table, trino, HiveAddress(hive, hive_authentication) if hive else None)
    )
    if output == "json":
        emit_json([asdict(f) for f in findings])
    else:
        from rich.console import Console

        console = Console(highlight=False, soft_wrap=True)
        for finding in findings:
            if finding.status == "ok" and not every:
                continue
            console.print(f"{_MARKS[finding.status]}  ", end="")
            console.print(f"{finding.check}: {finding.detail}", markup=False)
            if finding.remedy:
                console.print(f"           -> {finding.remedy}", markup=False)
        console.print(verdict(findings), markup=False)
    if any(f.status == "error" for f in findings):
        raise SystemExit(1)
    if any(f.check.startswith(LEFT_FILES) for f in findings):
        raise SystemExit(PROBLEMS)
