"""The files of a partition batch as the freshness asked for has them, each with its place in the
index.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.index.snapshot import IndexSnapshot
from bridge.planner.directory_lister import DirectoryLister, SharedListing, concat
from bridge.planner.freshness import SNAPSHOT, Freshness
from bridge.planner.index_view import IndexView
from bridge.planner.pins import Pin
from bridge.storage.uri import join
from bridge.table.model import FileList, Partition

_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Files, with what is needed to prune them now and to narrow them later.

    Attributes:
        files: `FileList.partition` indexes `partitions`.
        ordinals: of each file in the index, -1 where the index does not know it.
        partitions: of this batch.
    """

    files: FileList
    ordinals: npt.NDArray[np.int64]
    partitions: tuple[Partition, ...]


class FileSource:
    """Lists for one scan; what was listed is pinned for the other scans of its query."""

    def __init__(
        self,
        listings: DirectoryLister,
        pin: Pin,
        freshness: Freshness,
        *,
        absent_is_empty: bool = False,
    ) -> None:
        self._absent_is_empty = absent_is_empty
        self._listings = listings
        self._pin = pin
        self._view: IndexView = pin.view
        self._freshness = freshness

    def batches(self, partitions: tuple[Partition, ...]) -> Iterator[FileBatch]:
        """The partitions' files, those of a large directory in several batches.

        Errors:
            StorageFailure, FileUnreadable: nothing is taken as empty that could not be listed.
        """
        if self._freshness == SNAPSHOT:
            moved = tuple(p for p in partitions if self._elsewhere(p))
            held = tuple(p for p in partitions if p not in moved) if moved else partitions
            if held:
                yield self.indexed(held)
            if not moved:
                return
            partitions = moved
        listed = self._list(partitions)
        if len(listed) > 1:
            files = concat([listing.whole() for listing in listed])
            yield FileBatch(files, self._match(files), partitions)
            return
        (listing,) = listed
        number = 0
        while (chunk := listing.chunk(number)) is not None:
            yield self._matched(listing, number, chunk, partitions)
            number += 1

    def _elsewhere(self, partition: Partition) -> bool:
        """Whether the index knows the partition at another location than it has now: its file set
        is no part of the table any more.
        """
        serving = self._view.serving
        assert serving is not None
        ordinals = self._view.ordinals_of(partition.name)
        if not len(ordinals):
            table = self._pin.table
            return not table.partition_keys and serving.manifest.location != table.location
        # Paths ascend: what the first and the last begin with, all between them do.
        inside = join(partition.location, "")
        ends = (serving.paths[int(i)].as_py() for i in (ordinals[0], ordinals[-1]))
        return not all(path.startswith(inside) for path in ends)

    def listed(self, partition: Partition) -> bool:
        """Whether the partition was listed to its end for this query."""
        listing = self._pin.listings.get(partition.location)
        return listing is not None and listing.ended

    def begin(self, partitions: tuple[Partition, ...]) -> None:
        """Lists as far as the first files, for whoever asks next. Errors: see `batches`."""
        for listing in self._list(partitions):
            listing.chunk(0)

    def _list(self, partitions: tuple[Partition, ...]) -> list[SharedListing]:
        pinned = self._pin.listings
        serving = self._view.serving
        hints = (
            serving.paths if serving is not None and not self._pin.table.partition_keys else None
        )
        with self._pin.listing:
            missing = [p for p in partitions if _absent(pinned.get(p.location))]
            found = (
                self._listings.each(
                    missing, self._freshness, hints, absent_is_empty=self._absent_is_empty
                )
                if missing
                else []
            )
            for partition, listing in zip(missing, found, strict=True):
                pinned[partition.location] = listing
            return [pinned[p.location] for p in partitions]

    def _match(self, files: FileList) -> npt.NDArray[np.int64]:
        serving = self._view.serving
        return np.full(len(files), -1, np.int64) if serving is None else serving.match(files)

    def _matched(
        self,
        listing: SharedListing,
        number: int,
        files: FileList,
        partitions: tuple[Partition, ...],
    ) -> FileBatch:
        ordinals = self._match(files)
        serving, view = self._view.serving, self._view
        if serving is None or not _consecutive(ordinals):
            return FileBatch(files, ordinals, partitions)
        # Storage is as the index knows it: its mapped columns serve, what was listed is let go.
        begin, end = int(ordinals[0]), int(ordinals[-1]) + 1
        same = FileList(
            serving.paths[begin:end],
            serving.sizes[begin:end],
            serving.modified[begin:end],
            view.one_owner[begin:end],
        )
        listing.replace(number, same)
        whole = end - begin == serving.num_files
        return FileBatch(same, view.everything if whole else ordinals, partitions)

    def indexed(self, partitions: tuple[Partition, ...]) -> FileBatch:
        """The index's own file set; only survivors' paths are ever made."""
        serving, view = self._view.serving, self._view
        assert serving is not None
        groups = [view.ordinals_of(p.name) for p in partitions]
        ordinals = groups[0] if len(groups) == 1 else np.concatenate(groups)
        whole = ordinals is view.everything
        owner = (
            view.one_owner[: len(ordinals)]
            if len(groups) == 1
            else np.repeat(np.arange(len(groups), dtype=np.int32), [len(g) for g in groups])
        )
        files = FileList(
            paths=_LazyPaths(serving, ordinals),
            sizes=serving.sizes if whole else serving.sizes[ordinals],
            modified=serving.modified if whole else serving.modified[ordinals],
            partition=owner,
        )
        if not view.all_trusted:
            ordinals = np.where(serving.trusted[ordinals], ordinals, -1)
        return FileBatch(files, ordinals, partitions)


def _absent(listing: SharedListing | None) -> bool:
    return listing is None or listing.failed


def _consecutive(ordinals: npt.NDArray[np.int64]) -> bool:
    n = len(ordinals)
    return (
        n > 0
        and ordinals[0] >= 0
        and ordinals[-1] - ordinals[0] == n - 1
        and bool((ordinals[1:] > ordinals[:-1]).all())
    )


class _LazyPaths:
    """Paths of indexed files, made only for the ones that survive: a million strings cost more than
    pruning.
    """

    def __init__(self, serving: IndexSnapshot, ordinals: npt.NDArray[np.int64]) -> None:
        self._serving = serving
        self._ordinals = ordinals

    def __len__(self) -> int:
        return len(self._ordinals)

    def take(self, positions: pa.Array) -> pa.Array:
        return self._serving.paths_at(self._ordinals[positions.to_numpy()])

    def slice(self, begin: int, length: int) -> _LazyPaths:
        return _LazyPaths(self._serving, self._ordinals[begin : begin + length])

    def cast(self, target: pa.DataType) -> pa.Array:
        return self.made().cast(target)

    def made(self) -> pa.Array:
        return self._serving.paths_at(self._ordinals)


def materialised(batch: FileBatch) -> Iterator[FileBatch]:
    """The batch with all its paths made, a piece at a time where they are many."""
    if not isinstance(batch.files.paths, _LazyPaths):
        yield batch
        return
    for begin in range(0, len(batch.files), _PIECE):
        piece = slice_batch(batch, begin, begin + _PIECE) if len(batch.files) > _PIECE else batch
        paths = piece.files.paths.made()
        yield replace(piece, files=replace(piece.files, paths=paths))


def slice_batch(batch: FileBatch, begin: int, end: int) -> FileBatch:
    """Files begin to end of a batch, without copying."""
    files = batch.files
    return FileBatch(
        FileList(
            files.paths.slice(begin, end - begin),
            files.sizes[begin:end],
            files.modified[begin:end],
            files.partition[begin:end],
            files.etags.slice(begin, end - begin) if files.etags is not None else None,
        ),
        batch.ordinals[begin:end],
        batch.partitions,
    )
