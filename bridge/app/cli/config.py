"""``skipbridge config``: shows all settings and their origin."""

from __future__ import annotations

import click

from bridge.app.cli.lazy import Verbs
from bridge.app.cli.output import emit, emit_json, say
from bridge.kernel.config import OPTIONS, config_file, load


@click.group("config", cls=Verbs)
def config_group() -> None:
    """Show settings. Flags override the environment, which overrides the file."""


@config_group.command("show")
@click.option("--origin", is_flag=True, help="Also show where each value comes from.")
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
    rows = [("setting", "value", "origin", "what it is")]
    for option in OPTIONS:
        setting = config.setting(option.key)
        rows.append((option.key, setting.text or "-", setting.origin, option.help))
    if not origin:
        rows = [(key, value, what) for key, value, _, what in rows]  # type: ignore[misc]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        # One line per setting, however narrow the terminal, for grep and cut.
        cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)]
        emit("  ".join([*cells, row[-1]]))
    say(f"file: {path or config_file()}")
