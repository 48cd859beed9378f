"""Clients that hold connections, or ask and never read, keep nobody out."""

from __future__ import annotations

import errno
import resource
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from tests.support.planner_client import PlannerClient, _request
from tests.support.service import Service


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, serve: Callable[..., Service]) -> Service:
    monkeypatch.setattr("bridge.service.server._MAX_CONNECTIONS", 6)
    return serve()


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connected(service: Service, held: ExitStack, content: bytes = b"") -> socket.socket:
    found = held.enter_context(socket.create_connection(service.server.server_address[:2], 10.0))
    found.sendall(content)
    return found


def ended(connection: socket.socket) -> bool:
    connection.settimeout(30.0)
    try:
        return connection.recv(1) == b""
    except OSError:
        return True


def asked(service: Service, held: ExitStack) -> PlannerClient:
    """A client that asks for a plan and never reads the answer."""
    client = PlannerClient(service.endpoint)
    held.callback(client.close)
    client._transport.open()
    client._client.send_plan(_request("db", "t", "", "trino", "", None))
    return client


def test_connections_that_say_nothing_give_way_to_others(few: Service, held: ExitStack) -> None:
    silent = [connected(few, held, content) for content in (b"", b"\0", b"\0\0\1\0half") * 2]
    for _ in range(20):
        with PlannerClient(few.endpoint) as client:
            assert client.health().protocol == PROTOCOL
            assert client.plan("db", "t").handle
    assert ended(silent[0])


def test_the_longest_silent_goes_first(few: Service, held: ExitStack) -> None:
    one, *others = [connected(few, held) for _ in range(6)]
    wait_for(lambda: len(few.server._silent) == 6)
    with PlannerClient(few.endpoint) as client:
        client.health()
        assert ended(one)
        assert len(few.server._silent) >= len(others)


def test_a_call_under_way_is_not_ended(
    few: Service, held: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Semaphore(0), threading.Event()
    original = few.handler.health

    def health() -> ttypes.Health:
        begun.release()
        assert go_on.wait(60.0)
        return original()

    monkeypatch.setattr(few.handler, "health", health)
    answers: list[int] = []

    def ask() -> None:
        with PlannerClient(few.endpoint) as client:
            answers.append(client.health().protocol)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            assert begun.acquire(timeout=60.0)
        assert ended(connected(few, held))  # there is no place, since all six work
    finally:
        go_on.set()
        for thread in threads:
            thread.join(60.0)
    assert answers == [PROTOCOL] * 6


def test_two_hundred_clients_that_never_read(service: Service, held: ExitStack) -> None:
    for _ in range(200):
        asked(service, held)
    wait_for(lambda: len(service.handler.plans) == 200)
    with PlannerClient(service.endpoint) as client:
        for _ in range(5):
            plan = client.plan("db", "t")
            splits = [batch.splits for batch in client.splits(plan.handle)]
            assert sum(s.num_splits for s in splits if s is not None) == 12
            client.close_plan(plan.handle)


@pytest.mark.rule("31")
def test_without_file_descriptors_silent_connections_give_theirs(
    service: Service, held: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = connected(service, held)
    wait_for(lambda: len(service.server._silent) == 1)
    failures = [errno.EMFILE, errno.ENFILE]
    original = socketserver.TCPServer.get_request

    def get_request(self: Any) -> Any:
        if failures:
            raise OSError(failures.pop(), "none is left")
        return original(self)

    monkeypatch.setattr(socketserver.TCPServer, "get_request", get_request)
    with PlannerClient(service.endpoint) as client:
        assert client.health().protocol == PROTOCOL
    assert not failures and ended(silent)


def test_a_planner_may_open_more_files_than_a_shell_allows() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    told = (
        "import resource; from bridge.app.serve import allow_files;"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (200, {hard})); allow_files();"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    command = [sys.executable, "-c", told]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    assert answer.stdout.strip() == str((expected, hard))


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 60.0
    while not what():
        assert time.monotonic() < until, "it does not come about"
        time.sleep(0.01)
