"""Connections to a metastore: opened with a handshake, pooled, and cancellable."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from bridge.kernel.errors import InvalidConfiguration, MetastoreFailure
from bridge.kernel.types import whole_number
from bridge.metastore.partition_projection import PartitionProjectionClient
from bridge.metastore.security import Security

DEFAULT_PORT = 9083

# Far above any answer of a metastore; a larger size means that the peer is not a metastore.
_LONGEST_STRING = 64 * 1024 * 1024
_LONGEST_CONTAINER = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a metastore."""

    host: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"thrift://{host}:{self.port}"


def parse_addresses(uris: str) -> tuple[Address, ...]:
    """Parses ``thrift://host:port[,thrift://host:port]``; scheme and port are optional.

    Errors:
        InvalidConfiguration: the text has another form.

    >>> [str(a) for a in parse_addresses("thrift://a:9083, b")]
    ['thrift://a:9083', 'thrift://b:9083']
    """
    found = []
    for part in uris.split(","):
        text = part.strip()
        scheme, separator, rest = text.rpartition("://")
        host, _, port = (
            rest.rpartition(":") if ":" in rest and not rest.endswith("]") else (rest, "", "")
        )
        valid = 0 < (whole_number(port) or 0) < 65536 if port else rest == host
        if (separator and scheme != "thrift") or not host.strip("[]") or "/" in rest or not valid:
            raise InvalidConfiguration(
                f"not a metastore address: {text!r}", "thrift://host:9083, several parted by commas"
            )
        found.append(Address(host.strip("[]"), int(port) if port else DEFAULT_PORT))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to open a connection, and to wait for the next byte of an answer."""

    connect: float
    call: float


class Cancellation:
    """Stops the calls that it covers, from another thread.

    A call that waits for a metastore blocks its thread until its timeout. Shutting down its
    socket ends it at once.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self._lock = threading.Lock()
        self._held: set[Connection] = set()

    @property
    def cancelled(self) -> bool:
        return self.event.is_set()

    def cancel(self) -> None:
        self.event.set()
        with self._lock:
            for connection in self._held:
                connection.shut_down()

    @contextlib.contextmanager
    def hold(self, connection: Connection) -> Iterator[None]:
        with self._lock:
            self._held.add(connection)
            if self.cancelled:
                connection.shut_down()
        try:
            yield
        finally:
            with self._lock:
                self._held.discard(connection)


class Connection:
    """One open connection whose peer has answered as a metastore.

    Errors:
        OSError, TTransportException: there is no answer.
        MetastoreFailure: the peer is not a metastore.
    """

    def __init__(self, address: Address, timeouts: Timeouts, security: Security) -> None:
        self.address = address
        self._security = security
        # Not opened by TSocket, which logs each failure as a program error.
        self._raw = socket.create_connection((address.host, address.port), timeouts.connect)
        try:
            self._raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._raw = security.wrap(self._raw, address.host)
            self.client: Any = PartitionProjectionClient(self._protocol())
            self._shake_hands()
            self._raw.settimeout(timeouts.call)
        except BaseException:
            self.close()
            raise

    def _protocol(self) -> TBinaryProtocolAccelerated:
        below = TSocket(self.address.host, self.address.port)
        below.setHandle(self._raw)
        buffered = TBufferedTransport(below, rbuf_size=64 * 1024)
        try:
            transport = self._security.authenticate(buffered, self.address.host)
        except TTransportException as error:
            if error.type != TTransportException.NOT_OPEN:
                raise  # the peer closed the connection
            raise MetastoreFailure(
                f"{self.address} refuses {self._security.user or 'this user'}: {error}",
                "check metastore.user and metastore.password_file, or klist",
            ) from error
        return TBinaryProtocolAccelerated(
            transport,
            strictRead=True,  # Hive always sends the protocol version; a web server does not
            string_length_limit=_LONGEST_STRING,
            container_length_limit=_LONGEST_CONTAINER,
        )

    def _shake_hands(self) -> None:
        """Requests the version; otherwise only a long timeout would reveal a foreign server."""
        try:
            self.client.getVersion()
        except (TProtocolException, TApplicationException, UnicodeDecodeError) as error:
            raise self._stranger(str(error)) from error
        except TTransportException as error:
            if error.type == TTransportException.TIMED_OUT:
                raise self._stranger("no answer") from error
            raise  # closed by the peer: a metastore that is shutting down does so, too

    def _stranger(self, what: str) -> MetastoreFailure:
        return MetastoreFailure(
            f"{self.address} does not answer as a Hive metastore: {what}",
            "check the address, metastore.tls and metastore.authentication; one behind HTTP is not "
            "supported",
        )

    @property
    def usable(self) -> bool:
        """False once the peer has closed the connection.

        Between calls there is nothing to read, so readable data can only be the end of the stream.
        """
        poll = select.poll()  # unlike select, it supports any file descriptor
        try:
            poll.register(self._raw, select.POLLIN)
            return not poll.poll(0)
        except (OSError, ValueError):
            return False

    def shut_down(self) -> None:
        """Ends the call in flight, from another thread."""
        with contextlib.suppress(OSError):
            # Below TLS: a TLS shutdown would interfere with the thread that reads.
            socket.socket.shutdown(self._raw, socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._raw.close()


class Pool:
    """Open connections of one client; at most ``size`` idle ones are kept.

    Addresses are tried in order, beginning with the one that answered last.
    """

    def __init__(
        self, addresses: tuple[Address, ...], size: int, timeouts: Timeouts, security: Security
    ) -> None:
        self.addresses = addresses
        self._size = size
        self._timeouts = timeouts
        self._security = security
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False
        self.opened = 0
        """Connections opened so far; a restarted metastore always gets a new connection."""

    def take(self) -> Connection:
        """An idle connection that is still open, or a new one.

        Errors:
            OSError: no address accepts a connection; this is the last address's error.
            MetastoreFailure: a server answers but is not a metastore.
        """
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._open()
            if connection.usable:
                return connection
            connection.close()

    def give_back(self, connection: Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < self._size:
                self._idle.append(connection)
                return
        connection.close()

    def distrust(self, address: Address) -> None:
        """Moves the address of a lost call to the end and closes its idle connections."""
        with self._lock:
            lost = [c for c in self._idle if c.address == address]
            self._idle = [c for c in self._idle if c.address != address]
            self.addresses = (*(a for a in self.addresses if a != address), address)
        for connection in lost:
            connection.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()

    def _open(self) -> Connection:
        last: OSError | TTransportException | MetastoreFailure | None = None
        for address in self.addresses:
            try:
                connection = Connection(address, self._timeouts, self._security)
            except (OSError, TTransportException, MetastoreFailure) as error:
                last = error
                continue
            self._prefer(address)
            return connection
        assert last is not None  # parse_addresses gives at least one
        raise last

    def _prefer(self, address: Address) -> None:
        with self._lock:
            self.opened += 1
            self.addresses = (address, *(a for a in self.addresses if a != address))
