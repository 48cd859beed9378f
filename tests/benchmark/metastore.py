"""Partitions out of real metastores: one by one, in RFC-40's sizes, adapted to latency.

``SKIPBRIDGE_BENCH_PARTITIONS`` makes the large table smaller. Derby's databases are kept from run
to run; PostgreSQL's is filled anew.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bridge.expression.bind import bind
from bridge.expression.parsing.text import parse_where
from bridge.kernel.errors import EnvironmentMissing
from bridge.kernel.types import TRINO, Field
from bridge.metastore._gen import ttypes
from bridge.metastore.adaptive_batch_size import AdaptiveBatchSize
from bridge.metastore.batches import BatchSettings, BatchStream
from bridge.metastore.catalog import HiveCatalog
from bridge.metastore.client import MetastoreClient
from bridge.metastore.connection import Cancellation
from bridge.planner.partitions import select_partitions
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.metastore_401 import start_metastore_401
from bridge.servers.process import LOOPBACK
from bridge.table.model import TableName
from tests.benchmark.data import root
from tests.benchmark.figures import Figure
from tests.support.servers.postgres import driver, start_postgres

LADDER = BatchSettings(adapt=False)
ADAPTIVE = BatchSettings()
ONE_BY_ONE = BatchSettings(start=1, growth=1, cap=1, parallelism=1, adapt=False)
_SCHEMA = "bench"
_KEYS = ("day", "hour")
_COLUMNS = [ttypes.FieldSchema(f"c{i}", "bigint", "") for i in range(8)]
# Statistics of directories that hold nothing would be most of the work of filling.
_FILLING = {"hive.stats.autogather": "false", "metastore.stats.autogather": "false"}


@dataclass(frozen=True, slots=True)
class Running:
    """A metastore that holds the tables."""

    name: str
    client: MetastoreClient


def run() -> list[Figure]:
    return _measured(int(os.environ.get("SKIPBRIDGE_BENCH_PARTITIONS", "100000")))


def quick() -> list[Figure]:
    return _measured(3_000)


def _measured(large: int) -> list[Figure]:
    found: list[Figure] = []
    for name in ("4.0.1 Derby", "2.3.10 Derby", "4.0.1 PostgreSQL"):
        try:
            with _running(name, large) as running:
                found += _by_name(running)
                found += _pruned(running, f"large{large}")
        except EnvironmentMissing as error:
            found.append(Figure(f"{name} not measured: {error.message}", float("nan")))
    return found


@contextmanager
def _running(name: str, large: int) -> Iterator[Running]:
    directory = root() / ("metastore-" + name.lower().replace(" ", "-"))
    version, database = name.split()
    with ExitStack() as stack:
        properties, jars = dict(_FILLING), ()
        if database == "PostgreSQL":
            properties |= stack.enter_context(start_postgres()).metastore("bench")
            jars = (driver(),)
        start = start_embedded_metastore if version == "2.3.10" else start_metastore_401
        spec = MetastoreSpec(
            directory, port=0, properties=properties, class_path=jars, heap="1500m"
        )
        server = stack.enter_context(start(spec))
        client = stack.enter_context(MetastoreClient(f"thrift://{LOOPBACK}:{server.port}"))
        client.create_database(_SCHEMA)
        for table, count in (("small", 2_000), (f"large{large}", large)):
            _fill(client, directory, table, count)
        yield Running(name, client)


def _fill(client: MetastoreClient, directory: Path, table: str, count: int) -> None:
    """A table of so many partitions; what an interrupted run has left out is added."""
    location = directory / "data"
    location.mkdir(exist_ok=True)
    descriptor = ttypes.StorageDescriptor(
        cols=_COLUMNS,
        location=location.as_uri(),
        inputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=ttypes.SerDeInfo(
            serializationLib="org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
            parameters={},
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    if table not in client.get_all_tables(_SCHEMA):
        client.create_table(
            ttypes.Table(
                tableName=table,
                dbName=_SCHEMA,
                owner="bench",
                createTime=0,
                lastAccessTime=0,
                retention=0,
                sd=descriptor,
                partitionKeys=[
                    ttypes.FieldSchema(_KEYS[0], "string", ""),
                    ttypes.FieldSchema(_KEYS[1], "int", ""),
                ],
                parameters={"EXTERNAL": "TRUE"},
                tableType="EXTERNAL_TABLE",
            )
        )
    known = set(client.get_partition_names(_SCHEMA, table))
    values = [(f"d{i // 50:05d}", str(i % 50)) for i in range(count)]
    missing = [v for v in values if f"{_KEYS[0]}={v[0]}/{_KEYS[1]}={v[1]}" not in known]
    for begin in range(0, len(missing), 1000):
        client.add_partitions(
            _SCHEMA,
            table,
            [
                ttypes.Partition(
                    values=list(v),
                    dbName=_SCHEMA,
                    tableName=table,
                    createTime=0,
                    lastAccessTime=0,
                    sd=descriptor,
                    parameters={},
                )
                for v in missing[begin : begin + 1000]
            ],
        )


def _fetch(
    running: Running,
    names: Sequence[str],
    settings: BatchSettings,
    adaptive: AdaptiveBatchSize | None = None,
) -> tuple[float, float]:
    """Seconds until the last batch, and until the first."""

    def fetch(batch: Sequence[str], cancellation: Cancellation) -> int:
        found = running.client.get_partition_locations(_SCHEMA, "small", batch, cancellation)
        assert not found.missing
        return len(found.names)

    started = time.perf_counter()
    with BatchStream(fetch, names, settings, adaptive) as stream:
        fetched = next(stream)
        first = time.perf_counter() - started
        fetched += sum(stream)
    assert fetched == len(names)
    return time.perf_counter() - started, first


def _by_name(running: Running) -> list[Figure]:
    names = running.client.get_partition_names(_SCHEMA, "small")
    found: list[Figure] = []

    def add(
        count: int, how: str, settings: BatchSettings, runs: int, aim: str, first_aim: str = ""
    ) -> None:
        adaptive = AdaptiveBatchSize(settings.target)
        _fetch(running, names[:count], settings, adaptive)
        taken = [_fetch(running, names[:count], settings, adaptive) for _ in range(runs)]
        whole, first = (statistics.median(t[i] for t in taken) for i in (0, 1))
        work = f"{running.name}: {count:,} by name, {how}"
        found.append(Figure(work, whole * 1e3, "ms", aim))
        if first_aim:
            found.append(Figure(f"{work}: first batch", first * 1e3, "ms", first_aim))

    add(200, "one by one", ONE_BY_ONE, 2, "", "")
    add(200, "ladder to 100", LADDER, 7, "≤ 200", "≤ 60")
    add(200, "adaptive", ADAPTIVE, 7, "≤ 100", "≤ 60")
    add(2_000, "ladder to 100", LADDER, 5, "", "")
    add(2_000, "adaptive", ADAPTIVE, 5, "≤ 300", "≤ 60")
    return found


def _pruned(running: Running, name: str) -> list[Figure]:
    """The large table, pruned to one day's 50 partitions on its names, which are then fetched."""
    catalog = HiveCatalog(running.client)
    table = catalog.table(TableName(_SCHEMA, name))
    keys = [Field(c.name, c.type) for c in table.partition_keys]
    where = parse_where("day = 'd00007' AND hour >= 0")[0]
    predicate = bind(where, [Field(c.name, c.type) for c in table.columns], keys, TRINO)
    names_calls, beyond, pruning = [], [], []
    for _ in range(4):
        started = time.perf_counter()
        names = catalog.partition_names(table)
        named = time.perf_counter()
        kept = select_partitions(names, table.partition_keys, predicate, TRINO)
        selected = time.perf_counter()
        fetched = sum(len(b.partitions) for b in catalog.partitions(table, kept.names))
        ended = time.perf_counter()
        assert fetched == len(kept.names) == 50
        names_calls.append(named - started)
        pruning.append(selected - named)
        beyond.append(ended - named)
    work = f"{running.name}: {len(names):,} partitions"
    note = f"pruning {statistics.median(pruning[1:]) * 1e3:.0f} ms"
    return [
        Figure(f"{work}, the names", statistics.median(names_calls[1:]) * 1e3, "ms"),
        Figure(
            f"{work}, pruned to 50 and fetched",
            statistics.median(beyond[1:]) * 1e3,
            "ms",
            "≤ 500 beyond the names",
            note,
        ),
    ]
