"""Real servers, each started once a session and only if a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.metastore_401 import start_metastore_401
from bridge.servers.process import LOOPBACK, Server


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
    """Hive 4.0.1's metastore, out of Maven artifacts, its database in memory."""
    directory = tmp_path_factory.mktemp("metastore-401")
    spec = MetastoreSpec(directory, directory / "warehouse", port=0, in_memory=True)
    with start_metastore_401(spec) as server:
        yield RunningMetastore(server, directory / "warehouse")
