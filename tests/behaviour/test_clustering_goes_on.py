"""``cluster run --now`` names a damaged record and a group that storage fails, and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bridge.app.api.session import Session
from bridge.app.cli.main import cli
from bridge.clustering.commands.now import run_now
from bridge.clustering.commands.run import cancel
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.kernel.config import Config
from bridge.kernel.errors import ClusteringPending, StorageFailure
from bridge.storage.local_disk.local import LocalStorage
from tests.behaviour.test_default_plan import build, clustered, read, rows, run, small

DAYS = (1, 2, 3)
DAMAGE = {
    "cut": lambda raw: raw[: len(raw) // 2],
    "empty": lambda raw: b"",
    "flipped": lambda raw: raw.replace(b"1", b"2"),
    "other": lambda raw: b"[1]",
    "bytes": lambda raw: b"\xff" * 9,
    "deep": lambda raw: b"[" * 100_000,
}


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for day in DAYS:
        small(tmp_path / f"t/day={day}", 0, 3)
    build(tmp_path / "t")
    return tmp_path / "t"


def command(*words: object, status: int = 0) -> str:
    result = CliRunner().invoke(cli, ["cluster", *map(str, words)])
    assert result.exit_code == status, result.output
    return result.output


def scheduled(root: Path, *words: object) -> str:
    return CliRunner().invoke(cli, ["cluster", "schedule", str(root), *map(str, words)]).stdout[:17]


def records(root: Path) -> Path:
    return root / ".skipbridge" / "clustering"


OTHERS = [pytest.param(each, marks=pytest.mark.full) for each in DAMAGE if each != "cut"]


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("damage", ["cut", *OTHERS])
def test_a_damaged_plan_is_named_and_the_others_go_on(root: Path, damage: str, begun: bool) -> None:
    before = rows(root)
    instant = scheduled(root, "--partition", "day=2")
    plan = records(root) / f"{instant}.requested.json"
    plan.write_bytes(DAMAGE[damage](plan.read_bytes()))
    if begun:
        plan.with_name(f"{instant}.inflight.json").write_text("{}")
    other = scheduled(root, "--partition", "day=1")
    assert f"{other} completed" in command("run", root, "--local")
    done = run(root, status=3)
    # Nobody can execute it, so its files are free.
    assert "completed: 6 files -> 2 files" in done.stdout
    remedy = f"skipbridge cluster cancel {root} {instant}"
    assert f"plan {instant} is left out: " in done.stderr and remedy in done.stderr
    assert plan.name in done.stderr
    assert rows(root) == before and len(read(root)) == len(DAYS)
    assert remedy in run(root, status=3).stderr  # as long as it is there
    assert "cancelled" in command("cancel", root, instant)
    assert "nothing is worth a rewrite" in run(root).stderr


def test_a_damaged_plan_stops_no_writer_that_asks(root: Path) -> None:
    from bridge.clustering import check_write

    instant = scheduled(root, "--partition", "day=2")
    scheduled(root, "--partition", "day=1")
    plan = records(root) / f"{instant}.requested.json"
    plan.write_bytes(b"{}")
    with Session(Config()) as session:
        table = session.table(str(root))
        check_write(table, [f"file://{root}/day=2/f000000.parquet"])
        with pytest.raises(ClusteringPending):
            check_write(table, [f"file://{root}/day=1/f000000.parquet"])


@pytest.mark.full
@pytest.mark.parametrize("damage", [each for each in DAMAGE if each != "flipped"])
@pytest.mark.parametrize("record", ["ended", "rejected", "group-00001", "refused", "dearer"])
def test_damaged_records_of_a_begun_plan_stop_nothing(root: Path, record: str, damage: str) -> None:
    before = rows(root)
    instant = scheduled(root)
    made = records(root) / f"{instant}.{record}.json"
    made.write_bytes(DAMAGE[damage](b'{"state": "cancelled"}'))
    made.with_name(f"{instant}.inflight.json").write_text("{}")
    rejected = record == "group-00001"
    done = run(root, status=3 if rejected else 0)
    if rejected:
        assert f"group 1 stays as it was: RECORD: file://{made} is no record of" in done.stderr
        assert run(root).stdout.count("3 files -> 1 file") == 1
    assert rows(root) == before and len(read(root)) == len(DAYS)
    assert "nothing is worth a rewrite" in run(root).stderr
    command("clean", root, "--retain", "0s")
    assert rows(root) == before


class Broken:
    """Storage fails whoever reads a file whose path holds some text."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        self.text = text
        method = LocalStorage.read_state

        def reading(storage: Any, uri: str, ranges: Any) -> Any:
            if self.text and self.text in uri:
                raise StorageFailure(f"{uri} timed out", "try again")
            return method(storage, uri, ranges)

        monkeypatch.setattr(LocalStorage, "read_state", reading)


@pytest.mark.parametrize("groups", [pytest.param(30, marks=pytest.mark.full), 1])
def test_plans_go_on_after_a_group_that_storage_fails(
    root: Path, monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    """Of a plan with others, or of a plan of its own; the newest partition comes first."""
    before = rows(root)
    broken = Broken(monkeypatch, "/day=3/")
    words = ("--by", "x", "--groups", groups)
    done = run(root, *words, status=3)
    assert "group 0 stays as it was: STORAGE_ERROR: " in done.stderr and "/day=3/" in done.stderr
    assert done.stdout.count("day=3") == 0 and len(clustered(root)) == 2
    assert rows_of(root, broken) == before and len(read(root)) == 5
    failed = CliRunner().invoke(cli, ["cluster", "run", str(root), "--now", "--local"])
    assert failed.exit_code == 1 and "STORAGE_ERROR" in failed.stderr  # nothing else was tried
    broken.text = ""
    assert "3 files -> 1 file" in run(root, *words).stdout
    assert rows(root) == before and len(read(root)) == len(DAYS)
    assert "nothing is worth a rewrite" in run(root, *words).stderr


@pytest.mark.full
@pytest.mark.parametrize("groups", [30, 1])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_files_of_a_plan_that_is_cancelled_are_left_alone_by_the_run(
    root: Path, when: str, groups: int
) -> None:
    """Whoever cancels each plan does not make it plan and write for ever."""
    before, plans = rows(root), []

    def planned(made: dict[str, Any]) -> None:
        plans.append(made["instant"])
        if when == "before" and len(plans) != 2:
            cancel(Config(), str(root), made["instant"])

    def progress(done: int, total: int) -> None:
        if when == "meanwhile" and len(plans) != 2:
            cancel(Config(), str(root), plans[-1])

    strategy = Strategy(limits=Limits(most_groups=groups))
    done = run_now(
        Config(), str(root), strategy, print, local=True, progress=progress, planned=planned
    )
    assert len(plans) == (3 if groups == 1 else 1)
    states = [each["state"] for each in done["plans"]]
    assert states == ["cancelled", "completed", "cancelled"][: len(plans)]
    assert rows(root) == before and len(read(root)) == (7 if groups == 1 else 9)
    run(root)
    assert len(read(root)) == len(DAYS)


def rows_of(root: Path, broken: Broken) -> Any:
    text, broken.text = broken.text, ""
    try:
        return rows(root)
    finally:
        broken.text = text


@pytest.mark.full
def test_a_run_ends_with_the_error_if_storage_fails_all(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(root)
    broken = Broken(monkeypatch, "/day=")
    for _ in range(2):
        failed = CliRunner().invoke(
            cli, ["cluster", "run", str(root), "--now", "--local", "--groups", "1"]
        )
        assert failed.exit_code == 1 and "timed out" in failed.stderr and not clustered(root)
    broken.text = ""
    done = run(root)
    assert done.stderr.count("which was begun before") == 3  # as they were planned
    assert rows(root) == before and len(read(root)) == len(DAYS)
