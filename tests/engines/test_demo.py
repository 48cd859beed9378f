"""The demo as the README shows it: the command itself, to its end and interrupted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bridge.servers.java import find_jdk
from bridge.servers.maven import artifact_file, parse_artifact
from tests.support.iceberg_spark import SPARK_41, python_with
from tests.tiers import nightly

pytestmark = pytest.mark.full

QUERIES = 4


def start(out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "bridge", "demo", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def left_behind(out: Path) -> list[str]:
    """Command lines of processes that still work in the demo's directory."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if str(out) in words:
            found.append(words[:200])
    return found


def test_the_demo_shows_pruning_what_it_saved_and_the_same_rows(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    process = start(out)
    text, _ = process.communicate(timeout=900)
    assert process.returncode == 0, text
    assert text.count("rows, the same in each way") == QUERIES
    kept = [(int(a), int(b)) for a, b in re.findall(r"files minmax +(\d+) -> +(\d+)", text)]
    assert len(kept) >= 3
    assert all(left < total // 10 for total, left in kept), kept
    ways = {
        title: [
            tuple(int(n.replace(",", "")) for n in found)
            for found in re.findall(rf"^{title} +[\d.]+ m?s +([\d,]+) .*? ([\d,]+)$", text, re.M)
        ]
        for title in (
            "skipbridge",
            "nothing skipped, no partition either",
            "no index, a split a file",
        )
    }
    assert all(len(found) == QUERIES for found in ways.values()), ways
    for ours, off, by_file in list(zip(*ways.values(), strict=True))[:3]:
        assert ours[0] < off[0] // 10 and ours[0] < by_file[0], ways
        assert by_file[0] == by_file[1], "a split for each file"
    assert len(re.findall(r"^beside .*: [\d,]+ of [\d,]+ files not opened", text, re.M)) == QUERIES
    page = (out / "explain.html").read_text("utf-8")
    assert page.count("<table") == 2 * QUERIES and "files opened" in page
    assert not left_behind(out)


@pytest.mark.parametrize("stage", ["3/5", "5/5"] if nightly() else ["3/5"])
def test_an_interrupted_demo_stops_what_it_started(tmp_path: Path, stage: str) -> None:
    out = tmp_path / "demo"
    process = start(out)
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if line.startswith(stage):
            break
    else:
        raise AssertionError("".join(seen))
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 130, "".join(seen) + rest
    assert "stopped" in rest
    assert not left_behind(out)


def test_the_lines_for_spark_and_pyiceberg_run_as_they_are_pasted(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    words = [sys.executable, "-m", "bridge", "demo", "spark", "--out", str(out), "--http-port", "0"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path
    )
    try:
        assert process.stdout is not None
        seen: list[str] = []
        for line in process.stdout:
            seen.append(line)
            if line.startswith("serving on "):
                break
        else:
            raise AssertionError("".join(seen))
        told = "".join(seen)
        begin, middle, end = (
            told.index(mark) for mark in ("# PySpark", "# PyIceberg", "serving on ")
        )
        found = _pasted(Path(sys.executable), told[middle:end], tmp_path)
        assert "carrier" in found and "dep_delay" in found, found
        artifact_file(parse_artifact(SPARK_41.runtime))  # Spark finds it in Maven's repository
        found = _pasted(python_with("pyspark", SPARK_41.pyspark), told[begin:middle], tmp_path)
        rows = re.findall(r"^\|\s*(\w\w)\|\s*(\d+)\|\s*\w+\|\s*(\d+)\|$", found, re.M)
        assert 0 < len(rows) <= 20, found
        assert all(int(delay) > 60 for _, _, delay in rows)
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
    assert process.returncode == 130 and "stopped" in rest
    assert not left_behind(out)


def _pasted(python: Path, lines: str, scratch: Path) -> str:
    environment = {**os.environ, "JAVA_HOME": str(find_jdk(17).home)}
    for name in ("SPARK_HOME", "PYTHONPATH", "PYSPARK_PYTHON"):
        environment.pop(name, None)
    done = subprocess.run(
        [str(python), "-"],
        input=lines,
        env=environment,
        cwd=scratch,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
