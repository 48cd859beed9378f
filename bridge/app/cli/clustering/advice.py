"""``skipbridge cluster advise``: which layout would help the logged queries most."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bridge.app.cli.clustering.options import chosen_strategy, strategy_options
from bridge.app.cli.output import emit, emit_json, say, settings
from bridge.kernel.config import Config

_LOG = click.option(
    "--log",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Log of predicates. [default: planner.predicate_log]",
)
_ONLY_ADVISE = frozenset({"log", "output"})
"""Options that say how advice is found and shown, and not what a run does."""


@click.command("advise")
@click.argument("table")
@strategy_options
@_LOG
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings("metastore.uri", "index.root", "planner.predicate_log", "splits.open_cost")
def advise(
    config: Config,
    table: str,
    log: Path | None,
    output: str,
    **given: Any,
) -> None:
    """Which layout of TABLE would let the logged queries skip most.

    Reads some rows, simulates the new files under each layout over the columns that the log asks
    about, and prints what the logged predicates would keep, and the command that takes the first
    one. Nothing is written. --layout and --by are refused here, and --groups does not count.

    \b
    skipbridge cluster advise demo.flights --target 256MiB
    """
    from bridge.clustering.commands.advice import advise_clustering
    from bridge.kernel.errors import InvalidRequest

    if given["layout"] or given["columns"]:
        raise InvalidRequest(
            "advise compares layouts and columns",
            "leave out --layout and --by; `cluster run --now --dry-run` takes them",
        )
    found = advise_clustering(
        config,
        table,
        chosen_strategy({**given, "layout": None, "columns": ()}),
        given["group"],
        log=log,
    )
    if output == "json":
        emit_json(found)
        return
    for line in _table(found, table):
        emit(line)
    if not found["candidates"]:
        say(f"{table}: nothing is worth a rewrite")
    elif found["candidates"][0]["gain"] <= 0:
        say(f"{table}: nothing is worth a rewrite, since no layout saves logged scans anything")


def _table(found: dict[str, Any], table: str) -> Iterator[str]:
    yield (
        f"{found['table']}: {found['scans']} logged scans ({found['with_values']} with values), "
        f"{found['sampled_rows']:,} rows of {found['sampled_files']} files sampled"
    )
    rows = [("layout", "columns", "rewrites", "files", "kept files", "kept bytes", "saves")]
    rows.append(("as it is", "", "", *_kept(found["now"]), ""))
    for each in found["candidates"]:
        rows.append(
            (
                each["layout"],
                ", ".join(each["columns"]) or "-",
                f"{each['old_files']} files",
                *_kept(each["after"]),
                f"{100 * each['gain']:.0f} %",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    yield ""
    for row in rows:
        cells = [
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
    if found["candidates"] and found["candidates"][0]["gain"] > 0:
        best = found["candidates"][0]
        by = "".join(f" --by {shlex.quote(column)}" for column in best["columns"])
        yield ""
        yield (
            f"-> skipbridge cluster run {shlex.quote(table)} --now --layout {best['layout']}{by}"
            f"{_given_options()}"
        )


def _given_options() -> str:
    """The options of this command that `run` needs too, in order to do what was simulated."""
    context = click.get_current_context()
    words: list[str] = []
    for each in context.command.params:
        name = each.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not isinstance(each, click.Option) or not given or name in _ONLY_ADVISE:
            continue
        value = context.params[name]
        for one in value if each.multiple else (value,):
            words += [each.opts[0]] if each.is_flag else [each.opts[0], str(one)]
    return f" {shlex.join(words)}" if words else ""


def _kept(forecast: dict[str, Any]) -> tuple[str, str, str]:
    from bridge.planner.reports.text import human_bytes

    kept = forecast["kept"]
    size, whole = kept["num_bytes"], max(forecast["num_bytes"], 1)
    return (
        f"{forecast['files']:,.0f}",
        f"{kept['files']:,.1f}",
        f"{human_bytes(round(size))} ({100 * size / whole:.1f} %)",
    )
