"""The storages of the suite: local files, and real servers of S3, HDFS and Azure on loopback.

No emulator of GCS takes part: fake-gcs-server refuses the writes of the XML API, which our client
makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from tests.support import azurite
from tests.support.hdfs import start_hdfs
from tests.support.moto_store import moto_store
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import Versitygw, versitygw_or_skip

BUCKET = "skipbridge"


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, str]]:
    with moto_store(BUCKET, serial=True) as endpoint:
        yield {
            "endpoint": endpoint,
            "region": "us-east-1",
            "access_key_id": "test",
            "secret_access_key": "test",
            "allow_http": "true",
        }


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


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite]:
    found = azurite.azurite_or_skip(tmp_path_factory.mktemp("azurite"))
    with found.server:
        yield found


@dataclass(frozen=True, slots=True)
class Place:
    """A storage, an empty directory in it, and how to open it anew.

    Attributes:
        options: of `open_storage`.
        settings: of skipbridge, which say the same together with ``environment``.
    """

    storage: Storage
    root: str
    options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


@pytest.fixture(
    params=[
        "local",
        "s3",
        pytest.param("hdfs", marks=pytest.mark.full),
        pytest.param("azure", marks=pytest.mark.full),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    name = tmp_path.name
    match request.param:
        case "local":
            return Place(open_storage(), f"file://{tmp_path}/t")
        case "hdfs":
            return Place(open_storage(), f"{request.getfixturevalue('hdfs_uri')}/{name}/t")
        case "azure":
            return _in_cloud(request.getfixturevalue("azure").options, f"{azurite.URI}/{name}/t")
    options = request.getfixturevalue("s3_options")
    settings = {f"storage.{key}": options[key] for key in ("endpoint", "region", "allow_http")}
    keys = ("access_key_id", "secret_access_key")
    environment = {f"AWS_{key.upper()}": options[key] for key in keys}
    root = f"s3://{BUCKET}/{name}/t"
    return Place(open_storage(options=options), root, options, settings, environment)


def _in_cloud(options: Mapping[str, str], root: str) -> Place:
    environment = {k.upper(): v for k, v in options.items() if k != "allow_http"}
    settings = {"storage.allow_http": "true"}
    return Place(open_storage(options=options), root, options, settings, environment)
