"""Tables over files where they lie: a load, a dashboard query over facts and over a view, builds.

The load adds 100 files of CSV with two indexes and a view, and counts the reads of each file. Trino
then runs one query over a table without a view and over a table with it; both have the same facts.
The builds index CSV and JSON files on Spark, beside Spark's own scan of the same columns. The first
run writes the files. ``SKIPBRIDGE_BENCH_EXTERNAL`` names the parts: ``load,dashboard,build``.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bridge.index.building.build import build_index
from bridge.index.building.collect import Collector
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.registry import kind
from bridge.kernel.config import Config, Setting
from bridge.segments.commands import add, indexes, opened, tables, views
from bridge.segments.commands.opened import open_segments
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import Range
from bridge.storage.routed import open_storage
from bridge.trino.plugin import build_plugin
from bridge.trino.server import TrinoSpec, start_trino
from tests.benchmark import formats_data
from tests.benchmark.external_data import COLUMNS, HOT, LINEITEM, facts, size
from tests.benchmark.figures import Figure, interleaved, timed
from tests.benchmark.trino import asking

_QUERY = (
    "SELECT shop, count(*), sum(price) FROM bench.{} WHERE day = DATE '2024-03-05' "
    "AND shop < 20 GROUP BY shop ORDER BY shop"
)
_PARTS = "load,dashboard,build"


def run() -> list[Figure]:
    return _figures(files=100, rows=58_000, runs=3, lines=(4, 4))


def quick() -> list[Figure]:
    return _figures(files=10, rows=500, runs=1, lines=(1, 1))


class _Counting(LocalStorage):
    """Counts the bytes that are read of each file."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: Counter[str] = Counter()

    def read_ranges(self, uri: str, ranges: Sequence[Range]) -> list[bytes]:
        found = super().read_ranges(uri, ranges)
        self.bytes[uri] += sum(map(len, found))
        return found


def _figures(files: int, rows: int, runs: int, lines: tuple[int, int]) -> list[Figure]:
    parts = os.environ.get("SKIPBRIDGE_BENCH_EXTERNAL", _PARTS).split(",")
    found: list[Figure] = []
    if "load" in parts or "dashboard" in parts:
        directory = facts(files, rows)
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            metastore = stack.enter_context(
                start_embedded_metastore(
                    MetastoreSpec(scratch / "meta", scratch / "warehouse", port=0, in_memory=True)
                )
            )
            uri = f"thrift://127.0.0.1:{metastore.port}"
            config = Config({"metastore.uri": Setting(uri, "benchmark")})
            found += _load(config, directory, files)
            if "dashboard" in parts:
                query = _trino(stack, scratch, uri)
                found += _dashboard(query, directory, files, runs)
    if "build" in parts:
        found += _builds(lines, runs)
    return found


def _load(config: Config, directory: Path, files: int) -> list[Figure]:
    """A table without a view, and one with it and two indexes, over the same facts."""
    header = {"csv.header_lines": "1"}
    for name in ("bench.plain", "bench.hot"):
        tables.create_table(config, name, format="csv", columns=COLUMNS, properties=header)
    add.add_segment(config, "bench.plain", paths=[str(directory)], local=True)
    table = "bench.hot"
    given: dict[str, Any] = {"kind": "bloomfilter", "columns": ["item"]}
    indexes.create_index(config, table, name="m", kind="minmax", local=True)
    indexes.create_index(config, table, name="b", **given, local=True)
    hot = [name for name, _ in HOT]
    views.create_view(
        config, table, name="fast", columns=hot, sort_by=["day", "shop"], local=True,
        properties={"SORT_SCOPE": "GLOBAL_SORT", "TABLE_BLOCKSIZE": "4MB"},
    )  # fmt: skip
    storage = _Counting()
    before, opened.storage_of = opened.storage_of, lambda _: storage
    try:
        seconds = timed(lambda: add.add_segment(config, table, paths=[str(directory)], local=True))
    finally:
        opened.storage_of = before
    read = max(
        storage.bytes[f"file://{path}"] / path.stat().st_size for path in directory.glob("*.csv")
    )
    bytes = size(directory)
    work = f"ADD SEGMENT of {files} CSV files, 2 indexes, a view"
    return [
        Figure(work, seconds, note=f"{bytes / 1e9:.2f} GB, {bytes / 1e6 / seconds:.0f} MB/s"),
        Figure(f"{work}: bytes read / bytes of the facts", read, "x", "≤ 1.1",
               "with the first MB, for the header"),
    ]  # fmt: skip


def _dashboard(
    query: Callable[[str], list[Any]], directory: Path, files: int, runs: int
) -> list[Figure]:
    over_facts, over_view = _QUERY.format("plain"), _QUERY.format("hot")
    assert _rounded(query(over_facts)) == _rounded(query(over_view))
    first, second, ratio = interleaved(
        lambda: query(over_facts), lambda: query(over_view), runs, warmups=3
    )
    note = f"{size(directory) / 1e9:.2f} GB in {files} files"
    return [
        Figure("dashboard query in Trino, CSV facts", first, note=note),
        Figure("dashboard query in Trino, view", second),
        Figure("facts / view", ratio, "x", "≥ 15x"),
    ]


def _rounded(rows: list[Any]) -> list[Any]:
    """Sums of doubles depend on the order of rows."""
    return [(shop, count, round(price, 2)) for shop, count, price in rows]


def _trino(stack: ExitStack, scratch: Path, uri: str) -> Callable[[str], list[Any]]:
    planner = stack.enter_context(start_planner(scratch / "planner", uri))
    plugin = build_plugin("476", scratch / "plugin", None, "skipbridge", lambda line: None)
    catalog = {
        "connector.name": "skipbridge",
        "skipbridge.planner": f"127.0.0.1:{planner.port}",
    }
    server = stack.enter_context(
        start_trino(
            TrinoSpec(
                scratch / "trino",
                catalogs={"bridge": catalog},
                plugins={"skipbridge": plugin},
                port=0,
                heap="3G",
            )
        )
    )
    ask = asking(server.port)
    return lambda sql: ask("bridge", sql)


def _builds(lines: tuple[int, int], runs: int) -> list[Figure]:
    """Min/max, a bloom filter, value lists and sketches of all columns; Spark scans as many."""
    from bridge.indexing.spark_build import SparkCollector
    from bridge.runtime.spark_session import open_session

    session = open_session("local[2]")
    try:
        session.range(10).count()
        collector = SparkCollector(session)
        found: list[Figure] = []
        for format, count in zip(("csv", "json"), lines, strict=True):
            with _typed(format, count) as (config, table, paths):

                def scan(format: str = format, paths: list[str] = paths) -> None:
                    schema = ", ".join(f"{n} {t}" for n, t in LINEITEM)
                    read = session.read.schema(schema).format(format).load(paths)
                    read.selectExpr(*(f"max(hash({c}))" for c in read.columns)).collect()

                def index(config: Config = config, table: str = table) -> None:
                    _build(config, table, collector)

                scans, builds, ratio = interleaved(scan, index, max(1, runs - 1), warmups=0)
                bytes = sum(Path(p).stat().st_size for p in paths)
                note = f"{bytes / 1e6:.0f} MB; the build took {builds:.1f} s, the scan {scans:.1f}"
                work = f"index build, {format}: all kinds / Spark's scan"
                found.append(Figure(work, 1 / ratio, "x", "≤ 1.3", note))
    finally:
        session.stop()
    return found


@contextmanager
def _typed(format: str, count: int) -> Iterator[tuple[Config, str, list[str]]]:
    """A table with types over some of the large files of lineitem."""
    directory = formats_data.large(format)
    paths = [str(p) for p in sorted(directory.glob("part-*"))[:count]]
    with tempfile.TemporaryDirectory() as scratch:
        config, table = Config(), f"{scratch}/t"
        tables.create_table(config, table, format=format, columns=LINEITEM)
        add.add_segment(config, table, paths=paths, local=True)
        yield config, table, paths


def _build(config: Config, table: str, collector: Collector) -> None:
    wanted = [
        kind("bloom").define("l_orderkey"),
        kind("values").define("l_shipmode"),
        kind("ndv").define("*"),
    ]
    with open_segments(config, table) as found, tempfile.TemporaryDirectory() as scratch:
        store = IndexStore(open_storage(), f"file://{scratch}/{time.monotonic_ns()}")
        report = build_index(
            found.table,
            lambda: indexes.listed_files(found, found.manifest.readable),
            store,
            collector=collector,
            settings=lambda held: held.adding(wanted),
        )
        assert not report.failed, report.failed
