"""An error of the planner's background loader, long after the first splits were handed out, fails
the query: rows that were read already are never taken for all of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import BIGINT, INTEGER
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.engines.stack import Stack

pytestmark = pytest.mark.full

NAME = TableName("late", "days")
DAYS, LAST = 600, 599
WORDS = rf"(?s)day={LAST}"


@pytest.fixture(scope="module")
def last(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the last partition that the metastore tells: a batch of its own."""
    root = tmp_path_factory.mktemp("late")
    partitions = []
    for day in range(DAYS):
        path = root / f"day={day}" / "f.parquet"
        path.parent.mkdir()
        pq.write_table(pa.table({"x": [day, -day - 1]}), path)
        os.utime(path, (1.7e9, 1.7e9))
        uri = f"file://{path.parent}"
        partitions.append(Partition(f"day={day}", (str(day),), uri))
    columns, keys = (Column("x", BIGINT),), (Column("day", INTEGER),)
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_database(NAME.schema)
        table = CatalogTable(NAME, columns, keys, f"file://{root}")
        register_table(client, NAME, table, partitions)
    return root / f"day={LAST}"


def test_a_directory_that_is_gone_fails_the_query_and_none_after(stack: Stack, last: Path) -> None:
    every = f"SELECT count(x), sum(day) FROM {NAME} WHERE x >= 0"
    total = [[DAYS, sum(range(DAYS))]]
    assert stack.query(every) == total
    aside = last.rename(last.with_name("aside"))
    try:
        for _ in range(2):
            with pytest.raises(Exception, match=WORDS):
                stack.query(every)
        with pytest.raises(Exception, match=WORDS):
            stack.query(f"SELECT x FROM {NAME} ORDER BY x LIMIT 3")
        # Who does not ask for it reads on, and so does who has enough before.
        assert stack.query(f"{every} AND day <> {LAST}") == [[DAYS - 1, sum(range(LAST))]]
    finally:
        aside.rename(last)
    assert stack.query(every) == total


def test_a_file_that_no_reader_reads_fails_the_query_by_its_name(stack: Stack, last: Path) -> None:
    file = last / "f.parquet"
    raw, stat = file.read_bytes(), file.stat()
    file.write_bytes(bytes(len(raw)))
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    try:
        with pytest.raises(Exception, match=WORDS):
            stack.query(f"SELECT sum(x) FROM {NAME}")
    finally:
        file.write_bytes(raw)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert stack.query(f"SELECT sum(x) FROM {NAME}") == [[-DAYS]]
