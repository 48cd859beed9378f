"""A merge-on-read Hudi table in an object store with latency: requests of a query, many clients.

100 slices with three logs each on versitygw, behind a proxy that delays each answer by 30 ms
(``SKIPBRIDGE_BENCH_LATENCY``). Trino 476, planner, proxy and store share the cores.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import trino

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import LOOPBACK
from bridge.storage.routed import open_storage
from bridge.sync.job import SyncJob, run_job
from bridge.sync.request import SyncRequest
from bridge.table.model import TableName
from bridge.trino.plugin import build_plugin
from bridge.trino.server import TrinoSpec, start_trino
from tests.benchmark import hudi_data
from tests.benchmark.data import root
from tests.benchmark.figures import Figure, median
from tests.support.s3_metastore import s3_metastore
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET, start_versitygw

_SLICES, _CLIENTS, _QUERIES = 100, 16, 48
_ONE = "SELECT count(*), max(price), max(ts) FROM bridge.hudi.mor WHERE id BETWEEN 20000 AND 20900"
_FULL = "SELECT max(price), max(ts), count(*) FROM bridge.hudi.mor"


def run() -> list[Figure]:
    latency = float(os.environ.get("SKIPBRIDGE_BENCH_LATENCY", "30")) / 1e3
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=root())))
        gateway = start_versitygw(scratch / "s3")
        stack.enter_context(gateway.server)
        _fill(scratch, gateway.options)
        metastore = stack.enter_context(
            start_embedded_metastore(s3_metastore(scratch / "ms", BUCKET, ("mor",)))
        )
        uri = f"thrift://{LOOPBACK}:{metastore.port}"
        os.environ.update(gateway.environment)
        _register(uri, gateway.options)
        proxy = stack.enter_context(SlowStore(gateway.server.port))
        query = _trino(stack, scratch, uri, gateway.through(proxy.port), gateway.environment)
        proxy.behave(Behaviour(latency=latency))
        expected = query(_ONE)
        assert expected[0][0] == 901, expected

        figures = [Figure("a range in one slice", median(lambda: query(_ONE), 9, 3))]
        proxy.take()
        query(_ONE)
        seen = proxy.take()
        figures[0] = Figure(
            figures[0].work,
            figures[0].value,
            note=f"{seen.count('LIST')} listings, {seen.count('GET')} GET, "
            f"{seen.count('HEAD')} HEAD, {seen.count(part='/.hoodie')} of them of the timeline",
        )
        for clients in (1, _CLIENTS):
            begun = time.perf_counter()
            with ThreadPoolExecutor(clients) as pool:
                answers = list(pool.map(lambda _: query(_ONE), range(_QUERIES)))
            assert all(answer == expected for answer in answers)
            rate = _QUERIES / (time.perf_counter() - begun)
            figures.append(Figure(f"the same, clients: {clients}", rate, "queries/s"))
        full = median(lambda: query(_FULL), 3, 1)
        rows = _SLICES * hudi_data.RECORDS
        figures.append(Figure("full scan, merged", rows / full, "rows/s"))
    return figures


def _fill(scratch: Path, options: dict[str, str]) -> None:
    hudi_data.write_mor(scratch / "mor", _SLICES)
    storage = open_storage(options=options)
    files = [path for path in (scratch / "mor").rglob("*") if path.is_file()]
    with ThreadPoolExecutor(16) as pool:
        list(
            pool.map(
                lambda file: storage.put(
                    f"s3://{BUCKET}/{file.relative_to(scratch)}", file.read_bytes()
                ),
                files,
            )
        )


def _register(uri: str, options: dict[str, str]) -> None:
    config = Config(
        {
            "metastore.uri": Setting(uri, "benchmark"),
            "storage.endpoint": Setting(options["endpoint"], "benchmark"),
            "storage.region": Setting("us-east-1", "benchmark"),
            "storage.allow_http": Setting("true", "benchmark"),
        }
    )
    with MetastoreClient(uri) as client:
        client.create_database("hudi")
    request = SyncRequest(TableName("hudi", "mor"), f"s3://{BUCKET}/mor")
    run_job(config, SyncJob(request), progress=lambda done, total: None, say=print)
    index_table(config, "hudi.mor", local=True, progress=lambda done, total: None, say=print)


def _trino(
    stack: ExitStack,
    scratch: Path,
    uri: str,
    options: dict[str, str],
    credentials: dict[str, str],
) -> Callable[[str], list[Any]]:
    environment = {
        "SKIPBRIDGE_CACHE": str(scratch / "cache"),
        "SKIPBRIDGE_STORAGE_ENDPOINT": options["endpoint"],
        "SKIPBRIDGE_STORAGE_REGION": "us-east-1",
        "SKIPBRIDGE_STORAGE_ALLOW_HTTP": "true",
        **credentials,
    }
    planner = stack.enter_context(start_planner(scratch / "planner", uri, environment=environment))
    catalog = {
        "connector.name": "skipbridge",
        "skipbridge.planner": f"{LOOPBACK}:{planner.port}",
        "fs.native-s3.enabled": "true",
        "s3.endpoint": options["endpoint"],
        "s3.region": "us-east-1",
        "s3.path-style-access": "true",
        "s3.aws-access-key": options["access_key_id"],
        "s3.aws-secret-key": options["secret_access_key"],
    }
    plugin = build_plugin(
        "476", scratch / "plugin", None, "skipbridge", lambda line: None, hudi=True
    )
    spec = TrinoSpec(
        scratch / "trino",
        catalogs={"bridge": catalog},
        plugins={"skipbridge": plugin},
        port=0,
        heap="6G",
    )
    server = stack.enter_context(start_trino(spec))

    def query(sql: str) -> list[Any]:
        connection = trino.dbapi.connect(host=LOOPBACK, port=server.port, user="bench")
        cursor = connection.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall())

    return query
