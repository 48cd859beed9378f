"""Many clients at once over the wire: plans per second, and how long a plan waits.

The planner runs as ``serve`` starts it, beside a metastore that records no events. Each client is a
thread; their processes are not the planner's. Every plan is a query of its own.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.runtime.create_table import create_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from tests.benchmark.data import root, small_files
from tests.benchmark.figures import Figure, percentile
from tests.support.planner_client import PlannerClient

CLIENTS = (1, 16, 64)
_SECONDS = 6.0
_PARTITIONS = 1_824
_FIRST_DAY = 2_450_816
_CLIENT_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of query.

    Attributes:
        days: partitions that a dynamic filter keeps; 0: none is sent.
    """

    title: str
    table: str
    freshness: str
    days: int = 0

    @property
    def flat(self) -> bool:
        return self.table == "lineitem"


WORKS = (
    Work("39,000 files in one directory, live, one day", "lineitem", "live"),
    Work("1,824 partitions, live, a dynamic filter keeps 30", "store_sales", "live", 30),
    Work("1,824 partitions, snapshot, a dynamic filter keeps 30", "store_sales", "snapshot", 30),
    Work("1,824 partitions, live, all", "store_sales", "live"),
    Work("1,824 partitions, snapshot, all", "store_sales", "snapshot"),
)


@dataclass(frozen=True, slots=True)
class Load:
    """What so many clients got in one run.

    Attributes:
        rate: plans per second.
        latencies: seconds from plan to last split, of each plan.
        cpu: processor seconds per plan, of the planner and of the metastore.
    """

    rate: float
    latencies: Sequence[float]
    cpu: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Serving:
    """A planner beside a metastore, with both tables."""

    endpoint: str
    planner: int
    metastore: int

    def under(self, work: Work, clients: int, seconds: float = _SECONDS) -> Load:
        """Asks for as long as that, from so many clients; at least once each."""
        shares = [len(range(i, clients, _CLIENT_PROCESSES)) for i in range(_CLIENT_PROCESSES)]
        shares = [n for n in shares if n]
        with ProcessPoolExecutor(len(shares), multiprocessing.get_context("spawn")) as pool:
            list(pool.map(_ready, shares))
            before = self._cpu()
            started = time.perf_counter()
            runs = [pool.submit(ask, self.endpoint, work, n, seconds) for n in shares]
            latencies = [s for run in runs for s in run.result()]
            taken = time.perf_counter() - started
            after = self._cpu()
        n = len(latencies)
        cpu = ((after[0] - before[0]) / n, (after[1] - before[1]) / n)
        return Load(n / taken, latencies, cpu)

    def _cpu(self) -> tuple[float, float]:
        return _cpu_seconds(self.planner), _cpu_seconds(self.metastore)


def _ready(number: int) -> int:
    """Starts a process of clients before time is taken."""
    return number


def _cpu_seconds(pid: int) -> float:
    whole = psutil.Process(pid)
    times = [p.cpu_times() for p in (whole, *whole.children(recursive=True))]
    return float(sum(t.user + t.system for t in times))


def ask(endpoint: str, work: Work, threads: int, seconds: float) -> list[float]:
    """Run in a process of its own: seconds from plan to last split, per plan."""
    until = time.perf_counter() + seconds

    def one(number: int) -> list[float]:
        chosen = random.Random(number)
        latencies: list[float] = []
        with PlannerClient(endpoint, timeout=300.0) as client:
            while not latencies or time.perf_counter() < until:
                started = time.perf_counter()
                files = _plan(client, work, chosen)
                latencies.append(time.perf_counter() - started)
                assert 0 < files < 100 if work.flat else files == (work.days or _PARTITIONS), files
        return latencies

    with ThreadPoolExecutor(threads) as pool:
        return [s for run in pool.map(one, range(threads)) for s in run]


def _plan(client: PlannerClient, work: Work, chosen: random.Random) -> int:
    where = ""
    if work.flat:
        day = chosen.randrange(8_100, 10_500)
        where = _between("l_shipdate", "date", day, day + 1)
    plan = client.plan(
        "bench",
        work.table,
        where,
        query_id=f"{chosen.getrandbits(64):x}",
        options={"freshness": work.freshness},
    )
    if work.days:
        first = _FIRST_DAY + chosen.randrange(_PARTITIONS - work.days)
        kept = _between("ss_sold_date_sk", "integer", first, first + work.days)
        client.apply_dynamic_filter(plan.handle, kept)
    files = sum(b.splits.num_files for b in client.splits(plan.handle) if b.splits)
    client.close_plan(plan.handle)
    return files


def _between(column: str, type: str, low: int, high: int) -> str:
    bounds = {"low": low, "low_inclusive": True, "high": high, "high_inclusive": False}
    domain = {"column": column, "type": type, "null_allowed": False, "ranges": [bounds]}
    return json.dumps({"version": 1, "domains": [domain]})


def days() -> Path:
    """A table of 1,824 partitions with one small file of 22 columns each."""
    directory = root() / "store_sales"
    if (directory / "_DONE").exists():
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    numbers = np.arange(20)
    for day in range(_FIRST_DAY, _FIRST_DAY + _PARTITIONS):
        columns = {f"ss_column_{i}": pa.array(numbers + day + i, pa.int64()) for i in range(22)}
        partition = directory / f"ss_sold_date_sk={day}"
        partition.mkdir(parents=True)
        pq.write_table(pa.table(columns), partition / "part-0.parquet")
    (directory / "_DONE").touch()
    return directory


@contextmanager
def serving(**environment: str) -> Iterator[Serving]:
    """A planner beside a metastore, over both tables."""
    tables = {"lineitem": small_files(), "store_sales": days()}
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spec = MetastoreSpec(scratch / "metastore", scratch / "warehouse", port=0, in_memory=True)
        metastore = stack.enter_context(start_embedded_metastore(spec))
        uri = f"thrift://127.0.0.1:{metastore.port}"
        settings = {"metastore.uri": uri, "index.root": f"file://{scratch}/index"}
        config = Config({key: Setting(text, "benchmark") for key, text in settings.items()})
        for name, directory in tables.items():
            table = f"bench.{name}"
            create_table(config, table, str(directory), dry_run=False, progress=_silent)
            index_table(config, table, local=True, progress=_silent, say=print)
        environment = {
            "SKIPBRIDGE_INDEX_ROOT": f"file://{scratch}/index",
            "SKIPBRIDGE_SERVICE_PROCESSES": "0",  # as `serve` chooses
            **environment,
        }
        planner = start_planner(scratch / "planner", uri, environment=environment)
        stack.enter_context(planner)
        endpoint = f"127.0.0.1:{planner.port}"
        with PlannerClient(endpoint) as client:
            for work in WORKS:
                _plan(client, work, random.Random(1))
        yield Serving(endpoint, planner.pid, metastore.pid)


def _silent(done: int, total: int) -> None:
    """The benchmark prints figures only."""


def run() -> list[Figure]:
    found: list[Figure] = []
    with serving() as planner:
        for work in WORKS:
            for clients in CLIENTS:
                found += _figures(work, clients, planner.under(work, clients))
    return found


def _figures(work: Work, clients: int, load: Load) -> list[Figure]:
    title = f"{work.title}: {clients} clients"
    if clients == 1:
        title = title[:-1]
    waits = load.latencies
    note = (
        f"p50 {percentile(waits, 0.5) * 1e3:.0f}, p99 {percentile(waits, 0.99) * 1e3:.0f}, longest "
        f"{max(waits) * 1e3:.0f} ms; processor per plan: planner {load.cpu[0] * 1e3:.0f}, "
        f"metastore {load.cpu[1] * 1e3:.0f} ms"
    )
    return [Figure(title, load.rate, "plans/s", note=note)]
