"""Plans of the HTTP door: pages, freshness, and plans that are given again or made again."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.iceberg_rest import plans
from bridge.table.directory.freshness import parse_freshness
from tests.support.iceberg_door import JAVA, PYICEBERG, TABLE, OpenDoor, open_door, over, ten_files
from tests.support.lake import Lake, age


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return ten_files(tmp_path)


@pytest.fixture
def door(lake: Lake) -> Iterator[OpenDoor]:
    with open_door(lake) as opened:
        yield opened


# Pages


def test_pages_are_answered_by_any_planner(
    lake: Lake, door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "_PAGE_FILES", 3)
    first = door.plan(filter=over(25)).json()
    assert len(first["file-scan-tasks"]) == 3 and len(first["plan-tasks"]) == 2
    with open_door(lake) as other:
        names = [t["data-file"]["file-path"] for t in first["file-scan-tasks"]]
        for token in first["plan-tasks"]:
            answer = other.post(f"{TABLE}/tasks", {"plan-task": token}, JAVA)
            assert answer.status_code == 200, answer.text
            names += [t["data-file"]["file-path"] for t in answer.json()["file-scan-tasks"]]
        assert sorted(n[-10:] for n in names) == [f"f{i}.parquet" for i in range(2, 10)]
        assert len(door.table().scan(row_filter="id > 25").to_arrow()) == 74

        token = first["plan-tasks"][0]
        told = json.loads(base64.urlsafe_b64decode(token))
        bad = [told | {"p": 99}, told | {"d": "0"}, told | {"t": ["db", "u"]}, {}]
        bad.append(told | {"d": "0", "f": base64.b64encode(b"\x00").decode()})
        spelled = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode() for each in bad]
        for each in ("", "x", "AAAA", *spelled):
            answer = other.post(f"{TABLE}/tasks", {"plan-task": each}, JAVA)
            assert answer.status_code == 404, each
            assert answer.json()["error"]["type"] == "NoSuchPlanTaskException"
        assert other.post(f"{TABLE}/tasks", {"plan-task": token}, PYICEBERG).status_code == 404


def test_a_large_filter_is_kept_by_its_planner(
    lake: Lake, door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "_PAGE_FILES", 3)
    monkeypatch.setattr(plans, "_LONGEST_FILTER", 10)
    token = door.plan(filter=over(25)).json()["plan-tasks"][0]
    assert door.post(f"{TABLE}/tasks", {"plan-task": token}, JAVA).status_code == 200
    with open_door(lake) as other:
        assert other.post(f"{TABLE}/tasks", {"plan-task": token}, JAVA).status_code == 404


def test_few_large_plans_are_made_at_once(door: OpenDoor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_MANY_FILES", 5)
    monkeypatch.setattr(door.plans, "_large", threading.BoundedSemaphore(2))
    counts, under_way, most = plans.Plans._counts, [0], [0]
    lock = threading.Lock()

    def slow(self: plans.Plans, *told: Any) -> list[int]:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.02)
        with lock:
            under_way[0] -= 1
        return counts(self, *told)

    monkeypatch.setattr(plans.Plans, "_counts", slow)
    with ThreadPoolExecutor(8) as pool:
        assert all(len(each) == 10 for each in pool.map(lambda _: door.files(), range(24)))
    assert most[0] <= 2
    assert len(door.files(filter=over(85))) == 2


# Freshness


def loaded(door: OpenDoor) -> int:
    answer = door.get(TABLE, JAVA).json()
    found: int = answer["metadata"]["current-snapshot-id"]
    return found


def test_a_snapshot_pins_the_generation(lake: Lake, door: OpenDoor) -> None:
    pinned = loaded(door)
    lake.write("new.parquet", {"id": [1000], "name": ["new"]})
    assert len(door.files(**{"snapshot-id": pinned})) == 10
    lake.build()
    assert loaded(door) != pinned
    assert len(door.files(**{"snapshot-id": pinned})) == 10
    assert len(door.files(**{"snapshot-id": loaded(door)})) == 11
    assert len(door.files()) == 11
    gone = door.plan(**{"snapshot-id": pinned + 1000})
    assert gone.status_code == 400 and "REFRESH TABLE" in gone.text, gone.text
    other = door.plan(**{"snapshot-id": pinned ^ (1 << 40)})
    assert other.status_code == 400 and "REFRESH TABLE" in other.text


@pytest.mark.parametrize("freshness", ["live", "cached(60s)"])
def test_a_file_written_since(lake: Lake, freshness: str) -> None:
    with open_door(lake, freshness) as door:
        held = loaded(door)
        table = door.table()
        assert len(door.files(**{"snapshot-id": held})) == 10
        lake.write("new.parquet", {"id": [1000], "name": ["new"]})
        (lake.path("f0.parquet")).unlink()
        found = door.files(**{"snapshot-id": held})
        if freshness == "live":
            assert "new.parquet" in found and "f0.parquet" not in found
            assert table.scan(row_filter="id = 1000").to_arrow()["name"].to_pylist() == ["new"]
        else:
            assert len(found) == 10


@pytest.mark.parametrize(
    ("freshness", "again"),
    [("snapshot", True), ("cached(60s)", True), ("cached(10s)", False), ("live", False)],
)
def test_a_plan_is_given_again_while_it_stays_true(
    lake: Lake, freshness: str, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java plans an aggregate twice; a plan of a listing is given again only within its age."""
    with open_door(lake, freshness) as door:
        held = {"snapshot-id": loaded(door)}
        asked: list[str | None] = []
        snapshot = door.planner.snapshot

        def noted(request: Any) -> Any:
            asked.append(request.freshness)
            return snapshot(request)

        monkeypatch.setattr(door.planner, "snapshot", noted)
        for _ in range(2):
            assert len(door.files(filter=over(45), **held)) == 6
        assert len(door.planned) == (1 if again else 2)
        # The listing is younger than it may be by as long as its plan is given again.
        assert set(asked) == {"cached(50s)" if freshness == "cached(60s)" else None}
        later = SimpleNamespace(
            monotonic=lambda: time.monotonic() + 11, perf_counter=time.perf_counter
        )
        monkeypatch.setattr(plans, "time", later)
        assert len(door.files(filter=over(45), **held)) == 6
        assert len(door.planned) == (2 if again else 3)


def test_a_plan_of_a_pinned_state_is_none_of_a_live_one(lake: Lake) -> None:
    """Both have the same files and one id."""
    with open_door(lake, "live") as door:
        assert len(door.files()) == 10
        door.planner._freshness = parse_freshness("snapshot")
        for _ in range(2):
            assert len(door.files(**{"snapshot-id": loaded(door)})) == 10
        door.planner._freshness = parse_freshness("live")
        lake.write("new.parquet", {"id": [1000], "name": ["new"]})
        assert len(door.files()) == 11


def test_a_rewritten_file_is_read_anew(lake: Lake) -> None:
    with open_door(lake, "live") as door:
        assert door.files(filter=over(85)) == {"f8.parquet", "f9.parquet"}
        path = lake.write("f0.parquet", {"id": [500, 501], "name": ["x", "y"]})
        age(path, 1.0)
        tasks = door.plan(filter=over(95)).json()["file-scan-tasks"]
        counts = {t["data-file"]["file-path"][-10:]: t["data-file"]["record-count"] for t in tasks}
        assert counts == {"f0.parquet": 2, "f9.parquet": 10}


@pytest.mark.parametrize("freshness", ["live", "cached(60s)"])
def test_a_file_that_changes_while_it_is_planned(
    lake: Lake, freshness: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its listing and its footer: the plan is made again, of a newer state."""
    new = lake.write("new.parquet", {"id": [1000], "name": ["new"]})
    changes: list[Callable[[], object]] = []
    reads: list[str] = []
    with open_door(lake, freshness) as door:
        reader = door.plans._footers._reader
        read = reader.read

        def changed(storage: Any, file: Any) -> Any:
            reads.append(file.uri)
            if changes:
                changes.pop()()
            return read(storage, file)

        monkeypatch.setattr(reader, "read", changed)
        changes.append(new.unlink)
        assert len(door.files()) == 10
        rows = {"id": list(range(1000, 1500)), "name": ["y"] * 500}
        lake.write("new.parquet", {"id": [1000], "name": ["new"]})
        door.planner.lister._cache.clear()
        changes.append(lambda: lake.write("new.parquet", rows))
        tasks = door.plan(filter=over(998)).json()["file-scan-tasks"]
        assert [task["data-file"]["record-count"] for task in tasks] == [500]

        changes += [
            lambda n=n: lake.write("new.parquet", {"id": [0] * n, "name": ["z" * n] * n})
            for n in range(600, 700)
        ]
        lake.write("new.parquet", {"id": [1], "name": ["o"]})
        answer = door.plan(filter=over(0))
        assert answer.status_code == 503 and "FILE_CHANGED" in answer.text
        assert "run the query again" in answer.text

        changes.clear()
        reads.clear()
        new.write_bytes(b"PAR1 and no more")
        age(new)
        broken = door.plan(filter=over(1))
        assert broken.status_code == 500 and "new.parquet" in broken.text
        assert len(reads) == 1 or freshness != "live"  # it stays broken


def test_a_limit_plans_few_files(door: OpenDoor) -> None:
    assert len(door.files(**{"min-rows-requested": 5})) == 1
    assert len(door.files(**{"min-rows-requested": 15})) == 2
    # A filter may leave less of each file than it counts.
    assert len(door.files(**{"min-rows-requested": 5, "filter": over(-1)})) == 10
