"""Hive and a planner together: queries with hooked plans beside the same unhooked."""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.app.serve import RunningService
from bridge.hive.server import HiveSession
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.metastore.hooks import PLAN_HOOK
from bridge.runtime.create_table import register_table
from bridge.servers.process import LOOPBACK
from bridge.service._gen import ttypes
from bridge.service.codec import PROTOCOL
from bridge.table.model import CatalogTable, Partition, TableName
from tests.engines.conftest import RunningHiveServer2

FETCH = {"hive.fetch.task.conversion": "more"}
TEZ = {"hive.fetch.task.conversion": "none"}
PRUNING = "skipbridge.pruning_enabled"
_READ = re.compile(r"skipbridge: (\S+) reads (\d+) of (\d+) files \(generation (-?\d+), query")
HOOK = PLAN_HOOK
_HOOKED = {"hive.exec.pre.hooks": HOOK, "skipbridge.hook.refresh.ms": "300"}
Select = Callable[[ttypes.PlanRequest], ttypes.SkippableFiles]


@dataclass(frozen=True, slots=True)
class Scan:
    """One listing, as the hook's log tells it."""

    table: str
    read: int
    listed: int
    generation: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of a query, and what the hooks said meanwhile."""

    rows: list[tuple[Any, ...]]
    scans: list[Scan]
    warnings: list[str]

    @property
    def read(self) -> int:
        return sum(s.read for s in self.scans)

    @property
    def listed(self) -> int:
        return sum(s.listed for s in self.scans)

    @property
    def ids(self) -> list[Any]:
        """The first column, in order."""
        return sorted(row[0] for row in self.rows)


@dataclass(slots=True)
class PlannerUnderTest:
    """A planner in this process, over a metastore; what it is asked can be counted and changed.

    Attributes:
        asked: requests for files, in order.
        answer: in place of the planner's own answer, if set.
    """

    service: RunningService
    asked: list[ttypes.PlanRequest] = field(default_factory=list)
    answer: Callable[[Select, ttypes.PlanRequest], ttypes.SkippableFiles] | None = None

    @property
    def endpoint(self) -> str:
        return self.service.endpoint


@contextmanager
def hooked_hive(
    server: RunningHiveServer2, cache: Path, hook: bool = True
) -> Iterator[tuple[HookedHive, PlannerUnderTest]]:
    """Hive's sessions know the planner that comes with them."""
    with planner_under_test(server.metastore.uri, cache) as planner:
        hive = HookedHive(server, planner.endpoint, hook)
        try:
            yield hive, planner
        finally:
            hive.close()


@contextmanager
def planner_under_test(metastore_uri: str, cache: Path) -> Iterator[PlannerUnderTest]:
    """The real service, whose answers a test may look at or spoil."""
    config = Config(
        {
            "metastore.uri": Setting(metastore_uri, "test"),
            "service.port": Setting("0", "test"),
            "planner.cache_dir": Setting(str(cache), "test"),
        }
    )
    running = PlannerUnderTest(RunningService(config))
    own: Select = running.service.handler.list_skippable_files

    def list_skippable_files(request: ttypes.PlanRequest) -> ttypes.SkippableFiles:
        running.asked.append(request)
        return running.answer(own, request) if running.answer is not None else own(request)

    running.service.handler.list_skippable_files = list_skippable_files  # type: ignore[method-assign]
    running.service.start()
    try:
        yield running
    finally:
        running.service.stop()


@dataclass(slots=True)
class HookedHive:
    """A HiveServer2 whose sessions know a planner; a session for each combination of settings.

    Attributes:
        hook: False for what needs the jar alone: tables of segments and of storage handlers.
    """

    server: RunningHiveServer2
    planner: str
    hook: bool = True
    _sessions: dict[tuple[tuple[str, str], ...], HiveSession] = field(default_factory=dict)

    @property
    def metastore_uri(self) -> str:
        return self.server.metastore.uri

    def ask(self, sql: str, settings: Mapping[str, str] = FETCH) -> Answer:
        """Runs one statement; the planner's address is a setting of the session."""
        asked = {"skipbridge.planner": self.planner, **(_HOOKED if self.hook else {}), **settings}
        key = tuple(sorted(asked.items()))
        if key not in self._sessions:
            address = f"{LOOPBACK}:{self.server.server.port}"
            self._sessions[key] = HiveSession(address, settings=asked)
        before = self.server.server.log.stat().st_size
        rows = self._sessions[key].query(sql)
        with self.server.server.log.open("rb") as log:
            log.seek(before)
            text = log.read().decode("utf-8", "replace")
        scans = scans_in(text)
        warned = [line for line in text.splitlines() if " WARN " in line and "skipbridge:" in line]
        return Answer(rows, scans, warned)

    def unhooked(self, sql: str, settings: Mapping[str, str] = FETCH) -> list[tuple[Any, ...]]:
        """The same with pruning off."""
        return self.ask(sql, {**settings, PRUNING: "false"}).rows

    def build_index(self, name: TableName) -> None:
        index(self.metastore_uri, name)

    def forget(self, schema: str) -> None:
        """Drops a schema with its tables; files of external tables stay."""
        self.ask(f"DROP DATABASE IF EXISTS {schema} CASCADE")

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()


def scans_in(log: str) -> list[Scan]:
    """The listings that a log tells of."""
    return [Scan(t, int(r), int(n), int(g)) for t, r, n, g in _READ.findall(log)]


def age(root: Path) -> None:
    """Entries of files written within the clock's grain would not be trusted (correctness 19)."""
    past = time.time() - 60
    for directory, within, names in os.walk(root):
        within[:] = [name for name in within if not name.startswith(".")]  # Hive is deleting them
        for name in names:
            if not name.startswith("."):
                os.utime(Path(directory, name), (past, past))


def register(uri: str, name: TableName, like: CatalogTable, partitions: list[Partition]) -> None:
    """Registers a table over files that exist."""
    with MetastoreClient(uri) as client:
        if name.schema not in client.get_all_databases():
            client.create_database(name.schema)
        register_table(client, name, like, partitions)


def index(uri: str, name: TableName) -> Config:
    """Indexes a table, NaN counted."""
    config = Config({"metastore.uri": Setting(uri, "test")})
    report = index_table(
        config, str(name), nan="scan", local=True, progress=_silent, say=lambda text: None
    )
    assert not report["failed"], report
    return config


def naming(files: list[Path], shift: int) -> ttypes.SkippableFiles:
    """An answer that leaves these files out, as they are if ``shift`` (milliseconds) is 0."""
    stats = [f.stat() for f in files]
    texts = [str(f).encode() for f in files]
    offsets = [sum(map(len, texts[:i])) for i in range(len(texts) + 1)]
    n = len(files)
    packed = struct.pack(
        f"<{n}q{n}q{n + 1}i",
        *(s.st_size for s in stats),
        *(s.st_mtime_ns // 1_000_000 + shift for s in stats),
        *offsets,
    )
    return ttypes.SkippableFiles(PROTOCOL, 1, n, n, "file://", packed + b"".join(texts), [], [])


def _silent(done: int, total: int) -> None:
    """Nobody looks."""
