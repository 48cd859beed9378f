"""Index builds on an object store with latency: versitygw behind a proxy that delays each answer.

39,000 files of lineitem below one prefix. ``SKIPBRIDGE_BENCH_FILES`` makes it fewer files, and
``SKIPBRIDGE_BENCH_LATENCY`` sets the milliseconds per request, 30 if unset. Proxy, store and
builder share the cores of the machine.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bridge.index.building.build import BuildReport, build_index
from bridge.index.building.collect import Collector, Nan, ThreadCollector
from bridge.index.generations.store import IndexStore
from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.registry import kind
from bridge.indexing.spark_build import SparkCollector
from bridge.runtime.spark_session import open_session
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.model import CatalogTable, Partition
from tests.benchmark.data import SMALL_FILES, root, small_files
from tests.benchmark.figures import Figure, timed
from tests.support.directories import in_directories
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.versitygw import BUCKET, start_versitygw

_TABLE = f"s3://{BUCKET}/lineitem"
_QUICK = 3_000


def run() -> list[Figure]:
    return _measured(int(os.environ.get("SKIPBRIDGE_BENCH_FILES", SMALL_FILES)))


def quick() -> list[Figure]:
    return _measured(int(os.environ.get("SKIPBRIDGE_BENCH_FILES", _QUICK)))


@dataclass(frozen=True, slots=True)
class _World:
    """The table behind the proxy, the proxy's options, and the pids of proxy and store."""

    proxy: SlowStore
    options: dict[str, str]
    files: int
    servers: tuple[int, int]

    def measure(self, work: str, aim: str, do: Callable[[], object]) -> Figure:
        self.proxy.take()
        before = self._cpu()
        seconds = timed(do)
        used = [(b - a) * 1e3 / self.files for a, b in zip(before, self._cpu(), strict=True)]
        seen = self.proxy.take()
        each = seen.count() / self.files
        note = (
            f"{each:.3f} requests per file, at most {seen.most} in flight; CPU ms per file: "
            f"builder {used[2]:.2f}, proxy {used[0]:.2f}, store {used[1]:.2f}"
        )
        return Figure(f"{work}, {self.files:,} files", seconds, "s", aim, note)

    def _cpu(self) -> list[float]:
        """CPU seconds of the proxy, the store, and all other processes below this one."""
        times, parents = {}, {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                pid = int(stat.parent.name)
                parents[pid] = int(fields[1])
                times[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        ours = {os.getpid()}
        for _ in range(8):  # Spark's workers are children of its daemon's
            ours |= {pid for pid, parent in parents.items() if parent in ours}
        servers = [times.get(pid, 0.0) for pid in self.servers]
        return [*servers, sum(times.get(pid, 0.0) for pid in ours - set(self.servers))]

    def build(self, collector: Collector, name: str, nan: Nan, *indexes: str) -> BuildReport:
        storage = open_storage(options=self.options)
        table = CatalogTable(DirectoryCatalog(storage, _TABLE).name, (), (), _TABLE)
        defined = IndexSettings(
            tuple(kind(k).define(on) for k, _, on in (i.partition(":") for i in indexes))
        )
        report = build_index(
            table,
            in_directories([Partition("", (), _TABLE)], storage),
            IndexStore(storage, f"s3://{BUCKET}/indexes/{name}"),
            collector=collector,
            nan=nan,
            settings=lambda _: defined,
        )
        assert report.read == self.files and not report.failed, report
        return report


def _measured(count: int) -> list[Figure]:
    latency = float(os.environ.get("SKIPBRIDGE_BENCH_LATENCY", "30")) / 1e3
    with _world(count, latency) as world, _spark(world.options) as spark:
        local = ThreadCollector(open_storage(options=world.options))
        return [
            world.measure("schema of a directory", "", lambda: _schema(world.options)),
            world.measure(
                "Spark build, footers",
                "≤ 60" if count == SMALL_FILES else "",
                lambda: world.build(spark, "footer", "footer"),
            ),
            world.measure(
                "Spark build, NaN scan and value lists of a column",
                "",
                lambda: world.build(spark, "scan", "scan", "values:l_shipmode"),
            ),
            world.measure(
                "--local build, footers", "", lambda: world.build(local, "local", "footer")
            ),
        ]


def _schema(options: dict[str, str]) -> None:
    catalog = DirectoryCatalog(open_storage(options=options), _TABLE)
    assert len(catalog.table(catalog.name).columns) == 16


@contextmanager
def _world(count: int, latency: float) -> Iterator[_World]:
    source = small_files(count)
    with tempfile.TemporaryDirectory(dir=root()) as directory:
        gateway = start_versitygw(Path(directory))
        with gateway.server:
            fill(source, gateway.options, _TABLE)
            with SlowStore(gateway.server.port, Behaviour(latency=latency)) as proxy:
                pids = proxy.pid, gateway.server.pid
                yield _World(proxy, gateway.through(proxy.port), count, pids)


def fill(source: Path, options: dict[str, str], table: str) -> None:
    """Puts the Parquet files of a directory below a URI."""
    storage = open_storage(options=options)
    files = sorted(f for f in source.iterdir() if f.is_file() and f.name[0] not in "._")
    with ThreadPoolExecutor(16) as pool:
        for _ in pool.map(
            # Trino's writers give names without an extension
            lambda file: storage.put(f"{table}/{file.stem}.parquet", file.read_bytes()),
            files,
        ):
            pass
    time.sleep(2)  # times are of whole seconds


@contextmanager
def _spark(options: dict[str, str]) -> Iterator[SparkCollector]:
    session = open_session("local[2]")
    try:
        session.range(10).count()
        yield SparkCollector(session, options)
    finally:
        session.stop()
