"""`skipbridge` in a process of its own, with other constants than the product's."""

from __future__ import annotations

import sys


def patched_command(**constants: str) -> list[str]:
    """The words of the command, to which a test adds its own.

    Args:
        constants: expressions by the name of the constant, where dots are double underscores.
    """
    lines = []
    for name, value in constants.items():
        module, constant = ".".join(name.split("__")).rsplit(".", 1)
        lines.append(f"import {module}; {module}.{constant} = {value}")
    return [
        sys.executable,
        "-c",
        "\n".join([*lines, "from bridge.app.cli.main import main; main()"]),
    ]
