"""Trino 476 over HDFS, beside its stock hive connector with Hadoop's client in the same server.

The small files of `store_queries` on a name node and a data node of this machine, without latency.
``SKIPBRIDGE_BENCH_FILES`` makes it fewer files. Stock hive is asked once for each query, when it is
warm; ``SKIPBRIDGE_BENCH_STOCK=0`` leaves that out. All share the cores.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.process import LOOPBACK
from tests.benchmark.data import SMALL_FILES, root, small_files
from tests.benchmark.figures import Figure, timed
from tests.benchmark.store_engines import asked_for, engines, register_tables
from tests.benchmark.store_queries import COUNT, FEW, FULL, LIMIT, QUICK, SMALL, SMALL_TABLES, WEEKS
from tests.benchmark.stores import fill
from tests.support.hdfs import start_hdfs

_ASKED = (
    ("LIMIT 10", LIMIT, ("live", "snapshot"), 0),
    ("a day", FEW, ("live", "cached", "snapshot"), 50),
    ("14 weeks", WEEKS, ("live", "snapshot"), 50),
    ("count(*)", COUNT, ("live", "snapshot"), 0),
    ("full scan", FULL, ("live",), 10),
)
"""Title, query, tables, and how many times stock hive's time it is to take."""


def run() -> list[Figure]:
    return _measured(int(os.environ.get("SKIPBRIDGE_BENCH_FILES", SMALL_FILES)), runs=5)


def quick() -> list[Figure]:
    return _measured(int(os.environ.get("SKIPBRIDGE_BENCH_FILES", QUICK)), runs=2)


def _measured(count: int, runs: int) -> list[Figure]:
    stock = os.environ.get("SKIPBRIDGE_BENCH_STOCK", "1") != "0"
    figures = []

    def told(figure: Figure) -> None:
        figures.append(figure)
        print(f"{figure.work}: {figure.value:.3g} {figure.unit}; {figure.note}", flush=True)

    with _world(count) as port:

        def rows(catalog: str, sql: str, table: str = "live") -> list[Any]:
            return asked_for(port, catalog, sql, table)

        if stock:
            rows("hive", LIMIT)  # its code is compiled, and its client connected
        for title, sql, tables, least in _ASKED:
            expected: list[Any] = []
            theirs = 0.0
            if stock:
                started = time.perf_counter()
                expected = rows("hive", sql)
                theirs = time.perf_counter() - started
                told(Figure(f"{title}: stock hive", theirs, "s", note="one run"))
            for table in tables:
                found = rows("bridge", sql, table)
                assert not stock or sql == LIMIT or found == expected, (title, table)
                ours = [
                    timed(lambda s=sql, t=table: rows("bridge", s, t))  # type: ignore[misc]
                    for _ in range(runs)
                ]
                spread = f"{min(ours):.2f} to {max(ours):.2f}"
                median = statistics.median(ours)
                told(Figure(f"{title}, {table}", median, "s", note=spread))
                if stock:
                    aim = f"≥ {least}" if least and count == SMALL_FILES else ""
                    told(Figure(f"{title}, {table}: beside stock", theirs / median, "x", aim))
    return figures


@contextmanager
def _world(count: int) -> Iterator[int]:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=root())))
        cluster = start_hdfs(scratch / "hdfs")
        stack.enter_context(cluster.server)
        fill(small_files(count), {}, f"{cluster.uri}/{SMALL}")
        metastore = stack.enter_context(
            start_embedded_metastore(MetastoreSpec(scratch / "ms", port=0, in_memory=True))
        )
        uri = f"thrift://{LOOPBACK}:{metastore.port}"
        register_tables(uri, {}, cluster.uri, SMALL_TABLES)
        hadoop = {"fs.hadoop.enabled": "true"}
        yield stack.enter_context(engines(scratch, uri, {}, hadoop, ("hdfs",)))
