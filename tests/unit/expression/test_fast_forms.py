"""Forms that are fast to search say what looking at each file says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from bridge.expression import bounds, intervals, prune
from bridge.expression.bind import bind
from bridge.expression.intervals import Intervals
from bridge.expression.nodes import BoundReference
from bridge.expression.parsing.text import parse_where
from bridge.expression.statistics import ColumnStatistics
from bridge.kernel.types import BIGINT, TRINO, Field

COUNT = 400
INFINITE = (-(2**63), 2**63 - 1)


@dataclass
class Held:
    columns: dict[str, ColumnStatistics]
    num_files: int = COUNT

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        return self.columns.get(reference.path[0])


def made(rng: np.random.Generator, *, ascending: bool, unknown: bool) -> ColumnStatistics:
    lower = rng.integers(0, 1000, COUNT)
    upper = lower + rng.integers(0, 12, COUNT)
    if unknown:
        lower[rng.random(COUNT) < 0.02] = INFINITE[0]
        upper[rng.random(COUNT) < 0.02] = INFINITE[1]
    if ascending:
        lower.sort()
        upper.sort()
    zeros = np.zeros(COUNT, np.int64)
    return ColumnStatistics(
        BIGINT, lower, upper, None, None, None, zeros, zeros, zeros + 5, None
    )  # fmt: skip


@pytest.fixture
def every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "MIN_FILES", 0)
    monkeypatch.setattr(intervals, "MIN_VALUES", 1)
    monkeypatch.setattr(prune, "MANY_FILES", 0)
    monkeypatch.setattr(bounds, "_MANY", 0)
    monkeypatch.setattr(bounds, "_LONG", 1)
    monkeypatch.setattr(bounds, "_BUCKET_BITS", 4)


WORDS = ("x = {0}", "x < {0}", "x <= {0}", "x > {0}", "x >= {0}", "x BETWEEN {0} AND {1}",
         "x IN ({0}, {1}, {2})", "x <> {0}", "x NOT IN ({0}, {1})", "x IS NULL")  # fmt: skip


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("unknown", [True, False])
def test_m4_every_form_gives_one_answer(every_size: None, ascending: bool, unknown: bool) -> None:
    rng = np.random.default_rng(7)
    fields = (Field("x", BIGINT), Field("y", BIGINT), Field("z", BIGINT))
    skipped = 0
    for _ in range(150):
        plain = {f.name: made(rng, ascending=ascending, unknown=unknown) for f in fields}
        fast = {
            name: replace(c, ascending=ascending, intervals=Intervals(c.lower, c.upper, ascending))  # type: ignore[arg-type]
            for name, c in plain.items()
        }
        parts = []
        for name in rng.permutation(["x", "y", "z"])[: rng.integers(1, 4)]:
            numbers = sorted(rng.integers(-10, 1020, 3).tolist())
            parts.append(WORDS[rng.integers(len(WORDS))].format(*numbers).replace("x", name))
        text = f" {rng.choice(['AND', 'OR'])} ".join(parts)
        bound = bind(parse_where(text)[0], fields, (), TRINO)
        slow = np.zeros(COUNT, np.bool_)
        with pytest.MonkeyPatch.context() as off:
            off.setattr(prune, "MANY_FILES", 10**9)
            off.setattr(bounds, "_MANY", 10**9)
            slow |= prune.prune(bound, Held(plain), TRINO).never
        quick = prune.prune(bound, Held(fast), TRINO).never
        assert quick.tolist() == slow.tolist(), text
        skipped += int(quick.sum())
    assert skipped > 150 * COUNT // 3


def test_long_lists(every_size: None) -> None:
    rng = np.random.default_rng(8)
    declined = 0
    for number in range(200):
        column = made(rng, ascending=bool(number % 2), unknown=number % 5 == 0)
        lower, upper = column.lower, column.upper
        assert isinstance(lower, np.ndarray) and isinstance(upper, np.ndarray)
        values = np.unique(rng.integers(-20, 1030, int(rng.integers(1, 40))))
        held = Intervals(lower, upper, bool(number % 2))
        asked = tuple(values.tolist())
        first, found = held.none_of(asked), held.none_of(asked)
        assert number % 2 or first is None  # not sorted for one question
        inside = ((lower[:, None] <= values) & (values <= upper[:, None])).any(axis=1)
        assert bounds.between_neighbours(lower, upper, asked).tolist() == (~inside).tolist()
        if found is None:
            declined += 1
            continue
        assert found.tolist() == (~inside).tolist()
    assert 0 < declined < 150


def test_overlapping_files_are_left_to_the_plain_way(every_size: None) -> None:
    lower, upper = np.zeros(COUNT, np.int64), np.full(COUNT, 9)
    assert Intervals(lower, upper, True).none_of((5,)) is None


def test_values_at_the_ends_of_the_type(every_size: None) -> None:
    lower = np.array([INFINITE[0], 0, INFINITE[1] - 1, 7])
    upper = np.array([INFINITE[0] + 1, 5, INFINITE[1], 7])
    for values in ((INFINITE[0], INFINITE[1]), (INFINITE[0] + 1, 3, 6), (5, INFINITE[1] - 1)):
        inside = ((lower[:, None] <= values) & (np.array(values) <= upper[:, None])).any(axis=1)
        assert bounds.between_neighbours(lower, upper, values).tolist() == (~inside).tolist()
