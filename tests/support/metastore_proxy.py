"""A proxy before a metastore: others act between two calls of a client, and calls fail."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TTransport import TMemoryBuffer, TTransportBase

from bridge.metastore._gen import ThriftHiveMetastore, ttypes
from tests.support.relay import Between

_HANDSHAKE = "getVersion"


class Fate(Enum):
    """What becomes of a call."""

    PASS = "it is answered"
    LOSE = "the metastore carries it out, and the answer is lost"
    CUT = "the connection ends before the metastore sees it"
    REFUSE = "the metastore refuses it, with an exception that it declares"


@dataclass(frozen=True, slots=True)
class Call:
    """A call on its way to the metastore.

    Attributes:
        number: of the client's calls, from 0; handshakes are not counted.
        arguments: by name.
    """

    number: int
    method: str
    arguments: dict[str, Any]

    @property
    def writes(self) -> bool:
        return not self.method.startswith("get")

    def partitions(self) -> set[tuple[str, ...]] | None:
        """The values of the partitions that it writes, or their names; None: of no partition."""
        if self.method.startswith("alter_partitions"):
            return {tuple(p.values) for p in self.arguments["new_parts"]}
        if self.method == "add_partitions_req":
            return {tuple(p.values) for p in self.arguments["request"].parts}
        if self.method == "drop_partitions_req":
            return {(name,) for name in self.arguments["req"].parts.names or ()}
        return None


Hook = Callable[[Call], Fate]


class MetastoreProxy(Between):
    """Passes calls on, one at a time, each after `before` has seen it.

    Attributes:
        before: acts as others do, and says what becomes of the call.
        calls: all of them, in order.
    """

    def __init__(self, port: int) -> None:
        self.before: Hook = lambda call: Fate.PASS
        self.calls: list[Call] = []
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", port))

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def reset(self, before: Hook = lambda call: Fate.PASS) -> None:
        """Counts anew, with another hook."""
        self.before, self.calls = before, []

    def serve(self, client: socket.socket, server: socket.socket) -> None:
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError, EOFError):
                while True:
                    request = _message(client)
                    method, number, arguments = _request(request)
                    with self._lock:
                        fate = Fate.PASS
                        if method != _HANDSHAKE:
                            call = Call(len(self.calls), method, arguments)
                            self.calls.append(call)
                            fate = self.before(call)
                        if fate is Fate.REFUSE:
                            client.sendall(_refusal(method, number))
                            continue
                        if fate is Fate.CUT:
                            break
                        server.sendall(request)
                        answer = _message(server)
                    if fate is Fate.LOSE:
                        break
                    client.sendall(answer)
        finally:
            for end in (client, server):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)


class _Recorded(TTransportBase):  # type: ignore[misc]
    """Reads a socket and keeps what was read."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source.makefile("rb", buffering=0)
        self.bytes = bytearray()

    def readAll(self, sz: int) -> bytes:  # noqa: N802
        start = len(self.bytes)
        while len(self.bytes) - start < sz:
            more = self._source.read(sz - (len(self.bytes) - start))
            if not more:
                raise EOFError
            self.bytes += more
        return bytes(self.bytes[start:])


def _message(source: socket.socket) -> bytes:
    """One whole message, as it came."""
    recorded = _Recorded(source)
    protocol = TBinaryProtocol(recorded)
    protocol.readMessageBegin()
    protocol.skip(TType.STRUCT)
    return bytes(recorded.bytes)


def _request(message: bytes) -> tuple[str, int, dict[str, Any]]:
    protocol = TBinaryProtocol(TMemoryBuffer(message))
    method, _, number = protocol.readMessageBegin()
    made = getattr(ThriftHiveMetastore, f"{method}_args")()
    made.read(protocol)
    fields = (f[2] for f in made.thrift_spec if f is not None)
    return method, number, {name: getattr(made, name) for name in fields}


def _refusal(method: str, number: int) -> bytes:
    buffer = TMemoryBuffer()
    protocol = TBinaryProtocol(buffer)
    result = getattr(ThriftHiveMetastore, f"{method}_result")()
    named = [f[2] for f in result.thrift_spec if f and f[3] and f[3][0] is ttypes.MetaException]
    if named:
        protocol.writeMessageBegin(method, TMessageType.REPLY, number)
        setattr(result, named[0], ttypes.MetaException("the database is read-only for a moment"))
        result.write(protocol)
    else:
        protocol.writeMessageBegin(method, TMessageType.EXCEPTION, number)
        TApplicationException(TApplicationException.INTERNAL_ERROR, "out of memory").write(protocol)
    protocol.writeMessageEnd()
    made: bytes = buffer.getvalue()
    return made
