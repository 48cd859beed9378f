"""The law of every index kind alone and of all together: a file with a matching row is never NEVER.

A table has hundreds of small files, each written a little differently; one build makes all indexes.
``--tier=nightly`` asks five times as often.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from bridge.expression.nodes import And, Call, Expression, Not, Or
from bridge.index.kinds.definition import IndexSettings, KindDefinition
from bridge.index.kinds.registry import kind, kinds
from bridge.kernel.types import DATE, DOUBLE, HIVE, INTEGER, STRING, TIMESTAMP, TRINO, Type
from tests.support.functions import random_call, random_predicate
from tests.support.kinds_law import RequestedIndexes, leaf_names
from tests.support.strategies import TYPES, Case, Table, expression, table
from tests.tiers import examples, seed

FILES, PREDICATES = 300, 70
TABLES = examples(12, 12, 60)
COLUMNS = tuple(name for name, known in kinds().items() if known.single_values)
_MODES = ("none", "counts", "truncate(1)", "truncate(2)", "full")
asked: Counter[str] = Counter()


@pytest.mark.parametrize("number", range(TABLES))
def test_every_kind_keeps_the_law(number: int, tmp_path: Path) -> None:
    rng = random.Random(seed(number))
    types = tuple(rng.choice((*TYPES, DOUBLE, STRING)) for _ in range(3))
    case = Case(types, (TRINO, HIVE)[number % 2], seed(number))
    data = table(rng, types, FILES, alike=number % 2 == 0)
    definitions = [
        kind(name).define(_options(name, column, rng))
        for name in COLUMNS
        for column, _ in leaf_names(data)
    ]
    known = _built(tmp_path, case, data, definitions)
    for _ in range(PREDICATES):
        known.ask(expression(rng, data, depth=rng.choice((0, 0, 1, 2))))


def _options(name: str, column: str, rng: random.Random) -> str:
    match name:
        case "values":
            return f"{column}:limit={rng.choice((1, 2, 64))}"
        case "bloom":
            return f"{column}:fpp={rng.choice((0.01, 0.1))}:max_bytes={rng.choice((32, 4096))}"
    return column


def _built(
    path: Path, case: Case, data: Table, definitions: list[KindDefinition]
) -> RequestedIndexes:
    rng = case.rng()
    modes = {".".join(path): rng.choice(_MODES) for path in data.paths}

    def settings(held: IndexSettings) -> IndexSettings:
        return held.adding(definitions).with_modes(modes if case.seed % 3 else {})

    return RequestedIndexes.build(
        path, case, data, settings, asked, nan=rng.choice(("footer", "scan"))
    )


@pytest.mark.parametrize("number", range(TABLES))
@pytest.mark.rule("40")
def test_functions_keep_the_law(number: int, tmp_path: Path) -> None:
    rng = random.Random(seed(1000 + number))
    types = tuple(rng.choice((STRING, DATE, TIMESTAMP, INTEGER, *TYPES)) for _ in range(2))
    types = (*types, rng.choice((STRING, DATE, TIMESTAMP, INTEGER)))
    case = Case(types, (TRINO, HIVE)[number % 2], seed(number))
    data = table(rng, types, FILES)
    calls: dict[Call, Type] = {}
    for path, type in data.paths.items():
        for _ in range(3):
            found = random_call(rng, path, type, data.pools[path])
            if found is not None:
                calls[found] = type
    indexed = [c for c in calls if c.function != "like" and rng.random() < 0.9]
    definitions = [kind("expression").define(call.text) for call in indexed]
    blooms = [c for c in calls if c.function != "like" and rng.random() < 0.9]
    for call in blooms:
        if "(" in call.text:
            definitions.append(kind("bloom").define(_options("bloom", call.text, rng)))
    for column, _ in leaf_names(data):
        if rng.random() < 0.7:  # what lists hold says all of any function
            definitions.append(kind("values").define(_options("values", column, rng)))
    known = _built(tmp_path, case, data, definitions)
    for _ in range(PREDICATES):
        known.ask(_mixed(rng, data, calls, rng.choice((0, 0, 1, 2))))


def _mixed(rng: random.Random, data: Table, calls: dict[Call, Type], depth: int) -> Expression:
    if not depth:
        if rng.random() < 0.15:
            return expression(rng, data, depth=0)
        return random_predicate(rng, data, calls)
    if rng.random() < 0.2:
        return Not(_mixed(rng, data, calls, depth - 1))
    parts = tuple(_mixed(rng, data, calls, depth - 1) for _ in range(2))
    return rng.choice((And, Or))(parts)


def test_it_was_asked_often_and_pruning_did_happen() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    for name in ("minmax", *COLUMNS, "expression", "together"):
        assert asked[f"{name} pairs"] >= 200_000, asked
        assert asked[f"{name} never"] > asked[f"{name} pairs"] // 50, asked
    assert asked["together never"] > asked["minmax never"], asked
