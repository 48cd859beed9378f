"""A planner tells of each plan once: in its log and in its counters."""

from __future__ import annotations

import logging
import re

import pytest
from prometheus_client import REGISTRY, generate_latest

from bridge.kernel import telemetry
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from tests.support.lake import NAME
from tests.support.planner_client import PlannerClient
from tests.support.service import Service


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.INFO, "bridge.plans")
    monkeypatch.setattr(telemetry, "_tables", set())


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "bridge.plans"]


def files(outcome: str, table: str) -> float:
    labels = {"outcome": outcome, "table": table}
    return REGISTRY.get_sample_value("skipbridge_files_total", labels) or 0.0


def test_a_plan_that_is_drawn_to_its_end(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    kept, skipped = files("kept", str(NAME)), files("skipped", str(NAME))
    with PlannerClient(service.endpoint) as client:
        plan = client.plan(NAME.schema, NAME.table, query_id="20260308_1_x")
        batches = list(client.splits(plan.handle))
        # The engine may lose an answer and ask again; it is one plan all the same.
        client.next_splits(plan.handle, batches[-1].next_token - 1)
        client.close_plan(plan.handle)
    (line,) = lines(caplog)
    assert line.startswith(f"query 20260308_1_x by trino: {NAME} @ 1: partitions 4 -> 4, ")
    assert re.search(r"files listing 12 -> 12.*, 12 splits, .*; planned in [\d.]+ ms, done", line)
    assert files("kept", str(NAME)) == kept + 12 and files("skipped", str(NAME)) == skipped


def test_a_plan_that_is_closed_early(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    with PlannerClient(service.endpoint) as client:
        plan = client.plan(NAME.schema, NAME.table)
        client.close_plan(plan.handle)
        client.close_plan(plan.handle)
    (line,) = lines(caplog)
    assert "query - by trino" in line and "closed early after" in line


def test_a_selection_for_hive(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    told = '{"columns": [["x", "int"]], "keys": [["p", "int"]]}'
    asked = ttypes.PlanRequest(
        schema_name=NAME.schema,
        table_name=NAME.table,
        engine="hive",
        options={"table_columns": told},
        protocol=PROTOCOL,
    )
    service.handler.list_skippable_files(asked)
    (line,) = lines(caplog)
    assert f"by hive: {NAME} @ 1: indexed files 12 -> 12; selected in" in line


def test_labels_are_bounded_and_nothing_tells_of_creation() -> None:
    labels = {telemetry.table_label(f"s.t{i}") for i in range(10 * telemetry.MOST_TABLES)}
    assert len(labels) == telemetry.MOST_TABLES + 1 and telemetry.OTHER in labels
    assert telemetry.table_label("s.t0") == "s.t0"
    assert b"_created" not in generate_latest(REGISTRY)
