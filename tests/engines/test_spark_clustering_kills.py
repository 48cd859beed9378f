"""kill -9 of Spark's driver while it clusters: readers see the same rows, and a run continues."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from bridge.clustering.execution import DIRECTORY
from tests.support.forked_commands import forked_commands
from tests.support.killed_table import Killed

pytestmark = [
    pytest.mark.engine,
    pytest.mark.nightly,
]
STEPS = [
    ("inflight", "after", 1),
    ("group", "before", 1),
    ("group", "after", 1),
    ("ended", "after", 1),
    ("replacements", "after", 1),
    ("generation", "aside", 1),
]


def test_the_driver_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    with forked_commands(tmp_path) as commands:
        story = Killed(tmp_path, commands, random.Random(6))
        plan = ("--by", "x", "--target", "1MiB", "--small", "1MiB")
        assert commands.run("cluster", "schedule", story.table, *plan) == 0
        before = story.check()
        run = ("cluster", "run", story.table)
        for step in STEPS:
            done = story.records()
            assert commands.run(*run, die=step) == -signal.SIGKILL, commands.said()[-3000:]
            assert story.check() == before
            assert done.items() <= story.records().items()
        done = story.records()
        assert len(done) == 3
        assert commands.run(*run) == 0, commands.said()[-3000:]
        files = story.check()
        assert len(files) == 3 and all(DIRECTORY in name for name in files)
        assert story.records() == done and story.states() == ["completed"]
