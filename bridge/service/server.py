"""The server: framed Thrift over TCP on loopback, a thread a connection, limits on frames and
connections.

Thrift's own servers neither stop gracefully nor limit connections; the framing is its, the sockets
are socketserver's.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import socketserver
import struct
import threading
from typing import Any

from thrift.protocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType
from thrift.transport import TTransport

from bridge.errors import InvalidConfiguration, PortInUse
from bridge.service._gen import Planner as PlannerService
from bridge.service.handler import PlannerHandler

log = logging.getLogger(__name__)
_HEADER = struct.Struct("!i")
_IDLE_SECONDS = 600.0
_MAX_CONNECTIONS = 1024


def check_loopback(host: str) -> None:
    """Errors: InvalidConfiguration for any address but loopback: the service has no authentication
    yet.
    """
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback:
        raise InvalidConfiguration(
            f"service.host is {host!r}, which other machines can reach",
            "use 127.0.0.1: the service does not authenticate its clients yet",
        )


class _Connection(socketserver.BaseRequestHandler):
    server: PlannerServer

    def handle(self) -> None:
        connection: socket.socket = self.request
        connection.settimeout(_IDLE_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while not self.server.stopping.is_set():
                frame = self._frame(connection)
                if frame is None:
                    return
                connection.sendall(self.server.answer(frame))
        except (OSError, EOFError):
            return

    def _frame(self, connection: socket.socket) -> bytes | None:
        header = _read(connection, _HEADER.size)
        if header is None:
            return None
        (size,) = _HEADER.unpack(header)
        if not 0 < size <= self.server.max_frame_bytes:
            # Nothing after this can be told apart: the connection ends.
            log.warning("refused a frame of %d bytes from %s", size, self.client_address[0])
            return None
        return _read(connection, size)


def _read(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        chunk = connection.recv(min(size - len(parts), 1 << 20))
        if not chunk:
            return None
        parts += chunk
    return bytes(parts)


class PlannerServer(socketserver.ThreadingTCPServer):
    """Serves one handler on one address.

    Args:
        address: host and port; port 0 takes a free one.
        share: several processes listen on this port, the kernel spreads connections.
    """

    daemon_threads = True
    allow_reuse_address = True
    block_on_close = False
    request_queue_size = 256

    def __init__(
        self, address: tuple[str, int], max_frame_bytes: int = 64 << 20, *, share: bool = False
    ) -> None:
        check_loopback(address[0])
        self.max_frame_bytes = max_frame_bytes
        self.stopping = threading.Event()
        self.allow_reuse_port = share
        self._processor: Any = None
        self._slots = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        try:
            super().__init__(address, _Connection)
        except OSError as e:
            raise PortInUse(
                f"cannot listen on {address[0]}:{address[1]}: {e.strerror}",
                "stop what listens there, or give another --port",
            ) from e

    @property
    def endpoint(self) -> str:
        host, port = self.server_address[:2]
        return f"{host!s}:{port}"

    def serve(self, handler: PlannerHandler) -> None:
        """Answers until `stop`; blocks."""
        self._processor = PlannerService.Processor(handler)
        self.serve_forever(poll_interval=0.1)

    def stop(self) -> None:
        """Lets calls under way finish, then closes every connection."""
        self.stopping.set()
        self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RD)
                except OSError:
                    continue

    def answer(self, frame: bytes) -> bytes:
        """One request frame to one answer frame."""
        out = TTransport.TMemoryBuffer()
        source = TTransport.TMemoryBuffer(frame)
        reader = TBinaryProtocol.TBinaryProtocolAccelerated(source)
        writer = TBinaryProtocol.TBinaryProtocolAccelerated(out)
        try:
            self._processor.process(reader, writer)
        except (TException, EOFError, struct.error, UnicodeDecodeError, MemoryError) as e:
            log.warning("refused a malformed request: %s", e)
            out = TTransport.TMemoryBuffer()
            writer = TBinaryProtocol.TBinaryProtocol(out)
            writer.writeMessageBegin("unknown", TMessageType.EXCEPTION, 0)
            TApplicationException(TApplicationException.PROTOCOL_ERROR, str(e)).write(writer)
            writer.writeMessageEnd()
        body: bytes = out.getvalue()
        return _HEADER.pack(len(body)) + body

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            log.warning("refused a connection: %d are open", _MAX_CONNECTIONS)
            self.shutdown_request(request)
            return
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._connections.discard(request)
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.exception("connection from %s failed", client_address)
