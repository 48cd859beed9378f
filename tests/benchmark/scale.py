"""A million files and ten: plans over indexes of files that do not exist, warm, cold and bounded.

Eight columns: ``id`` and ``day`` ascend with the files, as in a table written by time; ``key`` has
the same narrow ranges in random order; ``a`` to ``d`` are random ranges of a tenth of their domain,
``name`` is text. What is measured is `Planner.plan` with freshness snapshot, to the last batch and
its report. Cold: the local form's pages are dropped first; the process has the index open.

Ten million: the same in ten shards, in a process of its own, whose memory is measured.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa

from bridge.expression.nodes import Expression
from bridge.expression.parsing.text import parse_where
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.index.generations.compact import write_shard
from bridge.index.generations.manifest import Shard
from bridge.index.generations.shard import COLUMNS, FILES
from bridge.index.generations.store import IndexStore, new_id, next_generation
from bridge.index.reading.local_cache import CacheLimits
from bridge.kernel.types import BIGINT, STRING
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.storage.routed import open_storage
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import CatalogTable, Column, TableName
from tests.benchmark.cold import disk_rate, drop, median_cold
from tests.benchmark.data import is_kept, root
from tests.benchmark.figures import Figure, median, timed
from tests.benchmark.planning import OneTable

MILLION = 1_000_000
NUMBERS = ("id", "day", "key", "a", "b", "c", "d")
_LONG = PhysicalType("INT64", "int", 64)
_TEXT = PhysicalType("BYTE_ARRAY", "string")
_LOCATION = "file:///synthetic/scale"
TABLE = CatalogTable(
    TableName("bench", "scale"),
    (*(Column(name, BIGINT) for name in NUMBERS), Column("name", STRING)),
    (),
    _LOCATION,
)


def _plain(values: np.ndarray) -> pa.Array:  # type: ignore[type-arg]
    width = values.itemsize
    offsets = np.arange(len(values) + 1, dtype=np.int64) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values.tobytes())]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def _shard(store: IndexStore, first: int, total: int) -> Shard:
    """A million files from ``first`` on, of ``total``."""
    rng = np.random.default_rng(first)
    number = np.arange(first, first + MILLION)
    files = pa.table(
        [
            pa.array([f"part-{n:08d}.parquet" for n in number.tolist()], pa.large_string()),
            pa.array([""] * MILLION, pa.large_string()),
            pa.array(np.full(MILLION, 1 << 20)),
            pa.array(np.full(MILLION, 1_600_000_000_000_000)),
            pa.nulls(MILLION, pa.large_string()),
            pa.array(np.full(MILLION, 1000)),
            pa.array(np.ones(MILLION, np.bool_)),
            pa.nulls(MILLION, pa.large_list(pa.int64())),
            pa.nulls(MILLION, pa.large_string()),
        ],
        schema=FILES,
    )
    mixed = np.random.default_rng(5).permutation(total)[first : first + MILLION]
    low = {"id": number * 10, "day": number // 1000, "key": mixed * 10}
    low |= {name: rng.integers(0, 10**9, MILLION) for name in "abcd"}
    wide = {"id": 14, "day": 1, "key": 14}
    words = pa.array(
        [PhysicalColumn((n,), _LONG).key() for n in NUMBERS]
        + [PhysicalColumn(("name",), _TEXT).key()],
        pa.large_string(),
    )
    parts = []
    for code, name in enumerate((*NUMBERS, "name")):
        if name == "name":
            lower = pa.array([b"n%08d" % n for n in number.tolist()], pa.large_binary())
            upper = lower
        else:
            lower, upper = (_plain(low[name] + extra) for extra in (0, wide.get(name, 10**8)))
        zeros = pa.array(np.zeros(MILLION, np.int64))
        exact = pa.array(np.full(MILLION, name != "name"))
        codes = pa.DictionaryArray.from_arrays(pa.array(np.full(MILLION, code, np.int32)), words)
        ordinals = pa.array(np.arange(MILLION))
        sizes = pa.array(np.full(MILLION, 8000))
        arrays = [codes, ordinals, lower, upper, exact, zeros, zeros, sizes]
        parts.append(pa.table(arrays, schema=COLUMNS))
    return write_shard(store, files, pa.concat_tables(parts), "footer", {}, ())


def made(millions: int) -> IndexStore:
    """The index, written once through the real store."""
    directory = root() / f"scale-{millions}"
    store = IndexStore(open_storage(), f"file://{directory}/index")
    if not is_kept(store):
        shutil.rmtree(directory, ignore_errors=True)
        shards = [_shard(store, n * MILLION, millions * MILLION) for n in range(millions)]
        store.commit(
            next_generation(
                None, 1, builder=new_id(), table="bench.scale", location=_LOCATION,
                shards=tuple(shards),
            )
        )  # fmt: skip
    return store


def planner_over(store: IndexStore, cache: Path, limits: CacheLimits | None = None) -> Planner:
    views = IndexViews(lambda table: store, cache, 3600.0, limits)
    return Planner(OneTable(TABLE), views, DirectoryLister(open_storage()), metadata_ttl=3600.0)


def plan(planner: Planner, predicate: Expression) -> int:
    opened = planner.plan(ScanRequest(TABLE.name, predicate, freshness="snapshot"))
    files = sum(len(batch.files.paths) for batch in opened.batches())
    opened.report()
    return files


def questions(total: int) -> dict[str, tuple[Expression, str]]:
    """Predicates by name, each with its aim in ms, for a million."""
    rng = random.Random(4)
    middle = total * 5
    some = sorted(rng.sample(range(total * 10), 1000))
    texts = {
        "range on 1 column, ascending": (f"id BETWEEN {middle} AND {middle + 100}", "≤ 2"),
        "range on 1 column, random order": (f"key BETWEEN {middle} AND {middle + 100}", "≤ 2"),
        "AND of 5": (
            f"key BETWEEN {middle} AND {middle + 5000} AND a > 500000000 AND b < 600000000 "
            "AND c BETWEEN 100000000 AND 900000000 AND d <> 5",
            "≤ 5",
        ),
        "IN of 1,000, ascending": (f"id IN ({', '.join(map(str, some))})", "≤ 3"),
        "IN of 1,000, random order": (f"key IN ({', '.join(map(str, some))})", "≤ 3"),
        "range of text": ("name BETWEEN 'n00500000' AND 'n00500007'", ""),
    }
    return {name: (parse_where(text)[0], aim) for name, (text, aim) in texts.items()}


def run() -> list[Figure]:
    figures = _million() + _ten()
    bounds = np.random.default_rng(1).integers(0, 10**9, (2, MILLION))
    floor = median(lambda: (bounds[0] <= 5000) & (bounds[1] >= 4000), 30, 3)
    return [*figures, Figure("floor here: two numpy comparisons", floor * 1e3, "ms")]


def _million() -> list[Figure]:
    cache = root() / "scale-1" / "cache"
    store = made(1)
    figures: list[Figure] = []
    note = ""
    for name, (predicate, aim) in questions(MILLION).items():
        work = f"1,000,000 files, {name}"
        plan(planner_over(store, cache), predicate)  # its columns are on local disk from here on

        def opened(predicate: Expression = predicate) -> Callable[[], object]:
            fresh = planner_over(store, cache)
            fresh.views.view(TABLE)
            return lambda: plan(fresh, predicate)

        if not note:
            largest = max(cache.rglob("*-*.arrow"), key=lambda path: path.stat().st_size)
            rate = disk_rate(largest)
            note = f"disk {rate / 1e6:.0f} MB/s: a column's 16 MB alone {16e9 / rate:.0f} ms"
        cold = median_cold(cache, opened)
        planner = planner_over(store, cache)
        kept = plan(planner, predicate)
        assert 0 < kept < 3000, name
        warm = median(partial(plan, planner, predicate), 30, 3)
        del planner
        figures.append(Figure(f"{work}, warm", warm * 1e3, "ms", aim, f"{kept} kept"))
        figures.append(Figure(f"{work}, cold", cold * 1e3, "ms", "≤ 30", note))
    return figures


def _ten() -> list[Figure]:
    """Ten million, in a process of its own: once unbounded, once with memory for two columns."""
    made(10)
    figures: list[Figure] = []
    for name, memory in (("index memory 1 GiB", 1 << 30), ("index memory 400 MB", 400_000_000)):
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmark.scale", str(memory)],
            check=True,
            capture_output=True,
            text=True,
        )
        for work, value, unit, note in json.loads(done.stdout):
            figures.append(Figure(f"10,000,000 files, {name}: {work}", value, unit, "", note))
    return figures


def _anonymous() -> float:
    """Megabytes that are no page of a file."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) / 1000
    return 0.0


def _measure_ten(memory: int) -> None:
    directory = root() / "scale-10"
    store = made(10)
    found: list[tuple[str, float, str, str]] = []
    cache = directory / "cache"
    if memory == 1 << 30:  # the first of the two runs begins with nothing on local disk
        shutil.rmtree(cache, ignore_errors=True)
    limits = CacheLimits(memory=memory)
    process = psutil.Process()
    planner = planner_over(store, cache, limits)
    started = time.perf_counter()
    planner.views.view(TABLE)
    found.append(("opened", time.perf_counter() - started, "s", "files and footers"))
    for name, (predicate, _) in questions(10 * MILLION).items():
        first = timed(partial(plan, planner, predicate))
        warm = median(partial(plan, planner, predicate), 5, 1)
        # Mapped pages that only this process looks at count as its own, but are not: see both.
        mapped = process.memory_info().rss / 1e6
        note = (
            f"first time {first:.2f} s; anonymous {_anonymous():.0f} MB, resident {mapped:.0f} MB"
        )
        found.append((name, warm * 1e3, "ms", note))
    drop(cache)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found.append(("peak resident, mapped pages included", peak, "MB", ""))
    found.append(("durable size", sum(b.size for b in store.manifest(1).blobs()) / 1e6, "MB", ""))
    size = sum(path.stat().st_size for path in cache.rglob("*") if path.is_file())
    found.append(("local form", size / 1e6, "MB", ""))
    print(json.dumps(found))


if __name__ == "__main__":
    _measure_ten(int(sys.argv[1]))
