"""A clustered and published table in Trino, beside the same rows in Iceberg.

39,000 files of flights (3,000,000 rows): skipbridge clusters them by time and publishes the result;
Trino writes the same rows into an Iceberg table that is sorted by time, with the same codec. Trino
reads both, Iceberg by its native file system, in turn. So it does with two more tables: the flights
sorted by delay, which is not the column asked for, and 2,000 files of 200 columns.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from bridge.index.generations.replacements import DIRECTORY as CLUSTERED
from bridge.kernel.config import variable_of
from tests.benchmark import data
from tests.benchmark.clustered import flights, wide
from tests.benchmark.clustering_data import linked
from tests.benchmark.figures import Figure, interleaved
from tests.benchmark.trino import cluster

_CLIENTS = 32
_SECONDS = 15.0
_TABLE = "bench.flights"
_SORTED = {"flights": "ts", "by_delay": "delay", "broad": "ts"}
_Query = Callable[[str, str], list[Any]]

_QUERIES = (
    ("one hour", f"SELECT count(*), sum(delay) FROM {_TABLE} WHERE $hour", "≤ 0.7"),
    ("one week", f"SELECT count(*), sum(delay) FROM {_TABLE} WHERE $week", "≤ 1"),
    ("top 10", f"SELECT * FROM {_TABLE} ORDER BY ts DESC, delay, flight LIMIT 10", "≤ 1"),
    ("LIMIT 10", f"SELECT count(*) FROM (SELECT * FROM {_TABLE} LIMIT 10)", "≤ 1"),
    ("count", f"SELECT count(*) FROM {_TABLE}", "≤ 1"),
    ("min and max", f"SELECT min(ts), max(ts), min(delay), max(delay) FROM {_TABLE}", "≤ 1"),
    ("GROUP BY", f"SELECT origin, count(*) FROM {_TABLE} GROUP BY origin ORDER BY 1", "≤ 1.1"),
    (
        "all columns",
        "SELECT max(ts), sum(flight), sum(delay), count(DISTINCT origin), max(destination)"
        f" FROM {_TABLE}",
        "≤ 1.1",
    ),
)
_OTHERS = (
    ("sorted by delay, one hour", "SELECT count(*), sum(delay) FROM bench.by_delay WHERE $hour"),
    ("sorted by delay, all columns", _QUERIES[-1][1].replace(_TABLE, "bench.by_delay")),
    (
        "200 columns, one value of 150,000",
        "SELECT * FROM bench.broad WHERE ts = $middle",
    ),
    (
        "200 columns, 1 % of the rows, 3 columns",
        "SELECT count(c0), sum(c1), max(c2) FROM bench.broad"
        " WHERE ts BETWEEN $middle AND $middle + 1500",
    ),
    (
        "200 columns, all",
        "SELECT " + ", ".join(f"max(c{i})" for i in range(199)) + " FROM bench.broad",
    ),
)


def run() -> list[Figure]:
    return _measured(data.SMALL_FILES, 2_000, 15, _SECONDS)


def quick() -> list[Figure]:
    return _measured(400, 20, 1, 1.0)


def _measured(count: int, broad: int, pairs: int, seconds: float) -> list[Figure]:
    work = data.root() / "clustered-queries"
    target = linked(flights(count), work / "flights")
    tables = {
        "flights": target,
        "by_delay": linked(flights(count), work / "by_delay"),
        "broad": linked(wide(broad), work / "broad"),
    }
    with cluster(tables, prepare=_publish, catalogs=_iceberg, plugins=("hive", "iceberg")) as query:
        query("iceberg", 'CREATE SCHEMA iceberg."bench"')
        for name, column in _SORTED.items():
            query(
                "bridge",
                f"""CREATE TABLE iceberg."bench".{name} WITH (format = 'PARQUET',"""
                f" sorted_by = ARRAY['{column}']) AS SELECT * FROM bench.{name}",
            )
            query("iceberg", f"ALTER TABLE bench.{name} EXECUTE optimize")
        figures = [_sizes(query, target)]
        hours = count * 10 // 60
        for title, template, aim in (*_QUERIES, *((*each, "≤ 1.1") for each in _OTHERS)):
            sql = template.replace("$hour", _between(hours // 2, 1))
            sql = sql.replace("$week", _between(hours // 2, 168))
            sql = sql.replace("$middle", str(broad * 77 // 2))
            assert query("bridge", sql) == query("iceberg", sql), sql
            ours, theirs, ratio = interleaved(
                partial(query, "bridge", sql), partial(query, "iceberg", sql), pairs, 30
            )
            note = f"Iceberg {theirs:.3f} s"
            figures += [
                Figure(title, ours, note=note),
                Figure(f"{title}: over Iceberg", ratio, "x", aim),
            ]
        rates = {each: _rate(query, each, hours, seconds) for each in ("bridge", "iceberg")}
        figures += [
            Figure(f"{_CLIENTS} clients, random hours: {each}", rate, "queries/s")
            for each, rate in rates.items()
        ]
        times = rates["bridge"] / rates["iceberg"]
        figures.append(Figure(f"{_CLIENTS} clients: times Iceberg's queries", times, "x", "≥ 2.5"))
    return figures


def _iceberg(scratch: Path) -> dict[str, dict[str, str]]:
    return {
        "iceberg": {
            "connector.name": "iceberg",
            "iceberg.compression-codec": "ZSTD",
            "iceberg.catalog.type": "TESTING_FILE_METASTORE",
            "hive.metastore.catalog.dir": "local:///iceberg",
            "fs.native-local.enabled": "true",
            "local.location": str(scratch),
        }
    }


def _publish(uri: str) -> None:
    """Clusters and publishes, as a user does."""
    environment = os.environ | {variable_of("metastore.uri"): uri}
    for name, column in _SORTED.items():
        table = f"bench.{name}"
        for words in (f"run {table} --now --by {column} --local", f"publish {table} --settled 0"):
            command = [sys.executable, "-m", "bridge", "cluster", *words.split()]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(done.stdout + done.stderr)


def _sizes(query: _Query, target: Path) -> Figure:
    """What both tables take; each is one file."""
    files = 'SELECT count(*), sum(file_size_in_bytes) FROM bench."flights$files"'
    number, theirs = query("iceberg", files)[0]
    ours = [file.stat().st_size for file in (target / CLUSTERED).glob("published-*/**/*-data")]
    note = f"{len(ours)} files of {sum(ours) / 1e6:.2f} MB; Iceberg {number} of {theirs / 1e6:.2f}"
    return Figure("size over Iceberg's", sum(ours) / theirs, "x", "≤ 1.05", note)


def _between(first: int, hours: int) -> str:
    begin = dt.datetime(2020, 1, 1) + dt.timedelta(hours=first)
    end = begin + dt.timedelta(hours=hours)
    return f"ts >= TIMESTAMP '{begin}' AND ts < TIMESTAMP '{end}'"


def _rate(query: _Query, catalog: str, hours: int, seconds: float) -> float:
    """Queries a second of so many clients."""

    def ask(client: int) -> int:
        drawn, asked = random.Random(client), 0
        while time.perf_counter() < end:
            where = _between(drawn.randrange(hours), 1)
            query(catalog, f"SELECT count(*), sum(delay) FROM {_TABLE} WHERE {where}")
            asked += 1
        return asked

    with ThreadPoolExecutor(_CLIENTS) as clients:
        end = time.perf_counter() + seconds / 3
        list(clients.map(ask, range(_CLIENTS)))  # warm
        begun = time.perf_counter()
        end = begun + seconds
        asked = sum(clients.map(ask, range(_CLIENTS)))
        return asked / (time.perf_counter() - begun)
