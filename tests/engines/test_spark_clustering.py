"""Clustering by a real Spark, of files that Spark wrote: the same rows, stored alike, in order."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.app.api.session import Session
from bridge.clustering.commands import run as cluster
from bridge.clustering.execution import ThreadRewriter
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.clustering.rewriting.rewrite import GroupTask
from bridge.clustering.rewriting.spark_rewrite import SparkRewriter
from bridge.indexing.spark_build import SparkCollector
from bridge.kernel.config import Config
from tests.support.lake import age
from tests.unit.clustering.test_rewrite import STORAGE, state_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.full, pytest.mark.engine]

SQL = """
select id, cast(id as double) / 7 as d, cast(id * 1.5 as decimal(12, 3)) as m,
       cast(id as decimal(30, 1)) as wide, concat('v', id % 50) as s,
       date_add(date '2024-01-01', cast(id as int)) as day,
       timestamp_seconds(id * 3600) as t, named_struct('a', id, 'b', array(id, null)) as st,
       map('k', id) as mp, cast(null as string) as n, id % 2 as part
from range({}, {}, 1, 1)
"""


def columns_of(path: Path) -> str:
    """The columns as they are stored, without the name of the root."""
    return str(pq.ParquetFile(path).schema).split("\n", 2)[2]


def test_spark_rewrites_what_spark_wrote(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "t"
    spark_session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    for i in range(3):
        frame = spark_session.sql(SQL.format(i * 50, i * 50 + 100))
        frame.write.mode("append").partitionBy("part").parquet(str(root))
    old = sorted(root.glob("part=*/*.parquet"))
    for path in old:
        age(path, 60)
    with Session(Config()) as reader:
        before = sorted(map(repr, reader.table(str(root)).scan().to_arrow().to_pylist()))
    strategy = Strategy("kdtree", ("id", "s"), "overlap", Limits(target=6000))
    made = cluster.schedule(Config(), str(root), strategy, print)
    assert made["old_files"] == len(old) == 6
    with monkeypatch.context() as patched:
        # What the index needs of new files comes from the tasks that write them.
        patched.setattr(SparkCollector, "collect", None)
        done = cluster.run(
            Config(), str(root), made["instant"], spark=spark_session, progress=lambda *_: None
        )
    assert (done["state"], done["rejected"], done["rows"]) == ("completed", [], 300)
    new = sorted(root.glob(f".skipbridge_clustered/{made['instant']}/part=*/*-data"))
    assert len(new) == done["new_files"] >= 2 and old[0].exists()
    assert {columns_of(path) for path in new} == {columns_of(path) for path in old}
    kept = pq.ParquetFile(new[0]).metadata.metadata or {}
    assert b"org.apache.spark.version" in kept
    with Session(Config()) as reader:
        scan = reader.table(str(root)).scan()
        assert sorted(map(repr, scan.to_arrow().to_pylist())) == before
    # Spark, as any engine without skipbridge, reads the old files; and the new ones alike.
    columns = ["id", "d", "m", "wide", "s", "day", "t", "st", "n"]
    expected = sorted(map(repr, spark_session.read.parquet(str(root)).select(columns).collect()))
    assert len(expected) == 300
    found = spark_session.read.parquet(*map(str, new)).select(columns).collect()
    assert sorted(map(repr, found)) == expected


def test_spark_and_threads_write_the_same_bytes(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    for i in range(40):
        x = [(i * 7919 + k * 104729) % 5000 for k in range(500)]
        table = pa.table({"x": x, "s": [f"s{v % 90}" for v in x], "all": [f"{v:050}" for v in x]})
        pq.write_table(table, tmp_path / f"{i:02}.parquet", compression="zstd")
    states = tuple(state_of(path) for path in sorted(tmp_path.glob("*.parquet")))
    found = []
    for rewriter in (SparkRewriter(spark_session, ship=False), ThreadRewriter(STORAGE)):
        target = f"file://{tmp_path}/{len(found)}"
        task = GroupTask(0, "", states, 3, "kdtree", ("x", "s"), target, None, 1 << 27)
        read: list[int] = []
        (result,) = rewriter.rewrite([task], read.append)
        assert (result.rejected, result.rows, len(result.new)) == ("", 20_000, 3)
        assert sum(read) == len(states)  # also of executors on this machine
        found.append([STORAGE.read(state.path) for state in result.new])
    assert found[0] == found[1]


def write(path: Path, begin: int, end: int, step: int = 1) -> None:
    path.parent.mkdir(exist_ok=True)
    x = list(range(begin, end, step))
    pq.write_table(pa.table({"x": x, "y": [v * 37 % 1000 for v in x]}), path)
    age(path, 60)


def values(root: Path) -> list[int]:
    with Session(Config()) as reader:
        return sorted(reader.table(str(root)).scan().to_arrow()["x"].to_pylist())


def kept(root: Path, where: str | None = None) -> int:
    with Session(Config()) as reader:
        return len(reader.table(str(root)).scan(where).files())


def test_by_overlap_depth(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that were clustered one after another are sorted into each other."""
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "t"
    limits = Limits(target=1 << 14, small=1 << 20)
    expected: list[int] = []
    for depth in (None, None, 1):
        if depth is None:
            for i in range(4):
                write(root / f"{len(expected)}-{i}.parquet", i, 4000, 4)
            expected += range(4000)
        strategy = Strategy("linear", ("x",), "overlap", limits, depth=depth)
        made = cluster.schedule(Config(), str(root), strategy, print)
        done = cluster.run(
            Config(), str(root), made["instant"], spark=spark_session, progress=lambda *_: None
        )
        assert (done["state"], done["rejected"]) == ("completed", [])
        assert values(root) == sorted(expected)
    assert done["old_files"] >= 4  # clustered files of both batches
    assert kept(root, "x BETWEEN 2000 AND 2010") <= 2


def test_each_clustering_of_a_watch_has_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    root = tmp_path / "t"
    for i in range(6):
        write(root / f"{i}.parquet", i, 60_000, 6)
    expected = list(range(60_000))
    words = ("-m", "bridge", "cluster", "run", str(root), "--watch", "200ms", "--by", "y",
             "--after-commits", "1", "--target", "80KiB")  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert "completed: 6 files" in process.stdout.readline()
        for i in (6, 7):
            write(root / f".{i}.draft", i * 10_000, i * 10_000 + 10_000)
            (root / f".{i}.draft").rename(root / f"{i}.parquet")
            expected += range(i * 10_000, i * 10_000 + 10_000)
        assert any(" completed: " in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0 and "0 failures" in errors and "Traceback" not in errors
    assert values(root) == sorted(expected)
    assert kept(root, "y BETWEEN 500 AND 510") < kept(root) / 2
