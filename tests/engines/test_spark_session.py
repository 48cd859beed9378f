"""Spark's JVM: what other users of the machine see of its settings."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.engine]
PROGRAM = """
import psutil
from bridge.runtime.spark_session import open_session

given = {"spark.hadoop.fs.s3a.secret.key": "hidden-1", "spark.driver.memory": "600m"}
session = open_session("local[1]", settings=given)
context = session.sparkContext
assert context.getConf().get("spark.hadoop.fs.s3a.secret.key") == "hidden-1"
assert context._jsc.hadoopConfiguration().get("fs.s3a.secret.key") == "hidden-1"
for process in psutil.Process().children(recursive=True):
    if process.status() != psutil.STATUS_ZOMBIE:
        print("COMMAND", process.cmdline())
session.stop()
"""


def test_secrets_are_not_on_the_command_line() -> None:
    pytest.importorskip("pyspark")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    commands = [line for line in done.stdout.splitlines() if line.startswith("COMMAND")]
    assert any("-Xmx600m" in each for each in commands)  # what the JVM needs is there
    assert commands and not any("hidden-1" in each for each in commands)
