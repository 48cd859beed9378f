"""Azurite, Microsoft's own server of Azure's blob storage for tests, as a process of its own.

npm installs it once into the cache. Its account and key are the ones that all clients know.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlencode

import pytest

from bridge.servers.maven import build_once, cache_directory
from bridge.servers.process import LOOPBACK, Server, ServerSpec, free_port, start_server

VERSION = "3.35.0"
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "lake"
URI = f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net"
"""Of the container, as engines write it."""
_API = "2021-08-06"
_INSTALL_TIMEOUT = 600


class AzuriteMissing(Exception):
    """Why there is none."""


@dataclass(frozen=True, slots=True)
class Azurite:
    """A running server with one empty container.

    Attributes:
        options: of `bridge.storage.routed.open_storage`.
    """

    server: Server
    options: Mapping[str, str]

    def through(self, port: int) -> dict[str, str]:
        """The options for a proxy on a port of this machine."""
        return {**self.options, "azure_storage_endpoint": f"http://{LOOPBACK}:{port}/{ACCOUNT}"}


def azurite() -> Path:
    """The program; installed if it is not in the cache. Errors: AzuriteMissing."""
    place = build_once(cache_directory() / f"azurite-{VERSION}", _install)
    return place / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"


def _install(target: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise AzuriteMissing("there is no npm to install Azurite with")
    target.mkdir()
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--omit=dev", "--loglevel=error")
    try:
        done = subprocess.run(
            [npm, "install", "--prefix", str(target), *options, f"azurite@{VERSION}"],
            capture_output=True,
            text=True,
            timeout=_INSTALL_TIMEOUT,
        )
    except subprocess.TimeoutExpired as error:
        raise AzuriteMissing(f"Azurite was not installed in {_INSTALL_TIMEOUT} s") from error
    if done.returncode:
        raise AzuriteMissing(f"Azurite cannot be installed: {done.stderr.strip()[-500:]}")


def start_azurite(directory: Path) -> Azurite:
    """Starts one that keeps its blobs in a directory. Errors: AzuriteMissing."""
    program = azurite()
    node = shutil.which("node")
    if node is None:
        raise AzuriteMissing("there is no node to run Azurite with")
    directory.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = (
        node,
        str(program),
        *("--blobHost", LOOPBACK, "--blobPort", str(port), "--location", str(directory)),
        *("--silent", "--skipApiVersionCheck", "--disableTelemetry"),
    )
    server = start_server(ServerSpec("azurite", command, directory, port=port))
    create_container(port)
    options = {
        "azure_storage_endpoint": f"http://{LOOPBACK}:{port}/{ACCOUNT}",
        "azure_storage_account_key": KEY,
        "allow_http": "true",
    }
    return Azurite(server, options)


def azurite_or_skip(directory: Path) -> Azurite:
    """For fixtures: skips their tests, with the reason, where there is none."""
    try:
        return start_azurite(directory)
    except AzuriteMissing as error:
        pytest.skip(str(error))


def _signed(text: str) -> str:
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    return base64.b64encode(digest).decode()


def create_container(port: int, name: str = CONTAINER) -> None:
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _API}
    told = "".join(f"{name}:{value}\n" for name, value in headers.items())
    resource = f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    signature = _signed("PUT" + "\n" * 12 + told + resource)
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{signature}"
    url = f"http://{LOOPBACK}:{port}/{ACCOUNT}/{name}?restype=container"
    request = urllib.request.Request(url, method="PUT", headers=headers)
    urllib.request.urlopen(request).close()


def shared_access(
    permissions: str, lifetime: timedelta = timedelta(hours=1), container: str = CONTAINER
) -> str:
    """A signature that gives these permissions (of ``racwdl``) on a container for a while."""
    until = (datetime.now(UTC) + lifetime).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = {"sp": permissions, "se": until, "sv": _API, "sr": "c"}
    place = f"/blob/{ACCOUNT}/{container}"
    signed = [permissions, "", until, place, "", "", "", _API, "c", *[""] * 7]
    return urlencode({**fields, "sig": _signed("\n".join(signed))})
