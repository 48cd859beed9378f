"""27: a damaged file is unknown; it neither ends the process nor has a bound that is wrong.

``SKIPBRIDGE_LAWS=nightly`` damages 100,000 footers, 10,000 Parquet files, 4,000 ORC files.
A known fault: of the next 5,000 ORC files one ends the process within Arrow's own reader.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from bridge.index.footer import FooterReader
from tests.rules.damage import parquet_files, wrong_bounds

_NIGHTLY = os.environ.get("SKIPBRIDGE_LAWS") == "nightly"


def test_27_whole_files_are_told_right() -> None:
    for raw in parquet_files():
        footer = FooterReader().read(raw, len(raw), "f")
        assert wrong_bounds(footer.leaves, footer.rows, raw) == []
        assert any(leaf.lower is not None for leaf in footer.leaves)


@pytest.mark.parametrize(
    ("what", "few", "many"),
    [("footer", 1500, 100_000), ("data", 150, 10_000), ("orc", 300, 4_000)],
)
def test_27_damaged_files(what: str, few: int, many: int) -> None:
    count = many if _NIGHTLY else few
    first, end = 0, count
    tally: Counter[str] = Counter()
    while first < end:
        part = min(5000, end - first)
        command = [sys.executable, "-m", "tests.rules.damage", what, str(first), str(part)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        died = "" if done.returncode >= 0 else signal.Signals(-done.returncode).name
        assert done.returncode == 0, f"{died} over {what} {lines[-1:]}: {done.stderr[-2000:]}"
        for line in lines:
            outcome = line.partition(" ")[2]
            assert not outcome.startswith(("WRONG", "RAISED")), (what, line)
            tally[outcome] += 1
        first += part
    print(what, dict(tally))
    assert tally["corrupt"] > count // 20
    assert tally["right"] > count // 20
