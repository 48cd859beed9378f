"""Queries of a table in 1,824 partitions, many clients at once.

TPC-DS SF1 partitioned by date beside the stock hive connector, as in `tests.benchmark.tpc`; a flat
directory of 39,000 files for clients that each read one day. `tests.benchmark.concurrency` does the
same without Trino. ``DPP_SECONDS`` is how long each number of clients works, 20 if unset.
"""

from __future__ import annotations

import datetime
import os
import random
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import trino

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.storage.routed import open_storage
from bridge.table.directory.catalog import DirectoryCatalog
from bridge.table.model import TableName
from tests.benchmark.data import small_files
from tests.benchmark.figures import Figure
from tests.benchmark.tpc import CATALOGS, Engines, compare, engines, measure, print_times
from tests.benchmark.tpc_data import (
    PARTITIONED,
    SCHEMA,
)
from tests.support.tpc import texts

_MONTH = (
    "SELECT sum(ss_quantity) FROM ${database}.${schema}.store_sales, "
    "${database}.${schema}.date_dim WHERE ss_sold_date_sk = d_date_sk AND d_year = %d "
    "AND d_moy = %d"
)
_DAY = (
    "SELECT count(*), sum(l_extendedprice) FROM ${database}.${schema}.lineitem "
    "WHERE l_shipdate >= DATE '%s' AND l_shipdate < DATE '%s'"
)
_COUNT = "SELECT count(*) FROM ${database}.${schema}.store_sales"
_LINEITEM = TableName(SCHEMA, "lineitem")
_CLIENTS = (1, 16, 64)


def run() -> list[Figure]:
    return _run(5, float(os.environ.get("DPP_SECONDS") or 20), _CLIENTS)


def quick() -> list[Figure]:
    """Fewer runs, no 64 clients, each number of clients for a few seconds."""
    return _run(2, float(os.environ.get("DPP_SECONDS") or 6), _CLIENTS[:2])


def _run(runs: int, seconds: float, clients: tuple[int, ...]) -> list[Figure]:
    with engines(PARTITIONED, _with_flat_files) as running:
        figures = _queries(running, runs)
        return figures + _at_once(running, seconds, clients)


def _queries(running: Engines, runs: int) -> list[Figure]:
    figures = []
    for name, text, aim in (
        ("one month of store_sales by date_dim", _MONTH % (2000, 11), "≤ 1.0x"),
        ("count(*) of store_sales", _COUNT, "≤ 0.25 s"),
        ("q41", texts("tpcds")["q41"], "≤ 1.05x"),
        ("q81", texts("tpcds")["q81"], "≤ 1.05x"),
    ):
        for catalog in CATALOGS:
            running.rows(catalog, text)
        wrong = compare(running, name, text)
        if wrong:
            raise AssertionError("; ".join(wrong))
        measured = measure(running, name, text, runs)
        print_times(measured)
        note = ", ".join(f"{c} {s:.3f} s" for c, s in measured.seconds.items())
        figures.append(Figure(name, measured.ours, "s", aim, f"{measured.ratio:.2f}x; {note}"))
    return figures


@dataclass(frozen=True, slots=True)
class _Load:
    """What some clients saw, each asking again as soon as it was answered."""

    clients: int
    latencies: list[float]
    elapsed: float
    errors: list[str]

    def figures(self, work: str) -> list[Figure]:
        taken = self.latencies or [float("nan")]
        errors = f"{len(self.errors)} errors" + "".join(f": {e}" for e in self.errors[:1])
        figure = Figure(
            f"{work}, {self.clients} clients",
            len(self.latencies) / self.elapsed,
            "queries/s",
            "",
            f"median {statistics.median(taken):.2f} s, longest {max(taken):.2f} s, {errors}",
        )
        print(f"{figure.work}: {figure.value:.2f} queries/s, {figure.note}", flush=True)
        return [figure]


def _at_once(running: Engines, seconds: float, clients: tuple[int, ...]) -> list[Figure]:
    def month(catalog: str) -> Callable[[random.Random], object]:
        return lambda rng: running.rows(
            catalog, _MONTH % (rng.randint(1998, 2002), rng.randint(1, 12))
        )

    def day(rng: random.Random) -> object:
        first = datetime.date(1992, 2, 1) + datetime.timedelta(days=rng.randrange(2_300))
        return running.rows("bridge", _DAY % (first, first + datetime.timedelta(days=1)))

    figures: list[Figure] = []
    for count in clients:
        for catalog in CATALOGS:
            load = _load(month(catalog), count, seconds)
            figures += load.figures(f"a random month by date_dim, {catalog}")
        figures += _load(day, count, seconds).figures("a random day of 39,000 files, bridge")
    return figures


def _load(ask: Callable[[random.Random], object], clients: int, seconds: float) -> _Load:
    ask(random.Random(0))
    started = time.perf_counter()

    def client(seed: int) -> tuple[list[float], list[str]]:
        rng, taken, errors = random.Random(seed), [], []
        while time.perf_counter() - started < seconds:
            asked = time.perf_counter()
            try:
                ask(rng)
            except (trino.exceptions.Error, OSError) as error:
                errors.append(str(error))
            else:
                taken.append(time.perf_counter() - asked)
        return taken, errors

    with ThreadPoolExecutor(clients) as pool:
        answers = list(pool.map(client, range(1, clients + 1)))
    elapsed = time.perf_counter() - started
    return _Load(
        clients, [s for a in answers for s in a[0]], elapsed, [e for a in answers for e in a[1]]
    )


def _with_flat_files(uri: str, index_root: Path) -> None:
    """Registers and indexes lineitem in 39,000 files beside the layout's tables."""
    with MetastoreClient(uri) as client:
        catalog = DirectoryCatalog(open_storage(), f"file://{small_files()}")
        register_table(client, _LINEITEM, catalog.table(catalog.name), [])
    settings = {"metastore.uri": uri, "index.root": index_root.as_uri()}
    config = Config({key: Setting(text, "benchmark") for key, text in settings.items()})
    index_table(config, str(_LINEITEM), local=True, progress=lambda done, total: None, say=print)
