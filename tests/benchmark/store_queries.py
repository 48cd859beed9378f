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

from bridge.storage.routed import open_storage
from tests.benchmark.data import SMALL_FILES, root, small_files
from tests.benchmark.figures import Figure, interleaved, timed
from tests.benchmark.store_engines import (
    FRESHNESS,
    asked_for,
    latency,
    register_tables,
    s3_engines,
)
from tests.benchmark.stores import fill
from tests.support.slow_store import Behaviour, Seen, SlowStore
from tests.support.versitygw import BUCKET, start_versitygw

SMALL = "lineitem"
"""The directory of the small files."""
SMALL_TABLES = dict.fromkeys(FRESHNESS, SMALL)
QUICK = 3_000
_LARGE = "large"
_DAY = "l_shipdate = DATE '1995-06-17'"
FEW = f"SELECT count(*), sum(l_extendedprice) FROM TABLE WHERE {_DAY}"
WEEKS = (
    "SELECT count(*), sum(l_extendedprice), max(l_comment) FROM TABLE "
    "WHERE l_shipdate >= DATE '1995-06-17' AND l_shipdate < DATE '1995-09-23'"
)
FULL = (
    "SELECT l_returnflag, l_linestatus, sum(l_quantity), avg(l_extendedprice), count(*) "
    "FROM TABLE GROUP BY l_returnflag, l_linestatus ORDER BY 1, 2"
)
COUNT = "SELECT count(*) FROM TABLE"
LIMIT = "SELECT l_orderkey, l_comment FROM TABLE LIMIT 10"
TOP = "SELECT l_shipdate, l_orderkey FROM TABLE ORDER BY l_shipdate DESC LIMIT 10"
_REVENUE = (
    "SELECT sum(l_extendedprice * l_discount) FROM TABLE WHERE l_shipdate >= DATE '1994-01-01' "
    "AND l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24"
)
_WIDE = "SELECT count(l_comment), max(l_comment), sum(l_tax), max(l_shipinstruct) FROM TABLE"


def run() -> list[Figure]:
    return _measured(int(os.environ.get("SKIPBRIDGE_BENCH_FILES", SMALL_FILES)), runs=5)


def quick() -> list[Figure]:
    return _measured(int(os.environ.get("SKIPBRIDGE_BENCH_FILES", QUICK)), runs=2)


@dataclass(frozen=True, slots=True)
class _World:
    port: int
    proxy: SlowStore

    def query(self, catalog: str, sql: str, table: str) -> list[Any]:
        return asked_for(self.port, catalog, sql, table)

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
            asked(f"a day, {freshness}", FEW, freshness, aim)
        asked("14 weeks, live", WEEKS, "live", "≤ 2")
        asked("count(*), live", COUNT, "live")
        asked("count(*), snapshot", COUNT, "snapshot", "≤ 0.4")
        asked("LIMIT 10, live", LIMIT, "live")
        asked("LIMIT 10, snapshot", LIMIT, "snapshot", "≤ 0.4")
        asked("top 10, snapshot", TOP, "snapshot", "≤ 0.4")
        asked("full scan, live", FULL, "live", "≤ 30", times=2, beside=True)
        asked("a day, live, again", FEW, "live", "", beside=True)
        for title, sql in (
            ("grouped", FULL),
            ("revenue", _REVENUE),
            ("wide", _WIDE),
            ("limit", LIMIT),
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
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=root())))
        gateway = start_versitygw(scratch / "s3")
        stack.enter_context(gateway.server)
        fill(small_files(count), gateway.options, f"s3://{BUCKET}/{SMALL}")
        _fill_large(gateway.options)
        proxy = stack.enter_context(SlowStore(gateway.server.port))

        def register(uri: str) -> None:
            register_tables(
                uri, gateway.options, f"s3://{BUCKET}", {**SMALL_TABLES, _LARGE: _LARGE}
            )

        port = stack.enter_context(s3_engines(scratch, gateway, proxy, (SMALL, _LARGE), register))
        proxy.behave(Behaviour(latency=latency()))
        yield _World(port, proxy)


def _fill_large(options: dict[str, str]) -> None:
    storage = open_storage(options=options)
    for file in sorted(small_files(4).glob("*.parquet")):
        buffer = io.BytesIO()
        pq.write_table(pq.read_table(file), buffer, compression="zstd", row_group_size=125_000)
        storage.put(f"s3://{BUCKET}/{_LARGE}/{file.name}", buffer.getvalue())
    time.sleep(2)  # times are of whole seconds
