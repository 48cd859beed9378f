"""One version of a table of segments: the files that its segments name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from bridge.expression.nodes import AlwaysTrue, Expression
from bridge.storage.port import join_tables
from bridge.table.model import CatalogTable, OneBatch, Partition, PartitionBatch, PartitionFetch
from bridge.table.partition import parse_partition_name
from bridge.table.recipes import drop_foreign_ordinals
from bridge.table.segments.log import SegmentFiles, SegmentLog
from bridge.table.segments.manifest import FileSet, Segment, SegmentManifest
from bridge.table.segments.properties import columns_of, reader_spec
from bridge.table.segments.views import choose, reader_of, up_to_date_files, uses, view_table
from bridge.table.slices import IndexFiles, Int32Array, Mask, ReaderSpec, SliceBatch
from bridge.table.snapshot import Columns, SegmentEntry, TableContext, TimelineEntry, ViewUse


class SegmentSnapshot:
    """Implements `bridge.table.snapshot.Snapshot`, `HasTimeline`, `HasSegments`; safe for threads.

    Args:
        segments: those that are read.

    Attributes:
        manifest: the version.
        segments: those that are read.
    """

    committed = True
    freshness = "committed"
    plans_without_io = False

    def __init__(
        self,
        table: CatalogTable,
        manifest: SegmentManifest,
        segments: Sequence[Segment],
        log: SegmentLog,
        context: TableContext,
    ) -> None:
        self.id = f"version:{manifest.version}:{manifest.checksum[:16]}"
        self.table = table
        self.index: IndexFiles | None = context.index
        self.row_filter: Expression = AlwaysTrue()
        self.manifest = manifest
        self.segments = tuple(segments)
        self._log = log
        self._context = context
        self._columns = columns_of(manifest.definition)

    @property
    def listed_files(self) -> int:
        return sum(segment.files.count for segment in self.segments)

    def partition_names(self) -> list[str]:
        if not self.table.partition_keys:
            return [""]
        held = [self._log.read_files(segment.files).partitions for segment in self.segments]
        return sorted({name for one in held for name in one.dictionary.to_pylist()})

    def partitions(self, names: list[str]) -> PartitionFetch:
        found = (Partition(name, _values(name), self.table.location) for name in names)
        return OneBatch(PartitionBatch(tuple(found)))

    def begin(self) -> None:
        """The version is read already."""

    def slices(self, batch: PartitionBatch, columns: Columns) -> Iterator[SliceBatch]:
        if not batch.partitions:
            return
        definition = self.manifest.definition
        chosen = [(segment, choose(definition, segment, columns)) for segment in self.segments]
        facts = [segment for segment, view in chosen if view is None and segment.files.count]
        if facts:
            yield self._facts(facts, batch.partitions)
        for name in sorted({view.view for _, view in chosen if view is not None}):
            files = [view.files for _, view in chosen if view is not None and view.view == name]
            if any(one.count for one in files):
                yield self._of_view(name, files, batch.partitions)

    def _facts(self, segments: Sequence[Segment], partitions: tuple[Partition, ...]) -> SliceBatch:
        readers: dict[ReaderSpec, int] = {}
        held = [self._log.read_files(segment.files) for segment in segments]
        numbers: list[Int32Array] = []
        for segment, found in zip(segments, held, strict=True):
            own = [
                readers.setdefault(reader_spec(reader, self._columns), len(readers))
                for reader in segment.readers
            ]
            numbers.append(np.array(own, np.int32)[found.reader])
        reader = np.concatenate(numbers) if len(readers) > 1 else None
        batch = _batch(held, partitions, tuple(readers), self.index, reader)
        return drop_foreign_ordinals(batch, self._columns)

    def _of_view(
        self, name: str, files: Sequence[FileSet], partitions: tuple[Partition, ...]
    ) -> SliceBatch:
        view = self.manifest.definition.view(name)
        assert view is not None
        index = self._context.index_of(view_table(self.table, view))
        held = [self._log.read_files(one) for one in files]
        return _batch(held, partitions, (reader_of(view),), index, None)

    def fact_formats(self) -> frozenset[str]:
        """The names of the formats of the segments' facts."""
        return frozenset(reader.format for one in self.segments for reader in one.readers)

    def view_uses(self, columns: Columns) -> list[ViewUse]:
        """What a scan of these columns reads of the table's views."""
        return uses(self.manifest.definition, self.segments, columns)

    def indexed_slices(self, partition: Partition) -> SliceBatch | None:
        return None

    def find_unchanged(self, slices: SliceBatch) -> Mask:
        return np.zeros(len(slices), np.bool_)

    def timeline(self) -> list[TimelineEntry]:
        """The versions that are kept."""
        found = [self._log.manifest(number) for number in self._log.versions()]
        return [
            TimelineEntry(str(one.version), str(one.created), one.operation, "completed")
            for one in found
            if one.version <= self.manifest.version
            and not one.dropped
            and one.definition.id == self.manifest.definition.id
        ]

    def commits(self, slices: SliceBatch) -> list[str | None]:
        """The segment of each file."""
        owner = {
            path: segment.id
            for segment in self.segments
            for path in self._log.read_files(segment.files).files.paths.to_pylist()
        }
        return [owner.get(path) for path in slices.files.paths.to_pylist()]

    def segment_entries(self) -> list[SegmentEntry]:
        """All segments that the version names, with what the index knows of each."""
        return [
            SegmentEntry(
                one.id,
                one.status.value,
                one.started,
                one.finished,
                one.format,
                one.files.count,
                one.files.bytes,
                self._indexed(one),
                view_states(self.manifest, one),
                one.merged_into,
                one.paths,
            )
            for one in self.manifest.segments
        ]

    def index_names(self) -> list[str]:
        """The indexes that the version defines."""
        return [one.name for one in self.manifest.definition.indexes]

    def _indexed(self, segment: Segment) -> int:
        if self.index is None:
            return -1
        files = self._log.read_files(segment.files).files
        return int(np.count_nonzero(self.index.match(files) >= 0))


def _batch(
    held: Sequence[SegmentFiles],
    partitions: tuple[Partition, ...],
    readers: tuple[ReaderSpec, ...],
    index: IndexFiles | None,
    reader: Int32Array | None,
) -> SliceBatch:
    """The files that are of the partitions."""
    whole = join_tables([one.files for one in held])
    place = {partition.name: i for i, partition in enumerate(partitions)}
    owner = np.concatenate([_owners(one.partitions, place) for one in held])
    if (owner < 0).any():
        mine = np.flatnonzero(owner >= 0)
        whole, owner = whole.take(mine), owner[mine]
        reader = None if reader is None else reader[mine]
    ordinals = np.full(len(whole), -1, np.int64) if index is None else index.match(whole)
    return SliceBatch(whole, ordinals, owner, partitions, readers, index, reader)


def _owners(partitions: pa.DictionaryArray, place: Mapping[str, int]) -> Int32Array:
    """The place of each file's partition; -1: it is not asked for."""
    names = partitions.dictionary.to_pylist()
    of_name: Int32Array = np.array([place.get(name, -1) for name in names], np.int32)
    found: Int32Array = of_name[partitions.indices.to_numpy()]
    return found


def _values(name: str) -> tuple[str | None, ...]:
    return tuple(value for _, value in parse_partition_name(name)) if name else ()


def view_states(manifest: SegmentManifest, segment: Segment) -> dict[str, str]:
    """By view: ``built``, ``stale``, ``absent``, or why it is not there."""
    held = {view.view_id: view for view in segment.views}
    found: dict[str, str] = {}
    for view in manifest.definition.views:
        built = held.get(view.id)
        if built is None:
            found[view.name] = "absent"
        elif built.reason:
            found[view.name] = f"absent: {built.reason}"
        else:
            whole = up_to_date_files(manifest.definition, view, segment) is not None
            found[view.name] = "built" if whole else "stale"
    return found
