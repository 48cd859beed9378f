"""refresh_index: what was written is refreshed in the background, and no caller waits or fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

import pytest

from bridge.kernel.errors import IndexConflict
from bridge.service import refreshes
from bridge.service._gen import ttypes
from bridge.service.client import PlannerClient
from bridge.service.codec import PROTOCOL
from bridge.service.refreshes import MOST_PARTITIONS, Refreshes
from bridge.table.model import TableName
from tests.support.service import Service

Asked = list[tuple[str, list[str]]]


class Slow:
    """Refreshes that begin when they are let, one by one."""

    def __init__(self) -> None:
        self.asked: Asked = []
        self.begun = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.failure: Exception | None = None

    def __call__(self, table: TableName, partitions: Collection[str]) -> None:
        self.asked.append((str(table), list(partitions)))
        self.begun.release()
        assert self.let.acquire(timeout=60)
        if self.failure is not None:
            raise self.failure

    def wait(self) -> None:
        assert self.begun.acquire(timeout=60)


def test_what_is_written_while_a_refresh_runs_is_refreshed_once_after_it() -> None:
    slow = Slow()
    refreshes = Refreshes(slow)
    refreshes.add(TableName("db", "t"), ["d=1"])
    slow.wait()
    for day in (3, 2, 3):
        refreshes.add(TableName("db", "t"), [f"d={day}"])
    refreshes.add(TableName("db", "u"), [])
    refreshes.add(TableName("db", "u"), ["d=1"])
    refreshes.add(TableName("db", "v"), [f"d={i}" for i in range(MOST_PARTITIONS + 1)])
    for _ in range(3):
        slow.let.release()
        slow.wait()
    assert slow.asked == [
        ("db.t", ["d=1"]),
        ("db.t", ["d=2", "d=3"]),
        ("db.u", []),
        ("db.v", []),
    ]
    slow.let.release()
    refreshes.close()


@pytest.mark.parametrize(
    ("failure", "told"),
    [(IndexConflict("others commit", "wait"), "others commit"), (ValueError("what"), "what")],
)
def test_a_refresh_that_fails_is_logged_and_the_next_one_runs(
    failure: Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow()
    slow.failure = failure
    refreshes = Refreshes(slow)
    for name in ("t", "u"):
        refreshes.add(TableName("db", name), ["d=1"])
    slow.wait()
    slow.let.release()
    slow.wait()
    assert "db.t was not refreshed" in caplog.text and told in caplog.text
    slow.let.release()
    refreshes.close()


def test_too_many_tables_are_left_to_the_next_refresh(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(refreshes, "MOST_TABLES", 2)
    slow = Slow()
    queue = Refreshes(slow)
    queue.add(TableName("db", "t"), ["d=1"])
    slow.wait()
    for name in ("a", "b", "c", "a"):
        queue.add(TableName("db", name), ["d=1"])
    assert "the index of db.c waits" in caplog.text
    for _ in range(2):
        slow.let.release()
        slow.wait()
    slow.let.release()
    queue.close()
    assert [name for name, _ in slow.asked] == ["db.t", "db.a", "db.b"]


def test_the_call_returns_before_the_refresh(serve: Callable[..., Service]) -> None:
    slow = Slow()
    service = serve(refresh=slow)
    with PlannerClient(service.endpoint) as client:
        client.call("refresh_index", "DB", "T", ["p=1"], PROTOCOL)
        slow.wait()
        assert slow.asked == [("db.t", ["p=1"])]
        slow.let.release()


@pytest.mark.parametrize("name", [("", "t"), ("db", "")])
def test_what_names_no_table(service: Service, name: tuple[str, str]) -> None:
    with pytest.raises(ttypes.BridgeFailure, match="not a table"):
        service.handler.refresh_index(*name, ["p=1"], PROTOCOL)
