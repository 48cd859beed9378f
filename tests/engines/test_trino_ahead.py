"""What Trino asks of a store with latency; rows are those of Trino's own hive connector."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.benchmark.hudi_data import LOGS, RECORDS
from tests.engines.store_stack import (
    DRIVERS,
    FEW_FILES,
    FEW_SLICES,
    GROUPED,
    SLICES,
    SLOW,
    SMALL_FILES,
    SMALL_ROWS,
    Stores,
    content,
)
from tests.support.slow_store import Behaviour
from tests.support.versitygw import BUCKET

pytestmark = pytest.mark.full

SLOWER = Behaviour(latency=0.3)
"""Long enough that requests of one thread meet, however busy the machine is."""


@pytest.fixture
def slower(stores: Stores) -> Iterator[Stores]:
    """A latency at which the requests in flight can be counted."""
    stores.proxy.behave(SLOWER)
    yield stores
    stores.proxy.behave(SLOW)


def test_small_files_are_read_in_one_request_each(stores: Stores) -> None:
    sql = GROUPED.format("small")
    expected = stores.query(sql, "hive")
    rows, seen = stores.seen(sql)
    assert rows == expected
    assert seen.count("GET", part="small/") == SMALL_FILES
    assert seen.count("HEAD") == 0


def test_small_files_are_read_ahead(slower: Stores) -> None:
    _, seen = slower.seen(GROUPED.format("small"))
    assert seen.most > DRIVERS


def test_queries_that_wait_for_a_store_leave_threads_to_others(slower: Stores) -> None:
    """A split that waited for its first file once held one of Trino's threads."""
    sql = "SELECT count(*), min(c1) FROM lake.changing WHERE id = {}"
    firsts = [number * 1_000 for number in range(3 * DRIVERS)]
    expected = [[[1, content(first, SMALL_ROWS)["c1"][7].as_py()]] for first in firsts]
    slower.proxy.take()
    with ThreadPoolExecutor(len(firsts)) as pool:
        rows = list(pool.map(lambda first: slower.query(sql.format(first + 7)), firsts))
    assert rows == expected
    seen = slower.proxy.take()
    assert seen.count("GET", part="changing/") == len(firsts)
    assert seen.most > DRIVERS


def test_footers_are_read_ahead(slower: Stores) -> None:
    rows, seen = slower.seen("SELECT count(*) FROM lake.small")
    assert rows == [[SMALL_FILES * SMALL_ROWS]]
    assert seen.count("GET", part="small/") == SMALL_FILES
    assert seen.most > DRIVERS


def test_nothing_is_asked_for_once_a_query_has_ended(stores: Stores) -> None:
    stores.query("SELECT id FROM lake.small WHERE id % 2 < 5 LIMIT 10")
    time.sleep(1)  # those in flight are answered
    stores.proxy.take()
    time.sleep(0.5)
    seen = stores.proxy.take()
    assert (seen.count(), seen.most) == (0, 0)


def test_ranges_of_a_large_file_are_read_side_by_side(slower: Stores) -> None:
    sql = GROUPED.format("large WHERE id < 300000")
    expected, stock = slower.seen(sql, "hive")
    rows, seen = slower.seen(sql)
    assert rows == expected
    assert seen.count("GET", part="large/1") == 0
    assert seen.count("GET", part="large/") <= stock.count("GET", part="large/")
    # the file is one split, whose thread could ask for one range after the other
    assert seen.most >= 2


def test_limit_of_a_large_file_reads_no_second_row_group(stores: Stores) -> None:
    """The engine ends the scan after the first page."""
    _, whole = stores.seen(GROUPED.format("large"))
    rows, seen = stores.seen("SELECT id, c1 FROM lake.large WHERE id % 2 < 5 LIMIT 10")
    assert len(rows) == 10
    assert seen.count("GET", part="large/") < whole.count("GET", part="large/")


def test_27_a_split_of_small_and_large_files_loses_no_row(stores: Stores) -> None:
    """A large file's place in the split once ended the group of small ones before it, unread."""
    sql = GROUPED.format("mixed")
    assert stores.query(sql) == stores.query(sql, "hive")


@pytest.mark.parametrize("table", ["orc_small", "text_small"])
def test_small_files_of_other_formats_are_read_ahead(slower: Stores, table: str) -> None:
    sql = GROUPED.format(table)
    expected = slower.query(sql, "hive")
    rows, seen = slower.seen(sql)
    assert rows == expected
    assert seen.count("GET", part=f"{table}/") == FEW_FILES
    assert seen.most > DRIVERS


def test_a_slice_and_the_next_ones_are_read_ahead(slower: Stores) -> None:
    """Each file of a slice was once asked for when the one before it was merged."""
    part = f"{SLICES}/0"
    rows, seen = slower.seen(f"SELECT count(*), min(ts), max(ts) FROM lake.{SLICES}")
    assert rows == [[FEW_SLICES * RECORDS, LOGS, LOGS]]
    assert seen.count("GET", part=part) == FEW_SLICES * (1 + LOGS)
    assert seen.most > 3 * (1 + LOGS)

    rows, seen = slower.seen(f"SELECT count(*) FROM lake.{SLICES} WHERE id < 100 AND part = '000'")
    assert rows == [[100]]
    assert (seen.count("GET", part=part), seen.most) == (1 + LOGS, 1 + LOGS)


@pytest.mark.parametrize("table", ["orc_large", "orc_stripes", "text_large", "avro_large"])
def test_a_large_file_of_another_format_is_read_ahead(slower: Stores, table: str) -> None:
    """The file is one split, whose thread could ask for one range after the other."""
    sql = GROUPED.format(table)
    expected, stock = slower.seen(sql, "hive")
    rows, seen = slower.seen(sql)
    assert rows == expected
    assert seen.most >= 2
    # stock Trino reads text in one request, one byte after the other; here it is a request for a MB
    assert seen.count("GET", part=f"{table}/") <= stock.count("GET", part=f"{table}/") + 32


@pytest.mark.parametrize("table", ["text_large", "avro_large"])
def test_limit_of_a_large_file_of_another_format_reads_little(stores: Stores, table: str) -> None:
    _, whole = stores.seen(GROUPED.format(table))
    rows, seen = stores.seen(f"SELECT id, c1 FROM lake.{table} WHERE id % 2 < 5 LIMIT 10")
    assert len(rows) == 10
    assert seen.count("GET", part=f"{table}/") < whole.count("GET", part=f"{table}/")


def test_problem_of_one_file_names_it(stores: Stores) -> None:
    sql = GROUPED.format("changing")
    assert stores.query(sql) == stores.query(sql, "hive")
    uri = f"s3://{BUCKET}/changing/23.parquet"
    good = stores.storage.read(uri)
    try:
        stores.storage.put(uri, good[:-1] + b"X" * 9)
        with pytest.raises(Exception, match=f"FILE_CHANGED.*{uri}"):
            stores.query(sql)
        stores.storage.delete(uri)
        for asked in (sql, "SELECT count(*) FROM lake.changing"):
            with pytest.raises(Exception, match=f"FILE_CHANGED.*{uri} is gone"):
                stores.query(asked)
        # the other files are read as ever
        assert stores.query("SELECT count(*) FROM lake.changing WHERE id < 20000") == [[400]]
    finally:
        stores.storage.put(uri, good)
