"""TPC-H and TPC-DS SF1 in Trino 476, beside the stock hive connector in two configurations.

For each query the better of the two counts: over a file metastore with Trino's native local file
system, and over the Thrift metastore that our planner serves; both have column statistics by
ANALYZE. The three run in turn. A query that was slower is asked nine times more, and those runs
count. Rows that differ fail the run.

``TPCDS_LAYOUT`` (tpcds, tpcds-partitioned or tpcds-small-files, or several), ``TPCDS_QUERIES`` and
``TPCH_QUERIES`` (such as q98,q79) choose; ``TPC_RUNS`` is the number of measured runs, 5 if unset.
The metastore records notification events, as docs/how-to/metastore.md recommends;
``TPC_WITHOUT_EVENTS=1`` starts one that does not.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import trino

from bridge.servers.planner import start_planner
from bridge.trino.plugin import build_plugin
from bridge.trino.server import TrinoSpec, start_trino
from tests.benchmark import tpc_data
from tests.benchmark.figures import Figure, show, timed
from tests.benchmark.tpc_data import Layout, over_thrift, served
from tests.support.servers.stock_trino import stock_plugins
from tests.support.tpc import difference, in_schema, texts

CATALOGS = ("bridge", "hive_file", "hive_thrift")
_ATTEMPTS = 10
_WARM_UPS, _FEW = 3, 30  # of so few queries
_RUNS_AGAIN = 9
LAYOUTS = {
    layout.name: (layout, aim)
    for layout, aim in (
        (tpc_data.UNPARTITIONED, 0.75),
        (tpc_data.PARTITIONED, 0.75),
        (tpc_data.SMALL_FILES, 0.4),
    )
}
TEN = ("q03", "q07", "q17", "q34", "q41", "q52", "q79", "q81", "q89", "q98")
_SLOWER, _WITHIN = 1.05, 0.030


@dataclass(frozen=True, slots=True)
class Engines:
    """One Trino whose catalogs read the same tables.

    Attributes:
        metastore: URI of the Thrift metastore.
        planner: address of the planner.
        catalogs: ours, and those of stock hive.
    """

    port: int
    metastore: str
    planner: str
    catalogs: tuple[str, ...] = CATALOGS

    def rows(self, catalog: str, text: str, session: Mapping[str, str] | None = None) -> list[Any]:
        """Runs a statement with placeholders for catalog and schema."""
        with trino.dbapi.connect(
            host="127.0.0.1", port=self.port, user="bench", session_properties=session
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(in_schema(text, catalog, tpc_data.SCHEMA))
            return list(cursor.fetchall())


@dataclass(frozen=True, slots=True)
class Measured:
    """Median seconds of one query by catalog."""

    query: str
    seconds: Mapping[str, float]

    @property
    def ours(self) -> float:
        return self.seconds["bridge"]

    @property
    def stock(self) -> float:
        return min(s for catalog, s in self.seconds.items() if catalog != "bridge")

    @property
    def ratio(self) -> float:
        return self.ours / self.stock

    @property
    def slower(self) -> bool:
        return self.ratio > _SLOWER and self.ours - self.stock > _WITHIN


@contextmanager
def engines(
    layout: Layout, prepare: Callable[[str, Path], None] = lambda uri, index_root: None
) -> Iterator[Engines]:
    """Metastore, planner as `serve` starts it, and Trino over a layout.

    Args:
        prepare: registers and indexes more tables, given the metastore's URI and the indexes' root.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="skipbridge-tpc-")))
        uri, index_root = stack.enter_context(served(layout, scratch, prepare))
        settings = {
            "SKIPBRIDGE_INDEX_ROOT": index_root.as_uri(),
            "SKIPBRIDGE_PLANNER_CACHE_DIR": str(scratch / "cache"),
            "SKIPBRIDGE_SERVICE_PROCESSES": "0",  # as `serve` chooses
        }
        planner = stack.enter_context(start_planner(scratch / "planner", uri, environment=settings))
        plugin = build_plugin("476", scratch / "plugin", None, "skipbridge", lambda line: None)
        address = f"127.0.0.1:{planner.port}"
        ours = {"connector.name": "skipbridge", "skipbridge.planner": address}
        catalogs = (ours, layout.stock(), over_thrift(uri))
        server = stack.enter_context(
            start_trino(
                TrinoSpec(
                    scratch / "trino",
                    catalogs=dict(zip(CATALOGS, catalogs, strict=True)),
                    plugins={"skipbridge": plugin, **stock_plugins("hive")},
                    port=0,
                    heap="5G",
                )
            )
        )
        print(f"{layout.name}: Trino's and the planner's logs are below {scratch}", flush=True)
        yield Engines(server.port, uri, address)


def tpch() -> list[Figure]:
    return _figures(tpc_data.TPCH, 0.75, chosen("tpch"), runs_or(5))


def quick_tpch() -> list[Figure]:
    return _figures(tpc_data.TPCH, 0.75, chosen("tpch"), runs_or(2))


def tpcds() -> list[Figure]:
    layouts = os.environ.get("TPCDS_LAYOUT") or ",".join(LAYOUTS)
    return [
        figure
        for layout, aim in (LAYOUTS[name] for name in layouts.split(","))
        for figure in _figures(layout, aim, chosen("tpcds"), runs_or(5))
    ]


def quick_tpcds() -> list[Figure]:
    """Ten queries, partitioned, unless the environment chooses others."""
    layout, aim = LAYOUTS[os.environ.get("TPCDS_LAYOUT") or tpc_data.PARTITIONED.name]
    ten = {name: texts("tpcds")[name] for name in TEN}
    queries = chosen("tpcds") if os.environ.get("TPCDS_QUERIES") else ten
    return _figures(layout, aim, queries, runs_or(2))


def chosen(benchmark: str) -> dict[str, str]:
    """The queries of ``tpch`` or ``tpcds`` that the environment names, or all."""
    known = texts(benchmark)
    names = os.environ.get(f"{benchmark.upper()}_QUERIES")
    return {name: known[name] for name in names.split(",")} if names else known


def runs_or(usual: int) -> int:
    """How many runs the environment wants measured."""
    return int(os.environ.get("TPC_RUNS") or usual)


def _figures(layout: Layout, aim: float, queries: Mapping[str, str], runs: int) -> list[Figure]:
    with engines(layout) as running:
        return asked(running, layout.name, aim, queries, runs)


def asked(
    running: Engines, tables: str, aim: float, queries: Mapping[str, str], runs: int
) -> list[Figure]:
    """Asks all queries of all catalogs. Rows that differ are an AssertionError at the end."""
    refused: list[str] = []
    wrong: list[str] = []
    measured: list[Measured] = []
    _warm(running, list(queries.values()))
    for name, text in queries.items():
        try:
            different = compare(running, name, text)
        except trino.exceptions.TrinoUserError as error:
            refused.append(name)
            print(f"{name}: Trino refuses it: {error.message}", flush=True)
            continue
        if different:
            wrong += different
            continue
        measured.append(measure(running, name, text, runs))
        print_times(measured[-1])
    measured = [_again(running, m, queries[m.query]) if m.slower else m for m in measured]
    figures = _summary(tables, aim, measured, refused)
    if wrong:
        show(f"{tables}, without the queries that differ", figures)
        raise AssertionError(f"{tables}: {len(wrong)} queries differ: " + "; ".join(wrong))
    return figures


def _again(running: Engines, first: Measured, text: str) -> Measured:
    """A query that seemed slower, asked more often: the better of two stock medians of few runs is
    below what either takes."""
    print_times(second := measure(running, first.query, text, _RUNS_AGAIN))
    return second


def _warm(running: Engines, queries: Sequence[str]) -> None:
    """Code is compiled before the first query is measured; each catalog has classes of its own."""
    rounds = _WARM_UPS if len(queries) <= _FEW else 1
    for text, catalog in product(queries * rounds, running.catalogs):
        # Texts that Trino refuses are told of later.
        with suppress(trino.exceptions.TrinoQueryError):
            running.rows(catalog, text)


def compare(running: Engines, name: str, text: str) -> list[str]:
    """Rows and failures beside those of the first stock catalog; a difference is printed at once.

    q15 of TPC-H compares a sum of doubles with itself, which depends on the order of the rows: what
    differs is asked again.

    Errors:
        TrinoUserError: that one refuses the query.
    """
    wrong = []
    ours, first, *others = running.catalogs
    stock = running.rows(first, text)
    for catalog in (ours, *others):
        for attempt in range(_ATTEMPTS):
            if attempt:
                stock = running.rows(first, text)
            try:
                found = difference(running.rows(catalog, text), stock)
            except trino.exceptions.TrinoQueryError as error:
                found = error.message
            if not found:
                break
        if found:
            wrong.append(f"{name} of {catalog}: {found}")
            print(f"ROWS DIFFER: {wrong[-1]}", flush=True)
    return wrong


def measure(running: Engines, name: str, text: str, runs: int) -> Measured:
    """Medians of runs in turn; `compare` has warmed the query."""
    seconds: dict[str, list[float]] = {catalog: [] for catalog in running.catalogs}
    for number in range(runs):
        # Each comes first in turn.
        first = number % len(running.catalogs)
        for catalog in running.catalogs[first:] + running.catalogs[:first]:
            taken = timed(lambda catalog=catalog: running.rows(catalog, text))  # type: ignore[misc]
            seconds[catalog].append(taken)
    return Measured(name, {c: statistics.median(s) for c, s in seconds.items()})


def print_times(m: Measured) -> None:
    """One line of seconds by catalog."""
    times = "  ".join(f"{catalog} {seconds:6.3f}" for catalog, seconds in m.seconds.items())
    print(f"{m.query}  {times}  ratio {m.ratio:5.2f}{'  SLOWER' if m.slower else ''}", flush=True)


def _summary(
    tables: str, aim: float, measured: Sequence[Measured], refused: Sequence[str]
) -> list[Figure]:
    ours, stock = sum(m.ours for m in measured), sum(m.stock for m in measured)
    per_stock = [
        Figure(f"{tables}: {catalog}, all", sum(m.seconds[catalog] for m in measured))
        for catalog in (measured[0].seconds if measured else ())
    ]
    worst = sorted(measured, key=lambda m: m.ratio, reverse=True)[:10]
    note = f"refused by Trino: {', '.join(refused)}" if refused else ""
    return [
        *per_stock,
        Figure(f"{tables}: total over the better's", ours / stock, "", f"≤ {aim}", note),
        Figure(
            f"{tables}: of {len(measured)} queries slower than {_SLOWER} times and by 30 ms",
            sum(m.slower for m in measured),
            "",
            "0",
        ),
        *(
            Figure(f"{tables}: {m.query}", m.ratio, "x", "", f"{m.ours:.3f}/{m.stock:.3f} s")
            for m in worst
        ),
    ]
