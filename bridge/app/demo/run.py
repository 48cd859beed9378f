"""The demo on one machine: write, register, index, plan, query a real Trino, compare, stop."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bridge.app.demo.data import write_flights
from bridge.app.explain import explain
from bridge.expression.parsing.text import parse_where
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting, variable_of
from bridge.kernel.errors import BridgeError, EnvironmentMissing
from bridge.kernel.threads import Threads
from bridge.planner.reports.comparison import Way, comparison
from bridge.planner.reports.html import page
from bridge.planner.reports.report import PruneReport
from bridge.planner.reports.text import funnel
from bridge.planner.request import ScanRequest
from bridge.runtime.compose import hive_catalog_of, planner_of, split_settings, storage_of
from bridge.runtime.create_table import create_table
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import Server
from bridge.table.model import TableName
from bridge.trino.client import trino_client
from bridge.trino.plugin import build_plugin
from bridge.trino.server import TrinoSpec, fetch_server, fetched_megabytes, start_trino

TABLE = "demo.flights"
Say = Callable[[str], None]
Progress = Callable[[str], AbstractContextManager[Callable[[int, int], None]]]


@dataclass(frozen=True, slots=True)
class Query:
    """One query: its title, its SQL, and its condition for `explain`."""

    title: str
    select: str
    where: str

    @property
    def sql(self) -> str:
        where = f" WHERE {self.where}" if self.where else ""
        return self.select.replace("$WHERE", where)


QUERIES = (
    Query(
        "one evening hour of one day",
        "SELECT carrier, flight, dest, dep_delay FROM flights$WHERE ORDER BY flight, carrier",
        "month = 3 AND day = 8 AND sched_dep_time BETWEEN 1700 AND 1759 AND dep_delay > 60",
    ),
    Query(
        "a day, found by its timestamp alone: no partition is named",
        "SELECT origin, count(*) AS flights, max(dep_delay) AS worst FROM flights$WHERE"
        " GROUP BY origin ORDER BY origin",
        "time_hour >= TIMESTAMP '2013-07-04 00:00:00'"
        " AND time_hour < TIMESTAMP '2013-07-05 00:00:00'",
    ),
    Query(
        "the longest delays of the year",
        "SELECT month, day, carrier, flight, dep_delay FROM flights$WHERE"
        " ORDER BY dep_delay DESC, flight LIMIT 5",
        "dep_delay > 900",
    ),
    Query(
        "every flight: nothing can be skipped, but small files share splits",
        "SELECT carrier, count(*) AS flights, avg(arr_delay) AS delay FROM flights$WHERE"
        " GROUP BY carrier ORDER BY carrier",
        "",
    ),
)


def run_demo(
    out: Path, *, trino_version: str, plugin_from: Path | None, say: Say, progress: Progress
) -> int:
    """Runs the demo in ``out``. Stops everything it started, also after errors.

    Returns:
        0 if every query returned the same rows in each way.
    """
    started = time.monotonic()
    with ExitStack() as stack:
        if out.exists():
            shutil.rmtree(out)
        out.mkdir(parents=True, mode=0o700)
        root = out / "warehouse" / "flights"
        # These mostly wait, for the network or for a JVM, while the table is written and indexed.
        background = stack.enter_context(Threads(4, "demo"))
        server = background.submit(fetch_server, trino_version)
        connector = background.submit(
            build_plugin, trino_version, out / "plugin", plugin_from, "skipbridge", _quiet
        )
        metastore = _start(
            stack,
            background,
            start_embedded_metastore,
            MetastoreSpec(out / "metastore", warehouse=out / "warehouse", port=0, in_memory=True),
        )
        have, size = fetched_megabytes(trino_version)
        say(
            "downloading meanwhile, if they are not here yet: Trino's server "
            f"({have} of {size or 190} MB here), and the connector's libraries (100 MB)"
        )
        say("1/5  writing 336,776 flights as about 5,000 Parquet files by month")
        with progress("files") as tick:
            files = write_flights(root, tick)
        say(f"     {files} files below {root}")

        say("2/5  starting a Hive metastore (embedded in PySpark's jars) and two planners")
        uri = f"thrift://127.0.0.1:{metastore.result().port}"
        config = _config({"metastore.uri": uri})
        planner = start_planner(out / "planner", uri)
        stack.callback(planner.stop)
        # The baseline: no index, and one split per file, as engines do by default.
        by_file = {
            "metastore.uri": uri,
            "index.root": str(out / "no-index"),
            "splits.max_files": "1",
        }
        second = start_planner(
            out / "planner-file-by-file",
            uri,
            environment={variable_of(key): value for key, value in by_file.items()},
        )
        stack.callback(second.stop)
        ports = {"bridge": planner.port, "file_by_file": second.port}
        trino = _start(
            stack, background, _start_trino, trino_version, out / "trino", server, connector, ports
        )

        say(f"3/5  registering {TABLE}")
        with progress("partitions") as tick:
            created = create_table(config, TABLE, str(root), dry_run=False, progress=tick)
        say(f"     {created['partitions']} partitions, {len(created['columns'])} columns")

        say("4/5  building its index")
        with progress("files indexed") as tick:
            built = index_table(config, TABLE, local=None, progress=tick, say=say)
        say(f"     generation {built['generation']}: {built['files']} files")

        say(f"5/5  building the connector for Trino {trino_version} and starting it")
        asked = time.monotonic()
        with progress("MB of Trino's server") as tick:
            parts: list[Future[Any]] = [server, connector]
            while wait(parts, 0.5).not_done:
                tick(*fetched_megabytes(trino_version))
        waited = time.monotonic() - asked
        say("     the connector is built; Trino starts")
        port = trino.result().port
        sides = (
            _Side("skipbridge", "bridge", True, config, 3),
            _Side("nothing skipped, no partition either", "bridge", False, config, 3),
            _Side("no index, a split a file", "file_by_file", True, _config(by_file), 2),
        )
        equal = _queries(out, sides, port, say)
        took = time.monotonic() - started
        waiting = f", {waited:.0f} s of them for downloads and the connector" if waited > 1 else ""
        say(f"done in {took:.0f} s after setup{waiting}; stopping what was started")
    say(_NEXT.replace("skipbridge ", f"{_program()} "))
    return 0 if equal else 1


def _start(
    stack: ExitStack, background: Threads, start: Callable[..., Server], *arguments: object
) -> Future[Server]:
    """Starts a server in the background. The stack's end waits for it and stops it."""
    future = background.submit(start, *arguments)

    def stop() -> None:
        if future.cancel():
            return
        with suppress(BridgeError):
            future.result().stop()

    stack.callback(stop)
    return future


def _start_trino(
    version: str,
    directory: Path,
    server: Future[None],
    connector: Future[Path],
    planners: Mapping[str, int],
) -> Server:
    """Starts Trino with a catalog for each planner, once its server and connector are here."""
    server.result()
    return start_trino(
        TrinoSpec(
            directory=directory,
            catalogs={
                catalog: {
                    "connector.name": "skipbridge",
                    "skipbridge.planner": f"127.0.0.1:{port}",
                }
                for catalog, port in planners.items()
            },
            plugins={"skipbridge": connector.result()},
            version=version,
            port=0,
        )
    )


_NEXT = """
next, on a directory of your own, without any server:
  skipbridge explain ./dir "x = 5"      which files a query would read
  skipbridge index build ./dir          the index that lets it skip files
  skipbridge index report ./dir         how much it helps, by column
docs/tutorial.md takes it to Trino and Hive"""


def _program() -> str:
    """How a user types this program here."""
    own = Path(sys.argv[0])
    if shutil.which("skipbridge") is not None or own.name != "skipbridge":
        return "skipbridge"
    return str(own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own)


def _config(values: dict[str, str]) -> Config:
    return Config({k: Setting(v, "demo") for k, v in values.items()})


def _quiet(_line: str) -> None:
    """Discards the build's output, which matters only if the build fails."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One way to query: a catalog with its switch, planner settings, and number of runs."""

    title: str
    catalog: str
    pruning: bool
    config: Config
    runs: int


def _queries(out: Path, sides: Sequence[_Side], port: int, say: Say) -> bool:
    trino = trino_client()
    connections = [
        trino.dbapi.connect(
            host="127.0.0.1",
            port=port,
            user="demo",
            catalog=side.catalog,
            schema="demo",
            session_properties={f"{side.catalog}.pruning_enabled": str(side.pruning).lower()},
        )
        for side in sides
    ]
    cursors = [connection.cursor() for connection in connections]
    say("     warming up: the JVM compiles what the queries share, no side pays for it alone")
    for turn in range(2):
        for query in QUERIES:
            for side, cursor in zip(sides, cursors, strict=True):
                if turn < side.runs - 1:
                    _run(cursor, query.sql)
    reports: list[PruneReport] = []
    told: list[list[Way]] = []
    all_equal = True
    for number, query in enumerate(QUERIES, 1):
        funnels = [explain_where(s.config, query.where, pruning=s.pruning) for s in sides]
        rows, ways = _measured(query, sides, cursors, funnels)
        reports.append(funnels[0])
        told.append(ways)
        say(f"\n--- query {number}: {query.title}\n{query.sql}\n")
        say(funnel(funnels[0]))
        say("\n" + comparison(ways))
        equal = all(found == rows[0] for found in rows)
        all_equal &= equal
        verdict = "the same in each way" if equal else "DIFFERENT: this is a bug, please report it"
        say(f"{len(rows[0])} rows, {verdict}")
        for row in rows[0][:5]:
            say("   " + "  ".join(str(value) for value in row))
    path = out / "explain.html"
    path.write_text(page(*reports, ways=told), "utf-8")
    say(f"\nthe four funnels and what they saved, as a page: {path}")
    return all_equal


def _measured(
    query: Query, sides: Sequence[_Side], cursors: Sequence[Any], funnels: Sequence[PruneReport]
) -> tuple[list[list[Any]], list[Way]]:
    """Rows and figures of each side. Runs are interleaved for equal machine conditions."""
    seconds: list[list[float]] = [[] for _ in sides]
    rows: list[list[Any]] = [[] for _ in sides]
    sizes = [0 for _ in sides]
    for turn in range(max(side.runs for side in sides)):
        for i, (side, cursor) in enumerate(zip(sides, cursors, strict=True)):
            if turn < side.runs:
                rows[i], took, sizes[i] = _run(cursor, query.sql)
                seconds[i].append(took)
    ways = [
        Way(side.title, 1000 * median(took), report.files_kept, size, report.splits.count)
        for side, took, report, size in zip(sides, seconds, funnels, sizes, strict=True)
    ]
    return rows, ways


def explain_where(config: Config, where: str, *, pruning: bool = True) -> PruneReport:
    """The prune report of a condition on the demo's table."""
    storage = storage_of(config)
    schema, _, table = TABLE.partition(".")
    with hive_catalog_of(config) as catalog:
        planner = planner_of(config, catalog, storage)
        try:
            predicate, dropped = parse_where(where or "true", "trino")
            request = ScanRequest(
                TableName(schema, table), predicate, dropped, engine="trino", pruning=pruning
            )
            return explain(planner, request, split_settings(config))
        finally:
            planner.lister.close()


def _run(cursor: Any, sql: str) -> tuple[list[Any], float, int]:
    """Rows, seconds, and the bytes that Trino read from storage."""
    started = time.perf_counter()
    cursor.execute(sql)
    rows = cursor.fetchall()
    took = time.perf_counter() - started
    return rows, took, int((cursor.stats or {}).get("physicalInputBytes", 0))


def missing_parts() -> list[BridgeError]:
    """The demo's requirements that this machine lacks, checked before anything starts."""
    from bridge.servers.java import find_jdk

    found: list[BridgeError] = []
    for release in (17, 25):
        try:
            find_jdk(release)
        except EnvironmentMissing as e:
            found.append(e)
    if shutil.which("mvn") is None:
        found.append(EnvironmentMissing("Maven (mvn) is not on the path", "install Maven 3.8+"))
    return found
