"""Hudi tables in Trino 476: beside its stock hudi connector, and with and without skipping.

The tables are written once (`hudi_data`), and kept in the user's cache directory. A real Spark with
Hudi 0.15 reads the merge-on-read table as a peer, and has to give the same row.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import trino

import bridge
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.sync.job import SyncJob, run_job
from bridge.sync.request import SyncRequest
from bridge.table.hudi.format import TABLE_FORMAT
from bridge.table.hudi.open_tables import OpenTables
from bridge.table.model import TableName
from bridge.trino.plugin import build_plugin
from bridge.trino.server import TrinoSpec, start_trino
from tests.benchmark import hudi_data
from tests.benchmark.data import root
from tests.benchmark.figures import Figure, median
from tests.support.hudi_spark import environment_of, hudi_bundle, python_with_spark_35
from tests.support.servers.stock_trino import stock_plugins

_RANGE = "SELECT count(*), max(price), sum(n0) FROM hudi.cow WHERE id BETWEEN 200000 AND 200900"
_FULL = "SELECT s, sum(n0), max(price), max(d0), count(*) FROM hudi.cow GROUP BY s ORDER BY 1"
_ONE = "SELECT count(*), max(price), max(ts) FROM hudi.mor WHERE id BETWEEN 200000 AND 200900"
_MERGED = "SELECT max(price), max(ts), count(*) FROM hudi.mor"
_ROOT = Path(__file__).parents[2]
_CLIENTS = 16


def run() -> list[Figure]:
    directory = tables()
    return [*_planning(directory / "cow"), *_queries(directory)]


def tables() -> Path:
    """The directory of the tables, which are written the first time."""
    directory = root() / "hudi-6"
    for name, write in (("cow", hudi_data.write_cow), ("mor", hudi_data.write_mor)):
        if (directory / name).exists():
            continue
        begun, writing = time.perf_counter(), directory / "writing"
        shutil.rmtree(writing, ignore_errors=True)
        writing.mkdir(parents=True)
        write(writing / name)
        (writing / name).rename(directory / name)
        print(f"{name} written in {time.perf_counter() - begun:.0f} s", flush=True)
    return directory


def _spark(module: str, *arguments: str) -> str:
    """Runs a module in a Python with PySpark 3.5, with Hudi 0.15; returns what it printed."""
    python = python_with_spark_35()
    done = subprocess.run(
        [str(python), "-m", f"tests.benchmark.{module}", str(hudi_bundle(6)), *arguments],
        cwd=_ROOT,
        env=environment_of(python),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def _planning(table: Path) -> list[Figure]:
    """`Planner.plan` in process: the timeline unchanged, and read anew by a new process."""
    with bridge.connect() as session:
        opened = session.table(str(table))
        opened.index.build()

        def plan() -> None:
            assert opened.scan("id BETWEEN 200000 AND 200900").files().num_rows <= 4

        warm = median(plan, 21, 5)

        def anew() -> None:
            TABLE_FORMAT._tables = OpenTables()
            plan()

        cold = median(anew, 7, 1)
    return [
        Figure("8,000 files: plan, timeline unchanged", warm * 1e3, "ms", "≤ 5"),
        Figure("8,000 files: plan, timeline read anew", cold * 1e3, "ms", "≤ 60"),
    ]


def _queries(directory: Path) -> list[Figure]:
    figures: list[Figure] = []
    with ExitStack() as stack:
        query = cluster(stack, directory, ("cow", "mor"))
        for title, sql, target in (
            ("copy-on-write, 8,000 files, a range", _RANGE, "≥ 20x"),
            ("copy-on-write, 8,000 files, full scan", _FULL, "≥ 5x"),
        ):
            assert query("bridge", sql) == query("hudi", sql)
            ours = median(lambda sql=sql: query("bridge", sql), 7, 5)  # type: ignore[misc]
            stock = median(lambda sql=sql: query("hudi", sql), 3, 1)  # type: ignore[misc]
            print(f"{title}: skipbridge {ours:.3f} s, stock hudi {stock:.2f} s", flush=True)
            figures += [
                Figure(f"{title}: skipbridge", ours, "s"),
                Figure(f"{title}: stock hudi", stock, "s"),
                Figure(f"{title}: times faster", stock / ours, "x", target),
            ]
        every = {"pruning_enabled": "false"}
        assert query("bridge", _ONE) == query("bridge", _ONE, every)
        skipping = median(lambda: query("bridge", _ONE), 7, 3)
        reading = median(lambda: query("bridge", _ONE, every), 3, 1)
        merged = median(lambda: query("bridge", _MERGED), 3, 1)
        (row,) = query("bridge", _MERGED)
        alone, together = _clients(query, 1), _clients(query, _CLIENTS)
        figures += [
            Figure("merge-on-read, 500 slices with 3 logs, a range", skipping, "s"),
            Figure("the same without skipping", reading, "s"),
            Figure("times faster by skipping", reading / skipping, "x", "≥ 10x"),
            Figure("merge-on-read, full scan: rows a second", 1e6 / merged, "rows/s"),
            Figure("merge-on-read, a range: queries a second of one client", alone, "queries/s"),
            Figure(f"the same of {_CLIENTS} clients", together, "queries/s"),
        ]
    # Trino has ended: the peer has the machine for itself.
    answer = _spark("hudi_spark", str(directory / "mor"), "3").partition("@@")[2]
    peer = json.loads(answer.partition("\n")[0])
    assert peer["row"] == row, f"Spark reads {peer['row']}, and we read {row}"
    seconds = statistics.median(peer["seconds"])
    figures.append(Figure("merge-on-read, full scan by Spark", 1e6 / seconds, "rows/s"))
    return figures


def _clients(query: Callable[..., list[Any]], clients: int, queries: int = 48) -> float:
    """Queries a second."""
    begun = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(lambda _: query("bridge", _ONE), range(queries)))
    return queries / (time.perf_counter() - begun)


def cluster(stack: ExitStack, directory: Path, tables: tuple[str, ...]) -> Callable[..., list[Any]]:
    """Metastore, planner and Trino over the directory's Hudi tables; query(catalog, sql)."""
    scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    metastore = stack.enter_context(
        start_embedded_metastore(
            MetastoreSpec(scratch / "metastore", scratch / "warehouse", port=0, in_memory=True)
        )
    )
    uri = f"thrift://127.0.0.1:{metastore.port}"
    config = Config({"metastore.uri": Setting(uri, "benchmark")})
    with MetastoreClient(uri) as client:
        client.create_database("hudi")
    for name in tables:
        started = time.perf_counter()
        request = SyncRequest(TableName("hudi", name), f"file://{directory / name}")
        run_job(config, SyncJob(request), progress=lambda done, total: None, say=print)
        print(f"{name} registered in {time.perf_counter() - started:.1f} s", flush=True)
        report = index_table(
            config, f"hudi.{name}", local=True, progress=lambda done, total: None, say=print
        )
        print(f"{name} indexed in {report['seconds']:.1f} s, {report['files']} files", flush=True)
    planner = stack.enter_context(start_planner(scratch / "planner", uri))
    plugin = build_plugin(
        "476", scratch / "plugin", None, "skipbridge", lambda line: None, hudi=True
    )
    bridge_catalog = {
        "connector.name": "skipbridge",
        "skipbridge.planner": f"127.0.0.1:{planner.port}",
    }
    stock = {"connector.name": "hudi", "hive.metastore.uri": uri, "fs.hadoop.enabled": "true"}
    spec = TrinoSpec(
        scratch / "trino",
        catalogs={"bridge": bridge_catalog, "hudi": stock},
        plugins={"skipbridge": plugin, **stock_plugins("hudi")},
        port=0,
        heap="6G",
    )
    server = stack.enter_context(start_trino(spec))

    def query(catalog: str, sql: str, session: dict[str, str] | None = None) -> list[Any]:
        connection = trino.dbapi.connect(
            host="127.0.0.1",
            port=server.port,
            user="bench",
            session_properties={f"{catalog}.{k}": v for k, v in (session or {}).items()},
        )
        cursor = connection.cursor()
        cursor.execute(sql.replace("hudi.", f"{catalog}.hudi."))
        return list(cursor.fetchall())

    return query
