"""From the planner's values to Thrift's and back; the only place that knows both."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.errors import BridgeError, Category, all_errors
from bridge.service._gen import ttypes
from bridge.splits.source import SourceBatch
from bridge.splits.split import SplitBatch
from bridge.table.model import Partition

PROTOCOL = 1
_RESERVED = b"\xff\xff\xff\xff"  # a slot of each split that readers pass over
_EMPTY = struct.pack("<ii", 0, 0)


def failure_of(error: BaseException) -> ttypes.BridgeFailure:
    """Any throwable as the four fields a client shows; an unforeseen one keeps its type's name."""
    if isinstance(error, BridgeError):
        return ttypes.BridgeFailure(
            error.code, error.category.value, error.message, error.hint, error.retryable
        )
    return ttypes.BridgeFailure(
        BridgeError.code,
        Category.INTERNAL_ERROR.value,
        f"{type(error).__name__}: {error}",
        "see the planner's log",
        False,
    )


def error_of(failure: ttypes.BridgeFailure) -> BridgeError:
    """The error a server sent, as the same class here."""
    cls = all_errors().get(failure.code, BridgeError)
    return cls(failure.message, failure.hint)


def encode_batch(batch: SourceBatch, report: str | None) -> ttypes.SplitBatch:
    """Packs splits as bridge.thrift describes."""
    splits = batch.splits
    partitions: tuple[Partition, ...] = ()
    payload, count, files = _EMPTY, 0, 0
    if splits is not None:
        payload = _payload(splits)
        partitions = splits.partitions
        count, files = splits.num_splits, splits.num_files
    return ttypes.SplitBatch(
        next_token=batch.next_token,
        finished=batch.finished,
        split_count=count,
        file_count=files,
        partitions=[_partition(p) for p in partitions],
        payload=payload,
        report=report,
    )


def _partition(partition: Partition) -> ttypes.PartitionEntry:
    return ttypes.PartitionEntry(
        partition.name,
        [v if v is not None else "" for v in partition.values],
        [v is None for v in partition.values],
    )


def _payload(splits: SplitBatch) -> bytes:
    offsets, text = _strings(splits.paths)
    return b"".join(
        (
            splits.first.astype("<i4").tobytes(),
            splits.weight.astype("<i4").tobytes(),
            _RESERVED * splits.num_splits,
            splits.start.astype("<i8").tobytes(),
            splits.length.astype("<i8").tobytes(),
            splits.size.astype("<i8").tobytes(),
            splits.modified.astype("<i8").tobytes(),
            splits.partition.astype("<i4").tobytes(),
            offsets.astype("<i4").tobytes(),
            text,
        )
    )


def _strings(paths: pa.Array) -> tuple[npt.NDArray[np.int64], memoryview]:
    """Offsets from 0 and the bytes, without a string object."""
    _, offset_buffer, data = paths.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[paths.offset : paths.offset + len(paths) + 1]
    if data is None or not len(paths):
        return np.zeros(len(paths) + 1, np.int64), memoryview(b"")
    return offsets - offsets[0], memoryview(data)[int(offsets[0]) : int(offsets[-1])]


def decode_batch(token: int, batch: ttypes.SplitBatch) -> SourceBatch:
    """Unpacks a batch; the inverse of `encode_batch`, for Python clients and tests."""
    splits = _splits(batch) if batch.split_count else None
    return SourceBatch(token, batch.next_token, splits, batch.finished)


def _splits(batch: ttypes.SplitBatch) -> SplitBatch:
    s, f, view = batch.split_count, batch.file_count, memoryview(batch.payload)
    at = 0

    def column(kind: str, n: int) -> npt.NDArray[np.int64]:
        nonlocal at
        array = np.frombuffer(view, kind, n, at)
        at += array.nbytes
        return array

    first, weight, _ = column("<i4", s + 1), column("<i4", s), column("<i4", s)
    start, length, size, modified = (column("<i8", f) for _ in range(4))
    partition, offsets = column("<i4", f), column("<i4", f + 1)
    paths = pa.LargeStringArray.from_buffers(
        f, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(bytes(view[at:]))
    )
    return SplitBatch(
        first.astype(np.int32),
        weight.astype(np.int32),
        paths,
        start,
        length,
        size,
        modified,
        partition.astype(np.int32),
        tuple(
            Partition(
                p.name, tuple(None if n else v for v, n in zip(p.values, p.nulls, strict=True)), ""
            )
            for p in batch.partitions
        ),
    )
