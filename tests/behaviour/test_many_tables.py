"""A planner with few descriptors answers for thousands of tables, each with its index."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bridge.kernel.errors import PlannerUnavailable
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.process import choose_port
from bridge.table.model import CatalogTable
from tests.support.many_tables import SCHEMA, many_tables, register_all
from tests.support.planner_client import PlannerClient

TABLES, COLUMNS, DESCRIPTORS = 5000, 40, 1024


@pytest.fixture
def planner(tmp_path: Path) -> Iterator[tuple[psutil.Process, str, list[CatalogTable]]]:
    """A planner process that may open few files, over many tables."""
    tables = many_tables(tmp_path / "tables", TABLES, COLUMNS)
    spec = MetastoreSpec(tmp_path / "metastore", port=0, in_memory=True)
    with start_embedded_metastore(spec) as metastore:
        uri = f"thrift://127.0.0.1:{metastore.port}"
        register_all(uri, tables)
        port = choose_port(0, "planner")
        serve = f"{sys.executable} -m bridge serve --port {port} --metastore-uri {uri}"
        process = subprocess.Popen(
            ["sh", "-c", f"ulimit -n {DESCRIPTORS}; exec {serve}"],
            env={"SKIPBRIDGE_CACHE": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"},
            cwd=Path(__file__).parents[2],
        )
        try:
            endpoint = f"127.0.0.1:{port}"
            while True:
                try:
                    with PlannerClient(endpoint, timeout=30.0) as client:
                        client.health()
                    break
                except PlannerUnavailable:
                    assert process.poll() is None
                    time.sleep(0.2)
            yield psutil.Process(process.pid), endpoint, tables
        finally:
            process.kill()
            process.wait()


def at_least(column: str, value: int) -> str:
    ranges = [{"low": value, "low_inclusive": True}]
    domain = {"column": column, "type": "bigint", "null_allowed": False, "ranges": ranges}
    return json.dumps({"version": 1, "none": False, "domains": [domain]})


@pytest.mark.full
@pytest.mark.engine
def test_described_tables_open_no_index_and_scanned_ones_stay_within_the_bound(
    planner: tuple[psutil.Process, str, list[CatalogTable]], tmp_path: Path
) -> None:
    process, endpoint, tables = planner
    copies = tmp_path / "cache" / "index"
    with PlannerClient(endpoint, timeout=600.0) as client:
        started = time.monotonic()
        for table in tables:
            found = client.get_table(SCHEMA, table.name.table)
            assert [c.name for c in found.columns] == [c.name for c in table.columns]
        print(f"{TABLES} tables described in {time.monotonic() - started:.1f} s")
        assert not copies.exists()
        # As an older connector does for information_schema: all under one query.
        for table in tables:
            client.get_table(SCHEMA, table.name.table, query_id="q")
        assert process.num_fds() < DESCRIPTORS // 2
        assert len(list(copies.iterdir())) <= 32
        # Each query scans: its description, its estimates, its plan.
        for table in tables[:1000]:
            name, column = table.name.table, table.columns[7].name
            assert client.get_table(SCHEMA, name, query_id=name).row_count == 10.0
            whole = client.statistics(SCHEMA, name)
            assert all(c.low == 0.0 and c.high == 9.0 for c in whole.columns)
            handle = client.plan(SCHEMA, name, at_least(column, 10)).handle
            told = json.loads(client.call("next_splits", handle, 0, 1000, 10_000).report)
            assert (told["not_used"], told["files"]["kept"]) == ([], 0), told
        assert process.num_fds() < DESCRIPTORS // 2
        maps = {m.path for m in process.memory_maps(grouped=False) if str(copies) in m.path}
        assert len([m for m in maps if not m.endswith("files.arrow")]) <= DESCRIPTORS // 4 + 64
