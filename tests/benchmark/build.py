"""Index builds with Spark local[2]: session running, from listing through commit."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from bridge.index.building.build import build_index
from bridge.index.building.collect import ThreadCollector
from bridge.index.generations.store import IndexStore
from bridge.indexing.spark_build import SparkCollector
from bridge.runtime.spark_session import open_session
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.model import Partition
from tests.benchmark.data import small_files
from tests.benchmark.figures import Figure
from tests.support.directories import in_directories


def run() -> list[Figure]:
    storage = open_storage()
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as scratch, _session() as session:
        collector = SparkCollector(session)
        session.range(10).count()
        for nan, target, floats in (("scan", "≤ 1.5", True), ("footer", "≤ 0.5", False)):
            directory = small_files(floats=floats)
            catalog = DirectoryCatalog(storage, f"file://{directory}")
            table = catalog.table(catalog.name)
            partitions = [Partition("", (), table.location)]
            store = IndexStore(storage, f"file://{scratch}/{nan}")
            started = time.perf_counter()
            report = build_index(
                table, in_directories(partitions, storage), store, collector=collector, nan=nan
            )  # type: ignore[arg-type]
            seconds = time.perf_counter() - started
            figures.append(
                Figure(
                    f"Spark build, {report.files:,} files, "
                    + ("3 double columns scanned for NaN" if floats else "footers"),
                    seconds / report.files * 1e3,
                    "ms/file",
                    target,
                    f"{seconds:.1f} s in all",
                )
            )
        figures += _refresh(directory, Path(scratch) / "footer", table, partitions)
    return figures


@contextmanager
def _session() -> Iterator[SparkSession]:
    session = open_session("local[2]")
    try:
        yield session
    finally:
        session.stop()


def _refresh(
    directory: Path, index: Path, table: object, partitions: list[Partition]
) -> list[Figure]:
    """Ten files more: only they are read, by threads of this process."""
    storage = open_storage()
    new = []
    for i, source in enumerate(sorted(directory.glob("part-*.parquet"))[:10]):
        copy = directory / f"zz-new-{i}.parquet"
        shutil.copyfile(source, copy)
        past = time.time() - 60
        os.utime(copy, (past, past))
        new.append(copy)
    try:
        store = IndexStore(storage, f"file://{index}")
        started = time.perf_counter()
        report = build_index(
            table, in_directories(partitions, storage), store, collector=ThreadCollector(storage)
        )  # type: ignore[arg-type]
        seconds = time.perf_counter() - started
    finally:
        for file in new:
            file.unlink()
    assert report.read == 10
    return [
        Figure("refresh after 10 new files of 39,000", seconds, "s", "≤ 3"),
        Figure("written by it", report.bytes_written / 1e3, "kB", "< 100"),
    ]
