"""Connections of the door: bounded in number, in bytes, and in how long a client may be silent.

Beyond a bound the connection ends whose client has been silent longest, so clients that only hold
connections, send slowly or read nothing keep nobody out. uvicorn itself waits for ever for the head
of a request and for a client that reads no more, and beyond its limit it refuses everybody.
"""

from __future__ import annotations

import asyncio
import itertools
import resource
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

from uvicorn.protocols.http.h11_impl import H11Protocol

_MOST = 1024
_SHARE = 4
"""Of the descriptors: the Thrift port has as many, and plans need some as well."""
_LARGE = 64 << 10
"""Bytes from which a connection counts among those that hold memory."""
_moves = itertools.count()
"""A clock may stand still while clients come."""


def _most() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = 0 < soft < _SHARE * _MOST  # RLIM_INFINITY is negative
    return max(2, soft // _SHARE) if few else _MOST


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What all connections together may hold.

    Attributes:
        most: connections.
        bytes: of requests that are half read, and of answers that are not yet sent.
        seconds: for the head of a request to come, and for a client to read on.
    """

    most: int = field(default_factory=_most)
    bytes: int = 256 << 20
    seconds: int = 30


class Connection(H11Protocol):
    """One connection. While its answer is being made it awaits no client, and stays.

    ``timeout_keep_alive_task`` is the clock of uvicorn: it runs from the first moment, and from
    each answer to the end of the next request's head, whether bytes come or not.
    """

    limits: ConnectionLimits

    @classmethod
    def within(cls, limits: ConnectionLimits) -> type[Connection]:
        """The class of connections that share these limits."""
        return type(cls.__name__, (cls,), {"limits": limits})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._moved = next(_moves)
        self._half_read = 0
        self._unsent = 0
        super().connection_made(transport)
        self._start_clock()
        if len(self.connections) > self.limits.most and not self._end_a_silent_one():
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._moved = next(_moves)
        self.conn.receive_data(data)
        self.handle_events()
        self._half_read = self._half_read + len(data) if self._awaits_client else 0
        self._make_room()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._make_room()

    def on_response_complete(self) -> None:
        self._moved = next(_moves)
        self._half_read = self._unsent = 0
        super().on_response_complete()
        if self.timeout_keep_alive_task is None and self._awaits_client:  # uvicorn closes it
            self._start_clock()

    def shutdown(self) -> None:
        if self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete:
            self.transport.abort()  # it would not be answered
        else:
            super().shutdown()

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if self not in self.connections:
            return
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        if not self._unsent:
            super().timeout_keep_alive_handler()
        elif not before or self._unsent < before:
            self._start_clock()
        else:
            self.transport.abort()

    def _start_clock(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            self.limits.seconds, self.timeout_keep_alive_handler
        )

    @property
    def _awaits_client(self) -> bool:
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    @property
    def _held(self) -> int:
        return self._half_read + self.transport.get_write_buffer_size()

    @property
    def _others(self) -> Iterable[Connection]:
        return (cast(Connection, each) for each in self.connections if each is not self)

    def _make_room(self) -> None:
        if self._held <= _LARGE:
            return
        while self._held + sum(each._held for each in self._others) > self.limits.bytes:
            if not self._end_a_silent_one(_LARGE):
                return

    def _end_a_silent_one(self, least: int = -1) -> bool:
        """Ends another connection that has awaited its client longest; False if there is none.

        Args:
            least: bytes beyond which a connection is worth it.
        """
        silent = (each for each in self._others if each._awaits_client and each._held > least)
        found = min(silent, key=lambda each: each._moved, default=None)
        if found is None:
            return False
        self.connections.discard(found)
        found.transport.abort()
        return True
