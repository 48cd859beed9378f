"""Tables that a query will ask for are fetched beside its first; estimates at hand come along."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from bridge.metastore.cache import CachedCatalog
from bridge.planner.table_cache import TableCache
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from bridge.service.expected_tables import ExpectedTables
from bridge.table.catalog_statistics import CatalogStatistics
from bridge.table.model import TableName
from tests.support.lake import Lake
from tests.support.service import Service

A, B, C = (TableName("db", name) for name in "abc")


def test_the_followers_of_a_first_table_are_fetched_once_a_query() -> None:
    fetched: list[TableName] = []
    with ThreadPoolExecutor(1) as pool:
        expected = ExpectedTables(pool, fetched.append)
        for query in ("one", "two"):
            for table in (A, B, A, C, B):
                expected.note(query, table)
    assert fetched == [B, C]


def test_who_asks_for_very_many_tables_describes_them() -> None:
    with ThreadPoolExecutor(1) as pool:
        expected = ExpectedTables(pool, lambda _: None)
        names = [TableName("db", f"t{n}") for n in range(100)]
        assert [expected.note("q", name) for name in names] == [n < 32 for n in range(100)]
        assert expected.note("q", names[31]) and not expected.note("", names[0])


def test_a_table_that_is_only_described_opens_no_index(service: Service) -> None:
    assert _described(service, "").row_count is None
    assert not (service.lake.root / "cache").exists()
    assert _described(service, "q").row_count == 12
    assert (service.lake.root / "cache").exists()


def test_the_last_query_tells_and_other_first_tables_expect_nothing() -> None:
    fetched: list[TableName] = []
    with ThreadPoolExecutor(1) as pool:
        expected = ExpectedTables(pool, fetched.append)
        for query, tables in (("1", (A, B)), ("2", (A, C)), ("3", (B,)), ("4", (A,)), ("", (A,))):
            for table in tables:
                expected.note(query, table)
    assert fetched == [B, C]


def test_the_metastore_is_asked_for_all_of_them_side_by_side() -> None:
    together = threading.Barrier(3)

    class Metastore:
        """Answers no call before all three are under way."""

        client = SimpleNamespace(get_current_notification_id=lambda: 1, connections_opened=0)

        def table(self, name: TableName) -> Any:
            together.wait(60)
            return name

    source: Any = Metastore()
    known = TableCache(CachedCatalog(source, 1000, vouched=True), 60.0)
    with ThreadPoolExecutor(16) as pool:
        expected = ExpectedTables(pool, known.table)
        for table in (A, B, C):
            expected.note("before", table)
        expected.note("query", A)
        assert known.table(A) == A
    assert [known.table(name) for name in (B, C)] == [B, C]
    assert not together.broken


def _described(service: Service, query: str) -> ttypes.Table:
    table = service.handler.get_table("db", "t", "trino", query, "", PROTOCOL)
    assert isinstance(table, ttypes.Table)
    return table


def test_a_description_brings_the_estimates_that_are_at_hand(service: Service) -> None:
    first = _described(service, "q1")
    assert first.row_count == 12
    assert first.columns[0].high is None
    asked = ttypes.PlanRequest(
        schema_name="db", table_name="t", query_id="q1", engine="trino", protocol=PROTOCOL
    )
    estimated = service.handler.get_statistics(asked)
    assert estimated.columns[0].high == 2
    second = _described(service, "q2")
    assert second.columns == estimated.columns
    assert second.row_count == estimated.row_count


def test_a_new_index_generation_has_no_estimates_at_hand(service: Service) -> None:
    asked = ttypes.PlanRequest(
        schema_name="db", table_name="t", query_id="q1", engine="trino", protocol=PROTOCOL
    )
    service.handler.get_statistics(asked)
    more = pa.table({"x": pa.array([7], pa.int32())})
    service.lake.write("more.parquet", more, service.lake.partition_values[0])
    service.lake.build()
    views = service.handler._planner.views  # a test must not wait for the check's interval
    for entry in map(views._entries.get, views._entries):
        entry.checked = float("-inf")
    assert _described(service, "q3").columns[0].high is None


def test_estimates_made_ahead_keep_no_thread_from_the_optimiser(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A description starts an estimate; a thread that waits for it would keep others waiting."""
    monkeypatch.setattr("bridge.service.handler._ANSWERS", 1)
    service = serve()
    _described(service, "q1")
    asked = ttypes.PlanRequest(
        schema_name="db", table_name="t", query_id="q1", engine="trino", protocol=PROTOCOL
    )
    assert service.handler.get_statistics(asked).columns[0].high == 2


def test_a_metastore_that_is_slow_to_tell_statistics_delays_none_of_the_index(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.service.handler._ANSWERS", 1)
    gate = threading.Event()

    def slow(*_: object) -> CatalogStatistics:
        gate.wait(60)
        return CatalogStatistics()

    monkeypatch.setattr(Lake, "statistics", slow, raising=False)
    asked = ttypes.PlanRequest(
        schema_name="db", table_name="t", query_id="q1", engine="trino", protocol=PROTOCOL
    )
    service = serve()
    deadline = time.monotonic() + 20.0
    try:
        key = service.handler.get_statistics(asked).columns[1]
        while key.high is None and time.monotonic() < deadline:  # a loaded machine may be late
            key = service.handler.get_statistics(asked).columns[1]
        assert (key.low, key.high) == (0, 3)
    finally:
        gate.set()
