"""The Python API over a real metastore and a real Spark: a job indexes its own output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import bridge
from tests.engines.conftest import RunningMetastore

pytestmark = pytest.mark.full

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(spark: SparkSession, first: int, output: Path) -> None:
    """Two files of a hundred rows each."""
    frame = spark.range(first, first + 200, 1, 2).selectExpr("id", "concat('n', id) as name")
    frame.write.mode("append").parquet(str(output))


def test_a_job_indexes_what_it_wrote(
    spark_session: SparkSession, metastore: RunningMetastore, tmp_path: Path
) -> None:
    root = tmp_path / "events"
    for day in (1, 2):
        write(spark_session, day * 1000, root / f"day={day}")
    cache = str(tmp_path / "cache")
    with bridge.connect(metastore_uri=metastore.uri, planner_cache_dir=cache) as session:
        events = session.table("api.events")
        report = events.sync(str(root), index="local")
        assert not report.problems
        assert "api" in session.schemas()
        assert session.tables("api") == ["events"]
        assert events.scan("id = 1150").files().num_rows == 1

        # The job's own part: files, then their entries; the partition is not registered yet.
        write(spark_session, 3000, root / "day=3")
        said: list[str] = []
        made = events.index.add([root / "day=3"], spark=spark_session, say=said.append)
        assert (made.files, made.read, made.failed, said) == (2, 2, [], [])
        assert spark_session.range(1).count() == 1  # the caller's session is still his

        events.sync()
        scan = events.scan("id BETWEEN 3150 AND 3160")
        assert scan.files()["partition"].to_pylist() == [{"day": 3}]
        assert sorted(scan.to_arrow()["id"].to_pylist()) == list(range(3150, 3161))
        assert events.scan("id = 7").files().num_rows == 0
        assert events.index.refresh().read == 0  # the entries are those of a build
        assert events.scan("id = 7", freshness="snapshot").to_arrow().num_rows == 0
        assert events.scan(freshness="snapshot").to_arrow().num_rows == 600
        with pytest.raises(bridge.BridgeError) as caught:
            events.index.add([tmp_path / "elsewhere" / "f.parquet"], spark=spark_session)
        assert caught.value.code == "INVALID_REQUEST"
        rebuilt = events.index.build(spark=spark_session, full=True)
        assert (rebuilt.files, rebuilt.read) == (6, 6)
