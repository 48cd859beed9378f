"""Trino 476 over an object store with latency, beside its stock hive connector with native S3.

lineitem (SF 0.5) in 39,000 small files and in four large ones, on versitygw behind a proxy that
delays each answer. The small files are one directory under three names, one for each freshness.
``SKIPBRIDGE_BENCH_FILES`` and ``SKIPBRIDGE_BENCH_LATENCY`` are those of `stores`. Stock hive takes
minutes for the small files, whatever is asked: it is asked once, when both sides are warm;
``SKIPBRIDGE_BENCH_STOCK=0`` leaves that out. Trino, planner, proxy and store share the cores.
"""

from __future__ import annotations

import io
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import trino

from bridge.config import Config, Setting
from bridge.jobs.create_table import register_table
from bridge.jobs.index_table import index_table
from bridge.jobs.plugin import build_plugin
from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import LOOPBACK
from bridge.servers.trino_server import TrinoSpec, start_trino, stock_plugins
from bridge.storage.routed import open_storage
from bridge.table.directory_catalog import DirectoryCatalog
from bridge.table.model import TableName
from tests.benchmark.data import SMALL_FILES, root, small_files
from tests.benchmark.figures import Figure, interleaved, timed
from tests.benchmark.stores import fill
from tests.support.s3_metastore import s3_metastore
from tests.support.slow_store import Behaviour, Seen, SlowStore
from tests.support.versitygw import BUCKET, start_versitygw

_SMALL, _LARGE = "lineitem", "large"
_QUICK = 3_000
_FRESHNESS = {"cached": "cached(600s)", "snapshot": "snapshot"}
_DAY = "l_shipdate = DATE '1995-06-17'"
_FEW = f"SELECT count(*), sum(l_extendedprice) FROM TABLE WHERE {_DAY}"
_WEEKS = (
    "SELECT count(*), sum(l_extendedprice), max(l_comment) FROM TABLE "
    "WHERE l_shipdate >= DATE '1995-06-17' AND l_shipdate < DATE '1995-09-23'"
)
_FULL = (
    "SELECT l_returnflag, l_linestatus, sum(l_quantity), avg(l_extendedprice), count(*) "
    "FROM TABLE GROUP BY l_returnflag, l_linestatus ORDER BY 1, 2"
)
_COUNT = "SELECT count(*) FROM TABLE"
_LIMIT = "SELECT l_orderkey, l_comment FROM TABLE LIMIT 10"
_TOP = "SELECT l_shipdate, l_orderkey FROM TABLE ORDER BY l_shipdate DESC LIMIT 10"
_REVENUE = (
    "SELECT sum(l_extendedprice * l_discount) FROM TABLE WHERE l_shipdate >= DATE '1994-01-01' "
    "AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"
)
_WIDE = "SELECT count(l_comment), max(l_comment), sum(l_tax), max(l_shipinstruct) FROM TABLE"


def run() -> list[Figure]:
    return _measured(int(os.environ.get("SKIPBRIDGE_BENCH_FILES", SMALL_FILES)), runs=5)


def quick() -> list[Figure]:
    return _measured(int(os.environ.get("SKIPBRIDGE_BENCH_FILES", _QUICK)), runs=2)


@dataclass(frozen=True, slots=True)
class _World:
    port: int
    proxy: SlowStore

    def query(self, catalog: str, sql: str, table: str) -> list[Any]:
        connection = trino.dbapi.connect(host=LOOPBACK, port=self.port, user="bench")
        cursor = connection.cursor()
        cursor.execute(sql.replace("TABLE", f"{catalog}.bench.{table}"))
        return list(cursor.fetchall())

    def seen(self, sql: str, table: str) -> Seen:
        self.proxy.take()
        self.query("bridge", sql, table)
        return self.proxy.take()


def _measured(count: int, runs: int) -> list[Figure]:
    full_size = count == SMALL_FILES
    stock = os.environ.get("SKIPBRIDGE_BENCH_STOCK", "1") != "0"
    figures = []
    with _world(count) as world:

        def asked(
            title: str, sql: str, table: str, aim: str = "", times: int = runs, beside: bool = False
        ) -> None:
            rows = world.query("bridge", sql, table)
            ours = [timed(lambda: world.query("bridge", sql, table)) for _ in range(times)]
            seen = world.seen(sql, table)
            note = (
                f"{min(ours):.2f} to {max(ours):.2f}; {seen.count('LIST')} listings, "
                f"{seen.count('GET')} GET, {seen.count('HEAD')} HEAD, at most {seen.most} in flight"
            )
            figures.append(
                Figure(title, statistics.median(ours), "s", aim if full_size else "", note)
            )
            print(f"{title}: {statistics.median(ours):.2f} s; {note}", flush=True)
            if beside and stock:
                answers: list[list[Any]] = []
                theirs = timed(lambda: answers.append(world.query("hive", sql, table)))
                assert answers == [rows], title
                figures.append(Figure(f"{title}: stock hive", theirs, "s", note="one run"))
                print(f"{title}: stock hive {theirs:.1f} s", flush=True)

        for freshness, aim in (("live", "≤ 1.0"), ("cached", "≤ 0.4"), ("snapshot", "≤ 0.3")):
            asked(f"a day, {freshness}", _FEW, freshness, aim)
        asked("14 weeks, live", _WEEKS, "live", "≤ 2")
        asked("count(*), live", _COUNT, "live")
        asked("count(*), snapshot", _COUNT, "snapshot", "≤ 0.4")
        asked("LIMIT 10, live", _LIMIT, "live")
        asked("LIMIT 10, snapshot", _LIMIT, "snapshot", "≤ 0.4")
        asked("top 10, snapshot", _TOP, "snapshot", "≤ 0.4")
        asked("full scan, live", _FULL, "live", "≤ 30", times=2, beside=True)
        asked("a day, live, again", _FEW, "live", "", beside=True)
        for title, sql in (
            ("grouped", _FULL),
            ("revenue", _REVENUE),
            ("wide", _WIDE),
            ("limit", _LIMIT),
        ):
            if title != "limit":
                assert world.query("bridge", sql, _LARGE) == world.query("hive", sql, _LARGE), title
            ours, theirs, ratio = interleaved(
                lambda s=sql: world.query("bridge", s, _LARGE),  # type: ignore[misc]
                lambda s=sql: world.query("hive", s, _LARGE),  # type: ignore[misc]
                runs,
                2,
            )
            note = f"stock hive {theirs:.2f} s"
            figures.append(Figure(f"four large files, {title}", ours, "s", "", note))
            figures.append(Figure(f"four large files, {title}: ratio", ratio, "", "≤ 1.05"))
            print(f"four large files, {title}: {ours:.2f} s, {note}", flush=True)
    return figures


@contextmanager
def _world(count: int) -> Iterator[_World]:
    latency = float(os.environ.get("SKIPBRIDGE_BENCH_LATENCY", "30")) / 1e3
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=root())))
        gateway = start_versitygw(scratch / "s3")
        stack.enter_context(gateway.server)
        fill(small_files(count), gateway.options, f"s3://{BUCKET}/{_SMALL}")
        _fill_large(gateway.options)
        metastore = stack.enter_context(
            start_embedded_metastore(s3_metastore(scratch / "ms", BUCKET, (_SMALL, _LARGE)))
        )
        uri = f"thrift://{LOOPBACK}:{metastore.port}"
        for name, value in gateway.environment.items():
            os.environ[name] = value
        _register(uri, gateway.options)
        proxy = stack.enter_context(SlowStore(gateway.server.port))
        environment = {
            "SKIPBRIDGE_CACHE": str(scratch / "cache"),
            "SKIPBRIDGE_STORAGE_ENDPOINT": gateway.through(proxy.port)["endpoint"],
            "SKIPBRIDGE_STORAGE_REGION": "us-east-1",
            "SKIPBRIDGE_STORAGE_ALLOW_HTTP": "true",
            **gateway.environment,
        }
        planner = stack.enter_context(
            start_planner(scratch / "planner", uri, environment=environment)
        )
        s3 = {
            "fs.native-s3.enabled": "true",
            "s3.endpoint": environment["SKIPBRIDGE_STORAGE_ENDPOINT"],
            "s3.region": "us-east-1",
            "s3.path-style-access": "true",
            "s3.aws-access-key": gateway.options["access_key_id"],
            "s3.aws-secret-key": gateway.options["secret_access_key"],
        }
        ours = {
            "connector.name": "skipbridge",
            "skipbridge.planner": f"{LOOPBACK}:{planner.port}",
        }
        stock = {"connector.name": "hive", "hive.metastore.uri": uri}
        plugin = build_plugin("476", scratch / "plugin", None, "skipbridge", lambda line: None)
        server = stack.enter_context(
            start_trino(
                TrinoSpec(
                    scratch / "trino",
                    catalogs={"bridge": {**ours, **s3}, "hive": {**stock, **s3}},
                    plugins={"skipbridge": plugin, **stock_plugins("hive")},
                    port=0,
                    heap="6G",
                )
            )
        )
        proxy.behave(Behaviour(latency=latency))
        yield _World(server.port, proxy)


def _fill_large(options: dict[str, str]) -> None:
    storage = open_storage(options=options)
    for file in sorted(small_files(4).glob("*.parquet")):
        buffer = io.BytesIO()
        pq.write_table(pq.read_table(file), buffer, compression="zstd", row_group_size=125_000)
        storage.put(f"s3://{BUCKET}/{_LARGE}/{file.name}", buffer.getvalue())
    time.sleep(2)  # times are of whole seconds


def _register(uri: str, options: dict[str, str]) -> None:
    """Each freshness has a table over the small files; their index is one."""
    config = Config(
        {
            "metastore.uri": Setting(uri, "benchmark"),
            "storage.endpoint": Setting(options["endpoint"], "benchmark"),
            "storage.region": Setting("us-east-1", "benchmark"),
            "storage.allow_http": Setting("true", "benchmark"),
        }
    )
    places = {"live": _SMALL, "cached": _SMALL, "snapshot": _SMALL, _LARGE: _LARGE}
    with MetastoreClient(uri) as client:
        client.create_database("bench")
        for name, place in places.items():
            catalog = DirectoryCatalog(open_storage(options=options), f"s3://{BUCKET}/{place}")
            register_table(client, TableName("bench", name), catalog.table(catalog.name), [])
            if name in _FRESHNESS:
                table = client.get_table("bench", name)
                table.parameters["skipbridge.freshness"] = _FRESHNESS[name]
                client.alter_table("bench", name, table)
    for name in ("live", _LARGE):
        index_table(
            config,
            f"bench.{name}",
            local=True,
            progress=lambda done, total: None,
            say=print,
        )
