"""At rest a table rests, and one that grows has few files: the law of plans, without any file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.groupings.grouping import Candidates
from bridge.clustering.planning.depth import is_written, rewrites_of
from bridge.clustering.planning.eligibility import GIB, MIB, Limits, plan_groups
from bridge.clustering.registry import grouping
from tests.tiers import examples

EXAMPLES = examples(100, 100, 3000)
JOINS = 8
"""How often at most the two smallest files of plans are rewritten with few new bytes."""


@dataclass(frozen=True, slots=True)
class File:
    """Attributes: rewrites: of the row in it that was rewritten most often.

    rows: the files of writers that held its rows.
    """

    size: int
    low: int
    high: int
    rewrites: int = 0
    rows: tuple[int, ...] = ()

    @property
    def written(self) -> bool:
        return self.rewrites > 0


class Growing:
    """One partition; a rewrite leaves a share of the bytes: small files have large footers."""

    def __init__(self, limits: Limits, share: float, by: str = "overlap") -> None:
        self.limits, self.share, self.by = limits, share, by
        self.files: list[File] = []
        self.added = self.written = 0.0
        self.first: list[int] = []
        self.rewritten: Counter[int] = Counter()

    def add(self, files: list[File]) -> None:
        for file in files:
            self.files.append(replace(file, rows=(len(self.first),)))
            self.first.append(file.size)
        self.added += sum(file.size for file in files)

    def check_rewrites(self) -> None:
        """No row was rewritten more often than is promised, where a rewrite shrinks no file."""
        for row, count in self.rewritten.items():
            doublings = max(0.0, np.log2(self.limits.target / self.first[row]))
            assert count <= JOINS + 1 + doublings, (count, self.first[row], self.limits)

    def plan(self) -> list[list[int]]:
        count = len(self.files)
        found = Candidates(
            tuple(f"f{i:06}" for i in range(count)),
            np.array([file.size for file in self.files], np.int64),
            np.arange(count),
            np.array([[file.low for file in self.files]], np.int64),
            np.array([[file.high for file in self.files]], np.int64),
        )
        rewrites = np.array([file.rewrites for file in self.files], np.int64)
        plan = plan_groups({"": found}, grouping(self.by), self.limits, rewrites={"": rewrites})
        return [group for _, group in plan]

    def run(self) -> int:
        """Executes plans until there is none; how many there were."""
        plans = 0
        while groups := self.plan():
            plans += 1
            held = [i for group in groups for i in group]
            assert len(held) == len(set(held)) and len(groups) <= self.limits.most_groups
            made: list[File] = []
            for group in groups:
                made += self._rewritten([self.files[i] for i in group])
            self.files = [f for i, f in enumerate(self.files) if i not in set(held)] + made
        return plans

    def _rewritten(self, files: list[File]) -> list[File]:
        new = [file for file in files if not file.written]
        old = sorted((file.size, file.rewrites) for file in files if file.written)
        planned = sum(file.size for file in files)
        assert new and (planned <= self.limits.most_per_group or len(files) == 1)
        held = sum(file.size for file in new)
        for place, (size, rewrites) in enumerate(old):
            joins = place < 2 and len(new) > 1 and rewrites <= JOINS
            assert size <= held * (JOINS if joins else 1), (place, size, held)
            held += size
        size = sum(file.size * (1 if file.written else self.share) for file in files)
        self.written += size
        count = self.limits.outputs(int(planned))
        level = 1 + max(file.rewrites for file in files)
        rows = Counter(row for file in files for row in set(file.rows))
        self.rewritten.update(rows.keys())
        edges = np.linspace(
            min(f.low for f in files), max(f.high for f in files), count + 1
        ).astype(int)
        return [
            File(int(size / count), int(edges[i]), int(edges[i + 1]), level, tuple(rows))
            for i in range(count)
        ]


SIZES = st.integers(1, 40) | st.integers(1, 1200)
FILES = st.lists(
    st.builds(lambda s, at, w: File(s, at, at + w), SIZES, st.integers(0, 999), st.integers(0, 99)),
    max_size=40,
)


@settings(max_examples=EXAMPLES)
@given(
    st.lists(FILES, min_size=1, max_size=6),
    st.builds(
        Limits,
        target=st.integers(50, 1000),
        small=st.integers(50, 1000),
        most_per_group=st.integers(1000, 4000),
        most_groups=st.integers(1, 5),
    ),
    st.sampled_from([0.2, 0.6, 1.0]),
    st.sampled_from(["overlap", "range", "size", "time", "random"]),
)
def test_a_run_leaves_one_small_file_and_the_next_one_writes_nothing(
    rounds: list[list[File]], limits: Limits, share: float, by: str
) -> None:
    table = Growing(limits, share, by)
    for files in rounds:
        table.add(files)
        table.run()
        small = [f for f in table.files if not f.written and f.size < limits.packed]
        assert len(small) <= 1
        written = table.written
        assert table.run() == 0 and table.written == written
    if share == 1.0:
        table.check_rewrites()


@pytest.mark.parametrize("share", [0.95, 0.5, 0.25])
@pytest.mark.parametrize("target", [GIB, 6 * MIB, 2 * MIB, MIB])
def test_thirty_rounds_leave_few_files_and_write_little(share: float, target: int) -> None:
    table = Growing(Limits(target=target, small=min(600 * MIB, target)), share)
    for number in range(30):
        table.add([File(20_000, 10 * number + i, 10 * number + i) for i in range(10)])
        table.run()
    assert len(table.files) <= table.added / target + 2
    assert table.written <= 6 * table.added


def test_a_thousand_rounds_rewrite_a_row_seldom() -> None:
    table = Growing(Limits(target=GIB), 1.0)
    for number in range(1000):
        table.add([File(20_000, number, number) for _ in range(10)])
        table.run()
    assert len(table.files) <= 12
    assert max(file.rewrites for file in table.files) <= JOINS + 1 + np.log2(1000)
    assert table.written <= 16 * table.added


@pytest.mark.parametrize("ratio", [1, 2, 4, 7, 8, 9])
def test_a_row_is_rewritten_seldom_whatever_arrives(ratio: int) -> None:
    """Each time so few bytes that the smallest file of plans may just join them, or just not."""
    limits = Limits(target=1 << 30)
    table = Growing(limits, 1.0)
    table.add([File(limits.target // 4, 0, 9)] * 2)
    table.run()
    table.add([File(500, 0, 9)] * 2)
    for _ in range(700):
        table.run()
        new = -(-min(file.size for file in table.files) // ratio // 2)
        if new > limits.packed:
            break
        table.add([File(new, 0, 9)] * 2)
    table.check_rewrites()
    assert len(table.files) <= 20 + 2 * table.added / limits.target


@pytest.mark.parametrize("by", ["overlap", "size"])
@pytest.mark.parametrize("small", [1000, 2000])
@pytest.mark.parametrize("new", range(300, 2000, 50))
def test_files_of_about_the_target_are_not_rewritten_in_vain(by: str, small: int, new: int) -> None:
    """Each round brings about the target: two files of it would become two again."""
    table = Growing(Limits(target=1000, small=small, most_per_group=8000), 1.0, by)
    for number in range(30):
        table.add([File(new // 10, 10 * number + i, 10 * number + i) for i in range(10)])
        table.run()
    table.check_rewrites()
    assert table.written <= 3 * table.added


@settings(max_examples=EXAMPLES)
@given(
    st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=3), min_size=1, max_size=40),
    st.sampled_from([Limits(1 << 30), Limits(1 << 20, 1 << 20), Limits(1 << 20)]),
)
def test_random_arrivals_rewrite_a_row_seldom(rounds: list[list[int]], limits: Limits) -> None:
    """Files of all sizes, drawn by their logarithm."""
    table = Growing(limits, 1.0)
    for number, sizes in enumerate(rounds):
        table.add([File(int(100 * 1.5**size), number, number) for size in sizes])
        table.run()
    table.check_rewrites()


def test_files_of_plans_are_known_by_their_names() -> None:
    name = "c00001-0-0002-0123456789ab.parquet"
    assert is_written(f"file:///t/.skipbridge_clustered/20260101000000000/d=1/{name}")
    assert is_written(f"file:///t/.skipbridge_clustered/published-20260101000000000/d=1/{name}")
    assert not is_written(f"file:///t/d=1/{name}")
    assert not is_written("file:///t/.skipbridge_clustered/published-1/d=1/part-0.parquet")
    name = "file:///t/.skipbridge_clustered/20260101000000000/c00001-0-0002-0123456789ab"
    assert rewrites_of(f"{name}-3.parquet-data") == 3 and is_written(f"{name}-3.parquet-data")
    assert rewrites_of(f"{name}.parquet-data") > JOINS  # of an older version
    assert rewrites_of("file:///t/c00001-0-0002-0123456789ab-3.parquet-data") == 0
