"""A store that accepts a request and never answers, or gives half of an answer and then nothing.

Every request ends: with the right answer if a repeated one comes through, else with an error that
says what was late. versitygw stands behind a proxy.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bridge.expression.parsing.text import parse_where
from bridge.index.generations.store import IndexStore
from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import BridgeError, FileUnreadable, InvalidConfiguration, StorageFailure
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.runtime.compose import storage_options
from bridge.storage import bounded, hdfs, retry
from bridge.storage.port import FileStat, Storage
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.directory.lister import DirectoryLister
from tests.storage.test_requests_in_flight import bounds, build, content, put_all
from tests.support.lake import drained
from tests.support.relay import Relay
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET, Versitygw

pytestmark = pytest.mark.full

LATE = ("hang", "stall")
ROOT = f"s3://{BUCKET}/late"
FILE = f"{ROOT}/f0"
SIZE = 100_000
ASKED: dict[str, Callable[[Storage], Any]] = {
    "list": lambda storage: storage.list_all(ROOT).paths.to_pylist(),
    "flat": lambda storage: storage.list_all(ROOT, recursive=False).paths.to_pylist(),
    "directories": lambda storage: storage.list_directories(ROOT),
    "look": lambda storage: storage.stat(FILE),
    "read": lambda storage: storage.read(FILE),
    "ranges": lambda storage: storage.read_ranges(FILE, [(0, 70_000), (90_000, SIZE)]),
    "state": lambda storage: storage.read_state(FILE, [(0, 70_000)]),
    "write": lambda storage: storage.put(f"{ROOT}/g", b"x"),
    "create": lambda storage: storage.put_if_absent(f"{ROOT}/h", b"x"),
    "delete": lambda storage: storage.delete(f"{ROOT}/g"),
}
WRITES = ("write", "create", "delete")
NO_BODY = {("stall", "look"), ("stall", "write")}
"""Answers without a body have no second half."""


@pytest.fixture
def calm(proxy: SlowStore) -> Iterator[SlowStore]:
    proxy.behave(Behaviour())
    proxy.take()
    yield proxy
    proxy.behave(Behaviour())


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "DEADLINE", 0.2)
    monkeypatch.setattr(hdfs, "_CONNECTING", 0.0)


def impatient(gateway: Versitygw, proxy: SlowStore, retries: int, timeout: float = 1.0) -> Storage:
    """A storage for which an answer may take so many seconds."""
    own = {"timeout": str(timeout), "retries": str(retries)}
    return open_storage(options={**gateway.through(proxy.port), **own})


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("fault", LATE)
def test_a_store_that_never_answers_is_an_error(
    fault: str, asked: str, gateway: Versitygw, calm: SlowStore, direct: Storage, short: None
) -> None:
    """After the deadline nothing is asked again: without one, a read was repeated 36 times."""
    direct.put(FILE, b"x" * SIZE)
    storage = impatient(gateway, calm, retries=1, timeout=0.15)
    calm.behave(Behaviour(rate=1.0, faults=(fault,)))
    if (fault, asked) in NO_BODY:
        assert (ASKED[asked](storage) is None) == (asked == "write")
        return
    with pytest.raises((StorageFailure, FileUnreadable), match="no whole answer in time") as caught:
        ASKED[asked](storage)
    assert ROOT in caught.value.message and "storage.timeout" in caught.value.hint
    # Four create a probe at once, and each may look once more whether it has done so.
    assert calm.take().count() <= (12 if asked == "create" else 4)


@pytest.mark.parametrize("asked", [name for name in ASKED if name not in WRITES])
@pytest.mark.parametrize("fault", LATE)
def test_what_is_late_is_asked_for_again(
    fault: str, asked: str, gateway: Versitygw, calm: SlowStore, direct: Storage
) -> None:
    direct.put(FILE, b"x" * SIZE)
    expected = ASKED[asked](direct)
    storage = impatient(gateway, calm, retries=8, timeout=0.25)
    calm.behave(Behaviour(rate=0.5, faults=(fault,), seed=1))
    for _ in range(2):
        assert ASKED[asked](storage) == expected
    assert (fault, asked) in NO_BODY or calm.take().failed


@pytest.mark.parametrize("fault", LATE)
def test_21_a_build_on_a_store_that_stops_answering(
    fault: str, gateway: Versitygw, calm: SlowStore, direct: Storage, tmp_path: Path, short: None
) -> None:
    """The index says nothing of what was not read, and a later build completes it."""
    root, count = f"{ROOT}-{fault}", 12
    put_all(direct, root, {f"f{i:02d}": content(i * 100) for i in range(count)})
    told = {f"{root}/f{i:02d}": (i * 100, i * 100 + 19) for i in range(count)}
    calm.behave(Behaviour(rate=1.0, faults=(fault,), only="^(GET|HEAD) .*/f0[3-5]"))
    try:
        report = build(impatient(gateway, calm, retries=1), root)
    except StorageFailure as error:
        assert fault == "hang" and "no whole answer in time" in error.message
        assert IndexStore(direct, f"{root}/.skipbridge").latest() is None
    else:
        assert [path for path, _ in report.failed] == [f"{root}/f0{i}" for i in (3, 4, 5)]
        assert all("no whole answer in time" in why for _, why in report.failed)
        found = {path: b for (path, _), b in bounds(direct, root, tmp_path / "a").items()}
        assert found == {p: b for p, b in told.items() if p[-1] not in "345"}
    calm.behave(Behaviour())
    report = build(impatient(gateway, calm, retries=1), root)
    assert (report.files, report.failed) == (count, ())
    assert {p: b for (p, _), b in bounds(direct, root, tmp_path / "b").items()} == told


@pytest.mark.parametrize("fault", LATE)
@pytest.mark.rule("47")
def test_a_plan_whose_listing_never_comes(
    fault: str, gateway: Versitygw, calm: SlowStore, direct: Storage, tmp_path: Path, short: None
) -> None:
    """The query fails, in the store's words; the same planner then answers the next one."""
    root = f"{ROOT}-plan-{fault}"
    put_all(direct, root, {f"p={p}/f": content(p * 100) for p in range(4)})
    table = DirectoryCatalog(direct, root)
    build(direct, root, partitions=[*table.partition_names(table.table(table.name))])
    storage = impatient(gateway, calm, retries=1)
    catalog = DirectoryCatalog(storage, root)
    catalog.table(catalog.name)
    views = IndexViews(lambda _: IndexStore(storage, f"{root}/.skipbridge"), tmp_path, 0.0)
    planner = Planner(catalog, views, DirectoryLister(storage, 4))

    def asked() -> set[str]:
        request = ScanRequest(catalog.name, parse_where("x >= 200")[0], freshness="live")
        return drained(planner.plan(request))

    late = {f"{root}/p={p}/f" for p in (2, 3)}
    assert asked() == late
    calm.behave(Behaviour(rate=1.0, faults=(fault,), only="^LIST"))
    with pytest.raises(BridgeError, match="no whole answer in time"):
        asked()
    calm.behave(Behaviour())
    assert asked() == late


OF_HDFS: dict[str, Callable[[Storage, str], Any]] = {
    "list": lambda storage, root: storage.list_all(root),
    "directories": lambda storage, root: storage.list_directories(root),
    "directory": lambda storage, root: storage.directory_exists(root),
    "look": lambda storage, root: storage.stat(f"{root}/f"),
    "read": lambda storage, root: storage.read(f"{root}/f"),
    "ranges": lambda storage, root: storage.read_ranges(f"{root}/f", [(0, 1)]),
    "state": lambda storage, root: storage.read_state(f"{root}/f", [(0, 1)]),
    "write": lambda storage, root: storage.put(f"{root}/f", b"x"),
    "create": lambda storage, root: storage.put_if_absent(f"{root}/f", b"x"),
    "copy": lambda storage, root: storage.copy(FileStat(f"{root}/f", 1, 1), f"{root}/g"),
    "delete": lambda storage, root: storage.delete(f"{root}/f"),
}


@pytest.mark.parametrize("asked", OF_HDFS)
@pytest.mark.rule("47")
def test_a_name_node_that_never_answers_is_an_error(asked: str, short: None) -> None:
    """It listens, and that is all. The library would wait for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        root = f"hdfs://127.0.0.1:{silent.getsockname()[1]}/late"
        with pytest.raises(StorageFailure, match="HDFS gave no answer within") as caught:
            OF_HDFS[asked](open_storage(), root)
    assert root in caught.value.message and "name node" in caught.value.hint


def test_a_name_node_that_is_off_leaves_time_for_the_other_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Linux tries to connect for 127 s. A shorter deadline ends each call before its failover."""
    waits: list[float] = []

    def never(seconds: float, call: Callable[[bounded.Progress], Any]) -> Any:
        waits.append(seconds)
        raise bounded.Late("no answer")

    monkeypatch.setattr(hdfs, "call_with_deadline", never)
    with pytest.raises(StorageFailure, match="HDFS gave no answer"):
        open_storage().stat("hdfs://127.0.0.1:1/f")
    assert min(waits) > 127 + 10


@pytest.fixture
def relayed(hdfs_uri: str) -> Iterator[tuple[Relay, str]]:
    host, port = hdfs_uri.removeprefix("hdfs://").split(":")
    with Relay((host, int(port))) as relay:
        yield relay, f"hdfs://127.0.0.1:{relay.port}/relayed"


def late(asked: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Asks what is given up. The event is set when the call that was left behind has ended."""
    ended = threading.Event()

    def told(seconds: float, call: Callable[[bounded.Progress], Any]) -> Any:
        def followed(progress: bounded.Progress) -> Any:
            try:
                return call(progress)
            finally:
                ended.set()

        return bounded.call_with_deadline(seconds, followed)

    with monkeypatch.context() as patch, pytest.raises(StorageFailure, match="HDFS gave no answer"):
        patch.setattr(retry, "DEADLINE", 0.5)
        patch.setattr(hdfs, "_CONNECTING", 0.0)
        patch.setattr(hdfs, "call_with_deadline", told)
        asked()
    return ended


def test_a_connection_on_which_nothing_comes_is_not_used_again(
    relayed: tuple[Relay, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a firewall has forgotten it: each call would wait for its deadline."""
    relay, root = relayed
    storage = open_storage()
    storage.put(f"{root}/f", b"x")
    before = relay.connections
    relay.hold()
    late(lambda: storage.stat(f"{root}/f"), monkeypatch)
    assert storage.read(f"{root}/f") == b"x"
    assert relay.connections > before


@pytest.mark.parametrize("name", ["new", "there"])
def test_a_write_that_was_given_up_does_nothing_later(
    name: str, relayed: tuple[Relay, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer may have written the file since, who would lose it."""
    relay, root = relayed
    storage = open_storage()
    storage.put(f"{root}/there", b"old")
    held = relay.hold()
    ended = late(lambda: storage.put(f"{root}/{name}", b"late"), monkeypatch)
    assert not ended.is_set()
    storage.put(f"{root}/{name}", b"new")
    held.set()
    assert ended.wait(120)
    assert storage.read(f"{root}/{name}") == b"new"
    assert not [path for path in storage.list_all(root).paths.to_pylist() if ".tmp" in path]


def test_a_delete_that_was_given_up_does_nothing_later(
    relayed: tuple[Relay, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    relay, root = relayed
    storage = open_storage()
    storage.put(f"{root}/gone", b"old")
    held = relay.hold()
    ended = late(lambda: storage.delete(f"{root}/gone"), monkeypatch)
    assert not ended.is_set()
    held.set()
    assert ended.wait(120)
    assert storage.read(f"{root}/gone") == b"old"


def test_long_ranges_and_writes_come_in_pieces(hdfs_uri: str) -> None:
    content = bytes(range(256)) * 40_000
    assert len(content) > 2 * hdfs._PIECE
    storage, uri = open_storage(), f"{hdfs_uri}/pieces/f"
    storage.put(uri, content)
    assert storage.read(uri) == content
    ranges = [(0, len(content)), (7, hdfs._PIECE + 8), (5, 5), (len(content) - 3, len(content))]
    assert storage.read_ranges(uri, ranges) == [content[start:end] for start, end in ranges]
    found = storage.stat(uri)
    assert found is not None and storage.copy(found, f"{hdfs_uri}/pieces/g")
    assert storage.read(f"{hdfs_uri}/pieces/g") == content


def test_a_timeout_of_nothing_is_refused() -> None:
    config = Config({"storage.timeout": Setting("0s", "test")})
    with pytest.raises(InvalidConfiguration, match=r"storage\.timeout is '0s'"):
        storage_options(config)
    assert storage_options(Config())["timeout"] == "60.0"
