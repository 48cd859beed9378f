"""Connections to a metastore: opened with a handshake, pooled, cut off when asked."""

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

from bridge.errors import InvalidConfiguration, MetastoreFailure
from bridge.metastore.partition_projection import PartitionProjectionClient
from bridge.metastore.security import Security

DEFAULT_PORT = 9083

# No metastore's answer comes near; a size beyond them is not one of a metastore.
_LONGEST_STRING = 64 * 1024 * 1024
_LONGEST_CONTAINER = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Address:
    """Where a metastore listens."""

    host: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"thrift://{host}:{self.port}"


def parse_addresses(uris: str) -> tuple[Address, ...]:
    """Reads ``thrift://host:port[,thrift://host:port]``; the scheme and the port may be left out.

    Errors:
        InvalidConfiguration: it cannot be read so.

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
        valid = port.isdigit() and 0 < int(port) < 65536 if port else rest == host
        if (separator and scheme != "thrift") or not host.strip("[]") or "/" in rest or not valid:
            raise InvalidConfiguration(
                f"not a metastore address: {text!r}", "thrift://host:9083, several parted by commas"
            )
        found.append(Address(host.strip("[]"), int(port) if port else DEFAULT_PORT))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds until a connection must be open, and without a byte of an answer to a call."""

    connect: float
    call: float


class Cancellation:
    """Cuts off the calls made under it, from another thread.

    A call that waits for a metastore holds its thread for as long as its timeout; shutting its
    socket down ends it at once.
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
    def holding(self, connection: Connection) -> Iterator[None]:
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
    """One open connection that has answered as a metastore.

    Errors:
        OSError, TTransportException: nobody answers.
        MetastoreFailure: what answers is not a metastore.
    """

    def __init__(self, address: Address, timeouts: Timeouts, security: Security) -> None:
        self.address = address
        self._security = security
        # Opened here and not by TSocket, which logs each failure as an error of the program.
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
                raise  # hung up
            raise MetastoreFailure(
                f"{self.address} refuses {self._security.user or 'this user'}: {error}",
                "check metastore.user and metastore.password_file, or klist",
            ) from error
        return TBinaryProtocolAccelerated(
            transport,
            strictRead=True,  # Hive always sends the protocol's version; a web server does not
            string_length_limit=_LONGEST_STRING,
            container_length_limit=_LONGEST_CONTAINER,
        )

    def _shake_hands(self) -> None:
        """Asks for its version: who is no metastore would else be noticed by a long timeout."""
        try:
            self.client.getVersion()
        except (TProtocolException, TApplicationException, UnicodeDecodeError) as error:
            raise self._stranger(str(error)) from error
        except TTransportException as error:
            if error.type == TTransportException.TIMED_OUT:
                raise self._stranger("no answer") from error
            raise  # hung up: a metastore that is being stopped does that too

    def _stranger(self, what: str) -> MetastoreFailure:
        return MetastoreFailure(
            f"{self.address} does not answer as a Hive metastore: {what}",
            "check the address, metastore.tls and metastore.authentication; one behind HTTP is not "
            "supported",
        )

    @property
    def usable(self) -> bool:
        """False once the other side has hung up.

        Between calls nothing is to be read: what is there can only be the end.
        """
        poll = select.poll()  # unlike select, it takes any number of open files
        try:
            poll.register(self._raw, select.POLLIN)
            return not poll.poll(0)
        except (OSError, ValueError):
            return False

    def shut_down(self) -> None:
        """Ends the call under way, from another thread."""
        with contextlib.suppress(OSError):
            # Below TLS: its own farewell would take the state from the thread that reads.
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
        """Connections opened so far; a metastore that was restarted is met by a new one."""

    def take(self) -> Connection:
        """An idle connection that is still open, or a new one.

        Errors:
            OSError: no address accepts a connection; the last one's error.
            MetastoreFailure: an address answers and is not a metastore.
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
        """A call there was lost: others come first, and what is open to it is closed."""
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
