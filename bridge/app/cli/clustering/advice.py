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
_SAMPLE = (
    click.option(
        "--sample-files",
        type=click.IntRange(min=1),
        default=200,
        show_default=True,
        help="Most files of which rows are read to simulate layouts.",
    ),
    click.option(
        "--sample-rows", type=click.IntRange(min=1000), default=200_000, show_default=True
    ),
)
_ONLY_ADVISE = frozenset({"log", "sample_files", "sample_rows", "output"})
"""Options that say how advice is found and shown, and not what a run does."""


def auto_options(command: Any) -> Any:
    """Adds the options of `cluster run --auto`."""
    return click.option(
        "--least-gain",
        type=click.FloatRange(0, 100),
        default=10.0,
        show_default=True,
        metavar="PERCENT",
        help="With --auto: rewrite nothing if the best layout saves less of what scans cost. 0: "
        "commit also what scans read at a higher cost than the old files.",
    )(_sampled(command))


def _sampled(command: Any) -> Any:
    for option in (*reversed(_SAMPLE), _LOG):
        command = option(command)
    return command


@click.command("advise")
@click.argument("table")
@strategy_options
@_sampled
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
@settings("metastore.uri", "index.root", "planner.predicate_log", "splits.open_cost")
def advise(
    config: Config,
    table: str,
    log: Path | None,
    sample_files: int,
    sample_rows: int,
    output: str,
    **given: Any,
) -> None:
    """Which layout of TABLE would let the logged queries skip most.

    Reads some rows, simulates the new files under each layout over the columns that the log asks
    about, and prints what the logged predicates would keep. Nothing is written. `cluster run TABLE
    --auto` takes the first one. --layout and --by are refused here, and --groups does not count.

    \b
    skipbridge cluster advise demo.flights --target 256MiB
    """
    from bridge.clustering.commands.advice import advise_clustering
    from bridge.clustering.planning.advice import SimulationSample
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
        sampling=SimulationSample(sample_files, sample_rows),
    )
    if output == "json":
        emit_json(found)
        return
    for line in _table(found, table):
        emit(line)
    if not found["candidates"]:
        say(f"{table}: nothing is worth a rewrite")


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
    if found["candidates"]:
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


def foretold_lines(made: dict[str, Any]) -> Iterator[str]:
    """What a run would do to each partition, and bring to the logged scans."""
    from bridge.planner.reports.text import human_bytes

    found = made.get("by_partition", ())
    for each in found:
        size, read = human_bytes(each["num_bytes"]), human_bytes(each["old_bytes"])
        after = each["files"] - each["old_files"] + each["new_files"]
        line = f"  {each['partition'] or 'the table'}: {each['files']} files, {size} -> {after} "
        line += f"files, about {size}; reads and writes {each['old_files']} files, {read}"
        if each["groups"] > 1 and made["columns"]:
            line += f", in {each['groups']} groups, of which "
            line += f"{each['depth']} share values" if each["depth"] > 1 else "none share values"
        yield line
    if found:
        read = human_bytes(made["bytes"])
        yield f"reads {made['old_files']} files, {read}; writes {made['new_files']}, at most {read}"
    yield from effect_lines(made.get("forecast"))


def effect_lines(effect: dict[str, Any] | None) -> Iterator[str]:
    """What a plan brings or has brought to the logged scans."""
    if effect is None:
        return
    names = {"before": "before", "expected": "expected", "measured": "measured"}
    for key, name in names.items():
        if key in effect:
            _, files, size = _kept(effect[key])
            saved = effect.get(f"{key}_gain")
            rest = "" if saved is None else f", saves {100 * saved:.0f} %"
            yield f"  a logged scan keeps, {name}: {files} files, {size}{rest}"
