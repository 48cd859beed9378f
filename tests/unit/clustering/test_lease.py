"""One process at a time is at a clustering of a Hudi table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from bridge.clustering.lease import STALE, lease
from bridge.kernel.config import Config
from bridge.kernel.errors import ClusteringPending
from bridge.runtime.compose import storage_of

INSTANT = "2" * 17


def _file(root: Path) -> Path:
    return root / "clustering" / f"lease-{INSTANT}-00001.json"


def test_a_second_one_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    storage, root = storage_of(Config()), f"file://{tmp_path}"
    with lease(storage, root, INSTANT):
        with pytest.raises(ClusteringPending, match=f"process {os.getpid()} on"):
            lease(storage, root, INSTANT).__enter__()
        with lease(storage, root, "3" * 17):
            pass
    assert not _file(tmp_path).exists()
    with lease(storage, root, INSTANT):
        assert _file(tmp_path).exists()


@pytest.mark.parametrize(
    ("change", "free"),
    [
        ({}, False),
        ({"pid": 0}, True),  # replaced by that of a process that has ended
        ({"pid": 0, "pids": "of another container"}, False),
        ({"pid": 0, "pids": ""}, False),
        ({"host": "elsewhere"}, False),
        ({"host": "elsewhere", "clock": -STALE - 5}, False),
        ({"host": "elsewhere", "clock": STALE + 5}, False),
        ({"host": "elsewhere", "at": -STALE - 5}, True),
        ({"at": -STALE - 5}, True),
        ({"at": None}, True),
    ],
)
def test_whose_holder_has_died_is_free(tmp_path: Path, change: dict[str, Any], free: bool) -> None:
    storage, root = storage_of(Config()), f"file://{tmp_path}"
    with lease(storage, root, INSTANT):
        held = json.loads(_file(tmp_path).read_text())
    age = 0.0
    if "clock" in change:  # it was renewed just now, and its clock is wrong
        change = {**change, "at": time.time() + change.pop("clock")}
    elif "at" in change:
        age = -(change["at"] or 0)
        change = {**change, "at": None if change["at"] is None else time.time() + change["at"]}
    if change.get("pid") == 0:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        change = {**change, "pid": ended.pid}
    _file(tmp_path).write_text(json.dumps({**held, **change}))
    os.utime(_file(tmp_path), (time.time() - age,) * 2)
    if free:
        with lease(storage, root, INSTANT):
            pass
    else:
        with pytest.raises(ClusteringPending):
            lease(storage, root, INSTANT).__enter__()


def test_of_many_at_once_one_has_it(tmp_path: Path) -> None:
    storage, root = storage_of(Config()), f"file://{tmp_path}"
    _file(tmp_path).parent.mkdir(parents=True)
    _file(tmp_path).write_text("damaged")
    held, most, done = [0], [0], threading.Lock()
    entered, others = threading.Event(), threading.Event()

    def one() -> None:
        try:
            with lease(storage, root, INSTANT):
                with done:
                    held[0] += 1
                    most[0] = max(most[0], held[0])
                entered.set()
                others.wait(60)
                with done:
                    held[0] -= 1
        except ClusteringPending:
            pass

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert entered.wait(60)
    while sum(thread.is_alive() for thread in threads) > 1:  # all others are refused
        time.sleep(0.01)
    others.set()
    for thread in threads:
        thread.join()
    assert most[0] == 1 and list((tmp_path / "clustering").iterdir()) == []
