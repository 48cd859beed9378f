"""One version of a Hudi table: the latest file slices of each partition at an instant."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from bridge.expression.nodes import AlwaysTrue, Expression
from bridge.formats.hudi import times
from bridge.formats.hudi.by_id import OLDER_LOGS, PROPERTY, encode
from bridge.kernel.errors import PartitionAbsent
from bridge.storage.port import UNKNOWN_TIME, FileTable
from bridge.table.directory.freshness import max_age
from bridge.table.hudi.files.evolved_slices import Evolution
from bridge.table.hudi.files.file_slices import FileSlices, full_paths
from bridge.table.hudi.files.file_system_view import FileSystemView
from bridge.table.hudi.merging.reader_properties import (
    BY_ID,
    LOG,
    MERGED,
    has_defaults,
    log_properties,
    merges_whole_records,
    repairs_times,
)
from bridge.table.hudi.schema.columns import KeySource, TableColumns
from bridge.table.hudi.timeline.history import entries, written_by
from bridge.table.model import OneBatch, Partition, PartitionBatch, PartitionFetch
from bridge.table.reader_spec import COLUMNS_BY_NAME
from bridge.table.slices import IndexFiles, Int64Array, Logs, Mask, ReaderSpec, SliceBatch
from bridge.table.snapshot import Columns, OwnIndex, TableContext, TimelineEntry

_NAMED = 3


class HudiSnapshot:
    """Implements `bridge.table.snapshot.Snapshot`, `HasTimeline` and `HasOwnIndexes`.

    Safe for threads.

    Args:
        instant: the newest that counts, by its requested time.
        evolution: how the slices have the table's columns; None: by name.
        until: the end of a range of changes; None: it is open. Before version 8 a log may hold
            blocks of later instants, which do not count.

    Slices with logs are read by the merging reader. Of such a slice only a whole answer counts: it
    is skipped if neither its base file nor any of its logs holds a matching row, and only where a
    merged row is one of the rows that were written (see `merges_whole_records`).
    """

    committed = True
    freshness = "committed"

    def __init__(
        self,
        planned: TableColumns,
        view: FileSystemView,
        slices: FileSlices,
        context: TableContext,
        id: str,
        instant: str,
        evolution: Evolution | None = None,
        until: str | None = None,
    ) -> None:
        self.table = planned.table
        self.index: IndexFiles | None = context.index
        self.row_filter: Expression = AlwaysTrue()
        self.own_indexes: Sequence[OwnIndex] = ()
        self.id = id
        self.plans_without_io = planned.source is not KeySource.METASTORE
        self._planned = planned
        self._context = context
        self._slices = slices
        self._timeline = view.timeline
        self._base = view.config.base
        format = view.config.base_format
        # By position, the default for ORC, another column may be read after the schema changed.
        found_by = (COLUMNS_BY_NAME,) if format == "orc" else ()
        self._readers: tuple[ReaderSpec, ...] = (ReaderSpec(format, found_by),)
        schema = view.schema(instant or None) or ""
        self._times: times.Times = times.times_of(schema) if format == "parquet" else {}
        told: tuple[tuple[str, str], ...] = ()
        if self._times:
            told = ((times.PROPERTY, json.dumps(self._times, sort_keys=True)),)
            self._readers = (ReaderSpec(format, told, base=format),)
        self._bounds = np.searchsorted(slices.partition, np.arange(len(slices.partitions) + 1))
        self._number = {path: i for i, path in enumerate(slices.partitions)}
        self._whole_records = True
        if len(slices.log_paths):
            properties = (*log_properties(view, instant, until), *told)
            self._whole_records = (
                merges_whole_records(view.config)
                and not has_defaults(schema)
                and not (format != "parquet" and repairs_times(schema))
            )
            log = LOG if self._whole_records else ""
            merging = ReaderSpec(MERGED, properties, base=format, log=log)
            self._readers = (*self._readers, merging)
        self._evolution = evolution
        self._reader_of: np.ndarray | None = None
        self._renamed: dict[int, IndexFiles] = {}
        if evolution is not None:
            self._reader_of = self._evolved_readers(evolution)
        self._paths = full_paths(self._base, slices.base_paths)
        self._sizes = np.where(slices.has_base, slices.base_sizes, -1)
        self._log_paths = full_paths(self._base, slices.log_paths)
        self._names: dict[str, list[str]] = planned.names()
        self._registered: dict[str, Partition] | None = None

    @property
    def listed_files(self) -> int:
        return len(self._slices.base_sizes) + len(self._slices.log_sizes)

    def partition_names(self) -> list[str]:
        if self._planned.source is KeySource.FILES:
            return [""]
        if self._planned.source is KeySource.METASTORE:
            return list(self._metastore())
        return list(self._names)

    def partitions(self, names: list[str]) -> PartitionFetch:
        found = (each for name in names for each in self._named(name))
        return OneBatch(PartitionBatch(tuple(found)))

    def begin(self) -> None:
        """The timeline is read already."""

    def slices(self, batch: PartitionBatch, columns: Columns) -> Iterator[SliceBatch]:
        if not batch.partitions or not len(self._slices.base_sizes):
            return
        if self._planned.source is KeySource.FILES:
            chosen: Int64Array | slice = slice(0, len(self._slices.base_sizes))
            owner = np.zeros(len(self._slices.base_sizes), np.int32)
        else:
            paths = [self._path(p) for p in batch.partitions]
            ranges = [self._range(path) for path in paths]
            counts = [end - begin for begin, end in ranges]
            chosen = np.concatenate([np.arange(b, e, dtype=np.int64) for b, e in ranges])
            owner = np.repeat(np.arange(len(ranges), dtype=np.int32), counts)
        if self._evolution is None:
            yield self._batch(chosen, owner, batch.partitions, self._index_of(0))
            return
        at = np.arange(len(self._slices), dtype=np.int64)[chosen]
        ways = self._evolution.way[at]
        for way in np.unique(ways).tolist():
            inside = ways == way
            yield self._batch(at[inside], owner[inside], batch.partitions, self._index_of(way))

    def indexed_slices(self, partition: Partition) -> SliceBatch | None:
        return None

    def find_unchanged(self, slices: SliceBatch) -> Mask:
        return np.zeros(len(slices), np.bool_)

    def timeline(self) -> list[TimelineEntry]:
        """The active timeline as the query sees it."""
        return entries(self._timeline)

    def commits(self, slices: SliceBatch) -> list[str | None]:
        return written_by(slices.files.paths)

    def _batch(
        self,
        chosen: Int64Array | slice,
        owner: np.ndarray,
        partitions: tuple[Partition, ...],
        index: IndexFiles | None,
    ) -> SliceBatch:
        """The chosen slices, whose base files have the columns under the names of the index."""
        found = self._slices
        whole = self._files(self._paths, self._sizes)
        has_base = found.has_base
        logs: Logs | None = None
        if len(found.log_paths):
            log_files = self._files(self._log_paths, found.log_sizes)
            logs = Logs(found.log_offsets, log_files, self._match(log_files))
        files = whole
        if not isinstance(chosen, slice):
            files = whole.take(chosen)
            has_base = has_base[chosen]
            logs = None if logs is None else logs.take(chosen)
        ordinals = self._match(files)
        reader = None
        if logs is not None:
            merged = logs.counts > 0
            reader = merged.astype(np.int32)
            unknown = merged & self._mixes_names(chosen)
            ordinals = np.where(unknown, -1, ordinals)
            of_log = np.repeat(unknown, logs.counts)
            logs = replace(logs, ordinals=np.where(of_log, -1, logs.ordinals))
        if self._reader_of is not None:
            reader = self._reader_of[chosen]
        return SliceBatch(
            files,
            ordinals,
            owner,
            partitions,
            self._readers,
            index,
            reader,
            None if has_base.all() else has_base,
            logs,
        )

    def _mixes_names(self, chosen: Int64Array | slice) -> Mask | bool:
        """Slices with logs of which the index knows nothing.

        A merger may make other rows than the files hold, or the base file and the logs have the
        columns under different names.
        """
        if not self._whole_records or self._evolution is None:
            return not self._whole_records
        found: Mask = (self._evolution.way[chosen] > 0) | self._evolution.older_logs[chosen]
        return found

    def _index_of(self, way: int) -> IndexFiles | None:
        """The index, asked by the table's names about files that have others.

        Columns whose values a reader may take in another unit are unknown.
        """
        if self.index is None:
            return None
        if way not in self._renamed:
            evolution = self._evolution
            names: dict[str, str | None] = {}
            if evolution is not None and way:
                names = dict(evolution.names(way))
            names |= dict.fromkeys(self._doubtful_times(self.index, names))
            self._renamed[way] = self.index.with_names(names) if names else self.index
        return self._renamed[way]

    def _doubtful_times(self, index: IndexFiles, names: Mapping[str, str | None]) -> Iterator[str]:
        """The columns of which some file may hold times in another unit than it says."""
        for name, stored in ({name: name for name in self._times} | dict(names)).items():
            renamed = stored != name
            if (name in self._times or stored in self._times) and (
                renamed or "us" in index.stored_units(name)
            ):
                yield name

    def _evolved_readers(self, evolution: Evolution) -> np.ndarray:
        """Adds the readers by id; returns the number of each slice's reader."""
        merged = self._slices.log_counts > 0
        keys = evolution.way * 4 + merged * 2 + evolution.older_logs
        distinct, numbers = np.unique(keys, return_inverse=True)
        oldest = np.full(len(distinct), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(oldest, numbers, evolution.oldest)
        readers = [
            self._reader_by_id(evolution, key // 4, bool(key & 2), since if key & 1 else None)
            for key, since in zip(distinct.tolist(), oldest.tolist(), strict=True)
        ]
        self._readers = tuple(readers)
        return numbers.astype(np.int32)

    def _reader_by_id(
        self, evolution: Evolution, way: int, merged: bool, oldest: int | None
    ) -> ReaderSpec:
        """A reader. ``oldest``: logs' first version of the schema; None: they have the table's."""
        plain = self._readers[1] if merged else self._readers[0]
        if not way and oldest is None:
            return plain
        properties = dict(plain.properties)
        properties[PROPERTY] = encode(evolution.columns[way])
        if self._times:
            found = times.of_file(self._times, evolution.columns[way])
            properties[times.PROPERTY] = json.dumps(found, sort_keys=True)
        if oldest is not None:
            properties[OLDER_LOGS] = evolution.logs.since_place(oldest).encode()
        return ReaderSpec(
            BY_ID,
            tuple(sorted(properties.items())),
            base=plain.base or plain.format,
            log=plain.log,
        )

    def _files(self, paths: pa.Array, sizes: Int64Array) -> FileTable:
        return FileTable(paths, sizes, np.full(len(sizes), UNKNOWN_TIME, np.int64))

    def _match(self, files: FileTable) -> Int64Array:
        if self.index is None:
            return np.full(len(files), -1, np.int64)
        return self.index.match(files)

    def _range(self, path: str) -> tuple[int, int]:
        number = self._number.get(path)
        if number is None:
            return 0, 0
        return int(self._bounds[number]), int(self._bounds[number + 1])

    def _named(self, name: str) -> list[Partition]:
        if self._planned.source is KeySource.METASTORE:
            return [self._metastore()[name]]
        if self._planned.source is KeySource.FILES:
            return [Partition(name, (), self.table.location)]
        values = self._planned.values
        return [Partition(name, values[p], f"{self._base}/{p}") for p in self._names[name]]

    def _path(self, partition: Partition) -> str:
        return partition.location[len(self._base) + 1 :]

    def _metastore(self) -> dict[str, Partition]:
        """The registered partitions that hold files, by name.

        Errors:
            PartitionAbsent: the metastore lacks a partition, and only it knows the keys' values.
        """
        if self._registered is None:
            catalog, age = self._context.catalog, max_age(self._context.freshness)
            names = catalog.partition_names(self.table, age)
            found: dict[str, Partition] = {}
            inside = f"{self._base}/"
            for batch in catalog.partitions(self.table, names, age):
                for partition in batch.partitions:
                    if partition.location.startswith(inside):
                        found[partition.name] = partition
            known = {self._path(p) for p in found.values()}
            # A deleted partition may still have files, though no slices.
            filled = np.flatnonzero(np.diff(self._bounds)).tolist()
            paths = [self._slices.partitions[number] for number in filled]
            lacking = [path for path in paths if path not in known]
            if lacking:
                raise PartitionAbsent(
                    f"{len(lacking)} partitions of {self.table.name} are not in the metastore, "
                    f"such as {_quoted(lacking)}, and their paths do not tell the values of "
                    f"{', '.join(k.name for k in self.table.partition_keys)}",
                    "register them: skipbridge sync, or Hudi's own sync to the metastore",
                )
            self._registered = {
                name: p for name, p in found.items() if self._path(p) in self._number
            }
        return self._registered


def _quoted(paths: Sequence[str]) -> str:
    return ", ".join(repr(path) for path in paths[:_NAMED])
