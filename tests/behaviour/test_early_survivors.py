"""Survivors known to the index come while a large directory is being listed, once and unchanged."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.expression.parsing.text import parse_where
from bridge.kernel.types import INTEGER
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest, SortKey
from bridge.planner.scan_plan import ScanPlan
from bridge.storage.port import FileTable
from bridge.storage.routed import open_storage
from bridge.table.directory.freshness import parse_freshness
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Column
from tests.support.lake import NAME, Lake, age

FILES = 30


class Storage:
    """The real one, whose listings wait until they are let go."""

    def __init__(self) -> None:
        self._storage = open_storage()
        self.go = threading.Event()

    def pages(self, prefix: str, **options: Any) -> Iterator[FileTable]:
        assert self.go.wait(20)
        yield from self._storage.pages(prefix, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.planner.stages.early_survivors.MIN_FILES", 10)
    monkeypatch.setattr("bridge.planner.stages.early_survivors.MAX_LOOKS", 8)


def lake_at(root: Path) -> Lake:
    made = Lake(root, (Column("x", INTEGER),))
    for n in range(FILES):
        write(made, n)
    made.build()
    return made


def write(lake: Lake, n: int, x: int | None = None) -> Path:
    rows = [n if x is None else x] * (1 if x is None else 2)  # of another size
    return lake.write(f"f{n:03d}.parquet", pa.table({"x": pa.array(rows, pa.int32())}))


def opened(lake: Lake, storage: Storage, where: str, **options: Any) -> ScanPlan:
    planner = Planner(
        lake,
        lake.planner().views,
        DirectoryLister(storage, 4),  # type: ignore[arg-type]
        freshness=parse_freshness("live"),  # as the settings of a server spell it
        metadata_ttl=0.0,
    )
    predicate, _ = parse_where(where)
    return planner.plan(ScanRequest(NAME, predicate, **options))


def numbers(batches: Any) -> list[int]:
    return [int(p.as_py()[-11:-8]) for batch in batches for p in batch.files.paths]


def test_known_survivors_do_not_wait_for_the_listing(tmp_path: Path) -> None:
    lake, storage = lake_at(tmp_path), Storage()
    plan = opened(lake, storage, "x BETWEEN 8 AND 10")
    batches = plan.batches()
    assert numbers([next(batches)]) == [8, 9, 10]
    write(lake, 100)
    storage.go.set()
    assert numbers(batches) == [100]
    report = plan.report()
    assert (report.files_total, report.files_kept) == (FILES + 1, 4)


def test_what_changed_comes_with_the_listing(tmp_path: Path) -> None:
    lake, storage = lake_at(tmp_path), Storage()
    write(lake, 9, x=7)
    (lake.directory(()) / "f010.parquet").unlink()
    age(lake.directory(()) / "f011.parquet", 99)
    batches = opened(lake, storage, "x BETWEEN 8 AND 11").batches()
    assert numbers([next(batches)]) == [8]
    storage.go.set()
    assert sorted(numbers(batches)) == [9, 11]


def test_a_file_rewritten_after_it_was_handed_out_is_not_handed_out_twice(tmp_path: Path) -> None:
    # The engine compares size and time when it opens the file, and tells that it changed.
    lake, storage = lake_at(tmp_path), Storage()
    batches = opened(lake, storage, "x BETWEEN 8 AND 10").batches()
    assert numbers([next(batches)]) == [8, 9, 10]
    write(lake, 9, x=1)
    storage.go.set()
    assert numbers(batches) == []


@pytest.mark.parametrize(("where", "seen"), [("true", [29]), ("x <= 20", [20])])
def test_a_top_n_begins_with_what_the_index_has_first(
    tmp_path: Path, where: str, seen: list[int]
) -> None:
    lake, storage = lake_at(tmp_path), Storage()
    order = (SortKey("x", descending=True, nulls_first=False),)
    batches = opened(lake, storage, where, limit=1, order=order).batches()
    assert numbers([next(batches)]) == seen
    write(lake, 100, x=20)  # not indexed: it may hold whatever is greatest
    storage.go.set()
    assert numbers(batches) == [100]


@pytest.mark.parametrize(
    ("where", "options"),
    [
        ("x >= 0", {}),
        ("true", {}),
        ("x = 3", {"limit": 1}),
        ("x = 3", {"pruning": False}),
        ("x = 3", {"freshness": "snapshot"}),
    ],
)
def test_otherwise_the_listing_is_first(tmp_path: Path, where: str, options: Any) -> None:
    lake, storage = lake_at(tmp_path), Storage()
    storage.go.set()
    plan = opened(lake, storage, where, **options)
    wanted = [3] if "3" in where and options.get("pruning", True) else list(range(FILES))
    assert sorted(numbers(plan.batches())) == wanted


def test_narrowed_before_it_is_handed_out(tmp_path: Path) -> None:
    lake, storage = lake_at(tmp_path), Storage()
    plan = opened(lake, storage, "x BETWEEN 8 AND 10")
    early = next(batches := plan.batches())
    narrower, _ = parse_where("x = 9")
    plan.apply_dynamic_filter(narrower)
    assert numbers([plan.refine(early)]) == [9]
    storage.go.set()
    assert numbers(plan.refine(batch) for batch in batches) == []
    assert plan.report().files_kept == 1


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, FILES + 4), st.sampled_from(["write", "remove", "touch"])),
        max_size=6,
    ),
    st.integers(0, FILES),
    st.integers(0, 4),
)
def test_each_file_that_may_match_comes_once(
    tmp_path_factory: pytest.TempPathFactory, changes: Any, low: int, width: int
) -> None:
    lake, storage = lake_at(tmp_path_factory.mktemp("lake")), Storage()
    storage.go.set()
    changed: set[int] = set()
    there = set(range(FILES))
    for n, what in changes:
        path = lake.directory(()) / f"f{n:03d}.parquet"
        changed.add(n)
        if what == "write" or not path.exists():
            write(lake, n, x=n)
            there.add(n)
        elif what == "remove":
            path.unlink()
            there.discard(n)
        else:
            age(path, 99 + len(changed))
    found = numbers(opened(lake, storage, f"x BETWEEN {low} AND {low + width}").batches())
    wanted = (set(range(low, low + width + 1)) | changed) & there
    assert sorted(found) == sorted(wanted)
