"""fake-gcs-server, an emulator of Google Cloud Storage, as a process of its own.

It is compiled once by ``go install`` into the cache. It does not heed conditions of writes that
come by the XML API, which skipbridge's client speaks: no index can be kept there.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from bridge.servers.process import LOOPBACK, Server, ServerSpec, free_port, start_server
from tests.support.go_programs import GoMissing, go_program

VERSION = "1.56.1"
BUCKET = "lake"
URI = f"gs://{BUCKET}"


@dataclass(frozen=True, slots=True)
class FakeGcs:
    """A running server with one empty bucket.

    Attributes:
        endpoint: its address.
        options: of `bridge.storage.routed.open_storage`.
    """

    server: Server
    endpoint: str
    options: Mapping[str, str]


def start_fake_gcs(directory: Path) -> FakeGcs:
    """Starts one that keeps its objects in memory. Errors: GoMissing."""
    program = go_program("github.com/fsouza/fake-gcs-server", VERSION)
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    endpoint = f"http://{LOOPBACK}:{port}"
    command = (
        str(program),
        *("-scheme", "http", "-host", LOOPBACK, "-port", str(port), "-backend", "memory"),
        *("-external-url", endpoint, "-public-host", f"{LOOPBACK}:{port}", "-log-level", "error"),
    )
    server = start_server(ServerSpec("fake-gcs", command, directory, port=port))
    request = urllib.request.Request(
        f"{endpoint}/storage/v1/b?project=test",
        json.dumps({"name": BUCKET}).encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request).close()
    account = {
        "gcs_base_url": endpoint,
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    options = {
        "google_base_url": endpoint,
        "google_service_account_key": json.dumps(account),
        "allow_http": "true",
    }
    return FakeGcs(server, endpoint, options)


def fake_gcs_or_skip(directory: Path) -> FakeGcs:
    """For fixtures: skips their tests, with the reason, where there is none."""
    try:
        return start_fake_gcs(directory)
    except GoMissing as error:
        pytest.skip(str(error))
