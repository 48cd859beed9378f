"""An S3 in this process, with one bucket: moto's server."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moto.server import ThreadedMotoServer

from bridge.servers.process import LOOPBACK


@contextmanager
def moto_store(bucket: str, *, verbose: bool = False, serial: bool = False) -> Iterator[str]:
    """The address of a store that has the bucket.

    Args:
        verbose: it logs its requests, as ``werkzeug``.
        serial: it answers one request at a time. Moto looks for a key and then writes it, so two
            requests at once could both create it.
    """
    server = ThreadedMotoServer(ip_address=LOOPBACK, port=0, verbose=verbose)
    server.start()
    try:
        host, port = server.get_host_and_port()
        if serial:
            _answer_one_by_one(server)
        address = f"http://{host}:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{address}/{bucket}", method="PUT")).close()
        yield address
    finally:
        server.stop()


def _answer_one_by_one(server: ThreadedMotoServer) -> None:
    lock, serving = threading.Lock(), server._server
    app = serving.app

    def answer(*request: Any) -> Any:
        with lock:
            return app(*request)

    serving.app = answer
