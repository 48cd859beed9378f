"""Trino 476 with the skipbridge connector beside its stock hive connector, over the same table."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import trino

from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.table import NOTHING_NEW, index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.model import TableName
from bridge.trino.plugin import build_plugin
from bridge.trino.server import TrinoSpec, start_trino
from tests.benchmark.data import large_files, random_ids, small_files
from tests.benchmark.figures import Figure, interleaved, median
from tests.benchmark.java import run_java
from tests.support.servers.stock_trino import stock_plugins

DAY = "l_shipdate >= DATE '1995-06-17' AND l_shipdate < DATE '1995-06-18'"
SELECTIVE = f"SELECT count(*), sum(l_extendedprice) FROM bench.TABLE WHERE {DAY}"
FULL = (
    "SELECT l_returnflag, l_linestatus, sum(l_quantity), avg(l_extendedprice), count(*) "
    "FROM bench.TABLE GROUP BY l_returnflag, l_linestatus ORDER BY 1, 2"
)
COUNT = "SELECT count(*) FROM bench.TABLE"
UNSELECTIVE = (
    "SELECT l_shipmode, sum(l_extendedprice * (1 - l_discount)), max(l_comment), count(*) "
    "FROM bench.TABLE WHERE l_quantity > 1 GROUP BY l_shipmode ORDER BY 1"
)


@contextmanager
def cluster(
    directories: dict[str, Path],
    asked: RequestedIndexes = NOTHING_NEW,
    *,
    prepare: Callable[[str], None] = lambda uri: None,
    catalogs: Callable[[Path], dict[str, dict[str, str]]] = lambda scratch: {},
    plugins: Sequence[str] = ("hive",),
) -> Iterator[Callable[[str, str], list[Any]]]:
    """Metastore, planner and Trino over tables of schema ``bench``; yields query(catalog, sql).

    Args:
        asked: index kinds beside min and max.
        prepare: is called with the metastore's URI when the tables are indexed.
        catalogs: more catalogs, given a scratch directory; ``plugins`` are Trino's own for all.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        metastore = stack.enter_context(
            start_embedded_metastore(
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
        for name in directories:
            index_table(
                config,
                f"bench.{name}",
                local=True,
                asked=asked,
                progress=lambda done, total: None,
                say=print,
            )
        prepare(uri)
        planner = stack.enter_context(start_planner(scratch / "planner", uri))
        plugin = build_plugin("476", scratch / "plugin", None, "skipbridge", lambda line: None)
        server = stack.enter_context(
            start_trino(
                TrinoSpec(
                    scratch / "trino",
                    catalogs={
                        "bridge": {
                            "connector.name": "skipbridge",
                            "skipbridge.planner": f"127.0.0.1:{planner.port}",
                        },
                        "hive": {
                            "connector.name": "hive",
                            "hive.metastore.uri": uri,
                            # Its native local file system reads file:/ locations as empty.
                            "fs.hadoop.enabled": "true",
                        },
                        **catalogs(scratch),
                    },
                    plugins={"skipbridge": plugin, **stock_plugins(*plugins)},
                    port=0,
                    heap="6G",
                )
            )
        )
        yield asking(server.port)


def asking(port: int) -> Callable[[str, str], list[Any]]:
    """query(catalog, sql) of a Trino server; the schema ``bench`` is that of the catalog."""
    connection = trino.dbapi.connect(host="127.0.0.1", port=port, user="bench")

    def query(catalog: str, sql: str) -> list[Any]:
        cursor = connection.cursor()
        cursor.execute(sql.replace("bench.", f"{catalog}.bench."))
        return list(cursor.fetchall())

    return query


def floor() -> float:
    """Seconds of the full scan's reading alone: Trino's ParquetReader, two threads, no engine."""
    directory = small_files()
    runs = run_java("io.skipbridge.trino.read.ScanFloor", str(directory), "9")
    return sorted(run[1] for run in runs[4:])[2]


def small(pairs: int = 3) -> list[Figure]:
    """39,000 small files: one day, full scan, count(*).

    Both sides are warm: ours by the runs named here, stock hive by one that opens 39,000 files.
    """
    figures: list[Figure] = []
    with cluster({"lineitem": small_files()}) as query:
        for title, template, target, warmups in (
            ("one day of ship dates", SELECTIVE, "≥ 50x and ≤ 0.3 s", 30),
            ("full scan with GROUP BY", FULL, "≥ 8x", 10),
            ("count(*)", COUNT, "≥ 12x", 30),
        ):
            sql = template.replace("TABLE", "lineitem")
            assert query("bridge", sql) == query("hive", sql)
            ours = median(lambda sql=sql: query("bridge", sql), 15, warmups)  # type: ignore[misc]
            stock = median(lambda sql=sql: query("hive", sql), pairs, 0)  # type: ignore[misc]
            print(f"{title}: skipbridge {ours:.3f} s, stock hive {stock:.2f} s", flush=True)
            figures.append(Figure(f"{title}: skipbridge", ours, "s"))
            figures.append(Figure(f"{title}: stock hive", stock, "s"))
            figures.append(Figure(f"{title}: times faster", stock / ours, "x", target))
            if template is FULL:
                scan = ours
    bare = floor()
    print(f"bare loop {bare:.2f} s", flush=True)
    figures.append(Figure("full scan's floor: Trino's reader in a bare loop, 2 threads", bare))
    figures.append(Figure("full scan over its floor", scan / bare, "", "≤ 1.5"))
    return figures


def lookup(pairs: int = 5) -> list[Figure]:
    """One row by an id that no order knows, in 5,000 files, each time another: bloom filters."""
    directory, ids = random_ids()
    with cluster({"ids": directory}, RequestedIndexes((("bloom", "id"),))) as query:
        sought = iter(ids)

        def find(catalog: str) -> list[Any]:
            sql = f"SELECT id, l_orderkey, l_comment FROM bench.ids WHERE id = {next(sought)}"
            rows = query(catalog, sql)
            assert len(rows) == 1
            return rows

        for other in ids[2 * pairs + 2 :] * 4:
            query("bridge", f"SELECT l_comment FROM bench.ids WHERE id = {other}")
        ours, stock, _ = interleaved(lambda: find("bridge"), lambda: find("hive"), pairs, 1)
    return [
        Figure("a row by its random id, 5,000 files: skipbridge", ours),
        Figure("a row by its random id, 5,000 files: stock hive", stock),
        Figure("times faster", stock / ours, "x", "≥ 20x"),
    ]


def large(pairs: int = 15) -> list[Figure]:
    """Eight large files, nothing to skip: must not be slower."""
    with cluster({"big": large_files()}) as query:
        sql = UNSELECTIVE.replace("TABLE", "big")
        assert query("bridge", sql) == query("hive", sql)
        ours, stock, ratio = interleaved(
            lambda: query("bridge", sql), lambda: query("hive", sql), pairs, 2
        )
    return [
        Figure("unselective over 8 large files: skipbridge", ours),
        Figure("unselective over 8 large files: stock hive", stock),
        Figure("median ratio of the pairs", ratio, "", "≤ 1.05"),
    ]
