"""Runs the door: uvicorn in a thread of the planner's process."""

from __future__ import annotations

import socket
import threading
import time

import uvicorn

from bridge.iceberg_rest.connections import Connection, ConnectionLimits
from bridge.iceberg_rest.door import Door
from bridge.kernel.errors import PlannerUnavailable

_STARTED_WITHIN = 60.0


class DoorServer:
    """Serves a door on a socket that listens already."""

    def __init__(
        self, door: Door, listening: socket.socket, limits: ConnectionLimits | None = None
    ) -> None:
        self._socket = listening
        limits = limits or ConnectionLimits()
        config = uvicorn.Config(
            door.app,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            http=Connection.within(limits),
            ws="none",
            timeout_keep_alive=limits.seconds,
            timeout_graceful_shutdown=10,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, daemon=True, name="skipbridge-http")

    @property
    def endpoint(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"{host}:{port}"

    def start(self) -> None:
        """Returns once it accepts requests. Errors: PlannerUnavailable: it does not start."""
        self._thread.start()
        until = time.monotonic() + _STARTED_WITHIN
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > until:
                raise PlannerUnavailable("the HTTP port does not start", "see the log")
            time.sleep(0.005)

    def stop(self) -> None:
        """Lets requests in flight finish, for some seconds."""
        self._server.should_exit = True
        self._thread.join(15.0)
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])
