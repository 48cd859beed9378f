"""`Planner.plan` in process: bind, prune, report and survivors' paths; no engine, no network."""

from __future__ import annotations

import datetime as dt
import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from bridge.expression.nodes import Expression
from bridge.expression.parsing.text import parse_where
from bridge.index.building.build import build_index
from bridge.index.building.collect import ThreadCollector
from bridge.index.generations.store import IndexStore
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.planner.reports.report import PruneReport
from bridge.planner.request import ScanRequest
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import (
    Catalog,
    CatalogTable,
    Partition,
    PartitionBatch,
    PartitionFetch,
    TableName,
)
from tests.benchmark.data import is_kept, root, small_files
from tests.benchmark.figures import Figure, median, timed
from tests.support.directories import in_directories

DAY = "l_shipdate >= DATE '1995-06-17' AND l_shipdate < DATE '1995-06-18'"


class OneTable:
    """A catalog of one unpartitioned table: what is measured is the planner, not a metastore."""

    def __init__(self, table: CatalogTable) -> None:
        self._table = table

    def schemas(self) -> list[str]:
        return [self._table.name.schema]

    def tables(self, schema: str) -> list[str]:
        return [self._table.name.table]

    def table(self, name: TableName, age: float = 0.0) -> CatalogTable:
        return self._table

    def partition_names(self, table: CatalogTable, age: float = 0.0) -> list[str]:
        return [""]

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> PartitionFetch:
        return _Once(PartitionBatch((Partition("", (), table.location),)))


class _Once:
    def __init__(self, batch: PartitionBatch) -> None:
        self._batches = iter([batch])

    def __iter__(self) -> _Once:
        return self

    def __next__(self) -> PartitionBatch:
        return next(self._batches)

    def close(self) -> None:
        """Nothing is under way."""


def indexed(directory: Path, index: Path) -> tuple[Catalog, Callable[[], IndexViews], CatalogTable]:
    """The directory as a table with an index (built here if there is none)."""
    storage = open_storage()
    found = DirectoryCatalog(storage, f"file://{directory}")
    table = found.table(found.name)
    store = IndexStore(storage, f"file://{index}")
    if not is_kept(store):
        build_index(
            table,
            in_directories([Partition("", (), table.location)], storage),
            store,
            collector=ThreadCollector(storage),
        )
    cache = root() / "cache"
    return OneTable(table), lambda: IndexViews(lambda t: store, cache, 60.0), table


def plan(planner: Planner, table: CatalogTable, where: str, freshness: str) -> PruneReport:
    """One scan planned to its end; the survivors' paths are made."""
    # Engines send a parsed predicate: SQL text is not part of planning.
    predicate = parsed(where)
    opened = planner.plan(ScanRequest(table.name, predicate, freshness=freshness))
    paths = None
    for batch in opened.batches():
        paths = opened.refine(batch).files.paths
    return opened.report(paths=paths)


@functools.cache
def parsed(where: str) -> Expression:
    return parse_where(where)[0]


def run() -> list[Figure]:
    directory = small_files()
    catalog, views, table = indexed(directory, root() / "index-39000")
    listings = DirectoryLister(open_storage())
    planner = Planner(catalog, views(), listings, metadata_ttl=60.0)
    report = plan(planner, table, DAY, "snapshot")
    assert 0 < report.files_kept < 100, report
    kept = f"{report.files_total} -> {report.files_kept} files"
    warm = median(lambda: plan(planner, table, DAY, "snapshot"), 300, 20)
    live = median(lambda: plan(planner, table, DAY, "live"), 15, 2)

    def restart() -> None:
        fresh = Planner(catalog, views(), listings, metadata_ttl=60.0)
        plan(fresh, table, DAY, "snapshot")

    restarted = median(restart, 15, 1)
    listings.close()
    return [
        Figure("plan, 39,000 files x 16 columns, snapshot, warm", warm * 1e3, "ms", "≤ 0.5", kept),
        Figure("the same after a restart (index opened anew)", restarted * 1e3, "ms", "≤ 15"),
        Figure("the same, live: list + join", live * 1e3, "ms", "≤ 250"),
        *_delta(directory),
        *_iceberg(directory),
    ]


def _bounds(directory: Path) -> list[tuple[str, int, dt.date, dt.date, int]]:
    found = []
    for file in sorted(directory.glob("*.parquet")):
        metadata = pq.read_metadata(file)
        column = metadata.row_group(0).column(10).statistics
        found.append((file.name, file.stat().st_size, column.min, column.max, metadata.num_rows))
    return found


def _delta(directory: Path) -> list[Figure]:
    """The peer delta-rs: add actions with the same bounds, then a mask; a new and an open
    handle.
    """
    try:
        import json

        import pyarrow as pa
        import pyarrow.compute as pc
        from deltalake import DeltaTable
        from deltalake.schema import Schema
        from deltalake.transaction import AddAction, create_table_with_add_actions
    except ImportError as e:
        return [Figure(f"peer deltalake not measured: {e}", float("nan"))]
    home = root() / "delta"
    if not (home / "_delta_log").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        actions = [
            AddAction(
                str(name),
                size,
                {},
                0,
                True,
                json.dumps(
                    {
                        "numRecords": rows,
                        "minValues": {"l_shipdate": low.isoformat()},
                        "maxValues": {"l_shipdate": high.isoformat()},
                        "nullCount": {"l_shipdate": 0},
                    }
                ),
            )
            for name, size, low, high, rows in _bounds(directory)
        ]
        schema = pa.schema([("l_shipdate", pa.date32())])
        create_table_with_add_actions(str(home), Schema.from_arrow(schema), actions, "error", [])
    day = dt.date(1995, 6, 17)

    def mask(table: DeltaTable) -> int:
        actions = pa.table(table.get_add_actions(flatten=True))
        keep = pc.and_(
            pc.less_equal(actions["min.l_shipdate"], day),
            pc.greater_equal(actions["max.l_shipdate"], day),
        )
        return len(actions["path"].filter(keep))

    handle = DeltaTable(home)
    return [
        Figure(
            "peer deltalake: open + get_add_actions + mask", timed(lambda: mask(DeltaTable(home)))
        ),
        Figure("peer deltalake: open handle", median(lambda: mask(handle), 10) * 1e3, "ms"),
    ]


def _iceberg(directory: Path) -> list[Figure]:
    """The peer pyiceberg: the files added to a table with all column statistics, then
    plan_files.
    """
    try:
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.expressions import And, GreaterThanOrEqual, LessThan
    except ImportError as e:
        return [Figure(f"peer pyiceberg not measured here: {e}", float("nan"))]
    home = root() / "iceberg"
    home.mkdir(exist_ok=True)
    try:
        catalog = SqlCatalog(
            "bench", uri=f"sqlite:///{home}/catalog.db", warehouse=f"file://{home}"
        )
        catalog.create_namespace_if_not_exists("bench")
        files = sorted(str(f) for f in directory.glob("*.parquet"))
        if not catalog.table_exists("bench.lineitem"):
            catalog.create_table("bench.lineitem", schema=pq.read_schema(files[0]))
        table = catalog.load_table("bench.lineitem")
        if table.current_snapshot() is None:  # a run before was broken off
            table.add_files(files, check_duplicate_files=False)
    except Exception as e:
        shutil.rmtree(home, ignore_errors=True)
        return [Figure(f"peer pyiceberg not measured: {type(e).__name__}", float("nan"))]
    where = And(
        GreaterThanOrEqual("l_shipdate", "1995-06-17"), LessThan("l_shipdate", "1995-06-18")
    )
    seconds = median(lambda: list(table.scan(row_filter=where).plan_files()), 3)
    assert list(table.scan(row_filter=where).plan_files())
    return [Figure("peer pyiceberg: plan_files", seconds)]
