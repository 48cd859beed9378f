"""Metastore, planner and Trino together, as a user runs them: the planner is a process of its
own.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trino

from bridge.index.kinds.request import RequestedIndexes
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.servers.planner import start_planner
from bridge.servers.process import Server
from bridge.table.model import CatalogTable, Column, TableName
from tests.engines.everything import Everything

# The compose tour's files are the ones that are tested.
ZONE = "America/Los_Angeles"
"""In which catalog ``zoned`` reads timestamps that are kept in UTC."""
LIGHT_JVM = ("-XX:TieredStopAtLevel=1",)
"""Of Trino in tests: the JVM's second compiler would take a fifth of their CPU time."""
_TOUR = Path(__file__).parents[2] / "docker"


def ask(
    port: int,
    sql: str,
    catalog: str = "bridge",
    session: Mapping[str, str] | None = None,
    user: str = "test",
) -> list[Any]:
    """The rows of a query of a Trino on this machine, under the catalog's session properties."""
    connection = trino.dbapi.connect(
        host="127.0.0.1",
        port=port,
        user=user,
        catalog=catalog,
        session_properties={f"{catalog}.{k}": v for k, v in (session or {}).items()},
    )
    cursor = connection.cursor()
    cursor.execute(sql)
    return [list(row) for row in cursor.fetchall()]


@dataclass(slots=True)
class Stack:
    """Everything an engine test talks to.

    Attributes:
        python_path: where the planner finds plugins; taken up when it starts.
        processes: of the planner, behind one port; taken up when it starts.
        server: Trino's process.
    """

    directory: Path
    metastore_uri: str
    planner_port: int
    trino_port: int
    everything: Everything
    python_path: str = ""
    processes: int = 1
    server: Server | None = None
    _planner: Server | None = field(default=None, repr=False)

    @property
    def planner_address(self) -> str:
        return f"127.0.0.1:{self.planner_port}"

    def start_planner(self) -> None:
        self._planner = start_planner(
            self.directory / "planner",
            self.metastore_uri,
            port=self.planner_port,
            environment={
                "SKIPBRIDGE_CONFIG": str(_TOUR / "planner" / "config.toml"),
                "SKIPBRIDGE_CACHE": str(self.directory / "cache"),
                # Small enough that files of a test are cut in ranges.
                "SKIPBRIDGE_SPLITS_TARGET_BYTES": "256KiB",
                "SKIPBRIDGE_SPLITS_OPEN_COST": "4KiB",
                "SKIPBRIDGE_SERVICE_PROCESSES": str(self.processes),
                **self._plugins(),
            },
        )

    def _plugins(self) -> dict[str, str]:
        """Distributions that the planner finds beside its own."""
        if not self.python_path:
            return {}
        paths = (self.python_path, os.environ.get("PYTHONPATH", ""))
        return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def stop_planner(self) -> None:
        if self._planner is not None:
            self._planner.stop()
            self._planner = None

    def restart_planner(self) -> None:
        if self._planner is not None:
            self._planner.kill()
            self._planner = None
        self.start_planner()

    def query(
        self, sql: str, session: Mapping[str, str] | None = None, catalog: str = "bridge"
    ) -> list[Any]:
        return ask(self.trino_port, sql, catalog, session)

    def analyzed(self, sql: str, *, answers: bool = False, catalog: str = "bridge") -> str:
        """EXPLAIN ANALYZE VERBOSE of a query whose scans wait for their dynamic filters."""
        session = {"dynamic_filter_wait": "20s"}
        if not answers:
            session["metadata_answers_enabled"] = "false"
        rows = self.query(f"EXPLAIN ANALYZE VERBOSE {sql}", session, catalog)
        return "\n".join(row[0] for row in rows)

    def kept_files(self, sql: str, *, answers: bool = False, catalog: str = "bridge") -> int:
        """Files that the planner kept for a query, as the engine's own metrics tell it.

        Args:
            answers: whether statistics may answer and filters be dropped, as they are by default;
                what statistics answer has no scan, hence no files.
        """
        text = self.analyzed(sql, answers=answers, catalog=catalog)
        found = re.findall(r"skipbridge[. ]files[. ]kept.*?(?:total=|count=|=\s*)(\d+)", text)
        assert found or "TableScan" not in text, text
        return min((int(n) for n in found), default=0)


def register(
    stack: Stack,
    name: str,
    directory: Path,
    columns: tuple[Column, ...],
    *,
    index: bool = True,
    kinds: Sequence[tuple[str, str]] = (),
    format: str = "parquet",
) -> None:
    """Makes a table in schema ``laws`` of a directory's files, and indexes it."""
    past = time.time() - 60
    for file in directory.glob(f"*.{format}"):
        os.utime(file, (past, past))
    table = CatalogTable(TableName("laws", name), columns, (), f"file://{directory}", format)
    with MetastoreClient(stack.metastore_uri) as client:
        register_table(client, table.name, table, [])
    if index:
        config = Config({"metastore.uri": Setting(stack.metastore_uri, "test")})
        index_table(
            config,
            f"laws.{name}",
            local=True,
            asked=RequestedIndexes(tuple(kinds)),
            progress=lambda d, t: None,
            say=lambda text: None,
        )
