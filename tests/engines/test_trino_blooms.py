"""Trino finds every value in files that clustering wrote with bloom filters and page indexes.

skipbridge's connector reads the page indexes, and leaves the files' bloom filters alone; Trino's
own connector uses both.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.formats.data_files import Writing
from bridge.formats.parquet.bloom_types import stored_types
from bridge.formats.parquet.rewriting import FILES
from bridge.kernel.types import Field, parse_hive_type
from bridge.metastore.client import MetastoreClient
from bridge.table.model import CatalogTable, Column, TableName
from tests.engines.stack import Stack, ask, register, register_table
from tests.tiers import nightly

pytestmark = pytest.mark.full

OFF = {"pruning_enabled": "false"}
FILES_OF = 3
ROWS = 600
STORED: dict[str, tuple[str, pa.DataType]] = {
    "tiny": ("tinyint", pa.int8()),
    "small": ("smallint", pa.int16()),
    "number": ("int", pa.int32()),
    "large": ("bigint", pa.int64()),
    "widened": ("bigint", pa.int32()),
    "real_as_double": ("double", pa.float32()),
    "real": ("float", pa.float32()),
    "double": ("double", pa.float64()),
    "text": ("string", pa.string()),
    "short": ("varchar(8)", pa.string()),
    "bytes": ("binary", pa.binary()),
    "day": ("date", pa.date32()),
    "moment": ("timestamp", pa.timestamp("us")),
    "price": ("decimal(9,2)", pa.decimal128(9, 2)),
    "amount": ("decimal(30,4)", pa.decimal128(30, 4)),
    "gone": ("bigint", pa.int64()),
}
"""The declared type of each column, and how its files hold it."""
ASKED = [name for name in STORED if name != "gone"] if nightly() else ["widened", "double", "text"]


def value(name: str, i: int) -> Any:
    match name:
        case "gone":
            return None
        case "tiny":
            return i % 120 - 60
        case "real" | "double" | "real_as_double":
            return -0.0 if i == 7 else float("nan") if i == 8 else i / 4 - 50
        case "text" | "short":
            return f"ä{i}"
        case "bytes":
            return f"{i}".encode()
        case "day":
            return dt.date(2020, 1, 1) + dt.timedelta(i)
        case "moment":
            return dt.datetime(2020, 1, 1) + dt.timedelta(hours=i)
        case "price" | "amount":
            return Decimal(i) / 100
    return i * 7 - 500


def literal(name: str, found: Any) -> str:
    match found:
        case bytes():
            return f"X'{found.hex()}'"
        case str():
            return f"'{found}'"
        case dt.datetime():
            return f"TIMESTAMP '{found}'"
        case dt.date():
            return f"DATE '{found}'"
        case float():
            return f"{'REAL' if name == 'real' else 'DOUBLE'} '{found!r}'"
        case Decimal():
            return f"DECIMAL '{found}'"
    return str(found)


def write(directory: Path) -> tuple[Column, ...]:
    """The files of a clustered table; each filter of an old file is kept where it may be."""
    columns = tuple(Column(name, parse_hive_type(said)) for name, (said, _) in STORED.items())
    stored = stored_types(Field(column.name, column.type) for column in columns)
    writing = Writing(None, 1, tuple(STORED), stored)
    for number in range(FILES_OF):
        some = range(number, ROWS, FILES_OF)
        held = {
            name: pa.array([None if i % 11 == 10 else value(name, i) for i in some], type)
            for name, (_, type) in STORED.items()
        }
        old = BytesIO()
        pq.write_table(
            pa.table(held), old, bloom_filter_options=dict.fromkeys(held, True), store_schema=False
        )
        like = FILES.open(old.getvalue())
        rows = pa.table(held)
        cuts = pairwise(FILES.cuts(len(rows), writing, 1 / 50))
        content = FILES.encode([rows.slice(a, b - a) for a, b in cuts], like, writing)
        (directory / f"f{number}.parquet").write_bytes(content)
    return columns


@pytest.fixture(scope="module")
def files(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("blooms")
    register(stack, "blooms", directory, write(directory))
    return sorted(directory.glob("*.parquet"))


def test_only_sure_columns_have_filters(files: list[Path]) -> None:
    for path in files:
        metadata = pq.ParquetFile(path).metadata
        assert metadata.num_row_groups > 1
        group = metadata.row_group(0)
        chunks = [group.column(i) for i in range(group.num_columns)]
        bare = {c.path_in_schema for c in chunks if c.bloom_filter_offset is None}
        assert bare == {"widened", "real_as_double", "real", "double"}
        assert all(c.has_column_index for c in chunks)


@pytest.mark.parametrize("name", ASKED)
def test_each_value_is_found(stack: Stack, files: list[Path], name: str) -> None:
    rows = [i for i in range(ROWS) if i % 11 != 10]
    asked = [*range(12), *range(100, ROWS, 97)]
    wanted = {value(name, i) for i in asked if i in rows}
    conditions = []
    for each in sorted((v for v in wanted if v == v), key=str):
        text = literal(name, each)
        same = sum(value(name, i) == each for i in rows)
        low = sum(value(name, i) <= each for i in rows)
        conditions += [(f"{name} = {text}", same), (f"{name} <= {text}", low)]
        if each == 0 and isinstance(each, float):
            conditions.append((f"{name} = {literal(name, -each)}", same))
    assert len(conditions) > 8
    some = conditions[:: max(1, len(conditions) // 12)]
    for session in (None, OFF):
        counts = " UNION ALL ".join(
            f"SELECT {n}, count(*) FROM laws.blooms WHERE {condition}"
            for n, (condition, _) in enumerate(some)
        )
        found = sorted(stack.query(counts, session))
        assert found == [[n, count] for n, (_, count) in enumerate(some)], (some, found)


def test_a_column_without_values(stack: Stack, files: list[Path]) -> None:
    for condition, count in (("gone = 1", 0), ("gone IS NULL", ROWS), ("gone < 5", 0)):
        sql = f"SELECT count(*) FROM laws.blooms WHERE {condition}"
        assert stack.query(sql, OFF) == [[count]], condition


@pytest.mark.nightly
def test_trino_s_own_connector_finds_each_value(
    stock_trino: int, metastore_401: Any, tmp_path: Path
) -> None:
    """It uses the filters. With one on each column it misses rows of ``widened`` and -0.0."""
    table = CatalogTable(
        TableName("default", "blooms"), write(tmp_path), (), f"file://{tmp_path}", "parquet"
    )
    with MetastoreClient(metastore_401.uri) as client:
        register_table(client, table.name, table, [])
    rows = [i for i in range(ROWS) if i % 11 != 10]
    # Trino refuses the statistics of a float that is read as a double.
    for name in STORED.keys() - {"gone", "real_as_double"}:
        for i in (0, 7, 100, 201, 333):
            each = value(name, i)
            sql = f"SELECT count(*) FROM default.blooms WHERE {name} = {literal(name, each)}"
            same = sum(value(name, j) == each for j in rows)
            assert ask(stock_trino, sql, "hive") == [[same]], sql
