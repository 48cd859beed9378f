"""kill -9 of `skipbridge segment` in every step and at random moments: real processes, real files.

A killed command leaves the table as it was, or as the whole command leaves it; the same command
runs afterwards, and no fact file is ever touched.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.config import Config
from bridge.kernel.errors import FileChanged
from bridge.segments.commands import manage
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.segments.log import SegmentLog
from tests.support.forked_commands import MOMENTS, Commands, forked_commands
from tests.tiers import examples, nightly

pytestmark = pytest.mark.full

RANDOM_KILLS = examples(4, 4, 100)
KILLED = -signal.SIGKILL
STEPS = ("files", "view", "shard", "generation", "version")
INDEXED = """
CREATE INDEX m ON `{0}` AS 'minmax';
CREATE INDEX b ON `{0}` (s) AS 'bloomfilter';
CREATE MATERIALIZED VIEW hot ON `{0}` (x) SORT BY (x);
CREATE INDEX hb ON `{0}`.hot (x) AS 'bloomfilter'
"""
Segments = dict[str, frozenset[str]]
"""The files of each segment that queries read."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with forked_commands(tmp_path_factory.mktemp("commands")) as found:
        yield found


class Story:
    """A table with indexes and a view, whose commands die."""

    def __init__(self, root: Path, commands: Commands) -> None:
        self.root, self.table, self.commands = root, root / "t", commands
        self.written = 0
        self.log = SegmentLog(LocalStorage(), f"file://{self.table}")
        create = f"CREATE TABLE `{self.table}` (x bigint, s string) STORED AS parquet;"
        self.done("sql", "--local", create + INDEXED.format(self.table))

    def done(self, *words: object) -> None:
        assert self.commands.run(*words) == 0, self.commands.said()[-3000:]

    def directory(self) -> Path:
        """New facts: two files."""
        self.written += 1
        where = self.root / "facts" / f"d{self.written}"
        for part in range(2):
            self.write(where / f"{part}.parquet", 100 * self.written + 10 * part)
        return where

    def write(self, path: Path, first: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = {"x": pa.array(range(first, first + 5), pa.int64()), "s": [f"s{first}"] * 5}
        pq.write_table(pa.table(rows), path)
        self.written += 1
        os.utime(path, (1.6e9 + self.written, 1.6e9 + self.written))

    def add(self) -> None:
        self.done("segment", "add", self.table, self.directory(), "--local")

    def compaction(self, ids: Iterable[str]) -> tuple[object, ...]:
        where = f"WHERE SEGMENT.ID IN ({', '.join(ids)})"
        return ("sql", f"ALTER TABLE `{self.table}` COMPACT 'CUSTOM' {where}")

    def segments(self) -> Segments:
        return {
            s.id: frozenset(self.log.read_files(s.files).files.paths.to_pylist())
            for s in self.log.latest().readable
        }

    def version(self) -> int:
        return self.log.latest().version

    def check(self, changed: Path | None = None) -> None:
        """Every query has the rows of the committed files, by facts, index and view."""
        files = sorted(file for held in self.segments().values() for file in held)
        with bridge.connect() as session:
            table = session.table(str(self.table))
            if changed is not None:
                with pytest.raises(FileChanged):
                    table.scan(columns=["s"]).to_arrow()
                return
            rows = sorted(v for f in files for v in pq.read_table(f[7:])["x"].to_pylist())
            assert sorted(table.scan().to_arrow()["x"].to_pylist()) == rows
            assert sorted(table.scan(columns=["x"]).to_arrow()["x"].to_pylist()) == rows
            for value in random.Random(len(rows)).sample(rows, min(len(rows), 3)):
                found = table.scan(f"x = {value} AND s = 's{value // 10 * 10}'")
                assert found.to_arrow()["x"].to_pylist() == [value]
                assert found.explain().files_kept <= 1

    def facts(self) -> dict[str, tuple[int, str]]:
        return {
            str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
            for path in sorted((self.root / "facts").rglob("*.parquet"))
        }

    def killed_at_each_step(
        self, words: Callable[[], tuple[object, ...]], after: Callable[[Segments], Segments]
    ) -> int:
        """Runs a command until it is through, killing it at each step.

        Args:
            words: the command, made anew after it has done its work.
            after: what the whole command makes of the segments.
        """
        kills = 0
        given = words()
        for kind in STEPS:
            for moment in MOMENTS if nightly() or kind == "version" else ("aside",):
                before, version = self.segments(), self.version()
                facts = self.facts()
                died = self.commands.run(*given, die=(kind, moment, 1)) == KILLED
                kills += died
                committed = not died or (kind == "version" and moment == "after")
                assert (self.version() > version) == committed, (given, kind, moment)
                wanted = after(before) if committed else before
                assert set(self.segments().values()) == set(wanted.values())
                self.check()
                assert self.facts() == facts
                if committed:
                    given = words()
        return kills


def test_killed_at_every_step(tmp_path: Path, commands: Commands) -> None:
    story = Story(tmp_path, commands)
    for _ in range(3):
        story.add()
    story.check()
    added: list[frozenset[str]] = []

    def add() -> tuple[object, ...]:
        where = story.directory()
        added.append(frozenset(f"file://{path}" for path in where.iterdir()))
        return ("segment", "add", story.table, where, "--local")

    # Lists of files, the view, its index and that of the facts, the commit before and after.
    assert story.killed_at_each_step(add, lambda held: {**held, "new": added[-1]}) >= 7

    def two() -> list[str]:
        return list(story.segments())[:2]

    def compact() -> tuple[object, ...]:
        return story.compaction(two())

    def merged(held: Segments) -> Segments:
        first, second, *others = held.values()
        return {"merged": first | second, **{str(i): each for i, each in enumerate(others)}}

    assert story.killed_at_each_step(compact, merged) >= 5

    def delete() -> tuple[object, ...]:
        return ("segment", "delete", story.table, list(story.segments())[-1])

    def without_last(held: Segments) -> Segments:
        return dict(list(held.items())[:-1])

    story.add()
    for moment in MOMENTS:
        before, version = story.segments(), story.version()
        assert commands.run(*delete(), die=("version", moment, 1)) == KILLED
        gone = moment == "after"
        assert story.version() == version + gone
        assert story.segments() == (without_last(before) if gone else before)
        story.check()
    held = story.segments()
    clean = ("sql", f"CLEAN FILES FOR TABLE `{story.table}` OPTIONS('force'='true')")
    for moment in MOMENTS:
        assert commands.run(*clean, die=("version", moment, 1)) == KILLED
        assert story.segments() == held
        story.check()
    story.done(*clean)
    assert story.segments() == held
    story.check()


def test_a_refresh_that_is_killed(tmp_path: Path, commands: Commands) -> None:
    story = Story(tmp_path, commands)
    story.add()
    story.add()
    changed = next((tmp_path / "facts").rglob("*.parquet"))
    story.write(changed, 5000)
    refresh = ("segment", "refresh", story.table, "--local")
    kills = 0
    for kind in STEPS:
        for moment in MOMENTS if nightly() or kind == "version" else ("aside",):
            version = story.version()
            if commands.run(*refresh, die=(kind, moment, 1)) != KILLED:
                continue
            kills += 1
            done = kind == "version" and moment == "after"
            assert story.version() == version + done
            story.check(None if done else changed)
    assert kills >= 4
    story.check()
    assert len(story.segments()) == 2


def test_killed_at_random_moments(tmp_path: Path, commands: Commands) -> None:
    rng = random.Random(7)
    story = Story(tmp_path, commands)
    started = time.monotonic()
    story.add()
    longest = time.monotonic() - started  # where to kill; nothing is measured
    story.add()
    kills = 0
    for _ in range(RANDOM_KILLS * 3):
        before = story.segments()
        where = story.directory()
        facts = story.facts()
        running = commands.start("segment", "add", story.table, where, "--local")
        time.sleep(rng.random() * longest)
        running.kill()
        kills += running.wait() == KILLED
        added = frozenset(f"file://{path}" for path in where.iterdir())
        assert set(story.segments().values()) - {added} == set(before.values())
        story.check()
        assert story.facts() == facts
        if len(before) > 3 and rng.random() < 0.5:
            story.done(*story.compaction(before))
        if kills >= RANDOM_KILLS:
            break
    assert kills >= RANDOM_KILLS // 2
    story.done("sql", f"CLEAN FILES FOR TABLE `{story.table}` OPTIONS('force'='true')")
    story.check()
    shown = manage.list_segments(Config(), str(story.table))["segments"]
    assert {s["id"] for s in shown} == set(story.segments())
