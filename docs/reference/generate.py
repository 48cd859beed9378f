"""Writes the reference pages that the code itself determines: settings and commands.

``make docs`` runs it; `tests/unit/test_docs.py` fails while a page differs from what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from bridge.app.cli.main import cli
from bridge.kernel.config import OPTIONS

HERE = Path(__file__).parent
NOTE = "<!-- Written by docs/reference/generate.py; run `make docs` instead of editing. -->"
TABLE = ("| setting | default | value | meaning |", "|---|---|---|---|")
KINDS = {"int": "whole number", "size": "size", "time": "time", "bool": "`true` or `false`"}

SETTINGS = """\
# Settings

Every setting has three spellings. `metastore.uri` is

- `uri` in the section `[metastore]` of the TOML file,
- the environment variable `SKIPBRIDGE_METASTORE_URI`,
- `--metastore-uri`, for commands that list this flag in [Commands](commands.md).

A flag wins over the environment, the environment wins over the file, and the file wins over the
default. The file is `skipbridge/config.toml` in the user's configuration directory;
`SKIPBRIDGE_CONFIG` or `skipbridge --config FILE` names another. The option's file must
exist; the variable's may be absent. An unknown key in the file is an error, and an unknown variable
is a warning. Both name the nearest known setting.

`skipbridge config show --origin` shows every setting, its value and where the value comes from.

- A size is a number with `B`, `KB`, `KiB`, `MB`, `MiB`, `GB` or `GiB`.
- A time is a number with `ms`, `s`, `m`, `h` or `d`.

Settings of Trino's catalog are in [Trino](trino.md), those of Hive in [Hive](hive.md).
"""

COMMANDS = """\
# Commands

This page shows what `--help` prints. Data goes to stdout, everything else to stderr. Most commands
take `--output json`. `skipbridge` and `python -m bridge` are the same.

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | something outside failed, or an internal error |
| 2 | the request or this machine needs a change first |
| 3 | done, except for a part that the command names: partitions that collide or that the metastore refused, groups that stay as they were, files that cannot be indexed |
| 130 | interrupted |
"""


def settings() -> str:
    """The page of settings, one table a section."""
    lines = [NOTE, "", SETTINGS.rstrip()]
    for section in sorted({option.key.partition(".")[0] for option in OPTIONS}):
        lines += ["", f"## {section}", "", *TABLE]
        for option in OPTIONS:
            if option.key.startswith(f"{section}."):
                default = f"`{option.default}`" if option.default else "empty"
                kind = KINDS.get(option.kind, option.kind)
                kind += f", {option.bounds}" if option.bounds else ""
                lines.append(f"| `{option.key}` | {default} | {kind} | {option.help} |")
    return "\n".join([*lines, ""])


def commands() -> str:
    """The page of commands, each with its own help."""
    lines = [NOTE, "", COMMANDS.rstrip()]
    for path, command, context in _walk(cli, click.Context(cli, info_name="skipbridge")):
        lines += ["", f"## {path}", "", "```text", _help(command, context), "```"]
    return "\n".join([*lines, ""])


def _walk(
    command: click.Command, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    yield context.command_path, command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _walk(child, click.Context(child, info_name=name, parent=context))


def _help(command: click.Command, context: click.Context) -> str:
    context.max_content_width = context.terminal_width = 100
    context.help_option_names = ["-h", "--help"]
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


def pages() -> dict[Path, str]:
    """Text by file."""
    return {HERE / "settings.md": settings(), HERE / "commands.md": commands()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
