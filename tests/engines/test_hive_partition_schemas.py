"""Partitions that the metastore describes in other words than their table, in a real Hive.

Whatever Hive makes of them, it makes the same of them with and without skipping files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
from pyhive.exc import OperationalError

from bridge.metastore._gen.ttypes import FieldSchema
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, TEZ, HookedHive, age, hooked_hive
from tests.tiers import examples

pytestmark = pytest.mark.full

SCHEMA = "described"
FORMATS = ("parquet", "orc")
Columns = list[FieldSchema]


def _retyped(place: int, type: str) -> Callable[[Columns], Columns]:
    def change(columns: Columns) -> Columns:
        columns[place].type = type
        return columns

    return change


def _renamed(columns: Columns) -> Columns:
    columns[1].name = "x"
    return columns


def _swapped(columns: Columns) -> Columns:
    columns[0].name, columns[1].name = columns[1].name, columns[0].name
    return columns


SCHEMAS: tuple[tuple[Callable[[Columns], Columns], tuple[str, ...]], ...] = (
    (lambda columns: columns, ("b = 44", "s IS NULL", "m = 1.3")),
    (lambda columns: columns[:1], ("b = 300", "b IS NULL", "s = 'abc '", "s IS NULL")),
    (_retyped(1, "tinyint"), ("b = 300", "b = 44", "b > 100", "b IS NULL")),
    (_retyped(1, "bigint"), ("b = 300", "b IS NULL")),
    (_retyped(1, "string"), ("b = 300", "b IS NULL")),
    (_renamed, ("b = 300", "b IS NULL")),
    (_swapped, ("a = 10", "a = 300", "b = 10", "a IS NULL")),
    (_retyped(2, "varchar(2)"), ("s = 'ab'", "s = 'abc '")),
    (_retyped(2, "char(6)"), ("s = 'abc'", "s = 'abc '")),
    (_retyped(3, "float"), ("d = 0.1", "d > 0.1", "d IS NULL")),
    (_retyped(4, "decimal(5,1)"), ("m = 1.3", "m = 1.25", "m IS NULL")),
    (_retyped(1, "smallint"), ("b = 300", "b IS NULL")),
    (_retyped(1, "float"), ("b = 300", "b > 299", "b IS NULL")),
    (_retyped(1, "double"), ("b = 300", "b < 301", "b IS NULL")),
    (_retyped(1, "decimal(12,1)"), ("b = 300", "b IS NULL")),
    (_retyped(2, "int"), ("s = 'abc '", "s IS NULL")),
    (_retyped(2, "date"), ("s = 'abc '", "s IS NULL")),
    (_retyped(2, "binary"), ("s = 'abc '", "s IS NULL")),
    (_retyped(3, "string"), ("d = 0.1", "d IS NULL")),
    (_retyped(3, "decimal(5,2)"), ("d = 0.1", "d > 0.1", "d IS NULL")),
    (_retyped(4, "decimal(12,4)"), ("m = 1.25", "m IS NULL")),
    (_retyped(4, "double"), ("m = 1.25", "m IS NULL")),
    (_retyped(4, "int"), ("m = 1", "m = 1.25", "m IS NULL")),
)
"""How a partition differs, and conditions that may show it."""
IN_TASKS = {0: "b = 44", 1: "b IS NULL", 2: "b = 44"}
ROWS = {**TEZ, "hive.vectorized.execution.enabled": "false"}
TASKS = examples((TEZ,), (TEZ,), (TEZ, ROWS))


@pytest.fixture(scope="module")
def hive(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HookedHive]:
    root = tmp_path_factory.mktemp(SCHEMA)
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache")) as (running, _):
        running.forget(SCHEMA)
        running.ask(f"CREATE DATABASE {SCHEMA}")
        for format in FORMATS:
            _fill(running, root / format, format)
        yield running
        running.forget(SCHEMA)


def _fill(hive: HookedHive, root: Path, format: str) -> None:
    name = TableName(SCHEMA, f"of_{format}")
    hive.ask(
        f"CREATE EXTERNAL TABLE {name} (a int, b int, s string, d double, m decimal(10,2)) "
        f"PARTITIONED BY (p int) STORED AS {format} LOCATION 'file://{root}'"
    )
    for p in range(len(SCHEMAS)):
        (root / f"p={p}").mkdir(parents=True)
        columns = {
            "a": pa.array([10], pa.int32()),
            "b": pa.array([300], pa.int32()),
            "s": pa.array(["abc "]),
            "d": pa.array([0.1], pa.float32() if p == 9 else pa.float64()),
            "m": pa.array([1.25], pa.float64()).cast(pa.decimal128(10, 2)),
        }
        write = po.write_table if format == "orc" else pq.write_table
        write(pa.table(columns), root / f"p={p}" / "f")
        hive.ask(f"ALTER TABLE {name} ADD PARTITION (p = {p})")
    age(root)
    names = [f"p={p}" for p in range(len(SCHEMAS))]
    with MetastoreClient(hive.metastore_uri) as client:
        found = client.get_partitions_by_names(name.schema, name.table, names)
        records = dict(zip(found.names, found.partitions, strict=True))
        for p, (change, _) in enumerate(SCHEMAS):
            records[f"p={p}"].sd.cols = change(records[f"p={p}"].sd.cols)
        client.alter_partitions(name.schema, name.table, list(records.values()))
    hive.build_index(name)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("p", range(len(SCHEMAS)))
def test_hive_reads_what_it_reads_without_us(hive: HookedHive, p: int, format: str) -> None:
    lost, read = [], 0
    asked = [(condition, FETCH) for condition in (*SCHEMAS[p][1], "a = 11")]
    if p in IN_TASKS:
        asked += [(IN_TASKS[p], settings) for settings in TASKS]
    for condition, settings in asked:
        sql = f"SELECT * FROM {SCHEMA}.of_{format} WHERE p = {p} AND {condition}"
        try:
            expected = sorted(map(repr, hive.unhooked(sql, settings)))
        except OperationalError:  # it cannot read such a partition
            continue
        answer = hive.ask(sql, settings)
        if sorted(map(repr, answer.rows)) != expected:
            lost.append((condition, settings, answer.rows, expected))
        read += answer.read
    assert not lost, lost
    assert p or not read  # one that is described as its table is skipped, in fetches and tasks
