"""The law of every index kind alone and of all together: a file with a matching row is never NEVER.

A table has hundreds of small files, each written a little differently; one build makes all indexes.
``SKIPBRIDGE_LAWS=nightly`` asks five times as often.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from kinds_law import Asked, leaf_names
from strategies import TYPES, Case, expression, table

from bridge.index.registry import kind
from bridge.types import DOUBLE, HIVE, STRING, TRINO

FILES, PREDICATES = 300, 70
TABLES = 60 if os.environ.get("SKIPBRIDGE_LAWS") == "nightly" else 12
COLUMNS = ("values", "bloom")
asked: Counter[str] = Counter()


@pytest.mark.parametrize("number", range(TABLES))
def test_every_kind_keeps_the_law(number: int, tmp_path: Path) -> None:
    rng = random.Random(number)
    types = tuple(rng.choice((*TYPES, DOUBLE, STRING)) for _ in range(3))
    case = Case(types, (TRINO, HIVE)[number % 2], number)
    data = table(rng, types, FILES)
    definitions = [
        kind(name).define(_options(name, column, rng))
        for name in COLUMNS
        for column, _ in leaf_names(data)
    ]
    known = Asked.build(
        tmp_path, case, data, definitions, asked, nan=rng.choice(("footer", "scan"))
    )
    for _ in range(PREDICATES):
        known.ask(expression(rng, data, depth=rng.choice((0, 0, 1, 2))))


def _options(name: str, column: str, rng: random.Random) -> str:
    match name:
        case "values":
            return f"{column}:limit={rng.choice((1, 2, 64))}"
        case "bloom":
            return f"{column}:fpp={rng.choice((0.01, 0.1))}:max_bytes={rng.choice((32, 4096))}"
    return column


def test_it_was_asked_often_and_pruning_did_happen() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    for name in ("minmax", *COLUMNS, "together"):
        assert asked[f"{name} pairs"] >= 200_000, asked
        assert asked[f"{name} never"] > asked[f"{name} pairs"] // 50, asked
    assert asked["together never"] > asked["minmax never"], asked
