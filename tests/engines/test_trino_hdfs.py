"""Tables on a real HDFS: planner, index and Trino read them, as the hive connector does."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import create_table, register_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import LOOPBACK, choose_port
from bridge.storage.routed import open_storage
from bridge.table.model import CatalogTable, Column, TableName
from bridge.trino.server import TrinoSpec, start_trino
from tests.engines.everything import Everything
from tests.engines.published_story import tell
from tests.engines.stack import LIGHT_JVM, Stack
from tests.support.built import built_plugin
from tests.support.format_files import WRITERS
from tests.support.hdfs import start_hdfs
from tests.support.servers.stock_trino import stock_plugins

pytestmark = pytest.mark.full

SMALL, LARGE = 1_000, 800_000
HALF_LARGE = 300_000
ID, NOISE = Column("id", BIGINT), Column("noise", BIGINT)
NAMES = ("day=1/a", "day=1/b +%20ü", "day=2/c", "day=2/large")
SETTLED = 2.5  # seconds after which an index trusts a file's time


@dataclass(frozen=True, slots=True)
class Lake:
    """A name node, with a metastore whose tables lie there."""

    uri: str
    metastore_uri: str

    def put(self, name: str, table: pa.Table) -> None:
        sink = io.BytesIO()
        pq.write_table(table, sink, row_group_size=50_000, use_dictionary=False)
        open_storage().put(f"{self.uri}/{name}", sink.getvalue())

    def describe(self, format: str, tables: list[pa.Table]) -> None:
        """A table of the format's name, with a file for each of these."""
        for number, content in enumerate(tables):
            name = f"{format}/f +%20ü{number}.{format}"
            open_storage().put(f"{self.uri}/{name}", WRITERS[format](content))
        name = TableName("lake", format)
        described = CatalogTable(name, (ID, NOISE), (), f"{self.uri}/{format}", format)
        with MetastoreClient(self.metastore_uri) as client:
            client.create_database(name.schema)
            register_table(client, name, described, [])

    def config(self) -> Config:
        return Config({"metastore.uri": Setting(self.metastore_uri, "test")})

    def register(self, name: str) -> None:
        where = f"{self.uri}/{name}"
        create_table(
            self.config(), f"lake.{name}", where, dry_run=False, progress=lambda done, total: None
        )
        report = index_table(
            self.config(),
            f"lake.{name}",
            local=True,
            progress=lambda done, total: None,
            say=lambda text: None,
        )
        assert not report["failed"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    directory = tmp_path_factory.mktemp("trino-hdfs")
    cluster = start_hdfs(directory / "hdfs")
    spec = MetastoreSpec(directory, port=0, in_memory=True)
    with cluster.server, start_embedded_metastore(spec) as metastore:
        made = Lake(cluster.uri, f"thrift://{LOOPBACK}:{metastore.port}")
        noise = np.random.default_rng(7)
        for n, name in enumerate(NAMES):
            rows = LARGE if name.endswith("large") else SMALL
            ids = np.arange(rows) + n * SMALL
            content = pa.table({"id": ids, "noise": noise.integers(0, 2**62, rows)})
            made.put(f"t/{name}.parquet", content)
        for format in WRITERS:
            contents = [
                pa.table({"id": np.arange(n), "noise": noise.integers(0, 2**62, n)})
                for n in (SMALL, 0, HALF_LARGE)
            ]
            made.describe(format, contents)
        made.put("frozen/f.parquet", pa.table({"id": list(range(10))}))
        time.sleep(SETTLED)
        made.register("t")
        made.register("frozen")
        yield made


def _started(lake: Lake, plugin: Path, version: str, directory: Path) -> Iterator[Stack]:
    port = choose_port(0, "planner")
    hdfs = {"fs.hadoop.enabled": "true", "hive.dfs-timeout": "30s"}
    bare = {"connector.name": "skipbridge", "skipbridge.planner": f"{LOOPBACK}:{port}"}
    catalogs = {"bridge": {**bare, **hdfs}, "bare": bare}
    plugins = {"skipbridge": plugin}
    if version == "476":
        plugins |= stock_plugins("hive")
        catalogs["hive"] = {
            "connector.name": "hive",
            "hive.metastore.uri": lake.metastore_uri,
            **hdfs,
        }
    spec = TrinoSpec(
        directory=directory / "trino",
        catalogs=catalogs,
        plugins=plugins,
        version=version,
        port=0,
        heap="1200m",
        jvm_options=LIGHT_JVM,
    )
    cache = {"SKIPBRIDGE_CACHE": str(directory / "cache")}
    planner = start_planner(directory, lake.metastore_uri, port=port, environment=cache)
    with planner, start_trino(spec) as server:
        yield Stack(directory, lake.metastore_uri, port, server.port, cast(Everything, None))


@pytest.fixture(scope="module")
def stack(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Trino 476, the connector built from the server's jars, Hadoop's among them."""
    directory = tmp_path_factory.mktemp("stack-hdfs")
    server = stock_plugins("hive")["hive"].parent.parent
    plugin = built_plugin("476", ("hdfs",), server)
    yield from _started(lake, plugin, "476", directory)


@pytest.fixture(scope="module")
def stack_483(lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Trino 483, the connector and Hadoop's jars from Maven."""
    directory = tmp_path_factory.mktemp("stack-hdfs-483")
    plugin = built_plugin("483", ("hdfs",))
    yield from _started(lake, plugin, "483", directory)


QUERIES = (
    "SELECT count(noise), count(DISTINCT day), max(id), sum(id) FROM {}.lake.t",
    "SELECT day, count(*), sum(noise % 1000) FROM {}.lake.t WHERE id < 2500 GROUP BY day",
    "SELECT id, noise FROM {}.lake.t WHERE id BETWEEN 1500 AND 1502",
    "SELECT sum(id), count(noise) FROM {}.lake.t WHERE id > 790000",
    "SELECT id FROM {}.lake.t ORDER BY id DESC LIMIT 3",
)


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_of_the_hive_connector(stack: Stack, sql: str) -> None:
    found = sorted(stack.query(sql.format("bridge")))
    assert found == sorted(stack.query(sql.format("hive")))
    assert found


@pytest.mark.parametrize("format", WRITERS)
def test_other_formats_are_read_as_the_hive_connector_reads_them(stack: Stack, format: str) -> None:
    for sql in (
        'SELECT count(*), sum(id), sum(noise % 1000), count(DISTINCT "$path") FROM {}.lake.{}',
        "SELECT id, noise FROM {}.lake.{} WHERE id BETWEEN 990 AND 1003",
    ):
        found = sorted(stack.query(sql.format("bridge", format)))
        assert found == sorted(stack.query(sql.format("hive", format)))
        assert found


def test_pruning_happened(stack: Stack) -> None:
    assert stack.kept_files("SELECT noise FROM lake.t WHERE id = 1500") == 1
    assert stack.kept_files("SELECT noise FROM lake.t WHERE id = 700000") == 1


@pytest.mark.nightly
def test_another_release(stack_483: Stack) -> None:
    sql = "SELECT count(noise), count(DISTINCT day), max(id) FROM lake.t"
    assert stack_483.query(sql) == [[3 * SMALL + LARGE, 2, 3 * SMALL + LARGE - 1]]
    assert stack_483.kept_files("SELECT noise FROM lake.t WHERE id = 1500") == 1
    ids = sum(range(SMALL)) + sum(range(HALF_LARGE))
    for format in WRITERS:
        found = stack_483.query(f"SELECT count(noise), sum(id) FROM lake.{format}")
        assert found == [[SMALL + HALF_LARGE, ids]], format


def test_the_story_of_a_published_table(stack: Stack, lake: Lake) -> None:
    def stock() -> tuple[int, int]:
        ((count, total),) = stack.query("SELECT count(*), sum(x) FROM hive.lake.published")
        return count, total

    settings = {"metastore.uri": lake.metastore_uri}
    tell(settings, open_storage(), "lake.published", f"{lake.uri}/published", stock)


def test_a_catalog_without_hdfs_says_so(stack: Stack) -> None:
    with pytest.raises(Exception, match=r"hdfs://.*does not read HDFS.*fs\.hadoop\.enabled=true"):
        stack.query("SELECT sum(id) FROM bare.lake.t")


def test_changed_and_deleted_files_are_errors(stack: Stack, lake: Lake) -> None:
    """With a frozen file set the planner sends the old size and time; the reader must notice."""
    sql = "SELECT sum(id) FROM lake.frozen"
    assert stack.query(sql) == [[45]]
    # listed anew, a rewritten file of the same size is read as it is now
    name = "frozen/f.parquet"
    lake.put(name, pa.table({"id": list(range(10, 20))}))
    assert stack.query(sql) == [[145]]
    lake.put(name, pa.table({"id": list(range(10))}))
    time.sleep(SETTLED)
    index_table(
        lake.config(),
        "lake.frozen",
        local=True,
        progress=lambda done, total: None,
        say=lambda text: None,
    )
    with MetastoreClient(lake.metastore_uri) as client:
        definition = client.get_table("lake", "frozen")
        definition.parameters["skipbridge.freshness"] = "snapshot"
        client.alter_table("lake", "frozen", definition)
    time.sleep(1.2)  # the planner takes a table's definition as known for a second
    assert stack.query(sql) == [[45]]
    for content in (list(range(10, 20)), list(range(11))):
        lake.put(name, pa.table({"id": content}))
        with pytest.raises(Exception, match=rf"{lake.uri}/{name} changed since it was planned"):
            stack.query(sql)
    open_storage().delete(f"{lake.uri}/{name}")
    with pytest.raises(Exception, match=rf"{lake.uri}/{name} is gone"):
        stack.query(sql)
