"""kill -9 of `skipbridge cluster` in every step and at random moments: real processes, real files.

After each kill every reader sees exactly the rows that are committed, nothing refers to a file that
is not whole, and the same command continues with the groups that were not done.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

from bridge.api.session import Session
from bridge.clustering.execution import DIRECTORY
from bridge.config import Config
from bridge.index.replacements import read_replacements, replacements_of
from bridge.table.model import Column
from bridge.types import BIGINT, STRING
from tests.support.clustered import read, rows_in, timeline_of
from tests.support.forked_commands import MOMENTS, Commands, forked_commands
from tests.support.lake import Lake, age

NIGHTLY = os.environ.get("SKIPBRIDGE_LAWS") == "nightly"
RANDOM_KILLS = 200 if NIGHTLY else 4
FORMATS = ["parquet", "orc"] if NIGHTLY else ["parquet"]
KILLED = -signal.SIGKILL
PLAN = ("--by", "x", "--target", "1MiB", "--small", "1MiB")
STEPS = ("inflight", "data", "group", "ended", "shard", "replacements", "generation")
"""In their order; a run that has died at the last one has committed."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    directory = tmp_path_factory.mktemp("commands")
    environment = {
        "SKIPBRIDGE_CACHE": str(directory / "cache"),
        "SKIPBRIDGE_CONFIG": str(directory / "none.toml"),
    }
    with forked_commands(directory, environment) as found:
        yield found


class Killed:
    """A table that is clustered by processes that die, and what must hold of it meanwhile."""

    def __init__(
        self, root: Path, commands: Commands, format: str, rng: random.Random, days: str = "abc"
    ) -> None:
        self.lake = Lake(
            root,
            (Column("x", BIGINT), Column("s", STRING)),
            (Column("day", STRING),),
            format=format,
        )
        self.lake.partition_values = [(day,) for day in days]
        self.commands, self.rng = commands, rng
        self.table = root / "t"
        self.written = 0
        for values in self.lake.partition_values:
            for _ in range(2):
                self.write(values)

    def write(self, values: tuple[str | None, ...]) -> None:
        path = self.lake.directory(values) / f"f{self.written}.{self.lake.format}"
        path.parent.mkdir(parents=True, exist_ok=True)
        x = [self.rng.randrange(100) for _ in range(50)]
        table = pa.table({"x": pa.array(x, pa.int64()), "s": [f"s{v % 7}" for v in x]})
        hidden = path.with_name(f".{path.name}")  # no reader sees half of a file
        (pq.write_table if self.lake.format == "parquet" else po.write_table)(table, hidden)
        self.written += 1
        age(hidden, 100_000 - self.written)
        hidden.rename(path)

    def files(self) -> list[Path]:
        return sorted(self.table.glob(f"day=*/*.{self.lake.format}"))

    def rows(self) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for path in self.files():
            name = path.parent.name
            found.update((name, *map(repr, row.values())) for row in rows_in(path))
        return found

    def check(self) -> set[str]:
        """All readers see the committed rows; returns the files that they read."""
        expected = self.rows()
        rows, files = read(self.lake)
        assert rows == expected
        with Session(Config()) as session:
            found = session.table(str(self.table)).scan().to_arrow().to_pylist()
        assert Counter(
            (f"day={row['day']}", repr(row["x"]), repr(row["s"])) for row in found
        ) == Counter(expected)
        self.check_references()
        return files

    def check_references(self) -> None:
        """What a generation or a record of a group names is in storage as it says."""
        store = self.lake.store()
        held = store.latest()
        assert held is not None and store.lacks(held.blobs()) is None
        replaced = replacements_of(read_replacements(store, held))
        named = [state for group in replaced for state in group.new]
        timeline = timeline_of(self.lake)
        for state in timeline.states(held):
            for group in timeline.plan(state.instant).groups:
                result = timeline.result(state.instant, group.id)
                named += () if result is None else result.new
        for file in named:
            stat = self.lake.storage.stat(file.path)
            assert stat is not None and (stat.size, stat.modified) == (file.size, file.modified)

    def records(self) -> dict[str, bytes]:
        """The records of groups that are done."""
        found = (self.table / ".skipbridge/clustering").glob("*.group-*.json")
        return {path.name: path.read_bytes() for path in found}

    def new_files(self) -> set[str]:
        """Files of plans, without those that were written aside."""
        return {str(path) for path in (self.table / DIRECTORY).rglob(f"c*.{self.lake.format}")}

    def states(self) -> list[str]:
        return [s.state for s in timeline_of(self.lake).states(self.lake.store().latest())]


@pytest.mark.parametrize("format", FORMATS)
def test_killed_at_every_step(tmp_path: Path, commands: Commands, format: str) -> None:
    story = Killed(tmp_path, commands, format, random.Random(3), "abcdefghijkl")
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
    story = Killed(tmp_path, commands, "parquet", random.Random(4))
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


@pytest.mark.parametrize("format", FORMATS)
def test_killed_at_random_moments_beside_a_writer_and_a_refresh(
    tmp_path: Path, commands: Commands, format: str
) -> None:
    rng = random.Random(5)
    story = Killed(tmp_path, commands, format, rng)
    assert commands.run("index", "build", story.table, "--local") == 0
    run = ("cluster", "run", story.table, "--local", "--now", *PLAN)
    started = time.monotonic()
    assert commands.run("cluster", "schedule", story.table, *PLAN) == 0
    assert commands.run(*run[:4]) == 0
    longest = 2 * (time.monotonic() - started)  # where to kill; nothing is measured
    story.check()
    kills = ends = 0
    for _ in range(RANDOM_KILLS * 3):
        for _ in range(rng.randrange(3)):
            story.write(rng.choice(story.lake.partition_values))
        if len(files := story.files()) > 15:
            for path in rng.sample(files, len(files) - 12):
                path.unlink()
        refresh = commands.start("index", "refresh", story.table)
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
        story.check()
        if kills == RANDOM_KILLS:
            break
    assert kills == RANDOM_KILLS or ends > kills
    assert commands.run(*run) == 0
    while {"requested", "inflight", "committing"} & set(story.states()):
        assert commands.run(*run[:4]) == 0
    assert commands.run("index", "refresh", story.table) == 0
    story.check()
    rows, _ = read(story.lake, freshness="snapshot")
    assert rows == story.rows()
