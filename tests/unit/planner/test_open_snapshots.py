"""Snapshots shared by the scans of a query: which state they see, and how long they are held."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bridge.expression.builders import eq
from bridge.kernel.errors import SnapshotExpired
from bridge.kernel.types import BIGINT, INTEGER
from bridge.planner.index_view import IndexView
from bridge.planner.open_snapshots import OpenSnapshot, OpenSnapshots, SnapshotKey
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.planner.scan_plan import ScanPlan
from bridge.storage.port import EMPTY, FileTable
from bridge.table.directory.freshness import Live
from bridge.table.model import Column
from bridge.table.read_version import NEWEST
from bridge.table.slices import join_files
from tests.support.lake import NAME, Lake


@dataclass
class Listing:
    """A snapshot that holds so many files."""

    listed_files: int
    id: str = ""


def key(query: str) -> SnapshotKey:
    return SnapshotKey(query, NAME, NEWEST, Live(), None, False)


def put(snapshots: OpenSnapshots, query: str, files: int) -> OpenSnapshot:
    opened = OpenSnapshot(Listing(files), IndexView(None))  # type: ignore[arg-type]
    return snapshots.put(key(query), opened)


def read(snapshots: OpenSnapshots, opened: OpenSnapshot) -> None:
    snapshots.begin_scan(opened)
    snapshots.end_scan(opened)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path, (Column("x", BIGINT),), (Column("p", INTEGER),))
    lake.partition_values = [(str(p),) for p in range(4)]
    for p in range(4):
        lake.write("a.parquet", {"x": pa.array([p], pa.int64())}, (str(p),))
    return lake


def drawn(plan: ScanPlan) -> set[str]:
    found = {str(path) for batch in plan.batches() for path in batch.files.paths}
    plan.close()
    return found


@pytest.mark.rule("31")
def test_the_oldest_go_when_all_hold_too_many_files() -> None:
    snapshots = OpenSnapshots(most_files=100)
    for number in range(4):
        read(snapshots, put(snapshots, f"q{number}", 40))
    assert [snapshots.get(key(f"q{n}")) is not None for n in range(4)] == [False, False, True, True]
    read(snapshots, put(snapshots, "huge", 1000))
    assert snapshots.get(key("q3")) is None
    assert snapshots.get(key("huge")) is not None  # the newest stays, whatever it holds
    with pytest.raises(SnapshotExpired):
        snapshots.expired_id(key("q0"))


def test_files_listed_ahead_of_scans_are_counted() -> None:
    snapshots = OpenSnapshots(most_files=100)
    for number in range(4):
        put(snapshots, f"q{number}", 60)
    assert snapshots.get(key("q0")) is None
    assert snapshots.expired_id(key("q0")) == ""  # nobody has read it


def test_the_end_of_a_scan_asks_no_other_snapshot_what_it_holds() -> None:
    """With thousands held, each end of a scan took up to seconds, and held up all others."""
    snapshots = OpenSnapshots()
    asked: list[str] = []

    @dataclass
    class Counted:
        query: str
        id: str = ""

        @property
        def listed_files(self) -> int:
            asked.append(self.query)
            return 1

    held = []
    for number in range(50):
        opened = OpenSnapshot(Counted(f"q{number}"), IndexView(None))  # type: ignore[arg-type]
        held.append(snapshots.put(key(f"q{number}"), opened))
    asked.clear()
    read(snapshots, held[7])
    assert asked == ["q7"]


def test_a_snapshot_dropped_before_its_first_batch_is_not_replaced_afterwards() -> None:
    snapshots = OpenSnapshots(most_files=10)
    opened = put(snapshots, "q", 8)
    read(snapshots, put(snapshots, "other", 8))
    read(snapshots, put(snapshots, "third", 8))
    read(snapshots, opened)  # its plan was open all the time
    read(snapshots, put(snapshots, "fourth", 8))
    del opened
    assert snapshots.get(key("q")) is None
    with pytest.raises(SnapshotExpired):
        snapshots.expired_id(key("q"))


def test_a_snapshot_is_held_from_when_its_last_plan_was_closed(lake: Lake) -> None:
    """A join may read its first side for longer than a snapshot is held, and then the other."""
    planner = lake.planner()
    first = planner.plan(ScanRequest(NAME, query_id="q"))
    assert len([path for batch in first.batches() for path in batch.files.paths]) == 4
    planner.snapshots._held.seconds = -1.0
    assert planner.snapshots.get(key("another")) is None  # whoever asks drops what is too old
    planner.snapshots._held.seconds = 600.0
    lake.write("b.parquet", {"x": pa.array([9], pa.int64())}, ("0",))
    first.close()
    del first
    assert len(drawn(planner.plan(ScanRequest(NAME, query_id="q")))) == 4


def test_a_partition_that_moves_between_two_scans_is_seen_once(lake: Lake, tmp_path: Path) -> None:
    planner = lake.planner()
    request = ScanRequest(NAME, eq("p", 1), query_id="q")
    before = drawn(planner.plan(request))
    lake.locations["p=1"] = tmp_path / "elsewhere"
    lake.write("moved.parquet", {"x": pa.array([5], pa.int64())}, ("1",))
    both = drawn(planner.plan(ScanRequest(NAME, query_id="q")))
    assert before <= both
    assert len(both) == 4


def test_partitions_of_one_location_are_listed_once(lake: Lake) -> None:
    for p in range(4):
        lake.locations[f"p={p}"] = lake.root / "t" / "p=0"
    planner: Planner = lake.planner()
    listed: list[int] = []
    each = planner.lister.each

    def counted(partitions, *args, **options):  # type: ignore[no-untyped-def]
        listed.append(len(partitions))
        return each(partitions, *args, **options)

    planner.lister.each = counted  # type: ignore[method-assign]
    plan = planner.plan(ScanRequest(NAME, query_id="q"))
    assert sum(len(batch) for batch in plan.batches()) == 4
    assert sum(listed) == 1


def test_an_empty_listing_does_not_hide_the_etags_of_the_others() -> None:
    """On object stores a file rewritten at its size within a second differs in its etag alone."""
    some = FileTable(
        pa.array(["s3://b/p=1/a"], pa.large_string()),
        np.array([1]),
        np.array([2]),
        pa.array(["e"], pa.large_string()),
    )
    joined = join_files(
        [some, EMPTY, replace(some, paths=pa.array(["s3://b/p=2/a"], pa.large_string()))]
    )
    assert joined.etags is not None
    assert joined.etags.to_pylist() == ["e", "e"]
    assert len(join_files([EMPTY, EMPTY])) == 0
