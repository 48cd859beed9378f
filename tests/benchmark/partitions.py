"""`skipbridge explain TABLE` in process, without an index: many partitions of one small file each.

Beside the whole, what its two largest parts take alone: the partitions out of the metastore that
PySpark includes, and their directories listed on local disk. With an index, what a query takes that
one partition can answer, under each freshness.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.app.api.session import Session
from bridge.expression.parsing.text import parse_where
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.catalog import HiveCatalog
from bridge.metastore.client import MetastoreClient
from bridge.planner.request import ScanRequest
from bridge.runtime.compose import cache_catalog, planner_of
from bridge.runtime.create_table import register_table
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.directory.freshness import Live
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Partition, TableName
from tests.benchmark.data import root
from tests.benchmark.figures import Figure
from tests.benchmark.tpc_data import SCHEMA, age, alone, copied_metastore, new_metastore

_TABLE = TableName(SCHEMA, "wide")
_RUNS = 5
_AIMS = {2_000: ("≤ 60", ""), 20_000: ("≤ 600", "≤ 1500")}
"""Of the listing and of the whole, in milliseconds."""


def run() -> list[Figure]:
    return [figure for count in _AIMS for figure in _measured(count)]


def _measured(count: int) -> list[Figure]:
    listing_aim, whole_aim = _AIMS[count]
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        uri = stack.enter_context(copied_metastore(_made(count), scratch))
        catalog = stack.enter_context(HiveCatalog(MetastoreClient(uri)))
        table = catalog.table(_TABLE)
        names = catalog.partition_names(table)
        partitions = _fetched(catalog)
        config = Config({"metastore.uri": Setting(uri, "benchmark")})

        def metastore() -> None:
            with HiveCatalog(MetastoreClient(uri)) as cold:
                assert len(_fetched(cold)) == count

        def listing() -> None:
            lister = DirectoryLister(open_storage())
            try:
                found = lister.each(partitions, Live(), time.monotonic())
            finally:
                lister.close()
            assert sum(map(len, set(found.values()))) == len(names) == count

        def explain() -> None:
            with Session(config) as session:
                report = session.table(str(_TABLE)).scan(None).explain()
                assert report.paths is not None and len(report.paths) == count

        return [
            _best(f"{count:,} directories listed", listing, listing_aim),
            _best(f"{count:,} partitions out of the metastore", metastore, ""),
            _best(f"{count:,} partitions explained", explain, whole_aim),
            *_one_of_all(uri, scratch, count),
        ]


def _one_of_all(uri: str, scratch: Path, count: int) -> list[Figure]:
    """One partition kept by the bounds of a column, under each freshness, in a warm planner."""
    settings = {
        "metastore.uri": Setting(uri, "benchmark"),
        "index.root": Setting(f"file://{scratch}/index", "benchmark"),
        "planner.cache_dir": Setting(f"{scratch}/cache", "benchmark"),
    }
    config, storage = Config(settings), open_storage()
    index_table(config, str(_TABLE), local=True, progress=lambda *_: None, say=lambda _: None)
    aim = "≤ 300" if count == 20_000 else ""
    predicate = parse_where(f"id = {count // 2}")[0]
    figures = []
    with HiveCatalog(MetastoreClient(uri)) as catalog:
        planner = planner_of(config, cache_catalog(config, catalog), storage)
        for freshness in ("live", "cached(60s)", "snapshot"):

            def plan(freshness: str = freshness) -> None:
                opened = planner.plan(ScanRequest(_TABLE, predicate, freshness=freshness))
                assert sum(map(len, opened.batches())) == 1

            wanted = aim if freshness == "snapshot" else ""
            figures.append(_best(f"{count:,} partitions, one kept: {freshness}", plan, wanted))
        planner.lister.close()
    return figures


def _fetched(catalog: HiveCatalog) -> list[Partition]:
    table = catalog.table(_TABLE)
    names = catalog.partition_names(table)
    return [p for batch in catalog.partitions(table, names) for p in batch.partitions]


def _best(work: str, run: Callable[[], None], aim: str) -> Figure:
    """The best of some runs; the processor time of this process alone is the note."""
    run()
    wall, cpu = [], []
    for _ in range(_RUNS):
        started, busy = time.perf_counter(), time.process_time()
        run()
        wall.append(time.perf_counter() - started)
        cpu.append(time.process_time() - busy)
    return Figure(work, min(wall) * 1e3, "ms", aim, f"planner's CPU {min(cpu) * 1e3:.0f} ms")


def _made(count: int) -> Path:
    """The metastore of a table in so many partitions of one file each, made once."""
    directory = root() / "tpc" / f"bounded-{count}"
    directory.mkdir(parents=True, exist_ok=True)
    metastore = directory / "metastore"
    with alone(directory):
        if (directory / "_DONE").exists():
            return metastore
        shutil.rmtree(directory)
        data = directory / "data"
        data.mkdir(parents=True)
        for day in range(count):
            (data / f"day={day}").mkdir()
            rows = pa.table({"id": pa.array([day] * 3)})
            pq.write_table(rows, data / f"day={day}" / "part-0.parquet")
        age(data)
        with new_metastore(metastore) as uri, MetastoreClient(uri) as client:
            client.create_database(SCHEMA)
            catalog = DirectoryCatalog(open_storage(), f"file://{data}")
            table = catalog.table(catalog.name)
            names = catalog.partition_names(table)
            partitions = [p for b in catalog.partitions(table, names) for p in b.partitions]
            register_table(client, _TABLE, table, partitions)
        (directory / "_DONE").touch()
    return metastore
