"""A store that fails: a query in Trino tells the right rows, or fails with the store's words.

``--tier=nightly`` asks 2,000 queries.
"""

from __future__ import annotations

import os
import random
import time

import pytest
import trino
from trino.exceptions import TrinoQueryError

from tests.engines.store_stack import GROUPED, IMPATIENT, SLOW, SMALL_ROWS, Stores, put_plain
from tests.support.slow_store import Behaviour
from tests.support.versitygw import BUCKET
from tests.tiers import examples

pytestmark = pytest.mark.full

QUERIES = examples(10, 10, 100)
SEEDS = examples(2, 2, 20)
FAULTS = ("503", "500", "reset", "cut", "lost", "hang", "stall")
EXPIRED = 0.2
"""The share of queries whose credentials may expire. Nobody retries that."""
ASKED = (
    GROUPED,
    "SELECT count(*) FROM lake.{}",
    "SELECT count(*), min(id), max(id) FROM lake.{} WHERE id BETWEEN 5000 AND 20000",
    "SELECT id, c2 FROM lake.{} WHERE id % 1000 = 7 AND id < 60000 ORDER BY id",
    "SELECT max(c3) FROM lake.{} WHERE kind = '3' AND id > 100000",
    "SELECT count(*) FROM (SELECT id FROM lake.{} WHERE kind <> '2' LIMIT 50)",
)
TABLES = ("small", "mixed", "large")
TOLD = {"SKIPBRIDGE_FILE_UNREADABLE", "SKIPBRIDGE_STORAGE_ERROR"}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_fault_costs_a_row(stores: Stores, seed: int) -> None:
    rng = random.Random(seed)
    expected: dict[str, list[list[object]]] = {}
    answered = retried = failed = 0
    for number in range(QUERIES):
        sql = rng.choice(ASKED).format(rng.choice(TABLES))
        if sql not in expected:
            expected[sql] = stores.query(sql, "hive")
        expires = ("expired",) if rng.random() < EXPIRED else ()
        retried += not expires
        for proxy in (stores.proxy, stores.planners):
            faults = (*rng.sample(FAULTS, rng.randint(1, len(FAULTS))), *expires)
            rate = rng.uniform(0.01, 0.2)
            proxy.behave(Behaviour(0.005, rate, faults, seed=rng.randrange(2**31)))
            proxy.take()
        try:
            rows = stores.query(sql, IMPATIENT)
        except TrinoQueryError as error:
            assert error.error_name in TOLD, (number, sql, error)
        else:
            assert rows == expected[sql], (number, sql)
            answered += not expires
        finally:
            failed += stores.proxy.take().failed + stores.planners.take().failed
            stores.proxy.behave(SLOW)
            stores.planners.behave(Behaviour())
    assert answered > retried // 2, "retries help too little"
    assert failed, "nothing went wrong"


@pytest.mark.parametrize("table", ["large", "mixed", "orc_large", "orc_stripes", "text_large"])
def test_expired_credentials_are_told_in_the_words_of_the_store(stores: Stores, table: str) -> None:
    """Also where the engine asks for a column after it was given the page."""
    sql = GROUPED.format(table)
    expected = stores.query(sql, "hive")
    failed = 0
    for seed in range(4):
        stores.proxy.behave(Behaviour(0.002, 0.1, ("expired",), seed=seed))
        try:
            rows = stores.query(sql)
        except TrinoQueryError as error:
            assert error.error_name == "SKIPBRIDGE_FILE_UNREADABLE", error
            assert "The token has expired" in error.message, error.message
            failed += 1
        else:
            assert rows == expected
        finally:
            stores.proxy.behave(SLOW)
    assert failed


def test_a_query_of_a_store_that_never_answers_can_be_ended(stores: Stores) -> None:
    """Nothing is asked for after its end, and the next query reads as ever."""
    sql = GROUPED.format("large")
    expected = stores.query(sql, "hive")
    stores.proxy.behave(Behaviour(rate=1.0, faults=("hang",), only="^GET .*large"))
    connection = trino.dbapi.connect(
        host="127.0.0.1",
        port=stores.trino_port,
        user="test",
        catalog=IMPATIENT,
        session_properties={"query_max_execution_time": "4s"},
    )
    try:
        with pytest.raises(TrinoQueryError, match="EXCEEDED_TIME_LIMIT"):
            cursor = connection.cursor()
            cursor.execute(sql)
            cursor.fetchall()
        assert stores.proxy.take().failed
        deadline = time.monotonic() + 120
        time.sleep(5)
        while stores.proxy.take().count():
            assert time.monotonic() < deadline, "the files of an ended query are still read"
            time.sleep(5)
    finally:
        stores.proxy.behave(SLOW)
    assert stores.query(sql, IMPATIENT) == expected


def test_a_file_written_again_within_its_second_is_not_the_planned_one(stores: Stores) -> None:
    """Size and time are equal. What the index knows of the file would be wrong of this one."""
    uri = f"s3://{BUCKET}/rewritten/1.parquet"
    path = stores.objects / "rewritten" / "1.parquet"
    sql = "SELECT count(*), min(id), max(id) FROM lake.rewritten WHERE id BETWEEN 2000 AND 2999"
    expected = [[SMALL_ROWS, 2_000, 2_000 + SMALL_ROWS - 1]]
    assert stores.query(sql) == expected
    before, times = stores.storage.stat(uri), path.stat()
    for first, same in ((7_000, False), (2_000, True)):
        put_plain(stores.storage, 1, first)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        now = stores.storage.stat(uri)
        assert before is not None and now is not None
        assert (now.size, now.modified) == (before.size, before.modified)
        assert (now.etag == before.etag) == same
        if same:
            assert stores.query(sql) == expected
            continue
        with pytest.raises(TrinoQueryError, match=f"{uri} changed.*another ETag") as caught:
            stores.query(sql)
        assert caught.value.error_name == "SKIPBRIDGE_FILE_CHANGED"
