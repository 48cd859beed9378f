"""Hooked tables in Hive beside everything else that is done with tables: writing, analysing, other
formats, many partitions, another clock, another engine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import BIGINT, INTEGER
from bridge.metastore.client import MetastoreClient
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.hive_sales import COLUMNS, write_sales
from tests.engines.hive_stack import (
    FETCH,
    TEZ,
    HookedHive,
    PlannerUnderTest,
    age,
    hooked_hive,
    index,
    naming,
    register,
)
from tests.support.hooked_records import hook, hook_table
from tests.support.servers.hiveserver2 import HiveServer2Spec, start_hiveserver2

pytestmark = pytest.mark.full

NAME = TableName("reading", "sales")
MODES = pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])


@pytest.fixture(scope="module")
def both(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HookedHive, PlannerUnderTest]]:
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache")) as running:
        hive = running[0]
        hive.forget(NAME.schema)
        _sales(hive, tmp_path_factory.mktemp("reading"), NAME)
        yield running


def _sales(hive: HookedHive, directory: Path, name: TableName) -> None:
    table, partitions = write_sales(directory / "table", name)
    age(directory)
    register(hive.metastore_uri, name, table, partitions)
    hive.build_index(name)


@pytest.fixture
def hive(both: tuple[HookedHive, PlannerUnderTest]) -> HookedHive:
    return both[0]


@pytest.fixture
def planner(both: tuple[HookedHive, PlannerUnderTest]) -> Iterator[PlannerUnderTest]:
    running = both[1]
    running.asked.clear()
    yield running
    running.answer = None


def test_each_scan_of_one_table_has_its_own_answer(
    hive: HookedHive, planner: PlannerUnderTest
) -> None:
    union = (
        f"SELECT k FROM {NAME} WHERE k = 7 UNION ALL SELECT k FROM {NAME} WHERE k = 77 "
        f"UNION ALL SELECT k FROM {NAME} WHERE k = 1000"
    )
    answer = hive.ask(union, TEZ)
    assert answer.ids == [7, 77]
    assert sorted((s.read, s.listed) for s in answer.scans) == [(0, 12), (1, 12), (1, 12)]
    assert len(planner.asked) == len({r.predicate for r in planner.asked}) == 3
    joined = f"SELECT a.k, b.k FROM {NAME} a JOIN {NAME} b ON a.k + 70 = b.k WHERE a.k = 7"
    answer = hive.ask(f"{joined} AND b.k > 60 AND b.k < 80", TEZ)
    assert answer.rows == [(7, 77)]
    assert sorted((s.read, s.listed) for s in answer.scans) == [(1, 12), (1, 12)]


def test_two_thousand_partitions_cost_one_call(
    hive: HookedHive, planner: PlannerUnderTest, tmp_path: Path
) -> None:
    name = TableName("reading", "many")
    partitions = []
    for p in range(2000):
        directory = tmp_path / "table" / f"p={p}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"k": pa.array([p], pa.int64())}), directory / "f.parquet")
        partitions.append(Partition(f"p={p}", (str(p),), f"file://{directory}"))
    age(tmp_path)
    keys = (Column("p", INTEGER),)
    table = CatalogTable(name, (Column("k", BIGINT),), keys, f"file://{tmp_path}/table")
    register(hive.metastore_uri, name, table, partitions)
    hive.build_index(name)
    answer = hive.ask(f"SELECT k, p FROM {name} WHERE k = 1234")
    assert answer.rows == [(1234, 1234)]
    assert (len(answer.scans), answer.listed, answer.read) == (2000, 2000, 1)
    assert len(planner.asked) == 1


def test_hive_writes_and_analyses_hooked_tables(hive: HookedHive, tmp_path: Path) -> None:
    name = TableName("reading", "written")
    _sales(hive, tmp_path, name)
    sql = f"SELECT k, p FROM {name} WHERE k IN (77, 5000)"
    assert hive.ask(sql).read == 1
    hive.ask(f"INSERT INTO {name} PARTITION (p = 1) (k, s) VALUES (5000, 'new')")
    answer = hive.ask(sql)
    assert sorted(answer.rows) == [(77, 0), (5000, 1)] and answer.read == 2
    # A partition that Hive adds takes the table's hook.
    hive.ask(f"INSERT INTO {name} PARTITION (p) (k, s, p) SELECT k, s, 7 FROM {name} WHERE k = 77")
    assert sorted(hive.ask(sql).rows) == [(77, 0), (77, 7), (5000, 1)]
    columns = ", ".join(c.name for c in COLUMNS)
    hive.ask(
        f"INSERT OVERWRITE TABLE {name} PARTITION (p = 0) SELECT {columns} FROM {name} WHERE k = 1"
    )
    assert sorted(hive.ask(sql, TEZ).rows) == [(77, 7), (5000, 1)]
    hive.ask(f"ANALYZE TABLE {name} PARTITION (p) COMPUTE STATISTICS")
    told = hive.ask(f"DESCRIBE FORMATTED {name} PARTITION (p = 2)").rows
    assert any("numRows" in str(r) and "80" in str(r) for r in told)
    assert hive.ask(f"SELECT count(*) FROM {name}", TEZ).rows == [(163,)]


@MODES
def test_partitions_that_differ_from_the_table(
    hive: HookedHive, tmp_path: Path, settings: dict[str, str]
) -> None:
    """One without the hook, one of another format, one without files."""
    mode = settings["hive.fetch.task.conversion"]
    name = TableName("reading", f"mixed_{mode}")
    _sales(hive, tmp_path, name)
    columns = ", ".join(c.name for c in COLUMNS)
    hive.ask(
        f"CREATE EXTERNAL TABLE reading.orc_{mode} STORED AS ORC LOCATION 'file://{tmp_path}/orc' "
        f"AS SELECT {columns} FROM {name} WHERE k IN (77, 78, 230)"
    )
    hive.ask(f"ALTER TABLE {name} ADD PARTITION (p = 4) LOCATION 'file://{tmp_path}/orc'")
    hive.ask(f"ALTER TABLE {name} PARTITION (p = 4) SET FILEFORMAT ORC")
    hive.ask(f"ALTER TABLE {name} ADD PARTITION (p = 5)")
    with MetastoreClient(hive.metastore_uri) as client:
        found = client.get_partitions_by_names(name.schema, name.table, ["p=1"])
        (one,) = found.partitions
        one.sd.inputFormat = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
        client.alter_partitions(name.schema, name.table, [one])
    # A plan is hooked whatever the partition's record says.
    for condition, files in (
        ("k IN (77, 115)", 2),
        ("k >= 230 OR s = 'f-115'", 2),
        ("k > 9999", 0),
    ):
        sql = f"SELECT k, s, p FROM {name} WHERE {condition}"
        answer = hive.ask(sql, settings)
        assert sorted(answer.rows, key=str) == sorted(hive.unhooked(sql, settings), key=str)
        assert {p for _, _, p in answer.rows} <= {0, 1, 2, 4}
        # A directory without files may be one more listing.
        assert (answer.read, answer.listed) == (files, 12)
        assert not answer.warnings


FORMATS = {
    "text": "ROW FORMAT DELIMITED FIELDS TERMINATED BY ','",
    "csv": "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'",
    "json": "ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.JsonSerDe'",
}


@pytest.mark.parametrize("kind", FORMATS)
def test_other_formats_ask_too(
    hive: HookedHive, planner: PlannerUnderTest, tmp_path: Path, kind: str
) -> None:
    """The table has no index: all is read. What the planner named would be left out, a changed file
    would not.
    """
    name = TableName("reading", f"of_{kind}")
    hive.ask(
        f"CREATE EXTERNAL TABLE {name} (k int, s string) {FORMATS[kind]} "
        f"LOCATION 'file://{tmp_path}/t'"
    )
    for k in (1, 2, 3):
        hive.ask(f"INSERT INTO {name} VALUES ({k}, 'row{k}')")
    with MetastoreClient(hive.metastore_uri) as client:
        record = client.get_table(name.schema, name.table)
        hook(record)
        client.alter_table(name.schema, name.table, record)
    sql = f"SELECT s FROM {name} WHERE k >= 2"
    expected = [("row2",), ("row3",)]
    unindexed = hive.ask(sql)
    assert sorted(unindexed.rows) == expected and unindexed.read == 3 and not unindexed.warnings
    files = sorted(p for p in (tmp_path / "t").iterdir() if p.name[0].isalnum())
    assert len(files) == 3
    planner.answer = lambda own, request: naming(files, shift=0)
    for settings in (FETCH, TEZ):
        assert hive.ask(sql, settings).rows == []
    planner.answer = lambda own, request: naming(files, shift=1)
    assert sorted(hive.ask(sql).rows) == expected


def test_columns_by_position_are_not_those_of_the_index(hive: HookedHive) -> None:
    sql = f"SELECT k FROM {NAME} WHERE k = 77"
    answer = hive.ask(sql, {**FETCH, "parquet.column.index.access": "true"})
    assert answer.rows == [(77,)] and answer.read == answer.listed == 12


def test_the_storage_handler(hive: HookedHive, tmp_path: Path) -> None:
    """The second way in: filters arrive whatever the settings; nothing is inserted."""
    name = TableName("reading", "handled")
    _, partitions = write_sales(tmp_path / "table", name)
    age(tmp_path)
    create = (
        f"CREATE EXTERNAL TABLE {name} (k bigint, n int, s string) PARTITIONED BY (p int) "
        "STORED BY 'io.skipbridge.hive.BridgeStorageHandler'"
    )
    hive.ask(f"{create} LOCATION 'file://{tmp_path}/table'")
    for partition in partitions:
        hive.ask(f"ALTER TABLE {name} ADD PARTITION ({partition.name})")
    index(hive.metastore_uri, name)
    for settings in (FETCH, TEZ):
        answer = hive.ask(f"SELECT k, s, p FROM {name} WHERE s LIKE 'd%' AND k = 77", settings)
        assert answer.rows == [(77, "d-077", 0)] and not answer.warnings
        assert (answer.read, answer.listed) == (1, 12)
    assert hive.ask(f"SELECT count(*) FROM {name} WHERE upper(s) = 'D-077'", TEZ).rows == [(1,)]
    for statement in ("INSERT INTO", "INSERT OVERWRITE TABLE"):
        with pytest.raises(Exception, match="is refused: a table of skipbridge's storage handler"):
            hive.ask(f"{statement} {name} PARTITION (p = 1) SELECT 1, 1, 'x'")
    assert hive.ask(f"SELECT count(*) FROM {name}", TEZ).rows == [(240,)]


def test_a_view_over_a_hooked_table(hive: HookedHive) -> None:
    hive.ask(f"CREATE VIEW reading.late AS SELECT k, s FROM {NAME} WHERE k >= 200")
    answer = hive.ask("SELECT k FROM reading.late WHERE s LIKE 'k%'")
    assert answer.ids == [k for k in range(200, 220) if k % 10 != 9] and answer.read == 1


@pytest.fixture(scope="module")
def far_west(
    metastore_401: RunningMetastore, hive_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningHiveServer2]:
    """A second HiveServer2, whose JVM is in another time zone, with daylight saving."""
    spec = HiveServer2Spec(
        tmp_path_factory.mktemp("far-west"),
        metastore_401.uri,
        port=0,
        auxiliary_jars=(hive_jar,),
        properties={"skipbridge.planner.by_session": "true"},
        heap="900m",
        jvm_options=("-Duser.timezone=America/Los_Angeles",),
        log_level="info",
    )
    with start_hiveserver2(spec) as server:
        yield RunningHiveServer2(server, metastore_401)


def test_timestamps_in_another_time_zone(
    both: tuple[HookedHive, PlannerUnderTest], far_west: RunningHiveServer2
) -> None:
    """The night in which the clocks there went forward is within the data."""
    here = both[0]
    there = HookedHive(far_west, here.planner)
    try:
        for condition, files in (
            ("ts < TIMESTAMP '2013-03-02 00:00:00'", 1),
            ("ts BETWEEN '2013-03-10 00:00:00' AND '2013-03-10 12:00:00'", 1),
            ("ts >= '2013-03-10 02:30:00' AND ts < '2013-03-10 03:30:00'", 1),
            ("to_date(ts) = DATE '2013-03-10'", 1),
            ("CAST(ts AS date) >= DATE '2013-05-09'", 1),
            ("d = DATE '2013-03-10'", 1),
            ("utc < TIMESTAMP '2013-03-02 00:00:00'", 12),
            ("utc = TIMESTAMP '2013-03-01 04:00:00'", 12),
        ):
            sql = f"SELECT k FROM {NAME} WHERE {condition}"
            answer = there.ask(sql)
            assert answer.ids == sorted(k for (k,) in there.unhooked(sql)), condition
            assert answer.read <= files, condition
            if "utc" not in condition:
                assert answer.ids == here.ask(sql).ids, condition
    finally:
        there.close()


_SPARK = """
import json, sys
from pyspark.sql import SparkSession
uri, table = sys.argv[1:]
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.sql.catalogImplementation", "hive")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
         .config("spark.hadoop.hive.metastore.uris", uri).getOrCreate())
rows = spark.sql(f"SELECT k, s, p FROM {table} WHERE k IN (77, 115)").collect()
spark.sql(f"INSERT INTO {table} PARTITION (p = 1) (k, s) VALUES (999, 'spark')")
total = spark.sql(f"SELECT count(*) FROM {table}").collect()[0][0]
print(json.dumps([sorted(map(list, rows)), total]))
"""


def test_spark_reads_and_writes_tables_with_hooked_records(
    metastore: RunningMetastore, tmp_path: Path
) -> None:
    """Without the jar: Spark has readers of its own."""
    pytest.importorskip("pyspark")
    name = TableName("hooked", "sales")
    table, partitions = write_sales(tmp_path / "table", name)
    age(tmp_path)
    register(metastore.uri, name, table, partitions)
    index(metastore.uri, name)
    hook_table(metastore.uri, name)
    done = subprocess.run(
        [sys.executable, "-c", _SPARK, metastore.uri, str(name)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows, total = json.loads(done.stdout.splitlines()[-1])
    assert rows == [[77, "d-077", 0], [115, "f-115", 1]] and total == 241
