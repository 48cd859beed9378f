"""The planner's service over loopback: throughput of splits, many clients at once, memory."""

from __future__ import annotations

import multiprocessing
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT
from bridge.metastore.client import MetastoreClient
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.planner.splits.coalesce import SplitSettings
from bridge.runtime.create_table import register_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.service.handler import PlannerHandler
from bridge.service.server import PlannerServer
from bridge.storage.port import FileTable
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import CatalogTable, Column, TableName
from tests.benchmark.data import root, small_files
from tests.benchmark.figures import Figure, percentile
from tests.benchmark.java import run_java
from tests.benchmark.planning import OneTable, indexed
from tests.support.planner_client import PlannerClient

_PROCESSES = 2
DAY_WIRE = (
    '{"version": 1, "domains": [{"column": "l_shipdate", "type": "date", "null_allowed": false, '
    '"ranges": [{"low": 9298, "low_inclusive": true, "high": 9299, "high_inclusive": false}]}]}'
)


@contextmanager
def serving(planner: Planner) -> Iterator[PlannerServer]:
    server = PlannerServer(("127.0.0.1", 0))
    handler = PlannerHandler(planner, server.endpoint, SplitSettings())
    thread = threading.Thread(target=server.serve, args=(handler,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        handler.close()
        thread.join(5)


def clients(count: int = 16, plans: int = 40) -> list[Figure]:
    """Selective plans over 39,000 files, snapshot, from many clients at once.

    One planner process, then ``serve --processes 2``. The clients are four processes of four
    threads: in the planner's own process they would fight it for the interpreter lock, which no
    engine does. Each client's first plan is not counted: what is cold is measured elsewhere.
    """
    catalog, views, table = indexed(small_files(), root() / "index-39000")
    listings = DirectoryLister(open_storage())
    planner = Planner(catalog, views(), listings, metadata_ttl=60.0)
    with serving(planner) as server:
        one = _latencies(server.endpoint, table.name, count, plans)
    with _several() as (endpoint, name):
        two = _latencies(endpoint, name, count, plans)
    title = f"{count} clients, selective plan to last split"
    return [
        Figure(f"{title}, p50", percentile(one, 0.5) * 1e3, "ms"),
        Figure(f"{title}, p99", percentile(one, 0.99) * 1e3, "ms", "≤ 50"),
        Figure(f"the same, serve --processes {_PROCESSES}, p50", percentile(two, 0.5) * 1e3, "ms"),
        Figure(f"the same, serve --processes {_PROCESSES}, p99", percentile(two, 0.99) * 1e3, "ms"),
    ]


def _latencies(endpoint: str, table: TableName, count: int, plans: int) -> list[float]:
    work = (endpoint, table.schema, table.table, count // 4, plans)
    with ProcessPoolExecutor(4, multiprocessing.get_context("spawn")) as pool:
        found = [pool.submit(ask, *work) for _ in range(4)]
        return [seconds for future in found for seconds in future.result()]


@contextmanager
def _several() -> Iterator[tuple[str, TableName]]:
    """Planner processes behind one port, over the table in a real metastore."""
    name = TableName("bench", "lineitem")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spec = MetastoreSpec(scratch / "metastore", scratch / "warehouse", port=0, in_memory=True)
        uri = f"thrift://127.0.0.1:{stack.enter_context(start_embedded_metastore(spec)).port}"
        with MetastoreClient(uri) as client:
            client.create_database(name.schema)
            catalog = DirectoryCatalog(open_storage(), f"file://{small_files()}")
            register_table(client, name, catalog.table(catalog.name), [])
        config = Config({"metastore.uri": Setting(uri, "benchmark")})
        index_table(config, str(name), local=True, progress=lambda done, total: None, say=print)
        settings = {"SKIPBRIDGE_SERVICE_PROCESSES": str(_PROCESSES)}
        server = stack.enter_context(start_planner(scratch / "planner", uri, environment=settings))
        yield f"127.0.0.1:{server.port}", name


def ask(endpoint: str, schema: str, table: str, threads: int, plans: int) -> list[float]:
    """Run in a process of its own by `clients`: seconds from plan to last split, per plan."""

    def one() -> list[float]:
        latencies = []
        with PlannerClient(endpoint) as client:
            client.health()
            for _ in range(plans + 1):
                started = time.perf_counter()
                plan = client.plan(schema, table, DAY_WIRE, options={"freshness": "snapshot"})
                files = sum(b.splits.num_files for b in client.splits(plan.handle) if b.splits)
                latencies.append(time.perf_counter() - started)
                client.close_plan(plan.handle)
                assert 0 < files < 100
        return latencies[1:]

    with ThreadPoolExecutor(threads) as pool:
        runs = [pool.submit(one) for _ in range(threads)]
        return [seconds for run in runs for seconds in run.result()]


class _Synthetic:
    """A storage that lists files which do not exist: what is measured is the way of the splits."""

    def __init__(self, count: int) -> None:
        numbers = np.arange(count)
        prefix = "file:///warehouse/" + "a-rather-long-directory-name/" * 3
        names = [f"{prefix}part-{n:012d}.parquet" for n in numbers.tolist()]
        self._listing = FileTable(
            pa.array(names, pa.large_string()),
            np.full(count, 4096, np.int64),
            np.full(count, 1_700_000_000_000_000, np.int64),
        )

    def pages(self, prefix: str, **_: object) -> Iterator[FileTable]:
        yield self._listing


def wire(count: int = 1_000_000) -> list[Figure]:
    """From `plan` sent to the last split decoded by the Python client, nothing coalesced."""
    table = CatalogTable(
        TableName("bench", "synthetic"), (Column("id", BIGINT),), (), "file:///warehouse"
    )
    storage = _Synthetic(count)
    views = IndexViews(_no_index, root() / "cache", 60.0)
    planner = Planner(OneTable(table), views, DirectoryLister(storage), metadata_ttl=60.0)  # type: ignore[arg-type]
    with serving(planner) as server, PlannerClient(server.endpoint) as client:
        java = _java_rate(server.endpoint.rpartition(":")[2], count)
        best, first = float("inf"), 0.0
        for _ in range(3):
            started = time.perf_counter()
            plan = client.plan("bench", "synthetic", options={"max_files_per_split": "1"})
            seen, arrived = 0, 0.0
            for batch in client.splits(plan.handle, max_splits=50_000):
                if batch.splits is not None:
                    arrived = arrived or time.perf_counter() - started
                    seen += batch.splits.num_splits
            seconds = time.perf_counter() - started
            assert seen == count
            client.close_plan(plan.handle)
            if seconds < best:
                best, first = seconds, arrived
    return [
        *java,
        Figure(f"{count:,} splits, decoded by the Python client", count / best, "splits/s"),
        Figure("first batch of these", first * 1e3, "ms"),
    ]


def _java_rate(port: str, count: int) -> list[Figure]:
    """The same with the connector's own client, to its last split object; the best of three."""
    runs = run_java("io.skipbridge.trino.split.SplitRate", port)[1:]
    assert all(run[0] == count for run in runs)
    seconds, first = min((run[1], run[2]) for run in runs)
    return [
        Figure(
            f"{count:,} splits to the last Java object", count / seconds, "splits/s", "≥ 400,000"
        ),
        Figure("first batch of these", first, "ms", "≤ 50"),
    ]


def _no_index(table: CatalogTable) -> object:
    raise FileNotFoundError("no index: splits alone are measured")


def memory() -> list[Figure]:
    """Private pages of a planner process after 100 live plans of the 39,000-file table."""
    import sys

    code = (
        "from tests.benchmark.service import hundred_plans; hundred_plans(); "
        "import re, pathlib; t = pathlib.Path('/proc/self/smaps_rollup').read_text(); "
        "print(sum(int(n) for n in re.findall(r'Private_(?:Clean|Dirty):\\s+(\\d+)', t)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=_checkout()
    )
    return [
        Figure(
            "planner's private pages after 100 plans (live, 39,000 files)",
            int(done.stdout.split()[-1]) / 1024,
            "MiB",
            "≤ 200",
        )
    ]


def hundred_plans() -> None:
    """Run in a process of its own by `memory`."""
    from tests.benchmark.planning import DAY, plan

    catalog, views, table = indexed(small_files(), root() / "index-39000")
    listings = DirectoryLister(open_storage())
    planner = Planner(catalog, views(), listings, metadata_ttl=60.0)
    with serving(planner) as server, PlannerClient(server.endpoint) as client:
        for number in range(100):
            opened = client.plan(
                table.name.schema, table.name.table, DAY_WIRE, query_id=f"q{number}"
            )
            for _ in client.splits(opened.handle):
                pass
            client.close_plan(opened.handle)
    plan(planner, table, DAY, "live")
    assert psutil.Process().memory_info().rss > 0


def _checkout() -> Path:
    return Path(__file__).parents[2]
