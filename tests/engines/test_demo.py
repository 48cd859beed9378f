"""The demo as the README shows it: the command itself, to its end and interrupted."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

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
        for title in ("skipbridge", "nothing skipped, no partition either", "no index, a split a file")
    }
    assert all(len(found) == QUERIES for found in ways.values()), ways
    for ours, off, by_file in list(zip(*ways.values(), strict=True))[:3]:
        assert ours[0] < off[0] // 10 and ours[0] < by_file[0], ways
        assert by_file[0] == by_file[1], "a split for each file"
    assert len(re.findall(r"^beside .*: [\d,]+ of [\d,]+ files not opened", text, re.M)) == QUERIES
    page = (out / "explain.html").read_text("utf-8")
    assert page.count("<table") == 2 * QUERIES and "files opened" in page
    assert not left_behind(out)


@pytest.mark.parametrize("stage", ["3/7", "6/7"] if nightly() else ["3/7"])
def test_an_interrupted_demo_stops_what_it_started(tmp_path: Path, stage: str) -> None:
    out = tmp_path / "demo"
    process = start(out)
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if line.startswith(stage):
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 130, "".join(seen) + rest
    assert "stopped" in rest
    assert not left_behind(out)
