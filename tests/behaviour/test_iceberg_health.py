"""Health and metrics of the HTTP door: what balancers and Prometheus ask."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest
import requests
from prometheus_client import REGISTRY, generate_latest

from bridge.iceberg_rest.door import DoorLimits
from bridge.kernel.errors import MetastoreUnavailable
from bridge.kernel.types import BIGINT
from bridge.table.model import Column
from tests.support.iceberg_door import JAVA, TABLE, OpenDoor, open_door
from tests.support.lake import Lake

HERE = frozenset({"127.0.0.1"})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(tmp_path, (Column("id", BIGINT),))
    found.write("f.parquet", {"id": [1, 2]})
    found.build()
    return found


def _down() -> NoReturn:
    raise MetastoreUnavailable("no metastore answers", "")


def test_ready_while_a_plan_could_begin(lake: Lake) -> None:
    limits = DoorLimits(HERE, ready=0.05)
    with open_door(lake, limits=limits) as door:
        assert door.get("/readyz").text == "ok\n"
        with door.all_busy():
            for _ in range(5):
                answer = door.get("/readyz")
                assert answer.status_code == 503 and "no thread" in answer.text
            assert door.get("/healthz").status_code == 200
            assert door.pool._work_queue.qsize() == 1  # probes do not heap up
        patient = requests.Session()
        while patient.get(f"{door.url}/readyz", timeout=60).status_code != 200:
            pass  # the threads are let go at any moment
        door.pool.shutdown()
        assert door.get("/readyz").status_code == 503


def test_a_metastore_that_is_away_is_a_metric(lake: Lake) -> None:
    with open_door(lake) as door:
        before = _errors(door)
        door.planner.catalog.schemas = _down  # type: ignore[method-assign]
        answer = door.get("/v1/namespaces")
        assert answer.status_code == 503 and "METASTORE_UNAVAILABLE" in answer.text
        assert _errors(door) == before + 1
        assert door.get("/readyz").status_code == 200


def _errors(door: OpenDoor) -> float:
    series = 'skipbridge_errors_total{code="METASTORE_UNAVAILABLE"} '
    lines = door.get("/metrics").text.splitlines()
    return float(next((each.removeprefix(series) for each in lines if series in each), 0))


def test_metrics_are_those_of_the_planner(lake: Lake) -> None:
    with open_door(lake, limits=DoorLimits(HERE, token="secret", waiting=1)) as door:
        held = {"Authorization": "Bearer secret"}
        assert door.post(f"{TABLE}/plan", {}, JAVA | held).status_code == 200
        assert door.get("/metrics").status_code == 401  # it names tables
        assert door.get("/metrics", held | {"Host": "evil.example"}).status_code == 421
        answer = door.get("/metrics", held)
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        assert _without_process(answer.text) == _without_process(generate_latest(REGISTRY).decode())
        assert 'skipbridge_plans_total{engine="iceberg-java",table="db.t"}' in answer.text
        with ThreadPoolExecutor(8) as pool:  # they take no place of a plan
            found = pool.map(lambda _: door.get("/metrics", held).status_code, range(16))
            assert set(found) == {200}
        assert door.get("/readyz").status_code == 200


def _without_process(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("skipbridge_")]
