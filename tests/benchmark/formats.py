"""ORC, Avro, CSV and JSON in Trino 476, beside its stock hive connector in the same server.

Each format twice: 5,000 small files sorted by ship date, with an index, and 8 large ones. The first
run writes the files, which takes minutes; later ones take ten minutes in all.
``SKIPBRIDGE_BENCH_FORMATS`` names the formats to measure (``orc,csv``).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import parse_hive_type
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.table.model import CatalogTable, Column, TableName
from bridge.trino.plugin import build_plugin
from bridge.trino.server import TrinoSpec, start_trino
from tests.benchmark import formats_data
from tests.benchmark.figures import Figure, interleaved, median
from tests.benchmark.trino import asking
from tests.support.servers.stock_trino import stock_plugins

_SMALL_FILES = 5_000
_FULL = (
    "SELECT l_returnflag, l_linestatus, sum(CAST(l_quantity AS double)), max(l_comment), count(*) "
    "FROM bench.TABLE GROUP BY l_returnflag, l_linestatus ORDER BY 1, 2"
)
_DAY = (
    "SELECT count(*), max(l_extendedprice), max(l_comment) FROM bench.TABLE WHERE l_shipdate = {}"
)


def run() -> list[Figure]:
    return _measured(_SMALL_FILES, runs=3)


def quick() -> list[Figure]:
    return _measured(200, runs=1)


def _measured(small_files: int, runs: int) -> list[Figure]:
    asked = os.environ.get("SKIPBRIDGE_BENCH_FORMATS", ",".join(formats_data.FORMATS)).split(",")
    tables = {}
    for format in asked:
        tables[f"{format}_small"] = (format, formats_data.small(format, small_files))
        tables[f"{format}_large"] = (format, formats_data.large(format))
    with ExitStack() as stack:
        query = _cluster(stack, tables)
        return [figure for format in asked for figure in _format(query, format, tables, runs)]


def _format(
    query: Callable[[str, str], list[Any]],
    format: str,
    tables: dict[str, tuple[str, Path]],
    runs: int,
) -> list[Figure]:
    day = "'1995-06-17'" if format == "csv" else "DATE '1995-06-17'"
    figures: list[Figure] = []
    for title, table, sql, target in (
        ("full scan, 8 large files", f"{format}_large", _FULL, "≥ 0.95x"),
        ("full scan, 5,000 files", f"{format}_small", _FULL, "≥ 8x"),
        ("one day, 5,000 files", f"{format}_small", _DAY.format(day), "≥ 20x"),
    ):
        sql = sql.replace("TABLE", table)
        assert query("bridge", sql) == query("hive", sql), sql
        if "large" in title:
            ours, stock, ratio = interleaved(
                lambda sql=sql: query("bridge", sql),  # type: ignore[misc]
                lambda sql=sql: query("hive", sql),  # type: ignore[misc]
                runs,
            )
            times = 1 / ratio
        else:
            ours = median(lambda sql=sql: query("bridge", sql), runs, 3)  # type: ignore[misc]
            stock = median(lambda sql=sql: query("hive", sql), min(2, runs), 0)  # type: ignore[misc]
            times = stock / ours
        bytes = formats_data.size(tables[table][1]) / 1e6
        print(f"{format}, {title}: skipbridge {ours:.3f} s, stock hive {stock:.2f} s", flush=True)
        figures += [
            Figure(f"{format}, {title}: skipbridge", ours, note=f"{bytes:.0f} MB"),
            Figure(f"{format}, {title}: stock hive", stock),
            Figure(f"{format}, {title}: times faster", times, "x", target),
        ]
    return figures


def _cluster(
    stack: ExitStack, tables: dict[str, tuple[str, Path]]
) -> Callable[[str, str], list[Any]]:
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
        for name, (format, directory) in tables.items():
            columns = tuple(
                Column(column, parse_hive_type(spelled))
                for column, spelled in formats_data.columns(format)
            )
            full = TableName("bench", name)
            found = CatalogTable(full, columns, (), f"file://{directory}", format=format)
            register_table(client, full, found, [])
    for name in (n for n in tables if n.endswith("_small")):
        started = time.perf_counter()
        report = index_table(
            config, f"bench.{name}", local=True, progress=lambda done, total: None, say=print
        )
        print(f"{name}: {report['files']} files in {time.perf_counter() - started:.1f} s")
    planner = stack.enter_context(start_planner(scratch / "planner", uri))
    plugin = build_plugin("476", scratch / "plugin", None, "skipbridge", lambda line: None)
    ours = {
        "connector.name": "skipbridge",
        "skipbridge.planner": f"127.0.0.1:{planner.port}",
        "skipbridge.orc.use-column-names": "true",
    }
    stock = {
        "connector.name": "hive",
        "hive.metastore.uri": uri,
        "hive.orc.use-column-names": "true",
        "fs.hadoop.enabled": "true",
    }
    server = stack.enter_context(
        start_trino(
            TrinoSpec(
                scratch / "trino",
                catalogs={"bridge": ours, "hive": stock},
                plugins={"skipbridge": plugin, **stock_plugins("hive")},
                port=0,
                heap="6G",
            )
        )
    )
    return asking(server.port)
