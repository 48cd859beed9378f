"""A store that fails: a query in Trino tells the right rows, or fails with the store's words.

``SKIPBRIDGE_LAWS=nightly`` asks 2,000 queries.
"""

from __future__ import annotations

import os
import random

import pytest
from trino.exceptions import TrinoQueryError

from tests.engines.store_stack import GROUPED, SLOW, Stores
from tests.support.slow_store import Behaviour

NIGHTLY = os.environ.get("SKIPBRIDGE_LAWS") == "nightly"
QUERIES = 100 if NIGHTLY else 10
SEEDS = 20 if NIGHTLY else 2
FAULTS = ("503", "500", "reset", "cut", "lost")
ASKED = (
    GROUPED,
    "SELECT count(*) FROM lake.{}",
    "SELECT count(*), min(id), max(id) FROM lake.{} WHERE id BETWEEN 5000 AND 20000",
    "SELECT id, c2 FROM lake.{} WHERE id % 1000 = 7 AND id < 60000 ORDER BY id",
    "SELECT max(c3) FROM lake.{} WHERE kind = '3' AND id > 100000",
    "SELECT count(*) FROM (SELECT id FROM lake.{} WHERE kind <> '2' LIMIT 50)",
)
TABLES = ("small", "mixed", "large")
TOLD = {"SKIPBRIDGE_FILE_UNREADABLE", "SKIPBRIDGE_STORAGE_UNAVAILABLE"}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_fault_costs_a_row(stores: Stores, seed: int) -> None:
    rng = random.Random(seed)
    expected: dict[str, list[list[object]]] = {}
    answered = failed = 0
    for number in range(QUERIES):
        sql = rng.choice(ASKED).format(rng.choice(TABLES))
        if sql not in expected:
            expected[sql] = stores.query(sql, "hive")
        for proxy in (stores.proxy, stores.planners):
            faults = tuple(rng.sample(FAULTS, rng.randint(1, len(FAULTS))))
            rate = rng.uniform(0.01, 0.2)
            proxy.behave(Behaviour(0.005, rate, faults, seed=rng.randrange(2**31)))
            proxy.take()
        try:
            rows = stores.query(sql)
        except TrinoQueryError as error:
            assert error.error_name in TOLD, (number, sql, error)
        else:
            assert rows == expected[sql], (number, sql)
            answered += 1
        finally:
            failed += stores.proxy.take().failed + stores.planners.take().failed
            stores.proxy.behave(SLOW)
            stores.planners.behave(Behaviour())
    assert answered > QUERIES // 2, "retries help too little"
    assert failed, "nothing went wrong"
