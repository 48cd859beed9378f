"""The index built by a real Spark: the entries that threads find, over files that Spark wrote."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bridge.index.building.collect import FileTask, Nan, Reading, ThreadCollector
from bridge.index.generations.shard import Collected
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.indexing.spark_build import SparkCollector
from bridge.kernel.errors import StorageFailure
from bridge.kernel.types import BIGINT, DATE, DOUBLE, HIVE, STRING, TIMESTAMP, TRINO, Type, decimal
from bridge.storage.routed import open_storage
from tests.support.damage import damaged_orc, orc_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

from tests.support.lake import Lake, age

pytestmark = pytest.mark.engine


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path, recursive=True)


@pytest.mark.parametrize("nan", ["footer", "scan"])
def test_spark_finds_what_threads_find(spark_session: SparkSession, lake: Lake, nan: Nan) -> None:
    for i in range(40):
        data = {"x": [i, i + 1], "y": [float(i), float("nan")], "s": ["a", None]}
        lake.write(f"p={i % 3}/f{i}", data)
    lake.path("p=0/broken").write_bytes(b"not Parquet")
    age(lake.path("p=0/broken"))
    spark = lake.build(collector=SparkCollector(spark_session), nan=nan)
    assert (spark.files, spark.read, len(spark.failed)) == (41, 41, 1)
    found = [lake.column(n, t) for n, t in (("x", BIGINT), ("y", DOUBLE), ("s", STRING))]
    threads = lake.build(collector=ThreadCollector(lake.storage), nan=nan, full=True)
    assert threads.generation == spark.generation + 1
    for (name, kind), one in zip((("x", BIGINT), ("y", DOUBLE), ("s", STRING)), found, strict=True):
        other = lake.column(name, kind)
        for part in ("lower", "upper", "null_count", "nan_count", "row_count"):
            left, right = getattr(one, part), getattr(other, part)
            same = left.equals(right) if hasattr(left, "equals") else np.array_equal(left, right)
            assert same, (name, part)


SQL = """
select id, cast(id as double) / 7 as d, cast(id * 1.5 as decimal(20, 3)) as m,
       concat('v', id) as s, date_add(date '2024-01-01', cast(id as int)) as day,
       timestamp_seconds(id * 3600) as t, named_struct('a', id) as st, array(id) as l
from range({}, {}, 1, 1)
"""


def test_files_that_spark_wrote(spark_session: SparkSession, lake: Lake) -> None:
    for i in range(3):
        spark_session.sql(SQL.format(i * 100, i * 100 + 100)).write.mode("append").parquet(
            lake.location
        )
    report = lake.build(collector=SparkCollector(spark_session))
    assert (report.files, report.failed) == (3, ())
    expected: list[tuple[str | tuple[str, ...], Type, list[object], list[object]]] = [
        ("id", BIGINT, [0, 100, 200], [99, 199, 299]),
        ("s", STRING, [b"v0", b"v100", b"v200"], [b"v99", b"v199", b"v299"]),
        ("day", DATE, [19723, 19823, 19923], [19822, 19922, 20022]),
        (("st", "a"), BIGINT, [0, 100, 200], [99, 199, 299]),
    ]
    for name, kind, lower, upper in expected:
        found = lake.column(name, kind)
        assert sorted(_list(found.lower)) == lower, name
        assert sorted(_list(found.upper)) == sorted(upper), name
        assert found.null_count.tolist() == [0, 0, 0]
    wide = lake.column("m", decimal(20, 3))
    assert sorted(int(v * 1000) for v in _list(wide.lower)) == [0, 150000, 300000]
    # Spark 3 and later write INT96 by default: no bounds, and no wrong ones
    for semantics in (TRINO, HIVE):
        known = lake.column("t", TIMESTAMP, semantics=semantics).lower_known
        assert known is not None
        assert not known.any()


def _list(bounds: object) -> list[object]:
    return bounds.to_pylist() if hasattr(bounds, "to_pylist") else bounds.tolist()  # type: ignore[attr-defined]


def test_timestamps_as_micros(spark_session: SparkSession, lake: Lake) -> None:
    spark_session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        spark_session.sql(SQL.format(0, 10)).write.mode("append").parquet(lake.location)
    finally:
        spark_session.conf.unset("spark.sql.parquet.outputTimestampType")
    lake.build(collector=SparkCollector(spark_session))
    assert lake.bounds("t", TIMESTAMP, semantics=TRINO) == (0, 9 * 3_600_000_000)
    assert lake.bounds("t", TIMESTAMP, semantics=HIVE) == (None, None)


def test_27_executors_survive_files_that_end_their_reader(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    storage, tasks = open_storage(), []
    for number, seed in enumerate((None, 4564, None, 7358, None)):
        path = tmp_path / str(number)
        path.write_bytes(orc_files()[0] if seed is None else damaged_orc(random.Random(seed)))
        found = storage.stat(f"file://{path}")
        assert found is not None
        uri = f"file://{path}"
        tasks.append(FileTask(number, uri, found.size, found.modified, format="orc"))
    problems: dict[int, str | None] = {}
    for collected in SparkCollector(spark_session).collect(tasks, Reading()):
        files, texts = (collected.files[c].to_pylist() for c in ("file", "problem"))
        problems.update(zip(files, texts, strict=True))
    for number in range(5):
        problem = problems.pop(number)
        assert (problem is None) == (number % 2 == 0), problem
        assert problem is None or problem.startswith("FILE_CORRUPT")
    assert not problems


class Elsewhere(SparkCollector):
    """Reads from a bucket whose endpoint nobody serves."""

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        moved = [FileTask(t.file, "s3://nowhere/f", t.size, t.modified) for t in tasks]
        return super().collect(moved, reading)


def test_a_storage_that_fails_fails_the_build(spark_session: SparkSession, lake: Lake) -> None:
    lake.write("f", {"x": [1]})
    options = {
        "endpoint": "http://127.0.0.1:9",
        "region": "us-east-1",
        "access_key_id": "a",
        "secret_access_key": "b",
        "allow_http": "true",
        "retries": "0",
    }
    with pytest.raises(StorageFailure, match="nowhere"):
        lake.build(collector=Elsewhere(spark_session, options))
    assert lake.store().latest() is None


def test_no_file_is_read_twice(spark_session: SparkSession, lake: Lake) -> None:
    for i in range(30):
        lake.write(f"f{i:02d}", {"x": [i]})
    seen: list[tuple[int, int]] = []
    lake.build(collector=SparkCollector(spark_session), progress=lambda d, n: seen.append((d, n)))
    assert seen[-1] == (30, 30)
    assert [d for d, _ in seen] == sorted(d for d, _ in seen)
    assert lake.column("x", BIGINT).lower.tolist() == list(range(30))
    manifest = lake.store().latest()
    assert manifest is not None
    assert IndexSnapshot.open(manifest, lake.store(), lake.root / "c").num_files == 30
