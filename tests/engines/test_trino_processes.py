"""Several planner processes behind one port: a query keeps to one of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import BIGINT
from bridge.table.model import Column
from tests.engines.stack import Stack, register
from tests.support.planner_client import PlannerClient

pytestmark = pytest.mark.full

UNMATCHED = """
SELECT count(a.x), count(b.x), count(*) FROM laws.grown a FULL JOIN laws.grown b
ON a.x = b.x WHERE a.x IS NULL OR b.x IS NULL
"""


@pytest.fixture(scope="module")
def several(stack: Stack) -> Iterator[Stack]:
    stack.stop_planner()
    stack.processes = 3
    stack.start_planner()
    yield stack
    stack.stop_planner()
    stack.processes = 1
    stack.start_planner()


@pytest.fixture(scope="module")
def grown(several: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table without an index, so that every query lists it."""
    directory = tmp_path_factory.mktemp("grown")
    _add(directory, 0)
    register(several, "grown", directory, (Column("x", BIGINT),), index=False)
    return directory


def _add(directory: Path, number: int) -> None:
    hidden = directory / f".{number}"
    pq.write_table(pa.table({"x": [number]}), hidden)
    hidden.rename(directory / f"{number:05}.parquet")


def _processes(stack: Stack) -> list[str]:
    with PlannerClient(stack.planner_address) as client:
        return list(client.health().processes)


def test_a_self_join_sees_one_file_set_while_files_are_added(several: Stack, grown: Path) -> None:
    assert len(_processes(several)) == 3
    done = threading.Event()

    def write() -> None:
        number = 1
        while not done.wait(0.02):
            _add(grown, number)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(several.query, [UNMATCHED] * 24))
    finally:
        done.set()
        writer.join()
    assert found == [[[0, 0, 0]]] * 24


def test_processes_that_were_restarted_are_found(several: Stack, grown: Path) -> None:
    """The connector still knows the ports of the former processes."""
    former = _processes(several)
    rows = several.query("SELECT count(*) FROM laws.grown")
    several.stop_planner()
    several.start_planner()
    assert _processes(several) != former
    for _ in range(6):
        assert several.query("SELECT count(*) FROM laws.grown") == rows
