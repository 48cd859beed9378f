"""Hudi's own clustering, called by skipbridge: rows before and after by Spark and by skipbridge."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bridge
from bridge.app.cli.main import cli
from bridge.kernel.config import Config
from bridge.runtime.compose import storage_of
from bridge.table.hudi.files.file_system_view import FileListing, FileSystemView
from bridge.table.hudi.files.metadata_table import read_file_listing
from bridge.table.hudi.table_config import HudiTableConfig
from bridge.table.hudi.timeline.timeline import HudiTimeline
from tests.support.hudi_spark import HudiStory, python_with_spark_35, spark_sql

pytestmark = [pytest.mark.engine]
VERSIONS = (6, 8, 9)
COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
COLUMNS = ["id", "name", "price", "ts", "day", "_hoodie_commit_time"]
TYPE, BEGIN = "hoodie.datasource.query.type", "hoodie.datasource.read.begin.instanttime"
PLAN = ("--by", "price", "--target", "16KiB")


@pytest.fixture(scope="module")
def spark() -> Path:
    return python_with_spark_35()


@pytest.fixture(scope="module", params=VERSIONS)
def story(
    request: pytest.FixtureRequest, spark: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HudiStory]:
    with HudiStory(spark, request.param, tmp_path_factory.mktemp("story")) as made:
        yield made


class World:
    """One table, asked by Spark and by skipbridge."""

    def __init__(self, story: HudiStory, spark: Path, path: Path, kind: str) -> None:
        self.story, self.path, self.kind = story, path, kind
        self.spark = spark_sql(spark, story.version)
        self.session = bridge.connect(planner_cache_dir=str(path.parent / "cache"))

    @property
    def table(self) -> bridge.Table:
        return self.session.table(str(self.path))

    def fill(self, commits: int = 5, **options: str) -> list[str]:
        """So many commits of a file in each of two partitions; returns the last two instants."""
        self.options = options
        for n in range(commits):
            self.write([(i, 1) for i in range(n, 400, commits)])
        return self.instants()[-2:]

    def write(self, rows: list[tuple[int, int]], operation: str = "insert", **more: object) -> None:
        self.story(
            "write",
            self.path,
            kind=self.kind,
            rows=rows,
            operation=operation,
            options=self.options,
            more=more,
        )

    def instants(self) -> list[str]:
        found = self.run("timeline", "show", "--limit", "100", "--output", "json")
        return [i["instant"] for i in reversed(json.loads(found)) if i["state"] == "completed"]

    def ours(self, **options: Any) -> list[list[Any]]:
        rows = self.table.scan(columns=COLUMNS, **options).to_arrow().to_pylist()
        return sorted([row[c] for c in COLUMNS] for row in rows)

    def theirs(self, **options: str) -> list[list[Any]]:
        return self.story("read", self.path, options=options)

    def answers(self, instants: list[str]) -> dict[str, Any]:
        """All queries by both; asserts that both give the same."""
        found = {
            "snapshot": self.theirs(),
            "read optimised": self.theirs(**{TYPE: "read_optimized"}),
            **{i: self.theirs(**{"as.of.instant": i}) for i in instants},
        }
        assert self.ours() == found["snapshot"]
        assert self.ours(read_optimized=True) == found["read optimised"]
        for instant in instants:
            assert self.ours(version=instant) == found[instant]
        return found

    def run(self, group: str, verb: str, *more: str, code: int = 0) -> str:
        """A command; returns what it printed."""
        asked = [group, verb, str(self.path), *more]
        if verb in ("schedule", "run") or "--cluster-after" in more:
            asked += ["--hudi-spark", self.spark]
        done = CliRunner().invoke(cli, asked)
        assert done.exit_code == code, (asked, done.output, done.exception)
        return done.stdout if code == 0 else done.output

    def plans(self) -> list[dict[str, Any]]:
        return json.loads(self.run("cluster", "show", "--output", "json"))

    def files(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for each in json.loads(self.run("timeline", "files", "--output", "json")):
            found.setdefault(each["partition"], []).append(each)
        return found


@pytest.mark.parametrize(
    "kind",
    [pytest.param(COW, marks=pytest.mark.full), pytest.param(MOR, marks=pytest.mark.nightly)],
)
def test_clusters_and_keeps_rows(
    story: HudiStory, spark: Path, tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    version = request.node.callspec.params["story"]
    world = World(story, spark, tmp_path / "t", kind)
    instants = world.fill()
    if kind == MOR:
        world.write([(i, 2) for i in range(40)], "upsert")
        instants = world.instants()[-2:]
    assert story("version", world.path) == version
    before = world.answers(instants)
    world.run("index", "build", "--local")

    instant = world.run("cluster", "schedule", *PLAN).strip()
    (plan,) = world.plans()
    assert (plan["instant"], plan["state"], plan["columns"]) == (instant, "requested", ["price"])
    assert plan["layout"] == "linear" and plan["old_files"] == 10 and plan["partitions"] == 2
    groups = json.loads(world.run("cluster", "show", instant, "--output", "json"))[0]["plan"]
    assert all(file["size"] > 0 for group in groups for file in group["files"])
    assert world.answers(instants) == before
    assert world.run("cluster", "schedule", *PLAN).strip() == ""  # its files wait in a plan

    report = json.loads(world.run("cluster", "run", "--output", "json"))
    assert report["state"] == "completed" and report["old_files"] == 10
    assert report["rows"] == len(before["snapshot"]) and report["new_bytes"] > 0
    (plan,) = world.plans()
    assert plan["state"] == "completed" and plan["new_files"] == report["new_files"]
    assert story("version", world.path) == version

    after = world.answers(instants)
    assert after["snapshot"] == before["snapshot"]
    assert all(after[i] == before[i] for i in instants)
    assert after["read optimised"] == before["snapshot"]  # logs were merged
    files = world.files()
    assert sum(map(len, files.values())) == report["new_files"]
    assert {f["path"].rpartition("_")[2] for fs in files.values() for f in fs} == {
        f"{instant}.parquet"
    }

    # What was clustered is not new to an incremental query.
    since = instants[-1] if version == 6 else _completion(world, instants[-1])
    assert world.ours(changes=(since, "")) == []
    if version != 8:  # Hudi 1.0.2 counts the first instant of a range in
        assert world.theirs(**{TYPE: "incremental", BEGIN: since}) == []

    # The rows are in order, and the index tells the files apart.
    assert min(map(len, files.values())) > 1
    world.run("index", "refresh")
    asked = "price BETWEEN 100 AND 150"
    kept = world.ours(where=asked)
    assert kept == [row for row in before["snapshot"] if 100 <= row[2] <= 150]
    assert 0 < _files_kept(world, asked) < _count(files)

    # A table at rest is not rewritten again and again.
    assert world.run("cluster", "schedule", *PLAN).strip() == ""

    # Options of Hudi in the command count: a filter of 60,000 keys in each footer is left out.
    for each in world.path.rglob(f"*_{instant}.parquet"):
        assert b"org.apache.avro.bloomfilter" not in pq.read_metadata(each).metadata


def _count(files: dict[str, list[dict[str, Any]]]) -> int:
    return sum(map(len, files.values()))


def _files_kept(world: World, where: str) -> int:
    """What is left after pruning, by a planner that sees the index as it is now."""
    with bridge.connect(planner_cache_dir=str(world.path.parent / "cache")) as session:
        return len(session.table(str(world.path)).scan(where).files())


def _completion(world: World, instant: str) -> str:
    found = json.loads(world.run("timeline", "show", "--limit", "100", "--output", "json"))
    return next(i["completion"] for i in found if i["instant"] == instant)


@pytest.mark.nightly
@pytest.mark.parametrize("curve", ["zorder", "hilbert"])
def test_curves(story: HudiStory, spark: Path, tmp_path: Path, curve: str) -> None:
    """A plan is executed along its curve by a later process, over texts and numbers."""
    world = World(story, spark, tmp_path / "t", COW)
    instants = world.fill()
    before = world.answers(instants)
    by = ("--layout", curve, "--by", "price", "--by", "name", *PLAN[2:])
    instant = world.run("cluster", "schedule", *by).strip()
    world.run("cluster", "run", instant)
    after = world.answers(instants)
    assert after == before
    assert world.plans()[0]["layout"] == curve
    world.run("index", "build", "--local")
    total = _count(world.files())
    for where in ("price < 60", "name < 'n0060'"):
        assert 0 < _files_kept(world, where) <= total
        assert world.ours(where=where) == [
            r for r in before["snapshot"] if (r[2] < 60 if "price" in where else r[1] < "n0060")
        ]


@pytest.mark.nightly
def test_partitions(story: HudiStory, spark: Path, tmp_path: Path) -> None:
    world = World(story, spark, tmp_path / "t", COW)
    instants = world.fill(3)
    before = world.answers(instants)
    instant = world.run("cluster", "schedule", "--partition", "day=2024-01-02").strip()
    (plan,) = world.plans()
    assert plan["partitions"] == 1 and plan["old_files"] == 3 and plan["layout"] == "binpack"
    said = json.loads(world.run("cluster", "show", instant, "--output", "json"))[0]
    assert {group["partition"] for group in said["plan"]} == {"2024-01-02"}
    assert "rollback_to_instant" in world.run("cluster", "cancel", instant, code=2)
    world.run("cluster", "run", instant)
    assert sorted(map(len, world.files().values())) == [1, 3]
    assert world.answers(instants) == before
    world.run("cluster", "run", "--now")
    assert sorted(map(len, world.files().values())) == [1, 1]
    assert world.answers(instants) == before
    world.write([(i, 9) for i in range(10)], "upsert")  # a writer goes on after both
    assert world.ours() == world.theirs()


@pytest.mark.nightly
def test_plans_beside(story: HudiStory, spark: Path, tmp_path: Path) -> None:
    """One of skipbridge is executed while one of Hudi's own writer waits, and then that one."""
    world = World(story, spark, tmp_path / "t", MOR)
    world.fill(2)
    own = {"hoodie__clustering__schedule__inline": "true"}
    world.write([(i, 1) for i in range(900, 940)], **own, hoodie__clustering__async__max__commits=1)
    (waiting,) = world.plans()
    assert (waiting["state"], waiting["layout"]) == ("requested", "binpack")
    assert waiting["old_files"] == 4
    for n in (1000, 2000):
        world.write([(i, 1) for i in range(n, n + 40)])
    before = world.theirs()
    world.run("cluster", "run", "--now")
    waits, done = world.plans()
    assert (waits["state"], done["state"]) == ("requested", "completed")
    assert (waits["old_files"], done["old_files"]) == (4, 4)
    assert world.ours() == world.theirs() == before
    world.run("cluster", "run")
    assert [p["state"] for p in world.plans()] == ["completed"] * 2
    assert world.ours() == world.theirs() == before


@pytest.mark.nightly
def test_metadata_table_stays(story: HudiStory, spark: Path, tmp_path: Path) -> None:
    """Hudi deletes indexes of the metadata table that its options do not name."""
    world = World(story, spark, tmp_path / "t", COW)
    on = {"hoodie__metadata__enable": "true"}
    on["hoodie__metadata__index__column__stats__enable"] = "true"
    instants = world.fill(3, **on)
    before, held = world.answers(instants), _metadata_partitions(world.path)
    assert {"files", "column_stats"} <= held
    world.run("cluster", "run", "--now", *PLAN)
    assert _metadata_partitions(world.path) == held
    assert world.answers(instants) == before
    listed = {f["path"].rpartition("/")[2] for fs in world.files().values() for f in fs}
    known = read_file_listing(storage_of(Config()), *_config_and_timeline(world.path))
    assert isinstance(known, FileListing) and listed <= set(known.names.to_pylist())
    world.write([(i, 9) for i in range(10)], "upsert")
    assert world.ours() == world.theirs()


def _config_and_timeline(path: Path) -> tuple[HudiTableConfig, HudiTimeline]:
    view = FileSystemView.open(storage_of(Config()), f"file://{path}")
    return view.config, view.timeline


def _metadata_partitions(path: Path) -> frozenset[str]:
    return _config_and_timeline(path)[0].metadata_partitions


@pytest.mark.nightly
def test_killed_between_schedule_and_commit(story: HudiStory, spark: Path, tmp_path: Path) -> None:
    world = World(story, spark, tmp_path / "t", COW)
    instants = world.fill(3)
    before = world.answers(instants)
    instant = world.run("cluster", "schedule", *PLAN).strip()
    command = [sys.executable, "-m", "bridge", "cluster", "run", str(world.path)]
    command += [instant, "--hudi-spark", world.spark]
    for who in ("spark", "skipbridge"):
        began = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        children = _kill_when_inflight(world.path, instant, began, who)
        said = began.communicate()[1]
        if who == "spark":
            assert began.returncode == 1 and "HUDI_FAILED" in said
        _, alive = psutil.wait_procs(children, 30)
        assert not alive  # Spark does not outlive the command
        assert [p["state"] for p in world.plans()] == ["inflight"]
        assert world.answers(instants) == before
    assert "is inflight" in world.run("cluster", "run", code=2)
    world.run("cluster", "run", instant)
    assert [p["state"] for p in world.plans()] == ["completed"]
    assert world.answers(instants) == before
    again = json.loads(world.run("cluster", "run", instant, "--output", "json"))
    assert again["state"] == "completed" and again["rows"] == 0


def _kill_when_inflight(
    path: Path, instant: str, command: subprocess.Popen[str], who: str
) -> list[psutil.Process]:
    home = path / ".hoodie"
    end = time.monotonic() + 120
    before = {f: f.stat().st_mtime_ns for f in home.rglob(f"{instant}.*inflight")}
    while time.monotonic() < end:
        now = {f: f.stat().st_mtime_ns for f in home.rglob(f"{instant}.*inflight")}
        if now and now != before:
            break
        before = now or {}
        time.sleep(0.002)
    children = psutil.Process(command.pid).children(recursive=True)
    for each in children if who == "spark" else [psutil.Process(command.pid)]:
        each.send_signal(signal.SIGKILL if who == "spark" else signal.SIGTERM)
    return children


@pytest.mark.nightly
def test_inline_after_commits(story: HudiStory, spark: Path, tmp_path: Path) -> None:
    world = World(story, spark, tmp_path / "t", COW)
    world.fill(3)
    world.run("index", "build", "--local")
    inline = ("--cluster-after", "2", "--cluster-by", "price")
    assert "completed" in world.run("index", "refresh", *inline)
    assert {len(files) for files in world.files().values()} == {1}
    before = world.theirs()
    assert "completed" not in world.run("index", "refresh", *inline)
    world.write([(1000 + i, 1) for i in range(20)])
    assert "completed" not in world.run("index", "refresh", *inline)
    world.write([(2000 + i, 1) for i in range(20)])
    assert "completed" in world.run("index", "refresh", "--cluster-after", "2")
    assert [p["columns"] for p in world.plans()] == [["price"], ["price"]]  # as the last time
    assert len(world.ours()) == len(before) + 40 and world.ours() == world.theirs()


@pytest.mark.nightly
def test_a_watch_clusters_after_commits(story: HudiStory, spark: Path, tmp_path: Path) -> None:
    world = World(story, spark, tmp_path / "t", COW)
    world.fill(3)
    command = [sys.executable, "-m", "bridge", "cluster", "run", str(world.path), "--watch", "1s"]
    command += ["--after-commits", "2", "--by", "price", "--hudi-spark", world.spark]
    watch = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        assert watch.stdout is not None
        assert any("completed" in line for line in watch.stdout)
        for begin in (1000, 2000):
            world.write([(begin + i, 1) for i in range(20)])
        assert any("completed" in line for line in watch.stdout)
        watch.send_signal(signal.SIGINT)
        _, errors = watch.communicate(timeout=120)
    finally:
        watch.kill()
    assert watch.returncode == 0 and "0 failures" in errors, errors
    assert [p["state"] for p in world.plans()] == ["completed"] * 2
    assert len(world.ours()) == 440 and world.ours() == world.theirs()
