"""Time to the first query that skips files, in a planner that has just started.

A Hudi table of 8,000 small files: by the bounds that Hudi keeps itself (``column_stats``), and by
an index of ours that is built first. On local disk, and on versitygw behind a proxy that delays
each answer by 30 ms (``SKIPBRIDGE_BENCH_LATENCY``).
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.app.api.session import Session
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.storage.routed import open_storage
from tests.benchmark import hudi_data
from tests.benchmark.data import root
from tests.benchmark.figures import Figure
from tests.support.hudi_column_stats import ColumnStats, Entry
from tests.support.hudi_tables import HudiTable
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET, start_versitygw

_FILES, _ROWS, _COMMITS = 8_000, 20, 4
_COLUMNS = 16
_INSTANT = 20260101000000000


def run() -> list[Figure]:
    return _measured(_FILES)


def quick() -> list[Figure]:
    return _measured(400)


def _measured(files: int) -> list[Figure]:
    latency = float(os.environ.get("SKIPBRIDGE_BENCH_LATENCY", "30")) / 1e3
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=root())))
        _write(scratch / "t", files)
        figures = _both(scratch, str(scratch / "t"), files, {}, "local disk")
        gateway = start_versitygw(scratch / "s3")
        stack.enter_context(gateway.server)
        _copy(scratch / "t", gateway.options)
        os.environ.update(gateway.environment)
        proxy = stack.enter_context(SlowStore(gateway.server.port))
        proxy.behave(Behaviour(latency=latency))
        options = {
            "storage.endpoint": f"http://127.0.0.1:{proxy.port}",
            "storage.region": "us-east-1",
            "storage.allow_http": "true",
        }
        return figures + _both(
            scratch, f"s3://{BUCKET}/t", files, options, f"S3 with {latency * 1e3:.0f} ms"
        )


def _both(
    scratch: Path, table: str, files: int, options: dict[str, str], place: str
) -> list[Figure]:
    """By Hudi's bounds, and by ours; each with a cache of its own."""

    def config(name: str) -> Config:
        home = scratch / f"{name}-{len(table)}"
        told = {**options, "planner.cache_dir": str(home / "cache")}
        told["index.root"] = f"file://{home}/index"
        return Config({key: Setting(value, "benchmark") for key, value in told.items()})

    wanted = f"id BETWEEN {files * 5} AND {files * 5 + 9}"

    def until_it_skips(config: Config, prepare: Callable[[], None]) -> tuple[float, int, str]:
        begun, queries = time.perf_counter(), 0
        prepare()
        with Session(config) as session:
            while True:
                report = session.table(table).scan(wanted).explain()
                queries += 1
                if report.files_kept < files:
                    assert report.files_kept == 1, report.files_kept
                    return time.perf_counter() - begun, queries, str(report.stages[-1].index)
                time.sleep(0.01)

    def build() -> None:
        index_table(config("ours"), table, local=True, progress=lambda *_: None, say=lambda _: None)

    figures = []
    for name, prepare in (("Hudi's column_stats", lambda: None), ("our index, built", build)):
        kind = "ours" if prepare is build else "hudi"
        seconds, queries, source = until_it_skips(config(kind), prepare)
        note = f"query {queries}, by {source}"
        figures.append(Figure(f"{files:,} files, {place}: {name}", seconds, note=note))
    return figures


def _write(directory: Path, files: int) -> None:
    """A table of version 8 with bounds of all columns in one compacted HFile."""
    names = [f"n{i}" for i in range(_COLUMNS - 1)]
    fields = [{"name": "id", "type": ["null", "long"], "default": None}]
    fields += [{"name": n, "type": ["null", "int"], "default": None} for n in names]
    table = HudiTable(
        directory,
        8,
        "COPY_ON_WRITE",
        hoodie__table__recordkey__fields="id",
        hoodie__table__metadata__partitions="column_stats",
        hoodie__populate__meta__fields="false",
    )
    random, entries = np.random.default_rng(1), []
    for commit in range(_COMMITS):
        instant, written = str(_INSTANT + commit), []
        for number in range(commit * files // _COMMITS, (commit + 1) * files // _COMMITS):
            base = table.base("", f"{number:08d}-0000-0000-0000-000000000000-0", instant)
            ids = np.arange(number * _ROWS // 2, number * _ROWS // 2 + _ROWS // 2)
            held = {n: random.integers(0, 1000, len(ids), np.int32) for n in names}
            pq.write_table(pa.table({"id": ids, **held}), directory / base.name)
            entries.append(_entry(base.name, "id", "LongWrapper", ids))
            entries += (_entry(base.name, n, "IntWrapper", v) for n, v in held.items())
            written.append(hudi_data.sized(table, base))
        schema = json.dumps({"type": "record", "name": "t", "fields": fields})
        table.commit(instant, written, action="commit", schema=schema)
    statistics = ColumnStats(directory, 8, ["isTightBound"], per_block=2000)
    statistics.base(str(_INSTANT + _COMMITS - 1), entries)


def _entry(file: str, column: str, wrapper: str, values: np.ndarray) -> Entry:
    return Entry("", file, column, (wrapper, int(values.min()), int(values.max())))


def _copy(directory: Path, options: dict[str, str]) -> None:
    storage = open_storage(options=options)
    files = [path for path in directory.rglob("*") if path.is_file()]

    def put(file: Path) -> None:
        storage.put(f"s3://{BUCKET}/{file.relative_to(directory.parent)}", file.read_bytes())

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(put, files))
