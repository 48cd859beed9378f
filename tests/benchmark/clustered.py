"""Clustered files: how fast they are made, and how large they are beside other encodings.

39,000 files of flights (3,000,000 rows, zstd), beside the time in which pyarrow reads them into one
table in the same run; 2,000 files of 200 columns; and 8,000 files behind 30 ms a request. Processor
seconds are those of this process and of its children.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from bridge.clustering.commands.run import run as run_plan
from bridge.clustering.commands.run import schedule
from bridge.clustering.execution import ThreadRewriter
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.clustering.rewriting.rewrite import Effort, GroupTask
from bridge.index.generations.replacements import FileState
from bridge.kernel.config import Config
from bridge.runtime.spark_session import open_session
from bridge.storage.port import FileStat, Range
from bridge.storage.routed import open_storage
from tests.benchmark import data
from tests.benchmark.clustering_data import linked
from tests.benchmark.figures import Figure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 77
_EVERY = Limits(most_per_group=1 << 40, most_groups=1000)


def run() -> list[Figure]:
    return _measured(data.SMALL_FILES, 2_000, 8_000)


def quick() -> list[Figure]:
    return _measured(400, 20, 100)


def _measured(narrow: int, broad: int, remote: int) -> list[Figure]:
    spark = open_session("local[2]", settings={"spark.driver.memory": "2g"})
    try:
        few, many = flights(narrow), wide(broad)
        _rewritten(linked(few, _work("warm"), 10), spark)
        figures = [
            *_speed("5 columns", few, None),
            *_speed("5 columns, Spark", few, spark),
            *_speed("200 columns", many, None),
        ]
    finally:
        spark.stop()
    figures += _behind_latency(few, remote)
    figures += _sizes("5 columns", _work("5 columns")) + _sizes("200 columns", _work("200 columns"))
    return figures


def _work(name: str) -> Path:
    return data.root() / f"clustered-{name.replace(' ', '-')}"


def flights(count: int) -> Path:
    """Flights of years in the order of time."""

    def table(begin: int, rows: int, rng: np.random.Generator) -> pa.Table:
        minutes = np.sort(rng.integers(begin * 10, begin * 10 + 10 * rows // _ROWS, rows))
        ports = pa.array([f"ED{a}{b}" for a in "ABCDFGHK" for b in "ABCDEFGHIJKLMNOPQRSTUVWX"])
        some = [ports.take(pa.array(rng.zipf(1.3, rows) % len(ports))) for _ in range(2)]
        return pa.table(
            {
                "ts": pa.array(minutes * 60_000_000 + 1_577_836_800_000_000, pa.timestamp("us")),
                "flight": rng.integers(0, 9_000, rows),
                "delay": rng.normal(10, 30, rows).astype(np.int64),
                "origin": some[0],
                "destination": some[1],
            }
        )

    return _made(f"flights-{count}", count, table)


def wide(count: int) -> Path:
    """200 columns: numbers of few and of many values, text."""

    def table(begin: int, rows: int, rng: np.random.Generator) -> pa.Table:
        columns: dict[str, Any] = {"ts": np.arange(begin * rows, (begin + 1) * rows)}
        for i in range(199):
            numbers = rng.integers(0, (10, 5_000, 2**40)[i % 3], rows)
            columns[f"c{i}"] = [f"v{n}" for n in numbers.tolist()] if i % 4 == 0 else numbers
        return pa.table(columns)

    return _made(f"wide-{count}", count, table)


def _made(name: str, count: int, table: Any) -> Path:
    made = data.root() / name
    if (made / "_DONE").exists():
        return made
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    rng, past = np.random.default_rng(11), time.time() - 7200
    for i in range(count):
        path = made / f"part-{i:05}.parquet"
        pq.write_table(table(i, _ROWS, rng), path, compression="zstd")
        os.utime(path, (past, past))
    (made / "_DONE").touch()
    return made


def _speed(name: str, source: Path, spark: SparkSession | None) -> list[Figure]:
    files = sorted(map(str, source.glob("*.parquet")))
    begun, used = time.perf_counter(), _processor()
    rows = len(ds.dataset(files, schema=pq.read_schema(files[0])).to_table())
    wall, processor = time.perf_counter() - begun, _processor() - used
    target = linked(source, _work(name))
    seconds, busy = _rewritten(target, spark)
    note = f"pyarrow's dataset reads the {len(files)} files in {wall:.3g} s, {rows:,} rows"
    return [
        Figure(f"{name}: cluster run, verified", seconds, "s", note=note),
        Figure(f"{name}: over pyarrow's read", seconds / wall, "x", "≤ 1.5"),
        *([] if spark else [Figure(f"{name}: processor time over it", busy / processor, "x")]),
    ]


def _rewritten(table: Path, spark: SparkSession | None) -> tuple[float, float]:
    """Seconds of a clustering of a whole directory by its first column, and of the processor."""
    strategy = Strategy("linear", ("ts",), "range", _EVERY)
    made = schedule(Config(), str(table), strategy, lambda *_: None)
    begun, used = time.perf_counter(), _processor()
    report = run_plan(
        Config(), str(table), made["instant"], local=spark is None, spark=spark,
        progress=lambda *_: None,
    )  # fmt: skip
    found = time.perf_counter() - begun, _processor() - used
    assert report["state"] == "completed" and not report["rejected"], report
    return found


def _processor() -> float:
    """Seconds of this process and of its children."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(words[1]) == os.getpid():
            ticks += int(words[11]) + int(words[12])
    own = os.times()
    return own.user + own.system + ticks / os.sysconf("SC_CLK_TCK")


class _Far:
    """A storage whose reads take 30 ms more."""

    def __init__(self) -> None:
        self._storage = open_storage()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)

    def is_remote(self, uri: str) -> bool:
        return True

    def read_state(self, uri: str, ranges: Sequence[Range]) -> tuple[list[bytes], FileStat | None]:
        time.sleep(0.03)
        return self._storage.read_state(uri, ranges)


def _behind_latency(source: Path, count: int) -> list[Figure]:
    storage: Any = _Far()
    stats = [storage.stat(f"file://{path}") for path in sorted(source.glob("*.parquet"))[:count]]
    states = tuple(map(FileState.of, stats))
    target = f"file://{_work('far')}"
    task = GroupTask(0, "", states, 1, "linear", ("ts",), target, None, 1 << 27)
    begun = time.perf_counter()
    (result,) = ThreadRewriter(storage, Effort(2)).rewrite([task])
    seconds = time.perf_counter() - begun
    assert not result.rejected, result.rejected
    return [Figure(f"{count} files, 30 ms a request", seconds, "s", "≤ 30")]


def _sizes(name: str, table: Path) -> list[Figure]:
    files = sorted((table / ".skipbridge_clustered").rglob("*-data"))
    rows = pa.concat_tables([pq.read_table(file) for file in files])
    ours = sum(file.stat().st_size for file in files)

    def size(**options: Any) -> float:
        sink = BytesIO()
        pq.write_table(rows, sink, compression="zstd", **options)
        return len(sink.getvalue()) / 1e6

    others = {
        "plain": size(use_dictionary=False),
        "dictionaries everywhere": size(dictionary_pagesize_limit=2 << 20, write_page_index=True),
        "pyarrow's defaults": size(),
    }
    note = ", ".join(f"{each}: {found:.2f}" for each, found in others.items())
    best = ours / 1e6 / min(others.values())
    return [
        Figure(f"{name}: size", ours / 1e6, "MB", note=note),
        Figure(f"{name}: over the smallest of the others", best, "x", "≤ 1.05"),
    ]
