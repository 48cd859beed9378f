"""Which files are rewritten together: the examples of RFC-19, limits and partition filters."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.clustering.groupings.grouping import Candidates
from bridge.clustering.planning.eligibility import (
    GIB,
    MIB,
    Limits,
    PartitionFilter,
    _natural,
    plan_groups,
)
from bridge.clustering.registry import group_filter, group_filters, grouping, groupings
from bridge.kernel.errors import InvalidConfiguration

TARGET = Limits(target=GIB, small=600 * MIB, most_per_group=100 * GIB)


def files(
    sizes: list[int], ranges: list[tuple[int, int]] | None = None, modified: list[int] | None = None
) -> Candidates:
    count = len(sizes)
    spans = np.array(ranges or [], np.int64).reshape(-1, 2)
    return Candidates(
        tuple(f"file:///t/{i:03}.parquet" for i in range(count)),
        np.array(sizes, np.int64),
        np.array(modified or range(count), np.int64),
        spans[:, 0].reshape(-1, count),
        spans[:, 1].reshape(-1, count),
    )


def test_partitions_of_odd_digits_have_an_order() -> None:
    names = ["p=10", "p=9", "p=1²2", "p=１2", "p=²"]
    assert sorted(names, key=_natural) == ["p=1²2", "p=9", "p=10", "p=１2", "p=²"]


def planned(
    found: Candidates, limits: Limits = TARGET, by: str = "overlap"
) -> list[tuple[list[int], int]]:
    groups = plan_groups({"": found}, grouping(by), limits)
    return [(g, limits.outputs(int(found.sizes[g].sum()))) for _, g in groups]


def test_eight_files_of_half_the_target_become_four() -> None:
    assert planned(files([512 * MIB] * 8, [(0, 9)] * 8)) == [(list(range(8)), 4)]


def test_two_of_eight_files_overlap() -> None:
    ranges = [(10 * i, 10 * i + 9) for i in range(8)]
    ranges[5] = (35, 59)  # reaches into file 3
    ranges[4] = (5000, 5009)
    assert planned(files([512 * MIB] * 8, ranges)) == [([3, 5], 1)]


def test_four_of_eight_files_overlap() -> None:
    ranges = [(10 * i, 10 * i + 9) for i in range(8)]
    ranges[1] = (10, 45)
    assert planned(files([512 * MIB] * 8, ranges)) == [([1, 2, 3, 4], 2)]


def test_five_files_of_100_mb_with_a_maximum_of_250_mb() -> None:
    limits = Limits(target=250 * MIB, small=600 * MIB, most_per_group=GIB)
    assert planned(files([100 * MIB] * 5), limits, "size") == [([0, 1, 2, 3, 4], 2)]


def test_boxes_overlap_only_if_they_do_in_every_column() -> None:
    found = files([200 * MIB] * 3)
    low = np.array([[0, 0, 0], [0, 10, 5]])
    high = np.array([[9, 9, 9], [4, 12, 10]])
    boxes = Candidates(found.paths, found.sizes, found.modified, low, high)
    assert planned(boxes) == [([1, 2], 1)]


def test_files_above_the_limit_are_left_alone() -> None:
    assert planned(files([700 * MIB, MIB, MIB]), by="size") == [([1, 2], 1)]
    over = Limits(target=10 * MIB, small=600 * MIB)
    assert planned(files([11 * MIB, MIB, MIB]), over, "size") == [([1, 2], 1)]


def test_a_lone_file_is_not_rewritten() -> None:
    for name in groupings():
        assert planned(files([MIB], [(0, 9)]), by=name) == []


def test_groups_are_capped_in_bytes_and_in_number() -> None:
    limits = Limits(target=GIB, small=GIB, most_per_group=2 * MIB, most_groups=2)
    for name in groupings():
        groups = planned(files([MIB] * 7, [(0, 9)] * 7), limits, name)
        assert [len(g) for g, _ in groups] == [2, 2], name


@pytest.mark.parametrize("name", ["range", "time", "size", "random", "overlap"])
def test_groups_are_disjoint(name: str) -> None:
    rng = np.random.default_rng(5)
    low = rng.integers(0, 1000, 60)
    sizes = rng.integers(1, 90, 60).tolist()
    found = files(sizes, list(zip(low.tolist(), (low + 30).tolist(), strict=True)))
    groups = grouping(name).groups(found, 200)
    held = [i for g in groups for i in g]
    assert len(held) == len(set(held))
    assert all(sum(sizes[i] for i in g) <= 200 for g in groups)
    assert groups == grouping(name).groups(found, 200)


def test_by_range_and_by_time_keep_neighbours_together() -> None:
    found = files([1] * 4, [(30, 40), (0, 5), (31, 32), (1, 90)], modified=[4, 1, 3, 2])
    assert grouping("range").groups(found, 2) == [[1, 3], [0, 2]]
    assert grouping("time").groups(found, 2) == [[1, 3], [2, 0]]


def test_partitions_are_filtered_and_ordered() -> None:
    names = [f"day={i}" for i in (1, 2, 9, 10, 11)]
    assert PartitionFilter().of(names) == ["day=11", "day=10", "day=9", "day=2", "day=1"]
    assert PartitionFilter(newest_first=False, recent=2).of(names) == ["day=10", "day=11"]
    assert PartitionFilter(skip=1, recent=1).of(names) == ["day=10"]
    assert PartitionFilter(selected=("day=1*",), skip=1).of(names) == ["day=10", "day=1"]


def test_partitions_of_recent_days() -> None:
    names = [f"region={r}/dt=2026-02-{d:02}" for d in (1, 2, 3, 9) for r in "ab"]
    found = PartitionFilter(days=7).of([*names, "region=a/dt=__HIVE_DEFAULT_PARTITION__"])
    assert sorted(found) == [f"region={r}/dt=2026-02-{d:02}" for r in "ab" for d in (3, 9)]
    hours = [f"year=2026/month=1/day={d}/hour={h}" for d in (30, 31) for h in range(24)]
    assert set(PartitionFilter(days=1).of(hours)) == set(hours[24:])
    assert PartitionFilter(days=2).of(["d=20251231", "d=20260101", "d=20251230", "d=99999999"]) == [
        "d=20260101",
        "d=20251231",
    ]
    assert PartitionFilter(days=2).of(["x=1", ""]) == []


def test_rolling_partitions_take_turns() -> None:
    names = [f"day={i}" for i in range(200)]
    turns = [PartitionFilter(rolling=24, hour=hour).of(names) for hour in range(490_000, 490_024)]
    held = [name for turn in turns for name in turn]
    assert sorted(held) == sorted(names) and max(map(len, turns)) < 24
    assert turns[3] == PartitionFilter(rolling=24, hour=490_027).of(names)
    more = PartitionFilter(rolling=24, hour=490_003).of([*names, "day=200", "day=1000"])
    assert [name for name in more if name in names] == turns[3]  # each keeps its hour
    assert len(PartitionFilter(rolling=24).of(names)) == 200  # advice is on all of them


def test_an_unknown_grouping() -> None:
    with pytest.raises(InvalidConfiguration, match="no grouping 'nearest'"):
        grouping("nearest")


def test_group_filters() -> None:
    found = files([MIB] * 4, [(0, 9), (5, 12), (20, 30), (40, 50)])
    limits = Limits(target=GIB, small=GIB, most_per_group=2 * MIB)
    pairs = plan_groups({"": found}, grouping("range"), limits)
    assert [g for _, g in pairs] == [[0, 1], [2, 3]]
    assert set(group_filters()) >= {"fewer", "overlapping"}
    kept = plan_groups(
        {"": found}, grouping("range"), limits, filters=[group_filter("overlapping")]
    )
    assert kept == [("", [0, 1])]
    fewer = group_filter("fewer")
    assert fewer.keeps(found, 3 * MIB) and not fewer.keeps(found, MIB)
    assert plan_groups({"": found}, grouping("range"), limits, filters=[fewer]) == pairs
    with pytest.raises(InvalidConfiguration, match="no group filter 'best'"):
        group_filter("best")
