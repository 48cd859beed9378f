"""Converts between the planner's values and Thrift's; the only module that knows both."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa

from bridge.engines.engine import Engine
from bridge.formats.registry import file_format
from bridge.kernel.errors import BridgeError, Category, ProtocolMismatch, all_errors
from bridge.kernel.version import VERSION
from bridge.planner.splits.source import SourceBatch
from bridge.planner.splits.split import SplitBatch
from bridge.service._gen import ttypes
from bridge.service.tables import describe_column
from bridge.table.model import Partition
from bridge.table.slices import Logs, ReaderSpec

PROTOCOL = 2
_EMPTY = struct.pack("<ii", 0, 0)


def check_protocol(protocol: int | None) -> None:
    """Refuses a client of another protocol.

    Errors:
        ProtocolMismatch
    """
    if protocol != PROTOCOL:
        raise ProtocolMismatch(
            f"the client speaks protocol {protocol}, this planner {VERSION} speaks {PROTOCOL}",
            mismatch_remedy(protocol or 0, PROTOCOL),
        )


def mismatch_remedy(client: int, planner: int) -> str:
    """Which side to upgrade, as a sentence."""
    if client < planner:
        return (
            "upgrade the client to the planner's release: `skipbridge plugin build` for Trino, "
            "`skipbridge hive jar` for Hive"
        )
    return "upgrade the planner to the client's release and restart it with `skipbridge serve`"


def failure_of(error: BaseException) -> ttypes.BridgeFailure:
    """Any exception as the fields a client shows; an unexpected one keeps its type's name."""
    if isinstance(error, BridgeError):
        hint = error.served_hint or error.hint
        return ttypes.BridgeFailure(
            error.code, error.category.value, error.message, hint, error.retryable
        )
    return ttypes.BridgeFailure(
        BridgeError.code,
        Category.INTERNAL_ERROR.value,
        f"{type(error).__name__}: {error}",
        "see the planner's log",
        False,
    )


def error_of(failure: ttypes.BridgeFailure) -> BridgeError:
    """The error that a server sent, as the same class on this side."""
    cls = all_errors().get(failure.code, BridgeError)
    return cls(failure.message, failure.hint)


def encode_batch(batch: SourceBatch, engine: Engine, report: str | None) -> ttypes.SplitBatch:
    """Packs splits in the format of bridge.thrift.

    Args:
        engine: the engine that reads them.
    """
    splits = batch.splits
    partitions: tuple[Partition, ...] = ()
    payload, count, files = _EMPTY, 0, 0
    readers: tuple[ReaderSpec, ...] = ()
    logs, etags = 0, None
    if splits is not None:
        readers, reader = _used_readers(splits)
        payload = _payload(splits, reader)
        partitions = splits.partitions
        count, files = splits.num_splits, splits.num_files
        logs = len(splits.logs.files) if splits.logs is not None else 0
        if splits.etag_hashes is not None:
            etags = splits.etag_hashes.astype("<i4").tobytes()
    return ttypes.SplitBatch(
        next_token=batch.next_token,
        finished=batch.finished,
        split_count=count,
        file_count=files,
        partitions=[_partition(p) for p in partitions],
        payload=payload,
        report=report,
        readers=[_reader(spec, engine) for spec in readers],
        log_count=logs,
        etag_hashes=etags,
    )


def _partition(partition: Partition) -> ttypes.PartitionEntry:
    return ttypes.PartitionEntry(
        partition.name,
        [v if v is not None else "" for v in partition.values],
        [v is None for v in partition.values],
    )


def _reader(spec: ReaderSpec, engine: Engine) -> ttypes.ReaderSpec:
    columns = None
    if spec.columns is not None:
        columns = [describe_column(column, False, engine) for column in spec.columns]
    name = engine.reader(file_format(spec.format)) or spec.format
    return ttypes.ReaderSpec(name, dict(spec.properties), columns)


def _used_readers(splits: SplitBatch) -> tuple[tuple[ReaderSpec, ...], bytes]:
    """The readers that files of a batch have, and the number of each file's."""
    readers, reader = splits.readers, splits.reader
    if reader is None:
        return readers[:1], bytes(4 * splits.num_files)
    used = np.flatnonzero(np.bincount(reader, minlength=len(readers)))
    if len(used) < len(readers):
        place = np.zeros(len(readers), np.int32)
        place[used] = np.arange(len(used))
        readers, reader = tuple(readers[i] for i in used.tolist()), place[reader]
    return readers, reader.astype("<i4").tobytes()


def _payload(splits: SplitBatch, reader: bytes) -> bytes:
    return b"".join(
        (
            splits.first.astype("<i4").tobytes(),
            splits.weight.astype("<i4").tobytes(),
            splits.start.astype("<i8").tobytes(),
            splits.length.astype("<i8").tobytes(),
            splits.size.astype("<i8").tobytes(),
            splits.modified.astype("<i8").tobytes(),
            splits.partition.astype("<i4").tobytes(),
            reader,
            *_strings(splits.paths),
            *_logs(splits.logs),
        )
    )


def _logs(logs: Logs | None) -> tuple[bytes | memoryview, ...]:
    if logs is None or not len(logs.files):
        return ()
    return (
        logs.offsets.astype("<i4").tobytes(),
        logs.files.sizes.astype("<i8").tobytes(),
        (logs.files.modified // 1000).astype("<i8").tobytes(),
        *_strings(logs.files.paths),
    )


def _strings(paths: pa.Array) -> tuple[bytes, memoryview]:
    """Offsets from 0 and the bytes, without creating string objects."""
    _, offset_buffer, data = paths.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[paths.offset : paths.offset + len(paths) + 1]
    if data is None or not len(paths):
        return bytes(4 * (len(paths) + 1)), memoryview(b"")
    text = memoryview(data)[int(offsets[0]) : int(offsets[-1])]
    return (offsets - offsets[0]).astype("<i4").tobytes(), text
