"""The server: framed Thrift over TCP on loopback, one thread per connection.

Frames and connections are limited. A connection beyond the limit takes the place of the one whose
client has been silent longest, so clients that only hold connections keep nobody out. Thrift's own
servers neither stop gracefully nor limit connections, so this one combines Thrift's framing with
the sockets of socketserver.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import resource
import socket
import socketserver
import struct
import threading
import time
from contextlib import suppress
from typing import Any

from thrift.protocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport import TTransport

from bridge.kernel.errors import InvalidConfiguration, PortInUse
from bridge.service._gen import Planner as PlannerService
from bridge.service.handler import PlannerHandler

log = logging.getLogger(__name__)
_HEADER = struct.Struct("!i")
_IDLE_SECONDS = 600.0
_MAX_CONNECTIONS = 1024
_SHARE = 4
"""Of the descriptors: two servers may share a process, and plans need some as well."""
_FOR_ROOM = 1.0
"""Seconds in which a connection ends that gives its place to another."""
_PAUSE = 0.05
"""Seconds without accepting, if the process has no file descriptor left."""


def port_in_use(host: str, port: int, error: OSError, option: str) -> PortInUse:
    """The error where a socket cannot listen.

    Args:
        option: of the command line, which gives the port.
    """
    free = "stop what listens there, or " if error.errno == errno.EADDRINUSE else ""
    return PortInUse(
        f"cannot listen on {host}:{port}: {error.strerror}", f"{free}give another {option}"
    )


def check_loopback(host: str) -> None:
    """Accepts only IPv4 loopback, since the service has no authentication yet.

    Errors:
        InvalidConfiguration: any other address.
    """
    try:
        loopback = ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback:
        raise InvalidConfiguration(
            f"service.host is {host!r}, not a loopback address such as 127.0.0.1",
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
                self.server.awaits(connection)
                frame = self._frame(connection)
                if frame is None:
                    return
                self.server.works_for(connection)
                answer = self.server.answer(frame)
                self.server.awaits(connection)
                connection.sendall(answer)
        except (OSError, EOFError):
            return

    def _frame(self, connection: socket.socket) -> bytes | None:
        header = _read(connection, _HEADER.size)
        if header is None:
            return None
        (size,) = _HEADER.unpack(header)
        if not 0 < size <= self.server.max_frame_bytes:
            # The stream cannot be resynchronised, so the connection ends.
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


def _exception(kind: int, message: str) -> bytes:
    """A frame with an error that occurred before a method could answer."""
    out = TTransport.TMemoryBuffer()
    writer = TBinaryProtocol.TBinaryProtocol(out)
    writer.writeMessageBegin("unknown", TMessageType.EXCEPTION, 0)
    TApplicationException(kind, message).write(writer)
    writer.writeMessageEnd()
    body: bytes = out.getvalue()
    return _HEADER.pack(len(body)) + body


class PlannerServer(socketserver.ThreadingTCPServer):
    """Serves one handler on one address.

    Args:
        address: host and port; port 0 selects a free one.
        share: several processes listen on this port, and the kernel spreads connections.
        listening: a socket that listens already, instead of an address.
    """

    daemon_threads = True
    allow_reuse_address = True
    block_on_close = False
    request_queue_size = 256

    def __init__(
        self,
        address: tuple[str, int],
        max_frame_bytes: int = 64 << 20,
        *,
        share: bool = False,
        listening: socket.socket | None = None,
    ) -> None:
        check_loopback(address[0])
        if address[1] > 65535:
            raise InvalidConfiguration(
                f"service.port is {address[1]}", "give a port from 1 to 65535, or 0 for a free one"
            )
        self.max_frame_bytes = max_frame_bytes
        self.stopping = threading.Event()
        self.allow_reuse_port = share
        self._processor: Any = None
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        few = 0 < soft < _SHARE * _MAX_CONNECTIONS  # RLIM_INFINITY is negative
        self.max_connections = max(1, soft // _SHARE) if few else _MAX_CONNECTIONS
        self._slots = threading.BoundedSemaphore(self.max_connections)
        self._connections: set[socket.socket] = set()
        self._silent: dict[socket.socket, None] = {}  # the longest silent first
        self._drained = threading.Condition()
        try:
            super().__init__(address, _Connection, bind_and_activate=listening is None)
            if listening is not None:
                self.socket.close()
                self.socket = listening
                self.server_address = listening.getsockname()
        except OSError as e:
            raise port_in_use(*address, e, "--port") from e

    @property
    def endpoint(self) -> str:
        host, port = self.server_address[:2]
        return f"{host!s}:{port}"

    def serve(self, handler: PlannerHandler) -> None:
        """Answers requests until `stop`; blocks."""
        self._processor = PlannerService.Processor(handler)
        self.serve_forever(poll_interval=0.1)

    def stop(self, grace: float = 10.0) -> bool:
        """Accepts no more calls; waits up to ``grace`` seconds for calls in flight.

        Returns:
            Whether all of them ended.
        """
        self.stopping.set()
        if self._processor is not None:  # else serve_forever never ran, and shutdown would hang
            self.shutdown()
        self.server_close()
        with self._drained:
            for connection in self._connections:
                # Wakes the thread of an idle connection; a busy one answers first.
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)
            return self._drained.wait_for(lambda: not self._connections, grace)

    def answer(self, frame: bytes) -> bytes:
        """Turns one request frame into one response frame."""
        out = TTransport.TMemoryBuffer()
        source = TTransport.TMemoryBuffer(frame)
        # Without the limits, a length beyond the frame would be allocated before it is found wrong.
        reader = TBinaryProtocol.TBinaryProtocolAccelerated(
            source, string_length_limit=len(frame), container_length_limit=len(frame)
        )
        writer = TBinaryProtocol.TBinaryProtocolAccelerated(out)
        try:
            self._processor.process(reader, writer)
        except Exception as e:  # malformed input makes the decoder raise many types
            log.warning("refused a malformed request: %s: %s", type(e).__name__, e)
            return _exception(TApplicationException.PROTOCOL_ERROR, f"malformed request: {e}")
        body: bytes = out.getvalue()
        if len(body) > self.max_frame_bytes:
            return _exception(
                TApplicationException.INTERNAL_ERROR,
                f"the answer has {len(body)} bytes, service.max_frame_bytes is "
                f"{self.max_frame_bytes}",
            )
        return _HEADER.pack(len(body)) + body

    def awaits(self, connection: socket.socket) -> None:
        """From now on the connection waits for its client, to send or to read."""
        with self._drained:
            self._silent.pop(connection, None)
            self._silent[connection] = None

    def works_for(self, connection: socket.socket) -> None:
        """From now on a call of the connection is under way."""
        with self._drained:
            self._silent.pop(connection, None)

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except OSError as e:
            if e.errno in (errno.EMFILE, errno.ENFILE):
                log.warning("no file descriptor is left for a connection: raise ulimit -n")
                self._end_a_silent_one()
                time.sleep(_PAUSE)  # the same connection would be met again at once
            raise

    def _end_a_silent_one(self) -> bool:
        """Ends the connection that has awaited its client longest; False if all are at work.

        Its client, if it is still there, connects again for its next call.
        """
        with self._drained:
            silent = next(iter(self._silent), None)
            if silent is None:
                return False
            del self._silent[silent]
        with suppress(OSError):
            silent.shutdown(socket.SHUT_RDWR)
        return True

    def _place(self) -> bool:
        """Takes a place for a connection, if need be that of a silent one."""
        if self._slots.acquire(blocking=False):
            return True
        return self._end_a_silent_one() and self._slots.acquire(timeout=_FOR_ROOM)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._place():
            log.warning("refused a connection: %d are at work", self.max_connections)
            self.shutdown_request(request)
            return
        with self._drained:
            self._connections.add(request)
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread was started, so nothing else releases the slot
            self._ended(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._ended(request)

    def _ended(self, request: Any) -> None:
        with self._drained:
            self._connections.discard(request)
            self._silent.pop(request, None)
            self._drained.notify_all()
        self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.exception("connection from %s failed", client_address)
