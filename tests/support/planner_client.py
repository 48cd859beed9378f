"""The planner's client with every method of the service, for tests and benchmarks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.kernel.types import parse_hive_type
from bridge.planner.splits.source import SourceBatch
from bridge.planner.splits.split import SplitBatch
from bridge.service import client
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from bridge.storage.port import FileTable
from bridge.table.model import Column, Partition
from bridge.table.slices import Logs, ReaderSpec


class PlannerClient(client.PlannerClient):
    """One connection; not shared between threads."""

    def list_schemas(self) -> list[str]:
        return list(self.call("list_schemas", PROTOCOL))

    def list_tables(self, schema: str) -> list[str]:
        return list(self.call("list_tables", schema, PROTOCOL))

    def get_table(
        self,
        schema: str,
        table: str,
        engine: str = "trino",
        query_id: str = "",
        read_version: str = "",
    ) -> ttypes.Table:
        return self.call("get_table", schema, table, engine, query_id, read_version, PROTOCOL)

    def plan(
        self,
        schema: str,
        table: str,
        predicate: str = "",
        *,
        engine: str = "trino",
        query_id: str = "",
        options: dict[str, str] | None = None,
        read_version: str = "",
        first_splits: int = 0,
    ) -> ttypes.Plan:
        request = _request(schema, table, predicate, engine, query_id, options)
        request.read_version = read_version
        request.first_splits = first_splits
        return self.call("plan", request)

    def apply_dynamic_filter(self, handle: str, predicate: str) -> None:
        self.call("apply_dynamic_filter", handle, predicate)

    def next_splits(
        self, handle: str, token: int, max_splits: int = 1000, wait_ms: int = 1000
    ) -> SourceBatch:
        return decode_batch(token, self.call("next_splits", handle, token, max_splits, wait_ms))

    def splits(self, handle: str, max_splits: int = 1000) -> Iterator[SourceBatch]:
        """All batches of a plan."""
        token, finished = 0, False
        while not finished:
            batch = self.next_splits(handle, token, max_splits)
            token, finished = batch.next_token, batch.finished
            yield batch

    def aggregate(
        self,
        schema: str,
        table: str,
        predicate: str = "",
        *,
        aggregates: Sequence[tuple[str, str]] = (),
        group_by: Sequence[str] = (),
        query_id: str = "",
        wait_ms: int = 10_000,
    ) -> ttypes.AggregateResult:
        """Aggregates from statistics, as (function, column) pairs; ("count", "") counts rows."""
        return self.call(
            "aggregate",
            _request(schema, table, predicate, "trino", query_id, None),
            ttypes.AggregateRequest(
                [ttypes.Aggregate(*a) for a in aggregates], list(group_by), wait_ms
            ),
        )

    def statistics(self, schema: str, table: str, predicate: str = "") -> ttypes.Table:
        return self.call("get_statistics", _request(schema, table, predicate, "trino", "", None))

    def system_table(
        self, schema: str, table: str, kind: str, columns: Sequence[str] = (), max_rows: int = 1000
    ) -> Iterator[list[Any]]:
        """Rows of ``$files``, ``$partitions`` or ``$indexes`` (`planner.answers.system_tables`)."""
        request = _request(schema, table, "", "trino", "", None, columns)
        handle = self.call("open_system_table", request, kind).handle
        token, finished = 0, False
        while not finished:
            page = self.call("next_rows", handle, token, max_rows)
            token, finished = page.next_token, page.finished
            yield from map(list, zip(*(json.loads(c) for c in page.columns), strict=True))
        self.close_plan(handle)

    def close_plan(self, handle: str) -> None:
        self.call("close_plan", handle)


def _request(
    schema: str,
    table: str,
    predicate: str,
    engine: str,
    query_id: str,
    options: dict[str, str] | None,
    columns: Sequence[str] = (),
) -> ttypes.PlanRequest:
    return ttypes.PlanRequest(
        schema_name=schema,
        table_name=table,
        query_id=query_id,
        engine=engine,
        engine_version="",
        predicate=predicate,
        projected_columns=list(columns),
        options=options or {},
        read_version="",
        snapshot_id="",
        protocol=PROTOCOL,
    )


def decode_batch(token: int, batch: ttypes.SplitBatch) -> SourceBatch:
    """Unpacks a batch; the inverse of `encode_batch`."""
    splits = _unpack(batch) if batch.split_count else None
    return SourceBatch(token, batch.next_token, splits, batch.finished)


class _Columns:
    """Reads the columns of a payload in order."""

    def __init__(self, payload: bytes) -> None:
        self._view = memoryview(payload)
        self._at = 0

    def next(self, kind: str, count: int) -> npt.NDArray[np.int64]:
        array: npt.NDArray[np.int64] = np.frombuffer(self._view, kind, count, self._at)
        self._at += array.nbytes
        return array

    def strings(self, count: int) -> pa.Array:
        offsets = self.next("<i4", count + 1).astype(np.int64)
        text = bytes(self._view[self._at : self._at + int(offsets[-1])])
        self._at += len(text)
        return pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


def _unpack(batch: ttypes.SplitBatch) -> SplitBatch:
    s, f, count = batch.split_count, batch.file_count, batch.log_count
    columns = _Columns(batch.payload)
    first, weight = columns.next("<i4", s + 1), columns.next("<i4", s)
    start, length, size, modified = (columns.next("<i8", f) for _ in range(4))
    partition, reader = columns.next("<i4", f), columns.next("<i4", f)
    paths = columns.strings(f)
    logs = None
    if count:
        offsets = columns.next("<i4", f + 1).astype(np.int64)
        sizes, times = columns.next("<i8", count), columns.next("<i8", count)
        found = FileTable(columns.strings(count), sizes, times * 1000)
        logs = Logs(offsets, found, np.full(count, -1, np.int64))
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
        tuple(_spec(r) for r in batch.readers),
        reader.astype(np.int32),
        logs,
        None if batch.etag_hashes is None else np.frombuffer(batch.etag_hashes, "<i4"),
    )


def _spec(reader: ttypes.ReaderSpec) -> ReaderSpec:
    columns = None
    if reader.columns is not None:
        columns = tuple(Column(c.name, parse_hive_type(c.hive_type)) for c in reader.columns)
    return ReaderSpec(reader.format, tuple(sorted(reader.properties.items())), columns)
