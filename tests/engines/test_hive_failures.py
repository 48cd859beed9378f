"""Whatever happens to the planner, a query of Hive's is right: it reads more files, never fewer
rows.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.kernel.errors import BridgeError, Category
from bridge.metastore.client import MetastoreClient
from bridge.servers.process import LOOPBACK, choose_port
from bridge.service._gen import ttypes
from bridge.service.codec import failure_of
from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_sales import write_sales
from tests.engines.hive_stack import (
    FETCH,
    TEZ,
    Answer,
    HookedHive,
    PlannerUnderTest,
    Select,
    age,
    hooked_hive,
    naming,
    register,
)

NAME = TableName("trouble", "sales")
SELECTIVE = f"SELECT k FROM {NAME} WHERE k = 77"
TIMEOUT = "skipbridge.planner.timeout.ms"


@pytest.fixture(scope="module")
def both(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HookedHive, PlannerUnderTest]]:
    root = tmp_path_factory.mktemp("trouble") / "table"
    table, partitions = write_sales(root, NAME)
    age(root)
    with hooked_hive(hiveserver2, tmp_path_factory.mktemp("cache")) as running:
        hive = running[0]
        hive.forget(NAME.schema)
        register(hive.metastore_uri, NAME, table, partitions)
        hive.build_index(NAME)
        yield running


@pytest.fixture
def hive(both: tuple[HookedHive, PlannerUnderTest]) -> HookedHive:
    return both[0]


@pytest.fixture
def planner(both: tuple[HookedHive, PlannerUnderTest]) -> Iterator[PlannerUnderTest]:
    """Sound before and after each test."""
    running = both[1]
    running.asked.clear()
    yield running
    running.answer = None


@pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])
def test_the_hook_is_really_in_the_way(
    hive: HookedHive, planner: PlannerUnderTest, settings: dict[str, str]
) -> None:
    """A planner that leaves out every file gives no row: so what others test is really decided."""
    sql = f"SELECT k FROM {NAME} WHERE k < 1000"
    assert len(hive.ask(sql, settings).rows) == 240
    with MetastoreClient(hive.metastore_uri) as client:
        root = Path(client.get_table(NAME.schema, NAME.table).sd.location.removeprefix("file:"))
    files = [f for f in root.rglob("*") if f.is_file() and not f.name.startswith(("_", "."))]
    planner.answer = lambda own, request: naming(files, 0)
    wrong = hive.ask(sql, settings)
    assert wrong.rows == [] and (wrong.read, wrong.listed) == (0, 12)


def test_a_planner_is_asked_once_a_query(hive: HookedHive, planner: PlannerUnderTest) -> None:
    assert hive.ask(SELECTIVE).read == 1
    assert len(planner.asked) == 1  # three partitions, three listings
    assert planner.asked[0].projected_columns == ["k"]
    assert hive.ask(SELECTIVE).read == 1
    assert len(planner.asked) == 2


def reads_all(answer: Answer) -> bool:
    """Without an answer about tables, plans stay as they are, and nothing of ours lists files."""
    return answer.read == 0 == answer.listed


def test_nobody_answers(hive: HookedHive) -> None:
    """All files, one warning with the remedy, and no second call until half a minute has passed."""
    absent = {**FETCH, "skipbridge.planner": f"{LOOPBACK}:{choose_port(0, 'nobody')}"}
    first, second = (hive.ask(SELECTIVE, absent) for _ in range(2))
    assert first.rows == second.rows == [(77,)]
    assert reads_all(first) and reads_all(second)
    assert len(first.warnings) == 1 and "skipbridge serve" in first.warnings[0]
    assert second.warnings == []


@contextlib.contextmanager
def _slow(planner: PlannerUnderTest) -> Iterator[None]:
    late = threading.Event()

    def slow(own: Select, request: ttypes.PlanRequest) -> ttypes.SkippableFiles:
        late.wait(30.0)
        return own(request)

    planner.answer = slow
    try:
        yield
    finally:
        late.set()
        planner.answer = None


def test_a_slow_planner_is_not_waited_for(hive: HookedHive, planner: PlannerUnderTest) -> None:
    # Another spelling of the address, so that no other test finds it closed.
    settings = {
        **FETCH,
        TIMEOUT: "300",
        "skipbridge.planner": hive.planner.replace("127.0.0.1", "127.0.0.2"),
    }
    with _slow(planner), _forwarded(hive.planner, settings["skipbridge.planner"]):
        answer = hive.ask(SELECTIVE, settings)
    assert answer.rows == [(77,)] and answer.read == 12
    assert len(answer.warnings) == 1 and TIMEOUT in answer.warnings[0]


@pytest.mark.rule("42")
def test_42_a_session_that_waits_less_closes_the_planner_to_itself_alone(
    hive: HookedHive, planner: PlannerUnderTest
) -> None:
    impatient = {**FETCH, TIMEOUT: "310"}
    with _slow(planner):
        assert hive.ask(SELECTIVE, impatient).read == 12
    assert hive.ask(SELECTIVE, impatient).rows == [(77,)]
    assert hive.ask(SELECTIVE).read == 1


def test_an_error_of_the_planner(hive: HookedHive, planner: PlannerUnderTest) -> None:
    """A query's own error closes nothing to the next one."""

    def refuse(own: Select, request: ttypes.PlanRequest) -> ttypes.SkippableFiles:
        raise failure_of(_Refused("this query is not liked", "ask another"))

    planner.answer = refuse
    answer = hive.ask(SELECTIVE)
    assert answer.rows == [(77,)] and answer.read == 12
    assert "NOT_LIKED: this query is not liked -> ask another" in answer.warnings[0]
    planner.answer = None
    assert hive.ask(SELECTIVE).read == 1


class _Refused(BridgeError):
    code = "NOT_LIKED"
    category = Category.USER_ERROR


def test_another_version_of_the_protocol(hive: HookedHive, planner: PlannerUnderTest) -> None:
    def newer(own: Select, request: ttypes.PlanRequest) -> ttypes.SkippableFiles:
        found = own(request)
        found.protocol = 99
        return found

    planner.answer = newer
    address = hive.planner.replace("127.0.0.1", "127.0.0.3")
    with _forwarded(hive.planner, address):
        answer = hive.ask(SELECTIVE, {**FETCH, "skipbridge.planner": address})
    assert answer.rows == [(77,)] and answer.read == 12
    assert "protocol 99" in answer.warnings[0] and "skipbridge hive jar" in answer.warnings[0]


@pytest.mark.parametrize(
    "reply",
    [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x08\x80\x01\x00\x02\x00\x00\x00\x00"],
    ids=["nothing", "http", "cut"],
)
def test_something_else_answers(hive: HookedHive, reply: bytes) -> None:
    with _answering(lambda connection: connection.sendall(reply)) as address:
        answer = hive.ask(SELECTIVE, {**FETCH, "skipbridge.planner": address})
    assert answer.rows == [(77,)] and reads_all(answer)
    assert len(answer.warnings) == 1


@pytest.mark.parametrize("reply", [b"", b"\x00\x00\x10\x00\x80\x01"], ids=["never", "half"])
def test_an_answer_that_does_not_come_is_not_waited_for(hive: HookedHive, reply: bytes) -> None:
    over = threading.Event()

    def begin(connection: socket.socket) -> None:
        connection.sendall(reply)
        over.wait(30.0)

    with _answering(begin) as address:
        try:
            answer = hive.ask(SELECTIVE, {**FETCH, TIMEOUT: "300", "skipbridge.planner": address})
        finally:
            over.set()
    assert answer.rows == [(77,)] and reads_all(answer)
    (warning,) = answer.warnings
    assert "timed out" in warning or "in time" in warning or TIMEOUT in warning


@pytest.mark.parametrize("text", ["nonsense", "host:0", ""])
def test_an_address_that_is_none(hive: HookedHive, text: str) -> None:
    answer = hive.ask(SELECTIVE, {**FETCH, "skipbridge.planner": text or " "})
    assert answer.rows == [(77,)]


def test_the_planner_dies_in_the_middle_of_a_query(
    hive: HookedHive, planner: PlannerUnderTest
) -> None:
    """The first scan of a join is answered; then nobody is there."""
    address = f"{LOOPBACK}:{choose_port(0, 'dying')}"
    with _forwarded(hive.planner, address, 2):  # the first asks about the tables
        sql = (
            f"SELECT a.k, b.s FROM {NAME} a JOIN {NAME} b ON a.n = b.n "
            "WHERE a.k BETWEEN 70 AND 90 AND b.s LIKE 'd%'"
        )
        seldom = {"skipbridge.hook.refresh.ms": "60000"}
        answer = hive.ask(sql, {**TEZ, **seldom, "skipbridge.planner": address})
    assert len(planner.asked) == 1
    assert sorted(answer.rows) == sorted((k, f"d-{k:03d}") for k in range(70, 80) if k != 79)
    assert {(s.read < 12) for s in answer.scans} == {True, False}


def test_a_file_changed_since_the_index_was_built_is_read(
    hive: HookedHive, planner: PlannerUnderTest, tmp_path: Path
) -> None:
    """Same name, same size, another time: what the index says of it is of another file."""
    name = TableName("trouble", "changed")
    table, partitions = write_sales(tmp_path / "table", name)
    age(tmp_path / "table")
    register(hive.metastore_uri, name, table, partitions)
    hive.build_index(name)
    sql = f"SELECT k FROM {name} WHERE k = 77"
    assert hive.ask(sql).read == 1
    (tmp_path / "table" / "p=0" / "f00.parquet").touch()
    changed = hive.ask(sql)
    assert changed.read == 2 and changed.rows == [(77,)]


@contextlib.contextmanager
def _forwarded(target: str, address: str, calls: int | None = None) -> Iterator[None]:
    """Passes connections on to a planner, the first ``calls`` of them; then hangs up."""
    left = [calls if calls is not None else 1_000_000]

    def forward(connection: socket.socket) -> None:
        left[0] -= 1
        if left[0] < 0:
            return
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port))) as planner:
            planner.sendall(connection.recv(1 << 20))
            planner.settimeout(5.0)
            with contextlib.suppress(OSError):
                while piece := planner.recv(1 << 16):
                    connection.sendall(piece)
                    planner.settimeout(0.5)

    with _answering(forward, address):
        yield


@contextlib.contextmanager
def _answering(
    answer: Callable[[socket.socket], None], address: str = f"{LOOPBACK}:0"
) -> Iterator[str]:
    """Listens, and gives each connection to a function, one after the other."""
    host, _, port = address.rpartition(":")
    with socket.create_server((host, int(port))) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        if connection.recv(1, socket.MSG_PEEK):
                            answer(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"{host}:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10.0)
