"""TPC-H SF1 in Trino 476 on an object store with latency, beside stock hive with native S3.

The files of `tpc`'s layout on versitygw behind a proxy that delays each answer: four large ones of
each large table. Both catalogs have column statistics by ANALYZE. ``TPCH_QUERIES`` and ``TPC_RUNS``
are those of `tpc` (3 runs if unset), ``SKIPBRIDGE_BENCH_LATENCY`` is that of `stores`.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.benchmark import tpc, tpc_data
from tests.benchmark.data import root
from tests.benchmark.figures import Figure
from tests.benchmark.store_engines import latency, register_tables, s3_engines
from tests.benchmark.stores import fill
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.tpc import TABLES
from tests.support.versitygw import BUCKET, start_versitygw

_CATALOGS = ("bridge", "hive")


def run() -> list[Figure]:
    return _measured(tpc.runs_or(3))


def quick() -> list[Figure]:
    return _measured(tpc.runs_or(1))


def _measured(runs: int) -> list[Figure]:
    data = tpc_data.made(tpc_data.TPCH).data
    tables = TABLES["tpch"]
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=root())))
        gateway = start_versitygw(scratch / "s3")
        stack.enter_context(gateway.server)
        for table in tables:
            fill(data / table, gateway.options, f"s3://{BUCKET}/{table}")
        proxy = stack.enter_context(SlowStore(gateway.server.port))

        def register(uri: str) -> None:
            places = {table: table for table in tables}
            register_tables(uri, gateway.options, f"s3://{BUCKET}", places)

        port = stack.enter_context(s3_engines(scratch, gateway, proxy, tables, register))
        running = tpc.Engines(port, "", "", _CATALOGS)
        for table in tables:
            name = "${database}.${schema}." + table
            running.rows("hive", f"ANALYZE {name}")
        proxy.behave(Behaviour(latency=latency()))
        return tpc.asked(running, "tpch on S3", 1.0, tpc.chosen("tpch"), runs)
