"""27: a damaged file is unknown; it neither ends the process nor has a bound that is wrong.

``--tier=nightly`` damages 100,000 footers, 10,000 Parquet files, 20,000 ORC files. Two in
10,000 of the ORC files end Arrow's own reader, and the child process that it runs in; another one
keeps it busy until its time is up.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bridge.formats.orc import statistics as orc_statistics
from bridge.formats.parquet.statistics import FooterReader
from bridge.index.building.collect import FileTask, Reading, ThreadCollector
from bridge.kernel.errors import FileCorrupt
from bridge.storage.child import ChildReader
from bridge.storage.routed import open_storage
from tests.support.damage import damaged_orc, orc_files, parquet_files, wrong_bounds
from tests.tiers import nightly

ENDS_THE_READER, NEVER_ENDS = (4564, 7358), 19125


def test_27_whole_files_are_told_right() -> None:
    for raw in parquet_files():
        footer = FooterReader().read(raw, len(raw), "f")
        assert wrong_bounds(footer.leaves, footer.rows, raw) == []
        assert any(leaf.lower is not None for leaf in footer.leaves)


def test_27_orc_files_that_end_their_reader(tmp_path: Path) -> None:
    """Arrow 26 adds up the lengths of these files' texts to less than nothing."""
    storage, tasks = open_storage(), []
    for seed in (None, *ENDS_THE_READER, None):
        path = tmp_path / str(len(tasks))
        path.write_bytes(orc_files()[0] if seed is None else damaged_orc(random.Random(seed)))
        found = storage.stat(f"file://{path}")
        assert found is not None
        uri = f"file://{path}"
        tasks.append(FileTask(len(tasks), uri, found.size, found.modified, format="orc"))
    (collected,) = ThreadCollector(storage).collect(tasks, Reading())
    problems = dict(
        zip(*(collected.files[c].to_pylist() for c in ("file", "problem")), strict=True)
    )
    assert [problems.pop(0), problems.pop(len(tasks) - 1)] == [None, None]
    assert len(problems) == len(ENDS_THE_READER)
    for number, problem in problems.items():
        assert problem.startswith(f"FILE_CORRUPT: file://{tmp_path}/{number}: "), problem


def test_27_an_orc_file_that_never_ends(tmp_path: Path) -> None:
    """Arrow 26 reads this one for minutes at least."""
    path = tmp_path / "f"
    path.write_bytes(damaged_orc(random.Random(NEVER_ENDS)))
    reader = ChildReader(orc_statistics.read, cpu_seconds=1)
    with pytest.raises(FileCorrupt):
        reader.read(open_storage(), f"file://{path}", path.stat().st_size)
    reader.close()


@pytest.mark.parametrize(
    ("what", "few", "many"),
    [("footer", 1500, 100_000), ("data", 150, 10_000), ("orc", 300, 20_000)],
)
def test_27_damaged_files(what: str, few: int, many: int) -> None:
    count = many if nightly() else few
    first, end = 0, count
    tally: Counter[str] = Counter()
    while first < end:
        part = min(5000, end - first)
        command = [sys.executable, "-m", "tests.support.damage", what, str(first), str(part)]
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
