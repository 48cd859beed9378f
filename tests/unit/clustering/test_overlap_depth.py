"""Overlap depth equals brute force, and rewrites of clustered files keep every row."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.groupings.grouping import Candidates
from bridge.clustering.planning.depth import deeper_than, of_one_rewrite, overlap_depth
from bridge.index.reading.replaced_files import FileState, Replacement, compose_replacements
from tests.tiers import examples

EXAMPLES = examples(150, 150, 3000)
RANGES = st.tuples(st.integers(0, 20), st.integers(0, 8)).map(lambda r: (r[0], r[0] + r[1]))


@settings(max_examples=EXAMPLES)
@given(st.lists(RANGES, min_size=1, max_size=25))
def test_depth_in_one_column(ranges: list[tuple[int, int]]) -> None:
    low, high = np.array(ranges, np.int64).T
    covered = {p: sum(a <= p <= b for a, b in ranges) for p in range(30)}
    expected = [max(covered[p] for p in range(a, b + 1)) for a, b in ranges]
    assert overlap_depth(low[None], high[None]).tolist() == expected


@settings(max_examples=EXAMPLES)
@given(st.lists(st.tuples(RANGES, RANGES), min_size=1, max_size=12))
def test_depth_in_two_columns(boxes: list[tuple[tuple[int, int], tuple[int, int]]]) -> None:
    low = np.array([[b[k][0] for b in boxes] for k in (0, 1)], np.int64)
    high = np.array([[b[k][1] for b in boxes] for k in (0, 1)], np.int64)
    found = overlap_depth(low, high).tolist()

    def at(x: int, y: int) -> set[int]:
        inside = [(a <= x <= b and c <= y <= d) for (a, b), (c, d) in boxes]
        return {i for i, each in enumerate(inside) if each}

    points = [at(x, y) for x in {b[0][0] for b in boxes} for y in {b[1][0] for b in boxes}]
    exact = [max(len(p) for p in points if i in p) for i in range(len(boxes))]
    assert all(1 <= f <= e for f, e in zip(found, exact, strict=True))
    for i, (one, two) in enumerate(boxes):
        alone = not any(
            j != i and a <= one[1] and one[0] <= b and c <= two[1] and two[0] <= d
            for j, ((a, b), (c, d)) in enumerate(boxes)
        )
        assert (found[i] == 1) or not alone


def candidates(ranges: list[tuple[int, int]]) -> Candidates:
    low, high = np.array(ranges, np.int64).T
    count = len(ranges)
    paths = tuple(f"file:///t/{i}" for i in range(count))
    return Candidates(
        paths, np.ones(count, np.int64), np.zeros(count, np.int64), low[None], high[None]
    )


def test_only_deep_files_are_taken_up() -> None:
    files = candidates([(0, 9), (5, 12), (6, 7), (20, 30), (30, 40), (25, 25), (25, 25)])
    assert deeper_than(2)(files).tolist() == [True, True, True, True, False, False, False]
    assert deeper_than(1)(files).tolist() == [True] * 5 + [False] * 2
    assert not deeper_than(1)(candidates([(4, 4)] * 9)).any()


def test_files_of_one_rewrite_are_known() -> None:
    def written(*names: str) -> list[FileState]:
        return [FileState(f"file:///t/.skipbridge_clustered/{n}", 1, 1) for n in names]

    one, two = "20260101000000000", "20260101000000001"
    pair = written(f"{one}/day=1/c00001-0-0000-ab.parquet", f"{one}/day=1/c00001-0-0001-cd.parquet")
    assert of_one_rewrite(pair, {one}) and not of_one_rewrite(pair, {two})
    assert not of_one_rewrite(written(f"{one}/c1-a", f"{one}/c2-a"), {one})
    assert not of_one_rewrite(written(f"{one}/c1-a", f"{two}/c1-a"), {one, two})
    assert not of_one_rewrite([FileState("file:///t/a", 1, 1)], {one})


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_composed_replacements_hold_the_rows_of_their_old_files(data: st.DataObject) -> None:
    """Random rewrites of listed and of new files, some unsound, several times in a row."""
    rows: dict[str, Counter[int]] = {}
    number = 0

    def file(content: Counter[int]) -> FileState:
        nonlocal number
        number += 1
        state = FileState(f"file:///t/{number}", number, number)
        rows[state.path] = content
        return state

    listed = [file(Counter(data.draw(st.lists(st.integers(0, 3), max_size=3)))) for _ in range(6)]
    total: Counter[int] = sum((rows[s.path] for s in listed), Counter())
    held: list[Replacement] = []
    for _ in range(data.draw(st.integers(1, 5))):
        known = [*listed, *(state for each in held for state in each.new)]
        groups = []
        for _ in range(data.draw(st.integers(1, 3))):
            old = tuple(
                data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=4, unique=True))
            )
            whole = sorted(sum((rows[s.path] for s in old), Counter()).elements())
            cut = data.draw(st.integers(0, len(whole)))
            new = (file(Counter(whole[:cut])), file(Counter(whole[cut:])))
            groups.append(Replacement("", old, new))
        untouched, made = compose_replacements(held, groups)
        taken = {state.path for each in made for state in each.old}
        kept = [e for e in untouched if not any(s.path in taken for s in e.old)]
        held = [*kept, *made]
        paths = {state.path for state in listed}
        replaced = [state.path for each in held for state in each.old]
        assert len(replaced) == len(set(replaced))
        for each in held:
            before: Counter[int] = sum((rows[s.path] for s in each.old), Counter())
            assert before == sum((rows[s.path] for s in each.new), Counter())
            listed_only = {s.path for s in each.old} <= paths
            if not listed_only:
                held = [e for e in held if e is not each]  # it never holds
        seen = sum((rows[s.path] for each in held for s in each.new), Counter())
        rest = paths - {s.path for each in held for s in each.old}
        assert seen + sum((rows[path] for path in rest), Counter()) == total
