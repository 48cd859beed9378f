"""Starts the planner as a separate process, like `skipbridge serve`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from bridge.servers.process import Server, ServerSpec, choose_port, start_server


def start_planner(
    directory: Path,
    metastore_uri: str,
    *,
    port: int = 0,
    environment: Mapping[str, str] | None = None,
) -> Server:
    """Starts a planner and waits until it accepts connections.

    Args:
        directory: holds its log; created if missing.
        port: on loopback; 0 for any free port.
        environment: more environment variables, such as ``SKIPBRIDGE_*`` settings. One process
            serves unless ``SKIPBRIDGE_SERVICE_PROCESSES`` is among them.

    Errors:
        PortInUse, ServerFailed.
    """
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    chosen = choose_port(port, "planner")
    words = ("serve", "--port", str(chosen), "--metastore-uri", metastore_uri)
    return start_server(
        ServerSpec(
            name="planner",
            command=(sys.executable, "-m", "bridge", *words),
            directory=directory,
            port=chosen,
            environment={"SKIPBRIDGE_SERVICE_PROCESSES": "1", **(environment or {})},
        )
    )
