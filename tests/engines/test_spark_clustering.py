"""Clustering by a real Spark, of files that Spark wrote: the same rows, stored alike, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from bridge.api.session import Session
from bridge.clustering.eligibility import Limits
from bridge.clustering.scheduling import Strategy
from bridge.config import Config
from bridge.jobs import cluster
from bridge.spark.session import open_session
from tests.support.lake import age

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine

SQL = """
select id, cast(id as double) / 7 as d, cast(id * 1.5 as decimal(12, 3)) as m,
       cast(id as decimal(30, 1)) as wide, concat('v', id % 50) as s,
       date_add(date '2024-01-01', cast(id as int)) as day,
       timestamp_seconds(id * 3600) as t, named_struct('a', id, 'b', array(id, null)) as st,
       map('k', id) as mp, cast(null as string) as n, id % 2 as part
from range({}, {}, 1, 1)
"""


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    pytest.importorskip("pyspark")
    session = open_session("local[2]", name="skipbridge-tests")
    yield session
    session.stop()


def columns_of(path: Path) -> str:
    """The columns as they are stored, without the name of the root."""
    return str(pq.ParquetFile(path).schema).split("\n", 2)[2]


def test_spark_rewrites_what_spark_wrote(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "t"
    session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    for i in range(3):
        frame = session.sql(SQL.format(i * 50, i * 50 + 100))
        frame.write.mode("append").partitionBy("part").parquet(str(root))
    old = sorted(root.glob("part=*/*.parquet"))
    for path in old:
        age(path, 60)
    with Session(Config()) as reader:
        before = sorted(map(repr, reader.table(str(root)).scan().to_arrow().to_pylist()))
    strategy = Strategy("kdtree", ("id", "s"), "overlap", Limits(target=6000))
    made = cluster.schedule(Config(), str(root), strategy, print)
    assert made["old_files"] == len(old) == 6
    done = cluster.run(
        Config(), str(root), made["instant"], spark=session, progress=lambda *_: None
    )
    assert (done["state"], done["rejected"], done["rows"]) == ("completed", [], 300)
    new = sorted(root.glob(f".skipbridge_clustered/{made['instant']}/part=*/*.parquet"))
    assert len(new) == done["new_files"] >= 2 and old[0].exists()
    assert {columns_of(path) for path in new} == {columns_of(path) for path in old}
    kept = pq.ParquetFile(new[0]).metadata.metadata or {}
    assert b"org.apache.spark.version" in kept
    with Session(Config()) as reader:
        scan = reader.table(str(root)).scan()
        assert sorted(map(repr, scan.to_arrow().to_pylist())) == before
    # Spark, as any engine without skipbridge, reads the old files; and the new ones alike.
    columns = ["id", "d", "m", "wide", "s", "day", "t", "st", "n"]
    expected = sorted(map(repr, session.read.parquet(str(root)).select(columns).collect()))
    assert len(expected) == 300
    found = session.read.parquet(*map(str, new)).select(columns).collect()
    assert sorted(map(repr, found)) == expected
