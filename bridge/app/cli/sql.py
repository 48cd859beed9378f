"""``skipbridge sql``: statements about tables of segments."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bridge.app.cli.output import emit, emit_json, progress, say, settings
from bridge.kernel.config import Config
from bridge.kernel.errors import InvalidRequest


@click.command()
@click.argument("statements", required=False)
@click.option(
    "--file",
    "-f",
    "path",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Read the statements from a file; - is stdin.",
)
@click.option("--schema", default="default", show_default=True, help="Of names without one.")
@click.option("--local", is_flag=True, help="Build in this process instead of on Spark.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings("metastore.uri", "index.root")
def sql(
    config: Config, statements: str | None, path: Path | None, schema: str, local: bool, output: str
) -> None:
    """Run STATEMENTS about tables of segments; semicolons separate them.

    All are understood before any runs. The first that fails ends the run; what ran before it stays.
    Queries run in Trino and Hive.

    \b
    skipbridge sql "SHOW SEGMENTS FOR TABLE lake.calls"
    skipbridge sql --file calls.sql
    """
    # Imported here: --help must not wait for them.
    from bridge.segments.statements.context import SqlContext
    from bridge.segments.statements.run import run_sql

    text = _text(statements, path)
    done: list[dict[str, Any]] = []
    try:
        with progress("running") as tick:
            context = SqlContext(config, schema, local, progress=tick, say=say)
            for result in run_sql(context, text):
                for notice in result.notices:
                    say(f"notice: {notice}")
                if output == "json":
                    done.append(result.to_dict())
                elif result.columns:
                    _emit_rows(result.columns, result.rows)
                else:
                    emit(result.summary)
    finally:
        if output == "json" and done:  # also what ran before a statement that failed
            emit_json(done)


def _emit_rows(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns under each other, their names first."""
    lines = [columns, *([_shown(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [f"{value:<{width}}" for value, width in zip(line, widths, strict=True)]
        emit("  ".join(cells).rstrip())


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else " ".join(str(value).split())


def _text(statements: str | None, path: Path | None) -> str:
    """The statements. Errors: InvalidRequest: none, two sources, or no such file."""
    if (statements is None) == (path is None):
        raise InvalidRequest(
            "give the statements, or --file", 'skipbridge sql "SHOW SEGMENTS FOR TABLE lake.calls"'
        )
    if path is None:
        return statements or ""
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not UTF-8"
        raise InvalidRequest(f"cannot read {path}: {reason}", "check the path") from e
