"""Queries through the HTTP door in Spark 4.1; nightly in 4.0 and 3.5. Rows are those of DuckDB."""

from __future__ import annotations

import datetime
import os
import random
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import BIGINT, INTEGER, TIMESTAMP, Field, array, struct
from bridge.servers.process import free_port
from bridge.table.model import Column
from tests.support.iceberg_door import OpenDoor, open_door
from tests.support.iceberg_lake import IcebergLake, sql_filter
from tests.support.iceberg_spark import (
    SPARK_35,
    SPARK_40,
    SPARK_41,
    IcebergSpark,
    Release,
    SparkFailed,
    open_connect,
    open_spark,
)
from tests.support.lake import Lake
from tests.tiers import examples, seed

pytestmark = [pytest.mark.engine, pytest.mark.full]

RELEASES = [
    pytest.param(SPARK_41, id="4.1"),
    pytest.param(SPARK_40, id="4.0", marks=pytest.mark.nightly),
    pytest.param(SPARK_35, id="3.5", marks=pytest.mark.nightly),
]
QUERIES = (
    "SELECT count(*) FROM {t}",
    "SELECT count(*) FROM {t} WHERE month = 1",
    "SELECT count(*) FROM {t} WHERE month = 1 OR name = 'plain'",
    "SELECT count(*) FROM {t} WHERE n BETWEEN 30 AND 60",
    "SELECT count(*), count(n), count(month), min(id), max(id), min(dt), max(dec) FROM {t}",
    "SELECT count(n), max(n), min(s) FROM {t} WHERE month IN (1, 3)",
    "SELECT month, name, count(*), sum(n), min(dt) FROM {t} GROUP BY month, name",
    "SELECT name, count(DISTINCT n) FROM {t} WHERE id < 9000 GROUP BY name HAVING count(*) > 3",
    "WITH a AS (SELECT id, n, month FROM {t} WHERE n > 100), "
    "b AS (SELECT month, max(n) AS top FROM a GROUP BY month) "
    "SELECT a.id, b.top FROM a JOIN b ON a.month = b.month WHERE a.n = b.top",
    "SELECT a.id, b.id FROM {t} a JOIN {t} b ON a.n = b.n AND a.id < b.id WHERE a.n > 300",
    "SELECT a.id, b.id FROM {t} a LEFT JOIN {t} b ON a.id = b.id AND b.month = 2 WHERE a.n < 40",
    "SELECT id FROM {t} WHERE n = (SELECT max(n) FROM {t} WHERE month = 2)",
    "SELECT id FROM {t} WHERE id IN (SELECT max(id) FROM {t} GROUP BY month)",
    "SELECT id FROM {t} a WHERE month = 1 AND NOT EXISTS "
    "(SELECT 1 FROM {t} b WHERE b.n = a.n AND b.id <> a.id)",
    "SELECT id FROM {t} WHERE month IN (SELECT min(month) FROM {t})",
    "SELECT id FROM {t} WHERE n > 350 UNION ALL SELECT id FROM {t} WHERE n < 20",
    "SELECT id FROM {t} WHERE n > 200 EXCEPT SELECT id FROM {t} WHERE month = 1",
    "SELECT id FROM {t} WHERE id > 20000 ORDER BY id DESC LIMIT 9",
    "SELECT id, row_number() OVER (PARTITION BY month ORDER BY id) FROM {t} WHERE n > 300",
    "SELECT id, st.x, st.y FROM {t} WHERE st.x > 300 AND st.y IS NOT NULL",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> IcebergLake:
    return IcebergLake.make(tmp_path_factory.mktemp("lake"), seed(43), days=True)


@pytest.fixture(scope="module")
def door(world: IcebergLake) -> Iterator[OpenDoor]:
    with open_door(world.lake) as opened:
        yield opened


@pytest.fixture(scope="module")
def connect() -> int:
    """The port on which the session is a Spark Connect server, too."""
    return free_port()


@pytest.fixture(scope="module", params=RELEASES)
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, connect: int
) -> Iterator[IcebergSpark]:
    release: Release = request.param
    settings = {}
    if release is SPARK_41:
        settings = {
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.port": str(connect),
            "spark.connect.grpc.binding.address": "127.0.0.1",
        }
    with open_spark(tmp_path_factory.mktemp("spark"), release, settings=settings) as session:
        assert session.version == release.pyspark
        yield session


def test_random_filters(world: IcebergLake, door: OpenDoor, spark: IcebergSpark) -> None:
    _filters(world, door, spark, examples(20, 200, 400))


def _filters(world: IcebergLake, door: OpenDoor, spark: IcebergSpark, number: int) -> None:
    """No two of them are equal, and at least half leave out files."""
    rng = random.Random(seed(4141))
    table = spark.table(door.url)
    drawn: set[str] = set()
    skipped = 0
    while len(drawn) < number:
        condition = sql_filter(rng, rng.choice((0, 1, 2)), world.files)
        if condition in drawn:
            continue
        drawn.add(condition)
        before = len(door.planned)
        found = sorted(row[0] for row in spark(f"SELECT id FROM {table} WHERE {condition}"))
        assert found == world.ids(condition), condition
        skipped += all(n < world.files for n in door.planned[before:])
    assert skipped >= number // 2, (skipped, number)


def test_queries(world: IcebergLake, door: OpenDoor, spark: IcebergSpark) -> None:
    table = spark.table(door.url)
    for sql in QUERIES:
        found = spark(sql.format(t=table))
        assert sorted(map(str, found)) == sorted(map(str, _duckdb(world, sql))), sql


def _duckdb(world: IcebergLake, sql: str) -> list[list[Any]]:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("t", world.rows)
    rows = connection.execute(sql.format(t="t")).fetchall()
    return [[_plain(value) for value in row] for row in rows]


def _plain(value: Any) -> Any:
    """As JSON has it."""
    return value if value is None or isinstance(value, int | float) else str(value)


def test_a_limit_plans_few_files(world: IcebergLake, door: OpenDoor, spark: IcebergSpark) -> None:
    table = spark.table(door.url)
    before = len(door.planned)
    assert len(spark(f"SELECT id FROM {table} LIMIT 7")) == 7
    assert max(door.planned[before:]) == 1
    found = {row[0] for row in spark(f"SELECT id FROM {table} WHERE n > 50 LIMIT 7")}
    assert len(found) == 7 and found <= set(world.ids("n > 50"))


def test_spark_connect(
    world: IcebergLake,
    door: OpenDoor,
    spark: IcebergSpark,
    connect: int,
    tmp_path: Path,
) -> None:
    if spark.version != SPARK_41.pyspark:
        pytest.skip("asked of 4.1 alone")
    with open_connect(tmp_path, connect) as client:
        _filters(world, door, client, examples(5, 40, 100))


def test_a_dynamic_filter_reads_its_partitions_alone(tmp_path: Path, spark: IcebergSpark) -> None:
    """The files of all other partitions are gone: whoever reads them fails."""
    lake = Lake(tmp_path, (Column("id", BIGINT),), (Column("month", INTEGER),))
    lake.partition_values = [(str(i),) for i in range(12)]
    for i, values in enumerate(lake.partition_values):
        lake.write(f"f{i}.parquet", {"id": [10 * i, 10 * i + 1]}, values)
    lake.build()
    months = tmp_path / "months.parquet"
    pq.write_table(
        pa.table({"m": pa.array(range(12), pa.int32()), "name": list("abcdefghijkl")}), months
    )
    spark("DROP VIEW IF EXISTS months")
    spark(f"CREATE TEMPORARY VIEW months USING parquet OPTIONS (path 'file://{months}')")
    with open_door(lake) as door:
        table = spark.table(door.url)
        assert spark(f"SELECT count(*), sum(id) FROM {table} WHERE id >= 0") == [[24, 1332]]
        for i in set(range(12)) - {5}:
            next(lake.path("").rglob(f"f{i}.parquet")).unlink()
        sql = (
            f"SELECT /*+ BROADCAST(months) */ t.id FROM {table} t JOIN months"
            " ON t.month = months.m WHERE months.name = 'f'"
        )
        assert sorted(spark(sql)) == [[50], [51]]
        switch = "spark.sql.optimizer.dynamicPartitionPruning.enabled"
        try:
            with pytest.raises(SparkFailed):
                spark(sql, **{switch: "false"})
        finally:
            spark("SELECT 1", **{switch: "true"})


def test_files_that_change_under_queries(tmp_path: Path, spark: IcebergSpark) -> None:
    """Each file is read as it was once, wholly, or the query fails; others may come and go."""
    lake = Lake(tmp_path, (Column("file", BIGINT), Column("version", BIGINT)))
    _write(lake, range(12), 0)
    lake.build()
    ended = threading.Event()

    def rewrite() -> None:
        rng, version = random.Random(seed(7)), 0
        while not ended.wait(0.02):
            version += 1
            _write(lake, [rng.randrange(12)], version)
            extra = lake.path(f"f{rng.randrange(100, 104)}.parquet")
            if extra.exists():
                extra.unlink()
            else:
                _write(lake, [int(extra.stem[1:])], version)

    writer = threading.Thread(target=rewrite)
    answered = failed = 0
    with open_door(lake, "live") as door:
        table = spark.table(door.url)
        writer.start()
        try:
            for _ in range(examples(10, 40, 200)):
                try:
                    rows = spark(f"SELECT file, version, count(*) FROM {table} GROUP BY 1, 2")
                except SparkFailed as error:
                    # A file went before Spark opened it, or thrice between listing and footer.
                    text = str(error)
                    assert _GONE.search(text), text
                    failed += 1
                    continue
                answered += 1
                assert all(count == 10 for _, _, count in rows), rows
                files = [file for file, _, _ in rows]
                assert len(set(files)) == len(files) and set(range(12)) <= set(files), rows
        finally:
            ended.set()
            writer.join()
    assert answered, failed


_GONE = re.compile(r"NotFoundException: .*/t/f10\d\.parquet|FILE_CHANGED: .* run the query again")


def _write(lake: Lake, numbers: Any, version: int) -> None:
    """A file appears at once, as writers of objects have it."""
    for number in numbers:
        path = lake.path(f"f{number}.parquet")
        hidden = path.with_name(f".f{number}")
        pq.write_table(pa.table({"file": [number] * 10, "version": [version] * 10}), hidden)
        os.utime(hidden, (1e9 + version, 1e9 + version))
        hidden.replace(path)


def test_instants_in_int96(tmp_path: Path, spark: IcebergSpark) -> None:
    """Far times, too; dictionary-encoded and not, below lists and structs."""
    texts = ["2024-03-01 12:00:00.007", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999"]
    times = [None if t is None else datetime.datetime.fromisoformat(t) for t in (*texts, None)]
    columns = (
        Column("id", BIGINT),
        Column("ts", TIMESTAMP),
        Column("li", array(TIMESTAMP)),
        Column("st", struct(Field("x", TIMESTAMP))),
    )
    wanted = [[i, t, [t], t] for i, t in enumerate((*texts, None))]
    unit = pa.timestamp("us")
    for number, dictionary in enumerate((False, True)):
        data = {
            "id": range(4),
            "ts": pa.array(times, unit),
            "li": pa.array([[t] for t in times], pa.list_(unit)),
            "st": pa.array([{"x": t} for t in times], pa.struct([("x", unit)])),
        }
        options = {"use_deprecated_int96_timestamps": True, "use_dictionary": dictionary}
        lake = Lake(tmp_path / str(number), columns)
        lake.write("f.parquet", pa.table(data), **options)
        lake.build()
        with open_door(lake) as door:
            table = spark.table(door.url)
            flat = spark(f"SELECT id, string(ts) FROM {table} ORDER BY id")
            assert flat == [row[:2] for row in wanted]
            deep = "string(ts), transform(li, x -> string(x)), string(st.x)"
            assert spark(f"SELECT id, {deep} FROM {table} ORDER BY id") == wanted
            for condition, ids in (
                (f"ts = TIMESTAMP '{texts[0]}'", [0]),
                (f"ts <> TIMESTAMP '{texts[0]}'", [1, 2]),
                ("ts < TIMESTAMP '1900-01-01 00:00:00'", [1]),
                ("ts >= TIMESTAMP '2024-03-01 12:00:00.007'", [0, 2]),
                (f"ts IN (TIMESTAMP '{texts[2]}', TIMESTAMP '{texts[1]}')", [1, 2]),
                (f"NOT ts IN (TIMESTAMP '{texts[2]}')", [0, 1]),
                (f"st.x = TIMESTAMP '{texts[2]}'", [2]),
                ("ts IS NULL OR ts > TIMESTAMP '9000-01-01 00:00:00'", [2, 3]),
            ):
                found = spark(f"SELECT id FROM {table} WHERE {condition} ORDER BY id")
                assert found == [[i] for i in ids], condition
            assert spark(f"SELECT count(*), count(ts), max(id) FROM {table}") == [[4, 3, 3]]
