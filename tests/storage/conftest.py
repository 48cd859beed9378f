"""The storages of the suite: local files, a real S3 endpoint and a real HDFS on loopback."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from moto.server import ThreadedMotoServer

from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from tests.support.hdfs import start_hdfs
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import Versitygw, versitygw_or_skip

BUCKET = "skipbridge"


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, str]]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    _one_by_one(server)
    options = {
        "endpoint": f"http://{host}:{port}",
        "region": "us-east-1",
        "access_key_id": "test",
        "secret_access_key": "test",
        "allow_http": "true",
    }
    request = urllib.request.Request(f"{options['endpoint']}/{BUCKET}", method="PUT")
    urllib.request.urlopen(request).close()
    yield options
    server.stop()


def _one_by_one(server: ThreadedMotoServer) -> None:
    """Moto looks for a key and then writes it: two requests at once could both create it."""
    lock, serving = threading.Lock(), server._server
    app = serving.app

    def answer(*request: Any) -> Any:
        with lock:
            return app(*request)

    serving.app = answer


@pytest.fixture(scope="session")
def hdfs_uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    hdfs = start_hdfs(tmp_path_factory.mktemp("hdfs"))
    with hdfs.server:
        yield hdfs.uri


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Versitygw]:
    found = versitygw_or_skip(tmp_path_factory.mktemp("versitygw"))
    with found.server:
        yield found


@pytest.fixture(scope="session")
def proxy(gateway: Versitygw) -> Iterator[SlowStore]:
    with SlowStore(gateway.server.port) as found:
        yield found


@pytest.fixture
def direct(gateway: Versitygw) -> Storage:
    return open_storage(options=gateway.options)


@pytest.fixture
def slow(gateway: Versitygw, proxy: SlowStore) -> Iterator[Storage]:
    proxy.behave(Behaviour(latency=0.02))
    proxy.take()
    yield open_storage(options=gateway.through(proxy.port))
    proxy.behave(Behaviour())


@dataclass(frozen=True, slots=True)
class Place:
    """A storage, an empty directory in it, and the options to open it anew."""

    storage: Storage
    root: str
    options: Mapping[str, str] = field(default_factory=dict)


@pytest.fixture(params=["local", "s3", "hdfs"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        return Place(open_storage(), f"file://{tmp_path}/t")
    if request.param == "hdfs":
        return Place(open_storage(), f"{request.getfixturevalue('hdfs_uri')}/{tmp_path.name}/t")
    options = request.getfixturevalue("s3_options")
    return Place(open_storage(options=options), f"s3://{BUCKET}/{tmp_path.name}/t", options)
