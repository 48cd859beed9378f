"""Through the HTTP door on stores: Spark's S3FileIO and PyIceberg's on S3 with latency, HDFS."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting, variable_of
from bridge.runtime.create_table import create_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import free_port
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from tests.support.hdfs import start_hdfs
from tests.support.iceberg_spark import S3_FILE_IO, open_spark
from tests.support.s3_metastore import s3_metastore
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET, versitygw_or_skip

pytestmark = [pytest.mark.engine, pytest.mark.full]
_FILES = 60


def _fill(storage: Storage, root: str) -> None:
    """File i has the ids from 10 * i, in the partition of its last digit."""
    for i in range(_FILES):
        sink = io.BytesIO()
        pq.write_table(pa.table({"id": range(10 * i, 10 * i + 10)}), sink)
        storage.put(f"{root}/k={i % 10}/f{i:02d}.parquet", sink.getvalue())
    time.sleep(1.1)  # an index takes a file for settled a second after it was written


@contextmanager
def _door(scratch: Path, spec: MetastoreSpec, root: str, options: dict[str, str]) -> Iterator[str]:
    """A planner process over the table lake.t; the URL of its door."""
    with ExitStack() as stack:
        metastore = stack.enter_context(start_embedded_metastore(spec))
        uri, port = f"thrift://127.0.0.1:{metastore.port}", free_port()
        settings = {"metastore.uri": uri, "index.root": f"file://{scratch}/index", **options}
        config = Config({key: Setting(text, "test") for key, text in settings.items()})
        create_table(config, "lake.t", root, dry_run=False, progress=lambda done, total: None)
        index_table(
            config,
            "lake.t",
            local=True,
            progress=lambda done, total: None,
            say=lambda text: None,
        )
        settings |= {"planner.freshness": "snapshot"}
        environment = {variable_of(key): text for key, text in settings.items()}
        stack.enter_context(
            start_planner(scratch / "planner", uri, http_port=port, environment=environment)
        )
        yield f"http://127.0.0.1:{port}"


def test_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each client asks the store for shows which files it reads."""
    gateway = versitygw_or_skip(tmp_path / "s3")
    with gateway.server, SlowStore(gateway.server.port, Behaviour(latency=0.03)) as proxy:
        for name, value in gateway.environment.items():
            monkeypatch.setenv(name, value)
        root = f"s3://{BUCKET}/t"
        _fill(open_storage(options=gateway.options), root)
        options = {
            "storage.endpoint": gateway.options["endpoint"],
            "storage.region": "us-east-1",
            "storage.allow_http": "true",
        }
        client = {
            "s3.endpoint": f"http://127.0.0.1:{proxy.port}",
            "s3.access-key-id": gateway.options["access_key_id"],
            "s3.secret-access-key": gateway.options["secret_access_key"],
        }
        spec = s3_metastore(tmp_path / "metastore", BUCKET, ("t",))
        with _door(tmp_path, spec, root, options) as url:
            table = load_catalog("sb", type="rest", uri=url, **{"s3.region": "us-east-1"}, **client)
            flights = table.load_table("lake.t")
            proxy.take()
            found = flights.scan(row_filter="id >= 420 and id < 423").to_arrow()
            assert sorted(found["id"].to_pylist()) == [420, 421, 422]
            assert _files(proxy) == {"f42.parquet"}
            assert flights.scan().count() == 10 * _FILES
            with open_spark(tmp_path / "spark", jars=(S3_FILE_IO,)) as spark:
                catalog = spark.catalog(
                    url,
                    **client,
                    **{
                        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
                        "s3.path-style-access": "true",
                        "client.region": "us-east-1",
                    },
                )
                assert spark(f"SELECT count(*) FROM {catalog}.lake.t") == [[10 * _FILES]]
                proxy.take()
                sql = f"SELECT id, k FROM {catalog}.lake.t WHERE "
                assert sorted(spark(f"{sql} id BETWEEN 420 AND 422")) == [
                    [420, 2],
                    [421, 2],
                    [422, 2],
                ]
                assert _files(proxy) == {"f42.parquet"}
                assert len(spark(f"{sql} k = 7")) == 60
                assert len(_files(proxy)) == 6
                total = sum(range(10 * _FILES))
                assert spark(f"SELECT sum(id) FROM {catalog}.lake.t") == [[total]]


def _files(proxy: SlowStore) -> set[str]:
    return {key.rpartition("/")[2] for _, key in proxy.take().requests if "parquet" in key}


def test_hdfs(tmp_path: Path) -> None:
    """Through HadoopFileIO, which Iceberg takes where none is named."""
    cluster = start_hdfs(tmp_path / "hdfs")
    with cluster.server:
        root = f"{cluster.uri}/lake/t"
        _fill(open_storage(), root)
        spec = MetastoreSpec(tmp_path / "m", f"{cluster.uri}/databases", port=0, in_memory=True)
        with _door(tmp_path, spec, root, {}) as url, open_spark(tmp_path / "spark") as spark:
            table = f"{spark.catalog(url)}.lake.t"
            assert spark(f"SELECT count(*), sum(id) FROM {table} WHERE id >= 0") == [
                [10 * _FILES, sum(range(10 * _FILES))]
            ]
            assert spark(f"SELECT id FROM {table} WHERE id = 423 AND k = 2") == [[423]]
            files = f"SELECT count(DISTINCT _file) FROM {table} WHERE id BETWEEN 420 AND 431"
            assert spark(files) == [[2]]
