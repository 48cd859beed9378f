"""Starts the planner as a separate process, like `skipbridge serve`."""

from __future__ import annotations

import sys
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from bridge.kernel.config import variable_of
from bridge.kernel.errors import PlannerUnavailable
from bridge.servers.process import Server, ServerSpec, choose_port, start_server

_READY_WITHIN = 60.0


def start_planner(
    directory: Path,
    metastore_uri: str,
    *,
    port: int = 0,
    http_port: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Server:
    """Starts a planner and waits until it accepts connections, on both ports.

    Args:
        directory: holds its log; created if missing.
        port: on loopback; 0 for any free port.
        http_port: of the Iceberg REST catalog; None: it is not served.
        environment: more environment variables, such as ``SKIPBRIDGE_*`` settings. One process
            serves unless ``SKIPBRIDGE_SERVICE_PROCESSES`` is among them.

    Errors:
        PortInUse, ServerFailed.
        PlannerUnavailable: the HTTP port does not answer.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    chosen = choose_port(port, "planner")
    words = ("serve", "--port", str(chosen), "--metastore-uri", metastore_uri)
    served = {} if http_port is None else {variable_of("service.http_port"): str(http_port)}
    server = start_server(
        ServerSpec(
            name="planner",
            command=(sys.executable, "-m", "bridge", *words),
            directory=directory,
            port=chosen,
            environment={"SKIPBRIDGE_SERVICE_PROCESSES": "1", **served, **(environment or {})},
        )
    )
    if http_port is not None:
        try:
            _await_door(http_port, server)
        except BaseException:
            server.stop()
            raise
    return server


def _await_door(port: int, server: Server) -> None:
    """Returns once the HTTP port answers, which opens after the other one."""
    until = time.monotonic() + _READY_WITHIN
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
            return
        except OSError as error:
            if time.monotonic() > until:
                raise PlannerUnavailable(
                    f"port {port} does not answer: {error}", f"see {server.log}"
                ) from error
            time.sleep(0.1)
