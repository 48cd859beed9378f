"""``skipbridge explain``: shows which files a predicate reads, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from bridge.app.cli.output import DIALECTS, emit, say, settings, write
from bridge.kernel.config import Config


@click.command()
@click.argument("table")
@click.argument("where", required=False, default="")
@click.option(
    "--dialect",
    type=DIALECTS,
    default="trino",
    show_default=True,
    help="SQL dialect of WHERE, and how NaN compares.",
)
@click.option(
    "--wire", is_flag=True, help="WHERE is a Trino predicate in JSON, as engines send it."
)
@click.option(
    "--output", type=click.Choice(["text", "json", "html"]), default="text", show_default=True
)
@click.option("--columns", help="Columns that the query reads, as a,b; all if not given.")
@click.option("--files", is_flag=True, help="Also list the URIs of the files kept.")
@click.option(
    "--to",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file instead of stdout, completely or not at all.",
)
@click.option("--no-pruning", is_flag=True, help="Keep every file, for comparison.")
@click.option("--generation", type=int, help="An index generation other than the newest.")
@click.option(
    "--segments",
    metavar="ID,ID",
    help="Read these segments only, of a table of segments.",
)
@settings("metastore.uri", "index.root", "planner.freshness")
def explain(
    config: Config,
    table: str,
    where: str,
    dialect: str,
    wire: bool,
    output: str,
    columns: str | None,
    files: bool,
    to: Path | None,
    no_pruning: bool,
    generation: int | None,
    segments: str | None,
) -> None:
    """Show the funnel of a scan: partitions -> files -> splits.

    TABLE is schema.table in the metastore, or a directory of Parquet or ORC files (./flights).
    WHERE is the condition of a query, without the keyword. No data is read, only file names, sizes
    and the index.

    Each line of the funnel is a stage: its input, what it kept, and the columns it evaluated. The
    weight of the splits is the work that they give an engine; 1.0 is that of one full split. Lines
    "not used" name an index that could not prune, the reason, and the command that fixes it.
    A --freshness given here overrides the table's own property.

    \b
    skipbridge explain demo.flights "month = 3 AND carrier = 'UA' AND dep_delay > 60"
    skipbridge explain ./warehouse/flights "distance BETWEEN 100 AND 200" --files --output json
    """
    from bridge.app.api.session import Session
    from bridge.planner.reports.document import report_document
    from bridge.planner.reports.text import funnel

    freshness = config.setting("planner.freshness")
    options: dict[str, Any] = {
        "semantics": dialect,
        "freshness": freshness.text if freshness.origin == "flag" else None,
        "pruning": not no_pruning,
        "generation": generation,
        "columns": None if columns is None else tuple(c.strip() for c in columns.split(",")),
    }
    chosen = None if segments is None else [one.strip() for one in segments.split(",")]
    with Session(config) as session:
        opened = session.table(table)
        if wire and where:
            from bridge.app.api.scan_options import ScanOptions
            from bridge.engines.trino.translate import translate as translate_trino
            from bridge.table.read_version import ReadVersion

            translation = translate_trino(where)
            asked = ScanOptions(
                expression=translation.expression,
                dropped=translation.dropped,
                strict=False,
                read=ReadVersion(segments=tuple(chosen or ())),
                **options,
            )
            report = opened._scan(asked).explain()
        else:
            report = opened.scan(where or None, segments=chosen, **options).explain()
    if not report.files_total:
        from bridge.runtime.nested_files import warn_of_nested

        warn_of_nested(config, table, say)
    if output == "html":
        from bridge.planner.reports.html import page

        text = page(report)
    elif output == "json":
        text = json.dumps(report_document(report, files=files), indent=2)
    else:
        text = funnel(report)
        if files and report.paths is not None:
            text = "\n".join([text, *report.paths.to_pylist()])
    if to is None:
        emit(text)
    else:
        write(to, text + "\n")
