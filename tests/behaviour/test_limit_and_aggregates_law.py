"""The laws of limits, top-N and answers, asked of the whole planner over real, changing files."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from bridge.expression.evaluate import Oracle, Rounding, Row
from bridge.expression.nodes import AlwaysTrue, Expression
from bridge.planner.answers.aggregate_pushdown import aggregate
from bridge.planner.answers.aggregates import Aggregate, AggregateRequest
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest, SortKey
from bridge.table.model import TableName
from tests.support.lake import owned
from tests.support.oracles import place
from tests.support.planner_world import KEYS, World, unknown
from tests.support.strategies import Case, cases

NAME = TableName("db", "t")
QUESTIONS = 6
File = tuple[str, str]
asked: Counter[str] = Counter()


def matching(world: World, node: Expression) -> dict[File, list[Row]]:
    """Rows that satisfy the predicate by file, once for each reading of its partition's key."""
    oracle = Oracle(world.case.semantics, world.data.paths, Rounding.EXACT, unknown)
    return {
        file: [row for row in rows if oracle.truth(node, row) is True]
        for file, rows in world.rows.items()
    }


def readings(world: World, file: File) -> int:
    """How many values engines may make of the key of a file's partition."""
    values = next(v for v in world.lake.partition_values if world.lake.name_of(v) == file[0])
    return len(KEYS[values[0]])


def once(world: World, found: dict[File, list[Row]]) -> list[Row]:
    return [row for file, rows in found.items() for row in rows[:: readings(world, file)]]


def planned(world: World, planner: Planner, node: Expression, **request: Any) -> set[File]:
    plan = planner.plan(ScanRequest(NAME, node, semantics=world.case.semantics, **request))
    return owned(plan)


def check_limit(world: World, planner: Planner, node: Expression) -> None:
    limit = world.rng.choice((1, 2, 5))
    kept = planned(world, planner, node, limit=limit)
    found = matching(world, node)
    held = sum(len(rows) / readings(world, file) for file, rows in found.items() if file in kept)
    total = sum(len(rows) / readings(world, file) for file, rows in found.items())
    assert held >= min(limit, total), (node, limit)
    asked["limit"] += len(world.rows)
    asked["limit kept"] += len(kept)


def check_top(world: World, planner: Planner, node: Expression) -> None:
    rng = world.rng
    path = rng.choice([p for p in world.data.paths if len(p) == 1 and p != ("p",)])
    key = SortKey(path[0], rng.random() < 0.5, rng.random() < 0.5)
    count = rng.choice((1, 2, 5))
    kept = planned(world, planner, node, limit=count, order=(key,))
    found = matching(world, node)
    for nan_largest in (False, True):
        rows = sorted(
            (
                (place(row[path], key, nan_largest), file in kept)
                for file, held in found.items()
                for row in held[:: readings(world, file)]
            ),
            key=lambda pair: pair[0],
        )
        if rows:
            last = rows[min(count, len(rows)) - 1][0]
            assert all(is_kept for where, is_kept in rows if not last < where), (node, key, count)
    asked["top"] += len(world.rows)
    asked["top kept"] += len(kept)


def check_answer(world: World, planner: Planner, node: Expression) -> None:
    rng = world.rng
    path = rng.choice([p for p in world.data.paths if len(p) == 1 and p != ("p",)])
    function = rng.choice(("count", "min", "max"))
    plan = planner.plan(ScanRequest(NAME, node, semantics=world.case.semantics))
    by = (plan.context.resolve("q"),) if rng.random() < 0.5 else ()
    question = AggregateRequest(
        (Aggregate("count"), Aggregate(function, plan.context.resolve(path[0]))), by
    )
    found = aggregate(plan, question)
    held = matching(world, node)
    asked["answer"] += 1
    if found.enforced:
        asked["enforced"] += 1
        for file in planned(world, planner, node, enforced=True):
            assert len(held[file]) == len(world.rows[file]), (node, file)
    if found.rows is None:
        return
    asked["answered"] += 1
    groups: dict[Any, list[Row]] = {} if by else {(): []}
    for row in once(world, held):
        groups.setdefault((row[("q",)],) if by else (), []).append(row)
    expected = set()
    for group, rows in groups.items():
        values: list[Any] = [row[path] for row in rows if row[path] is not None]
        assert function == "count" or not any(v != v for v in values)
        result = (
            len(values)
            if function == "count"
            else (min if function == "min" else max)(values, default=None)
        )
        expected.add((*group, len(rows), result))
    assert set(found.rows) == expected, (node, function, path)


@settings(deadline=None, max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
@given(cases())
def test_the_laws_hold_while_files_change(
    tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    world = World.make(case, tmp_path_factory.mktemp("sufficient"))
    lake, rng = world.lake, world.rng
    planner = lake.planner()
    lake.build(nan=rng.choice(("footer", "scan")))
    for changed in (False, True):
        if changed:
            world.remove(rng.choice([uri for _, uri in world.rows]))
            world.write("new.parquet", world.data.files[0], rng.choice(lake.partition_values))
        for _ in range(QUESTIONS):
            node = AlwaysTrue() if rng.random() < 0.4 else world.predicate()
            check_limit(world, planner, node)
            check_top(world, planner, node)
            check_answer(world, planner, node)
    planner.lister.close()


def test_the_laws_were_asked_and_something_came_of_it() -> None:
    if not asked:
        pytest.skip("the laws were not asked in this run")
    assert asked["limit kept"] < asked["limit"] * 0.7, asked
    assert asked["top kept"] < asked["top"] * 0.9, asked
    assert asked["answered"] > asked["answer"] // 20, asked
    assert asked["enforced"] > asked["answer"] // 10, asked
