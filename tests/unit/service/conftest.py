"""A real server over a table of real files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bridge.kernel.types import INTEGER
from bridge.planner.splits.coalesce import SplitSettings
from bridge.service.handler import PlannerHandler
from bridge.service.server import PlannerServer
from bridge.table.model import Column
from tests.support.lake import Lake
from tests.support.service import Service


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Four partitions of three files; in file i of each, x = i."""
    made = Lake(tmp_path, (Column("x", INTEGER),), (Column("p", INTEGER),))
    made.partition_values = [(str(p),) for p in range(4)]
    for values in made.partition_values:
        for i in range(3):
            made.write(f"{i}.parquet", pa.table({"x": pa.array([i], pa.int32())}), values)
    made.build()
    return made


@pytest.fixture
def serve(lake: Lake) -> Iterator[Callable[..., Service]]:
    running: list[Service] = []

    def start(max_frame_bytes: int = 1 << 20, **options: Any) -> Service:
        server = PlannerServer(("127.0.0.1", 0), max_frame_bytes)
        settings = SplitSettings(max_files=1)
        handler = PlannerHandler(lake.planner(), server.endpoint, settings, **options)
        threading.Thread(target=server.serve, args=(handler,), daemon=True).start()
        running.append(Service(lake, server, handler, server.endpoint))
        return running[-1]

    yield start
    for service in running:
        service.server.stop(5.0)
        service.handler.close()


@pytest.fixture
def service(serve: Callable[..., Service]) -> Service:
    return serve()
