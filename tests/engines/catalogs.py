"""One server with two catalogs over one metastore: ``front``, which is Trino's hive connector and
reads natively too, and ``hive``, the stock connector and oracle.

A native handle prints as ``schema.table``, Hive's as ``schema:table``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.index.generations.entries import live_entries
from bridge.indexing.table import open_indexed_table
from bridge.kernel.config import Config
from bridge.servers.planner import start_planner
from bridge.servers.process import LOOPBACK, Server, choose_port
from bridge.trino.server import TrinoSpec, start_trino
from tests.engines.stack import LIGHT_JVM, ask
from tests.support.built import built_plugin
from tests.support.servers.stock_trino import stock_plugins

LONGEST = 300.0
"""Seconds; a loaded machine needs a few."""


def wait_for(told: Callable[[], bool], what: str) -> None:
    """Waits until something holds that a background thread brings about."""
    until = time.monotonic() + LONGEST
    while not told():
        assert time.monotonic() < until, what
        time.sleep(0.2)


def indexed_files(config: Config, table: str) -> set[str]:
    """The files that a table's index vouches for."""
    with open_indexed_table(config, table) as (_, _, _, store):
        manifest = store.latest()
        if manifest is None:
            return set()
        entries = live_entries(manifest, store)
        trusted = entries.flags("trusted").tolist()
        return {p for p, known in zip(entries.paths.to_pylist(), trusted, strict=True) if known}


@dataclass(slots=True)
class Catalogs:
    """One server with catalogs ``front``, which is under test, and ``hive``, the oracle."""

    metastore_uri: str
    directory: Path
    planner_port: int
    properties: Mapping[str, str]
    spec: TrinoSpec
    port: int = 0
    planner: Server | None = field(default=None, repr=False)

    def start_planner(self, **settings: str) -> None:
        """Under environment variables, such as ``SKIPBRIDGE_PLANNER_FRESHNESS``."""
        self.planner = start_planner(
            self.directory / "planner",
            self.metastore_uri,
            port=self.planner_port,
            environment={"SKIPBRIDGE_CACHE": str(self.directory / "cache"), **settings},
        )

    def stop_planner(self) -> None:
        if self.planner is not None:
            self.planner.stop()
            self.planner = None

    def front(self, sql: str, **session: str) -> list[Any]:
        return ask(self.port, sql, "front", session)

    def hive(self, sql: str) -> list[Any]:
        return ask(self.port, sql, "hive")

    def side(self, sql: str, catalog: str = "front", **session: str) -> str:
        """Which side reads the only table of a query: ``native`` or ``hive``."""
        handle = self.handle(sql, catalog, **session)
        return "hive" if ":" in handle.split(" ")[0].rstrip("]") else "native"

    def handle(self, sql: str, catalog: str = "front", **session: str) -> str:
        """The only table of a query as EXPLAIN prints it."""
        text = ask(self.port, f"EXPLAIN {sql}", catalog, session)[0][0]
        [line] = [line for line in text.splitlines() if "table = " in line]
        return line.split(f"table = {catalog}:", 1)[1]

    def same(self, sql: str, side: str, **session: str) -> None:
        """The side reads, and the rows are those of the hive connector."""
        assert self.side(sql, **session) == side
        rows = self.front(sql, **session)
        # Local paths have one slash in the hive connector and three here.
        spelled = sorted(repr(row).replace("file:///", "file:/") for row in rows)
        assert spelled == sorted(map(repr, self.hive(sql)))


@contextmanager
def running_catalogs(
    metastore_uri: str,
    directory: Path,
    mutants: Mapping[str, Path] | None = None,
    properties: Mapping[str, str] | None = None,
    stock: tuple[str, ...] = ("hive",),
    jvm_options: tuple[str, ...] = LIGHT_JVM,
) -> Iterator[Catalogs]:
    """
    Args:
        mutants: more plugins by the name of their connector; each has a catalog of that name.
        properties: of the server.
        stock: Trino's own plugins that it has.
    """
    mutants = mutants or {}
    plugins = stock_plugins(*stock)
    server = plugins["hive"].parents[1]
    port = choose_port(0, "planner")
    shared = {
        "hive.metastore.uri": metastore_uri,
        "fs.hadoop.enabled": "true",
        "hive.timestamp-precision": "MICROSECONDS",
        "hive.parquet.time-zone": "UTC",
        "hive.orc.time-zone": "UTC",
        "hive.rcfile.time-zone": "UTC",
        "hive.non-managed-table-writes-enabled": "true",
        # The embedded database of the test's metastore dead-locks under two drops at once.
        "hive.max-concurrent-metastore-drops": "1",
    }
    front = {**shared, "connector.name": "skipbridge", "skipbridge.planner": f"{LOOPBACK}:{port}"}
    spec = TrinoSpec(
        directory=directory / "trino",
        catalogs={
            "front": front,
            "hive": {**shared, "connector.name": "hive"},
            **{name: {**front, "connector.name": name} for name in mutants},
        },
        plugins={
            "skipbridge": built_plugin("476", from_server=server, hive=True),
            **plugins,
            **mutants,
        },
        port=0,
        properties=properties or {},
        jvm_options=jvm_options,
    )
    running = Catalogs(metastore_uri, directory, port, front, spec)
    running.start_planner()
    try:
        with start_trino(spec) as started:
            running.port = started.port
            running.hive("CREATE SCHEMA IF NOT EXISTS front")
            yield running
    finally:
        running.stop_planner()
