"""A catalog that is Trino's hive connector too, on a coordinator and a worker: handles and splits
of both sides cross the wire. Two servers of its own, for that. Nightly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from bridge.trino.server import start_trino
from tests.engines.catalog_writes import OPTIMIZE, Copies, Draw, Law
from tests.engines.catalogs import Catalogs
from tests.tiers import seed

pytestmark = pytest.mark.nightly

STATEMENTS = 40


@pytest.fixture(scope="module")
def nodes(catalogs: Catalogs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalogs]:
    """The same catalogs by two servers. A native split is one file, so both have some to read."""
    directory = tmp_path_factory.mktemp("nodes")
    first = replace(catalogs.spec, directory=directory / "coordinator", heap="1G")
    catalogs.stop_planner()
    with ExitStack() as stack:
        stack.callback(catalogs.start_planner)
        stack.callback(catalogs.stop_planner)
        catalogs.start_planner(SKIPBRIDGE_SPLITS_MAX_FILES="1")
        port = stack.enter_context(start_trino(first)).port
        second = replace(first, directory=directory / "worker", coordinator=port)
        stack.enter_context(start_trino(second))
        both = replace(catalogs, port=port)
        until = time.monotonic() + 90
        while both.hive("SELECT count(*) FROM system.runtime.nodes") != [[2]]:
            assert time.monotonic() < until
            time.sleep(0.5)
        both.hive("CREATE SCHEMA IF NOT EXISTS nodes")
        yield both


def _nodes_of(nodes: Catalogs, statement: str) -> int:
    """On how many nodes the statements that begin so had tasks."""
    [[count]] = nodes.hive(
        "SELECT count(DISTINCT node_id) FROM system.runtime.tasks WHERE query_id IN"
        f" (SELECT query_id FROM system.runtime.queries WHERE query LIKE '{statement}%')"
    )
    return int(count)


def test_reads_and_writes(nodes: Catalogs) -> None:
    nodes.hive(
        "CREATE TABLE nodes.two WITH (partitioned_by = ARRAY['k']) AS"
        " SELECT a, a % 8 AS k FROM UNNEST(sequence(1, 800)) AS t (a)"
    )
    assert nodes.side("SELECT * FROM nodes.two") == "native"
    assert len(nodes.front("SELECT a, k FROM nodes.two WHERE a > 0")) == 800
    assert _nodes_of(nodes, "SELECT a, k FROM nodes.two") == 2
    nodes.front("CREATE TABLE nodes.three AS SELECT a FROM nodes.two")
    nodes.front("INSERT INTO nodes.three SELECT a FROM nodes.two")
    assert _nodes_of(nodes, "CREATE TABLE nodes.three") == 2
    joined = "SELECT count(*), sum(h.a) FROM nodes.two n JOIN nodes.three h ON n.a = h.a"
    assert nodes.front(joined) == nodes.hive(joined) == [[1600, 640800]]


def test_optimize_and_delete_of_a_table_that_is_read_natively(nodes: Catalogs) -> None:
    table = "nodes.changed"
    nodes.hive(f"CREATE TABLE {table} (a bigint, k bigint) WITH (partitioned_by = ARRAY['k'])")
    for _ in range(4):
        nodes.hive(
            f"INSERT INTO {table} SELECT a, a % 8 AS k FROM UNNEST(sequence(1, 400)) AS t (a)"
        )
    assert nodes.side(f"SELECT * FROM {table}") == "native"
    files = f'SELECT k, count(DISTINCT "$path") FROM {table} GROUP BY k ORDER BY k'
    before = dict(nodes.hive(files))
    assert min(before.values()) >= 4
    nodes.front(f"ALTER TABLE {table} EXECUTE optimize WHERE k < 6", **OPTIMIZE)
    assert _nodes_of(nodes, f"ALTER TABLE {table}") == 2
    after = dict(nodes.hive(files))
    assert {k: after[k] for k in (6, 7)} == {k: before[k] for k in (6, 7)}
    assert all(after[k] < before[k] for k in range(6))  # at most one file by each node
    nodes.same(f"SELECT * FROM {table}", "native")
    nodes.front(f"DELETE FROM {table} WHERE k IN (1, 2, 7)")
    nodes.same(f"SELECT * FROM {table}", "native")
    assert nodes.hive(f"SELECT count(*), count(DISTINCT k) FROM {table}") == [[1000, 5]]


def test_the_law_of_writes(nodes: Catalogs) -> None:
    copies = Copies(nodes, schema="nodes")
    draw = Draw(seed(424))
    law = Law(copies)
    for _ in range(STATEMENTS):
        shape = draw.shape()
        law.ask(shape, draw.statement(shape), copies.pair(shape, draw.yes(0.4)))
    assert law.succeeded * 3 >= STATEMENTS, law.texts
