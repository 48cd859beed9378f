"""Tables on Azurite: planner, index and Trino read them, as the hive connector does.

Trino's client finds Azurite under the names of Azure's own cloud, over TLS.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
from bridge.servers.process import LOOPBACK
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.table.model import CatalogTable, Column, TableName
from bridge.trino.server import TrinoSpec, start_trino
from tests.engines.stack import LIGHT_JVM, ask
from tests.support.azure_cloud import azure_cloud
from tests.support.azurite import KEY, URI, azurite_or_skip
from tests.support.built import built_plugin
from tests.support.s3_metastore import store_metastore
from tests.support.servers.stock_trino import stock_plugins
from tests.support.slow_store import SlowStore

pytestmark = pytest.mark.nightly
SMALL, LARGE = 1_000, 600_000
NAMES = ("day=1/a", "day=1/b +%20ü", "day=2/c", "day=2/large")
TABLES = ("t", "live", "frozen")
NOWHERE = URI.replace("://lake@", "://elsewhere@")
"""A container that does not exist."""
WRONG_KEY = "aGlkZGVu"
SETTLED = 2.1  # seconds after which an index trusts a file's time
QUERIES = (
    "SELECT count(noise), count(DISTINCT day), max(id), sum(id) FROM lake.t",
    "SELECT day, count(*), sum(noise % 1000) FROM lake.t WHERE id < 2500 GROUP BY day",
    "SELECT id, noise FROM lake.t WHERE id BETWEEN 1500 AND 1502",
    "SELECT sum(id), count(noise) FROM lake.t WHERE id > 590000",
    "SELECT id FROM lake.t ORDER BY id DESC LIMIT 3",
)


@dataclass(frozen=True, slots=True)
class World:
    """The tables, and a planner over them.

    Attributes:
        proxy: before the store, for Trino alone.
        jvm_options: with which Trino finds the store.
    """

    proxy: SlowStore
    storage: Storage
    config: Config
    planner: str
    jvm_options: tuple[str, ...]

    def put(self, name: str, ids: Sequence[int]) -> None:
        _put(self.storage, name, pa.table({"id": ids}))


@dataclass(frozen=True, slots=True)
class Lake:
    """Trino over the tables."""

    world: World
    port: int

    def rows(self, sql: str, catalog: str = "bridge") -> list[Any]:
        return sorted(ask(self.port, sql, catalog))

    def read(self, sql: str, catalog: str = "bridge") -> set[str]:
        """The files that a query reads."""
        self.world.proxy.take()
        assert self.rows(sql, catalog)
        seen = self.world.proxy.take()
        return {key for verb, key in seen.requests if (verb, key[:2]) == ("GET", "t/")}


def _put(storage: Storage, name: str, table: pa.Table) -> None:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=50_000, use_dictionary=False)
    storage.put(f"{URI}/{name}.parquet", sink.getvalue())


def _fill(storage: Storage) -> None:
    noise = np.random.default_rng(5)
    for n, name in enumerate(NAMES):
        rows = LARGE if name.endswith("large") else SMALL
        numbers = noise.integers(0, 2**62, rows)
        _put(storage, f"t/{name}", pa.table({"id": np.arange(rows) + n * SMALL, "noise": numbers}))
    for table in ("live", "frozen"):
        for n in range(3):
            _put(storage, f"{table}/{n}", pa.table({"id": range(n * 10, n * 10 + 10)}))
    time.sleep(SETTLED)


def _index(config: Config, table: str) -> dict[str, Any]:
    report = index_table(config, f"lake.{table}", local=True, progress=_quiet, say=_quiet)
    assert not report["failed"], report
    return report


def _quiet(*_: object) -> None:
    pass


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("azure")
    with ExitStack() as stack:
        server = azurite_or_skip(directory / "azurite")
        stack.enter_context(server.server)
        proxy = stack.enter_context(SlowStore(server.server.port))
        jvm_options = stack.enter_context(azure_cloud(directory, proxy.port))
        storage = open_storage(options=dict(server.options))
        _fill(storage)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        environment = {k.upper(): v for k, v in server.options.items() if k != "allow_http"}
        for name, value in environment.items():
            patch.setenv(name, value)
        metastore = stack.enter_context(start_embedded_metastore(_metastore(directory / "ms")))
        uri = f"thrift://{LOOPBACK}:{metastore.port}"
        settings = {"metastore.uri": uri, "storage.allow_http": "true"}
        config = Config({key: Setting(value, "test") for key, value in settings.items()})
        _register(config)
        own = {
            "SKIPBRIDGE_CACHE": str(directory / "cache"),
            "SKIPBRIDGE_STORAGE_ALLOW_HTTP": "true",
        }
        planner = stack.enter_context(
            start_planner(directory / "planner", uri, environment={**own, **environment})
        )
        yield World(proxy, storage, config, f"{LOOPBACK}:{planner.port}", jvm_options)


def _metastore(directory: Path) -> MetastoreSpec:
    spec = store_metastore(directory, {"abfss": URI.partition("://")[2]}, TABLES)
    nowhere = f"fs.viewfs.mounttable.{NOWHERE.partition('://')[2]}.link./t"
    there = {nowhere: (directory / "bucket" / "t").as_uri()}
    return replace(spec, properties={**(spec.properties or {}), **there})


def _register(config: Config) -> None:
    for table in TABLES:
        create_table(config, f"lake.{table}", f"{URI}/{table}", dry_run=False, progress=_quiet)
        _index(config, table)
    with MetastoreClient(config.text("metastore.uri")) as client:
        frozen = client.get_table("lake", "frozen")
        frozen.parameters["skipbridge.freshness"] = "snapshot"
        client.alter_table("lake", "frozen", frozen)
        name = TableName("lake", "nowhere")
        like = CatalogTable(name, (Column("id", BIGINT),), (), f"{NOWHERE}/t", "parquet")
        register_table(client, name, like, [])


@contextmanager
def _trino(world: World, plugin: Path, version: str, directory: Path) -> Iterator[Lake]:
    azure = {
        "fs.native-azure.enabled": "true",
        "azure.auth-type": "ACCESS_KEY",
        "azure.access-key": KEY,
    }
    bare = {"connector.name": "skipbridge", "skipbridge.planner": world.planner}
    catalogs = {
        "bridge": {**bare, **azure},
        "bare": bare,
        "stranger": {**bare, **azure, "azure.access-key": WRONG_KEY},
    }
    plugins = {"skipbridge": plugin}
    if version == "476":
        uri = world.config.text("metastore.uri")
        catalogs["hive"] = {"connector.name": "hive", "hive.metastore.uri": uri, **azure}
        plugins |= stock_plugins("hive")
    spec = TrinoSpec(
        directory,
        catalogs=catalogs,
        plugins=plugins,
        version=version,
        port=0,
        heap="1200m",
        jvm_options=(*LIGHT_JVM, *world.jvm_options),
    )
    with start_trino(spec) as server:
        yield Lake(world, server.port)


@pytest.fixture(scope="module")
def lake(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Trino 476, the connector built from the server's jars, beside its hive connector."""
    directory = tmp_path_factory.mktemp("trino-azure")
    server = stock_plugins("hive")["hive"].parent.parent
    plugin = built_plugin("476", ("azure",), server)
    with _trino(world, plugin, "476", directory / "trino") as made:
        yield made


@pytest.fixture(scope="module")
def lake_483(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Trino 483, the connector and Azure's client from Maven."""
    directory = tmp_path_factory.mktemp("trino-azure-483")
    plugin = built_plugin("483", ("azure",))
    with _trino(world, plugin, "483", directory / "trino") as made:
        yield made


@pytest.mark.parametrize("sql", QUERIES)
def test_rows_are_those_of_the_hive_connector(lake: Lake, sql: str) -> None:
    found = lake.rows(sql)
    assert found == lake.rows(sql, "hive")
    assert found


def test_only_the_file_with_the_row_is_read(lake: Lake) -> None:
    for number, file in ((500, NAMES[0]), (1500, NAMES[1]), (500_000, NAMES[3])):
        sql = f"SELECT noise FROM lake.t WHERE id = {number}"
        assert lake.read(sql) == {f"t/{file}.parquet"}
        assert len(lake.read(sql, "hive")) == len(NAMES)  # to see what is in them


def test_changed_and_deleted_files(lake: Lake) -> None:
    """Listed anew, a file is read as it is now, and its entry in the index is not used."""
    sql = "SELECT id FROM lake.live WHERE id >= 20"
    before = [[n] for n in range(20, 30)]
    assert lake.rows(sql) == before
    lake.world.put("live/1", range(50, 60))  # as large as before
    assert lake.rows(sql) == lake.rows(sql, "hive") == before + [[n] for n in range(50, 60)]
    lake.world.put("live/new", [99])
    lake.world.storage.delete(f"{URI}/live/2.parquet")
    assert lake.rows(sql) == lake.rows(sql, "hive") == [[n] for n in (*range(50, 60), 99)]
    time.sleep(SETTLED)
    _index(lake.world.config, "live")
    assert lake.rows(sql) == [[n] for n in (*range(50, 60), 99)]


def test_changed_and_deleted_files_of_a_frozen_file_set_are_errors(lake: Lake) -> None:
    sql = "SELECT id FROM lake.frozen WHERE id < 10"
    assert lake.rows(sql) == [[n] for n in range(10)]
    for ids in (range(10, 20), range(11)):  # one as large as before
        lake.world.put("frozen/0", ids)
        with pytest.raises(Exception, match=rf"FILE_CHANGED.*{URI}/frozen/0"):
            lake.rows(sql)
    lake.world.storage.delete(f"{URI}/frozen/0.parquet")
    with pytest.raises(Exception, match=rf"FILE_CHANGED.*{URI}/frozen/0.parquet is gone"):
        lake.rows(sql)


def test_another_release(lake_483: Lake) -> None:
    everything = lake_483.rows("SELECT count(noise), count(DISTINCT day), max(id) FROM lake.t")
    assert everything == [[3 * SMALL + LARGE, 2, 3 * SMALL + LARGE - 1]]
    assert lake_483.read("SELECT noise FROM lake.t WHERE id = 1500") == {f"t/{NAMES[1]}.parquet"}


def test_a_catalog_without_azure_says_so(lake: Lake) -> None:
    asked = r"abfss://.*does not read Azure.*fs\.native-azure\.enabled=true"
    with pytest.raises(Exception, match=asked):
        lake.rows("SELECT sum(id) FROM lake.t", "bare")


def test_a_container_that_does_not_exist_is_one_clear_error(lake: Lake) -> None:
    with pytest.raises(Exception, match="there is no container elsewhere@"):
        lake.rows("SELECT sum(id) FROM lake.nowhere")


def test_a_wrong_key_is_one_clear_error(lake: Lake) -> None:
    asked = (
        rf"{URI}/t/.* cannot be read: Azure answers 403: AuthorizationFailure .*azure\.access-key"
    )
    with pytest.raises(Exception, match=asked) as caught:
        lake.rows("SELECT sum(id) FROM lake.t", "stranger")
    assert WRONG_KEY not in str(caught.value) and "StorageSharedKey" not in str(caught.value)
