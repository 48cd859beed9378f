"""A catalog that is Trino's hive connector too, beside that connector in the same server: what it
costs where the hive connector answers. About five minutes. Either aim of a work is enough.

Two ways lead to the hive connector's reader: the session says so, which asks no planner, and the
planner's answer or the table itself, here one of buckets.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import trino

from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.process import LOOPBACK
from tests.benchmark.figures import Figure, timed
from tests.engines.catalogs import Catalogs, running_catalogs

PAIRS, WARMUPS = 40, 15
HIVES = {"native_reads": "false"}
LINES = "bench.lines"
"""1,500,000 rows in 50 partitions, of about one file each."""
BUCKETS = "bench.buckets"
MANY = 80
"""Tables whose columns information_schema lists."""


@dataclass(frozen=True, slots=True)
class Work:
    """One statement by both catalogs.

    Attributes:
        batch: how often it runs in one half of a pair; the CPU time has a grain of 10 ms.
        ratio: the aim.
        more: CPU time that it may take besides, in ms: to keep this aim is enough. 0: no aim.
    """

    title: str
    sql: str
    session: Mapping[str, str]
    batch: int
    ratio: float = 1.05
    more: float = 5.0


WORKS = (
    Work(
        "few rows of one partition",
        f"SELECT count(*), max(name) FROM {LINES} WHERE k = 7 AND id < 1000",
        HIVES,
        4,
    ),
    Work(
        "GROUP BY of 1.5 M rows",
        f"SELECT name, count(*), sum(price) FROM {LINES} GROUP BY name ORDER BY 1",
        HIVES,
        1,
    ),
    Work(
        "join of 1.5 M rows with 50",
        f"SELECT count(*), sum(l.price) FROM {LINES} l JOIN bench.few f ON l.k = f.k WHERE f.w < 9",
        HIVES,
        1,
    ),
    Work(
        "few rows, planner asked: a table of buckets",
        f"SELECT count(*), max(price) FROM {BUCKETS} WHERE id = 4711",
        {},
        4,
    ),
    Work(
        "join by bucket, planner asked",
        f"SELECT count(*), sum(a.price) FROM {BUCKETS} a JOIN {BUCKETS} b ON a.id = b.id",
        {},
        1,
    ),
    Work("DESCRIBE, 200 columns", "DESCRIBE bench.wide", {}, 4, ratio=1.1, more=0),
    Work(
        f"information_schema.columns, {MANY} tables",
        "SELECT table_name, column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'bench'",
        {},
        2,
        ratio=1.1,
        more=0,
    ),
)


def run() -> list[Figure]:
    return _measured(PAIRS, WARMUPS)


def quick() -> list[Figure]:
    return _measured(4, 2)


def _measured(pairs: int, warmups: int) -> list[Figure]:
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        spec = MetastoreSpec(scratch / "metastore", scratch / "warehouse", port=0, in_memory=True)
        metastore = stack.enter_context(start_embedded_metastore(spec))
        uri = f"thrift://{LOOPBACK}:{metastore.port}"
        catalogs = stack.enter_context(running_catalogs(uri, scratch / "catalogs", jvm_options=()))
        _make(catalogs)
        record = json.loads((catalogs.spec.directory / "trino.pid").read_text("utf-8"))
        process = psutil.Process(record["pid"])
        return [
            figure for work in WORKS for figure in _work(catalogs, process, work, pairs, warmups)
        ]


def _make(catalogs: Catalogs) -> None:
    columns = ", ".join(f"c{number} varchar" for number in range(200))
    numbers = "UNNEST(sequence(0, 1499)) AS s (i) CROSS JOIN UNNEST(sequence(0, 999)) AS t (j)"
    for sql in (
        "CREATE SCHEMA bench",
        f"CREATE TABLE {LINES} WITH (partitioned_by = ARRAY['k']) AS SELECT i * 1000 + j AS id,"
        " 'name ' || CAST(j % 40 AS varchar) AS name, i * 0.25e0 + j AS price, i % 50 AS k"
        f" FROM {numbers}",
        f"CREATE TABLE {BUCKETS} WITH (bucketed_by = ARRAY['id'], bucket_count = 16) AS"
        f" SELECT id, price FROM {LINES} WHERE k < 20",
        "CREATE TABLE bench.few AS SELECT k, k AS w FROM UNNEST(sequence(0, 49)) AS t (k)",
        f"CREATE TABLE bench.wide ({columns})",
        *(f"CREATE TABLE bench.many_{n} (a bigint, b varchar, d date)" for n in range(MANY)),
    ):
        catalogs.hive(sql)


def _work(
    catalogs: Catalogs, process: psutil.Process, work: Work, pairs: int, warmups: int
) -> list[Figure]:
    ours = _asking(catalogs.port, "front", work.sql, work.session)
    stock = _asking(catalogs.port, "hive", work.sql, {})
    assert sorted(map(repr, ours())) == sorted(map(repr, stock())), work.title
    if "SELECT" in work.sql and "information_schema" not in work.sql:
        plan = catalogs.front(f"EXPLAIN {work.sql}", **work.session)[0][0]
        assert "table = front:bench:" in plan and "table = front:bench." not in plan, work.title
    for _ in range(warmups):
        ours()
        stock()
    # Which of both is first takes turns: the second finds the caches as the first left them.
    halves: list[dict[str, tuple[float, float]]] = []
    for number in range(pairs):
        order = [("ours", ours), ("stock", stock)][:: 1 if number % 2 else -1]
        halves.append({name: _half(run, process, work.batch) for name, run in order})
    seconds = {
        name: statistics.median(half[name][0] for half in halves) for name in ("ours", "stock")
    }
    ratio = statistics.median(half["ours"][0] / half["stock"][0] for half in halves)
    more = statistics.median(half["ours"][1] - half["stock"][1] for half in halves)
    print(f"{work.title}: {ratio:.3f}x, {more * 1000:+.1f} ms of CPU", flush=True)
    note = f"{pairs} pairs of {work.batch}"
    enough = f"≤ {work.more:g} ms" if work.more else ""
    return [
        Figure(f"{work.title}: skipbridge", seconds["ours"], note=note),
        Figure(f"{work.title}: stock hive", seconds["stock"]),
        Figure(f"{work.title}: median ratio of the pairs", ratio, "", f"≤ {work.ratio}"),
        Figure(f"{work.title}: more CPU of the server", more * 1000, "ms", enough),
    ]


def _asking(
    port: int, catalog: str, sql: str, session: Mapping[str, str]
) -> Callable[[], list[Any]]:
    """Runs the statement over one connection."""
    connection = trino.dbapi.connect(
        host=LOOPBACK,
        port=port,
        user="bench",
        catalog=catalog,
        session_properties={f"{catalog}.{key}": value for key, value in session.items()},
    )

    def query() -> list[Any]:
        cursor = connection.cursor()
        cursor.execute(sql)
        return list(cursor.fetchall())

    return query


def _half(run: Callable[[], object], process: psutil.Process, batch: int) -> tuple[float, float]:
    """Seconds of one statement, and seconds of CPU time that the server took for it."""
    before = process.cpu_times()
    seconds = timed(lambda: [run() for _ in range(batch)])
    after = process.cpu_times()
    cpu = after.user + after.system - before.user - before.system
    return seconds / batch, cpu / batch
