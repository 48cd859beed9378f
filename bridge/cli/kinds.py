"""Options of ``skipbridge index build`` that say what to index; one for each installed kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from bridge.index.kinds.request import Asked, from_options
from bridge.index.registry import kinds


def kind_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gathers ``--bloom``, ``--values``, ``--mode``, ``--without`` and their like as ``asked``."""

    @wraps(command)
    def wrapped(**given: Any) -> None:
        found = {kind.name: given.pop(f"kind_{kind.name}") for kind in kinds().values()}
        asked: Asked = from_options(found, given.pop("mode"), given.pop("without"))
        command(asked=asked, **given)

    options = [
        click.option(
            f"--{kind.name}", f"kind_{kind.name}", multiple=True, metavar="COLUMN", help=kind.help
        )
        for kind in kinds().values()
    ]
    options += [
        click.option(
            "--mode",
            multiple=True,
            metavar="COLUMN=MODE",
            help="How much min/max keeps of a column, or of *: none, counts, truncate(16) or full.",
        ),
        click.option(
            "--without",
            multiple=True,
            metavar="INDEX",
            help="Drop one of the indexes, as `index show` spells it: 'bloom(id)'.",
        ),
    ]
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped
