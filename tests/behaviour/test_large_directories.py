"""A directory too large for one chunk: nothing is lost or doubled, and nobody waits for its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.expression.nodes import AlwaysTrue
from bridge.expression.parsing.text import parse_where
from bridge.kernel.errors import StorageFailure
from bridge.kernel.types import INTEGER
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.storage.port import FileTable
from bridge.storage.routed import open_storage
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Column
from tests.support.lake import NAME, Lake, age, drained, kept

pytestmark = pytest.mark.full

FILES = 45


class Storage:
    """The real one, which notes the pages that were listed and may fail at one of them."""

    def __init__(self) -> None:
        self._storage = open_storage()
        self.listed = 0
        self.fails_at = -1

    def pages(self, prefix: str, **options: Any) -> Iterator[FileTable]:
        for page in self._storage.pages(prefix, **options):
            if self.listed == self.fails_at:
                raise StorageFailure("the store is gone", "try again")
            self.listed += 1
            yield page

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("storage.local_disk.local_listing._FIRST_PAGE", 9),
        ("storage.local_disk.local_listing._PAGE", 20),
        ("table.directory.lister._FIRST_CHUNK", 4),
        ("table.directory.lister._CHUNK", 7),
        ("table.slices._PIECE", 5),
    ):
        monkeypatch.setattr(f"bridge.{name}", value)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    made = Lake(tmp_path, (Column("x", INTEGER),))
    for n in range(FILES):
        write(made, n)
    made.build()
    return made


def write(lake: Lake, n: int, x: int | None = None) -> Path:
    values = pa.array([n if x is None else x], pa.int32())
    return lake.write(f"f{n:03d}.parquet", pa.table({"x": values}))


def planner_over(lake: Lake, storage: Storage) -> Planner:
    made = lake.planner()
    return Planner(lake, made.views, DirectoryLister(storage, 4), metadata_ttl=0.0)  # type: ignore[arg-type]


def numbers(uris: set[str]) -> list[int]:
    return sorted(int(uri[-11:-8]) for uri in uris)


@pytest.mark.parametrize("freshness", ["live", "cached(60s)", "snapshot"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x BETWEEN 8 AND 10", [8, 9, 10]),
        ("x IN (0, 44)", [0, 44]),
        ("x < 0", []),
        ("x >= 3", list(range(3, FILES))),
        ("\"$path\" LIKE '%f01%'", list(range(FILES))),
        ('"$file_size" > 0', list(range(FILES))),
        ("true", list(range(FILES))),
    ],
)
def test_what_matches_is_kept(lake: Lake, text: str, expected: list[int], freshness: str) -> None:
    predicate, _ = parse_where(text)
    assert numbers(kept(lake.planner(), predicate, freshness=freshness)) == expected


def test_files_that_changed_are_read(lake: Lake) -> None:
    (lake.directory(()) / "f012.parquet").unlink()
    write(lake, 20, x=99)
    age(lake.directory(()) / "f030.parquet")
    write(lake, 100)
    predicate, _ = parse_where("x = 3")
    assert numbers(kept(lake.planner(), predicate)) == [3, 20, 30, 100]
    predicate, _ = parse_where("x = 12")
    assert numbers(kept(lake.planner(), predicate)) == [20, 30, 100]


def test_the_first_files_come_while_the_rest_is_listed(lake: Lake) -> None:
    storage = Storage()
    plan = planner_over(lake, storage).plan(ScanRequest(NAME, AlwaysTrue()))
    batches = plan.batches()
    assert len(next(batches).files) == 4
    assert storage.listed == 1
    assert sum(len(batch.files) for batch in batches) == FILES - 4
    assert storage.listed == 3


def test_scans_of_one_query_share_a_listing_under_way(lake: Lake) -> None:
    storage = Storage()
    planner = planner_over(lake, storage)
    first = planner.plan(ScanRequest(NAME, AlwaysTrue(), query_id="q")).batches()
    found = next(first).files.paths.to_pylist()
    second = drained(planner.plan(ScanRequest(NAME, AlwaysTrue(), query_id="q")))
    write(lake, 100)
    found += [path for batch in first for path in batch.files.paths.to_pylist()]
    assert set(found) == second
    assert len(found) == FILES
    assert storage.listed == 3


def test_a_listing_that_fails_midway_fails_every_scan_of_it(lake: Lake) -> None:
    storage = Storage()
    storage.fails_at = 1
    planner = planner_over(lake, storage)
    scans = [planner.plan(ScanRequest(NAME, AlwaysTrue(), query_id="q")).batches() for _ in "ab"]
    for scan in scans:
        next(scan)
    for scan in scans:
        with pytest.raises(StorageFailure):
            list(scan)
    storage.fails_at = -1
    again = drained(planner.plan(ScanRequest(NAME, AlwaysTrue(), query_id="q")))
    assert len(again) == FILES


def test_what_is_listed_ahead_is_what_the_scan_reads(lake: Lake) -> None:
    storage = Storage()
    planner = planner_over(lake, storage)
    planner.look_ahead("q", NAME)
    ended = threading.Event()
    planner.lister.background(ended.set)
    assert ended.wait(10)
    planner.look_ahead("q", NAME)
    assert len(drained(planner.plan(ScanRequest(NAME, AlwaysTrue(), query_id="q")))) == FILES
    assert storage.listed == 3
    planner.lister.close()
    planner.look_ahead("q2", NAME)


def test_what_failed_ahead_is_listed_again(lake: Lake) -> None:
    storage = Storage()
    storage.fails_at = 0
    planner = planner_over(lake, storage)
    pin = planner.plan(ScanRequest(NAME, AlwaysTrue(), query_id="q"))
    planner.look_ahead("q", NAME)
    with pytest.raises(StorageFailure):
        drained(pin)
    storage.fails_at = -1
    assert len(drained(planner.plan(ScanRequest(NAME, AlwaysTrue(), query_id="q")))) == FILES
