"""The sizes of batches, against calls of known cost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.metastore.adaptive_batch_size import AdaptiveBatchSize


def learnt(fixed: float, each: float, sizes: list[int], target: float = 0.1) -> AdaptiveBatchSize:
    pace = AdaptiveBatchSize(target)
    for n in sizes:
        pace.took(n, fixed + each * n)
    return pace


def test_without_a_call_the_first_size_stays() -> None:
    assert AdaptiveBatchSize(0.1).size(1000, 4, 10, 1000) == 10


def test_one_call_gives_a_guess() -> None:
    """200 partitions, a first call of 10 in 20 ms: the rest in two calls, not in four."""
    pace = learnt(0.020, 0, [10])
    first = pace.size(190, 4, 10, 1000)
    assert 60 <= first <= 130
    assert pace.size(190 - first, 3, 10, 1000) == 190 - first


@pytest.mark.parametrize(
    ("fixed", "each", "size"),
    [
        (0.020, 0.0001, 498),  # shared out among the calls
        (0.020, 0.001, 80),  # no longer than the target
        (0.040, 0.00003, 1000),  # mostly overhead: as few calls as the cap allows
        (0.300, 0.001, 300),  # slower than the target in any size: half of it overhead
    ],
)
def test_sizes_of_two_thousand(fixed: float, each: float, size: int) -> None:
    pace = learnt(fixed, each, [10, 50, 100, 200, 100, 300])
    assert pace.size(1990, 4, 10, 1000) == pytest.approx(size, rel=0.02)


def test_it_forgets_a_slow_hour() -> None:
    pace = learnt(0.020, 0.01, [10, 20, 10, 20, 10])
    slow = pace.size(2000, 4, 10, 1000)
    for n in [10, 40, 10, 100, 10, 200, 300, 10, 400, 500, 10, 500]:
        pace.took(n, 0.020 + 0.0001 * n)
    assert slow == 10
    assert pace.size(2000, 4, 10, 1000) > 300


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 100)), max_size=20),
    st.integers(1, 100_000),
    st.integers(1, 8),
    st.integers(1, 50),
    st.integers(0, 5000),
)
def test_always_within_its_bounds(
    calls: list[tuple[int, float]], remaining: int, parallelism: int, least: int, more: int
) -> None:
    pace = AdaptiveBatchSize(0.1)
    for n, seconds in calls:
        pace.took(n, seconds)
    assert least <= max(pace.size(remaining, parallelism, least, least + more), least)
    assert pace.size(remaining, parallelism, least, least + more) <= max(least + more, least)
