"""A connection to HiveServer2, through PyHive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from thrift.transport.TTransport import TTransportException

from bridge.errors import EnvironmentMissing, ExternalError, InvalidRequest

AUTHENTICATIONS = ("NOSASL", "NONE")


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
        authentication: str = "NOSASL",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal():
            raise InvalidRequest(
                f"not an address: {address!r}", "give host:port, mostly port 10000"
            )
        try:
            from pyhive import hive
        except ImportError as error:
            raise EnvironmentMissing(
                "the Python package pyhive is not installed", "pip install 'skipbridge[hive]'"
            ) from error
        try:
            self._connection = hive.connect(
                host=host,
                port=int(port),
                username="skipbridge",
                auth=authentication,
                configuration=dict(settings or {}),
            )
        except (TTransportException, OSError, EOFError) as error:
            raise HiveUnavailable(
                f"no HiveServer2 answers at {address} ({authentication}): {error}",
                "is the address right, and hive.server2.authentication there the same?",
            ) from error

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
