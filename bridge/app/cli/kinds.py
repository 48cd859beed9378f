"""Options of ``skipbridge index build`` that choose indexes; one per installed kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from bridge.index.kinds.request import RequestedIndexes


class KindOptions(click.Command):
    """A command with ``--bloom``, ``--values``, ``--mode``, ``--without`` and others.

    The installed kinds are asked for when the options are: importing them takes a while.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        at = next(k for k, each in enumerate(own) if each.name == "local")
        return [*own[:at], *_options(), *own[at:]]


def _options() -> list[click.Parameter]:
    from bridge.index.kinds.registry import kinds

    return [
        *(
            click.Option(
                [f"--{kind.name}", f"kind_{kind.name}"],
                multiple=True,
                metavar="COLUMN",
                help=kind.help,
            )
            for kind in kinds().values()
        ),
        click.Option(
            ["--mode"],
            multiple=True,
            metavar="COLUMN=MODE",
            help="What min/max stores for a column, or for *: none, counts, truncate(16) or full.",
        ),
        click.Option(
            ["--without"],
            multiple=True,
            metavar="INDEX",
            help="Drop one index, named as in `index show`: 'bloom(id)'.",
        ),
    ]


def asked_kinds(given: Mapping[str, Any]) -> RequestedIndexes:
    """What the options of `KindOptions` ask for."""
    from bridge.index.kinds.registry import kinds
    from bridge.index.kinds.request import from_options

    found = {kind.name: given[f"kind_{kind.name}"] for kind in kinds().values()}
    return from_options(found, given["mode"], given["without"])
