"""Trino over a store with latency and faults: versitygw behind proxies that count, delay and fail.

Trino's own hive connector with its native S3 reads the same tables.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import parse_hive_type
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import create_table, register_table
from bridge.servers.embedded_metastore import start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import LOOPBACK
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.sync.job import SyncJob, run_job
from bridge.sync.request import SyncRequest
from bridge.table.model import CatalogTable, Column, TableName
from bridge.trino.server import TrinoSpec, start_trino
from tests.benchmark import hudi_data
from tests.engines.stack import LIGHT_JVM, ask
from tests.support.format_files import avro_bytes, orc_bytes, text_bytes
from tests.support.s3_metastore import s3_metastore
from tests.support.servers.stock_trino import stock_plugins
from tests.support.slow_store import Behaviour, Seen, SlowStore
from tests.support.versitygw import BUCKET, versitygw_or_skip

GROUPED = "SELECT kind, count(*), sum(id), max(c1), min(c5) FROM lake.{} GROUP BY kind ORDER BY 1"
SMALL_FILES, SMALL_ROWS = 600, 20
TABLES = ("small", "large", "mixed", "changing", "rewritten")
FROZEN = ("changing", "rewritten")
"""Tables whose plans name the files that the index knows."""
DESCRIBED = {
    "orc_small": "orc",
    "orc_large": "orc",
    "orc_stripes": "orc",
    "text_small": "text",
    "text_large": "text",
    "avro_large": "avro",
}
"""Tables of other formats, and the formats."""
SLICES = "slices"
"""A merge-on-read table of Hudi, of `FEW_SLICES` slices in as many partitions."""
FEW_SLICES = 24
HUDI = "hudi"
"""A directory for Hudi tables that a test makes."""
PUBLISHED = "published"
"""A directory for a table that a test makes."""
FEW_FILES = 80
IMPATIENT = "impatient"
"""A catalog of the connector that waits for an answer of the store for a second only."""
NO_ANSWERS = {"metadata_answers_enabled": "false"}
SLOW = Behaviour(latency=0.03)
DRIVERS = 4
"""Threads of Trino that read splits on two cores: the requests in flight without read-ahead."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Trino over the tables of a store.

    Attributes:
        proxy: before the store, for Trino alone.
        planners: before the store, for the planner alone.
        settings: by which commands reach the store and the metastore.
        objects: the directory in which the store keeps the bucket's objects.
    """

    trino_port: int
    proxy: SlowStore
    planners: SlowStore
    storage: Storage
    settings: dict[str, str]
    objects: Path

    def query(self, sql: str, catalog: str = "bridge") -> list[list[object]]:
        session = {} if catalog == "hive" else NO_ANSWERS
        return ask(self.trino_port, sql, catalog, session)

    def seen(self, sql: str, catalog: str = "bridge") -> tuple[list[list[object]], Seen]:
        """The rows of a query and the requests that it made."""
        self.proxy.take()
        rows = self.query(sql, catalog)
        return rows, self.proxy.take()


def content(first: int, rows: int) -> pa.Table:
    """Rows with ids from ``first`` on; the other columns depend on it alone."""
    noise = np.random.default_rng(first)
    columns = {f"c{i}": noise.integers(0, 2**62, rows) for i in range(6)}
    group = pa.array(np.arange(rows) % 5).cast(pa.string())
    return pa.table({"id": np.arange(rows) + first, "kind": group, **columns})


def _put(storage: Storage, name: str, table: pa.Table, compression: str = "snappy") -> None:
    buffer = io.BytesIO()
    options = {"row_group_size": 50_000, "use_dictionary": False, "compression": compression}
    pq.write_table(table, buffer, **options)
    storage.put(f"s3://{BUCKET}/{name}", buffer.getvalue())


def put_plain(storage: Storage, number: int, first: int) -> None:
    """A file of the table ``rewritten`` with ids from ``first`` on; all have one size."""
    _put(storage, f"rewritten/{number}.parquet", content(first, SMALL_ROWS), "none")


def _fill_described(storage: Storage) -> None:
    def put(name: str, data: bytes) -> None:
        storage.put(f"s3://{BUCKET}/{name}", data)

    for i in range(FEW_FILES):
        few = content(i * 1_000, SMALL_ROWS)
        put(f"orc_small/{i:02d}.orc", orc_bytes(few))
        put(f"text_small/{i:02d}.txt", text_bytes(few))
    large = content(0, 300_000)
    put("orc_large/0.orc", orc_bytes(large))
    put("orc_stripes/0.orc", orc_bytes(large, 1 << 20))
    put("text_large/0.txt", text_bytes(large.slice(0, 200_000)))
    put("avro_large/0.avro", avro_bytes(large))


def _register_described(uri: str) -> None:
    columns = (("id", "bigint"), ("kind", "string"), *((f"c{i}", "bigint") for i in range(6)))
    described = tuple(Column(name, parse_hive_type(type)) for name, type in columns)
    with MetastoreClient(uri) as client:
        for name, format in DESCRIBED.items():
            full = TableName("lake", name)
            table = CatalogTable(full, described, (), f"s3://{BUCKET}/{name}", format)
            register_table(client, full, table, [])


def copy_directory(storage: Storage, directory: Path, uri: str) -> None:
    """Puts all files of a directory below a URI."""
    for path in directory.rglob("*"):
        if path.is_file():
            storage.put(f"{uri}/{path.relative_to(directory)}", path.read_bytes())


def _fill_slices(storage: Storage, scratch: Path) -> None:
    hudi_data.write_mor(scratch / SLICES, FEW_SLICES)
    copy_directory(storage, scratch / SLICES, f"s3://{BUCKET}/{SLICES}")


def _register_slices(settings: Mapping[str, str]) -> None:
    job = SyncJob(SyncRequest(TableName("lake", SLICES), f"s3://{BUCKET}/{SLICES}"))
    run_job(_config(settings), job, progress=lambda done, total: None, say=lambda text: None)


def _fill(storage: Storage) -> None:
    _fill_described(storage)
    for i in range(SMALL_FILES):
        _put(storage, f"small/{i:04d}.parquet", content(i * 1_000, SMALL_ROWS))
    for i in range(2):
        _put(storage, f"large/{i}.parquet", content(i * 1_000_000, 300_000))
    # with the planner's parallelism of 4, a split takes a small file and the large one after it
    for i in range(8):
        _put(storage, f"mixed/{i}.parquet", content(i * 1_000_000, 90_000 if i % 2 else 50_000))
    for i in range(40):
        _put(storage, f"changing/{i:02d}.parquet", content(i * 1_000, SMALL_ROWS))
    for i in range(3):
        put_plain(storage, i, (i + 1) * 1_000)


@contextmanager
def running_stores(plugin_476: Path, directory: Path) -> Iterator[Stores]:
    """The stores, with requests that take `SLOW`'s time."""
    gateway = versitygw_or_skip(directory / "s3")
    storage = open_storage(options=gateway.options)
    with (
        gateway.server,
        SlowStore(gateway.server.port) as proxy,
        SlowStore(gateway.server.port) as planners,
        pytest.MonkeyPatch.context() as m,
    ):
        for name, value in gateway.environment.items():
            m.setenv(name, value)
        _fill(storage)
        _fill_slices(storage, directory)
        time.sleep(1.1)  # an index takes a file for settled a second after it was written
        with start_embedded_metastore(
            s3_metastore(
                directory / "metastore", BUCKET, (*TABLES, *DESCRIBED, SLICES, HUDI, PUBLISHED)
            )
        ) as server:
            uri = f"thrift://{LOOPBACK}:{server.port}"
            settings = {
                "metastore.uri": uri,
                "storage.endpoint": gateway.options["endpoint"],
                "storage.region": "us-east-1",
                "storage.allow_http": "true",
            }
            _register(settings)
            _register_described(uri)
            _register_slices(settings)
            environment = {
                "SKIPBRIDGE_CACHE": str(directory / "cache"),
                "SKIPBRIDGE_STORAGE_ENDPOINT": gateway.through(planners.port)["endpoint"],
                "SKIPBRIDGE_STORAGE_REGION": "us-east-1",
                "SKIPBRIDGE_STORAGE_ALLOW_HTTP": "true",
                "SKIPBRIDGE_STORAGE_TIMEOUT": "2s",
                **gateway.environment,
            }
            with start_planner(directory / "planner", uri, environment=environment) as planner:
                s3 = {
                    "s3.endpoint": f"http://{LOOPBACK}:{proxy.port}",
                    "s3.region": "us-east-1",
                    "s3.path-style-access": "true",
                    "s3.aws-access-key": gateway.options["access_key_id"],
                    "s3.aws-secret-key": gateway.options["secret_access_key"],
                }
                ours = {
                    "connector.name": "skipbridge",
                    "skipbridge.planner": f"{LOOPBACK}:{planner.port}",
                    "fs.native-s3.enabled": "true",
                    **s3,
                }
                stock = {
                    "connector.name": "hive",
                    "hive.metastore.uri": uri,
                    "fs.native-s3.enabled": "true",
                    **s3,
                }
                spec = TrinoSpec(
                    directory=directory / "trino",
                    catalogs={
                        "bridge": ours,
                        IMPATIENT: {**ours, "s3.socket-read-timeout": "1s"},
                        "hive": stock,
                    },
                    plugins={"skipbridge": plugin_476, **stock_plugins("hive")},
                    port=0,
                    heap="1200m",
                    jvm_options=LIGHT_JVM,
                    properties={"task.max-worker-threads": str(DRIVERS)},
                )
                with start_trino(spec) as trino:
                    proxy.behave(SLOW)
                    objects = directory / "s3" / "objects" / BUCKET
                    yield Stores(trino.port, proxy, planners, storage, settings, objects)


def _config(settings: Mapping[str, str]) -> Config:
    return Config({key: Setting(value, "test") for key, value in settings.items()})


def _register(settings: Mapping[str, str]) -> None:
    config = _config(settings)
    for table in TABLES:
        create_table(
            config,
            f"lake.{table}",
            f"s3://{BUCKET}/{table}",
            dry_run=False,
            progress=lambda done, total: None,
        )
        index_table(
            config,
            f"lake.{table}",
            local=True,
            progress=lambda done, total: None,
            say=lambda text: None,
        )
    with MetastoreClient(settings["metastore.uri"]) as client:
        for name in FROZEN:
            frozen = client.get_table("lake", name)
            frozen.parameters["skipbridge.freshness"] = "snapshot"
            client.alter_table("lake", name, frozen)
