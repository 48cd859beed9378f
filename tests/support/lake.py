"""A table of real files, the catalog that describes it, its index, and planners over them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.expression.nodes import AlwaysTrue, BoundReference, Expression
from bridge.expression.statistics import ColumnStatistics
from bridge.index.building.build import BuildReport, build_index
from bridge.index.building.collect import ThreadCollector
from bridge.index.generations.store import IndexStore
from bridge.index.reading.local_cache import CacheLimits
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.types import TRINO, Semantics, Type
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.planner.scan_plan import ScanPlan
from bridge.storage.port import FileTable, Storage, data_files
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import CatalogTable, Column, Partition, PartitionBatch, TableName, View
from bridge.table.partition import partition_name
from tests.support.directories import in_directories

NAME = TableName("db", "t")


@dataclass
class Lake:
    """The table ``db.t`` in the directory ``t`` below a root; implements `Catalog` for itself.

    Attributes:
        spelling: how the catalog spells the location.
        locations: directories of partitions that lie elsewhere, by name; several may share one.
            That of a table without partitions is named ``""``.
        recursive: whether files in directories below a partition's are its own.
    """

    root: Path
    columns: tuple[Column, ...] = ()
    keys: tuple[Column, ...] = ()
    spelling: str = "file://{}"
    partition_values: list[tuple[str | None, ...]] = field(default_factory=list)
    storage: Storage = field(default_factory=open_storage)
    locations: dict[str, Path] = field(default_factory=dict)
    recursive: bool = False
    format: str = "parquet"

    def __post_init__(self) -> None:
        (self.root / "t").mkdir(parents=True, exist_ok=True)
        if not self.keys:
            self.partition_values = [()]

    # the catalog

    def schemas(self) -> list[str]:
        return ["db"]

    def tables(self, schema: str) -> list[str]:
        return ["t"]

    def views(self, schema: str) -> list[str]:
        return []

    def view(self, name: TableName) -> View | None:
        return None

    def table(self, name: TableName = NAME, age: float = 0.0) -> CatalogTable:
        return CatalogTable(name, self.columns, self.keys, self.location, self.format)

    def forget(self, name: TableName) -> None:
        """Nothing is kept."""

    def partition_names(self, table: CatalogTable, age: float = 0.0) -> list[str]:
        return [self.name_of(values) for values in self.partition_values]

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> Fetch:
        known = {self.name_of(values): values for values in self.partition_values}
        there = [n for n in names if n in known]
        found = [Partition(n, known[n], self._uri(self.directory(known[n]))) for n in there]
        return Fetch([PartitionBatch(tuple(found[i : i + 2])) for i in range(0, len(found), 2)])

    def close(self) -> None:
        """Nothing is open."""

    # files

    @property
    def location(self) -> str:
        home = self.root / "t"
        return self._uri(home if self.keys else self.locations.get("", home))

    def _uri(self, path: Path) -> str:
        return canonical(self.spelling.format(path))

    def name_of(self, values: Sequence[str | None]) -> str:
        return partition_name([k.name for k in self.keys], list(values)) if self.keys else ""

    def directory(self, values: Sequence[str | None]) -> Path:
        name = self.name_of(values)
        return self.locations.get(name, self.root / "t" / name)

    def owners(self, path: Path) -> list[tuple[str | None, ...]]:
        """Values of the partitions that a file belongs to."""
        return [
            values
            for values in self.partition_values
            if path.parent == (place := self.directory(values))
            or (self.recursive and path.is_relative_to(place))
        ]

    def path(self, name: str) -> Path:
        return self.root / "t" / name

    def write(
        self,
        name: str,
        data: pa.Table | dict[str, Any],
        values: Sequence[str | None] = (),
        **options: Any,
    ) -> Path:
        """Writes a file of a partition, some seconds old, so that its entry is trusted at once."""
        path = self.directory(values) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(data if isinstance(data, pa.Table) else pa.table(data), path, **options)
        age(path)
        return path

    def listed(self) -> FileTable:
        return data_files(self.storage.list_all(self.location), self.location)

    # the index and planners over it

    def store(self, storage: Storage | None = None) -> IndexStore:
        return IndexStore(storage or self.storage, f"file://{self.root}/t/.skipbridge")

    def all_partitions(self) -> list[Partition]:
        table = self.table()
        fetched = self.partitions(table, self.partition_names(table))
        return [p for batch in fetched for p in batch.partitions]

    def build(self, storage: Storage | None = None, **options: Any) -> BuildReport:
        used = storage or self.storage
        return build_index(
            self.table(),
            in_directories(self.all_partitions(), used, recursive=self.recursive),
            self.store(used) if storage is not None else self.store(),
            collector=options.pop("collector", None) or ThreadCollector(used),
            **options,
        )

    def planner(self, metadata_ttl: float = 0.0) -> Planner:
        views = IndexViews(lambda table: self.store(), self.root / "cache", 0.0)
        return Planner(
            self,
            views,
            DirectoryLister(self.storage, 4, recursive=self.recursive),
            metadata_ttl=metadata_ttl,
        )

    def snapshot(self, limits: CacheLimits | None = None) -> IndexSnapshot:
        manifest = self.store().latest()
        assert manifest is not None
        return IndexSnapshot.open(manifest, self.store(), self.root / "cache", limits)

    def column(
        self, name: str | tuple[str, ...], kind: Type, semantics: Semantics = TRINO
    ) -> ColumnStatistics:
        """What the index says of a column."""
        path = (name,) if isinstance(name, str) else name
        found = self.snapshot().statistics((), semantics).column(BoundReference(path, kind))
        assert found is not None
        return found

    def bounds(self, name: str | tuple[str, ...], kind: Type, **options: Any) -> tuple[Any, Any]:
        """Bounds of the only file; None where unknown."""
        found = self.column(name, kind, **options)
        lower = None if _unknown(found.lower_known) else _value(found.lower)
        upper = None if _unknown(found.upper_known) else _value(found.upper)
        return lower, upper


def _unknown(known: Any) -> bool:
    return known is not None and not known[0]


def _value(bounds: Any) -> Any:
    return bounds[0].as_py() if isinstance(bounds, pa.Array) else bounds[0].item()


class Fetch:
    """Partition batches that are there already; implements `PartitionFetch`."""

    def __init__(self, batches: list[PartitionBatch]) -> None:
        self._batches = iter(batches)

    def __iter__(self) -> Iterator[PartitionBatch]:
        return self._batches

    def __next__(self) -> PartitionBatch:
        return next(self._batches)

    def close(self) -> None:
        """Nothing is under way."""


def age(path: Path, seconds: float = 10.0) -> None:
    found = path.stat()
    moved = found.st_mtime_ns - int(seconds * 1e9)
    os.utime(path, ns=(moved, moved))


def kept(
    planner: Planner, predicate: Expression, *, narrow: Expression | None = None, **request: Any
) -> set[str]:
    """URIs of the files that a scan reads."""
    return drained(planner.plan(ScanRequest(NAME, predicate, **request)), narrow)


def drained(plan: ScanPlan, narrow: Expression | None = None) -> set[str]:
    """URIs of a plan's files; ``narrow`` comes when the first batch is drawn."""
    return {uri for _, uri in owned(plan, narrow)}


def owned(plan: ScanPlan, narrow: Expression | None = None, after: int = 0) -> set[tuple[str, str]]:
    """A plan's files, each with the name of the partition for which it is read.

    Args:
        narrow: a dynamic filter; it arrives when so many batches were handed out, as late as can
            be; before anything is drawn if ``after`` is -1.
    """
    found: list[tuple[str, str]] = []
    if narrow is not None and after < 0:
        plan.apply_dynamic_filter(narrow)
        narrow = None
    for number, batch in enumerate(plan.batches()):
        if narrow is not None and number == after:
            plan.apply_dynamic_filter(narrow)
            narrow = None
        left = plan.refine(batch)
        names = [left.partitions[i].name for i in left.partition.tolist()]
        found += zip(names, left.files.paths.to_pylist(), strict=True)
    assert len(found) == len(set(found)), "a file came out twice"
    report = plan.report()
    assert report.complete and report.files_kept == len(found)
    for stage in report.stages:
        assert 0 <= stage.kept <= stage.total, stage
    return set(found)


def everything(planner: Planner, **request: Any) -> set[str]:
    return kept(planner, AlwaysTrue(), **request)
