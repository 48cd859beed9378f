"""A table format of versions: ``<location>/_versions/<n>.json`` lists what version n consists of.

::

    {"committed_at": 1716199200000, "filter": "id >= 0", "written_in": "v", "partitions": [
        {"name": "day=1", "slices": [
            {"path": "day=1/a.parquet", "format": "parquet", "deletes": ["day=1/a.del"],
             "added": 1}]}]}

``written_in`` names the column that holds the version in which each row was written. A table with
one can be asked for its changes: they are rows of the later version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bridge.expression.nodes import AlwaysTrue, And, Expression
from bridge.expression.parsing.text import parse_where
from bridge.kernel.errors import (
    FileCorrupt,
    ReadVersionNotFound,
    ReadVersionUnsupported,
    SnapshotExpired,
)
from bridge.storage.port import FileStat, FileTable, Storage
from bridge.table.directory.discovered import Discovered, combine, summarise
from bridge.table.model import CatalogTable, Partition, PartitionBatch
from bridge.table.partition import parse_partition_name
from bridge.table.read_version import AsOfTime, AsOfVersion, ChangesBetween, Newest, ReadVersion
from bridge.table.slices import Logs, Mask, ReaderSpec, SliceBatch
from bridge.table.snapshot import Columns, TableContext, TimelineEntry


class ManifestFormat:
    name = "manifest"
    versioned = True

    def recognises(self, properties: Mapping[str, str], input_format: str) -> bool:
        return properties.get("toy.versions") == "true"

    def snapshot(
        self, table: CatalogTable, read: ReadVersion, context: TableContext, id: str = ""
    ) -> ManifestSnapshot:
        if read.segments:
            raise ReadVersionUnsupported(f"{table.name} cannot be read as {read}", "leave it out")
        versions = self._versions(table.location, context.storage)
        if id:
            number = int(id.removeprefix("version:"))
            if number not in versions:
                raise SnapshotExpired(f"{id} of {table.name} was cleaned", "run the query again")
            return ManifestSnapshot(table, context, read, number)
        match read.point:
            case Newest() | ChangesBetween(until=""):
                number = max(versions, default=-1)
            case ChangesBetween(until=text) if text.isdigit() and int(text) in versions:
                number = int(text)
            case AsOfVersion(text) if text.isdigit() and int(text) in versions:
                number = int(text)
            case AsOfTime(millis):
                past = [n for n in versions if _read(table, context, n)["committed_at"] <= millis]
                number = max(past, default=-1)
            case _:
                number = -1
        if number < 0:
            raise ReadVersionNotFound(f"{table.name} has no {read}", f"there are {versions}")
        return ManifestSnapshot(table, context, read, number)

    def discover(self, location: str, storage: Storage, threads: int = 16) -> Discovered:
        newest = max(self._versions(location, storage), default=0)
        names = [s["path"] for p in _manifest(location, storage, newest)["partitions"]
                 for s in p["slices"]]  # fmt: skip
        stats = [storage.stat(f"{location}/{name}") for name in sorted(names)]
        return Discovered(location, combine([summarise(_table(stats, newest), location)]))

    def _versions(self, location: str, storage: Storage) -> list[int]:
        return sorted(_manifests(location, storage))


class ManifestSnapshot:
    committed = True
    freshness = "committed"
    plans_without_io = False
    listed_files = 0

    def __init__(
        self, table: CatalogTable, context: TableContext, read: ReadVersion, version: int
    ) -> None:
        self.id = f"version:{version}"
        self.table = table
        self.index = context.index
        manifest = _read(table, context, version)
        where = manifest.get("filter", "")
        self.row_filter = parse_where(where)[0] if where else AlwaysTrue()
        if isinstance(read.point, ChangesBetween):
            changed = _changes(table, manifest.get("written_in", ""), read.point.after, version)
            self.row_filter = And((self.row_filter, changed)) if where else changed
        self._base_only = read.read_optimized
        self._context = context
        self._partitions = {p["name"]: p["slices"] for p in manifest["partitions"]}

    def partition_names(self) -> list[str]:
        return list(self._partitions)

    def partitions(self, names: list[str]) -> Batches:
        found = [
            Partition(
                name,
                tuple(value for _, value in parse_partition_name(name)) if name else (),
                f"{self.table.location}/{name}".rstrip("/"),
            )
            for name in names
        ]
        return Batches(found)

    def begin(self) -> None:
        """The manifest is here already."""

    def slices(self, batch: PartitionBatch, columns: Columns) -> Iterator[SliceBatch]:
        listed = [(i, s) for i, p in enumerate(batch.partitions) for s in self._partitions[p.name]]
        if not listed:
            return
        formats = sorted({s["format"] for _, s in listed})
        files = self._files([s["path"] for _, s in listed])
        deletes = [[] if self._base_only else s.get("deletes", []) for _, s in listed]
        logs = None
        if any(deletes):
            offsets = np.cumsum([0, *map(len, deletes)])
            found = self._files([path for paths in deletes for path in paths])
            logs = Logs(offsets, found, np.full(offsets[-1], -1), adds_rows=False)
        index = self.index
        yield SliceBatch(
            files,
            np.full(len(files), -1, np.int64) if index is None else index.match(files),
            np.array([i for i, _ in listed], np.int32),
            batch.partitions,
            tuple(ReaderSpec(f) for f in formats),
            index,
            np.array([formats.index(s["format"]) for _, s in listed], np.int32),
            logs=logs,
        )

    def indexed_slices(self, partition: Partition) -> SliceBatch | None:
        return None

    def find_unchanged(self, slices: SliceBatch) -> Mask:
        return np.zeros(len(slices), np.bool_)

    def timeline(self) -> list[TimelineEntry]:
        found = _manifests(self.table.location, self._context.storage)
        return [
            TimelineEntry(str(n), None, "commit", "completed", stat.size, stat.modified)
            for n, stat in sorted(found.items())
        ]

    def commits(self, slices: SliceBatch) -> list[str | None]:
        added = {s["path"]: s.get("added") for held in self._partitions.values() for s in held}
        start = len(self.table.location) + 1
        found = [added[path[start:]] for path in slices.files.paths.to_pylist()]
        return [None if version is None else str(version) for version in found]

    def _files(self, names: list[str]) -> FileTable:
        """A file that the version names and that is gone is an error, never no file."""
        uris = [f"{self.table.location}/{name}" for name in names]
        return _table(self._context.lister.look_at(uris), self.id)


class Batches:
    def __init__(self, partitions: list[Partition]) -> None:
        self._batches = iter([PartitionBatch((p,)) for p in partitions])

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> PartitionBatch:
        return next(self._batches)

    def close(self) -> None:
        """Nothing is under way."""


def _table(stats: Sequence[FileStat | None], version: object) -> FileTable:
    found = [stat for stat in stats if stat is not None]
    if len(found) < len(stats):
        raise FileCorrupt(f"version {version} names a file that is gone", "restore the file")
    return FileTable(
        pa.array([stat.uri for stat in found], pa.large_string()),
        np.array([stat.size for stat in found], np.int64),
        np.array([stat.modified for stat in found], np.int64),
    )


def _read(table: CatalogTable, context: TableContext, version: int) -> dict[str, Any]:
    return _manifest(table.location, context.storage, version)


def _changes(table: CatalogTable, column: str, after: str, until: int) -> Expression:
    if not column:
        raise ReadVersionUnsupported(
            f"{table.name} does not tell in which version its rows were written",
            "read a whole version",
        )
    if not after.isdigit():
        raise ReadVersionNotFound(f"{table.name} has no version {after!r}", "give a number")
    return parse_where(f"{column} > {after} AND {column} <= {until}")[0]


def _manifests(location: str, storage: Storage) -> dict[int, FileStat]:
    listed = storage.list_all(f"{location}/_versions")
    return {
        int(path.rpartition("/")[2].removesuffix(".json")): FileStat(path, size, modified)
        for path, size, modified in zip(
            listed.paths.to_pylist(), listed.sizes.tolist(), listed.modified.tolist(), strict=True
        )
    }


def _manifest(location: str, storage: Storage, version: int) -> dict[str, Any]:
    uri = f"{location}/_versions/{version}.json"
    try:
        found: dict[str, Any] = json.loads(storage.read(uri))
    except ValueError as error:
        raise FileCorrupt(f"{uri} is damaged: {error}", "restore the file") from error
    return found


TABLE_FORMAT = ManifestFormat()
