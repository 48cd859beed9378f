"""A million files: an index over files that do not exist, built and opened by the real store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from bridge.expression.parsing.text import parse_where
from bridge.formats.parquet.statistics import Footer, FooterReader
from bridge.index.building.build import build_index
from bridge.index.building.collect import FileTask, Reading
from bridge.index.generations.shard import Collected, CollectedBuilder
from bridge.index.generations.store import IndexStore
from bridge.kernel.types import BIGINT
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.storage.routed import open_storage
from bridge.table.directory.freshness import Indexed
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.benchmark.data import is_kept, root
from tests.benchmark.figures import Figure, median
from tests.benchmark.planning import OneTable
from tests.benchmark.synthetic import Listed
from tests.support.directories import in_directories

COUNT = 1_000_000


class _Synthetic:
    """One footer, its bounds changed per file: file n holds ids n * 10 to n * 10 + 14."""

    def collect(self, tasks: Sequence[FileTask], reading: Reading) -> Iterator[Collected]:
        footer = _footer()
        for start in range(0, len(tasks), 50_000):
            builder = CollectedBuilder()
            for task in tasks[start : start + 50_000]:
                leaf = footer.leaves[0]
                leaf.lower, leaf.upper = task.file * 10, task.file * 10 + 14
                builder.add(task.file, footer)
            yield builder.finish()


def _footer() -> Footer:
    sink = pa.BufferOutputStream()
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64())}), sink)
    raw = sink.getvalue().to_pybytes()
    return FooterReader().read(raw, len(raw), "synthetic")


def make_planner(count: int = COUNT) -> Planner:
    """A planner over ``bench.million``, whose index is built once."""
    location = "file:///synthetic/million"
    table = CatalogTable(TableName("bench", "million"), (Column("id", BIGINT),), (), location)
    storage = Listed(location, count)
    name = "index-million" if count == COUNT else f"index-million-{count}"
    store = IndexStore(open_storage(), f"file://{root()}/{name}")
    if not is_kept(store):
        build_index(
            table,
            in_directories([Partition("", (), location)], storage),  # type: ignore[arg-type]
            store,
            collector=_Synthetic(),
        )
    views = IndexViews(lambda t: store, root() / "cache", 60.0)
    return Planner(
        OneTable(table),
        views,
        DirectoryLister(open_storage()),
        freshness=Indexed(),
        metadata_ttl=60.0,
    )


def run() -> list[Figure]:
    planner = make_planner()
    predicate, _ = parse_where("id BETWEEN 5000000 AND 5000100")
    kept = [0]

    def plan() -> None:
        opened = planner.plan(ScanRequest(TableName("bench", "million"), predicate))
        files = 0
        for batch in opened.batches():
            files += len(batch.files.paths)
        opened.report()
        kept[0] = files

    seconds = median(plan, 50, 3)
    lower = np.arange(COUNT, dtype=np.int64) * 10
    upper = lower + 14
    floor = median(lambda: (lower <= 5_000_100) & (upper >= 5_000_000), 50, 3)
    assert 0 < kept[0] < 100
    return [
        Figure(
            "plan, 1,000,000 files, one range, snapshot, warm",
            seconds * 1e3,
            "ms",
            "≤ 3",
            f"{kept[0]} kept",
        ),
        Figure("floor here: the two comparisons in numpy", floor * 1e3, "ms"),
    ]
