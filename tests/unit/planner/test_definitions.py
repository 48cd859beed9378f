"""A definition is asked for once by many at a time, and never kept when it should not be."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.kernel.errors import TableNotFound
from bridge.planner.table_cache import TableCache
from bridge.table.model import TableName

NAME = TableName("s", "t")


class Slow:
    """A catalog that answers when it is let."""

    def __init__(self) -> None:
        self.calls = 0
        self.let = threading.Event()
        self.failure: Exception | None = None

    def table(self, name: TableName, age: float = 0.0) -> Any:
        self.calls += 1
        number = self.calls
        self.let.wait(30)
        if self.failure is not None:
            raise self.failure
        return SimpleNamespace(name=name, number=number)

    def forget(self, name: TableName) -> None:
        """Nothing is kept."""


def _under_way(catalog: Slow, calls: int) -> None:
    while catalog.calls < calls:
        time.sleep(0.001)


def test_many_at_a_time_ask_once() -> None:
    catalog = Slow()
    known = TableCache(catalog, 60.0)  # type: ignore[arg-type]
    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(known.table, NAME) for _ in range(8)]
        _under_way(catalog, 1)
        catalog.let.set()
        assert {id(f.result(30)) for f in found} == {id(known.table(NAME))}
    assert catalog.calls == 1


def test_a_failure_is_told_to_all_and_kept_for_none() -> None:
    catalog = Slow()
    catalog.failure = TableNotFound("no", "such")
    known = TableCache(catalog, 60.0)  # type: ignore[arg-type]
    with ThreadPoolExecutor(4) as threads:
        found = [threads.submit(known.table, NAME) for _ in range(4)]
        _under_way(catalog, 1)
        catalog.let.set()
        for each in found:
            with pytest.raises(TableNotFound):
                each.result(30)
    catalog.failure = None
    assert known.table(NAME).name == NAME


def test_what_is_forgotten_while_it_is_asked_for_is_asked_for_again() -> None:
    catalog = Slow()
    known = TableCache(catalog, 60.0)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as threads:
        old = threads.submit(known.table, NAME)
        _under_way(catalog, 1)
        known.forget(NAME)
        new = threads.submit(known.table, NAME)
        _under_way(catalog, 2)
        catalog.let.set()
        assert (old.result(30).number, new.result(30).number) == (1, 2)  # type: ignore[attr-defined]
    assert known.table(NAME).number == 2  # type: ignore[attr-defined]


def test_one_that_waits_for_longer_than_a_definition_counts_is_not_joined() -> None:
    catalog = Slow()
    known = TableCache(catalog, 0.0)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as threads:
        found = [threads.submit(known.table, NAME) for _ in range(2)]
        _under_way(catalog, 2)
        catalog.let.set()
        assert {f.result(30).number for f in found} == {1, 2}  # type: ignore[attr-defined]


def test_a_definition_that_is_older_than_asked_for_is_not_used() -> None:
    catalog = Slow()
    catalog.let.set()
    known = TableCache(catalog, 60.0)  # type: ignore[arg-type]
    first = known.table(NAME)
    assert known.table(NAME, 60.0) is first
    assert known.table(NAME, 0.0) is not first
    assert known.table(NAME, 1e9) is known.table(NAME)


def test_a_request_under_way_is_not_joined_if_it_began_too_early() -> None:
    catalog = Slow()
    known = TableCache(catalog, 60.0)  # type: ignore[arg-type]
    with ThreadPoolExecutor(2) as threads:
        early = threads.submit(known.table, NAME)
        _under_way(catalog, 1)
        late = threads.submit(known.table, NAME, 0.0)
        _under_way(catalog, 2)
        catalog.let.set()
        assert early.result(30) is not late.result(30)
