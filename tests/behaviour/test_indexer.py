"""Indexing while writers write: in steps, killed, two at once, staying, switched off, dropped."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.expression.parsing.text import parse_where
from bridge.index.building.alter_index import change_settings, drop_index
from bridge.index.building.sample import SIGNATURE
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.registry import kind
from bridge.indexing.watch import watch
from bridge.kernel.errors import StorageFailure
from bridge.kernel.types import BIGINT
from bridge.planner.planner import Planner
from bridge.planner.reports.remedies import remedy_text
from bridge.planner.reports.report import PruneReport
from bridge.planner.request import ScanRequest
from bridge.storage.routed import open_storage
from bridge.table.model import Column
from tests.support.lake import NAME, Lake, age, kept
from tests.support.patched_command import patched_command

REPOSITORY = Path(__file__).parents[2]


def fill(lake: Lake, count: int, start: int = 0) -> None:
    for n in range(start, start + count):
        lake.write(f"f{n:04d}", pa.table({"x": [n * 10, n * 10 + 9]}))


def asked(lake: Lake, value: int, planner: Planner | None = None, **options: Any) -> list[str]:
    found = kept(planner or lake.planner(), parse_where(f"x = {value}")[0], **options)
    return sorted(uri.rpartition("/")[2] for uri in found)


def report(lake: Lake, text: str = "x = 5", **options: Any) -> PruneReport:
    plan = lake.planner().plan(ScanRequest(NAME, parse_where(text)[0], **options))
    for _ in plan.batches():
        pass
    return plan.report()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, (Column("x", BIGINT),))
    fill(made, 30)
    return made


class Killed(BaseException):
    """The builder's end."""


def test_a_build_in_steps_is_of_use_from_its_first_commit_on(lake: Lake) -> None:
    seen: list[tuple[int, int, list[str]]] = []

    def tick(done: int, total: int) -> None:
        assert total == 30
        found = asked(lake, 55)
        assert "f0005" in found
        seen.append((done, len(lake.store().generations()), found))

    done = lake.build(files_per_commit=8, progress=tick)
    assert (done.read, done.files, done.generation, done.committed) == (30, 30, 4, True)
    assert [d for d, _, _ in seen] == [8, 16, 24, 30]
    # At the second tick one generation is there. It knows the eight newest files: all are skipped.
    assert [(g, len(found)) for _, g, found in seen] == [(0, 30), (1, 22), (2, 14), (3, 6)]
    assert asked(lake, 55) == ["f0005"]
    manifest = lake.store().latest()
    assert manifest is not None and manifest.complete and manifest.num_files == 30
    assert not lake.build(files_per_commit=8).committed


def test_an_unfinished_build_is_no_file_set_and_is_taken_up(lake: Lake) -> None:
    def die(done: int, total: int) -> None:
        if done > 20:
            raise Killed

    with pytest.raises(Killed):
        lake.build(files_per_commit=10, progress=die)
    manifest = lake.store().latest()
    assert manifest is not None and not manifest.complete and manifest.num_files == 20
    for freshness in ("live", "snapshot"):  # a snapshot of twenty files would lose rows
        assert asked(lake, 55, freshness=freshness) == [f"f{n:04d}" for n in range(10)]
        assert len(asked(lake, 255, freshness=freshness)) == 11
    told = report(lake, freshness="snapshot")
    assert told.freshness == "live"
    assert "PARTIAL" in [n.reason for n in told.not_used]
    again = lake.build(files_per_commit=10)
    assert (again.read, again.files) == (10, 30)
    assert asked(lake, 55, freshness="snapshot") == ["f0005"]
    assert report(lake, freshness="snapshot").freshness == "snapshot"


def test_changes_while_a_build_goes_in_steps(lake: Lake) -> None:
    lake.build()
    fill(lake, 20, start=30)
    for n in range(3):
        lake.write(f"f{n:04d}", pa.table({"x": [1000 + n]}))
    (lake.root / "t" / "f0029").unlink()

    def meanwhile(done: int, total: int) -> None:
        assert "f0001" in asked(lake, 1001)
        assert "f0040" in asked(lake, 405)
        if done > 6:  # the first step is committed: no generation of before is a file set any more
            assert "f0001" in asked(lake, 1001, freshness="snapshot")

    done = lake.build(files_per_commit=6, progress=meanwhile)
    assert (done.read, done.removed, done.files) == (23, 4, 49)
    assert asked(lake, 1001) == ["f0001"]
    assert asked(lake, 1001, freshness="snapshot") == ["f0001"]


def test_a_rebuild_in_steps_does_not_begin_by_forgetting(lake: Lake) -> None:
    lake.build()

    def meanwhile(done: int, total: int) -> None:
        assert asked(lake, 55) == ["f0005"]

    done = lake.build(full=True, files_per_commit=5, progress=meanwhile)
    assert (done.read, done.generation) == (30, 2)


def test_an_index_added_in_steps(lake: Lake) -> None:
    lake.build()

    def with_values(held: IndexSettings) -> IndexSettings:
        return held.adding([kind("values").define("x")])

    done = lake.build(settings=with_values, files_per_commit=7)
    assert (done.read, done.generation) == (30, 6)
    assert asked(lake, 54) == []  # within f0005's bounds, and not there
    assert asked(lake, 59) == ["f0005"]


def _command(*arguments: str, every: int) -> subprocess.Popen[bytes]:
    """A build that commits after so many files."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen(
        [*patched_command(bridge__indexing__table__FILES_PER_COMMIT=str(every)), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _until(condition: Any, seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.005)


def test_a_process_killed_in_the_midst_is_taken_up(tmp_path: Path) -> None:
    directory = tmp_path / "t"
    directory.mkdir()
    for n in range(240):
        pq.write_table(pa.table({"x": [n * 10, n * 10 + 9]}), directory / f"f{n:04d}")
        age(directory / f"f{n:04d}")
    store = IndexStore(open_storage(), f"file://{directory}/.skipbridge")
    command = ("index", "build", str(directory), "--local")
    first = _command(*command, every=4)
    _until(lambda: len(store.generations()) >= 3)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    assert first.returncode == -signal.SIGKILL
    held = store.latest()
    assert held is not None and not held.complete
    covered = held.num_files
    assert 12 <= covered < 240
    second = _command(*command, "--output", "json", every=4)
    output, _ = second.communicate()
    done = json.loads(output)
    assert done["read"] == 240 - covered  # what the dead one had committed is not read again
    manifest = store.latest()
    assert manifest is not None and manifest.complete and manifest.num_files == 240


def test_two_indexers_and_a_writer_at_once(tmp_path: Path) -> None:
    """Two processes refresh while files come, change and go; no plan ever misses a row."""
    lake = Lake(tmp_path, (Column("x", BIGINT),))
    fill(lake, 60)
    store = IndexStore(open_storage(), f"file://{tmp_path}/t/.skipbridge")
    lake.store = lambda: store  # type: ignore[method-assign]
    watchers = [
        _command(
            "index", "refresh", str(tmp_path / "t"),
            "--watch", "0.2", "--output", "json", every=7,
        )
        for _ in range(2)
    ]  # fmt: skip
    try:
        _until(lambda: len(store.generations()) >= 2)
        rng = random.Random(5)
        planner = lake.planner()
        values = {n: n * 10 for n in range(60)}
        for step in range(30):
            n = rng.randrange(90)
            if n in values and rng.random() < 0.3:
                (tmp_path / "t" / f"f{n:04d}").unlink()
                del values[n]
            else:
                values[n] = 10_000 + step * 10
                lake.write(f"f{n:04d}", pa.table({"x": [values[n], values[n] + 9]}))
            for sought in rng.sample(sorted(values), 3):
                assert f"f{sought:04d}" in asked(lake, values[sought], planner)
            time.sleep(0.02)
    finally:
        for process in watchers:
            process.send_signal(signal.SIGINT)
        outputs = [process.communicate(timeout=60) for process in watchers]
    assert [process.returncode for process in watchers] == [0, 0], outputs
    commits = sum(out.count(b'"committed": true') for out, _ in outputs)
    assert commits > 2
    lake.build()
    final = report(lake, "x = 3")
    assert not final.not_used
    for n, value in values.items():
        assert asked(lake, value, planner) == [f"f{n:04d}"]


def test_a_watch_goes_on_after_failures() -> None:
    stop = threading.Event()
    rounds: list[int] = []
    said: list[str] = []

    def refresh() -> dict[str, Any]:
        rounds.append(1)
        if len(rounds) == 1:
            raise StorageFailure("the store is away", "")
        if len(rounds) == 4:
            stop.set()
        return {"committed": len(rounds) == 3}

    told: list[dict[str, Any]] = []
    done = watch(refresh, 0.01, stop, told=told.append, say=said.append)
    assert (done.rounds, done.committed, done.failed) == (4, 1, 1)
    assert told == [{"committed": True}]
    assert "STORAGE_ERROR" in said[0]


def test_an_invisible_index_is_kept_and_not_asked(lake: Lake) -> None:
    lake.build(settings=lambda held: held.adding([kind("values").define("x")]))
    assert asked(lake, 54) == []
    change_settings(lake.store(), lambda held: held.with_visibility("values(x)", False))
    assert asked(lake, 54) == ["f0005"]
    change_settings(lake.store(), lambda held: held.with_visibility("minmax", False))
    assert len(asked(lake, 54)) == 30
    told = {n.index: n for n in report(lake).not_used}
    assert {n.reason for n in told.values()} == {"INVISIBLE"}
    assert remedy_text(told["minmax"].remedy) == "skipbridge index reveal db.t minmax"
    assert remedy_text(told["values(x)"].remedy) == "skipbridge index reveal db.t 'values(x)'"
    fill(lake, 2, start=30)
    lake.build()  # kept up to date, and as invisible as before
    assert len(asked(lake, 54)) == 32
    change_settings(lake.store(), lambda held: held.with_visibility("values(x)", True))
    assert asked(lake, 309) == ["f0030"]
    change_settings(lake.store(), lambda held: held.with_visibility("minmax", True))
    assert not report(lake).not_used
    assert lake.build().read == 0


def test_dropping(lake: Lake) -> None:
    lake.build(settings=lambda held: held.adding([kind("values").define("x")]))
    manifest = change_settings(lake.store(), lambda held: held.without("values(x)"))
    assert not manifest.settings.definitions
    held = {payload.signature for shard in manifest.shards for payload in shard.payloads}
    assert held == {SIGNATURE}  # the sample, which every build takes
    assert asked(lake, 54) == ["f0005"]
    planner = lake.planner()
    assert len(kept(planner, parse_where("x = 54")[0])) == 1
    assert drop_index(lake.store()) > 3
    assert lake.store().generations() == []
    assert len(kept(planner, parse_where("x = 54")[0])) == 30
    assert lake.build().generation == 1


def test_the_verbs(lake: Lake) -> None:
    directory = str(lake.root / "t")

    def run(*arguments: str, status: int = 0) -> str:
        done = CliRunner().invoke(cli, ["index", *arguments])
        assert done.exit_code == status, done.output
        return done.stdout

    assert "30 read" in run("build", directory, "--local", "--values", "x")
    assert "values(x)" in run("show", directory)
    assert "invisible" in run("hide", directory, "values(x)")
    assert "(invisible)" in run("show", directory)
    run("hide", directory, "bloom(nope)", status=2)
    run("reveal", directory, "values(x)")
    assert "dropped" in run("drop", directory, "values(x)")
    run("drop", directory, "values(x)", status=2)
    assert "deleted" in run("drop", directory, "--yes")
    run("drop", directory, "--yes", status=2)
    run("hide", directory, "minmax", status=2)
    assert "30 read" in run("refresh", directory)
