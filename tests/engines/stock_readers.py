"""Engines without skipbridge over the 4.0.1 metastore: Spark, and Trino's hive connector."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bridge.servers.java import find_jdk
from bridge.servers.maven import class_path
from tests.engines.stack import ask
from tests.support.servers.hiveserver2 import ARTIFACTS

Rows = list[tuple[object, ...]]


def ask_trino(port: int, queries: Sequence[str]) -> list[Rows]:
    """The rows of each query in catalog ``hive``."""
    return [[tuple(row) for row in ask(port, query, "hive")] for query in queries]


def ask_spark(uri: str, scratch: Path, queries: Sequence[str]) -> list[Rows]:
    """The rows of each query, in a process of its own (see `spark_reads`)."""
    command = [*_spark(uri, scratch), *queries]
    done = subprocess.run(command, capture_output=True, text=True, env=_environment(), check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [li.removeprefix("answer ") for li in done.stdout.splitlines() if li[:7] == "answer "]
    return [[tuple(row) for row in json.loads(line)] for line in lines]


class RunningSpark:
    """The same process, which lives on and is asked query by query.

    Args:
        uri: of the metastore.
    """

    def __init__(self, uri: str, scratch: Path) -> None:
        self._log = (scratch / "spark.log").open("w+")
        self._process = subprocess.Popen(
            _spark(uri, scratch),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            bufsize=1,
            env=_environment(),
        )

    def begin(self, query: str) -> None:
        """Starts a query, which `end` answers."""
        assert self._process.stdin is not None
        self._process.stdin.write(query + "\n")

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> Rows:
        """The rows of the query that was begun first."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("answer "):
                return [tuple(row) for row in json.loads(line.removeprefix("answer "))]
            if line.startswith("error "):
                raise AssertionError(json.loads(line.removeprefix("error ")))
        self._log.seek(0)
        raise AssertionError(self._log.read()[-3000:])

    def ask(self, query: str) -> Rows:
        self.begin(query)
        return self.end()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._log.close()


def _spark(uri: str, scratch: Path) -> list[str]:
    jars = ",".join(str(jar) for jar in class_path(*ARTIFACTS))
    program = Path(__file__).with_name("spark_reads.py")
    return [sys.executable, str(program), uri, jars, str(scratch)]


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "JAVA_HOME": str(find_jdk(17, 24).home)}
