"""What the evaluator of constants says of random expressions, beside Trino and HiveServer2.

Each expression is asked of one row's values. Where the evaluator decides, the engine answers that
value and does not fail.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from bridge.engines.hive.terms import WORDS as HIVE
from bridge.engines.terms import Words, condition
from bridge.engines.trino.terms import WORDS as TRINO
from bridge.expression.computed import Undecided, evaluate
from bridge.expression.nodes import Computed
from bridge.kernel.types import BIGINT, DATE, INTEGER, STRING, Type
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import HookedHive
from tests.engines.stack import Stack
from tests.support.terms import Node, Terms, to_hive, to_sql, to_trino
from tests.tiers import examples, seed

pytestmark = pytest.mark.full
QUERIES, AT_ONCE = examples((4, 25), (12, 40), (400, 40))
PATHS: dict[tuple[str, ...], Type] = {
    ("n",): INTEGER,
    ("b",): BIGINT,
    ("s",): STRING,
    ("t",): STRING,
    ("d",): DATE,
}
POOLS: dict[tuple[str, ...], list[Any]] = {
    ("n",): [0, 1, 7, -7, 100, 2**31 - 1, -(2**31)],
    ("b",): [0, 3, -5, 2**40, 2**63 - 1, -(2**63)],
    ("s",): [b"", b"a", b"Ab", b"alpha7", b"7", b"-12", b"it's", b"a\\b"],
    ("t",): [b"7", b"007", b"12", b"x", b"2024-03-01", "é".encode()],
    ("d",): [0, -25_567, 18_000, 19_783, 19_784, 2_932_896],
}


def differing(name: str, words: Words, ask: Callable[[str], Any]) -> list[str]:
    """What an engine says otherwise; most expressions must be decided."""
    rng = random.Random(seed(77))
    write = to_hive if name == "hive" else to_trino
    terms, wrong, decided = Terms(rng, PATHS, POOLS), [], 0
    for _ in range(QUERIES):
        row = {p: None if rng.random() < 0.1 else rng.choice(pool) for p, pool in POOLS.items()}
        told: list[tuple[Any, str]] = []
        while len(told) < AT_ONCE:
            node = terms.condition(rng.choice((1, 2, 3)))
            found = _evaluated(node, row, write(node), words)
            if not isinstance(found, Undecided):
                told.append((found, to_sql(node, row, name)))
        answers = ask("SELECT " + ", ".join(sql for _, sql in told))
        for (found, sql), answer in zip(told, answers, strict=True):
            decided += 1
            if found is not answer:
                wrong.append(f"{found} where {name} says {answer}: {sql}")
    assert decided == QUERIES * AT_ONCE
    return wrong


def _evaluated(node: Node, row: dict[Any, Any], document: Any, words: Words) -> Any:
    found = condition(document, "", words)
    if found is None:
        return Undecided.UNDECIDED  # no column, or an operation that is not evaluated
    call = found.reference
    assert isinstance(call, Computed)
    return evaluate(call.term, [row[c.path] for c in call.arguments])  # type: ignore[union-attr]


def test_trino(stack: Stack) -> None:
    assert not differing("trino", TRINO, lambda sql: stack.query(sql)[0])


def test_hive(hiveserver2: RunningHiveServer2) -> None:
    hive = HookedHive(hiveserver2, "127.0.0.1:1", hook=False)
    try:
        assert not differing("hive", HIVE, lambda sql: hive.ask(sql).rows[0])
    finally:
        hive.close()
