"""Splits as columns: the byte ranges of files that one task reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.table.model import Partition
from bridge.table.slices import Logs, ReaderSpec

MIN_WEIGHT = 50
FULL_WEIGHT = 1000


@dataclass(frozen=True, slots=True)
class SplitBatch:
    """S splits over F file ranges.

    Attributes:
        first: int32[S + 1], the first range of each split.
        weight: int32[S], thousandths of a full split, 50 to 1000.
        paths: large_string[F], canonical URIs.
        start, length, size: int64[F], bytes.
        modified: int64[F], milliseconds since the epoch.
        partition: int32[F], index into `partitions`.
        readers, reader: how each range is read, as in `SliceBatch`.
        logs: the logs of each range's slice, in merge order; None if there is nothing to merge.
        etag_hashes: int32[F], see `bridge.planner.splits.etags`; None if no etag is known.
    """

    first: npt.NDArray[np.int32]
    weight: npt.NDArray[np.int32]
    paths: pa.Array
    start: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    modified: npt.NDArray[np.int64]
    partition: npt.NDArray[np.int32]
    partitions: tuple[Partition, ...]
    readers: tuple[ReaderSpec, ...] = ()
    reader: npt.NDArray[np.int32] | None = None
    logs: Logs | None = None
    etag_hashes: npt.NDArray[np.int32] | None = None

    @property
    def num_splits(self) -> int:
        return len(self.weight)

    @property
    def num_files(self) -> int:
        return len(self.start)

    @property
    def nbytes(self) -> int:
        """Size on the wire, without the partition table."""
        return self.num_splits * 12 + self.num_files * 44 + int(self.paths.nbytes)

    def slice(self, begin: int, end: int) -> SplitBatch:
        """Splits begin to end, with only their own ranges."""
        low, high = int(self.first[begin]), int(self.first[end])
        return SplitBatch(
            first=self.first[begin : end + 1] - np.int32(low),
            weight=self.weight[begin:end],
            paths=self.paths.slice(low, high - low),
            start=self.start[low:high],
            length=self.length[low:high],
            size=self.size[low:high],
            modified=self.modified[low:high],
            partition=self.partition[low:high],
            partitions=self.partitions,
            readers=self.readers,
            reader=None if self.reader is None else self.reader[low:high],
            logs=None if self.logs is None else self.logs.slice(low, high),
            etag_hashes=None if self.etag_hashes is None else self.etag_hashes[low:high],
        )
