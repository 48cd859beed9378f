"""The storages of the suite: local files, and a real S3 endpoint on loopback."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

from bridge.storage.port import Storage
from bridge.storage.routed import open_storage

BUCKET = "skipbridge"


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, str]]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
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


@dataclass(frozen=True, slots=True)
class Place:
    """A storage and an empty directory in it."""

    storage: Storage
    root: str


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "local":
        return Place(open_storage(), f"file://{tmp_path}/t")
    options = request.getfixturevalue("s3_options")
    return Place(open_storage(options=options), f"s3://{BUCKET}/{tmp_path.name}/t")
