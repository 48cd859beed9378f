"""Answers, statistics and system tables over a real socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from bridge.kernel.errors import BridgeError, ColumnNotFound, InvalidRequest, ReadVersionUnsupported
from bridge.service.codec import PROTOCOL
from tests.support.planner_client import PlannerClient
from tests.support.service import Service


@pytest.fixture
def client(service: Service) -> Iterator[PlannerClient]:
    with PlannerClient(service.endpoint, timeout=20.0) as made:
        yield made


def at_least(column: str, value: int) -> str:
    ranges = [{"low": value, "low_inclusive": True}]
    domain = {"column": column, "type": "integer", "null_allowed": False, "ranges": ranges}
    return json.dumps({"version": 1, "none": False, "domains": [domain]})


def test_an_answer_names_the_process_that_holds_its_files(
    client: PlannerClient, service: Service
) -> None:
    found = client.aggregate("db", "t", aggregates=[("count", ""), ("max", "x")], query_id="q")
    assert (found.endpoint, found.enforced, found.answered) == (service.endpoint, True, True)
    assert json.loads(found.rows) == [[12, 2]] and found.files == 12
    found = client.aggregate("db", "t", aggregates=[("count", "x")], group_by=["p"])
    assert json.loads(found.rows) == [[0, 3], [1, 3], [2, 3], [3, 3]]


def test_enforced_alone(client: PlannerClient) -> None:
    assert client.aggregate("db", "t", at_least("x", 1)).enforced
    assert client.aggregate("db", "t", at_least("p", 1)).enforced
    opaque = '{"version": 1, "domains": [], "expression": {"opaque": "f(x)"}}'
    found = client.aggregate("db", "t", opaque, aggregates=[("count", "")])
    assert (found.enforced, found.answered, found.reason) == (False, False, "NOT_ENFORCED")


def test_wrong_questions(client: PlannerClient) -> None:
    for aggregate in (("sum", "x"), ("max", "")):
        with pytest.raises(InvalidRequest, match="no aggregate"):
            client.aggregate("db", "t", aggregates=[aggregate])
    with pytest.raises(ColumnNotFound):
        client.aggregate("db", "t", aggregates=[("max", "nope")])
    with pytest.raises(InvalidRequest, match=r"\$file"):
        list(client.system_table("db", "t", "file"))


def test_what_takes_longer_than_the_engine_waits_is_not_answered(
    client: PlannerClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    partitions = service.lake.partitions

    def slow(*args: object) -> object:
        gate.wait(10)
        return partitions(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(service.lake, "partitions", slow)
    found = client.aggregate("db", "t", aggregates=[("count", "")], query_id="slow", wait_ms=50)
    assert (found.answered, found.reason) == (False, "TOO_LATE")
    gate.set()
    found = client.aggregate("db", "t", aggregates=[("count", "")], query_id="slow")
    assert json.loads(found.rows) == [[12]]


def test_counts_that_wait_for_listings_delay_no_statistics(
    serve: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.service.handler._ANSWERS", 1)
    monkeypatch.setattr("bridge.service.handler._COUNTS", 1)
    service = serve()
    gate = threading.Event()
    partitions = service.lake.partitions
    asked: list[str] = []

    def slow(*args: object) -> object:
        asked.append("partitions")
        gate.wait(30)
        return partitions(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(service.lake, "partitions", slow)
    with PlannerClient(service.endpoint, timeout=20.0) as client:
        for query in ("one", "two", "three"):
            late = client.aggregate(
                "db", "t", aggregates=[("count", "")], query_id=query, wait_ms=50
            )
            assert late.reason == "TOO_LATE"
        assert client.statistics("db", "t").columns[0].low == 0.0
        gate.set()
        found = client.aggregate("db", "t", aggregates=[("count", "")], query_id="four")
    assert json.loads(found.rows) == [[12]]
    assert len(asked) == 2, "a count that nobody waits for does not begin"


def test_statistics_follow_the_predicate(client: PlannerClient) -> None:
    whole = client.statistics("db", "t")
    x, p = whole.columns
    assert (whole.row_count, x.low, x.high, x.nulls_fraction) == (12.0, 0.0, 2.0, 0.0)
    assert (p.low, p.high, p.distinct_count) == (0.0, 3.0, 4.0)
    some = client.statistics("db", "t", at_least("x", 1))
    assert (some.row_count, some.columns[0].low) == (8.0, 1.0)
    none = client.statistics("db", "t", at_least("p", 9))
    assert none.row_count == 0.0


def test_system_tables(client: PlannerClient, service: Service) -> None:
    service.lake.write("new.parquet", pa.table({"x": pa.array([7], pa.int32())}), ("1",))
    files = list(client.system_table("db", "t", "files", ["bounds"], max_rows=5))
    assert len(files) == 13
    (new,) = [f for f in files if f[0].endswith("new.parquet")]
    assert (new[1], new[4], new[5], new[6]) == ("p=1", None, False, None)
    known = next(f for f in files if f[0].endswith("p=2/1.parquet"))
    assert known[4:6] == [1, True]
    told = json.loads(known[6])
    assert told["x"].pop("bytes") > 0 and told == {"x": {"min": "1", "max": "1", "nulls": 0}}
    assert known[7:] == [0, 0, None]  # no logs, and no commit is recorded
    assert all(f[6] is None for f in client.system_table("db", "t", "files"))
    with pytest.raises(ReadVersionUnsupported, match="no timeline"):
        list(client.system_table("db", "t", "timeline"))
    partitions = list(client.system_table("db", "t", "partitions"))
    assert [(p[0], p[2], p[4], p[5]) for p in partitions] == [
        ("p=0", 3, 3, 3),
        ("p=1", 4, None, 3),
        ("p=2", 3, 3, 3),
        ("p=3", 3, 3, 3),
    ]
    (minmax,) = client.system_table("db", "t", "indexes")
    assert minmax[:4] == ["minmax", "minmax", "x", 1] and minmax[5:] == [12, 12, 12, None]


def test_a_page_is_repeatable_and_a_handle_keeps_its_kind(client: PlannerClient) -> None:
    handle = client.plan("db", "t").handle
    with pytest.raises(InvalidRequest):
        client.call("next_rows", handle, 0, 10)
    request_handle = client.call("open_system_table", _request(), "files").handle
    first = client.call("next_rows", request_handle, 0, 2)
    assert client.call("next_rows", request_handle, 0, 5).columns == first.columns
    with pytest.raises(InvalidRequest):
        client.call("next_rows", request_handle, 5, 2)
    with pytest.raises(BridgeError):
        client.next_splits(request_handle, 0)


def _request() -> object:
    from bridge.service._gen import ttypes

    return ttypes.PlanRequest(
        schema_name="db", table_name="t", engine="trino", predicate="", protocol=PROTOCOL
    )


def test_plans_take_limit_and_order(serve: Callable[..., Service]) -> None:
    from bridge.service._gen import ttypes

    with PlannerClient(serve().endpoint) as client:
        request = ttypes.PlanRequest(
            schema_name="db",
            table_name="t",
            engine="trino",
            predicate="",
            limit=2,
            order=[ttypes.SortKey("x", True, False)],
            protocol=PROTOCOL,
        )
        handle = client.call("plan", request).handle
        found = [p for b in client.splits(handle) if b.splits for p in b.splits.paths.to_pylist()]
        assert len(found) == 4 and all(p.endswith("2.parquet") for p in found)
