"""kill -9 of `skipbridge cluster` in every step and at random moments: real processes, real files.

After each kill every reader sees exactly the rows that are committed, nothing refers to a file that
is not whole, and the same command continues with the groups that were not done.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.clustering.execution import DIRECTORY
from bridge.index.generations.replacements import read_replacements, replacements_of
from tests.support.clustered import read
from tests.support.forked_commands import MOMENTS, Commands, forked_commands
from tests.support.killed_table import Killed
from tests.tiers import examples

pytestmark = pytest.mark.full

RANDOM_KILLS = examples(4, 4, 100)
"""Besides those at every step."""
WRITES = 25
"""More than a run makes."""
KILLED = -signal.SIGKILL
PLAN = ("--by", "x", "--target", "1MiB", "--small", "1MiB")
STEPS = ("inflight", "data", "group", "ended", "shard", "replacements", "generation")
"""In their order; a run that has died at the last one has committed."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with forked_commands(tmp_path_factory.mktemp("commands")) as found:
        yield found


def test_killed_at_every_step(tmp_path: Path, commands: Commands) -> None:
    story = Killed(tmp_path, commands, random.Random(3), "abcdefghijkl")
    assert commands.run("index", "build", story.table, "--local") == 0
    before = story.check()
    schedule = ("cluster", "schedule", story.table, *PLAN)
    for moment in MOMENTS:
        assert commands.run(*schedule, die=("plan", moment, 1)) == KILLED
        assert story.check() == before
        assert story.states() == (["requested"] if moment == "after" else [])
    run = ("cluster", "run", story.table, "--local")
    kills = 0
    for kind in STEPS:
        for moment in MOMENTS:
            for number in (1, 2) if kind in ("data", "group") else (1,):
                done = story.records()
                if commands.run(*run, die=(kind, moment, number)) == KILLED:
                    kills += 1
                files = story.check()
                # All or nothing; and what is done stays as it is.
                assert files == before or all(DIRECTORY in name for name in files)
                assert done.items() <= story.records().items()
    assert kills == 27
    assert commands.run(*run) != 0  # the last kill came after the commit: no plan waits
    assert "no clustering plan of directory.t waits" in commands.said()
    assert story.states() == ["completed"] and len(story.records()) == 12
    files = story.check()
    assert len(files) == 12 and all(DIRECTORY in name for name in files)


def test_groups_that_are_done_are_not_done_again(tmp_path: Path, commands: Commands) -> None:
    story = Killed(tmp_path, commands, random.Random(4))
    assert commands.run("cluster", "schedule", story.table, *PLAN) == 0
    run = ("cluster", "run", story.table, "--local")
    assert commands.run(*run, die=("group", "after", 2)) == KILLED
    done = story.records()
    assert len(done) == 2
    before = story.new_files()
    assert commands.run(*run) == 0
    named = {state.path for group in _replaced(story) for state in group.new}
    written = story.new_files() - before
    assert len(written) <= 1 and len(named) == 3
    assert {f"file://{path}" for path in written} <= named


def _replaced(story: Killed) -> list[Any]:
    store = story.lake.store()
    held = store.latest()
    assert held is not None
    return replacements_of(read_replacements(store, held))


def test_killed_at_random_moments_beside_a_writer_and_a_refresh(
    tmp_path: Path, commands: Commands
) -> None:
    rng = random.Random(5)
    story = Killed(tmp_path, commands, rng)
    assert commands.run("index", "build", story.table, "--local") == 0
    run = ("cluster", "run", story.table, "--local", "--now", *PLAN)
    clean = ("cluster", "clean", story.table, "--retain", "0s")
    started = time.monotonic()
    assert commands.run("cluster", "schedule", story.table, *PLAN) == 0
    assert commands.run(*run[:4]) == 0
    longest = time.monotonic() - started  # where to kill; nothing is measured
    story.check()
    kills = ends = 0
    while kills < RANDOM_KILLS:
        for _ in range(rng.randrange(3)):
            story.write(rng.choice(story.lake.partition_values))
        if len(files := story.files()) > 15:
            for path in rng.sample(files, len(files) - 12):
                path.unlink()
        if rng.random() < 0.1:  # alone, since it keeps nothing for those that read meanwhile
            die = ("any", "before", rng.randrange(1, 4)) if rng.random() < 0.5 else None
            assert commands.run(*clean, die=die) in (KILLED, 0), commands.said()[-3000:]
        refresh = commands.start("index", "refresh", story.table)
        if rng.random() < 0.5:
            die = ("any", rng.choice(MOMENTS), rng.randrange(1, WRITES))
            running = commands.start(*run, die=die)
            if rng.random() < 0.5:
                story.write(rng.choice(story.lake.partition_values))
        else:
            running = commands.start(*run)
            time.sleep(rng.random() * longest)
            if rng.random() < 0.5:
                story.write(rng.choice(story.lake.partition_values))
            running.kill()
        status = running.wait()
        if rng.random() < 0.3:
            refresh.kill()
        refreshed = refresh.wait()
        assert status in (KILLED, 0) and refreshed in (KILLED, 0), commands.said()[-3000:]
        kills += status == KILLED
        ends += status == 0
        assert ends < 3 * RANDOM_KILLS + 20, "most runs end before they are killed"
        story.check()
    assert commands.run(*run) == 0
    while {"requested", "inflight", "committing"} & set(story.states()):
        assert commands.run(*run[:4]) == 0
    assert commands.run("index", "refresh", story.table) == 0
    story.check()
    rows, _ = read(story.lake, freshness="snapshot")
    assert rows == story.rows()
