"""What one request of ours may cost at most, in requests to the store and in connections."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import obstore
import pytest

import bridge
from bridge.kernel.errors import FileUnreadable, StorageFailure
from bridge.storage import native
from bridge.storage.object_store import object_client
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from tests.storage.test_lying_store import parquet
from tests.support.memory_store import Answer, Asked, MemoryStore

pytestmark = pytest.mark.full

ROOT = "s3://lake/t"
FILE = f"{ROOT}/f"
_SLOW = b"<Error><Code>RequestTimeout</Code><Message>your connection was idle</Message></Error>"
ASKED: dict[str, Callable[[Storage], Any]] = {
    "list": lambda storage: len(storage.list_all(ROOT)),
    "flat": lambda storage: storage.list_directories(ROOT),
    "look": lambda storage: storage.stat(FILE),
    "read": lambda storage: storage.read(FILE),
    "ranges": lambda storage: storage.read_ranges(FILE, [(0, 70)]),
    "state": lambda storage: storage.read_state(FILE, [(0, 70)])[0],
    "write": lambda storage: storage.put(f"{ROOT}/g", b"x"),
    "create": lambda storage: storage.put_if_absent(f"{ROOT}/.h", b"x"),
    "copy": lambda storage: storage.copy(storage.stat(FILE), f"{ROOT}/.c"),  # type: ignore[arg-type]
}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    monkeypatch.setattr("bridge.storage.retry._FIRST", 0.001)
    with MemoryStore() as running:
        running.put("t/f", b"x" * 100)
        yield running


def cut(answer: Answer, etag: bool) -> Answer:
    half = len(answer.body) // 2
    headers = {k: v for k, v in answer.headers.items() if etag or k != "ETag"}
    return Answer(answer.status, answer.body[:half], headers, len(answer.body) - half)


@pytest.mark.parametrize("etag", [True, False])
@pytest.mark.parametrize("asked", ["read", "ranges", "state", "list"])
@pytest.mark.rule("47")
def test_47_an_answer_that_breaks_off_is_asked_for_six_times(
    asked: str, etag: bool, store: MemoryStore
) -> None:
    """Of an object with an ETag the client asks for the rest, and we did so again: 36 times."""
    store.lie = lambda _, answer: cut(answer, etag)
    storage = open_storage(options={**store.options, "retries": "5"})
    with pytest.raises((FileUnreadable, StorageFailure)):
        ASKED[asked](storage)
    assert len(store.asked) == 6


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.rule("47")
def test_47_what_the_store_waited_for_too_long_is_asked_for_again(
    asked: str, store: MemoryStore
) -> None:
    """S3 says so with status 400, which the client does not repeat."""
    expected = ASKED[asked](open_storage(options=store.options))
    for key in ("t/.h", "t/.c"):
        store.objects.pop(key, None)
    seen = set[tuple[str, str]]()

    def late(request: Asked, answer: Answer) -> Answer:
        first = (request.method, request.key) not in seen
        seen.add((request.method, request.key))
        if request.method == "HEAD" or not first:  # its answer has no body to tell anything
            return answer
        if request.method == "PUT":
            store.objects.pop(request.key, None)
        return Answer(400, _SLOW)

    store.lie = late
    assert ASKED[asked](open_storage(options=store.options)) == expected


@pytest.mark.rule("31")
def test_31_a_process_has_so_many_requests_under_way(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all storages, whoever asks; and no more connections are opened to a bucket."""
    monkeypatch.setattr(native, "_most", [0])
    monkeypatch.setattr(native, "_places", [])
    store.lock = nullcontext()  # type: ignore[assignment]
    lock, now, most = threading.Lock(), [0], [0]

    def count(_: Asked, answer: Answer) -> Answer:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.005)
        with lock:
            now[0] -= 1
        return answer

    store.lie = count
    storages = [open_storage(options={**store.options, "connections": "6"}) for _ in range(8)]
    with ThreadPoolExecutor(32) as pool:
        many = [(i * 2_000_000, i * 2_000_000 + 1) for i in range(12)]
        store.put("t/large", b"x" * 23_000_000)
        asked = [
            *(pool.submit(storages[i % 8].read, FILE) for i in range(60)),
            *(pool.submit(storages[i].read_ranges, f"{ROOT}/large", many) for i in range(8)),
            *(pool.submit(storages[i].list_all, ROOT) for i in range(8)),
        ]
        for each in asked:
            each.result()
    assert most[0] == 6
    assert len({id(each.store(ROOT)._store) for each in storages}) == 1  # type: ignore[attr-defined]


@pytest.mark.rule("31")
def test_31_a_bucket_has_one_client_however_many_tables_are_read(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions, tables and scans share its connections. One for each scan was 50 clients."""
    monkeypatch.setattr(native, "_most", [0])
    monkeypatch.setattr(native, "_places", [])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    open_client, opened = object_client._open, []
    monkeypatch.setattr(
        object_client, "_open", lambda *given: opened.append(given) or open_client(*given)
    )
    tables, bound = 50, 6
    for i in range(tables):
        store.put(f"t{i}/a.parquet", parquet(i))
        store.put(f"t{i}/b.parquet", parquet(i + 100))
    given = {
        f"storage_{name}": store.options[name] for name in ("endpoint", "region", "allow_http")
    }
    given |= {"storage_connections": str(bound), "planner_cache_dir": str(tmp_path)}
    with ExitStack() as stack, ThreadPoolExecutor(32) as pool:
        sessions = [stack.enter_context(bridge.connect(**given)) for _ in range(5)]

        def rows(i: int) -> list[int]:
            scan = sessions[i % 5].table(f"s3://lake/t{i % tables}").scan()
            return sorted(scan.to_arrow()["x"].to_pylist())

        found = list(pool.map(rows, range(2 * tables)))
    assert found == 2 * [[i, i + 100] for i in range(tables)]
    assert len(opened) == 1, opened
    seen = store.connections
    # While one connects, a connection may become free, and the new one is kept for the next.
    assert seen.most <= 2 * bound, seen
    ours = sum("sig" in "".join(asked.query).lower() for asked in store.asked)
    assert seen.opened <= 2 * bound + ours, (seen, ours)


@pytest.mark.rule("31")
def test_31_a_query_of_many_reads_does_not_hold_up_another(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten of its sixty reads come before the other's one, which was asked for last."""
    monkeypatch.setattr(native, "_most", [0])
    monkeypatch.setattr(native, "_places", [])
    store.lock = nullcontext()  # type: ignore[assignment]
    store.put("t/large", b"x" * 120_000_000)
    begun, going, get = list[str](), threading.Event(), obstore.get_async

    def hold(_: Asked, answer: Answer) -> Answer:
        going.wait()
        return answer

    def count(client: Any, key: str, **more: Any) -> Any:
        begun.append(key)
        return get(client, key, **more)

    monkeypatch.setattr(obstore, "get_async", count)
    store.lie = hold
    storage = open_storage(options={**store.options, "connections": "4"})
    many = [(i * 2_000_000, i * 2_000_000 + 1) for i in range(60)]

    def waiting() -> int:
        return len(native._places[0]._waiters or ()) if native._places else 0

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(storage.read_ranges, f"{ROOT}/large", many)
        while waiting() < native._AT_ONCE - 4:
            time.sleep(0.001)
        second = pool.submit(storage.read, FILE)
        while waiting() <= native._AT_ONCE - 4:
            time.sleep(0.001)
        going.set()
        assert len(first.result()) == 60 and second.result()
    assert begun.index("t/f") <= native._AT_ONCE


@pytest.mark.parametrize("hangs", ["generations", "generations/"])
@pytest.mark.rule("47")
def test_47_a_plan_goes_on_without_an_index_that_does_not_come(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: str
) -> None:
    """Neither its listing nor its manifest gets the patience that the table's listing has."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr("bridge.planner.index_view._PATIENCE", 0.5)
    for i in range(3):
        store.put(f"i/f{i}.parquet", parquet(i))
    given = {
        f"storage_{name}": store.options[name] for name in ("endpoint", "region", "allow_http")
    }
    given |= {"planner_cache_dir": str(tmp_path), "storage_timeout": "60s"}
    with bridge.connect(**given) as session:
        assert session.table("s3://lake/i").index.build().files == 3
    store.lock = nullcontext()  # type: ignore[assignment]
    late, held = list[Asked](), threading.Event()

    def hang(asked: Asked, answer: Answer) -> Answer:
        place = asked.query.get("prefix", "") if asked.listing else asked.key
        if asked.listing == (hangs == "generations") and f".skipbridge/{hangs}" in place:
            late.append(asked)
            held.wait()
        return answer

    store.lie = hang
    try:
        with bridge.connect(**given) as session:
            scan = session.table("s3://lake/i").scan("x = 1")
            assert scan.to_arrow()["x"].to_pylist() == [1]
    finally:
        held.set()
    # It was given up before the store's own time had passed. A slow machine plans once more.
    assert len(late) in (1, 2)


def test_a_read_that_waits_can_be_interrupted(store: MemoryStore) -> None:
    held, came = threading.Event(), threading.Event()

    def hang(_: Asked, answer: Answer) -> Answer:
        came.set()
        held.wait()
        return answer

    store.lie = hang
    storage = open_storage(options=store.options)

    def interrupt() -> None:
        came.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        storage.read(FILE)
    held.set()
