"""Faults of one group, one file or one record: the others go on, and nothing is lost or blocked."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.clustering.commands import run as cluster
from bridge.clustering.execution import DIRECTORY, RunReport, ThreadRewriter, execute
from bridge.clustering.plan import ClusteringPlan
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.clustering.rewriting.rewrite import CountFiles, GroupResult, GroupTask
from bridge.index.building.collect import ThreadCollector
from bridge.kernel.config import Config
from bridge.kernel.errors import FileCorrupt, FileUnreadable, StorageFailure
from bridge.kernel.types import BIGINT, STRING
from bridge.storage.port import FileStat, Range, Storage
from bridge.table.model import Column
from tests.support.clustered import executed, read, scheduled, timeline_of
from tests.support.lake import Lake, age

pytestmark = pytest.mark.full

BY_X: dict[str, Any] = {"layout": "linear", "columns": ("x",), "grouping": "overlap"}
DAYS = ("1", "2", "3")


@pytest.fixture
def days(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, (Column("x", BIGINT), Column("s", STRING)), (Column("day", STRING),))
    lake.partition_values = [(day,) for day in DAYS]
    for day in DAYS:
        for i in range(2):
            lake.write(f"f{i}.parquet", {"x": [i, 9 - i], "s": [day, None]}, (day,))
    lake.build()
    return lake


class Failing:
    """A storage that fails wherever a path holds some text."""

    def __init__(self, storage: Storage, text: str, error: type[Exception]) -> None:
        self._storage, self._text, self._error = storage, text, error
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def _look(self, uri: str) -> None:
        self.reads += 1
        if self._text and self._text in uri:
            raise self._error(f"{uri} cannot be had", "")

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        self._look(uri)
        return self._storage.read_state(uri, ranges)

    def read(self, uri: str) -> bytes:
        if uri.endswith((".parquet", "-data")):
            self._look(uri)
        return self._storage.read(uri)

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        self._look(uri)
        return self._storage.read_ranges(uri, ranges)


class Forgetful(ThreadRewriter):
    """As if another run had rewritten the groups: new files are read to be indexed."""

    def rewrite(
        self, tasks: Sequence[GroupTask], seen: CountFiles
    ) -> Generator[GroupResult, None, None]:
        for result in super().rewrite(tasks, seen):
            yield replace(result, gathered=b"")


def run(
    lake: Lake, plan: ClusteringPlan, rewriting: Any, indexing: Any, kind: Any = ThreadRewriter
) -> RunReport:
    return execute(
        plan,
        lake.table(),
        lake.store(),
        timeline_of(lake),
        catalog=lake,
        rewriter=kind(rewriting),
        collector=ThreadCollector(indexing),
    )


def test_a_group_that_storage_fails_is_rejected_and_the_others_commit(days: Lake) -> None:
    before, _ = read(days)
    plan = scheduled(days, **BY_X)
    failing = Failing(days.storage, "t/day=2/", StorageFailure)
    report = run(days, plan, failing, days.storage)
    assert (report.state, report.resumed, report.old_files) == ("completed", 0, 4)
    ((_, reason),) = report.rejected
    assert reason.startswith("STORAGE_ERROR") and "day=2" in reason
    assert read(days)[0] == before
    again = executed(days, scheduled(days, **BY_X))
    assert (again.state, again.old_files, again.rejected) == ("completed", 2, ())
    rows, files = read(days)
    assert rows == before and all(DIRECTORY in name for name in files)


def test_nothing_is_rejected_while_storage_is_away(days: Lake) -> None:
    plan = scheduled(days, **BY_X)
    for _ in range(3):
        with pytest.raises(StorageFailure):
            run(days, plan, Failing(days.storage, "t/day=", StorageFailure), days.storage)
    report = executed(days, plan)
    assert (report.state, report.old_files, report.rejected) == ("completed", 6, ())


def test_a_new_file_that_cannot_be_indexed_rejects_its_group(days: Lake) -> None:
    before, _ = read(days)
    plan = scheduled(days, **BY_X)
    failing = Failing(days.storage, "/day=3/c", FileUnreadable)
    report = run(days, plan, days.storage, failing, Forgetful)
    assert (report.state, report.old_files) == ("completed", 4)
    assert "cannot be had" in report.rejected[0][1]
    rows, files = read(days)
    assert rows == before and sum(DIRECTORY in name for name in files) == 2
    plan = scheduled(days, **BY_X)
    failing = Failing(days.storage, "/c0", FileUnreadable)
    report = run(days, plan, days.storage, failing, Forgetful)
    assert report.state == "rejected"
    assert executed(days, scheduled(days, **BY_X)).state == "completed"
    assert read(days)[0] == before


def test_groups_that_wait_are_not_begun_after_a_run_is_stopped(days: Lake) -> None:
    plan = scheduled(days, **BY_X)
    storage = Failing(days.storage, "", StorageFailure)
    tasks = [
        GroupTask(i, "", plan.groups[0].files, 1, "linear", ("x",),
                  f"{days.location}/{DIRECTORY}/x", None, 1 << 20)
        for i in range(40)
    ]  # fmt: skip
    results = iter(ThreadRewriter(storage).rewrite(tasks))  # type: ignore[arg-type]
    assert isinstance(next(results), GroupResult)
    results.close()  # type: ignore[attr-defined]
    begun = storage.reads
    assert begun < 40 * 3


def test_files_that_cannot_be_kept_do_not_take_the_place_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    table = tmp_path / "t"
    for day in (1, 2):
        for i in range(2):
            path = table / f"day={day}" / f"{i}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            far = dt.datetime(3000 if day == 2 else 2026, 1, 1)
            data = pa.table({"x": [i, 9], "t": pa.array([far, None], pa.timestamp("us"))})
            pq.write_table(data, path, use_deprecated_int96_timestamps=True)
            age(path, 60)
    said: list[str] = []

    def clustered(again: bool = False) -> dict[str, Any]:
        limits = Limits(most_groups=1)  # the newest partition first, which is refused
        strategy = Strategy("linear", ("x",), "overlap", limits, again=again)
        made = cluster.schedule(Config(), str(table), strategy, said.append)
        if made["instant"] is None:
            return {}
        return cluster.run(
            Config(), str(table), made["instant"], local=True, progress=lambda *_: None
        )

    first = clustered()
    assert first["state"] == "rejected" and "INT96" in first["rejected"][0]["reason"]
    second = clustered()
    assert (second["state"], second["old_files"]) == ("completed", 2)
    assert "2 files are left out" in said[-3] and all("INT96" in each for each in said[-2:])
    assert clustered() == {}
    assert clustered(again=True)["state"] == "rejected"
    pq.write_table(pa.table({"x": [1]}), table / "day=2/0.parquet")
    age(table / "day=2/0.parquet", 30)
    pq.write_table(pa.table({"x": [1]}), table / "day=2/2.parquet")
    age(table / "day=2/2.parquet", 30)
    third = clustered()
    assert (third["state"], third["old_files"]) == ("completed", 2)


def test_a_plan_under_another_name_is_refused(days: Lake) -> None:
    plan = scheduled(days, **BY_X)
    directory = days.root / "t/.skipbridge/clustering"
    for name in ("20200101000000000", "20200101000000001"):
        (directory / f"{name}.requested.json").write_bytes(plan.to_bytes())
        with pytest.raises(FileCorrupt, match=f"is the plan of '{plan.instant}'"):
            timeline_of(days).plan(name)


@pytest.mark.parametrize("change", [{"more": 1}, {"new": None}, {"new": [{"path": 3}]}])
def test_a_record_that_is_none_is_named(days: Lake, change: dict[str, Any]) -> None:
    before, _ = read(days)
    plan = scheduled(days, **BY_X)
    path = days.root / f"t/.skipbridge/clustering/{plan.instant}.group-00001.json"
    path.write_text(json.dumps({"id": 1, "new": [], "rows": 0, **change}))
    report = executed(days, plan)
    ((group, reason),) = report.rejected
    assert (report.state, report.old_files, group) == ("completed", 4, 1)
    assert path.name in reason and "no record of a group" in reason
    assert executed(days, scheduled(days, **BY_X)).old_files == 2
    assert read(days)[0] == before


class AnswersLost:
    """A storage that is told to create a file, does so, and then says that it was there."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def put_if_absent(self, uri: str, content: bytes) -> bool:
        self._storage.put_if_absent(uri, content)
        return False


def test_a_plan_whose_answer_was_lost_is_not_made_twice(days: Lake) -> None:
    lost: Any = AnswersLost(days.storage)
    plan = scheduled(days, lost, **BY_X)
    (state,) = timeline_of(days).states(None)
    assert (state.instant, state.state) == (plan.instant, "requested")
    other = replace(plan, layout="hilbert")
    assert not timeline_of(days, lost).request(other) and plan.groups
