"""``skipbridge demo``: index and query a sample table on one machine."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from bridge.app.cli.output import progress, say

_QUIET_SECONDS = 10.0
_out = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-out"),
    show_default=True,
    help="Output directory; an earlier demo there is replaced.",
)


@click.group(invoke_without_command=True)
@_out
@click.option(
    "--trino-version",
    default="476",
    show_default=True,
    help="Trino version; `skipbridge plugin versions` lists the supported ones.",
)
@click.option(
    "--from-server",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Compile the connector against this installed Trino instead of with Maven.",
)
@click.pass_context
def demo(ctx: click.Context, out: Path, trino_version: str, from_server: Path | None) -> None:
    """Write a table of 5,000 small files, index it, and query it through a real Trino: with
    pruning, without pruning, and with each file opened to decide, as an engine does by itself.

    For each query, shows the files opened, the bytes read and the median time of a few runs after a
    warm-up.

    Needs a JDK 17, a JDK 25 and Maven; downloads Trino's server (190 MB) once. Stops every process
    that it starts, also on Ctrl-C.
    """
    if ctx.invoked_subcommand:
        return
    from bridge.app.demo.run import missing_parts, run_demo
    from bridge.trino.plugin import require_buildable

    interruption = _Interruption()
    interruption.listen()
    problems = missing_parts()
    if problems:
        raise problems[0]
    require_buildable(trino_version, from_server)
    with _own_directory(out) as own:
        status = run_demo(
            own,
            trino_version=trino_version,
            plugin_from=from_server,
            say=interruption.say,
            progress=_progress,
        )
    raise SystemExit(status)


@demo.command()
@_out
@click.option(
    "--http-port", type=int, default=8181, show_default=True, help="Of the catalog; 0: any free."
)
def spark(out: Path, http_port: int) -> None:
    """Serve the same table to Spark and PyIceberg, and show the lines that read it.

    Writes and indexes the table, and serves it as an Iceberg REST catalog until Ctrl-C. Needs a
    JDK 17 and the extra ``rest``.
    """
    from bridge.app.demo.spark import require_parts, serve_demo

    interruption = _Interruption()
    interruption.listen()
    require_parts()
    with _own_directory(out) as own:
        serve_demo(own, port=http_port, say=interruption.say, progress=_progress)


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal; elsewhere a line now and then, so that a slow machine is not silent."""
    told = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told >= _QUIET_SECONDS:
            told = time.monotonic()
            say(f"     {done:,} of {total:,} {label}" if total else f"     {done:,} {label}")

    with progress(label) as tick:
        yield tick if sys.stderr.isatty() else tell


@contextmanager
def _own_directory(out: Path) -> Iterator[Path]:
    """The output directory, which is marked as a demo's. Ctrl-C within ends the program.

    Errors:
        UsageError: it holds other files.
    """
    out = out.absolute()
    marker = out / ".skipbridge-demo"
    if out.exists() and any(out.iterdir()) and not marker.exists():
        raise click.UsageError(f"{out} holds other files; give another --out")
    try:
        yield out
    except KeyboardInterrupt:
        say("stopped")
        raise SystemExit(130) from None
    finally:
        if out.exists():
            marker.touch()


class _Interruption:
    """Turns SIGINT and SIGTERM into the same clean-up as an error.

    Libraries may swallow KeyboardInterrupt during their import, and a Spark context replaces the
    signal handler. The request is therefore remembered and checked at each line of output.
    """

    def __init__(self) -> None:
        self._asked = False

    def listen(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._end)

    def say(self, text: str) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self.listen()
        say(text)

    def _end(self, *_: object) -> None:
        self._asked = True
        raise KeyboardInterrupt
