"""``doctor`` asks a planner that runs what only the planner's own metastore can answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.app.doctor import examine
from bridge.kernel.config import Config, load
from bridge.planner.splits.coalesce import SplitSettings
from bridge.runtime.compose import hive_catalog_of, planner_of, resolve, storage_of
from bridge.runtime.diagnostic import Diagnostic
from bridge.service.handler import PlannerHandler
from bridge.service.server import PlannerServer
from bridge.table.model import Catalog


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_URI", "thrift://127.0.0.1:1")
    monkeypatch.setenv("SKIPBRIDGE_METASTORE_TIMEOUT", "250ms")
    return load()


@pytest.fixture
def check(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Catalog, str | None], Diagnostic]]:
    """What ``doctor`` says of a planner that runs over a catalog."""
    running: list[tuple[PlannerServer, PlannerHandler]] = []

    def run(catalog: Catalog, table: str | None) -> Diagnostic:
        server = PlannerServer(("127.0.0.1", 0), 1 << 20)
        planner = planner_of(config, catalog, storage_of(config))
        handler = PlannerHandler(planner, server.endpoint, SplitSettings())
        threading.Thread(target=server.serve, args=(handler,), daemon=True).start()
        running.append((server, handler))
        monkeypatch.setenv("SKIPBRIDGE_SERVICE_PORT", server.endpoint.rpartition(":")[2])
        (found,) = (d for d in examine(load(), table, None) if d.check == "planner")
        return found

    yield run
    for server, handler in running:
        server.stop(5.0)
        handler.close()


@pytest.mark.parametrize("table", [None, "d.t"])
def test_a_planner_whose_metastore_is_away(
    config: Config, check: Callable[[Catalog, str | None], Diagnostic], table: str | None
) -> None:
    found = check(hive_catalog_of(config), table)
    assert found.status == "warning", found
    assert "runs, but it cannot ask its metastore" in found.detail and "127.0.0.1:1" in found.detail
    assert "metastore.uri" in found.remedy


def test_a_planner_that_can_answer(
    tmp_path: Path, config: Config, check: Callable[[Catalog, str | None], Diagnostic]
) -> None:
    """A table that neither metastore has is told by the check of its index, once."""
    pq.write_table(pa.table({"k": [1]}), tmp_path / "0.parquet")
    catalog, name = resolve(config, f"{tmp_path}/", storage_of(config))
    assert check(catalog, None).status == "ok"
    assert check(catalog, f"{name.schema}.{name.table}").status == "ok"
    assert check(catalog, "d.t").status == "ok"
