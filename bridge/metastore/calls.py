"""Makes calls to a metastore: takes a pooled connection, and retries where that helps.

After a lost connection, the call is retried on a new one, at another address if necessary, with
growing pauses until a deadline. A call that the metastore's database rolled back because of a
conflict is retried, too. A call that must not happen twice is retried only if it was never sent.
"""

from __future__ import annotations

import re
from concurrent.futures import CancelledError
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TTransport import TTransportException

from bridge.kernel.errors import MetastoreFailure, MetastoreUnavailable
from bridge.kernel.retry import Backoff
from bridge.metastore._gen import ttypes
from bridge.metastore.connection import Cancellation, Connection, Pool, Timeouts, parse_addresses
from bridge.metastore.security import OPEN, Security


@dataclass(frozen=True, slots=True)
class MetastoreSettings:
    """Controls how calls are made; all times in seconds.

    Attributes:
        connect_timeout: to open a connection and to receive the first answer on it.
        call_timeout: a connection that sends no byte of an answer for this long counts as lost.
        retry_deadline: no attempt starts later than this; 0 disables retries.
        retry_pause, retry_longest_pause: the first and the longest pause between attempts.
        idle_connections: maximum number of idle connections kept open.
        security: TLS and SASL.
    """

    connect_timeout: float = 5.0
    call_timeout: float = 60.0
    retry_deadline: float = 30.0
    retry_pause: float = 0.1
    retry_longest_pause: float = 5.0
    idle_connections: int = 8
    security: Security = OPEN


class _Lost(Exception):
    """The connection was lost; ``sent`` says whether the server may have executed the call."""

    def __init__(self, cause: Exception, sent: bool) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.sent = sent


class RolledBack(MetastoreFailure):
    """The metastore's database rolled back for another transaction; a retry may succeed."""


_NO_FILE_SYSTEM = re.compile(
    r"ClassNotFoundException: (Class )?[\w.]+FileSystem\b|No FileSystem for scheme"
)
# Messages of Derby, MySQL, PostgreSQL, SQL Server and Oracle; SQLSTATE 40xxx where given.
_CONTENTION = re.compile(
    r"deadlock|selected victim|lock could not be obtained|lock wait timeout|could not serialize"
    r"|\b(?:40001|40P01|40XL1|40XL2)\b|ORA-(?:00060|08177)",
    re.IGNORECASE,
)


class MethodUnknown(MetastoreFailure):
    """The metastore is too old or too new for a method."""


class Caller:
    """Calls methods by name; a context manager that closes its connections.

    Args:
        uris: ``thrift://host:port[,thrift://host:port]``; if one fails, the next is tried.

    Errors (of every call):
        MetastoreUnavailable: no address answers.
        MetastoreFailure: the server raised an exception, or is not a metastore.
    """

    def __init__(self, uris: str, settings: MetastoreSettings | None = None) -> None:
        self.uris = uris
        self.settings = settings if settings is not None else MetastoreSettings()
        s = self.settings
        self._pool = Pool(
            parse_addresses(uris),
            s.idle_connections,
            Timeouts(s.connect_timeout, s.call_timeout),
            s.security,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._pool.close()

    @property
    def connections_opened(self) -> int:
        """Number of connections opened so far."""
        return self._pool.opened

    def call(
        self,
        method: str,
        *arguments: object,
        repeatable: bool = True,
        cancellation: Cancellation | None = None,
    ) -> Any:
        """Makes one call.

        Args:
            repeatable: the call may be executed twice.

        Errors:
            concurrent.futures.CancelledError: the call was cancelled.
            The exceptions that the service declares, except MetaException.
        """
        held = cancellation if cancellation is not None else Cancellation()
        backoff = Backoff(
            self.settings.retry_pause,
            longest=self.settings.retry_longest_pause,
            deadline=self.settings.retry_deadline,
            stop=held.event,
        )
        while True:
            try:
                return self._attempt(method, arguments, held)
            except _Lost as lost:
                if held.cancelled:
                    raise CancelledError from lost
                if (lost.sent and not repeatable) or not backoff.pause():
                    raise self._unavailable(lost) from lost.cause
            except RolledBack:
                if held.cancelled or not repeatable or not backoff.pause():
                    raise

    def _attempt(self, method: str, arguments: tuple[object, ...], held: Cancellation) -> Any:
        if held.cancelled:
            raise CancelledError
        try:
            connection = self._pool.take()
        except (OSError, TTransportException) as error:
            raise _Lost(error, sent=False) from error
        in_step = False  # a connection with an unread answer cannot be reused
        try:
            with held.hold(connection):
                answer = getattr(connection.client, method)(*arguments)
            in_step = True
        except (OSError, TTransportException) as error:
            if not held.cancelled:
                self._pool.distrust(connection.address)
            raise _Lost(error, sent=True) from error
        except TApplicationException as error:
            in_step = error.type != TApplicationException.MISSING_RESULT
            raise self._not_understood(connection, method, error) from error
        except TProtocolException as error:
            raise self.failure(method, error) from error
        except ttypes.MetaException as error:
            in_step = True
            raise self.failure(method, error) from error
        except TException:
            in_step = True
            raise
        finally:
            if in_step:
                self._pool.give_back(connection)
            else:
                connection.close()
        return answer

    # errors

    def _unavailable(self, lost: _Lost) -> MetastoreUnavailable:
        addresses = ", ".join(str(a) for a in parse_addresses(self.uris))
        cause = getattr(lost.cause, "strerror", None) or lost.cause
        return MetastoreUnavailable(
            f"no metastore answers at {addresses}: {cause}",
            "start one with `skipbridge metastore start`, or set the address of your own "
            "(metastore.uri); if it closes the connection, it may require metastore.tls or "
            "metastore.authentication",
        )

    def failure(self, method: str, error: Exception) -> MetastoreFailure:
        """The server's exception as one sentence."""
        if isinstance(error, MetastoreFailure):
            return error
        whole = getattr(error, "message", None) or str(error) or type(error).__name__
        sentence = f"the metastore could not execute {method}: {_shortened(whole)}"
        if _CONTENTION.search(whole):
            return RolledBack(sentence, "others hold its database's locks: try again")
        if _NO_FILE_SYSTEM.search(whole):
            return MetastoreFailure(
                sentence, "give the metastore Hadoop's client of that store (docs/how-to/s3.md)"
            )
        return MetastoreFailure(sentence, "see its log")

    def _not_understood(
        self, connection: Connection, method: str, error: TApplicationException
    ) -> MetastoreFailure:
        if error.type == TApplicationException.UNKNOWN_METHOD:
            return MethodUnknown(
                f"the metastore at {connection.address} does not support {method}",
                "Hive's metastore from 2.3 to 4.0 is supported",
            )
        return self.failure(method, error)


def _shortened(text: str) -> str:
    """The start and the end: SQL in between may fill pages, and the root cause comes last."""
    return text if len(text) <= 600 else f"{text[:300]} ... {text[-250:]}"
