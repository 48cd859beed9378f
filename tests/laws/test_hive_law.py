"""Hive's filter against brute force: no file that is left out holds a row that Hive returns."""

from __future__ import annotations

import json
import random

from hypothesis import given

from bridge.engines.hive.translate import translate
from bridge.expression.bind import bind
from bridge.expression.prune import prune
from bridge.kernel.types import HIVE, Kind, Type
from tests.support.hive_filters import Filter, Judge
from tests.support.strategies import Case, Statistics, Table, cases, table


def lengthened(rng: random.Random, data: Table) -> None:
    """Texts in files that are longer than their column's type."""
    for rows in data.files:
        for row in rows:
            for path, type in data.paths.items():
                value = row[path]
                if type.kind is Kind.VARCHAR and isinstance(value, bytes) and rng.random() < 0.3:
                    row[path] = value + rng.choice((b"", b"x", b"longer than ten", "😀".encode()))


@given(cases())
def test_no_file_with_a_row_of_hives_is_left_out(case: Case) -> None:
    rng = case.rng()
    data = table(rng, case.types, 6)
    lengthened(rng, data)
    for _ in range(12):
        of = Filter(rng, data)
        tree = of.condition(3)
        found = translate(json.dumps({"version": 1, "expression": tree}))
        bound = bind(found.expression, data.columns, [], HIVE)
        never = prune(bound, Statistics(data), HIVE).never
        for vectorised in (True, False):
            judge = Judge(of, data, vectorised=vectorised)
            for i, rows in enumerate(data.files):
                for row in rows:
                    if judge.truth(tree, row) is True:
                        assert not never[i], (vectorised, tree, row)


def test_files_are_left_out() -> None:
    """The law above is not kept by keeping everything."""
    rng = random.Random(7)
    total = left_out = 0
    for _ in range(200):
        data = table(rng, (Type(Kind.BIGINT), Type(Kind.STRING), Type(Kind.DOUBLE)), 6)
        of = Filter(rng, data)
        tree = of.condition(2)
        found = translate(json.dumps({"version": 1, "expression": tree}))
        never = prune(bind(found.expression, data.columns, [], HIVE), Statistics(data), HIVE).never
        total += len(never)
        left_out += int(never.sum())
    assert left_out > total / 5
