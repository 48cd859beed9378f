"""Three sources of a directory table's file set: a listing, a cached listing, the index."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np

from bridge.expression.nodes import AlwaysTrue, Expression
from bridge.storage.port import (
    UNKNOWN_TIME,
    DirectoryListings,
    FileStat,
    FileTable,
    same_state,
)
from bridge.storage.uri import join
from bridge.table.directory.freshness import Live, max_age
from bridge.table.directory.root_listing import TableTree
from bridge.table.directory.shared_listings import Listing, ListingStream, gather
from bridge.table.model import CatalogTable, OneBatch, Partition, PartitionBatch, PartitionFetch
from bridge.table.recipes import drop_foreign_ordinals
from bridge.table.slices import (
    IndexFiles,
    Int32Array,
    Int64Array,
    LazyPaths,
    Mask,
    ReaderSpec,
    SliceBatch,
)
from bridge.table.snapshot import Columns, TableContext

_FILES_OF_PARTITION = 4
"""A partition takes about as much memory as so many files, and its listing the same again."""


class DirectorySnapshot:
    """The common part: fetches each partition and each listing once."""

    committed = False
    plans_without_io = False

    def __init__(self, table: CatalogTable, context: TableContext) -> None:
        self.table = table
        self.row_filter: Expression = AlwaysTrue()
        self.id = ""
        self.freshness = str(context.freshness)
        self._context = context
        self.index = context.index
        self._listed_with = context.freshness
        self._age = max_age(context.freshness)
        self._reader = table.reader
        self._names: list[str] | None = None
        self._partitions: dict[str, Partition] = {}
        self._listings: dict[str, Listing | ListingStream] = {}
        self._arrived = time.monotonic()
        self._wanted = 0
        self._naming = threading.Lock()
        self._listing = threading.Lock()

    @property
    def listed_files(self) -> int:
        listings = list(self._listings.values())
        held = sum(map(len, set(listings)))
        if self.table.partition_keys:
            held += _FILES_OF_PARTITION * (len(listings) + len(self._partitions))
        return held

    def partition_names(self) -> list[str]:
        with self._naming:
            if self._names is None:
                self._names = self._context.catalog.partition_names(self.table, self._age)
            return self._names

    def partitions(self, names: list[str]) -> PartitionFetch:
        """Fetches partitions in batches, unless the query's earlier scans have fetched them all."""
        self._wanted = len(names)
        known = self._partitions
        if all(name in known for name in names):
            return OneBatch(PartitionBatch(tuple(known[name] for name in names)))
        fetch = self._context.catalog.partitions(self.table, names, self._age)
        return _Remembered(fetch, known)

    def begin(self) -> None:
        if not self.plans_without_io:
            self._context.lister.background(self._begin)

    def _begin(self) -> None:
        """Runs in a thread of the lister, which does not list for others."""
        if self.table.partition_keys:
            self.partition_names()

    def slices(self, batch: PartitionBatch, columns: Columns) -> Iterator[SliceBatch]:
        partitions = batch.partitions
        listings = self._list(partitions)
        if len(partitions) == 1:
            (listing,) = listings.values()
            if isinstance(listing, ListingStream) and not self._is_clustered:
                yield from self._streamed(listing, partitions)
                return
        if partitions:
            yield from self._clustered(self._gathered(partitions, listings))

    def indexed_slices(self, partition: Partition) -> SliceBatch | None:
        return None

    def find_unchanged(self, slices: SliceBatch) -> Mask:
        return np.zeros(len(slices), np.bool_)

    @property
    def _is_clustered(self) -> bool:
        return self.index is not None and self.index.clustered is not None

    def _clustered(self, batch: SliceBatch) -> Iterator[SliceBatch]:
        """The slices with clustered files in place of those that they replace.

        Args:
            batch: all files of its partitions: a group is replaced as a whole or not at all.
        """
        clustered = None if batch.index is None else batch.index.clustered
        found = (
            None if clustered is None else clustered.find_replaced(batch.ordinals, batch.partition)
        )
        if clustered is None or found is None:
            yield batch
            return
        replaced, ordinals, owner = found
        if not replaced.all():
            yield batch.filter(~replaced)
        index = clustered.index
        files = FileTable(index.paths_at(ordinals), index.sizes[ordinals], index.modified[ordinals])
        if not index.all_trusted:
            ordinals = np.where(index.trusted[ordinals], ordinals, -1)
        readers, reader = self._readers(batch.partitions, owner)
        yield SliceBatch(files, ordinals, owner, batch.partitions, readers, index, reader)

    def _list(self, partitions: tuple[Partition, ...]) -> dict[str, Listing | ListingStream]:
        """The listings that hold these partitions, by location."""
        pinned = self._listings
        absent = {p.location: p for p in partitions if _absent(pinned.get(p.location))}
        if absent:
            missing = list(absent.values())
            hints = None
            if self.index is not None and not self.table.partition_keys:
                hints = self.index.paths
            found = self._context.lister.each(
                missing, self._listed_with, self._arrived, hints, self._tree(missing)
            )
            self._require([p for p in missing if _is_empty(found[p.location], p.location)])
            with self._listing:
                pinned.update((d, of) for d, of in found.items() if _absent(pinned.get(d)))
        return {p.location: pinned[p.location] for p in partitions}

    def _tree(self, missing: Sequence[Partition]) -> TableTree | None:
        if not self.table.partition_keys:
            return None
        return TableTree(
            self.table.location,
            max(self._wanted, len(missing)),
            max(len(self._names or ()), len(missing)),
            None if self.index is None else self.index.paths,
        )

    def _require(self, partitions: Sequence[Partition]) -> None:
        if not self._context.absent_is_empty:
            self._context.lister.require(partitions)

    def _gathered(
        self, partitions: tuple[Partition, ...], listings: dict[str, Listing | ListingStream]
    ) -> SliceBatch:
        """All files of several partitions."""
        whole: dict[str, Listing] = {}
        for location, listing in listings.items():
            if isinstance(listing, ListingStream):
                whole[location] = _ended(location, listing)
                if listing.empty:
                    self._require([p for p in partitions if p.location == location])
            else:
                whole[location] = listing
        files, ordinals, counts = gather([p.location for p in partitions], whole, self.index)
        owner = np.repeat(np.arange(len(partitions), dtype=np.int32), counts)
        readers, reader = self._readers(partitions, owner)
        return self._bound(
            SliceBatch(files, ordinals, owner, partitions, readers, self.index, reader)
        )

    def _bound(self, slices: SliceBatch) -> SliceBatch:
        return drop_foreign_ordinals(slices, self.table.columns)

    def _streamed(
        self, listing: ListingStream, partitions: tuple[Partition, ...]
    ) -> Iterator[SliceBatch]:
        number = 0
        readers, _ = self._readers(partitions, _zeros(1))  # one partition: one reader
        while (files := listing.chunk(number)) is not None:
            found = listing.slices(
                number,
                self.index,
                partitions,
                partial(self._matched, listing, number, files, partitions),
            )
            if found.readers != readers:  # the scan that matched them saw older properties
                found = replace(found, readers=readers, reader=None)
            yield self._bound(found)
            number += 1
        if listing.empty:
            self._require(partitions)

    def _matched(
        self,
        listing: ListingStream,
        number: int,
        files: FileTable,
        partitions: tuple[Partition, ...],
    ) -> SliceBatch:
        index = self.index
        ordinals = np.full(len(files), -1, np.int64) if index is None else index.match(files)
        owner = _zeros(len(files))
        readers, reader = self._readers(partitions, owner)
        if index is None or not _consecutive(ordinals):
            return SliceBatch(files, ordinals, owner, partitions, readers, index, reader)
        # Storage matches the index: use the index's mapped columns and free the listed ones.
        begin, end = int(ordinals[0]), int(ordinals[-1]) + 1
        etags = files.etags
        if etags is not None and not index.etags[begin:end].null_count:
            etags = index.etags[begin:end]
        same = FileTable(
            index.paths[begin:end], index.sizes[begin:end], index.modified[begin:end], etags
        )
        listing.replace(number, same)
        if end - begin == index.num_files:
            ordinals = index.all_ordinals
        return SliceBatch(same, ordinals, owner, partitions, readers, index, reader)

    def _indexed(self, index: IndexFiles, partitions: tuple[Partition, ...]) -> SliceBatch:
        """The index's own file set; paths are materialised only for survivors."""
        groups = [index.ordinals_of(p.name) for p in partitions]
        ordinals = groups[0] if len(groups) == 1 else np.concatenate(groups)
        whole = ordinals is index.all_ordinals
        if len(groups) == 1:
            owner = _zeros(len(ordinals))
        else:
            owner = np.repeat(np.arange(len(groups), dtype=np.int32), [len(g) for g in groups])
        files = FileTable(
            LazyPaths(index, ordinals),
            index.sizes if whole else index.sizes[ordinals],
            index.modified if whole else index.modified[ordinals],
        )
        if not index.all_trusted:
            ordinals = np.where(index.trusted[ordinals], ordinals, -1)
        readers, reader = self._readers(partitions, owner)
        return self._bound(SliceBatch(files, ordinals, owner, partitions, readers, index, reader))

    def _readers(
        self, partitions: tuple[Partition, ...], owner: Int32Array
    ) -> tuple[tuple[ReaderSpec, ...], Int32Array | None]:
        """The readers of these partitions, and that of each file; None: the first reads all."""
        if all(p.reader is None for p in partitions):
            return (self._reader,), None
        numbers: dict[ReaderSpec, int] = {}
        own = [numbers.setdefault(p.reader or self._reader, len(numbers)) for p in partitions]
        if len(numbers) == 1:
            return tuple(numbers), None
        return tuple(numbers), np.array(own, np.int32)[owner]


class LiveSnapshot(DirectorySnapshot):
    """Storage is listed once per query."""

    def __init__(self, table: CatalogTable, context: TableContext) -> None:
        super().__init__(table, replace(context, freshness=Live()))

    def _begin(self) -> None:
        names = self.partition_names()
        if not self.table.partition_keys:
            with closing(self.partitions(names)) as batches:
                for batch in batches:
                    for listing in self._list(batch.partitions).values():
                        if isinstance(listing, ListingStream):
                            listing.chunk(0)

    def indexed_slices(self, partition: Partition) -> SliceBatch | None:
        """Only for a table without partitions whose listing has not completed."""
        index = self.index
        if index is None or self.table.partition_keys or index.shared or self._is_clustered:
            return None
        listing = self._listings.get(partition.location)
        if listing is not None and (isinstance(listing, Listing) or listing.ended):
            return None
        return self._indexed(index, (partition,))

    def find_unchanged(self, slices: SliceBatch) -> Mask:
        """Checks each file; one that is not directly in the table's directory counts as changed."""
        index = slices.index
        same = np.zeros(len(slices), np.bool_)
        if index is None:
            return same
        root = self.table.location.rstrip("/") + "/"
        (whole,) = slices.pieces(max(len(slices), 1))
        paths: list[str] = whole.files.paths.to_pylist()
        inside = [
            i
            for i, path in enumerate(paths)
            if slices.ordinals[i] >= 0 and path.startswith(root) and "/" not in path[len(root) :]
        ]
        looks = self._context.lister.look_at([paths[i] for i in inside])
        for i, found in zip(inside, looks, strict=True):
            if found is None:
                continue
            size, modified = int(slices.files.sizes[i]), int(slices.files.modified[i])
            etag = index.etags[int(slices.ordinals[i])].as_py()
            seen = FileStat(paths[i], size, modified, etag)
            same[i] = modified != UNKNOWN_TIME and same_state(seen, found)
        return same


class CachedSnapshot(DirectorySnapshot):
    """Listings and partitions may be as old as the time to live."""


class IndexedSnapshot(DirectorySnapshot):
    """The file set of an index generation; a partition that has moved since is listed."""

    def __init__(self, table: CatalogTable, context: TableContext, index: IndexFiles) -> None:
        super().__init__(table, context)
        self.index = index
        self.id = f"generation:{index.generation}"
        self.plans_without_io = not table.partition_keys
        self._generation = index
        self._listed_with = Live()

    @property
    def file_set(self) -> IndexFiles | None:
        return None if self._is_clustered else self._generation

    def slices(self, batch: PartitionBatch, columns: Columns) -> Iterator[SliceBatch]:
        partitions = batch.partitions
        moved = tuple(p for p in partitions if self._moved(p))
        elsewhere = {p.name for p in moved}
        held = tuple(p for p in partitions if p.name not in elsewhere) if moved else partitions
        if held:
            yield from self._clustered(self._indexed(self._generation, held))
        if moved:
            yield from super().slices(PartitionBatch(moved), columns)

    def _moved(self, partition: Partition) -> bool:
        """Whether the partition has another location than the index knows.

        The files at the indexed location no longer belong to the table.
        """
        index = self._generation
        directory = index.directory_of(partition.name)
        if directory is None:
            return not self.table.partition_keys and index.location != self.table.location
        held, place = join(directory, ""), join(partition.location, "")
        return not held.startswith(place) if self._context.lister.recursive else held != place


class _Remembered:
    """Remembers partitions as they are fetched; one that is known already stays as it was."""

    def __init__(self, fetch: PartitionFetch, known: dict[str, Partition]) -> None:
        self._fetch = fetch
        self._known = known
        self.close: Callable[[], None] = fetch.close

    def __iter__(self) -> _Remembered:
        return self

    def __next__(self) -> PartitionBatch:
        batch = next(self._fetch)
        known = self._known
        found = [known.setdefault(p.name, p) for p in batch.partitions]
        found += (known[name] for name in batch.missing if name in known)  # dropped meanwhile
        return PartitionBatch(tuple(found), tuple(n for n in batch.missing if n not in known))


def _absent(listing: Listing | ListingStream | None) -> bool:
    return listing is None or listing.failed


def _ended(location: str, stream: ListingStream) -> Listing:
    """The listing of one directory, drawn to its end."""
    files = stream.whole()
    found = DirectoryListings(files, np.array([0, len(files)], np.int64))
    return Listing.of([location], found, stream.began or 0.0)


def _is_empty(listing: Listing | ListingStream, location: str) -> bool:
    """Whether a directory that was listed holds no file at all; it may not exist."""
    return isinstance(listing, Listing) and listing.directories[location] in listing.empty


def _zeros(count: int) -> np.ndarray:
    """Partition 0 for every file, without allocating memory."""
    return np.broadcast_to(np.int32(0), count)


def _consecutive(ordinals: Int64Array) -> bool:
    n = len(ordinals)
    return (
        n > 0
        and ordinals[0] >= 0
        and ordinals[-1] - ordinals[0] == n - 1
        and bool((ordinals[1:] > ordinals[:-1]).all())
    )
