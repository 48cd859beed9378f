"""A small table whose files differ in every column, for what Hive asks of hooks."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.kernel.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    STRING,
    TIMESTAMP,
    char,
    decimal,
    parse_hive_type,
    varchar,
)
from bridge.table.model import CatalogTable, Column, Partition, TableName

FILES = 12
ROWS = 20
PARTITIONS = 3
COLUMNS = (
    Column("k", BIGINT),
    Column("n", INTEGER),
    Column("s", STRING),
    Column("v", varchar(5)),
    Column("c", char(4)),
    Column("b", BOOLEAN),
    Column("d", DATE),
    Column("ts", TIMESTAMP),
    Column("utc", TIMESTAMP),
    Column("price", decimal(10, 2)),
    Column("f", FLOAT),
    Column("x", DOUBLE),
    Column("st", parse_hive_type("struct<a:int,b:string>")),
)
_SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("n", pa.int32()),
        ("s", pa.string()),
        ("v", pa.string()),
        ("c", pa.string()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("ts", pa.timestamp("us")),
        ("utc", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(10, 2)),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)


def row(k: int) -> dict[str, object]:
    """Row k; file k // 20 holds it."""
    file = k // ROWS
    noon = dt.datetime(2013, 3, 1, 12) + dt.timedelta(hours=7 * k, microseconds=k)
    return {
        "k": k,
        "n": None if file == 5 else k * 10,
        "s": None if k % 10 == 9 else f"{'abcdefghijkl'[file]}-{k:03d}",
        # In the last file longer than the table's type allows: Hive sees the first five letters.
        "v": f"v{file:02d}{k % 10}" if file < FILES - 1 else f"zzzz{k % 10}-and-more",
        "c": f"{file:02d}",
        "b": None if file == 7 else file % 2 == 0,
        "d": noon.date(),
        "ts": noon,
        "utc": noon.replace(tzinfo=dt.UTC),
        "price": Decimal(k * 75) / 100,
        "f": {43: float("nan"), 44: -0.0}.get(k, k / 10),
        "x": {83: float("nan"), 84: -0.0, 85: float("inf")}.get(k, k * 1.5),
        "st": {"a": k, "b": f"b{k:03d}"},
    }


def write_sales(root: Path, name: TableName) -> tuple[CatalogTable, list[Partition]]:
    """Twelve files of twenty rows in three partitions of an int key."""
    partitions = []
    for p in range(PARTITIONS):
        directory = root / f"p={p}"
        directory.mkdir(parents=True)
        partitions.append(Partition(f"p={p}", (str(p),), f"file://{directory}"))
        for i in range(FILES // PARTITIONS):
            file = p * (FILES // PARTITIONS) + i
            rows = [row(k) for k in range(file * ROWS, (file + 1) * ROWS)]
            pq.write_table(pa.Table.from_pylist(rows, _SCHEMA), directory / f"f{file:02d}.parquet")
    return CatalogTable(name, COLUMNS, (Column("p", INTEGER),), f"file://{root}"), partitions
