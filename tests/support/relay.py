"""A relay of TCP connections that can hold back or lose what passes through them."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self


class Between:
    """Accepts connections, and makes one to a server for each.

    Attributes:
        port: on which it listens.
        connections: how many were made.
    """

    def __init__(self, to: tuple[str, int]) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections = 0
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        for each in self._sockets:
            each.close()

    def serve(self, client: socket.socket, server: socket.socket) -> None:
        """Starts to pass on what the two ends of a connection send."""
        raise NotImplementedError

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._to)
                except OSError:  # it is down for a while
                    client.close()
                    continue
                self.connections += 1
                self._sockets += client, server
                self.serve(client, server)


class Relay(Between):
    """Passes connections on to a server; see `hold` and `lose`."""

    def __init__(self, to: tuple[str, int]) -> None:
        self._passing = _set()
        self._losing: tuple[bytes, bool] | None = None
        super().__init__(to)

    def hold(self) -> threading.Event:
        """What arrives on the connections made so far waits until the returned event is set."""
        held, self._passing = self._passing, _set()
        held.clear()
        return held

    def lose(self, text: bytes, *, answered: bool) -> None:
        """The next connection on which a request with this text is made ends without an answer.

        Args:
            answered: the server has answered by then; else the request does not reach it.
        """
        self._losing = text, answered

    def _pass(self, source: socket.socket, target: socket.socket, passing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                passing.wait()
                losing = self._losing
                if losing is not None and losing[0] in data:
                    self._losing = None
                    if losing[1]:
                        target.sendall(data)
                        target.recv(1, socket.MSG_PEEK)  # the answer has begun
                    for end in (source, target):
                        end.shutdown(socket.SHUT_RDWR)
                    return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve(self, client: socket.socket, server: socket.socket) -> None:
        for ends in ((client, server), (server, client)):
            work = threading.Thread(target=self._pass, args=(*ends, self._passing))
            work.daemon = True
            work.start()


def _set() -> threading.Event:
    event = threading.Event()
    event.set()
    return event
