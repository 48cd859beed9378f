"""A load on a real Spark: executors read each file once for all indexes and views."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest

import bridge
from bridge.kernel.config import Config, Setting
from bridge.runtime.spark_session import open_session
from bridge.segments.commands import add, indexes, tables, views
from bridge.storage.routed import open_storage
from tests.storage.conftest import BUCKET
from tests.support.slow_store import SlowStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.full, pytest.mark.engine]
FILES = 40


@pytest.fixture
def session(
    s3_options: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[SparkSession]:
    """A session whose executors have the store's keys in their environment."""
    pytest.importorskip("pyspark")
    keys = {
        f"AWS_{name.upper()}": s3_options[name] for name in ("access_key_id", "secret_access_key")
    }
    for name, key in keys.items():
        monkeypatch.setenv(name, key)
    # The JVM of a session before, whose environment has no keys, is used again.
    settings = {f"spark.executorEnv.{name}": key for name, key in keys.items()}
    session = open_session("local[2]", name="skipbridge-load", settings=settings)
    yield session
    session.stop()


def test_executors_read_each_file_once_for_all_indexes_and_views(
    session: SparkSession, s3_options: Mapping[str, str]
) -> None:
    place = f"s3://{BUCKET}/load-on-spark"
    with SlowStore(int(s3_options["endpoint"].rpartition(":")[2])) as proxy:
        options = {**s3_options, "endpoint": f"http://127.0.0.1:{proxy.port}"}
        given = {n: options[n] for n in ("endpoint", "region", "allow_http")}
        config = Config({f"storage.{n}": Setting(v, "test") for n, v in given.items()})
        storage, table = open_storage(options=options), f"{place}/t"
        for i in range(FILES):
            lines = [f"{row},{'ab'[row % 2]},{row / 4}" for row in range(i, i + 50)]
            storage.put(f"{place}/facts/{i}.csv", "\n".join(lines).encode())
        columns = [("id", "bigint"), ("name", "string"), ("price", "double")]
        tables.create_table(config, table, format="csv", columns=columns)
        indexes.create_index(config, table, name="m", kind="minmax", local=True)
        indexes.create_index(
            config, table, name="b", kind="bloomfilter", columns=["id"], local=True
        )
        for name, held in (("hot", ["id", "name"]), ("prices", ["price"])):
            views.create_view(config, table, name=name, columns=held, sort_by=held[:1], local=True)
        proxy.take()
        report = add.add_segment(config, table, paths=[f"{place}/facts"], spark=session)
        seen = proxy.take()
        assert report["indexed"] == FILES and report["views"] == ["hot", "prices"]
        read = {key: n for (m, key), n in seen.requests.items() if m == "GET" and "/facts/" in key}
        assert len(read) == FILES and set(read.values()) == {1}, read
        settings = {f"storage_{name}": value for name, value in given.items()}
        with bridge.connect(**settings) as connection:  # type: ignore[arg-type]
            scan = connection.table(table).scan("id = 44", ["id", "name"])
            stages = {s["index"]: s for s in scan.explain().to_dict()["stages"]}
            assert stages["view(hot)"]["total"] == FILES
            assert scan.to_arrow().num_rows == 40
