"""Sync of 100,000 partitions: the listing, and the command's time and memory.

One file in each of 1,000 times 100 directories, which are a table of the local disk and, through
versitygw and a proxy that delays each answer by 30 ms, one of an object store. The metastore is
4.0.1 on Derby, in memory. ``SKIPBRIDGE_BENCH_PARTITIONS`` makes the table smaller.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from functools import partial
from pathlib import Path

from bridge.servers.embedded_metastore import MetastoreSpec
from bridge.servers.metastore_401 import start_metastore_401
from bridge.servers.process import LOOPBACK
from bridge.storage.local_disk.local import LocalStorage
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.table.directory.discovered import list_directories
from tests.benchmark.data import root
from tests.benchmark.figures import Figure, timed
from tests.benchmark.sync import command
from tests.support.slow_store import Behaviour, SlowStore
from tests.support.sync_world import FILES
from tests.support.versitygw import BUCKET, start_versitygw

_RUNS = 3
_LINKS = 30_000  # of one file; file systems allow some 65,000


def run() -> list[Figure]:
    return _measured(int(os.environ.get("SKIPBRIDGE_BENCH_PARTITIONS", "100000")))


def quick() -> list[Figure]:
    return _measured(2_000)


def _measured(partitions: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(dir=root()) as scratch:
        gateway = start_versitygw(Path(scratch))
        with gateway.server:
            table = Path(scratch) / "objects" / BUCKET / "table"
            _fill(table, partitions)
            with SlowStore(gateway.server.port, Behaviour(latency=0.03)) as proxy:
                figures = _listings(table, gateway.through(proxy.port), partitions)
        return figures + _syncs(Path(scratch), table, partitions)


def _fill(table: Path, partitions: int) -> None:
    for number in range(partitions):
        if number % _LINKS == 0:
            source = table.parent.parent / f"source-{number}.parquet"
            source.write_bytes(FILES["first"][0])
        place = table / f"day={number // 100}" / f"k=k{number % 100:02}"
        place.mkdir(parents=True)
        os.link(source, place / "part-0.parquet")


def _listings(table: Path, options: dict[str, str], partitions: int) -> list[Figure]:
    places: list[tuple[str, str, Storage]] = [
        ("local disk", table.as_uri(), LocalStorage()),
        ("S3 with 30 ms", f"s3://{BUCKET}/table", open_storage(options=options)),
    ]
    figures = []
    for where, uri, storage in places:
        seconds = [timed(partial(_list, storage, uri, partitions)) for _ in range(_RUNS)]
        figures.append(_figure(f"{where}: {partitions:,} directories listed", seconds))
    return figures


def _list(storage: Storage, uri: str, expected: int) -> None:
    assert len(list_directories(storage, uri)) == expected


def _figure(work: str, seconds: list[float], note: str = "") -> Figure:
    spread = f"{min(seconds):.2f} to {max(seconds):.2f} s in {len(seconds)} runs"
    return Figure(work, statistics.median(seconds), "s", "", spread + note)


def _syncs(scratch: Path, table: Path, partitions: int) -> list[Figure]:
    spec = MetastoreSpec(scratch / "metastore", port=0, in_memory=True, heap="3g")
    figures: list[Figure] = []
    with start_metastore_401(spec) as server:
        uri = f"thrift://{LOOPBACK}:{server.port}"
        for work, runs, options in (
            ("all new", 1, ("--location", str(table))),
            ("nothing changed", _RUNS, ()),
            ("nothing changed, all compared", _RUNS, ("--full",)),
        ):
            ended = [command(uri, "large", *options) for _ in range(runs)]
            peak = max(memory for _, memory in ended)
            note = f"; peak memory {peak:.0f} MB"
            seconds = [each for each, _ in ended]
            figures.append(_figure(f"sync of {partitions:,} partitions, {work}", seconds, note))
    return figures
