"""``skipbridge demo``: the whole story on one machine."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from bridge.cli.output import progress, say
from bridge.demo.run import missing_parts, run_demo


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-out"),
    show_default=True,
    help="Directory for everything it writes; an earlier demo there is replaced.",
)
@click.option(
    "--trino-version",
    default="476",
    show_default=True,
    help="Trino to run; `skipbridge plugin versions` lists those possible.",
)
@click.option(
    "--from-server",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Compile the connector against this installed Trino instead of with Maven.",
)
def demo(out: Path, trino_version: str, from_server: Path | None) -> None:
    """Write a table of 5,000 small files, index it, and query it through a real Trino: with
    pruning, without, and file by file as an engine reads it by itself.

    Shows for each query the files opened, bytes read and the median of a few runs after a warm-up.

    Needs a JDK 17, a JDK 25 and Maven; downloads Trino's server (190 MB) once. Everything it starts
    it stops, also on Ctrl-C.
    """
    interruption = _Interruption()
    interruption.listen()
    problems = missing_parts()
    if problems:
        raise problems[0]
    out = out.absolute()
    marker = out / ".skipbridge-demo"
    if out.exists() and any(out.iterdir()) and not marker.exists():
        raise click.UsageError(f"{out} holds other files; give another --out")
    try:
        status = run_demo(
            out,
            trino_version=trino_version,
            plugin_from=from_server,
            say=interruption.say,
            progress=progress,
        )
    except KeyboardInterrupt:
        say("stopped")
        raise SystemExit(130) from None
    finally:
        if out.exists():
            marker.touch()
    raise SystemExit(status)


class _Interruption:
    """A terminal's or a scheduler's request to end: it runs the same clean-up as an error.

    Libraries may swallow KeyboardInterrupt while they are imported, and a Spark context leaves a
    handler of its own behind: so the request is remembered, and asked about at each line told.
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
