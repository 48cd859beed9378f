"""What ``cluster run --now`` and ``--watch`` do to directories of small files, with real files."""

from __future__ import annotations

import itertools
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.app.api.session import Session
from bridge.app.cli.main import cli
from bridge.clustering.commands.now import run_now
from bridge.clustering.commands.run import schedule
from bridge.clustering.commands.watch import watched_round
from bridge.clustering.lease import lease
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.clustering.planning.triggers import Triggers
from bridge.clustering.rewriting import shuffle
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import StorageFull
from bridge.runtime.compose import storage_of
from bridge.storage.local_disk.local import LocalStorage
from tests.support.lake import age
from tests.tiers import examples

EXAMPLES = examples(12, 12, 300)
BY_X = Strategy("", ("x",), "")


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))


def write(path: Path, table: pa.Table) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    os.utime(path, (path.stat().st_atime - 60, path.stat().st_mtime - 60))


def small(root: Path, first: int, count: int) -> int:
    """Writes small files that hardly overlap; their bytes."""
    for i in range(first, first + count):
        write(root / f"f{i:06}.parquet", pa.table({"x": list(range(i * 9, i * 9 + 10))}))
    return sum(path.stat().st_size for path in root.glob("f*"))


def rows(root: Path) -> Counter[str]:
    with Session(Config()) as session:
        found = session.table(str(root)).scan().to_arrow()
        names = sorted(found.column_names)
        return Counter(repr([row[name] for name in names]) for row in found.to_pylist())


def read(root: Path) -> list[str]:
    """URIs of the files that readers open."""
    with Session(Config()) as session:
        return [str(path) for path in session.table(str(root)).scan().files()["path"].to_pylist()]


def build(root: Path) -> None:
    assert CliRunner().invoke(cli, ["index", "build", str(root), "--local"]).exit_code == 0


def clustered(root: Path) -> dict[str, int]:
    found = (root / ".skipbridge_clustered").rglob("*.*")
    return {str(path): path.stat().st_size for path in found if path.is_file()}


def run(root: Path, *words: object, status: int = 0) -> Result:
    command = ["cluster", "run", str(root), "--now", "--local", *map(str, words)]
    result = CliRunner().invoke(cli, command)
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


def watch_round(root: Path, strategy: Strategy = BY_X) -> bool:
    report = watched_round(
        Config(), str(root), strategy, Triggers(commits=1), local=True,
        progress=lambda *_: None, say=lambda _: None,
    )  # fmt: skip
    return bool(report["committed"])


def test_files_that_hardly_overlap_become_one_and_a_second_run_writes_nothing(
    tmp_path: Path,
) -> None:
    root = tmp_path / "t"
    small(root, 0, 60)
    build(root)
    before = rows(root)
    foretold = run(root, "--by", "x", "--dry-run").stdout
    assert "the table: 60 files" in foretold and "-> 1 files, about " in foretold
    assert "; reads and writes 60 files" in foretold
    assert not clustered(root)
    assert "60 files -> 1 file" in run(root, "--by", "x").stdout
    held = clustered(root)
    assert len(held) == 1 and rows(root) == before
    again = run(root, "--by", "x")
    assert again.stdout == "" and "nothing is worth a rewrite" in again.stderr
    assert clustered(root) == held


def test_a_run_makes_plans_until_nothing_is_left(tmp_path: Path) -> None:
    root = tmp_path / "t"
    for day in range(7):
        small(root / f"day={day}", 0, 4)
    before = rows(root)
    told = run(root, "--by", "x", "--groups", 3).stdout
    assert told.count("completed") == 3 and "in 3 plans: 28 files -> 7 files" in told
    assert len(clustered(root)) == 7 and rows(root) == before
    assert run(root, "--by", "x", "--groups", 3).stdout == ""


def test_a_run_lists_the_table_as_often_as_one_plan_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    for name in ("list_all", "list_many", "list_directories", "pages"):
        method = getattr(LocalStorage, name)

        def listing(self: Any, place: Any, *rest: Any, _method: Any = method, **more: Any) -> Any:
            listed.extend([str(place)] if ".skipbridge" not in str(place) else [])
            return _method(self, place, *rest, **more)

        monkeypatch.setattr(LocalStorage, name, listing)
    counts = []
    for groups in (30, 1):
        root = tmp_path / f"t{groups}"
        for day in range(4):
            small(root / f"day={day}", 0, 2)
        listed.clear()
        strategy = Strategy("", ("x",), "", Limits(most_groups=groups))
        quiet: Any = {"local": True, "progress": lambda *_: None}
        done = run_now(Config(), str(root), strategy, lambda _: None, **quiet)
        counts.append(len(listed))
        assert len(done["plans"]) == -(-4 // groups) and len(clustered(root)) == 4
    assert 0 < counts[0] == counts[1] <= 8


def test_a_dry_run_says_how_far_groups_overlap(tmp_path: Path) -> None:
    root = tmp_path / "t"
    size = small(root, 0, 30) // 30
    build(root)
    told = run(root, "--by", "x", "--group-bytes", size * 11, "--dry-run").stdout
    assert "in 3 groups, of which 2 share values" in told


def test_a_table_at_rest_rests_and_grows_with_new_files(tmp_path: Path) -> None:
    root = tmp_path / "t"
    small(root, 0, 50)
    assert watch_round(root)
    held = clustered(root)
    assert [watch_round(root) for _ in range(19)] == [False] * 19
    assert clustered(root) == held
    small(root, 50, 50)
    assert watch_round(root)
    made = clustered(root).keys() - held.keys()
    assert len(made) == 1 and sum(rows(root).values()) == 1000


@pytest.mark.full
def test_thirty_rounds_of_small_files(tmp_path: Path) -> None:
    root = tmp_path / "t"
    for number in range(30):
        added = small(root, number * 3, 3)
        assert watch_round(root)
    assert len(read(root)) <= 2
    assert sum(clustered(root).values()) <= 6 * added
    assert sum(rows(root).values()) == 900


def test_one_of_two_runs_wins_and_the_other_says_so(tmp_path: Path) -> None:
    root = tmp_path / "t"
    small(root, 0, 4)
    build(root)
    with lease(storage_of(Config()), f"file://{root}/.skipbridge", "run"):
        told = CliRunner().invoke(cli, ["cluster", "run", str(root), "--now", "--local"])
    assert told.exit_code != 0 and "CLUSTERING_PENDING" in told.stderr and not clustered(root)
    assert "4 files -> 1 file" in run(root).stdout


def test_a_full_store_commits_nothing_and_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "t"
    for day in range(3):
        small(root / f"day={day}", 0, 3)
    before = rows(root)
    begun = itertools.count()  # two threads write
    put = LocalStorage.put

    def full(self: Any, uri: str, content: Any) -> None:
        if ".skipbridge_clustered" in uri and next(begun) >= 2:
            raise StorageFull("no space is left", "make room")
        put(self, uri, content)

    monkeypatch.setattr(LocalStorage, "put", full)
    told = CliRunner().invoke(cli, ["cluster", "run", str(root), "--now", "--local"])
    assert told.exit_code == 1 and "STORAGE_FULL" in told.stderr and next(begun) > 2
    assert not clustered(root) and rows(root) == before
    monkeypatch.setattr(LocalStorage, "put", put)
    assert "9 files -> 3 files" in run(root).stdout and rows(root) == before


def test_rows_that_do_not_fit_into_memory_spill_and_no_group_is_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spilled: list[Path] = []
    write_file = shuffle._Spilled.__init__

    def counting(self: Any, file: Path, *rest: Any) -> None:
        spilled.append(file)
        write_file(self, file, *rest)

    monkeypatch.setattr(shuffle._Spilled, "__init__", counting)
    for memory, any_spilled in (("1GiB", False), ("200B", True)):  # a file has 80 bytes of rows
        root = tmp_path / memory
        small(root, 0, 20)
        before = rows(root)
        assert "20 files -> 1 file" in run(root, "--clustering-memory", memory).stdout
        assert bool(spilled) == any_spilled and rows(root) == before


def test_small_files_in_order_are_packed_unless_logged_queries_speak_against_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One value, and a range, cost more in one file than in many if opening a file is cheap."""
    monkeypatch.setenv("SKIPBRIDGE_SPLITS_OPEN_COST", "10")
    rng = np.random.default_rng(3)

    def in_order(root: Path, numbers: range) -> None:
        for i in numbers:
            data = {"x": range(i * 1000, i * 1000 + 1000), "y": rng.random(1000)}
            write(root / f"f{i}.parquet", pa.table(data))

    root = tmp_path / "t"
    in_order(root, range(12))
    before = rows(root)
    shutil.copytree(root, tmp_path / "logged")
    assert "12 files -> 1 file" in run(root, "--by", "x").stdout
    assert "nothing is worth" in run(root, "--by", "x").stderr and rows(root) == before
    root = tmp_path / "logged"
    monkeypatch.setenv("SKIPBRIDGE_PLANNER_PREDICATE_LOG", str(tmp_path / "log.jsonl"))
    build(root)
    CliRunner().invoke(cli, ["explain", str(root), "x = 40"])
    assert "DEARER" in run(root, "--by", "x", status=3).stderr
    in_order(root, range(12, 15))
    assert "DEARER" in run(root, "--by", "x", status=3).stderr
    left = run(root, "--by", "x", status=3)
    assert "15 files are left out" in left.stderr and not left.stdout
    assert not [path for path in read(root) if ".skipbridge" in path]


def test_a_layout_that_makes_queries_dearer_is_not_committed(tmp_path: Path) -> None:
    """Files of near values become one, of which each query then reads all. Those of the other
    partition are read by each query anyway."""
    root = tmp_path / "t"
    rng = np.random.default_rng(3)
    for i in range(4):
        for day, first in ((1, i), (2, 0)):
            x = rng.integers(first * 10**6, (i + 1) * 10**6, 20_000)
            data = pa.table({"x": x, "y": rng.random(20_000)})
            write(root / f"day={day}/f{i}.parquet", data)
    log = tmp_path / "log.jsonl"
    before = rows(root)
    words = ("--by", "y", "--target", "1MiB")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKIPBRIDGE_PLANNER_PREDICATE_LOG", str(log))
        patch.setenv("SKIPBRIDGE_PLANNER_PREDICATE_LOG_LITERALS", "true")
        build(root)
        for _ in range(3):
            CliRunner().invoke(cli, ["explain", str(root), "x < 400000"])
        refused = run(root, *words, status=3)
        assert "DEARER: queries would cost" in refused.stderr
        assert "completed: 4 files" in refused.stdout and rows(root) == before
        assert len([path for path in read(root) if "/day=1/" in path]) == 4
        again = run(root, *words, status=3)
        assert again.stdout == "" and "4 files are left out" in again.stderr
        assert again.stderr.count(".parquet: DEARER: queries would cost") == 4
        assert "nothing else is worth a rewrite" in again.stderr
        assert "left out" not in run(root, "--by", "x", "--target", "1MiB").stderr
        assert "completed: 4 files" in run(root, *words, "--dearer").stdout
        assert "nothing is worth" in run(root, *words).stderr
    assert rows(root) == before


VALUES = {
    "x": (pa.int64(), st.none() | st.integers(-5, 50)),
    "f": (pa.float64(), st.none() | st.sampled_from([float("nan"), 0.0, -1.5, float("inf")])),
    "s": (pa.string(), st.none() | st.sampled_from(["", "a", "ab", "é"])),
    "d": (pa.date32(), st.none() | st.dates()),
}


@pytest.mark.full
@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_rows_are_the_same_before_during_and_after(tmp_path: Path, data: st.DataObject) -> None:
    """Random tables, of which some files have fewer columns or are damaged, by random options."""
    import tempfile

    with tempfile.TemporaryDirectory(dir=tmp_path) as name:
        _story(Path(name) / "t", data)


def readable(root: Path) -> tuple[Counter[str], set[str]]:
    """The rows of all files that readers open and can decode, and the other files."""
    found: Counter[str] = Counter()
    bad = set()
    for uri in read(root):
        path = Path(uri.removeprefix("file://"))
        partition = path.parent.name if path.parent.name.startswith("p=") else ""
        try:
            for row in pq.ParquetFile(path).read().to_pylist():
                found[repr([partition, *map(row.get, VALUES)])] += 1
        except (pa.ArrowException, OSError, ValueError):
            bad.add(uri)
    return found, bad


def _story(root: Path, data: st.DataObject) -> None:
    partitions = data.draw(st.sampled_from([["."], ["p=1", "p=2"]]))
    files: list[Path] = []
    damaged: list[Path] = []
    for number in range(data.draw(st.integers(1, 12))):
        names = ["x", *data.draw(st.sampled_from([["f", "s", "d"], ["f", "s"], ["s"]]))]
        count = data.draw(st.integers(0, 30))
        columns = {
            each: pa.array(
                data.draw(st.lists(VALUES[each][1], min_size=count, max_size=count)),
                VALUES[each][0],
            )
            for each in names
        }
        path = root / data.draw(st.sampled_from(partitions)) / f"f{number}.parquet"
        write(path, pa.table(columns))
        files.append(path)
        if count and data.draw(st.integers(0, 5)) == 0:  # of its pages, its footer is sound
            raw, begin = path.read_bytes(), data.draw(st.integers(4, 60))
            length = data.draw(st.integers(1, 40))
            damaged.append(path)
            path.write_bytes(raw[:begin] + b"\xff" * length + raw[begin + length :])
            age(path, 60)
    limits = Limits(
        data.draw(st.sampled_from([1 << 11, 1 << 13, 1 << 30])),
        data.draw(st.sampled_from([1 << 12, 1 << 20])),
        data.draw(st.sampled_from([1 << 12, 1 << 20])),
        data.draw(st.integers(1, 4)),
    )
    by = data.draw(st.sampled_from([(), ("x",), ("s", "x")]))
    strategy = Strategy("", by, data.draw(st.sampled_from(["", "", "range", "size"])), limits)
    cheap = Setting(data.draw(st.sampled_from(["1", "64KiB"])), "test")
    config = Config({"splits.open_cost": cheap})
    before, bad = readable(root)
    quiet: Any = {"local": True, "progress": lambda *_: None}

    def same(*_: object) -> None:
        assert readable(root) == (before, bad)

    done = run_now(config, str(root), strategy, lambda _: None, planned=same, told=same, **quiet)
    same()
    held = clustered(root)
    again = run_now(config, str(root), strategy, lambda _: None, **quiet)
    assert again["instant"] is None and clustered(root) == held
    refused = {each["path"] for each in again["left_out"]}
    left = read(root)
    assert refused <= set(left)
    largest = min(limits.small, limits.target) // 4
    tiny = [p for p in files if f"file://{p}" in left and p.stat().st_size < largest]
    most = Counter(path.parent for path in tiny if f"file://{path}" not in refused)
    assert all(count <= 1 for count in most.values()), done
    inexact = [e for e in again["left_out"] if not e["reason"].startswith("DEARER")]
    assert all(Path(each["path"].removeprefix("file://")) in damaged for each in inexact)


def test_a_begun_plan_of_a_table_that_has_moved_stops_no_run(tmp_path: Path) -> None:
    root, moved = tmp_path / "t", tmp_path / "moved"
    small(root, 0, 20)
    schedule(Config(), str(root), BY_X, lambda _: None, begin=True, local=True)
    shutil.move(root, moved)
    before = rows(moved)
    assert "20 files -> 1 file" in run(moved, "--by", "x").stdout
    assert rows(moved) == before
