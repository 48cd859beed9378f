"""Azurite under the names of Azure's own cloud, for clients that know Azure by these names alone.

A hosts file of a JVM takes the account's hosts to an address of this machine. What listens there on
port 443 speaks TLS and passes the bytes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from bridge.servers.java import find_jdk
from bridge.servers.process import LOOPBACK
from tests.support.azurite import ACCOUNT

_ADDRESS = "127.45.16.7"  # of this machine; its port 443 is nobody else's
_HOSTS = tuple(f"{ACCOUNT}.{kind}.core.windows.net" for kind in ("dfs", "blob"))
_PASSWORD = "changeit"


@contextmanager
def azure_cloud(directory: Path, upstream: int) -> Iterator[tuple[str, ...]]:
    """Azure's names for what listens at a port; options with which a JVM takes them for Azure.

    Skips the tests where port 443 of the address may not be listened on.
    """
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_ADDRESS, 443))
    except OSError as error:
        listening.close()
        pytest.skip(f"{_ADDRESS}:443 cannot be listened on: {error}")
    store, pem = _certificate(directory)
    hosts = directory / "hosts"
    # Java looks for no other names from here on.
    own = f"{LOOPBACK} localhost {socket.gethostname()}"
    hosts.write_text(f"{_ADDRESS} {' '.join(_HOSTS)}\n{own}\n", "utf-8")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    started: SimpleQueue[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = SimpleQueue()

    async def serve() -> None:
        stop = asyncio.Event()
        server = await asyncio.start_server(
            lambda read, write: _pass_on(read, write, upstream), sock=listening, ssl=context
        )
        started.put((asyncio.get_running_loop(), stop))
        await stop.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    loop, stop = started.get(timeout=10)
    try:
        yield (
            f"-Djdk.net.hosts.file={hosts}",
            f"-Djavax.net.ssl.trustStore={store}",
            f"-Djavax.net.ssl.trustStorePassword={_PASSWORD}",
        )
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)


async def _pass_on(read: asyncio.StreamReader, write: asyncio.StreamWriter, port: int) -> None:
    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                target.write(data)
                await target.drain()
        target.close()

    try:
        behind_read, behind_write = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        write.close()
        return
    await asyncio.gather(copy(read, behind_write), copy(behind_read, write))


def _certificate(directory: Path) -> tuple[Path, Path]:
    """A key store that trusts itself, and its key and certificate as PEM."""
    store, pem = directory / "azure.p12", directory / "azure.pem"
    subprocess.run(
        [
            str(find_jdk(17).home / "bin" / "keytool"),
            *("-genkeypair", "-alias", "azure", "-keyalg", "RSA", "-dname", "CN=azure"),
            *("-keystore", str(store), "-storepass", _PASSWORD, "-storetype", "PKCS12"),
            *("-ext", f"san={','.join(f'dns:{host}' for host in _HOSTS)}"),
        ],
        check=True,
        capture_output=True,
    )
    loaded = pkcs12.load_key_and_certificates(store.read_bytes(), _PASSWORD.encode())
    key, certificate, _ = loaded
    assert key is not None and certificate is not None
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(private + certificate.public_bytes(Encoding.PEM))
    return store, pem
