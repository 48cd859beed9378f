"""A connection to HiveServer2, through PyHive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import (
    TBufferedTransport,
    TSaslClientTransport,
    TTransportBase,
    TTransportException,
)

from bridge.kernel.config import parse_address
from bridge.kernel.errors import EnvironmentMissing, ExternalError

# NONE, Hive's default, is SASL with a user's name that nobody checks.
AUTHENTICATIONS = ("NONE", "NOSASL")
_USER = "skipbridge"
# Two sides that authenticate in different ways may wait for each other without end.
_OPEN_TIMEOUT_MS = 20_000


class HiveUnavailable(ExternalError):
    """HiveServer2 does not answer, or not to this kind of authentication."""

    code = "HIVE_UNAVAILABLE"
    retryable = True


class HiveSession:
    """A session with HiveServer2; a context manager that closes it.

    Args:
        address: ``host:port``.
        authentication: what the server's ``hive.server2.authentication`` says: ``NOSASL`` or
            ``NONE``.
        settings: of the session, such as ``hive.fetch.task.conversion``.

    Errors:
        InvalidRequest: not an address.
        EnvironmentMissing: PyHive is not installed.
        HiveUnavailable: nobody answers there.
    """

    def __init__(
        self,
        address: str,
        authentication: str = "NONE",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        host, port = parse_address(address, "host:port, mostly port 10000")
        try:
            from pyhive import hive
        except ImportError as error:
            raise EnvironmentMissing(
                "the Python package pyhive is not installed", "pip install 'skipbridge[hive]'"
            ) from error
        socket = TSocket(host, port)
        socket.setTimeout(_OPEN_TIMEOUT_MS)
        try:
            self._connection = hive.connect(
                username=_USER,
                configuration=dict(settings or {}),
                thrift_transport=_transport(socket, host, authentication),
            )
        except (TTransportException, OSError, EOFError) as error:
            socket.close()
            raise HiveUnavailable(
                f"no HiveServer2 answers at {address} with authentication {authentication}: "
                f"{getattr(error, 'message', None) or error}",
                "is the address right, and hive.server2.authentication there the same?",
            ) from error
        socket.setTimeout(None)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Runs one statement to its end; its rows, or none if it has no result.

        Errors:
            pyhive.exc.Error: what Hive says of the statement.
        """
        cursor = self._connection.cursor()
        try:
            cursor.execute(sql)
            return [tuple(row) for row in cursor.fetchall()] if cursor.description else []
        finally:
            cursor.close()

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> HiveSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _transport(socket: TSocket, host: str, authentication: str) -> TTransportBase:
    if authentication == "NOSASL":
        return TBufferedTransport(socket)
    return TSaslClientTransport(socket, host, "hive", "PLAIN", username=_USER, password=_USER)
