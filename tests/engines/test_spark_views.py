"""Views built by a real Spark: over files that Spark wrote, the rows that threads write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import bridge
from bridge.config import Config, Setting
from bridge.jobs.segments import add, indexes, tables, views
from bridge.spark.session import open_session
from bridge.storage.routed import open_storage
from tests.support.exact_rows import exact_rows
from tests.support.slow_store import SlowStore
from tests.support.versitygw import BUCKET, versitygw_or_skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engine
SQL = """
select id, concat('n', pmod(hash(id), 9)) as name, cast(pmod(id, 5) * 1.5 as decimal(10, 2)) as m,
       date_add(date '2024-01-01', cast(pmod(hash(id), 90) as int)) as day,
       cast(timestamp_seconds(id) as timestamp_ntz) as at,
       if(id % 3 = 0, double('NaN'), -0.0D) as rate, array(id, null) as l,
       named_struct('x', id, 'y', map('k', 'v')) as s
from range(0, 400, 1, 4)
"""
COLUMNS = [
    ("id", "bigint"),
    ("name", "string"),
    ("m", "decimal(10,2)"),
    ("day", "date"),
    ("at", "timestamp"),
    ("rate", "double"),
    ("l", "array<bigint>"),
    ("s", "struct<x:bigint,y:map<string,string>>"),
]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    pytest.importorskip("pyspark")
    session = open_session("local[2]", name="skipbridge-views")
    yield session
    session.stop()


def test_spark_builds_what_threads_build(session: SparkSession, tmp_path: Path) -> None:
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    session.sql(SQL).write.parquet(str(tmp_path / "facts"))
    for path in (tmp_path / "facts").glob("*.parquet"):
        os.utime(path, (1.7e9, 1.7e9))
    config, table = Config(), str(tmp_path / "t")
    tables.create_table(config, table, format="parquet", columns=COLUMNS)
    for name, local in (("spark", False), ("threads", True)):
        views.create_view(
            config,
            table,
            name=name,
            columns=["*"],
            sort_by=["day", "id"],
            properties={"SORT_SCOPE": "GLOBAL_SORT"},
            deferred=True,
            local=local,
        )
    paths = [str(tmp_path / "facts")]
    add.add_segment(config, table, paths=paths, spark=session)
    views.rebuild_view(config, table, name="spark", spark=session)
    facts = bridge.connect().table(table).scan(pruning=False).to_arrow()
    assert len(facts) == 400
    for name in ("spark", "threads"):
        views.rebuild_view(config, table, name=name, local=True)
        for other in ("spark", "threads"):
            views.enable_view(config, table, name=other, enabled=other == name)
        scan = bridge.connect().table(table).scan()
        stages = {stage["index"] for stage in scan.explain().to_dict()["stages"]}
        assert f"view({name})" in stages
        assert exact_rows(scan.to_arrow()) == exact_rows(facts)
        days = scan.to_arrow()["day"].to_pylist()
        assert days == sorted(days)


def test_executors_read_each_file_once_for_all_indexes_and_views(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 40
    gateway = versitygw_or_skip(tmp_path / "store")
    with gateway.server, SlowStore(gateway.server.port) as proxy:
        for name, value in gateway.environment.items():
            monkeypatch.setenv(name, value)
        options = gateway.through(proxy.port)
        given = {n: options[n] for n in ("endpoint", "region", "allow_http")}
        config = Config({f"storage.{n}": Setting(v, "test") for n, v in given.items()})
        storage, table = open_storage(options=options), f"s3://{BUCKET}/t"
        for i in range(count):
            lines = [f"{row},{'ab'[row % 2]},{row / 4}" for row in range(i, i + 50)]
            storage.put(f"s3://{BUCKET}/facts/{i}.csv", "\n".join(lines).encode())
        columns = [("id", "bigint"), ("name", "string"), ("price", "double")]
        tables.create_table(config, table, format="csv", columns=columns)
        indexes.create_index(config, table, name="m", kind="minmax", spark=session)
        indexes.create_index(
            config, table, name="b", kind="bloomfilter", columns=["id"], spark=session
        )
        for name, held in (("hot", ["id", "name"]), ("prices", ["price"])):
            views.create_view(
                config, table, name=name, columns=held, sort_by=held[:1], spark=session
            )
        proxy.take()
        report = add.add_segment(config, table, paths=[f"s3://{BUCKET}/facts"], spark=session)
        seen = proxy.take()
        assert report["indexed"] == count and report["views"] == ["hot", "prices"]
        facts = {key: n for (m, key), n in seen.requests.items() if m == "GET" and "/facts/" in key}
        assert len(facts) == count and set(facts.values()) == {1}, facts
        with bridge.connect(**{f"storage_{n}": v for n, v in given.items()}) as connection:
            scan = connection.table(table).scan("id = 44", ["id", "name"])
            stages = {s["index"]: s for s in scan.explain().to_dict()["stages"]}
            assert stages["view(hot)"]["total"] == count
            assert scan.to_arrow().num_rows == 40
