"""Coalescing: small files share one split, large files are cut, early splits are small.

A split costs the engine the same whatever it holds, and opening a file costs as much as reading
some bytes. The cost of a range is therefore its bytes + open_cost, and ranges share a split up to a
target cost. The law: every byte range of every file is emitted exactly once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.formats.registry import file_format
from bridge.planner.splits.etags import etag_hashes
from bridge.planner.splits.split import FULL_WEIGHT, MIN_WEIGHT, SplitBatch
from bridge.table.slices import Logs, Mask, SliceBatch

_SMALLEST_PIECE = 16
"""Bytes: readers of text cannot begin in a byte order mark."""
_MOST_PIECES = 4096
"""Of one file: a commit may state any size."""
RowGroupStarts = Callable[[int], npt.NDArray[np.int64] | None]


@dataclass(frozen=True, slots=True)
class SplitSettings:
    """Controls how splits are made.

    Attributes:
        target_bytes: cost up to which ranges share one split; larger files are cut near it.
        open_cost: bytes that could be read in the time it takes to open a file.
        max_files: maximum number of ranges in one split; 1 disables coalescing.
        parallelism: workers x concurrency: the minimum number of splits while there are enough
            files.
    """

    target_bytes: int = 128 << 20
    open_cost: int = 64 << 10
    max_files: int = 256
    parallelism: int = 4

    @property
    def cut_above(self) -> int:
        """Files larger than this are cut; a file slightly above the target stays whole."""
        return self.target_bytes + self.target_bytes // 4


@dataclass(frozen=True, slots=True)
class _Ranges:
    file: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]


def coalesce(
    batch: SliceBatch,
    settings: SplitSettings,
    row_groups: RowGroupStarts | None = None,
) -> SplitBatch:
    """Makes the splits of one batch of slices; each split has one reader.

    Slices of one reader must be adjacent, see `by_reader`.

    Args:
        row_groups: start offsets of the row groups of the i-th file, ascending, or None if
            unknown. Large files are cut there, so that every split finds something to read.
    """
    files, logs = batch.files, batch.logs
    ranges = _cut(files.sizes, _splittable(batch, settings), settings, row_groups)
    n = len(ranges.file)
    hashes = etag_hashes(batch)
    cost = ranges.length + settings.open_cost
    if logs is not None:
        cost = cost + _log_cost(logs, settings)[ranges.file]
    first = _boundaries(cost, settings)
    if batch.reader is not None:
        changes = np.flatnonzero(np.diff(batch.reader[ranges.file])) + 1
        first = np.union1d(first, changes)
    sums = np.concatenate(([0], np.cumsum(cost)))
    per_split = sums[first[1:]] - sums[first[:-1]]
    weight = np.clip(per_split * FULL_WEIGHT // settings.target_bytes, MIN_WEIGHT, FULL_WEIGHT)
    whole = n == len(files)
    index = None if whole else pa.array(ranges.file)
    return SplitBatch(
        first=first.astype(np.int32),
        weight=weight.astype(np.int32),
        paths=files.paths if index is None else files.paths.take(index),
        start=ranges.start,
        length=ranges.length,
        size=files.sizes if whole else files.sizes[ranges.file],
        modified=(files.modified if whole else files.modified[ranges.file]) // 1000,
        partition=batch.partition if whole else batch.partition[ranges.file],
        partitions=batch.partitions,
        readers=batch.readers,
        reader=batch.reader if whole or batch.reader is None else batch.reader[ranges.file],
        logs=logs if whole or logs is None else logs.take(ranges.file),
        etag_hashes=hashes if whole or hashes is None else hashes[ranges.file],
    )


def by_reader(batch: SliceBatch) -> SliceBatch:
    """Groups the slices by reader."""
    if batch.reader is None:
        return batch
    return batch.take(np.argsort(batch.reader, kind="stable"))


def _splittable(batch: SliceBatch, settings: SplitSettings) -> Mask | None:
    """Files that may be cut; None: all may. A file merged with logs is read as a whole."""
    formats = [file_format(reader.format) for reader in batch.readers]
    cut = np.array([known.splittable for known in formats], np.bool_)
    merged = batch.merged
    if cut.all() and merged is None and not any(known.whole for known in formats):
        return None
    mine = cut[0] if batch.reader is None else cut[batch.reader]
    found = np.broadcast_to(mine, len(batch))
    found = found if merged is None else found & ~merged
    large = np.flatnonzero(found & (batch.files.sizes > settings.cut_above))
    paths = batch.files.paths.take(pa.array(large)).to_pylist() if len(large) else []
    for i, path in zip(large.tolist(), paths, strict=True):
        number = 0 if batch.reader is None else int(batch.reader[i])
        whole = formats[number].whole
        if whole is not None and whole(batch.readers[number].property_map, path):
            found = found.copy()
            found[i] = False
    return found


def _log_cost(logs: Logs, settings: SplitSettings) -> npt.NDArray[np.int64]:
    """The cost of reading the logs of each slice, in addition to its base file."""
    sums = np.concatenate(([0], np.cumsum(logs.files.sizes + settings.open_cost)))
    return sums[logs.offsets[1:]] - sums[logs.offsets[:-1]]


def _cut(
    sizes: npt.NDArray[np.int64],
    splittable: Mask | None,
    settings: SplitSettings,
    row_groups: RowGroupStarts | None,
) -> _Ranges:
    above = sizes > settings.cut_above
    large = np.flatnonzero(above if splittable is None else above & splittable)
    if not len(large):
        return _Ranges(np.arange(len(sizes), dtype=np.int64), np.zeros(len(sizes), np.int64), sizes)
    starts: list[npt.NDArray[np.int64]] = []
    owners: list[npt.NDArray[np.int64]] = []
    previous = 0
    for i in large.tolist():
        starts.append(np.zeros(i - previous, np.int64))
        owners.append(np.arange(previous, i, dtype=np.int64))
        cuts = _cuts(int(sizes[i]), settings, row_groups(i) if row_groups else None)
        starts.append(cuts)
        owners.append(np.full(len(cuts), i, np.int64))
        previous = i + 1
    starts.append(np.zeros(len(sizes) - previous, np.int64))
    owners.append(np.arange(previous, len(sizes), dtype=np.int64))
    start = np.concatenate(starts)
    owner = np.concatenate(owners)
    end = np.append(start[1:], 0)
    last = np.append(owner[1:] != owner[:-1], True)
    end[last] = sizes[owner[last]]
    return _Ranges(owner, start, end - start)


def _cuts(
    size: int, settings: SplitSettings, groups: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.int64]:
    """Start offsets of the pieces of one large file; the first is 0."""
    pieces = min(-(-size // settings.target_bytes), size // _SMALLEST_PIECE, _MOST_PIECES) or 1
    even = np.arange(pieces, dtype=np.int64) * (-(-size // pieces))
    if groups is None or len(groups) < 2:
        return even if groups is None else np.zeros(1, np.int64)
    at = np.searchsorted(groups, even, side="left")
    inside = groups[at[at < len(groups)]]
    return np.unique(np.concatenate((np.zeros(1, np.int64), inside[inside > groups[0]])))


def _boundaries(cost: npt.NDArray[np.int64], settings: SplitSettings) -> npt.NDArray[np.int64]:
    """The index of the first range of each split; the last element is the number of ranges."""
    n = len(cost)
    if settings.max_files <= 1 or n <= settings.parallelism:
        return np.arange(n + 1, dtype=np.int64)
    sums = np.cumsum(cost)
    total = int(sums[-1])
    # Make enough splits for every worker; later batches are not known yet.
    target = min(settings.target_bytes, max(1, total // settings.parallelism))
    most = min(settings.max_files, max(1, n // settings.parallelism))
    bounds = [0]
    ramp = 0
    while bounds[-1] < n:
        begin = bounds[-1]
        done = int(sums[begin - 1]) if begin else 0
        # The first round of splits is small: workers start early and finish at different times.
        small = ramp < settings.parallelism and n > settings.parallelism * most
        goal = done + (target // 2 if small else target)
        end = int(np.searchsorted(sums, goal, side="right"))
        end = min(max(end, begin + 1), begin + (max(1, most // 2) if small else most), n)
        bounds.append(end)
        ramp += 1
    return np.asarray(bounds, np.int64)


def with_parallelism(settings: SplitSettings, workers: int, concurrency: int) -> SplitSettings:
    """The settings for ``workers`` workers with ``concurrency`` tasks each."""
    return replace(settings, parallelism=max(1, min(workers * concurrency, 100_000)))
