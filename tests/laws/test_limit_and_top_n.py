"""The laws of LIMIT, top-N and answers from statistics, against a scan of the rows.

Random tables, files, predicates and statistics, which are exact, or forget and blur: files that a
limit leaves hold enough rows, a top-N's hold its first rows with all ties, and an answer is what
counting and comparing the rows gives.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from bridge.expression.bind import bind
from bridge.expression.evaluate import Row
from bridge.expression.nodes import AlwaysTrue, BoundReference, Expression
from bridge.expression.prune import prune
from bridge.expression.statistics import ColumnStatistics, Counts, Mask
from bridge.kernel.types import Value
from bridge.planner.answers.aggregates import Aggregate, AggregateRequest, NotAnswerable, Tally
from bridge.planner.request import SortKey
from bridge.planner.stages.limit_pruning import slices_for_limit
from bridge.planner.stages.top_n import files_with_first_rows
from tests.support.oracles import oracle, place
from tests.support.strategies import Case, Statistics, Table, cases, expression, table

FILES, QUESTIONS = 14, 8
asked: Counter[str] = Counter()


class Files:
    """Statistics of files that also count their rows, some of which are not known."""

    def __init__(self, data: Table, rng: random.Random, weaken: bool, lost: float = 0.2) -> None:
        self._inner = Statistics(data, rng if weaken else None)
        self.num_files = len(data.files)
        forget = [weaken and rng.random() < lost for _ in data.files]
        counts = [-1 if gone else len(rows) for rows, gone in zip(data.files, forget, strict=True)]
        self.rows: Counts = np.array(counts, dtype=np.int64)

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        return self._inner.column(reference)


def question(rng: random.Random, data: Table) -> Expression:
    return AlwaysTrue() if rng.random() < 0.5 else expression(rng, data, rng.choice((0, 1, 2)))


@given(cases())
def test_a_limit_leaves_enough_rows(case: Case) -> None:
    rng = case.rng()
    data = table(rng, case.types, FILES)
    judge = oracle(case, data)
    sizes = np.array([rng.randrange(100) for _ in data.files], dtype=np.int64)
    for known in (Files(data, rng, False), Files(data, rng, True)):
        for _ in range(QUESTIONS):
            node = question(rng, data)
            bound = bind(node, data.columns, [], case.semantics)
            answers = prune(bound, known, case.semantics)
            limit = rng.choice((1, 2, 5, 20))
            chosen = slices_for_limit(answers.always, known.rows, sizes, limit)
            asked["limits"] += 1
            if chosen is None:
                continue
            rows = [row for i in chosen for row in data.files[i]]
            assert sum(judge.truth(node, row) is True for row in rows) >= limit
            assert len(set(chosen.tolist())) == len(chosen) <= limit
            asked["limits stopped"] += len(chosen) < len(data.files)


@given(cases())
def test_a_top_n_leaves_its_first_rows_with_all_ties(case: Case) -> None:
    rng = case.rng()
    data = table(rng, case.types, FILES)
    judge = oracle(case, data)
    for weak in (False, True):
        known = Files(data, rng, weak)
        for _ in range(QUESTIONS):
            node = question(rng, data)
            bound = bind(node, data.columns, [], case.semantics)
            answers = prune(bound, known, case.semantics)
            path = rng.choice(list(data.paths))
            key = SortKey(".".join(path), rng.random() < 0.5, rng.random() < 0.5)
            count = rng.choice((1, 2, 5, 20))
            column = known.column(BoundReference(path, data.paths[path]))
            # Batches, as partitions come: their bounds must be ranked together.
            cut = rng.randrange(FILES + 1)
            parts = [_part(column, answers.always, known.rows, s) for s in _slices(cut)]
            ranked = files_with_first_rows(parts, key, count)
            assert len(ranked.keep) == len(ranked.best) == FILES
            asked["top"] += FILES
            asked["top dropped"] += int((~ranked.keep).sum())
            for nan_largest in (False, True):
                _holds(data, judge, node, key, count, ranked.keep, nan_largest)


def _slices(cut: int) -> list[slice]:
    return [slice(0, cut), slice(cut, FILES)]


def _part(
    column: ColumnStatistics | None, always: Mask, rows: Counts, part: slice
) -> tuple[ColumnStatistics | None, Mask, Counts]:
    if column is None:
        return None, always[part], rows[part]

    def cut(values: Any) -> Any:
        return None if values is None else values[part]

    sliced = ColumnStatistics(
        column.type,
        cut(column.lower),
        cut(column.upper),
        cut(column.lower_known),
        cut(column.upper_known),
        cut(column.exact),
        column.null_count[part],
        column.nan_count[part],
        column.row_count[part],
        cut(column.all_null),
    )
    return sliced, always[part], rows[part]


def _holds(
    data: Table,
    judge: Any,
    node: Expression,
    key: SortKey,
    count: int,
    keep: Mask,
    nan_largest: bool,
) -> None:
    path = next(p for p in data.paths if ".".join(p) == key.column)
    rows: list[tuple[tuple[int, Any], bool]] = [
        (place(row[path], key, nan_largest), bool(keep[i]))
        for i, file in enumerate(data.files)
        for row in file
        if judge.truth(node, row) is True
    ]
    rows.sort(key=lambda pair: pair[0])
    if not rows:
        return
    last = rows[min(count, len(rows)) - 1][0]
    # Every row that is not strictly after the last of the first n may be among them.
    assert all(kept for where, kept in rows if not last < where), (key, count)


@given(cases())
def test_answers_are_what_the_rows_say(case: Case) -> None:
    rng = case.rng()
    data = table(rng, case.types, FILES)
    for weak in (False, True):
        known = Files(data, rng, weak, lost=0.01)
        paths = list(data.paths)
        for _ in range(QUESTIONS):
            path = rng.choice(paths)
            function = rng.choice(("count", "count", "min", "max"))
            whole = function == "count" and rng.random() < 0.3
            column = None if whole else BoundReference(path, data.paths[path])
            few = sorted(rng.sample(range(FILES), rng.choice((1, 2, FILES))))
            asked["answers"] += 1
            try:
                found = _answer(known, Aggregate(function, column), few)
            except NotAnswerable:
                continue
            asked[f"answered {function}"] += 1
            asked["answered blurred"] += weak
            rows = [row for i in few for row in data.files[i]]
            expected = _scan(function, None if whole else path, rows)
            assert found == expected and type(found) is type(expected), (function, path, rows)


def _answer(known: Files, aggregate: Aggregate, few: list[int]) -> Value | None:
    tally = Tally(AggregateRequest((aggregate,)))
    half = len(few) // 2
    for part in (few[:half], few[half:]):
        tally.add(known, [((), np.array(part, dtype=np.int64))])
    ((_, (value,)),) = tally.rows()
    return value


def _scan(function: str, path: Any, rows: list[Row]) -> Value | None:
    if path is None:
        return len(rows)
    values: list[Any] = [row[path] for row in rows if row[path] is not None]
    if function == "count":
        return len(values)
    assert not any(v != v for v in values), "an answer in spite of NaN"
    return (min if function == "min" else max)(values, default=None)


def test_the_laws_were_asked_and_files_were_left_out() -> None:
    if not asked:
        pytest.skip("the laws were not asked in this run")
    assert asked["limits stopped"] > asked["limits"] // 5, asked
    assert asked["top dropped"] > asked["top"] // 8, asked
    for function in ("count", "min", "max"):
        assert asked[f"answered {function}"] > asked["answers"] // 20, asked
    assert asked["answered blurred"] > asked["answers"] // 20, asked
