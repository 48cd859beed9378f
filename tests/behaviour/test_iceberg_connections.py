"""Clients of the HTTP door that are slow, silent or greedy are bounded, and keep nobody out."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from bridge.iceberg_rest.connections import ConnectionLimits
from bridge.iceberg_rest.door import DoorLimits
from bridge.kernel.types import BIGINT
from bridge.table.model import Column
from tests.support.iceberg_door import TABLE, OpenDoor, open_door
from tests.support.lake import Lake

HERE = frozenset({"127.0.0.1"})
SOON = ConnectionLimits(seconds=0)
"""A client must be done at once."""
LARGE = b'{"filter":{"type":"eq","term":"%s","value":1}}' % (b"x" * 300_000)
"""A request whose answer has 15 MB: each file's task repeats the filter."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(tmp_path, (Column("id", BIGINT),))
    for i in range(50):
        found.write(f"{'f' * 200}{i}.parquet", {"id": [i]})
    found.build()
    return found


@pytest.fixture
def clients() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(door: OpenDoor, stack: ExitStack, window: int = 0) -> socket.socket:
    client = stack.enter_context(socket.socket())
    if window:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    client.connect(("127.0.0.1", int(door.url.rpartition(":")[2])))
    client.settimeout(60)
    return client


def head(length: int, path: str = f"{TABLE}/plan", more: str = "") -> bytes:
    text = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}Content-Length: {length}\r\n\r\n"
    return text.encode()


def is_ended(client: socket.socket) -> bool:
    """Waits for the end of a connection that was not answered."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def is_open(client: socket.socket) -> bool:
    """Answered, or still awaited."""
    client.settimeout(0.0)
    try:
        return client.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    finally:
        client.settimeout(60)


def has_read(door: OpenDoor, port: int, least: int) -> bool:
    """Whether the door holds that many bytes of the client at this port."""
    return any(each._held > least and each.client[1] == port for each in door.connections)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("sent", [b"", b"GET /v1/config HTTP/1.1\r\nHost: ", head(99) + b"{"])
def test_silent_clients_keep_nobody_out(lake: Lake, clients: ExitStack, sent: bytes) -> None:
    with open_door(lake, connections=ConnectionLimits(most=8)) as door:
        held = []
        for _ in range(20):
            held.append(connect(door, clients))
            held[-1].sendall(sent)
        assert all(is_ended(each) for each in held[:12])
        assert len(door.files()) == 50  # whoever comes has a place
        assert is_ended(held[12]) and len(door.connections) <= 8
        assert is_open(held[-1])


def test_a_client_at_work_keeps_its_place(lake: Lake, clients: ExitStack) -> None:
    with open_door(lake, connections=ConnectionLimits(most=2)) as door:
        worker = connect(door, clients)
        with door.all_busy():
            worker.sendall(head(2) + b"{}")
            until(lambda: door.pool._work_queue.qsize() == 1)
            for _ in range(5):
                silent = connect(door, clients)
            until(lambda: len(door.connections) <= 2)
            assert is_open(silent)
        assert worker.recv(15) == b"HTTP/1.1 200 OK"


def test_the_head_of_a_request_must_come_in_time(lake: Lake, clients: ExitStack) -> None:
    with open_door(lake, connections=SOON) as door:
        assert is_ended(connect(door, clients))
        answered = connect(door, clients)
        drips = connect(door, clients)
        with pytest.raises(OSError):
            for byte in head(2) * 10_000:  # each byte wins no time
                drips.sendall(bytes([byte]))
        assert is_ended(answered)
    with open_door(lake, limits=DoorLimits(HERE, seconds=0.05)) as door:
        slow = connect(door, clients)
        slow.sendall(head(99) + b"{")
        assert b" 504 " in slow.recv(100)


@pytest.mark.parametrize("more", ["", "Connection: close\r\n"])
def test_a_client_that_reads_no_more_is_ended(
    lake: Lake, clients: ExitStack, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the connection would be kept or not."""
    with open_door(lake) as door:
        deaf = connect(door, clients, window=1 << 12)
        with door.all_busy():
            deaf.sendall(head(len(LARGE), more=more) + LARGE)
            until(lambda: door.pool._work_queue.qsize() == 1)
            (connection,) = door.connections
            monkeypatch.setattr(type(connection), "limits", SOON)
            connection.timeout_keep_alive = 0
        until(lambda: not door.connections)
        assert len(door.planned) == 1


def test_requests_that_are_half_sent_hold_bounded_memory(
    lake: Lake, clients: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    most = 1 << 20
    with open_door(lake, connections=ConnectionLimits(bytes=most)) as door:
        held = [connect(door, clients) for _ in range(40)]
        for client in held:
            client.sendall(head(10_000_000) + b" " * 200_000)
        until(lambda: sum(map(is_open, held)) <= most // 200_000)
        until(lambda: all(each._held > 200_000 for each in door.connections))
        assert sum(each._held for each in door.connections) <= most
        for _ in range(5):  # whoever sends last stays, once the others are read as far as they go
            last = connect(door, clients)
            last.sendall(head(10_000_000) + b" " * 200_000)
            until(partial(has_read, door, last.getsockname()[1], 200_000))
            assert is_open(last)
        assert sum(each._held for each in door.connections) <= most
        assert len(door.files()) == 50
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_answers_that_are_not_read_hold_bounded_memory(lake: Lake, clients: ExitStack) -> None:
    most = 40 << 20
    with open_door(lake, connections=ConnectionLimits(bytes=most)) as door:
        for number in range(12):
            deaf = connect(door, clients, window=1 << 12)
            deaf.sendall(head(len(LARGE)) + LARGE)
            until(lambda n=number: len(door.planned) > n)
        until(lambda: sum(each._held for each in door.connections) <= most)
        assert len(door.files()) == 50
        clients.close()


def test_a_body_beyond_the_limit_is_not_read(lake: Lake, clients: ExitStack) -> None:
    with open_door(lake, limits=DoorLimits(HERE, body=1000)) as door:
        told = connect(door, clients)
        told.sendall(head(10**12))
        assert b" 413 " in told.recv(100)
        chunks = connect(door, clients)
        chunked = head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        chunks.sendall(chunked + b"3e8\r\n" + b" " * 1000 + b"\r\n")
        assert is_open(chunks)
        chunks.sendall(b"1\r\n \r\n")
        assert b" 413 " in chunks.recv(100)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n",
        b"GET / HTTP/9.9\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        head(10**12).replace(b"1000000000000", b"9" * 5000),
        head(5).replace(b"Content-Length: 5", b"Content-Length: 5\r\nContent-Length: 6"),
        b"GET /v1/config HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade, close\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n",
    ],
)
def test_what_is_no_request_ends_its_connection_alone(
    lake: Lake, clients: ExitStack, sent: bytes
) -> None:
    with open_door(lake) as door:
        client = connect(door, clients)
        client.sendall(sent)
        while not is_ended(client):
            pass
        assert door.get("/healthz").status_code == 200
