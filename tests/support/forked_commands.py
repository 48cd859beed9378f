"""Commands of skipbridge in processes of their own that start in milliseconds, to be killed.

One process imports everything once and forks for each command. A forked process is a real one: it
runs the command line, writes real files, and ends by SIGKILL, either from outside or at a step that
was named: a write of a file of some kind, before it, with the file written aside, or after it. It
may also stop there, and go on when others have done something.
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
KINDS = {
    "plan": r"\.requested\.json$",
    "inflight": r"\.inflight\.json$",
    "data": r"/\.skipbridge_clustered/",
    "group": r"\.group-\d+\.json$",
    "ended": r"\.ended\.json$",
    "replacements": r"-replacements\.shard$",
    "generation": r"/generations/\d+\.json$",
    "shard": r"/shards/",
    "version": r"/_segments/versions/",
    "files": r"/_segments/files/",
    "view": r"/_segments/views/",
}
"""The files that commands write, by a pattern of their names; the first that matches counts."""
MOMENTS = ("before", "aside", "after")
_HANGS = 900
"""Seconds after which a command tells where its threads are, and ends."""


def kind_of(uri: str) -> str:
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, uri)), "other")


class Running:
    """A command that was started."""

    def __init__(self, commands: Commands, pid: int) -> None:
        self._commands, self.pid = commands, pid

    def kill(self) -> None:
        """Sends SIGKILL; nothing happens if it has ended."""
        os.kill(self.pid, signal.SIGKILL)  # not reaped yet, so the id is still its own

    def resume(self) -> None:
        """Lets a command go on that has stopped."""
        os.kill(self.pid, signal.SIGCONT)

    def wait(self) -> int:
        """Its exit status; the negative number of the signal that ended or stopped it."""
        return int(self._commands.ask({"wait": self.pid}))


class Commands:
    """Starts commands; see `forked_commands`."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._lock = threading.Lock()
        self.log = log

    def start(
        self, *words: object, die: tuple[str, str, int] | None = None, stop: bool = False
    ) -> Running:
        """Starts a command.

        Args:
            die: the kind of a file or ``any``, a moment of `MOMENTS`, and which write of that kind
                (from 1).
            stop: it stops there instead, until `Running.resume`.
        """
        number = signal.SIGSTOP if stop else signal.SIGKILL
        asked = {"words": [str(word) for word in words], "die": die, "signal": number}
        return Running(self, int(self.ask(asked)))

    def run(self, *words: object, die: tuple[str, str, int] | None = None) -> int:
        return self.start(*words, die=die).wait()

    def ask(self, question: Mapping[str, Any]) -> Any:
        with self._lock:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            assert answer, f"the process that forks has ended, see {self.log}"
            return json.loads(answer)

    def said(self) -> str:
        """What all commands have printed."""
        return self.log.read_text(errors="replace")


@contextmanager
def forked_commands(
    directory: Path, settings: Mapping[str, str] | None = None
) -> Iterator[Commands]:
    """Commands with a cache of their own; their output goes to a file there.

    Args:
        settings: variables of their environment; None: no settings.
    """
    environment = {
        **(settings or {}),
        "SKIPBRIDGE_CACHE": str(directory / "cache"),
        "SKIPBRIDGE_CONFIG": str(directory / "none.toml"),
    }
    log = directory / "commands.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forked_commands"],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
        )
    try:
        yield Commands(process, log)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def _install(ends: int, kind: str, moment: str, number: int) -> None:
    """Makes this process get a signal at a write of storage.

    An object store has no file that is written aside.
    """
    from bridge.storage.local_disk import local
    from bridge.storage.object_store.objectstore import ObjectStorage

    lock, seen = threading.Lock(), [0]
    now = threading.local()
    aside = local._write_aside

    def write_aside(path: Path, content: bytes) -> Path:
        found = aside(path, content)
        if getattr(now, "here", False) and moment == "aside":
            now.here = False
            os.kill(os.getpid(), ends)
        return found

    def dying(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, uri: Any, *rest: Any) -> Any:
            with lock:
                counts = kind in ("any", kind_of(str(uri)))
                seen[0] += counts
                now.here = counts and seen[0] == number
            here = now.here
            if here and moment == "before":
                now.here = here = False
                os.kill(os.getpid(), ends)
            found = method(self, uri, *rest)
            if here and now.here:
                os.kill(os.getpid(), ends)
            return found

        return call

    local._write_aside = write_aside
    for storage in (local.LocalStorage, ObjectStorage):
        for name in ("put", "put_if_absent", "copy", "delete"):
            setattr(storage, name, dying(getattr(storage, name)))


def _child(words: Sequence[str], die: Sequence[Any] | None, ends: int) -> None:
    from bridge.app.cli.main import main

    faulthandler.dump_traceback_later(_HANGS, exit=True)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["skipbridge", *words]
    if die is not None:
        _install(ends, *die)
    main()


def serve() -> None:
    """Forks for each line of standard input, until it ends."""
    import pyarrow.compute
    import pyarrow.orc
    import pyarrow.parquet  # noqa: F401

    import bridge.clustering.commands.run
    import bridge.clustering.execution
    import bridge.clustering.planning.advice
    import bridge.formats.parquet.rewriting
    import bridge.indexing.table
    import bridge.segments.commands.add
    import bridge.segments.commands.compaction
    import bridge.segments.commands.refresh
    import bridge.segments.views.build  # noqa: F401

    assert threading.active_count() == 1
    for line in sys.stdin.buffer:
        question = json.loads(line)
        if "wait" in question:
            _, status = os.waitpid(question["wait"], os.WUNTRACED)
            stopped = os.WIFSTOPPED(status)
            answer = -os.WSTOPSIG(status) if stopped else os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if not answer:
                _child(question["words"], question["die"], question["signal"])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
