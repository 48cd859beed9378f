"""HiveServer2 4.0.1: a table of small files, hooked and not, beside one file with the same rows.

A table is read in two kinds of sessions of the same server: with the hook of plans, and without.
Fetch tasks (one thread opens file after file) and Tez (its local mode) are told apart. An
unhooked query takes minutes, so that it is run once and after the hooked ones: whatever has
been warmed up by then is in its favour. What it does there Hadoop's local file system makes dearer
than HDFS would: without its native library it starts a process for every file that is listed.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.hive.jar import build_jar
from bridge.hive.server import HiveSession
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.metastore.hooks import PLAN_HOOK
from bridge.runtime.create_table import register_table
from bridge.servers.embedded_metastore import MetastoreSpec
from bridge.servers.planner import start_planner
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.model import TableName
from tests.benchmark.data import SMALL_FILES, small_files
from tests.benchmark.figures import Figure, interleaved, timed
from tests.support.servers.hiveserver2 import (
    HiveServer2Spec,
    start_hiveserver2,
    start_metastore_for_hiveserver2,
)

MODES: Mapping[str, Mapping[str, str]] = {
    "fetch": {
        "hive.fetch.task.conversion": "more",
        "hive.fetch.task.conversion.threshold": "-1",  # of any size
    },
    "Tez": {"hive.fetch.task.conversion": "none"},
}
DAY = "l_shipdate = DATE '1995-06-17'"
# A point look-up for the fetch task, a count over one day for Tez: of 39,000 files 17 are left.
SELECTIVE = {
    "fetch": f"SELECT l_orderkey, l_comment FROM TABLE WHERE {DAY} AND l_orderkey = ORDER",
    "Tez": f"SELECT count(*), sum(l_extendedprice) FROM TABLE WHERE {DAY}",
}
# Every file holds such rows.
UNSELECTIVE = {
    "fetch": "SELECT l_orderkey, l_comment FROM TABLE WHERE l_quantity > 49 AND l_discount = 0.07 "
    "AND l_tax = 0.08 AND l_linenumber = 7",
    "Tez": "SELECT l_shipmode, sum(l_extendedprice), count(*) FROM TABLE WHERE l_quantity > 1 "
    "GROUP BY l_shipmode ORDER BY l_shipmode",
}


@dataclass(slots=True)
class Hive:
    """A HiveServer2 and its sessions, one for each mode."""

    address: str
    sessions: dict[tuple[str, bool], HiveSession] = field(default_factory=dict)

    def query(self, mode: str, sql: str, table: str) -> list[tuple[Any, ...]]:
        """``NAME_hooked`` is ``NAME`` read with the hook of plans, ``NAME_plain`` without."""
        table, _, how = table.rpartition("_")
        hook_plans = how == "hooked"
        if (mode, hook_plans) not in self.sessions:
            hook = {"hive.exec.pre.hooks": PLAN_HOOK} if hook_plans else {}
            self.sessions[mode, hook_plans] = HiveSession(
                self.address, settings={**MODES[mode], **hook}
            )
        session = self.sessions[mode, hook_plans]
        return sorted(session.query(sql.replace("TABLE", f"bench.{table}")))


@contextmanager
def cluster(directories: Mapping[str, Path], heap: str = "4g") -> Iterator[Hive]:
    """Metastore, planner and HiveServer2; each directory is a table."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        metastore = stack.enter_context(
            start_metastore_for_hiveserver2(
                MetastoreSpec(scratch / "metastore", scratch / "warehouse", port=0, in_memory=True)
            )
        )
        uri = f"thrift://127.0.0.1:{metastore.port}"
        config = Config({"metastore.uri": Setting(uri, "benchmark")})
        with MetastoreClient(uri) as client:
            client.create_database("bench")
            for name, directory in directories.items():
                catalog = DirectoryCatalog(open_storage(), f"file://{directory}")
                found = catalog.table(catalog.name)
                register_table(client, TableName("bench", name), found, [])
            bare = Path(scratch / "bare")
            bare.mkdir()
            pq.write_table(pa.table({"k": [1, 2, 3]}), bare / "f.parquet")
            catalog = DirectoryCatalog(open_storage(), f"file://{bare}")
            register_table(client, TableName("bench", "bare"), catalog.table(catalog.name), [])
        for name in directories:
            index_table(config, f"bench.{name}", local=True, progress=lambda *_: None, say=print)
        planner = stack.enter_context(start_planner(scratch / "planner", uri))
        jar = build_jar("4.0.1", scratch / "jar", lambda line: None)
        server = stack.enter_context(
            start_hiveserver2(
                HiveServer2Spec(
                    scratch / "hiveserver2",
                    uri,
                    port=0,
                    auxiliary_jars=(jar,),
                    heap=heap,
                    properties={"skipbridge.planner": f"127.0.0.1:{planner.port}"},
                )
            )
        )
        running = Hive(f"127.0.0.1:{server.port}")
        yield running
        for session in running.sessions.values():
            session.close()


def run() -> list[Figure]:
    """39,000 files and 5,000."""
    return _run([(SMALL_FILES, "≥ 50x"), (5000, "≥ 20x")], runs=9, pairs=3)


def quick() -> list[Figure]:
    """`run` on 200 and 50 files, to see that it works."""
    return _run([(200, ""), (50, "")], runs=2, pairs=1)


def _run(sizes: Sequence[tuple[int, str]], runs: int, pairs: int) -> list[Figure]:
    directories = {f"f{count}": small_files(count) for count, _ in sizes}
    figures: list[Figure] = []
    with cluster({**directories, "one": small_files(1)}) as hive:
        ((order,),) = hive.query(
            "Tez", f"SELECT min(l_orderkey) FROM TABLE WHERE {DAY}", "one_plain"
        )
        for count, target in sizes:
            for mode in MODES:
                sql = SELECTIVE[mode].replace("ORDER", str(order))
                figures += _selective(hive, mode, sql, count, target, runs)
        fewest = min(count for count, _ in sizes)
        for mode in MODES:
            figures += _unselective(hive, mode, f"f{fewest}", f"{fewest:,} files", pairs)
            figures += _unselective(hive, mode, "one", "one file", 5 * pairs)
        figures.append(_without_index(hive, 100 * pairs))
    return figures


def _selective(hive: Hive, mode: str, sql: str, count: int, target: str, runs: int) -> list[Figure]:
    def ask(table: str) -> Callable[[], list[tuple[Any, ...]]]:
        return lambda: hive.query(mode, sql, table)

    hooked, one = ask(f"f{count}_hooked"), ask("one_plain")
    expected = one()
    assert hooked() == expected, "the hooked table answers otherwise"
    ours = [timed(hooked) for _ in range(runs)]
    beside = [timed(one) for _ in range(runs)]
    rows: list[list[tuple[Any, ...]]] = []
    stock = timed(lambda: rows.append(ask(f"f{count}_plain")()))
    assert rows == [expected]
    fast = statistics.median(ours)
    title = f"{mode}, {count:,} files, one day"
    print(f"{title}: hooked {fast:.2f} s, not hooked {stock:.1f} s", flush=True)
    return [
        Figure(f"{title}: hooked", fast, note=f"{min(ours):.2f} to {max(ours):.2f}"),
        Figure(f"{title}: not hooked", stock, note="one run"),
        Figure(f"{title}: times faster", stock / fast, "x", target),
        Figure(f"{mode}, the same rows in one file, not hooked", statistics.median(beside)),
    ]


def _without_index(hive: Hive, pairs: int) -> Figure:
    """What the hook of plans costs a query of a table that it leaves alone."""
    sql = "SELECT k FROM TABLE WHERE k = 2"

    def ask(table: str) -> Callable[[], object]:
        return lambda: hive.query("fetch", sql, table)

    ours, stock, _ = interleaved(ask("bare_hooked"), ask("bare_plain"), pairs, 5)
    return Figure(
        f"fetch, a table without an index, the hook of plans costs (median of {pairs})",
        (ours - stock) * 1e3,
        "ms",
        "< 1 ms",
    )


def _unselective(hive: Hive, mode: str, table: str, title: str, pairs: int) -> list[Figure]:
    answers: list[list[tuple[Any, ...]]] = []

    def ask(suffix: str) -> Callable[[], None]:
        return lambda: answers.append(hive.query(mode, UNSELECTIVE[mode], f"{table}_{suffix}"))

    ours, stock, ratio = interleaved(ask("hooked"), ask("plain"), pairs, 0)
    assert all(answer == answers[0] for answer in answers), "the hooked table answers otherwise"
    print(f"{mode}, {title}: hooked {ours:.2f} s, not hooked {stock:.2f} s", flush=True)
    title = f"{mode}, {title}, every file holds a match"
    return [
        Figure(f"{title}: hooked", ours),
        Figure(f"{title}: not hooked", stock),
        Figure(f"{title}: median ratio of {pairs} pairs", ratio, "", "≤ 1.05"),
        Figure(f"{title}: planning overhead", (ours - stock) * 1e3, "ms", "≤ 50 ms"),
    ]
