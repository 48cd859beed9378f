"""The planner's service over a real socket: answers, refusals, and what it survives."""

from __future__ import annotations

import json
import logging
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from thrift.protocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport import TTransport

from bridge.engines.registry import engine
from bridge.kernel.errors import (
    BridgeError,
    ColumnNotFound,
    InvalidConfiguration,
    InvalidPredicate,
    InvalidRequest,
    LimitExceeded,
    PlanLost,
    PlannerUnavailable,
    PortInUse,
    UnsupportedTable,
)
from bridge.kernel.types import TRINO
from bridge.planner import dynamic_filter_wait
from bridge.service import handler, plans
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from bridge.service.handler import _semantics
from bridge.service.server import PlannerServer, check_loopback
from tests.support.planner_client import PlannerClient, decode_batch
from tests.support.service import Service


def at_least(column: str, value: int) -> str:
    """Trino's predicate ``column >= value``, as the connector sends it."""
    ranges = [{"low": value, "low_inclusive": True}]
    domain = {"column": column, "type": "integer", "null_allowed": False, "ranges": ranges}
    return json.dumps({"version": 1, "none": False, "domains": [domain]})


@pytest.fixture
def client(service: Service) -> Iterator[PlannerClient]:
    with PlannerClient(service.endpoint, timeout=20.0) as made:
        yield made


def paths(client: PlannerClient, handle: str) -> list[str]:
    found: list[str] = []
    for batch in client.splits(handle):
        if batch.splits is not None:
            found += batch.splits.paths.to_pylist()
    return found


def test_schemas_tables_and_a_table(client: PlannerClient) -> None:
    assert client.list_schemas() == ["db"]
    assert client.list_tables("db") == ["t"]
    table = client.get_table("DB", "T")
    assert [(c.name, c.engine_type, c.partition_key) for c in table.columns] == [
        ("x", "integer", False),
        ("p", "integer", True),
    ]
    assert table.row_count is None  # only a query that may scan it opens its index
    table = client.get_table("DB", "T", query_id="q")
    assert table.row_count == 12.0
    assert table.columns[0].low is None  # only who asks for statistics waits for them


def test_health_names_protocol_and_open_plans(client: PlannerClient, service: Service) -> None:
    client.plan("db", "t")
    health = client.health()
    assert (health.protocol, health.endpoint, health.open_plans) == (PROTOCOL, service.endpoint, 1)


def test_a_plan_from_start_to_close(client: PlannerClient, service: Service) -> None:
    plan = client.plan("db", "t")
    assert (plan.generation, plan.freshness, plan.endpoint) == (
        1,
        "live",
        service.endpoint,
    )
    assert len(set(paths(client, plan.handle))) == 12
    client.close_plan(plan.handle)
    client.close_plan(plan.handle)  # twice is once
    with pytest.raises(PlanLost):
        client.next_splits(plan.handle, 0)


def test_a_batch_is_repeatable_until_the_next_is_asked_for(client: PlannerClient) -> None:
    handle = client.plan("db", "t").handle
    first = client.next_splits(handle, 0, max_splits=2)
    again = client.next_splits(handle, 0, max_splits=5)
    assert first.splits is not None and again.splits is not None
    assert first.splits.paths.equals(again.splits.paths) and len(first.splits.paths) == 2
    client.next_splits(handle, first.next_token)
    for wrong in (0, 99, -1):
        with pytest.raises(InvalidRequest):
            client.next_splits(handle, wrong)
    with pytest.raises(InvalidRequest, match="max_splits"):
        client.next_splits(handle, 2, max_splits=0)


def test_a_table_is_estimated_before_the_optimiser_asks(client: PlannerClient) -> None:
    deadline = time.monotonic() + 30.0
    described = client.get_table("db", "t", query_id="q1")
    while described.columns[0].low is None and time.monotonic() < deadline:
        time.sleep(0.01)
        described = client.get_table("db", "t", query_id="q2")
    assert described.columns[0].low == client.statistics("db", "t").columns[0].low


def test_a_plan_brings_its_first_batch(client: PlannerClient) -> None:
    expected = sorted(paths(client, client.plan("db", "t").handle))
    for most in (1, 2, 1000):
        plan = client.plan("db", "t", first_splits=most)
        assert plan.first is not None and plan.first.split_count <= most
        batch = decode_batch(0, plan.first)
        if not batch.finished:  # until the next is asked for
            again = client.next_splits(plan.handle, 0).splits
            assert again is not None and batch.splits is not None
            assert again.paths.equals(batch.splits.paths)
        found: list[str] = []
        while True:
            found += [] if batch.splits is None else batch.splits.paths.to_pylist()
            if batch.finished:
                break
            batch = client.next_splits(plan.handle, batch.next_token)
        assert sorted(found) == expected
    assert client.plan("db", "t").first is None


def test_a_plan_whose_first_batch_is_the_last_is_closed(
    client: PlannerClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "_FIRST_WAIT", 60.0)
    nothing = json.dumps({"version": 1, "none": True})
    plan = client.plan("db", "t", nothing, first_splits=9)
    assert plan.first is not None and plan.first.finished and not plan.handle
    assert json.loads(plan.first.report)["table"] and client.health().open_plans == 0


def test_a_filter_is_awaited_longer_beside_other_queries(
    client: PlannerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "_CORES", 2)
    monkeypatch.setattr(dynamic_filter_wait, "_SECONDS_PER_FILE", 0.1)

    def wait(query: str) -> int:
        request = ttypes.PlanRequest("db", "t", engine="trino", protocol=PROTOCOL, query_id=query)
        request.dynamic_filter_columns = ["p"]
        return client.call("plan", request).dynamic_filter_wait_ms  # type: ignore[no-any-return]

    alone = wait("q1")
    assert alone == wait("q1") == wait("q2") > 0
    assert [wait(f"q{i}") for i in range(3, 9)][-1] == 4 * alone


def test_a_plan_that_awaits_a_dynamic_filter_brings_no_batch(client: PlannerClient) -> None:
    request = ttypes.PlanRequest("db", "t", engine="trino", protocol=PROTOCOL, first_splits=9)
    request.dynamic_filter_columns = ["p"]
    plan = client.call("plan", request)
    assert plan.first is None and plan.handle


def test_unknown_tables_engines_options_and_values(client: PlannerClient) -> None:
    with pytest.raises(InvalidRequest, match="engine 'presto'"):
        client.plan("db", "t", engine="presto")
    with pytest.raises(InvalidRequest, match="unknown plan option 'fast'"):
        client.plan("db", "t", options={"fast": "yes"})
    for name, value in (
        ("workers", "many"),
        ("workers", "0"),
        ("target_split_bytes", "-1"),
        ("max_files_per_split", "\u00b2"),
        ("pruning_enabled", "maybe"),
    ):
        with pytest.raises(InvalidRequest, match=name):
            client.plan("db", "t", options={name: value})
    with pytest.raises(InvalidConfiguration, match="freshness"):
        client.plan("db", "t", options={"freshness": "stale"})
    with pytest.raises(InvalidPredicate):
        client.plan("db", "t", "{")
    for schema, table in (("", "t"), ("db", "")):
        with pytest.raises(InvalidRequest, match="not a table"):
            client.plan(schema, table)
    assert client.health().open_plans == 0


def test_9_in_another_zone_timestamps_in_utc_are_not_read_as_they_lie() -> None:
    trino = engine("trino")
    zoned = _semantics(trino, {"timestamp_zone": "America/Los_Angeles"})
    assert not zoned.raw_timestamps and zoned.nan is TRINO.nan
    assert _semantics(trino, {}) == _semantics(trino, {"timestamp_zone": "UTC"}) == TRINO


def test_a_request_that_lacks_its_fields_is_the_clients_fault(client: PlannerClient) -> None:
    for method, arguments in (
        ("plan", (None,)),
        ("plan", (ttypes.PlanRequest(protocol=PROTOCOL),)),
        ("next_splits", (None, 0, 1, 1)),
        ("apply_dynamic_filter", ("h", None)),
        ("get_table", (None, "t", "trino", "", "", PROTOCOL)),
    ):
        with pytest.raises(InvalidRequest):
            client.call(method, *arguments)


def test_plans_expire(serve: Callable[..., Service]) -> None:
    service = serve(plan_ttl=0.05)
    with PlannerClient(service.endpoint) as client:
        handle = client.plan("db", "t").handle
        time.sleep(0.1)
        service.handler.plans.expire()
        with pytest.raises(PlanLost, match="no open plan") as lost:
            client.next_splits(handle, 0)
        assert lost.value.retryable and "run the query again" in lost.value.hint


def test_no_more_plans_than_allowed_even_at_once(serve: Callable[..., Service]) -> None:
    service = serve(max_plans=3)

    def ask(_: int) -> str:
        with PlannerClient(service.endpoint) as client:
            try:
                return client.plan("db", "t").handle
            except LimitExceeded:
                return ""

    with ThreadPoolExecutor(12) as pool:
        handles = [h for h in pool.map(ask, range(12)) if h]
    assert len(handles) == 3
    with PlannerClient(service.endpoint) as client:
        client.close_plan(handles[0])
        assert client.plan("db", "t").handle


def test_plans_that_nobody_asked_about_make_room(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that had gone before their plans were answered once blocked all others."""
    service = serve(max_plans=3)
    with PlannerClient(service.endpoint) as client:
        used, *abandoned = [client.plan("db", "t").handle for _ in range(3)]
        client.next_splits(used, 0)
        with pytest.raises(LimitExceeded):
            client.plan("db", "t")
        monkeypatch.setattr(plans, "_ABANDONED", 0.0)
        assert client.plan("db", "t").handle
        client.next_splits(used, 0)
        for handle in abandoned:
            with pytest.raises(PlanLost):
                client.next_splits(handle, 0)


def exchange(endpoint: str, content: bytes, *, answer: bool = True) -> bytes:
    host, port = endpoint.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(content)
        if not answer:
            return b""
        found = b""
        raw.settimeout(10)
        while len(found) < 4 or len(found) < 4 + struct.unpack("!i", found[:4])[0]:
            chunk = raw.recv(65536)
            if not chunk:
                break
            found += chunk
        return found


def framed(content: bytes) -> bytes:
    return struct.pack("!i", len(content)) + content


def message(name: str, body: bytes = b"\0", kind: int = TMessageType.CALL) -> bytes:
    out = TTransport.TMemoryBuffer()
    TBinaryProtocol.TBinaryProtocol(out).writeMessageBegin(name, kind, 7)
    return framed(out.getvalue() + body)


def refusal(answer: bytes) -> TApplicationException:
    reader = TBinaryProtocol.TBinaryProtocol(TTransport.TMemoryBuffer(answer[4:]))
    assert reader.readMessageBegin()[1] == TMessageType.EXCEPTION
    found = TApplicationException()
    found.read(reader)
    return found


LONG_LIST = b"\x0c\0\1" + b"\x0f\0\7\x0b" + struct.pack("!i", 2**31 - 1)
LONG_TEXT = b"\x0c\0\1" + b"\x0b\0\1" + struct.pack("!i", 2**31 - 1)


@pytest.mark.parametrize(
    "content",
    [
        framed(b"garbage that is no Thrift at all"),
        framed(b"\0"),
        framed(b"\xff" * 1000),
        framed(b"GET / HTTP/1.1\r\n\r\n"),
        message("plan", LONG_LIST),
        message("plan", LONG_TEXT),
        message("plan", b"\x0c" * 900),
        message("no_such_method"),
    ],
)
def test_garbage_is_refused_and_nobody_else_notices(
    content: bytes, client: PlannerClient, service: Service
) -> None:
    handle = client.plan("db", "t").handle
    refusal(exchange(service.endpoint, content))
    assert len(paths(client, handle)) == 12


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("!i", (1 << 20) + 1) + b"x" * 100,  # more than a frame may have
        struct.pack("!i", -1),
        struct.pack("!i", 0),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_an_impossible_frame_ends_its_connection_only(
    content: bytes, client: PlannerClient, service: Service
) -> None:
    client.health()
    assert exchange(service.endpoint, content) == b""
    assert client.health().protocol == PROTOCOL


@pytest.mark.parametrize("content", [b"", b"\0", framed(b"half")[:-2], b"\0\0\1\0"])
def test_a_client_that_hangs_up_midway_leaves_nothing(
    content: bytes, client: PlannerClient, service: Service
) -> None:
    client.health()
    exchange(service.endpoint, content, answer=False)
    assert client.health().protocol == PROTOCOL
    until = time.monotonic() + 5
    while len(service.server._connections) > 1 and time.monotonic() < until:
        time.sleep(0.01)
    assert len(service.server._connections) == 1


def test_an_answer_larger_than_a_frame_is_an_error_and_not_a_broken_stream(
    serve: Callable[..., Service],
) -> None:
    service = serve(max_frame_bytes=600)
    with PlannerClient(service.endpoint) as client:
        with pytest.raises(PlannerUnavailable, match="max_frame_bytes"):
            list(client.splits(client.plan("db", "t").handle))
        assert client.health().protocol == PROTOCOL


def test_sixteen_clients_at_once(service: Service) -> None:
    def work(number: int) -> int:
        with PlannerClient(service.endpoint) as client:
            total = 0
            for i in range(6):
                plan = client.plan("db", "t", query_id=f"q{number}-{i % 3}")
                total += len(paths(client, plan.handle))
                client.close_plan(plan.handle)
            return total

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(16))) == [72] * 16
    assert len(service.handler.plans) == 0


def test_a_plan_whose_row_filter_the_engine_cannot_apply_is_closed(
    client: PlannerClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise UnsupportedTable("a row filter that Trino cannot apply", "read another version")

    monkeypatch.setattr("bridge.service.handler.encode_row_filter", refuse)
    with pytest.raises(UnsupportedTable):
        client.plan("db", "t")
    assert len(service.handler.plans) == 0


def test_stopping_lets_a_call_under_way_answer(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, done = threading.Event(), threading.Event()
    catalog: Any = service.lake

    def slow() -> list[str]:
        started.set()
        time.sleep(0.5)
        return ["late"]

    monkeypatch.setattr(catalog, "schemas", slow)

    def ask() -> list[str]:
        with PlannerClient(service.endpoint) as client:
            found = client.list_schemas()
            done.set()
            return found

    idle = PlannerClient(service.endpoint)
    idle.health()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask)
        started.wait(5)
        assert service.server.stop(5.0)
        assert answer.result(5) == ["late"]
    with pytest.raises(PlannerUnavailable, match="no answer"):
        idle.health()


def test_a_server_that_never_served_stops() -> None:
    assert PlannerServer(("127.0.0.1", 0)).stop(1.0)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "::1", "example.org", ""])
def test_only_loopback(host: str) -> None:
    with pytest.raises(InvalidConfiguration, match=r"service\.host"):
        check_loopback(host)


def test_port_in_use_and_no_port() -> None:
    held = PlannerServer(("127.0.0.1", 0))
    try:
        with pytest.raises(PortInUse, match=str(held.server_address[1])):
            PlannerServer(("127.0.0.1", int(held.server_address[1])))
    finally:
        held.stop(0.1)
    with pytest.raises(InvalidConfiguration, match="99999"):
        PlannerServer(("127.0.0.1", 99999))


def test_what_nobody_foresaw_is_answered_and_logged(
    client: PlannerClient,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> list[str]:
        raise ZeroDivisionError("so be it")

    monkeypatch.setattr(service.lake, "schemas", broken)
    with caplog.at_level(logging.ERROR), pytest.raises(BridgeError, match="so be it") as error:
        client.list_schemas()
    assert error.value.code == "INTERNAL"
    assert "list_schemas failed" in caplog.text
    assert client.list_tables("db") == ["t"]


def test_failures_that_clients_may_not_have_waited_for_are_logged(
    client: PlannerClient,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> list[str]:
        raise UnsupportedTable("so be it", "as told")

    monkeypatch.setattr(service.lake, "schemas", broken)
    for late, expected in ((60.0, False), (0.0, True)):
        monkeypatch.setattr(handler, "_LATE_FAILURE", late)
        with pytest.raises(UnsupportedTable, match="so be it"):
            client.list_schemas()
        assert ("list_schemas failed after 0 s" in caplog.text) == expected


def test_a_predicate_and_a_later_filter_prune(client: PlannerClient) -> None:
    handle = client.plan("db", "t", at_least("x", 1)).handle
    client.apply_dynamic_filter(handle, at_least("p", 2))
    assert {"/".join(p.split("/")[-2:]) for p in paths(client, handle)} == {
        f"p={p}/{x}.parquet" for p in (2, 3) for x in (1, 2)
    }
    with pytest.raises(ColumnNotFound, match="nope"):
        client.apply_dynamic_filter(handle, at_least("nope", 1))
    with pytest.raises(ColumnNotFound, match="nope"):
        client.plan("db", "t", at_least("nope", 1))
    with pytest.raises(PlanLost):
        client.apply_dynamic_filter("1-2/3", at_least("x", 1))


def test_connections_for_which_no_thread_is_to_be_had_are_given_back(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a machine short of threads for a moment would use up the places of all connections."""
    server, refused = service.server, []

    def start(self: threading.Thread) -> None:
        refused.append(self)
        raise RuntimeError("can't start new thread")

    before = server._slots._value
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", start)
        for number in range(3):
            socket.create_connection(server.server_address[:2], 10.0).close()
            until = time.monotonic() + 30
            while len(refused) <= number and time.monotonic() < until:
                time.sleep(0.01)
    until = time.monotonic() + 30
    while (server._slots._value, server._connections) != (before, set()):
        assert time.monotonic() < until, "places are lost"
        time.sleep(0.01)


def test_sixty_four_scans_at_once_each_see_their_own_files(service: Service) -> None:
    def scan(number: int) -> list[str]:
        with PlannerClient(service.endpoint, timeout=60.0) as client:
            found = []
            for round in range(3):
                where = at_least("x", (number + round) % 4)
                plan = client.plan("db", "t", where, query_id=f"q{number}-{round}")
                found.append(sorted(paths(client, plan.handle)))
                client.close_plan(plan.handle)
        return found

    alone = [scan(number) for number in range(4)]
    assert sorted(map(len, alone[0])) == [4, 8, 12]
    with ThreadPoolExecutor(64) as pool:
        together = list(pool.map(scan, range(64)))
    assert together == [alone[number % 4] for number in range(64)]
    assert len(service.handler.plans) == 0
