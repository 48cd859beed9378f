"""Tables that change between every two steps of a query: no row is lost, and files are skipped.

Stock Hive reads a query's files under the columns that it was compiled with, whatever the table has
become. So must the planner's answer, in both ways of hooking.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import FETCH, TEZ, HookedHive, age, hooked_hive

pytestmark = [pytest.mark.rule("41"), pytest.mark.full]
SCHEMA = "changing"


@pytest.fixture(scope="module")
def hive(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HookedHive]:
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache")) as (running, _):
        running.forget(SCHEMA)
        running.ask(f"CREATE DATABASE {SCHEMA}")
        yield running
        running.forget(SCHEMA)


def alter(hive: HookedHive, name: TableName, type: str) -> None:
    """Changes the type of the second column as another engine does."""
    with MetastoreClient(hive.metastore_uri) as client:
        table = client.get_table(name.schema, name.table)
        table.sd.cols[1].type = type
        client.alter_table(name.schema, name.table, table)


CENTS = [Decimal("1.25"), Decimal("7.77")]
# Such as the metastore accepts.
CHANGES: tuple[tuple[str, str, list[Any], pa.DataType, str], ...] = (
    ("decimal(10,2)", "decimal(5,1)", CENTS, pa.decimal128(10, 2), "c = 1.25"),
    ("string", "varchar(2)", ["abc", "zzz"], pa.string(), "c = 'abc'"),
    ("string", "char(2)", ["abc", "zzz"], pa.string(), "c > 'ab' AND c < 'abd'"),
    ("varchar(5)", "varchar(2)", ["abc", "zzz"], pa.string(), "c = 'abc'"),
    ("int", "string", [10, 5], pa.int32(), "c = 10"),
)


@pytest.mark.parametrize(("old", "new", "values", "type", "where"), CHANGES)
def test_a_table_that_changes_between_compiling_and_listing(
    hive: HookedHive,
    tmp_path: Path,
    old: str,
    new: str,
    values: list[Any],
    type: pa.DataType,
    where: str,
) -> None:
    number = [c[:2] for c in CHANGES].index((old, new))
    name = TableName(SCHEMA, f"prepared{number}")
    for i, value in enumerate(values):
        rows = pa.table({"k": pa.array([i], pa.int64()), "c": pa.array([value], type)})
        pq.write_table(rows, tmp_path / f"f{i}")
    age(tmp_path)
    create(hive, name, f"k bigint, c {old}", "STORED AS PARQUET", tmp_path)
    hive.build_index(name)
    hive.ask(f"SELECT k FROM {name} WHERE k = 1")
    query = name.table
    hive.ask(f"PREPARE {query} FROM SELECT k FROM {name} WHERE {where} AND k >= ?", TEZ)
    alter(hive, name, new)
    assert hive.ask(f"EXECUTE {query} USING 0", TEZ).rows == [(0,)]


def test_a_table_that_is_made_again_with_wider_types(hive: HookedHive, tmp_path: Path) -> None:
    name = TableName(SCHEMA, "recreated")
    for i, value in enumerate((1, 300, 4294967301)):
        pq.write_table(pa.table({"k": [i], "c": [value]}), tmp_path / f"f{i}")
    age(tmp_path)
    for _ in range(2):
        create(hive, name, "k bigint, c int", "STORED AS PARQUET", tmp_path)
        hive.build_index(name)
        assert hive.ask(f"SELECT k FROM {name} WHERE k = 1").rows == [(1,)]
        create(hive, name, "k bigint, c bigint", "STORED AS PARQUET", tmp_path)
        assert hive.ask(f"SELECT k FROM {name} WHERE c = 4294967301").rows == [(2,)]


def create(hive: HookedHive, name: TableName, columns: str, words: str, root: Path) -> None:
    hive.ask(f"DROP TABLE IF EXISTS {name}")
    hive.ask(f"CREATE EXTERNAL TABLE {name} ({columns}) {words} LOCATION 'file://{root}'")


def _avro(path: Path, rows: pa.Table) -> None:
    fields = [{"name": "k", "type": ["null", "long"]}, {"name": "s", "type": ["null", "string"]}]
    with path.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, rows.to_pylist())


def _lines(line: Callable[[dict[str, Any]], str]) -> Callable[[Path, pa.Table], None]:
    def write(path: Path, rows: pa.Table) -> None:
        path.write_text("".join(line(row) + "\n" for row in rows.to_pylist()))

    return write


CSV = _lines(lambda row: f"{row['k']},{row['s']}")
SERDE = "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.{}'"
FORMATS: dict[str, tuple[str, Callable[[Path, pa.Table], None]]] = {
    "parquet": ("STORED AS PARQUET", lambda path, rows: pq.write_table(rows, path)),
    "orc": ("STORED AS ORC", lambda path, rows: orc.write_table(rows, path)),
    "avro": ("STORED AS AVRO", _avro),
    "text": ("ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' STORED AS TEXTFILE", CSV),
    "csv": (SERDE.format("OpenCSVSerde") + " STORED AS TEXTFILE", CSV),
    "json": (SERDE.format("JsonSerDe") + " STORED AS TEXTFILE", _lines(json.dumps)),
}


@pytest.mark.parametrize("partitioned", [False, True], ids=["flat", "partitioned"])
@pytest.mark.parametrize("format", FORMATS)
def test_files_are_skipped_before_and_after_a_change(
    hive: HookedHive, tmp_path: Path, format: str, partitioned: bool
) -> None:
    words, write = FORMATS[format]
    name = TableName(SCHEMA, f"{format}_{'parts' if partitioned else 'flat'}")
    for i in range(8):
        rows = pa.table({"k": pa.array([i], pa.int64()), "s": [f"s{i}"]})
        directory = tmp_path / f"p={i % 2}" if partitioned else tmp_path
        directory.mkdir(exist_ok=True)
        write(directory / f"f{i}", rows)
    age(tmp_path)
    keys = "PARTITIONED BY (p int) " if partitioned else ""
    create(hive, name, "k bigint, s string", keys + words, tmp_path)
    if partitioned:
        hive.ask(f"MSCK REPAIR TABLE {name}")
    hive.build_index(name)
    sql = f"SELECT k FROM {name} WHERE s = 's3'"
    if partitioned:
        sql += " AND p >= 0"
    modes = (FETCH, TEZ)
    if (format, partitioned) == ("avro", True):
        modes = (FETCH,)  # tasks are told a schema of each partition, which the index has not
    for mode in modes:
        answer = hive.ask(sql, mode)
        assert [str(k) for (k,) in answer.rows] == ["3"]
        assert answer.read < 8, mode
    if format in ("avro", "json"):  # Hive adds no columns to them
        return
    hive.ask(f"ALTER TABLE {name} ADD COLUMNS (extra int)" + (" CASCADE" if partitioned else ""))
    hive.build_index(name)
    for mode in modes:
        for _ in range(60):  # the planner looks for a new generation once a second
            answer = hive.ask(sql, mode)
            assert [str(k) for (k,) in answer.rows] == ["3"]
            if answer.read < 8:
                break
            time.sleep(0.2)
        assert answer.read < 8, mode
