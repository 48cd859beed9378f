"""A table of real Parquet files, its index, and what the index says."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import ColumnStatistics
from bridge.index.build import BuildReport, build_index
from bridge.index.collect import ThreadCollector
from bridge.index.snapshot import IndexSnapshot
from bridge.index.store import IndexStore
from bridge.storage.port import Storage, data_files
from bridge.storage.routed import open_storage
from bridge.table.model import FileList, Partition, Table, TableName
from bridge.types import TRINO, Semantics, Type


@dataclass
class Lake:
    """A directory table and its index."""

    directory: Path
    storage: Storage = field(default_factory=open_storage)

    @property
    def location(self) -> str:
        return f"file://{self.directory}/t"

    @property
    def table(self) -> Table:
        return Table(TableName("db", "t"), (), (), self.location)

    def store(self, storage: Storage | None = None) -> IndexStore:
        return IndexStore(storage or self.storage, f"{self.location}/.skipbridge")

    def path(self, name: str) -> Path:
        return self.directory / "t" / name

    def write(self, name: str, data: pa.Table | dict[str, Any], **options: Any) -> Path:
        """Writes a file, two seconds old, so that no test waits for the clock."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        table = data if isinstance(data, pa.Table) else pa.table(data)
        pq.write_table(table, path, **options)
        self.age(path)
        return path

    def age(self, path: Path, seconds: float = 2.5) -> None:
        found = path.stat()
        moved = found.st_mtime_ns - int(seconds * 1e9)
        os.utime(path, ns=(moved, moved))

    def partitions(self) -> list[Partition]:
        return [Partition("", (), self.location)]

    def build(self, storage: Storage | None = None, **options: Any) -> BuildReport:
        used = storage or self.storage
        return build_index(
            self.table,
            self.partitions(),
            self.store(used),
            used,
            collector=options.pop("collector", None) or ThreadCollector(used),
            recursive=True,
            **options,
        )

    def serving(self) -> IndexSnapshot:
        manifest = self.store().latest()
        assert manifest is not None
        return IndexSnapshot.open(manifest, self.store(), self.directory / "cache")

    def listed(self) -> FileList:
        found = data_files(self.storage.list_all(self.location), self.location)
        return FileList(
            found.paths, found.sizes, found.modified, np.zeros(len(found), np.int32), found.etags
        )

    def column(
        self, name: str | tuple[str, ...], kind: Type, semantics: Semantics = TRINO
    ) -> ColumnStatistics:
        path = (name,) if isinstance(name, str) else name
        found = self.serving().statistics((), semantics).column(BoundReference(path, kind))
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
