"""The bytes that Trino reports for a scan are those that were read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trino

from bridge.kernel.types import BIGINT, DOUBLE
from bridge.table.model import Column
from tests.engines.stack import Stack, register

pytestmark = pytest.mark.full

COLUMNS = (Column("a", BIGINT), Column("b", DOUBLE), Column("c", BIGINT), Column("d", DOUBLE))


@pytest.fixture(scope="module")
def large(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files that are too large to be read whole, each one row group."""
    return _made(stack, tmp_path_factory.mktemp("bytes_large"), "bytes_large", 2, 300_000)


@pytest.fixture(scope="module")
def small(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty files that are read whole."""
    return _made(stack, tmp_path_factory.mktemp("bytes_small"), "bytes_small", 30, 2_000)


def _made(stack: Stack, directory: Path, name: str, files: int, rows: int) -> Path:
    random = np.random.default_rng(5)
    for i in range(files):
        values = {
            c.name: random.random(rows) if c.type is DOUBLE else random.integers(0, 2**40, rows)
            for c in COLUMNS
        }
        pq.write_table(
            pa.table(values),
            directory / f"f{i:02}.parquet",
            row_group_size=rows,
            use_dictionary=False,
        )
    register(stack, name, directory, COLUMNS)
    return directory


def _size(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.glob("*.parquet"))


def _bytes(stack: Stack, sql: str, catalog: str = "bridge") -> int:
    """The physical input bytes of a query that statistics do not answer."""
    off = {"bridge.metadata_answers_enabled": "false"} if catalog == "bridge" else None
    connection = trino.dbapi.connect(
        host="127.0.0.1",
        port=stack.trino_port,
        user="test",
        catalog=catalog,
        schema="laws",
        session_properties=off,
    )
    cursor = connection.cursor()
    cursor.execute(sql)
    cursor.fetchall()
    assert cursor.stats is not None
    return int(cursor.stats["physicalInputBytes"])


@pytest.mark.parametrize("columns", ["sum(a)", "sum(a), max(d)", "max(a), max(b), max(c), max(d)"])
def test_a_full_read_counts_as_many_bytes_as_the_stock_connector(
    stack: Stack, large: Path, columns: str
) -> None:
    sql = f"SELECT {columns} FROM bytes_large"
    ours, stock = _bytes(stack, sql), _bytes(stack, sql, "hive")
    assert ours == pytest.approx(stock, rel=0.02)
    assert ours > _size(large) * (columns.count("(") - 0.1) / len(COLUMNS)


def test_a_file_that_is_read_whole_counts_whole(stack: Stack, small: Path) -> None:
    assert _bytes(stack, "SELECT max(a), max(b) FROM bytes_small") == _size(small)


def test_a_count_reads_only_footers(stack: Stack, large: Path) -> None:
    read = _bytes(stack, "SELECT count(*) FROM bytes_large")
    assert 0 < read < _size(large) / 10
