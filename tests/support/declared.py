"""A table whose record says how its files are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bridge.expression.nodes import Expression
from bridge.index.building.build import BuildReport, build_index
from bridge.index.building.collect import ThreadCollector
from bridge.index.building.listed import Listed, list_snapshot
from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.registry import kind
from bridge.table.directory.freshness import Live
from bridge.table.directory.lister import DirectoryLister
from bridge.table.directory.snapshot import LiveSnapshot
from bridge.table.model import CatalogTable, Partition, PartitionBatch, TableName
from bridge.table.reader_spec import ReaderSpec
from bridge.table.snapshot import TableContext
from tests.support.lake import NAME, Fetch, Lake, age, kept


@dataclass
class Declared(Lake):
    """A table whose record holds properties of its reader; partitions may have their own."""

    properties: dict[str, str] = field(default_factory=dict)
    readers: dict[str, ReaderSpec] = field(default_factory=dict)

    def table(self, name: TableName = NAME, age: float = 0.0) -> CatalogTable:
        properties = tuple(sorted(self.properties.items()))
        return replace(super().table(name, age), reader_properties=properties)

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> Fetch:
        found: list[Partition] = []
        for batch in super().partitions(table, names, age):
            found += (replace(p, reader=self.readers.get(p.name)) for p in batch.partitions)
        return Fetch([PartitionBatch(tuple(found))])

    def put(self, name: str, content: str | bytes, values: Sequence[str | None] = ()) -> None:
        path = self.directory(values) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        age(path)

    def bring_up(self, *definitions: str, storage: Any = None) -> BuildReport:
        """Builds or refreshes the index, with definitions such as ``bloom=a``."""
        wanted = [kind(d.partition("=")[0]).define(d.partition("=")[2]) for d in definitions]
        used = storage or self.storage
        lister = DirectoryLister(used, 4)
        context = TableContext(used, self, lister, None, lambda _: None, Live(), True)

        def files() -> Listed:
            return list_snapshot(LiveSnapshot(self.table(), context))

        def settings(held: IndexSettings) -> IndexSettings:
            return held.adding(wanted) if wanted else held

        try:
            return build_index(
                self.table(),
                files,
                self.store(),
                collector=ThreadCollector(used),
                settings=settings,
            )
        finally:
            lister.close()

    def read(self, predicate: Expression) -> set[str]:
        """Names of the files that a query reads."""
        planner = self.planner()
        try:
            return {uri.rpartition("/")[2] for uri in kept(planner, predicate)}
        finally:
            planner.lister.close()
