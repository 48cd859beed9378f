"""Sync beside MSCK REPAIR in HiveServer2 4.0.1: 10,000 new partitions, none changed, 10 changed.

Both work on the same directories and the same metastore (4.0.1 on Derby, in memory), in turn; each
first run makes a table anew. Sync runs in a process that has been started, as HiveServer2 has; its
peak of memory is that of the command, in a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.hive.server import HiveSession
from bridge.metastore.calls import MetastoreSettings
from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.process import LOOPBACK
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.table import TableSync
from bridge.table.model import TableName
from tests.benchmark.figures import Figure, timed
from tests.support.servers.hiveserver2 import (
    HiveServer2Spec,
    start_hiveserver2,
    start_metastore_for_hiveserver2,
)

_CHANGED = 10
_COLUMNS = "id bigint, name string, price double, flag boolean, a int, b int, c string, d date"


def run() -> list[Figure]:
    return _run(10_000, 3)


def quick() -> list[Figure]:
    return _run(500, 1)


def _run(partitions: int, runs: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="skipbridge-sync-") as scratch:
        base = Path(scratch)
        lake = _Lake(base / "table", partitions)
        figures = _beside_msck(base, lake, runs)
        spec = MetastoreSpec(base / "metastore-2", port=0, in_memory=True)
        with start_embedded_metastore(spec) as server, _client(server.port) as client:
            ours: dict[str, list[float]] = {}
            for number in range(runs):
                _syncs(client, lake, f"sync{number}", ours)
            for work, seconds in ours.items():
                figures.append(
                    Figure(f"{work}: sync, metastore 2.3.10", statistics.median(seconds), "s")
                )
    return figures


def _beside_msck(base: Path, lake: _Lake, runs: int) -> list[Figure]:
    figures: list[Figure] = []
    spec = MetastoreSpec(base / "metastore-4", port=0, in_memory=True, heap="1g")
    ours: dict[str, list[float]] = {}
    msck: dict[str, list[float]] = {}
    with start_metastore_for_hiveserver2(spec) as metastore, _client(metastore.port) as client:
        uri = f"thrift://{LOOPBACK}:{metastore.port}"
        hive = HiveServer2Spec(base / "hive", uri, port=0)
        with (
            start_hiveserver2(hive) as server,
            HiveSession(f"{LOOPBACK}:{server.port}") as session,
        ):
            session.query("CREATE DATABASE IF NOT EXISTS bench")
            # Both have done the work once before a clock runs.
            warm = _Lake(base / "warm", 50)
            _syncs(client, warm, "warm_sync", {})
            _repairs(session, warm, "warm_msck", {})
            for number in range(runs):
                _syncs(client, lake, f"sync{number}", ours)
                _repairs(session, lake, f"msck{number}", msck)
        _, peak = command(uri, "command", "--location", str(lake.root))
        figures += [Figure("peak memory of the command", peak, "MB", "bounded")]
    for work, seconds in ours.items():
        aim = "≤ 2" if "nothing" in work else ""
        figures.append(Figure(f"{work}: sync", statistics.median(seconds), "s", aim))
        figures.append(Figure(f"{work}: MSCK REPAIR", statistics.median(msck[work]), "s"))
        ratios = [theirs / own for theirs, own in zip(msck[work], seconds, strict=True)]
        figures.append(Figure(f"{work}: times faster", statistics.median(ratios), "x", "≥ 2"))
    return figures


def _client(port: int) -> MetastoreClient:
    return MetastoreClient(f"thrift://{LOOPBACK}:{port}", MetastoreSettings(call_timeout=600))


class _Lake:
    """Directories of one small file each, two levels; some of them can go and come back."""

    def __init__(self, root: Path, partitions: int) -> None:
        self.root = root
        sample = {name: pa.array([1, 2], pa.int64()) for name in ("id", "a")}
        root.parent.mkdir(parents=True, exist_ok=True)
        file = root.parent / f"{root.name}.parquet"
        pq.write_table(pa.table(sample), file)
        self._content = file.read_bytes()
        self.partitions = partitions
        for i in range(partitions):
            self._write(i)

    def _write(self, number: int) -> None:
        directory = self.root / f"day={number // 100}" / f"k=k{number % 100:02}"
        directory.mkdir(parents=True)
        (directory / "part-0.parquet").write_bytes(self._content)

    @contextlib.contextmanager
    def changed(self) -> Iterator[None]:
        """Half of ten partitions are gone, the other half are new."""
        half = _CHANGED // 2
        for i in range(half):
            shutil.rmtree(self.root / "day=0" / f"k=k{i:02}")
            self._write(self.partitions + i)
        try:
            yield
        finally:
            for i in range(half):
                number = self.partitions + i
                day = self.root / f"day={number // 100}"
                shutil.rmtree(day / f"k=k{number % 100:02}")
                if not any(day.iterdir()):
                    day.rmdir()  # MSCK fails at a directory that is no partition
                self._write(i)


def _works(partitions: int) -> tuple[str, str, str]:
    return (
        f"{partitions:,} new partitions",
        f"nothing changed of {partitions:,}",
        f"{_CHANGED} changed of {partitions:,}",
    )


def _syncs(
    client: MetastoreClient, lake: _Lake, table: str, seconds: dict[str, list[float]]
) -> None:
    def sync(expected: int, **options: bool) -> float:
        request = SyncRequest(TableName("bench", table), str(lake.root), **options)  # type: ignore[arg-type]
        job = TableSync(client, LocalStorage(), request, SyncSettings())
        taken = timed(lambda: reports.append(job.run()))
        report = reports[-1]
        assert len(report.added) + len(report.dropped) == expected, report
        return taken

    reports: list = []  # type: ignore[type-arg]
    new, none, some = _works(lake.partitions)
    seconds.setdefault(new, []).append(sync(lake.partitions))
    seconds.setdefault(none, []).append(sync(0))
    seconds.setdefault(f"{none}, all compared", []).append(sync(0, full=True))
    with lake.changed():
        seconds.setdefault(some, []).append(sync(_CHANGED))


def _repairs(
    session: HiveSession, lake: _Lake, table: str, seconds: dict[str, list[float]]
) -> None:
    name = f"bench.{table}"
    session.query(
        f"CREATE EXTERNAL TABLE {name} ({_COLUMNS}) PARTITIONED BY (day int, k string) "
        f"STORED AS PARQUET LOCATION '{lake.root.as_uri()}'",
    )

    def repair(expected: int) -> float:
        taken = timed(lambda: session.query(f"MSCK REPAIR TABLE {name} SYNC PARTITIONS"))
        assert len(session.query(f"SHOW PARTITIONS {name}")) == expected
        return taken

    new, none, some = _works(lake.partitions)
    seconds.setdefault(new, []).append(repair(lake.partitions))
    seconds.setdefault(none, []).append(repair(lake.partitions))
    seconds.setdefault(f"{none}, all compared", []).append(repair(lake.partitions))
    with lake.changed():
        seconds.setdefault(some, []).append(repair(lake.partitions))


def command(uri: str, table: str, *options: str) -> tuple[float, float]:
    """Runs `skipbridge sync` of a table: its seconds, and its largest resident memory in MB."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "bridge", "sync", f"bench.{table}", *options),
            *("--metastore-uri", uri),
        ],
        stdout=subprocess.DEVNULL,
        env={**os.environ, "SKIPBRIDGE_CONFIG": os.devnull},
    )
    watched = psutil.Process(process.pid)
    peak = 0
    while process.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess, subprocess.TimeoutExpired):
            peak = max(peak, watched.memory_info().rss)
            process.wait(0.02)
    assert process.returncode == 0
    return time.perf_counter() - started, peak / 1e6
