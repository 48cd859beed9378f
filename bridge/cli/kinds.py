"""Options of ``skipbridge index build`` that choose indexes; one per installed kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from bridge.index.kinds.request import RequestedIndexes, from_options
from bridge.index.registry import kinds


def kind_options(command: Callable[..., None]) -> Callable[..., None]:
    """Collects ``--bloom``, ``--values``, ``--mode``, ``--without`` and others as ``asked``."""

    @wraps(command)
    def wrapped(**given: Any) -> None:
        found = {kind.name: given.pop(f"kind_{kind.name}") for kind in kinds().values()}
        asked: RequestedIndexes = from_options(found, given.pop("mode"), given.pop("without"))
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
            help="What min/max stores for a column, or for *: none, counts, truncate(16) or full.",
        ),
        click.option(
            "--without",
            multiple=True,
            metavar="INDEX",
            help="Drop one index, named as in `index show`: 'bloom(id)'.",
        ),
    ]
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped
