"""An HTTP proxy before an object store: counts requests, delays answers, and fails some of them.

It runs in a process of its own, so that it shares no interpreter lock with what is measured. It
serves many connections at once; each answer is held back by the latency from when the store gave
it. Faults are drawn from a seed, in the order in which requests arrive.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import re
from collections import Counter, deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any
from urllib.parse import unquote

FAULTS = ("503", "500", "reset", "cut", "lost", "hang", "stall", "expired", "flip")
"""``lost``: the store does what is asked, and its answer does not arrive. ``hang``: it never
answers. ``stall``: it gives half of its answer, and then nothing more. ``flip``: a bit of the
answer's body is another one; only for what has a checksum. ``expired``: the store says that the
credentials are.
"""
_PASSED_ON = ("cut", "stall", "lost", "flip")
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_ERROR = (
    "HTTP/1.1 {status} {words}\r\nContent-Type: application/xml\r\n"
    "Content-Length: {length}\r\n\r\n{body}"
)
_SLOW_DOWN = (
    "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
_EXPIRED = "<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>"
_INTERNAL = "<Error><Code>InternalError</Code><Message>We encountered an error.</Message></Error>"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How the proxy treats requests.

    Attributes:
        latency: seconds by which each answer is delayed.
        rate: the share of requests that fail.
        faults: which failures, of `FAULTS`.
        only: a pattern of "METHOD key" (LIST for listings) that a request must match to fail.
        seed: of the failures.
    """

    latency: float = 0.0
    rate: float = 0.0
    faults: tuple[str, ...] = ("503", "500", "reset", "cut", "lost")
    only: str = ""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """The requests since the last `SlowStore.take`.

    Attributes:
        requests: how often each (method, key) was asked for; listings are LIST of a prefix.
        failed: how many of them the proxy failed.
        most: requests that waited for an answer at one moment.
    """

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: int = 0
    most: int = 0

    def count(self, *methods: str, part: str = "") -> int:
        """Requests of these methods (all if none is given) whose key holds ``part``."""
        return sum(
            n
            for (m, key), n in self.requests.items()
            if (not methods or m in methods) and part in key
        )


class SlowStore:
    """A running proxy. As a context manager it stops.

    Attributes:
        port: where it listens, on loopback.
        pid: of its process.
    """

    def __init__(self, upstream: int, behaviour: Behaviour | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        self._control, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, upstream, behaviour or Behaviour()), daemon=True
        )
        self._process.start()
        theirs.close()
        self.port: int = self._control.recv()
        self.pid = self._process.pid or 0

    def behave(self, behaviour: Behaviour) -> None:
        """Changes what it does with requests that arrive from now on."""
        self._ask(behaviour)

    def take(self) -> Seen:
        """What it has seen; the count starts anew."""
        found: Seen = self._ask(None)
        return found

    def _ask(self, what: Behaviour | None) -> Any:
        self._control.send(what)
        return self._control.recv()

    def __enter__(self) -> SlowStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._control.close()
        self._process.join(5)
        self._process.terminate()


def _serve(control: Connection, upstream: int, behaviour: Behaviour) -> None:
    asyncio.run(_Proxy(control, upstream, behaviour).run())


class _Proxy:
    def __init__(self, control: Connection, upstream: int, behaviour: Behaviour) -> None:
        self.control, self.upstream = control, upstream
        self.waiting = 0
        self.behave(behaviour)
        self._begin()

    def behave(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self._random = random.Random(behaviour.seed)
        self._only = re.compile(behaviour.only)

    def _begin(self) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.failed = self.most = 0

    async def run(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._ended = self.loop.create_future()
        server = await self.loop.create_server(lambda: _Client(self), "127.0.0.1", 0, backlog=512)
        self.control.send(server.sockets[0].getsockname()[1])
        self.loop.add_reader(self.control.fileno(), self._told)
        await self._ended

    def _told(self) -> None:
        try:
            told = self.control.recv()
        except (EOFError, OSError):
            self.loop.remove_reader(self.control.fileno())
            self._ended.set_result(None)
            return
        if told is None:
            self.control.send(Seen(self.requests, self.failed, self.most))
            self._begin()
            return
        self.behave(told)
        self.control.send(True)

    def asked(self, line: bytes) -> str | None:
        """Counts a request by its first line; returns how it fails, or None."""
        method, target, _ = line.decode("latin-1").split(" ", 2)
        path, _, query = target.partition("?")
        key = unquote(path).partition("/")[2].partition("/")[2]
        if method == "GET" and not key:
            prefix = re.search(r"(?:^|&)prefix=([^&]*)", query)
            method, key = "LIST", unquote(prefix[1]) if prefix else ""
        self.requests[method, key] += 1
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        behaviour = self.behaviour
        if not behaviour.rate or not self._only.search(f"{method} {key}"):
            return None
        if self._random.random() >= behaviour.rate:
            return None
        self.failed += 1
        return self._random.choice(behaviour.faults)


class _Client(asyncio.Protocol):
    """One connection of a client, with one to the store behind it."""

    def __init__(self, proxy: _Proxy) -> None:
        self._proxy = proxy
        self._in = b""
        self._body = 0
        self._swallowed = False
        self._fault: str | None = None
        self._pending = 0
        self._behind: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._answers: deque[tuple[float, bytes | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        task = self._proxy.loop.create_connection(
            lambda: _Behind(self), "127.0.0.1", self._proxy.upstream
        )
        self._connecting = self._proxy.loop.create_task(task)
        self._connecting.add_done_callback(self._connected)

    def _connected(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled() or task.exception() is not None:
            self._transport.abort()
            return
        self._behind = task.result()[0]
        for part in self._unsent:
            self._behind.write(part)
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        self._in += data
        while self._in:
            if self._body:
                part, self._in = self._in[: self._body], self._in[self._body :]
                self._body -= len(part)
                self._forward(part)
                continue
            end = self._in.find(b"\r\n\r\n")
            if end < 0:
                return
            head, self._in = self._in[: end + 4], self._in[end + 4 :]
            length = _LENGTH.search(head)
            self._body = int(length[1]) if length else 0
            self._request(head)

    def _request(self, head: bytes) -> None:
        fault = self._proxy.asked(head.partition(b"\r\n")[0])
        self._pending += 1
        self._swallowed = fault is not None and fault not in _PASSED_ON
        self._fault = fault
        match fault:
            case "503":
                self._later(_error(503, "Slow Down", _SLOW_DOWN))
            case "500":
                self._later(_error(500, "Internal Server Error", _INTERNAL))
            case "reset":
                self._later(None)
            case "expired":
                self._later(_error(403, "Forbidden", _EXPIRED))
            case None | "cut" | "stall" | "lost" | "flip":
                self._forward(head)

    def _forward(self, part: bytes) -> None:
        if self._swallowed:
            return
        if self._behind is None:
            self._unsent.append(part)
        else:
            self._behind.write(part)

    def answered(self, data: bytes) -> None:
        """Part of an answer of the store."""
        if self._fault in ("cut", "stall"):
            end = data.find(b"\r\n\r\n")
            self._later(data[: end + 4 + (len(data) - end - 4) // 2])
            if self._fault == "cut":
                self._later(None)
            self._fault = "over"
        elif self._fault == "lost":
            self._fault = "over"
            self._later(None)
        elif self._fault == "flip":
            begin = data.find(b"\r\n\r\n") + 4
            if len(data) > begin >= 4:
                at = (begin + len(data)) // 2
                data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
                self._fault = None
            self._later(data)
        elif self._fault is None:
            self._later(data)

    def _later(self, data: bytes | None) -> None:
        """Sends bytes when their time has come; None resets the connection."""
        loop = self._proxy.loop
        self._answers.append((loop.time() + self._proxy.behaviour.latency, data))
        if self._timer is None:
            self._timer = loop.call_at(self._answers[0][0], self._send)

    def _send(self) -> None:
        self._timer = None
        while self._answers and self._answers[0][0] <= self._proxy.loop.time():
            _, data = self._answers.popleft()
            if data is None:
                self._transport.abort()
                return
            self._proxy.waiting -= self._pending
            self._pending = 0
            self._transport.write(data)
        if self._answers:
            self._timer = self._proxy.loop.call_at(self._answers[0][0], self._send)

    def behind_lost(self) -> None:
        self._later(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._proxy.waiting -= self._pending
        self._pending = 0
        if self._timer is not None:
            self._timer.cancel()
        if self._behind is not None:
            self._behind.abort()
        else:
            self._connecting.cancel()


class _Behind(asyncio.Protocol):
    def __init__(self, client: _Client) -> None:
        self._client = client

    def data_received(self, data: bytes) -> None:
        self._client.answered(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._client.behind_lost()


def _error(status: int, words: str, body: str) -> bytes:
    return _ERROR.format(status=status, words=words, length=len(body), body=body).encode()
