"""The Iceberg REST door with real clients: 39,000 files of flights, beside what else reads them.

Spark 4.1 reads them through the door under ``snapshot`` and ``live``, with its own Parquet reader
(whose listing is kept), and as a real Iceberg table that `add_files` made of the same files.
PyIceberg reads an hour. Clients ask the door and the Thrift port of one planner for one file.
"""

from __future__ import annotations

import datetime as dt
import http.client
import json
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyiceberg.catalog import load_catalog

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.runtime.create_table import create_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import free_port
from tests.benchmark import data
from tests.benchmark.clustered import flights
from tests.benchmark.figures import Figure, median, percentile, timed
from tests.support.iceberg_door import JAVA
from tests.support.iceberg_spark import IcebergSpark, open_spark
from tests.support.planner_client import PlannerClient

_CLIENTS, _PROCESSES = 16, 2
_BEGIN = dt.datetime(2020, 1, 1)
_GROUPED = "SELECT origin, count(*), sum(delay) FROM {t} GROUP BY origin ORDER BY origin"
_COUNT = "SELECT count(*) FROM {t}"


@dataclass(frozen=True, slots=True)
class _Door:
    """A planner with a door.

    Attributes:
        planner: host:port for Thrift.
        http: the port of the door.
    """

    planner: str
    http: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http}"


def run() -> list[Figure]:
    return _measured(data.SMALL_FILES, 6.0)


def quick() -> list[Figure]:
    return _measured(400, 1.0)


def _measured(count: int, seconds: float) -> list[Figure]:
    directory = flights(count)
    with _doors(directory) as doors, tempfile.TemporaryDirectory() as scratch:
        figures = [*_ports(doors["snapshot"], count, seconds), *_pyiceberg(doors, count)]
        settings = {"spark.driver.memory": "2g"}
        with open_spark(Path(scratch), settings=settings) as spark:
            figures += _spark(spark, doors, directory, count, Path(scratch))
    return figures


@contextmanager
def _doors(directory: Path) -> Iterator[dict[str, _Door]]:
    """Planners beside one metastore, by their freshness."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spec = MetastoreSpec(scratch / "metastore", scratch / "warehouse", port=0, in_memory=True)
        metastore = stack.enter_context(start_embedded_metastore(spec))
        uri, index = f"thrift://127.0.0.1:{metastore.port}", f"file://{scratch}/index"
        settings = {"metastore.uri": uri, "index.root": index}
        config = Config({key: Setting(text, "benchmark") for key, text in settings.items()})
        create_table(config, "bench.flights", str(directory), dry_run=False, progress=_silent)
        index_table(config, "bench.flights", local=True, progress=_silent, say=print)
        found = {}
        for freshness in ("snapshot", "live"):
            door = free_port()
            environment = {
                "SKIPBRIDGE_INDEX_ROOT": index,
                "SKIPBRIDGE_PLANNER_FRESHNESS": freshness,
            }
            planner = start_planner(
                scratch / freshness, uri, http_port=door, environment=environment
            )
            stack.enter_context(planner)
            found[freshness] = _Door(f"127.0.0.1:{planner.port}", door)
        yield found


def _silent(done: int, total: int) -> None:
    """The benchmark prints figures only."""


def _minute(number: int) -> dt.datetime:
    return _BEGIN + dt.timedelta(minutes=number)


def _micros(minute: dt.datetime) -> int:
    return (minute - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


# The ports


def _ports(door: _Door, count: int, seconds: float) -> list[Figure]:
    """Plans of one file from many clients, at both ports in turn."""
    waits: dict[str, list[float]] = {"Thrift": [], "door": []}
    shares = [len(range(i, _CLIENTS, _PROCESSES)) for i in range(_PROCESSES)]
    with ProcessPoolExecutor(_PROCESSES, multiprocessing.get_context("spawn")) as pool:
        for warm in (True, False, False, False):
            for port, found in waits.items():
                until = 1.0 if warm else seconds
                runs = [pool.submit(_ask, door, port, n, count, until) for n in shares]
                taken = [wait for each in runs for wait in each.result()]
                found += [] if warm else taken
    late = {port: percentile(found, 0.99) for port, found in waits.items()}
    notes = {
        port: f"p50 {percentile(found, 0.5) * 1e3:.0f} ms, {len(found) / 3 / seconds:.0f} plans/s"
        for port, found in waits.items()
    }
    title = f"plan of one file, snapshot, {_CLIENTS} clients, p99: "
    return [
        Figure(f"{title}Thrift port", late["Thrift"] * 1e3, "ms", note=notes["Thrift"]),
        Figure(f"{title}door", late["door"] * 1e3, "ms", note=notes["door"]),
        Figure(f"{title}door over Thrift port", late["door"] / late["Thrift"], "x", "≤ 1.3"),
    ]


def _ask(door: _Door, port: str, threads: int, count: int, seconds: float) -> list[float]:
    """Run in a process of its own: seconds of each plan."""
    until = time.perf_counter() + seconds
    plans = _over_http if port == "door" else _over_thrift

    def one(number: int) -> list[float]:
        chosen = random.Random(number)
        found: list[float] = []
        with plans(door) as plan:
            while not found or time.perf_counter() < until:
                minute = chosen.randrange(count) * 10 + 5
                started = time.perf_counter()
                files = plan(_minute(minute))
                found.append(time.perf_counter() - started)
                assert 0 < files < 4, files
        return found

    with ThreadPoolExecutor(threads) as pool:
        return [wait for each in pool.map(one, range(threads)) for wait in each]


@contextmanager
def _over_http(door: _Door) -> Iterator[Callable[[dt.datetime], int]]:
    connection = http.client.HTTPConnection("127.0.0.1", door.http, timeout=300)
    path = "/v1/namespaces/bench/tables/flights/plan"

    def plan(minute: dt.datetime) -> int:
        body = json.dumps({"filter": {"type": "eq", "term": "ts", "value": _micros(minute)}})
        connection.request("POST", path, body, JAVA)
        answer = json.loads(connection.getresponse().read())
        return len(answer["file-scan-tasks"])

    try:
        yield plan
    finally:
        connection.close()


@contextmanager
def _over_thrift(door: _Door) -> Iterator[Callable[[dt.datetime], int]]:
    with PlannerClient(door.planner, timeout=300.0) as client:

        def plan(minute: dt.datetime) -> int:
            micros = _micros(minute)
            bounds = {"low": micros, "low_inclusive": True, "high": micros, "high_inclusive": True}
            domain = {"column": "ts", "type": "timestamp(6)", "null_allowed": False}
            text = json.dumps({"version": 1, "domains": [{**domain, "ranges": [bounds]}]})
            made = client.plan("bench", "flights", text)
            files = sum(b.splits.num_files for b in client.splits(made.handle) if b.splits)
            client.close_plan(made.handle)
            return files

        yield plan


# The clients


def _pyiceberg(doors: dict[str, _Door], count: int) -> list[Figure]:
    figures = []
    first = count * 5 // 60 * 60
    where = f"ts >= '{_minute(first).isoformat()}' and ts < '{_minute(first + 60).isoformat()}'"
    for freshness, door in doors.items():
        catalog = load_catalog("sb", type="rest", uri=door.url)
        loaded = timed(partial(catalog.load_table, "bench.flights"))
        table = catalog.load_table("bench.flights")
        scan = table.scan(row_filter=where)
        took = median(scan.to_arrow, 5)
        rows, files = len(scan.to_arrow()), len(list(scan.plan_files()))
        note = f"{rows} rows of {files} files; load {loaded:.3f} s"
        title = f"PyIceberg, one hour to Arrow, {freshness}"
        figures.append(Figure(title, took, target="≤ 0.4", note=note))
    return figures


def _spark(
    spark: IcebergSpark, doors: dict[str, _Door], directory: Path, count: int, scratch: Path
) -> list[Figure]:
    tables = {
        freshness: f"{spark.catalog(door.url, **{'cache-enabled': 'true'})}.bench.flights"
        for freshness, door in doors.items()
    }
    tables["own"] = "own"
    spark(f"CREATE TEMPORARY VIEW own USING parquet OPTIONS (path 'file://{directory}')")
    added = timed(partial(_add_files, spark, directory, scratch))
    tables["iceberg"] = "ib.bench.flights"
    minute = _minute(count // 2 * 10 + 5)
    one = f"SELECT count(*), sum(delay) FROM {{t}} WHERE ts = TIMESTAMP_NTZ '{minute}'"
    works = (("one file", one, 7), ("GROUP BY", _GROUPED, 1), ("count(*)", _COUNT, 5))
    found: dict[tuple[str, str], float] = {}
    for work, sql, runs in works:
        rows = {}
        for name, table in tables.items():
            text = sql.format(t=table)
            some = 1 if name == "own" else runs
            warmups = 1 if work == "GROUP BY" or name == "own" else 4
            found[work, name] = median(partial(spark, text), some, warmups)
            rows[name] = spark(text) if work != "GROUP BY" else [[]]
        assert all(each == rows["own"] for each in rows.values()), rows
    return [*_figures(found), Figure("add_files", added, note="of a real Iceberg table")]


def _add_files(spark: IcebergSpark, directory: Path, scratch: Path) -> None:
    """A real Iceberg table of the same files."""
    settings = {
        "spark.sql.catalog.ib": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ib.type": "hadoop",
        "spark.sql.catalog.ib.warehouse": f"file://{scratch}/iceberg",
    }
    columns = "ts TIMESTAMP_NTZ, flight BIGINT, delay BIGINT, origin STRING, destination STRING"
    spark(f"CREATE TABLE ib.bench.flights ({columns}) USING iceberg", **settings)
    source = f"`parquet`.`file://{directory}`"
    spark(f"CALL ib.system.add_files(table => 'bench.flights', source_table => '{source}')")


def _figures(found: dict[tuple[str, str], float]) -> list[Figure]:
    aims = {
        ("one file", "snapshot"): "≤ 0.3",
        ("one file", "live"): "≤ 0.6",
        ("count(*)", "snapshot"): "≤ 0.5",
    }
    names = {"own": "its own reader", "iceberg": "a real Iceberg table"}
    figures = [
        Figure(
            f"Spark 4.1, {work}, {names.get(name, name)}", took, target=aims.get((work, name), "")
        )
        for (work, name), took in found.items()
    ]
    own, ours = found["one file", "own"], found["one file", "snapshot"]
    figures.append(Figure("one file: times faster than its own reader", own / ours, "x", "≥ 50"))
    share = found["GROUP BY", "snapshot"] / found["GROUP BY", "own"]
    figures.append(Figure("GROUP BY: over its own reader", share, "x", "≤ 0.6"))
    for work in ("one file", "GROUP BY", "count(*)"):
        share = found[work, "snapshot"] / found[work, "iceberg"]
        figures.append(Figure(f"{work}: over a real Iceberg table", share, "x", "≤ 1"))
    return figures
