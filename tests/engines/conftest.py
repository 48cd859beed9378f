"""Real servers, each started once a session and only if a test asks for it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from bridge.hive.server import HiveSession
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.process import LOOPBACK, Server, choose_port
from bridge.table.model import TableName
from bridge.trino.server import TrinoSpec, start_trino
from tests.engines.catalogs import Catalogs, running_catalogs
from tests.engines.everything import Everything, write_everything
from tests.engines.stack import LIGHT_JVM, ZONE, Stack
from tests.engines.stock_readers import RunningSpark
from tests.engines.store_stack import Stores, running_stores
from tests.support.built import built_jar, built_plugin
from tests.support.servers.hiveserver2 import (
    HiveServer2Spec,
    start_hiveserver2,
    start_metastore_for_hiveserver2,
)
from tests.support.servers.stock_trino import stock_plugins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class RunningMetastore:
    """A metastore under test."""

    server: Server
    warehouse: Path

    @property
    def uri(self) -> str:
        return f"thrift://{LOOPBACK}:{self.server.port}"

    def client(self) -> MetastoreClient:
        return MetastoreClient(self.uri)


@dataclass(frozen=True, slots=True)
class RunningHiveServer2:
    """A HiveServer2 under test, beside its metastore; hooks' jar on its class path."""

    server: Server
    metastore: RunningMetastore
    _sessions: dict[frozenset[tuple[str, str]], HiveSession] = field(default_factory=dict)

    def query(self, sql: str, settings: Mapping[str, str] | None = None) -> list[tuple[Any, ...]]:
        """Runs one statement in a session with these settings.

        Sessions are kept: the first query of each waits seconds for its Tez.
        """
        key = frozenset((settings or {}).items())
        if key not in self._sessions:
            self._sessions[key] = HiveSession(f"{LOOPBACK}:{self.server.port}", settings=settings)
        return self._sessions[key].query(sql)

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()

    @property
    def log(self) -> str:
        return self.server.log.read_text("utf-8", errors="replace")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMetastore]:
    """Hive 2.3.10's metastore, out of PySpark's jars, its database in memory."""
    directory = tmp_path_factory.mktemp("metastore")
    spec = MetastoreSpec(directory, directory / "warehouse", port=0, in_memory=True)
    with start_embedded_metastore(spec) as server:
        yield RunningMetastore(server, directory / "warehouse")


@pytest.fixture(scope="session")
def metastore_401(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMetastore]:
    """Hive 4.0.1's metastore, out of Maven artifacts, its database in memory.

    With hive-exec on its class path, as in Hive's distribution: HiveServer2 uses it too.
    """
    directory = tmp_path_factory.mktemp("metastore-401")
    spec = MetastoreSpec(directory, directory / "warehouse", port=0, in_memory=True)
    with start_metastore_for_hiveserver2(spec) as server:
        yield RunningMetastore(server, directory / "warehouse")


@pytest.fixture(scope="module")
def own_spark(
    metastore_401: RunningMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningSpark]:
    """A Spark of the module's own: it has statements open while others are at work."""
    running = RunningSpark(metastore_401.uri, tmp_path_factory.mktemp("spark"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def spark_session() -> Iterator[SparkSession]:
    """PySpark in this process, on two cores."""
    pytest.importorskip("pyspark")
    from bridge.runtime.spark_session import open_session

    session = open_session("local[2]", name="skipbridge-tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def hive_jar() -> Path:
    """The hooks for Hive 4.0.1, built by Maven."""
    return built_jar("4.0.1")


@pytest.fixture(scope="session")
def hiveserver2(
    metastore_401: RunningMetastore, hive_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningHiveServer2]:
    """HiveServer2 4.0.1 with Tez's local mode, over the 4.0.1 metastore."""
    spec = HiveServer2Spec(
        tmp_path_factory.mktemp("hiveserver2"),
        metastore_401.uri,
        port=0,
        auxiliary_jars=(hive_jar,),
        properties=_tour_of_hive(),
        jvm_options=("-XX:TieredStopAtLevel=1",),
    )
    with start_hiveserver2(spec) as server:
        running = RunningHiveServer2(server, metastore_401)
        yield running
        running.close()


def _tour_of_hive() -> dict[str, str]:
    """The compose tour's hive-site.xml, but for what is a place of its machines."""
    site = ElementTree.parse(Path(__file__).parents[2] / "docker" / "hive" / "hive-site.xml")
    entries = {p.findtext("name", ""): p.findtext("value", "") for p in site.iter("property")}
    places = ("javax.jdo.", "fs.s3a.", "hive.metastore.", "hive.exec.scratch", "hive.user.install.")
    # Sessions of one server have planners of their own here.
    by_session = {"skipbridge.planner.by_session": "true"}
    return {k: v for k, v in entries.items() if not k.startswith(places)} | by_session


@pytest.fixture(scope="session")
def stock_trino(
    metastore_401: RunningMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """Trino's own hive and hudi connectors over the 4.0.1 metastore: their port."""
    stock = {"hive.metastore.uri": metastore_401.uri, "fs.hadoop.enabled": "true"}
    spec = TrinoSpec(
        directory=tmp_path_factory.mktemp("stock-trino"),
        catalogs={
            "hive": {"connector.name": "hive", "hive.non-managed-table-writes-enabled": "true"}
            | stock,
            "hudi": {"connector.name": "hudi", **stock},
        },
        plugins=stock_plugins("hive", "hudi"),
        port=0,
        heap="1500m",
        jvm_options=LIGHT_JVM,
    )
    with start_trino(spec) as server:
        yield server.port


@pytest.fixture(scope="session")
def everything(
    metastore: RunningMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Everything]:
    """The table of every type, registered and indexed by Spark."""
    root = tmp_path_factory.mktemp("everything") / "table"
    made = write_everything(root, TableName("laws", "everything"))
    # Entries of files written within the clock's grain would not be trusted (correctness 19).
    past = time.time() - 60
    for file in root.rglob("*.parquet"):
        os.utime(file, (past, past))
    with metastore.client() as client:
        client.create_database("laws")
        register_table(client, made.table.name, made.table, made.partitions)
    config = Config({"metastore.uri": Setting(metastore.uri, "test")})
    report = index_table(
        config, "laws.everything", progress=lambda done, total: None, say=lambda text: None
    )
    assert report["files"] == made.files and not report["failed"]
    yield made


@pytest.fixture(scope="session")
def plugin_476() -> Path:
    """The connector for Trino 476, generated and built by Maven."""
    return built_plugin("476", hudi=True)


@pytest.fixture(scope="session")
def catalogs(
    metastore: RunningMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Catalogs]:
    """Trino 476 with the connector that has the hive connector inside, beside the stock one."""
    with running_catalogs(metastore.uri, tmp_path_factory.mktemp("catalogs")) as running:
        yield running


@pytest.fixture(scope="session")
def stores(plugin_476: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """Trino over a store with latency; skipped where versitygw cannot be built."""
    with running_stores(plugin_476, tmp_path_factory.mktemp("stores")) as running:
        yield running


@pytest.fixture(scope="session")
def stack(
    metastore: RunningMetastore,
    everything: Everything,
    plugin_476: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """Metastore, planner and Trino 476 over the table of every type.

    Trino's own Hive connector is there too, as catalog ``hive``: an oracle. Catalog ``tpcds``
    generates TPC-DS.
    """
    stock = {
        "connector.name": "hive",
        "hive.metastore.uri": metastore.uri,
        # Its native local file system reads file:/ locations as empty.
        "fs.hadoop.enabled": "true",
        # By default it cuts timestamps to milliseconds.
        "hive.timestamp-precision": "MICROSECONDS",
        "hive.parquet.time-zone": "UTC",
        "hive.orc.time-zone": "UTC",
        "hive.max-partitions-per-writers": "2000",
    }
    directory = tmp_path_factory.mktemp("stack")
    plugins = {"skipbridge": plugin_476, **stock_plugins("hive", "tpcds")}
    catalogs = {"hive": stock, "tpcds": {"connector.name": "tpcds"}}
    yield from _stack(metastore, everything, plugins, "476", directory, catalogs)


def _stack(
    metastore: RunningMetastore,
    everything: Everything,
    plugins: Mapping[str, Path],
    version: str,
    directory: Path,
    catalogs: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[Stack]:
    planner_port = choose_port(0, "planner")
    # The catalog file of the compose tour, with this planner's address.
    tour = Path(__file__).parents[2] / "docker" / "trino" / "catalog" / "bridge.properties"
    catalog = dict(line.split("=", 1) for line in tour.read_text().split() if "=" in line)
    catalog["skipbridge.planner"] = f"{LOOPBACK}:{planner_port}"
    # INT96 does not depend on where the tests run; a second catalog reads it in another zone.
    catalog["hive.parquet.time-zone"] = "UTC"
    catalog["hive.orc.time-zone"] = "UTC"
    zoned = {
        **catalog,
        "hive.parquet.time-zone": ZONE,
        "hive.orc.use-column-names": "true",
    }
    running = Stack(directory, metastore.uri, planner_port, 0, everything)
    running.start_planner()
    try:
        spec = TrinoSpec(
            directory=directory / "trino",
            catalogs={"bridge": catalog, "zoned": zoned, **(catalogs or {})},
            plugins=plugins,
            version=version,
            port=0,
            jvm_options=LIGHT_JVM,
        )
        with start_trino(spec) as server:
            running.trino_port, running.server = server.port, server
            yield running
    finally:
        running.stop_planner()


@pytest.fixture(scope="session")
def stack_483(
    metastore: RunningMetastore,
    everything: Everything,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    """The same over Trino 483, assembled from jars."""
    plugin = built_plugin("483", hudi=True)
    directory = tmp_path_factory.mktemp("stack483")
    yield from _stack(metastore, everything, {"skipbridge": plugin}, "483", directory)
