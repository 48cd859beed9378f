"""A lake as companies have it: Parquet tables by many writers and habits, one directory each."""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.app.demo.data import write_flights
from bridge.index.generations.store import IndexStore
from bridge.kernel.errors import TableNotFound
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.model import CatalogTable, PartitionFetch, TableName, View

NOON = dt.datetime(2024, 3, 1, 12)
Write = Callable[[Path], None]
TABLES: dict[str, Write] = {}
"""Writers by the table's name."""


def _table(write: Write) -> Write:
    TABLES[write.__name__.removeprefix("_")] = write
    return write


def _put(directory: Path, name: str, data: dict[str, Any] | pa.Table, **options: Any) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    table = data if isinstance(data, pa.Table) else pa.table(data)
    pq.write_table(table, directory / name, **options)


def _some(number: int = 0, rows: int = 8) -> dict[str, Any]:
    ids = range(number * rows, (number + 1) * rows)
    return {"id": list(ids), "name": [f"n{i}" for i in ids], "value": [i / 4 for i in ids]}


def _in_partitions(root: Path, names: Sequence[str]) -> None:
    for i, name in enumerate(names):
        _put(root / name, f"part-{i}.parquet", _some(i))


def _of_type(name: str, values: pa.Array, **options: Any) -> None:
    def write(root: Path) -> None:
        ids = pa.array(range(len(values)), pa.int64())
        _put(root, "f.parquet", pa.table({"id": ids, "v": values}), **options)

    TABLES[name] = write


# Writers


@_table
def _plain(root: Path) -> None:
    for i in range(5):
        _put(root, f"f{i}.parquet", _some(i))


@_table
def _by_duckdb(root: Path) -> None:
    root.mkdir(parents=True)
    duckdb.sql(
        f"COPY (SELECT range AS id, 'x' AS s, range / 3 AS d, DATE '2024-01-01' AS day, "
        f"TIMESTAMP '2024-01-01 10:00:00' AS at, 1.5::DECIMAL(9, 2) AS price FROM range(100)) "
        f"TO '{root}/f.parquet'"
    )


@_table
def _by_duckdb_in_partitions(root: Path) -> None:
    duckdb.sql(
        f"COPY (SELECT range AS id, range % 3 AS k FROM range(90)) TO '{root}' "
        "(FORMAT parquet, PARTITION_BY (k))"
    )


@_table
def _by_old_spark(root: Path) -> None:
    data = pa.table({"id": [1, 2], "at": pa.array([NOON, None], pa.timestamp("us"))})
    _put(root, "part-0.snappy.parquet", data, use_deprecated_int96_timestamps=True)
    (root / "_SUCCESS").touch()
    (root / "._SUCCESS.crc").touch()


@_table
def _by_pandas(root: Path) -> None:
    data = {"id": [1, 2], "at": pa.array([NOON] * 2, pa.timestamp("ns"))}
    _put(root, "f.parquet", pa.table(data).append_column("__index_level_0__", [[0, 1]]))


@_table
def _by_trino(root: Path) -> None:
    data = {"id": [1, 2], "at": pa.array([NOON] * 2, pa.timestamp("ms"))}
    _put(root, "20240301_120000_00001_abcde.parquet", data)


@_table
def _of_old_hive(root: Path) -> None:
    options = {"use_compliant_nested_type": False, "version": "1.0"}
    _put(root, "000000_0", {"id": [1], "tags": pa.array([["a", None]])}, **options)


@_table
def _codecs(root: Path) -> None:
    for codec in ("none", "snappy", "gzip", "zstd", "brotli"):
        _put(root, f"{codec}.parquet", _some(), compression=codec)


# Partitions


TABLES |= {
    "month_int": lambda root: _in_partitions(root, [f"month={i}" for i in range(1, 5)]),
    "month_padded": lambda root: _in_partitions(root, [f"month={i:02d}" for i in range(1, 5)]),
    "by_day": lambda root: _in_partitions(root, [f"day=2024-03-0{i}" for i in range(1, 5)]),
    "by_day_hour": lambda root: _in_partitions(
        root, [f"day=2024-03-01/hour={i}" for i in range(4)]
    ),
    "year_month_day": lambda root: _in_partitions(root, ["y=2024/m=1/d=5", "y=2024/m=1/d=6"]),
    "region": lambda root: _in_partitions(root, ["region=eu", "region=us"]),
    "null_partition": lambda root: _in_partitions(
        root, ["k=1", "k=2", "k=__HIVE_DEFAULT_PARTITION__"]
    ),
    "umlauts": lambda root: _in_partitions(root, ["ort=Köln", "ort=München"]),
    "spaces": lambda root: _in_partitions(root, ["name=a b", "name=c  d"]),
    "escaped": lambda root: _in_partitions(root, ["k=a%2Fb", "k=50%25", "k=x%3Ay", "k=%23"]),
    "hashes": lambda root: _in_partitions(root, ["k=a%23b", "k=c%3Fd"]),
    "versions": lambda root: _in_partitions(root, ["v=1.0", "v=1.10"]),
    "moments": lambda root: _in_partitions(root, ["at=2024-03-01 10%3A00%3A00"]),
    "mixed_values": lambda root: _in_partitions(root, ["k=1", "k=x"]),
    "many_keys": lambda root: _in_partitions(root, ["a=1/b=2/c=3/d=4/e=5/f=6"]),
    "large_numbers": lambda root: _in_partitions(root, [f"k={2**40}", "k=7"]),
}


@_table
def _leftovers(root: Path) -> None:
    _in_partitions(root, ["k=1", "k=2"])
    for name in ("_temporary/0/x.parquet", ".hive-staging/y.parquet", "k=1/_SUCCESS", "k=1/.f.crc"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"left")


@_table
def _key_in_the_file(root: Path) -> None:
    _put(root / "k=1", "f.parquet", _some() | {"k": [1] * 8})


@_table
def _empty_files(root: Path) -> None:
    _put(root, "a.parquet", _some())
    _put(root, "b.parquet", pa.table(_some()).slice(0, 0))


# Columns that have grown


@_table
def _late_columns(root: Path) -> None:
    _put(root, "a.parquet", {"id": [1]})
    _put(root, "b.parquet", {"id": [2], "more": ["x"], "st": [{"a": 1}]})
    _put(root, "c.parquet", {"st": [{"a": 1, "b": "y"}], "id": [3]})


@_table
def _other_orders(root: Path) -> None:
    _put(root, "a.parquet", {"id": [1], "name": ["x"]})
    _put(root, "b.parquet", {"name": ["y"], "id": [2]})


@_table
def _other_case(root: Path) -> None:
    _put(root, "a.parquet", {"Id": [1], "userName": ["x"]})
    _put(root, "b.parquet", {"ID": [2], "username": ["y"]})


@_table
def _widened(root: Path) -> None:
    _put(root, "a.parquet", {"id": pa.array([1], pa.int32())})
    _put(root, "b.parquet", {"id": pa.array([2**40], pa.int64())})


@_table
def _odd_names(root: Path) -> None:
    _put(root, "we ird %20 é+a.parquet", {"id": [1], "dep delay": [2], "größe": [3], "a-b": [4]})


# Types

_of_type("dates", pa.array([dt.date(1970, 1, 1), dt.date(2024, 3, 1), None]))
_of_type("old_dates", pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)]))
_of_type("micros", pa.array([NOON, None], pa.timestamp("us")))
_of_type("micros_utc", pa.array([NOON, None], pa.timestamp("us", "UTC")))
_of_type("decimals", pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)))
_of_type("wide_decimals", pa.array([Decimal("1.25"), None], pa.decimal128(38, 10)))
_of_type("floats", pa.array([math.nan, -0.0, math.inf, None], pa.float32()))
_of_type("booleans", pa.array([True, None]))
_of_type("small_integers", pa.array([1, None], pa.int8()))
_of_type("texts", pa.array(["", "ä", "\U0001f600", None]))
_of_type("large_texts", pa.array(["a", "b"], pa.large_string()))
_of_type("dictionaries", pa.array(["a", "b", "a"]).dictionary_encode())
_of_type("blobs", pa.array([b"\x00\xff", b"", None]))
_of_type("structs", pa.array([{"a": 1, "b": {"c": "x"}}, None]))
_of_type("lists", pa.array([[1, None], [], None]))
_of_type("maps", pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())))
_of_type("unsigned", pa.array([1, 2**31 + 5], pa.uint32()))
_of_type("times", pa.array([dt.time(10, 30)], pa.time64("us")))


@_table
def _flights(root: Path) -> None:
    """The demo's table."""
    write_flights(root, lambda done, total: None, files=60)


@dataclass
class MessyLake:
    """The catalog of such a lake, as ``sync`` would register it: ``lake.<name>``."""

    root: Path
    storage: Storage = field(default_factory=open_storage)
    recursive: bool = False

    def __post_init__(self) -> None:
        for name, write in TABLES.items():
            write(self.root / name)
        for path in self.root.rglob("*"):
            if path.is_file():
                os.utime(path, (1.7e9, 1.7e9))
        self._tables = {
            name: DirectoryCatalog(self.storage, f"file://{self.root}/{name}") for name in TABLES
        }

    def rows(self, name: str) -> int:
        """Of all data files, by their footers."""
        hidden = ("_", ".")
        paths = (p.relative_to(self.root / name) for p in (self.root / name).rglob("*"))
        shown = (p for p in paths if not any(part.startswith(hidden) for part in p.parts))
        files = (self.root / name / p for p in shown)
        return sum(pq.read_metadata(p).num_rows for p in files if p.is_file())

    def store(self) -> IndexStore:
        """There are no indexes."""
        return IndexStore(self.storage, f"file://{self.root}/.none")

    def schemas(self) -> list[str]:
        return ["lake"]

    def tables(self, schema: str) -> list[str]:
        return sorted(self._tables)

    def views(self, schema: str) -> list[str]:
        return []

    def view(self, name: TableName) -> View | None:
        return None

    def table(self, name: TableName, age: float = 0.0) -> CatalogTable:
        one = self._of(name)
        return replace(one.table(one.name), name=name)

    def forget(self, name: TableName) -> None:
        """Nothing changes."""

    def partition_names(self, table: CatalogTable, age: float = 0.0) -> list[str]:
        return self._of(table.name).partition_names(table)

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> PartitionFetch:
        return self._of(table.name).partitions(table, names)

    def close(self) -> None:
        """Nothing is open."""

    def _of(self, name: TableName) -> DirectoryCatalog:
        if name.table not in self._tables:
            raise TableNotFound(f"there is no table {name}", "")
        return self._tables[name.table]
