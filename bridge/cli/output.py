"""How commands speak: data on stdout, everything else on stderr, errors with code and mend."""

from __future__ import annotations

import functools
import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bridge.config import Config, load
from bridge.errors import BridgeError

stderr = Console(stderr=True, highlight=False)
Command = TypeVar("Command", bound=Callable[..., Any])
DIALECTS = click.Choice(["trino", "hive", "spark"])


def say(text: str) -> None:
    """Tells a person what is going on (stderr)."""
    stderr.print(text, markup=False, soft_wrap=True)


def emit(text: str) -> None:
    """Data (stdout)."""
    click.echo(text)


def emit_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal, nothing elsewhere; call with (done, total)."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=stderr,
        transient=False,
    )
    with bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def settings(*keys: str) -> Callable[[Command], Command]:
    """Adds ``--metastore-uri`` and the like, and passes a `Config` as ``config``."""
    from bridge.config import OPTIONS

    known = {o.key: o for o in OPTIONS}

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**values: Any) -> Any:
            flags = {key: values.pop(_argument(key)) for key in keys}
            config: Config = load(flags, click.get_current_context().find_root().obj)
            return command(config=config, **values)

        wrapped: Any = run
        for key in reversed(keys):
            option = known[key]
            shown = option.default or "none"
            wrapped = click.option(
                "--" + _flag(key), _argument(key), help=f"{option.help} [default: {shown}]"
            )(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


def _flag(key: str) -> str:
    section, _, name = key.partition(".")
    short = {"service": name, "planner": name}
    return short.get(section, f"{section}-{name}").replace("_", "-")


def _argument(key: str) -> str:
    return "setting_" + key.replace(".", "_")


class ErrorGroup(click.Group):
    """Shows every BridgeError as code, sentence, mend; exit status 2 for the user's, 1
    otherwise.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BridgeError as e:
            logging.getLogger("bridge").debug("failed", exc_info=True)
            stderr.print(f"error {e.code}: {e.message}", style="red", markup=False, soft_wrap=True)
            if e.hint:
                stderr.print(f"  -> {e.hint}", markup=False, soft_wrap=True)
            ctx.exit(2 if e.category.value == "USER_ERROR" else 1)
        except BrokenPipeError:
            sys.stderr.close()
            ctx.exit(1)
