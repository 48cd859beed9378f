"""Output conventions: data on stdout, all else on stderr, errors with code and remedy."""

from __future__ import annotations

import errno
import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any, TypeVar

import click

from bridge.kernel.config import Config, load
from bridge.kernel.errors import BridgeError, InvalidRequest

Command = TypeVar("Command", bound=Callable[..., Any])
_NOT_A_TABLE_HERE = frozenset(
    {"INVALID_REQUEST", "METASTORE_UNAVAILABLE", "SCHEMA_NOT_FOUND", "TABLE_NOT_FOUND"}
)
PROBLEMS = 3
"""The exit status of a command that did its work, but for a part of which it has told."""
DIALECTS = click.Choice(["trino", "hive", "spark"])


def say(text: str) -> None:
    """Writes a message for people (stderr)."""
    click.echo(text, err=True)


def emit(text: str) -> None:
    """Writes data (stdout)."""
    click.echo(text)


def emit_path(path: str, end: str) -> None:
    """Writes a name as storage has it, whatever its characters are."""
    click.echo((path + end).encode("utf-8", "surrogateescape"), nl=False)


def emit_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))


def first_lines(lines: Sequence[str], most: int = 50) -> Iterator[str]:
    """The first lines, and the number of omitted ones; JSON output has all."""
    yield from lines[:most]
    if len(lines) > most:
        yield f"... and {len(lines) - most:,} more: --output json shows all"


def write(path: Path, text: str) -> None:
    """Writes a file completely or not at all.

    Errors:
        InvalidRequest: the directory does not exist or is not writable.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, "utf-8")
        draft.replace(path)
    except OSError as e:
        with suppress(OSError):
            draft.unlink()
        if e.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InvalidRequest(f"cannot write {path}: {e.strerror}", "give another path") from e
    say(f"written: {path}")


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on a terminal, nothing elsewhere; call it with (done, total)."""
    with progress_bars(label) as (tick,):
        yield tick


@contextmanager
def progress_bars(*labels: str) -> Iterator[list[Callable[[int, int], None]]]:
    """Like `progress`, one after another: all but the last appear with their first call."""
    if not sys.stderr.isatty():
        yield [lambda done, total: None for _ in labels]
        return
    # Imported here, because it would double the time of a short command.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False),
        transient=False,
    )
    with bar:
        tasks = [bar.add_task(label, start=False, total=None, visible=False) for label in labels]

        def show(task: TaskID, done: int, total: int) -> None:
            bar.start_task(task)
            bar.update(task, completed=done, total=total, visible=True)

        bar.start_task(tasks[-1])
        bar.update(tasks[-1], visible=True)
        yield [functools.partial(show, task) for task in tasks]


def settings(*keys: str) -> Callable[[Command], Command]:
    """Adds ``--metastore-uri`` and other options, and passes a `Config` as ``config``."""
    from bridge.kernel.config import OPTIONS

    known = {o.key: o for o in OPTIONS}

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(**values: Any) -> Any:
            flags = {key: values.pop(_argument(key)) for key in keys}
            config: Config = load(flags, click.get_current_context().find_root().obj)
            _import_arrow()
            try:
                return command(config=config, **values)
            except BridgeError as e:
                _point_at_directory(e, values.get("table"))
                raise

        wrapped: Any = run
        for key in reversed(keys):
            option = known[key]
            shown = option.default or "none"
            wrapped = click.option(
                "--" + _flag(key),
                _argument(key),
                metavar=option.kind.upper(),
                help=f"{option.help[0].upper()}{option.help[1:]} [default: {shown}]",
            )(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _import_arrow() -> None:
    """Imports Arrow and lets it conclude that pandas, which no command uses, is absent.

    Arrow imports pandas for its first array otherwise, which takes 0.15 s.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa

        pa.array([])
    finally:
        sys.meta_path.remove(finder)


def _point_at_directory(error: BridgeError, table: object) -> None:
    """Extends the remedy: a TABLE without a slash is looked up in the metastore, but the user may
    have meant a directory of that name.
    """
    if (
        isinstance(table, str)
        and error.code in _NOT_A_TABLE_HERE
        and table
        and "/" not in table
        and Path(table).exists()
    ):
        meant = (
            f"for the directory of this name, write ./{table}"
            if Path(table).is_dir()
            else f"{table} here is a file: give the directory that holds the files, such as ./"
        )
        error.hint = f"{error.hint}; {meant}" if error.hint else meant


def _flag(key: str) -> str:
    section, _, name = key.partition(".")
    short = {"service": name, "planner": name}
    return short.get(section, f"{section}-{name}").replace("_", "-")


def _argument(key: str) -> str:
    return "setting_" + key.replace(".", "_")
