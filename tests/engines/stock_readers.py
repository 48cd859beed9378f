"""Engines without skipbridge over the 4.0.1 metastore: Spark, and Trino's hive connector."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from bridge.servers.hiveserver2 import ARTIFACTS
from bridge.servers.java import find_jdk
from bridge.servers.maven import class_path
from tests.engines.stack import ask

Rows = list[tuple[object, ...]]


def ask_trino(port: int, queries: Sequence[str]) -> list[Rows]:
    """The rows of each query in catalogue ``hive``."""
    return [[tuple(row) for row in ask(port, query, "hive")] for query in queries]


def ask_spark(uri: str, scratch: Path, queries: Sequence[str]) -> list[Rows]:
    """The rows of each query, in a process of its own (see `spark_reads`)."""
    jars = ",".join(str(jar) for jar in class_path(*ARTIFACTS))
    done = subprocess.run(
        [
            *(sys.executable, str(Path(__file__).with_name("spark_reads.py"))),
            *(uri, jars, str(scratch), *queries),
        ],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "JAVA_HOME": str(find_jdk(17, 24).home)},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [li.removeprefix("answer ") for li in done.stdout.splitlines() if li[:7] == "answer "]
    return [[tuple(row) for row in json.loads(line)] for line in lines]
