"""``skipbridge config``: what is set, and where it comes from."""

from __future__ import annotations

import click
from rich.console import Console
from rich.table import Table as Grid

from bridge.cli.output import emit_json
from bridge.config import OPTIONS, config_file, load


@click.group("config")
def config_group() -> None:
    """Show settings. A flag wins over the environment, which wins over the file."""


@config_group.command("show")
@click.option("--origin", is_flag=True, help="Also say where each value comes from.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
def show(origin: bool, output: str) -> None:
    """All settings with their values.

    A setting `metastore.uri` is `uri` under [metastore] in the TOML file and
    SKIPBRIDGE_METASTORE_URI in the environment.
    """
    path = click.get_current_context().find_root().obj
    config = load(file=path)
    if output == "json":
        emit_json(
            {
                o.key: {"value": config.text(o.key), "origin": config.setting(o.key).origin}
                for o in OPTIONS
            }
        )
        return
    grid = Grid(box=None, pad_edge=False)
    for heading in ("setting", "value", *(("origin",) if origin else ()), "what it is"):
        grid.add_column(heading, overflow="fold")
    for option in OPTIONS:
        setting = config.setting(option.key)
        cells = [option.key, setting.text or "-"]
        if origin:
            cells.append(setting.origin)
        grid.add_row(*cells, option.help)
    Console(highlight=False).print(grid)
    Console(stderr=True, highlight=False).print(f"file: {path or config_file()}", soft_wrap=True)
