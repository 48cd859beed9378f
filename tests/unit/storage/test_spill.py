"""Temporary files: those of processes that were killed go with the next run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bridge.clustering.rewriting.shuffle import Room, Shuffle, Waits
from bridge.storage.local_disk.spill import spill_directory

HOLDS = """
import sys, tempfile
from bridge.storage.local_disk.spill import spill_directory
tempfile.tempdir = sys.argv[1]
with spill_directory() as made:
    (made / "0.arrow").write_bytes(b"rows")
    print("made", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_killed_process_leaves_nothing_for_ever(scratch: Path) -> None:
    command = (sys.executable, "-c", HOLDS, str(scratch))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None and running.stdout.readline() == b"made\n"
        (theirs,) = scratch.iterdir()
        with spill_directory() as mine:
            assert {mine, theirs} == set(scratch.iterdir())  # it lives
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert (theirs / "0.arrow").exists()
    with spill_directory() as mine:
        assert list(scratch.iterdir()) == [mine]
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("last", range(4))
def test_a_killed_deletion_is_finished_by_the_next_run(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """Whichever file was deleted last, the lock is still there to find the others by."""
    unlink, deleted = os.unlink, list[str]()

    def dying(name: str, *, dir_fd: int) -> None:
        if len(deleted) == last:
            raise OSError("dead")
        deleted.append(name)
        unlink(name, dir_fd=dir_fd)

    with spill_directory() as made:
        for name in ("a.arrow", "lock.arrow", "z.arrow"):
            (made / name).write_bytes(b"rows")
        monkeypatch.setattr("os.unlink", dying)
    assert len(deleted) == last and list(scratch.iterdir()) == [made]
    monkeypatch.setattr("os.unlink", unlink)
    with spill_directory() as mine:
        assert list(scratch.iterdir()) == [mine]


def test_a_link_is_not_followed(scratch: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    for name in ("lock", "rows"):
        (other / name).touch()
    (scratch / "skipbridge-spill-link").symlink_to(other)
    with spill_directory():
        assert {path.name for path in other.iterdir()} == {"lock", "rows"}


def test_directories_of_others_stay(scratch: Path) -> None:
    other = scratch / "skipbridge-spill-strange"
    other.mkdir()
    with spill_directory():
        assert other.exists()


def test_rows_that_spill_leave_no_file(scratch: Path) -> None:
    table = pa.table({"x": list(range(100))})
    order = np.arange(100)[::-1].astype(np.int64)
    with Waits(Room(0)) as waits:
        shuffle = Shuffle(order, [100], [0, 50, 100], waits)
        shuffle.add(0, table)
        assert len(list(scratch.glob("*/0.arrow"))) == 1
        assert shuffle.gather(0)["x"].to_pylist() == list(range(99, 49, -1))
    assert not list(scratch.iterdir())
