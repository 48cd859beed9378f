"""Ctrl-C while Spark starts: no JVM is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.mark.parametrize("wait", [pytest.param(0.0, marks=pytest.mark.full), 0.7])
def test_no_jvm_is_left_behind(tmp_path: Path, wait: float) -> None:
    table = tmp_path / "table"
    table.mkdir()
    for number in range(3):
        pq.write_table(pa.table({"n": [number]}), table / f"{number}.parquet")
    process = subprocess.Popen(
        [sys.executable, "-m", "bridge", "index", "build", str(table), "--spark"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # A shell's background job ignores SIGINT, and its children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    started = _jvms(process.pid)
    deadline = time.monotonic() + 600
    while not started and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
        started = _jvms(process.pid)
    assert started
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    # It waits until Spark is up, which takes minutes where all else runs too.
    told, _ = process.communicate(timeout=600)
    assert process.returncode == 130 and "continues after the last commit" in told, told
    _, alive = psutil.wait_procs(started, timeout=120)
    assert not alive, alive
    assert not (table / ".skipbridge" / "generations").exists()


def _jvms(pid: int) -> list[psutil.Process]:
    try:
        children = psutil.Process(pid).children(recursive=True)
        return [child for child in children if child.name() == "java"]
    except psutil.NoSuchProcess:
        return []
