"""Index kinds: blooms of 39,000 files, value lists of 1,000,000, and a build beside a scan."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.expression.nodes import BoundPredicate, BoundReference, Op
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.index.building.build import build_index
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.bloom import build, optimal_bytes
from bridge.index.kinds.kind import KindStatistics
from bridge.index.kinds.payload import ShardPart, header_bytes, open_payload, rows_schema
from bridge.index.kinds.registry import kind
from bridge.index.kinds.xxh64 import ascending, hash_numbers
from bridge.indexing.spark_build import SparkCollector
from bridge.kernel.types import BIGINT, TRINO
from bridge.runtime.spark_session import open_session
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.model import Partition
from tests.benchmark.figures import Figure, median, timed
from tests.support.directories import in_directories

_KEY = PhysicalColumn(("id",), PhysicalType("INT64", "int", 64)).key()
_X = BoundReference(("id",), BIGINT)


def run() -> list[Figure]:
    return [*_probes(39_000, 1_000), *_lists(1_000_000), *_build(500, 1 << 30)]


def quick() -> list[Figure]:
    return [*_probes(2_000, 100), *_lists(20_000), *_build(20, 1 << 25)]


def _opened(name: str, rows: pa.Table, files: int, scratch: Path) -> KindStatistics:
    store = IndexStore(open_storage(), f"file://{scratch}/index")
    definition = kind(name).define("id")
    header, body = header_bytes(rows, kind(name).has_body)
    blobs = [store.put_blob("shards/header", header)]
    blobs += [store.put_blob("shards/body", body)] if body is not None else []
    part = ShardPart(blobs[0], blobs[1] if body is not None else None, np.arange(files))
    (scratch / "cache" / name).mkdir(parents=True, exist_ok=True)
    payload = open_payload("x", rows.schema, [part], files, store, scratch / "cache" / name)
    found = kind(name).open(definition, payload)
    assert found is not None
    return found


def _probes(files: int, values: int) -> list[Figure]:
    """Every file is probed: the worst that min/max can leave."""
    rng = np.random.default_rng(1)
    size = optimal_bytes(values, 0.01)
    numbers = rng.integers(0, 2**62, (files, values))
    bodies = [build(ascending(hash_numbers(row)), size) for row in numbers]
    schema = rows_schema(kind("bloom").schema, True)
    rows = pa.table(
        [
            pa.array(range(files), pa.int64()),
            pa.array([_KEY] * files).dictionary_encode().cast(schema.field("stored").type),
            pa.array([False] * files),
            pa.array([-1] * files, pa.int32()),
            pa.array(bodies, pa.large_binary()),
        ],
        schema=schema,
    )
    with tempfile.TemporaryDirectory() as scratch:
        filters = _opened("bloom", rows, files, Path(scratch))
        every = np.arange(files)
        sought = [int(v) for v in numbers[:: files // 10, 0]]
        one = BoundPredicate(Op.EQ, _X, (sought[0],))
        cold = timed(lambda: filters.never(one, every, TRINO))
        warm = median(lambda: filters.never(one, every, TRINO), 20)
        ten = BoundPredicate(Op.IN, _X, tuple(sorted(sought[:10])))
        many = median(lambda: filters.never(ten, every, TRINO), 10)
        passed = filters.never(one, every, TRINO)
        assert passed is not None
        note = f"{np.count_nonzero(~passed)} files left; {size} bytes each"
    return [
        Figure(f"bloom, {files:,} files, one value, warm", warm * 1e3, "ms", "≤ 10", note),
        Figure(f"bloom, {files:,} files, 10 values, warm", many * 1e3, "ms"),
        Figure(
            f"bloom, {files:,} files, first time", cold, "s", "", f"{files * size / 1e6:.0f} MB"
        ),
    ]


def _lists(files: int) -> list[Figure]:
    rng = np.random.default_rng(2)
    few = rng.integers(0, 1000, (files, 8))
    schema = rows_schema(kind("values").schema, False)
    flat = pa.Array.from_buffers(
        pa.binary(8), files * 8, [None, pa.py_buffer(few.astype("<i8").tobytes())]
    )
    offsets = pa.array(np.arange(files + 1) * 8, pa.int64())
    rows = pa.table(
        [
            pa.array(range(files), pa.int64()),
            pa.array([_KEY] * files).dictionary_encode().cast(schema.field("stored").type),
            pa.LargeListArray.from_arrays(offsets, flat.cast(pa.binary()).cast(pa.large_binary())),
            pa.array([False] * files),
        ],
        schema=schema,
    )
    with tempfile.TemporaryDirectory() as scratch:
        lists = _opened("values", rows, files, Path(scratch))
        every = np.arange(files)
        found = []
        for op, values in ((Op.EQ, (7,)), (Op.NOT_IN, (1, 2, 3)), (Op.LT, (500,))):
            asked = BoundPredicate(op, _X, values)
            lists.never(asked, every, TRINO)
            seconds = median(lambda asked=asked: lists.never(asked, every, TRINO), 5)  # type: ignore[misc]
            found.append(Figure(f"values, {files:,} files, {op.value}", seconds * 1e3, "ms"))
    return found


def _build(files: int, size: int) -> list[Figure]:
    """Min/max, blooms on two columns and sketches of all, beside Spark reading the same columns."""
    storage = open_storage()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "table"
        directory.mkdir()
        total = _write(directory, files, size // files)
        session = open_session("local[2]")
        try:
            session.range(10).count()
            collector = SparkCollector(session)
            catalog = DirectoryCatalog(storage, f"file://{directory}")
            table = catalog.table(catalog.name)
            partitions = [Partition("", (), table.location)]
            wanted = [kind("bloom").define(c) for c in ("id", "tag")]
            wanted.append(kind("ndv").define("*"))

            def scan() -> None:
                read = session.read.parquet(str(directory))
                columns = [f"hash({c})" for c in read.columns]
                read.selectExpr(*(f"max({c})" for c in columns)).collect()

            def index() -> None:
                store = IndexStore(storage, f"file://{scratch}/{time.monotonic_ns()}")
                report = build_index(
                    table,
                    in_directories(partitions, storage),
                    store,
                    collector=collector,
                    settings=lambda held: held.adding(wanted),
                )
                assert report.read == files and not report.failed

            scan()
            scans, builds = median(scan, 3), median(index, 3, warmups=0)
        finally:
            session.stop()
    note = f"{total / 1e9:.2f} GB in {files} files; the scan took {scans:.1f} s"
    return [
        Figure("build: min/max, 2 blooms, NDV / Spark's scan", builds / scans, "x", "≤ 1.3", note)
    ]


def _write(directory: Path, files: int, size: int) -> int:
    rng = np.random.default_rng(3)
    rows = size // 30
    past = time.time() - 60
    total = 0
    for i in range(files):
        numbers = rng.integers(0, 2**62, rows)
        table = pa.table(
            {
                "id": numbers,
                "tag": pa.array(rng.integers(0, 10**6, rows)).cast(pa.string()),
                "category": pa.array(rng.integers(0, 50, rows)).cast(pa.string()),
                "price": rng.random(rows),
                "at": pa.array(numbers % 10**15).cast(pa.timestamp("us")),
            }
        )
        path = directory / f"part-{i:04d}.parquet"
        pq.write_table(table, path)
        os.utime(path, (past, past))
        total += path.stat().st_size
    return total
