"""Records of plans that ended: deleted after a retention, never one that somebody asks for."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bridge.clustering.cleaning import Cleaner
from bridge.clustering.commands.run import _shown
from bridge.clustering.old_plans import OldPlans
from bridge.clustering.plan import ClusteringPlan
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import alike_plans
from bridge.clustering.planning.triggers import completed_plans
from bridge.index.generations.replacements import FileState
from bridge.index.generations.store import now_micros
from bridge.kernel.errors import InvalidRequest
from bridge.kernel.types import BIGINT, STRING
from bridge.table.model import Column
from tests.support.clustered import executed, read, scheduled, timeline_of
from tests.support.index_builds import Killed
from tests.support.lake import Lake, age
from tests.support.published import Life, cleaned, stat

pytestmark = pytest.mark.full

BY_X: dict[str, Any] = {"layout": "linear", "columns": ("x",), "grouping": "time"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, (Column("x", BIGINT), Column("s", STRING)))
    for i in range(4):
        made.write(f"f{i}.parquet", {"x": [i, 9 - i], "s": ["a", None]})
    made.build()
    return made


def records(lake: Lake) -> dict[str, set[str]]:
    """The kinds of the records that are there, by plan."""
    found: dict[str, set[str]] = {}
    for path in (lake.root / "t/.skipbridge/clustering").glob("*.json"):
        instant, kind, _ = path.name.split(".")
        found.setdefault(instant, set()).add(kind.partition("-")[0])
    return found


def old(lake: Lake) -> None:
    for path in (lake.root / "t/.skipbridge/clustering").glob("*.json"):
        age(path, 7200)


def states(lake: Lake) -> dict[str, str]:
    found = timeline_of(lake).states(lake.store().latest())
    return {each.instant: each.state for each in found}


def three_plans(lake: Lake) -> list[ClusteringPlan]:
    """Two that were completed and whose files nobody reads any more, and the one that is read."""
    made = []
    for _ in range(3):
        plan = scheduled(lake, **BY_X, again=True)
        assert executed(lake, plan).state == "completed"
        made.append(plan)
    return made


def test_records_go_after_the_files_of_their_plan(lake: Lake) -> None:
    before, _ = read(lake)
    first, second, last = three_plans(lake)
    assert cleaned(lake, dry_run=True).plans == 0
    report = cleaned(lake)
    assert (report.rewritten, report.plans) == (2, 0)  # the records lead to the files
    assert cleaned(lake, dry_run=True).plans == 2 and len(records(lake)) == 3
    assert cleaned(lake, older_than=3600).plans == 0
    assert cleaned(lake).plans == 2
    assert set(records(lake)) == {last.instant}
    assert [p.instant for p in completed_plans(timeline_of(lake), _newest(lake))] == [last.instant]
    assert cleaned(lake).plans == 0 and read(lake)[0] == before
    assert scheduled(lake, **BY_X).groups == ()
    # Which plans were completed, the index itself knows.
    for plan in (first, second):
        assert executed(lake, plan).state == "completed"
    assert read(lake)[0] == before


def _newest(lake: Lake) -> Any:
    found = lake.store().latest()
    assert found is not None
    return found


def test_the_retention_of_records_is_their_own(lake: Lake) -> None:
    three_plans(lake)
    cleaned(lake)
    soon, past = now_micros() + 5_000_000, now_micros() - 3_600_000_000
    for before, records_before in ((soon, past), (past, soon)):
        cleaner = Cleaner(lake.table(), lake.store(), None, before, records_before=records_before)
        assert cleaner.run().plans == 0
    old(lake)
    cleaner = Cleaner(lake.table(), lake.store(), None, soon, records_before=past)
    assert cleaner.run().plans == 2


def test_plans_that_wait_stay_and_those_that_ended_without_files_go(lake: Lake) -> None:
    cancelled = scheduled(lake, **BY_X)
    timeline_of(lake).end(cancelled.instant, "cancelled")
    refused = scheduled(lake, **BY_X)
    file = FileState.of(stat(lake, lake.root / "t/f0.parquet"))
    timeline_of(lake).refuse(refused.instant, {file: "UNSUPPORTED"})
    timeline_of(lake).reject(refused.instant)
    waits = scheduled(lake, **BY_X)
    assert waits.groups and cleaned(lake).plans == 2
    assert records(lake) == {refused.instant: {"refused"}, waits.instant: {"requested"}}
    assert list(timeline_of(lake).list_refused()) == [file]  # it is as it was
    lake.write("f0.parquet", {"x": [1], "s": ["b"]})
    assert cleaned(lake).plans == 0  # perhaps of a plan that begins
    old(lake)
    assert cleaned(lake).plans == 1
    assert records(lake) == {waits.instant: {"requested"}}
    assert executed(lake, waits).state == "rejected"  # f0 has changed


def test_a_run_that_slept_does_not_commit_a_plan_whose_records_are_gone(lake: Lake) -> None:
    before = read(lake)
    plan = scheduled(lake, **BY_X)
    timeline_of(lake).end(plan.instant, "cancelled")
    assert cleaned(lake).plans == 1 and records(lake) == {}
    with pytest.raises(InvalidRequest, match="there is no clustering plan"):
        executed(lake, plan)
    assert read(lake) == before


def test_plans_that_are_cleaned_up_while_they_are_listed_end_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    three_plans(lake)
    timeline, manifest = timeline_of(lake), _newest(lake)
    before = timeline.states(manifest)
    cleaned(lake)
    assert cleaned(lake).plans == 2
    monkeypatch.setattr(timeline, "states", lambda _: before)
    strategy: Any = type("Strategy", (), BY_X)
    assert alike_plans(timeline, manifest, strategy) == {before[-1].instant}
    shown = [_shown(timeline, each) for each in before]
    assert ["problem" in each for each in shown] == [True, True, False]


def test_a_plan_that_was_requested_while_files_were_deleted_stays(lake: Lake) -> None:
    """However long that took."""
    waits = scheduled(lake, **BY_X)
    old(lake)
    plans = OldPlans(lake.storage, timeline_of(lake), now_micros() + 5_000_000)
    assert plans.forget([], set()) == 0
    assert executed(lake, waits).state == "completed"


@pytest.mark.parametrize("done", [False, True])
def test_a_run_that_dies_leaves_no_plan_that_waits(lake: Lake, done: bool) -> None:
    before, _ = read(lake)
    three_plans(lake)
    for _ in range(2):
        plan = scheduled(lake, **BY_X, again=True, limits=Limits(most_groups=1))
        timeline_of(lake).begin(plan.instant)
        timeline_of(lake).end(plan.instant, "cancelled")
    ended = states(lake)
    assert sorted(ended.values()) == ["cancelled"] * 2 + ["completed"] * 3
    for last in range(1, 30):
        life = Life(last, done=done)
        with suppress(Killed):
            cleaned(lake, life)
        now = states(lake)
        assert now.items() <= ended.items()
        assert read(lake)[0] == before
    assert len(now) == 1
    old(lake)
    cleaned(lake)
    assert set(records(lake)) == set(now)
