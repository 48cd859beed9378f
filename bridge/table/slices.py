"""File slices as columns: the content of a snapshot and the input of every planner stage.

A slice is one base file with its logs, or logs alone. A batch holds the slices of a few partitions;
no object is created per file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.storage.port import FileTable, join_tables
from bridge.table.model import Partition
from bridge.table.reader_spec import ReaderSpec as ReaderSpec

Int32Array = npt.NDArray[np.int32]
Int64Array = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_PIECE = 1 << 16


class IndexFiles(Protocol):
    """The files that one index generation knows, by ordinal; all arrays are in path order.

    Attributes:
        generation: its number.
        location: the table's location when the index was built.
        complete: the generation names every file that existed; no build is in progress.
        sizes, modified: bytes, and microseconds since the epoch.
        etags: Arrow strings, null if the store has none.
        trusted: the entry describes the file as listed.
        all_ordinals: 0 to n-1; whole-table batches carry this very object.
        shared: a file may belong to several partitions.
        recipe: each file's index into ``recipes``; see `bridge.table.recipes`.
        clustered: files that replace others; None if there are none.
    """

    generation: int
    num_files: int
    paths: pa.Array
    etags: pa.Array
    sizes: Int64Array
    modified: Int64Array
    trusted: Mask
    all_trusted: bool
    all_ordinals: Int64Array
    total_bytes: int
    shared: bool
    recipes: tuple[str, ...]
    recipe: npt.NDArray[np.int32]

    @property
    def clustered(self) -> Replacements | None: ...

    @property
    def location(self) -> str: ...

    @property
    def complete(self) -> bool: ...

    def ordinals_of(self, partition: str) -> Int64Array: ...

    def directory_of(self, partition: str) -> str | None: ...

    def match(self, files: FileTable) -> Int64Array:
        """The ordinal of each file; -1 if it is new, changed, or not trusted."""
        ...

    def paths_at(self, ordinals: Int64Array) -> pa.Array: ...

    def stored_units(self, column: str) -> frozenset[str]:
        """The units of the times that files hold in a column, nested ones too."""
        ...

    def with_names(self, names: Mapping[str, str | None]) -> IndexFiles:
        """The same index, asked about files that have columns under other names.

        Args:
            names: the files' names by the table's, in lower case; None: nothing is known of the
                column.
        """
        ...


class Replacements(Protocol):
    """Files that clustering wrote, and the listed files whose rows they hold.

    Attributes:
        index: of the new files.
    """

    index: IndexFiles

    def find_replaced(
        self, ordinals: Int64Array, partition: Int32Array
    ) -> tuple[Mask, Int64Array, Int32Array] | None:
        """What replaces the listed files of some partitions.

        The law: a group is replaced as a whole, and only if all its files are listed unchanged.

        Args:
            ordinals: of ALL listed files of these partitions in the table's index; -1 if changed.
            partition: of each listed file.

        Returns:
            The listed files that are replaced, and the ordinals and partitions of the files to
            read instead; None if nothing is replaced.
        """
        ...


@dataclass(frozen=True, slots=True)
class Logs:
    """The logs of a batch's slices, in merge order.

    Attributes:
        offsets: slice i has logs ``offsets[i]`` to ``offsets[i + 1]``; int64[n + 1].
        files: all logs.
        ordinals: of each log in the batch's index; -1 if it is not indexed.
        adds_rows: logs may hold rows that no base file holds; False: they only remove rows.
    """

    offsets: Int64Array
    files: FileTable
    ordinals: Int64Array
    adds_rows: bool = True

    @property
    def counts(self) -> Int64Array:
        """The number of logs of each slice."""
        return np.diff(self.offsets)

    def slice(self, begin: int, end: int) -> Logs:
        """The logs of slices begin to end, without copying."""
        low, high = int(self.offsets[begin]), int(self.offsets[end])
        return Logs(
            self.offsets[begin : end + 1] - low,
            self.files.slice(low, high),
            self.ordinals[low:high],
            self.adds_rows,
        )

    def take(self, positions: Int64Array) -> Logs:
        """The logs of the slices at these positions."""
        counts = self.counts[positions]
        offsets = np.concatenate(([0], np.cumsum(counts)))
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        chosen = np.repeat(self.offsets[:-1][positions], counts) + within
        return Logs(offsets, self.files.take(chosen), self.ordinals[chosen], self.adds_rows)


class LazyPaths:
    """Paths of indexed files, materialised only for files that survive pruning.

    Creating a million strings costs more than the pruning itself.
    """

    def __init__(self, index: IndexFiles, ordinals: Int64Array) -> None:
        self._index = index
        self._ordinals = ordinals

    def __len__(self) -> int:
        return len(self._ordinals)

    def take(self, positions: pa.Array) -> pa.Array:
        return self._index.paths_at(self._ordinals[positions.to_numpy()])

    def slice(self, begin: int, length: int) -> LazyPaths:
        return LazyPaths(self._index, self._ordinals[begin : begin + length])

    def cast(self, target: pa.DataType) -> pa.Array:
        return self.read().cast(target)

    def read(self) -> pa.Array:
        return self._index.paths_at(self._ordinals)


@dataclass(frozen=True, slots=True)
class SliceBatch:
    """Slices of one or more partitions.

    Attributes:
        files: base files; their paths may be `LazyPaths`. A slice without a base has an empty path.
        ordinals: of each base file in ``index``; -1 if it is not indexed.
        partition: index into ``partitions``; int32[n].
        readers: the distinct ways to read the files.
        index: the index that the ordinals refer to; None if there is none.
        reader: index into ``readers``; None: the first reads all files.
        has_base: False if a slice is logs alone; None: all have a base file.
        logs: None if there is nothing to merge.
    """

    files: FileTable
    ordinals: Int64Array
    partition: Int32Array
    partitions: tuple[Partition, ...]
    readers: tuple[ReaderSpec, ...]
    index: IndexFiles | None = None
    reader: Int32Array | None = None
    has_base: Mask | None = None
    logs: Logs | None = None

    def __len__(self) -> int:
        return len(self.files)

    @property
    def is_whole_index(self) -> bool:
        """Whether the batch is all files of the index in order, so that columns need no copy."""
        return self.index is not None and self.ordinals is self.index.all_ordinals

    @property
    def num_bytes(self) -> int:
        """Size of base files and logs."""
        if self.index is not None and self.is_whole_index:
            return self.index.total_bytes
        logs = 0 if self.logs is None else int(self.logs.files.sizes.sum())
        return int(self.files.sizes.sum()) + logs

    @property
    def merged(self) -> Mask | None:
        """Slices that have logs; None if no slice has."""
        return None if self.logs is None else self.logs.counts > 0

    def take(self, positions: Sequence[int] | Int64Array) -> SliceBatch:
        """The slices at the given positions, in that order."""
        at = np.asarray(positions, np.int64)
        return SliceBatch(
            self.files.take(at),
            self.ordinals[at],
            self.partition[at],
            self.partitions,
            self.readers,
            self.index,
            None if self.reader is None else self.reader[at],
            None if self.has_base is None else self.has_base[at],
            None if self.logs is None else self.logs.take(at),
        )

    def filter(self, keep: Mask | None) -> SliceBatch:
        """The slices where ``keep`` is True; the same object if all are, or ``keep`` is None."""
        if keep is None or keep.all():
            return self
        return self.take(np.flatnonzero(keep))

    def slice(self, begin: int, end: int) -> SliceBatch:
        """Slices begin to end, without copying."""
        return SliceBatch(
            self.files.slice(begin, end),
            self.ordinals[begin:end],
            self.partition[begin:end],
            self.partitions,
            self.readers,
            self.index,
            None if self.reader is None else self.reader[begin:end],
            None if self.has_base is None else self.has_base[begin:end],
            None if self.logs is None else self.logs.slice(begin, end),
        )

    def pieces(self, most: int = _PIECE) -> Iterator[SliceBatch]:
        """The batch with its paths materialised, in pieces of at most ``most`` slices."""
        if not isinstance(self.files.paths, LazyPaths):
            yield self
            return
        for begin in range(0, len(self), most):
            end = min(begin + most, len(self))
            piece = self.slice(begin, end) if len(self) > most else self
            yield replace(piece, files=replace(piece.files, paths=piece.files.paths.read()))


def join_slices(batches: Sequence[SliceBatch]) -> SliceBatch:
    """Joins batches of one snapshot in their order, with their paths materialised.

    Slices that belong to another index than those of the first batch count as not indexed.
    """
    if len(batches) == 1:
        return batches[0]
    first = batches[0]
    readers = tuple(dict.fromkeys(r for b in batches for r in b.readers))
    number = {r: i for i, r in enumerate(readers)}
    offsets = np.cumsum([0, *(len(b.partitions) for b in batches[:-1])])
    owner = [b.partition + offset for b, offset in zip(batches, offsets, strict=True)]
    reader = None
    if len(readers) > 1:
        maps = [np.array([number[r] for r in b.readers], np.int32) for b in batches]
        reader = np.concatenate(
            [
                np.full(len(b), m[0], np.int32) if b.reader is None else m[b.reader]
                for b, m in zip(batches, maps, strict=True)
            ]
        )
    has_base = None
    if any(b.has_base is not None for b in batches):
        has_base = np.concatenate(
            [np.ones(len(b), np.bool_) if b.has_base is None else b.has_base for b in batches]
        )
    return SliceBatch(
        join_files([b.files for b in batches]),
        np.concatenate(
            [
                b.ordinals if b.index is first.index else np.full(len(b), -1, np.int64)
                for b in batches
            ]
        ),
        np.concatenate(owner).astype(np.int32),
        tuple(p for b in batches for p in b.partitions),
        readers,
        first.index,
        reader,
        has_base,
        _join_logs(batches),
    )


def _join_logs(batches: Sequence[SliceBatch]) -> Logs | None:
    if all(b.logs is None for b in batches):
        return None
    counts = [np.zeros(len(b), np.int64) if b.logs is None else b.logs.counts for b in batches]
    present = [b.logs for b in batches if b.logs is not None]
    return Logs(
        np.concatenate(([0], np.cumsum(np.concatenate(counts)))),
        join_files([logs.files for logs in present]),
        np.concatenate([logs.ordinals for logs in present]),
        any(logs.adds_rows for logs in present),
    )


def join_files(tables: Sequence[FileTable]) -> FileTable:
    """Joins file tables in their order; their paths may be lazy."""
    lazy = [t for t in tables if isinstance(t.paths, LazyPaths)]
    if not lazy:
        return join_tables(tables)
    if len(tables) == 1:
        return tables[0]
    return join_tables(
        [replace(t, paths=t.paths.read()) if isinstance(t.paths, LazyPaths) else t for t in tables]
    )
