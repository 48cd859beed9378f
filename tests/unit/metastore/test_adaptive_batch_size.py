"""First sizes and caps, against calls of known cost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.metastore.adaptive_batch_size import AdaptiveBatchSize


def learnt(fixed: float, each: float, sizes: list[int], target: float = 0.1) -> AdaptiveBatchSize:
    adaptive = AdaptiveBatchSize(target)
    for n in sizes:
        adaptive.took(n, fixed + each * n)
    return adaptive


def cap(adaptive: AdaptiveBatchSize, count: int) -> int:
    return adaptive.first_and_cap(count, 4, 10, 10, 1000)[1]


def test_without_a_call_the_sizes_stay() -> None:
    assert AdaptiveBatchSize(0.1).first_and_cap(1000, 4, 10, 100, 1000) == (10, 100)


def test_one_call_gives_a_guess() -> None:
    """200 partitions, a first call of 10 in 20 ms: the next scan takes a few calls, not five."""
    first, cap = learnt(0.020, 0, [10]).first_and_cap(200, 4, 10, 20, 1000)
    assert 60 <= cap <= 130
    assert first + 2 * first + 2 * cap >= 200


@pytest.mark.parametrize(
    ("fixed", "each", "first", "size"),
    [
        (0.020, 0.0001, 30, 500),  # shared out among the calls
        (0.020, 0.001, 12, 80),  # no longer than the target
        (0.040, 0.00003, 100, 1000),  # mostly overhead: as few calls as are allowed
        (0.300, 0.001, 40, 300),  # slower than the target in any size: half of it overhead
    ],
)
def test_sizes_of_two_thousand(fixed: float, each: float, first: int, size: int) -> None:
    adaptive = learnt(fixed, each, [10, 50, 100, 200, 100, 300])
    assert cap(adaptive, 2000) == pytest.approx(size, rel=0.02)
    found = adaptive.first_and_cap(2000, 4, 10, 100, 1000)
    assert found == pytest.approx((first, max(size, 100)), rel=0.02, abs=1)


def test_many_calls_of_one_size_do_not_hide_what_the_others_taught() -> None:
    adaptive = learnt(0.020, 0.0001, [10, 20, 40, 80] + [100] * 200)
    assert cap(adaptive, 2000) == pytest.approx(500, rel=0.02)


def test_it_forgets_a_slow_hour() -> None:
    adaptive = learnt(0.020, 0.01, [10, 20, 10, 20, 10])
    slow = cap(adaptive, 2000)
    for n in [10, 40, 10, 100, 10, 200, 300, 10, 400, 500, 10, 500]:
        adaptive.took(n, 0.020 + 0.0001 * n)
    assert slow == 10
    assert cap(adaptive, 2000) > 300


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5000), st.floats(0, 100)), min_size=1, max_size=20),
    st.integers(1, 100_000),
    st.integers(1, 8),
    st.integers(1, 50),
    st.integers(0, 500),
    st.integers(0, 5000),
)
def test_always_within_its_bounds(
    calls: list[tuple[int, float]], count: int, parallelism: int, start: int, more: int, most: int
) -> None:
    adaptive = AdaptiveBatchSize(0.1)
    for n, seconds in calls:
        adaptive.took(n, seconds)
    cap, largest = start + more, start + more + most
    first, raised = adaptive.first_and_cap(count, parallelism, start, cap, largest)
    assert start <= first <= cap <= raised <= largest
