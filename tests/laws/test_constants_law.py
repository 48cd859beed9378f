"""Random expressions of columns that are constant in files, against brute force.

The law: a file is left out only if no row satisfies the expression and none makes the engine fail.
Bounds decide it where they are one value, and lists of values where a column has a few.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from bridge.engines.registry import engine
from bridge.expression.bind import bind
from bridge.expression.prune import prune
from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.registry import kind
from bridge.kernel.types import BIGINT, DATE, INTEGER, STRING, TINYINT, varchar
from bridge.planner.answers.skippable_files import list_skippable_files
from bridge.planner.index_view import IndexView
from bridge.planner.request import ScanRequest
from bridge.table.model import Column
from tests.laws.test_hive_kinds_law import tamed
from tests.support.kinds_law import leaf_names, write
from tests.support.lake import NAME, Lake
from tests.support.strategies import Statistics, Table, table
from tests.support.terms import Failed, Node, Terms, to_hive, to_trino, truth
from tests.tiers import examples, seed

TABLES, FILES, ASKED = examples((6, 40, 80), (20, 60, 150), (150, 100, 300))
_WORDS = {"hive": to_hive, "trino": to_trino}
asked: Counter[str] = Counter()


def constant(rng: random.Random, data: Table) -> None:
    """Makes most columns of most files constant."""
    for rows in data.files:
        for path in data.paths:
            if rows and rng.random() < 0.75:
                value = None if rng.random() < 0.1 else rng.choice(data.pools[path])
                for row in rows:
                    row[path] = value  # type: ignore[index]


def must_be_read(node: Node, data: Table, name: str) -> set[int]:
    """Files with a row that satisfies the expression, or on which the engine fails."""
    found = set()
    for i, rows in enumerate(data.files):
        for row in rows:
            try:
                if truth(node, row, name) is True:
                    found.add(i)
            except Failed:
                found.add(i)
    return found


@pytest.mark.parametrize("number", range(TABLES))
@pytest.mark.rule("40")
@pytest.mark.rule("8")
def test_no_file_with_a_matching_row_is_left_out(number: int, tmp_path: Path) -> None:
    rng = random.Random(seed(7000 + number))
    types = tuple(
        rng.choice((INTEGER, BIGINT, STRING, STRING, DATE, TINYINT, varchar(10))) for _ in range(3)
    )
    data = table(rng, types, FILES)
    tamed(rng, data)
    constant(rng, data)
    lake = Lake(tmp_path, tuple(Column(c.name, c.type) for c in data.columns))
    write(lake, data, rng)
    definitions = [kind("values").define(column) for column, _ in leaf_names(data)]
    modes = {c: rng.choice(("none", "none", "full")) for c, _ in leaf_names(data)}

    def settings(held: IndexSettings) -> IndexSettings:
        return held.adding(definitions).with_modes(modes)

    assert not lake.build(settings=settings).failed
    view = IndexView(lake.snapshot())
    terms = Terms(rng, data.paths, data.pools)
    for _ in range(ASKED):
        node = terms.condition(rng.choice((0, 1, 1, 2, 3)))
        for name, words in _WORDS.items():
            semantics = engine(name).semantics
            document = json.dumps({"version": 1, "expression": words(node)})
            expression = engine(name).translate(document).expression
            bound = bind(expression, data.columns, [], semantics)
            needed = must_be_read(node, data, name)
            for way, weaken in (("exact", None), ("weak", rng)):
                never = prune(bound, Statistics(data, weaken), semantics).never
                wrong = needed.intersection(never.nonzero()[0].tolist())
                rows = [data.files[i] for i in wrong if data.files[i]]
                assert not rows, f"{way} {name} {node} {rows[0]}"
                asked[f"{name} {way}"] += int(never.sum())
            request = ScanRequest(NAME, expression, semantics=semantics)
            found = list_skippable_files(lake.table(), view, request)
            named = {int(Path(uri).name.removeprefix("f")) for uri in found.paths.to_pylist()}
            assert not found.not_used
            assert not named & needed, (found.by_index, name, node)
            asked[f"{name} values"] += sum(n for i, n in found.by_index if i.startswith("values"))
        asked["files"] += FILES


def test_constants_and_lists_did_decide() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    for name in _WORDS:
        assert asked[f"{name} exact"] > asked["files"] // 5, asked
        assert asked[f"{name} values"] > asked["files"] // 50, asked
