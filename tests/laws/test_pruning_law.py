"""The law: a file with a matching row is never NEVER, and ALWAYS means that every row matches.

Asked of random tables, files and predicates against a scan of the rows by the oracle, which sees
the predicate as it was written: rewriting, binding and pruning are all held to it.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given

from bridge.expression import prune as prune_module
from bridge.expression.bind import bind
from bridge.expression.evaluate import Rounding
from bridge.expression.fold import is_exact
from bridge.expression.nodes import (
    BoundExpression,
    BoundPredicate,
    BoundReference,
    Expression,
    Unknown,
)
from bridge.expression.prune import prune
from bridge.expression.residual import residual
from bridge.expression.rewrite import normalise, push_not
from tests.support.oracles import oracle
from tests.support.strategies import Case, Statistics, cases, expression, table

FILES, PREDICATES = 14, 14
asked: Counter[str] = Counter()
rounded: Counter[str] = Counter()


@given(cases())
def test_never_and_always_keep_the_law(case: Case) -> None:
    rng = case.rng()
    data = table(rng, case.types, FILES, more_digits=True)
    rounding = rng.choice(list(Rounding))
    judge = oracle(case, data, rounding)
    known = (Statistics(data), Statistics(data, rng))
    for _ in range(PREDICATES):
        asked_for = expression(rng, data, depth=rng.choice((0, 1, 2, 3)))
        bound = bind(asked_for, data.columns, [], case.semantics)
        truth = [[judge.truth(asked_for, row) is True for row in rows] for rows in data.files]
        for statistics in known:
            answers = prune(bound, statistics, case.semantics)
            always = answers.always
            for i, matched in enumerate(truth):
                assert not (answers.never[i] and any(matched)), (asked_for, data.files[i])
                assert not (always[i] and not all(matched)), (asked_for, data.files[i])
            asked["pairs"] += len(truth)
            asked["never"] += int(answers.never.sum())
            asked["always"] += int(always.sum())


@given(cases())
def test_rounded_bounds_answer_as_bounds_do(case: Case) -> None:
    """So they keep the law as bounds do: alone, of what earlier conjuncts left, weakened or not."""
    rng = case.rng()
    data = table(rng, case.types, FILES, more_digits=True)
    seed = rng.random()
    few = [rng.choice((0, 16)), rng.choice((0, 50_000))]
    for _ in range(PREDICATES):
        asked_for = expression(rng, data, depth=rng.choice((0, 1, 2, 3)))
        bound = bind(asked_for, data.columns, [], case.semantics)
        for weak in (False, True):
            answers = []
            for cells in (0, rng.choice((2, 3, 5))):
                forgetful = random.Random(seed) if weak else None
                known = Statistics(data, forgetful, cells=cells)
                for reference in _references(bound):
                    known.column(reference)  # forgets the same whatever is asked first
                with pytest.MonkeyPatch.context() as patch:
                    if cells:
                        patch.setattr(prune_module, "_FEW", few[0])
                        patch.setattr(prune_module, "MANY_FILES", few[1])
                    answers.append(prune(bound, known, case.semantics).never.tolist())
            assert answers[0] == answers[1], (asked_for, data.files)
            rounded["pairs"] += FILES
            rounded["never"] += sum(answers[1])


def _references(bound: BoundExpression) -> list[BoundReference]:
    if isinstance(bound, BoundPredicate):
        return [bound.reference]
    return [r for child in getattr(bound, "children", ()) for r in _references(child)]


def test_the_law_was_asked_often_and_pruning_did_happen() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["pairs"] >= 50_000
    assert asked["never"] > asked["pairs"] // 5
    assert asked["always"] > asked["pairs"] // 20
    assert rounded["pairs"] >= 50_000
    assert rounded["never"] > rounded["pairs"] // 5


@given(cases())
def test_rewriting_and_binding_lose_no_row(case: Case) -> None:
    rng = case.rng()
    data = table(rng, case.types, 4, more_digits=True)
    rows = [row for file in data.files for row in file]
    judges = [oracle(case, data, rounding) for rounding in Rounding]
    for _ in range(PREDICATES):
        asked_for = expression(rng, data, depth=3)
        pushed = push_not(asked_for, case.semantics)
        normal = normalise(asked_for, case.semantics)
        bound = bind(asked_for, data.columns, [], case.semantics)
        for row in rows:
            for judge in judges:
                truth = judge.truth(asked_for, row)
                if Unknown not in _kinds(asked_for):
                    assert (judge.truth(pushed, row) is True) is (truth is True)
                    assert (judge.truth(normal, row) is True) is (truth is True)
                held = judge.truth(bound, row) is True
                assert held or truth is not True, (asked_for, bound, row)
                if is_exact(bound) and judge.rounding is Rounding.EXACT:
                    assert held is (truth is True), (asked_for, bound, row)


def _kinds(node: Expression) -> set[type]:
    found = {type(node)}
    for child in (*getattr(node, "children", ()), *filter(None, [getattr(node, "child", None)])):
        found |= _kinds(child)
    return found


@given(cases())
def test_residuals_agree_with_the_rows_they_were_made_for(case: Case) -> None:
    rng = case.rng()
    data = table(rng, case.types, 4, more_digits=True)
    judge = oracle(case, data)
    for _ in range(PREDICATES):
        bound = bind(expression(rng, data, depth=3), data.columns, [], case.semantics)
        for row in (row for file in data.files for row in file):
            some = {p: v for p, v in row.items() if rng.random() < 0.6}
            left = residual(bound, some)
            assert (judge.truth(left, row) is True) is (judge.truth(bound, row) is True)
