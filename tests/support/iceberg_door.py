"""A door over a lake's planner, on a port of its own, and PyIceberg's catalog of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table

from bridge.iceberg_rest.connections import ConnectionLimits
from bridge.iceberg_rest.door import Door, DoorLimits
from bridge.iceberg_rest.footers import Footers
from bridge.iceberg_rest.plans import Kept, PlanRequest, Plans
from bridge.iceberg_rest.server import DoorServer
from bridge.iceberg_rest.tables import Tables
from bridge.kernel.types import BIGINT, STRING
from bridge.planner.index_view import IndexViews
from bridge.planner.planner import Planner
from bridge.service.admission import Admission
from bridge.table.directory.freshness import parse_freshness
from bridge.table.directory.lister import DirectoryLister
from bridge.table.model import Column
from tests.support.lake import Lake
from tests.support.messy_lake import MessyLake

JAVA = {"X-Client-Version": "Apache Iceberg 1.12.0"}
PYICEBERG = {"User-Agent": "PyIceberg/0.12.0"}
TABLE = "/v1/namespaces/db/tables/t"
THREADS = 8
"""Of each door's planner."""


def ten_files(root: Path) -> Lake:
    """Ten files of ten rows: file i has the ids from 10 * i."""
    found = Lake(root, (Column("id", BIGINT), Column("name", STRING)))
    for i in range(10):
        ids = list(range(10 * i, 10 * i + 10))
        found.write(f"f{i}.parquet", {"id": ids, "name": [f"n{i}"] * 10})
    found.build()
    return found


def over(value: int) -> dict[str, Any]:
    """The filter ``id > value``."""
    return {"type": "gt", "term": "id", "value": value}


class WatchedPlans(Plans):
    """Plans whose sizes are noted."""

    planned: list[int]

    def _keep(self, asked: PlanRequest, kept: Kept) -> Kept:
        self.planned.append(len(kept))
        return super()._keep(asked, kept)


@dataclass
class OpenDoor:
    """A door that answers.

    Attributes:
        url: where.
        plans: of its process.
        pool: the threads of plans.
        server: as uvicorn runs it.
        planned: the number of files of each plan, in order.
    """

    url: str
    plans: WatchedPlans
    planner: Planner
    pool: Admission
    server: DoorServer

    @property
    def connections(self) -> list[Any]:
        """Those that are open."""
        return list(self.server._server.server_state.connections)

    @property
    def planned(self) -> list[int]:
        return self.plans.planned

    @contextmanager
    def all_busy(self) -> Iterator[None]:
        """Every thread of the planner waits, as for a store that does not answer."""
        entered, leave = threading.Barrier(THREADS + 1), threading.Event()

        def hang() -> None:
            entered.wait(20)
            leave.wait(60)

        for _ in range(THREADS):
            self.pool.submit(hang)
        entered.wait(20)
        try:
            yield
        finally:
            leave.set()

    def get(self, path: str, headers: dict[str, str] | None = None) -> requests.Response:
        return requests.get(self.url + path, headers=headers or {}, timeout=60)

    def post(
        self, path: str, body: Any, headers: dict[str, str] | None = None
    ) -> requests.Response:
        return requests.post(self.url + path, json=body, headers=headers or {}, timeout=60)

    def plan(self, headers: dict[str, str] | None = None, **body: Any) -> requests.Response:
        """A plan of db.t."""
        return self.post(f"{TABLE}/plan", body, headers or JAVA)

    def files(self, **body: Any) -> set[str]:
        """Names of the files that Java is told to read."""
        answer = self.plan(**body)
        assert answer.status_code == 200, answer.text
        tasks = answer.json()["file-scan-tasks"]
        return {task["data-file"]["file-path"].rpartition("/")[2] for task in tasks}

    def catalog(self, **options: str) -> Catalog:
        return load_catalog("sb", type="rest", uri=self.url, **options)

    def table(self) -> Table:
        """PyIceberg's table db.t."""
        return self.catalog().load_table("db.t")


@contextmanager
def open_door(
    lake: Lake | MessyLake,
    freshness: str = "snapshot",
    limits: DoorLimits | None = None,
    footers: int = 10_000,
    schemes: dict[str, str] | None = None,
    connections: ConnectionLimits | None = None,
) -> Iterator[OpenDoor]:
    """Opens a door over a lake; it closes with the block."""
    views = IndexViews(lambda table: lake.store(), lake.root / "cache", 0.0)
    lister = DirectoryLister(lake.storage, 4, recursive=lake.recursive)
    planner = Planner(lake, views, lister, freshness=parse_freshness(freshness), metadata_ttl=0.0)
    reader = Footers(lake.storage, 4)
    tables = Tables(planner, schemes)
    plans = WatchedPlans(tables, reader, footers)
    plans.planned = []
    pool = Admission(THREADS)
    door = Door(tables, plans, pool, limits or DoorLimits(frozenset({"127.0.0.1"})))
    server = DoorServer(door, socket.create_server(("127.0.0.1", 0), backlog=256), connections)
    server.start()
    try:
        yield OpenDoor(f"http://{server.endpoint}", plans, planner, pool, server)
    finally:
        server.stop()
        pool.shutdown()
        reader.close()
        lister.close()
