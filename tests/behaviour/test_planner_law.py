"""The law, asked of the whole planner: files kept are a superset of those with a matching row.

Random partitioned tables of real files, their index, and predicates over data columns, partition
keys and hidden columns in any mixture; by each freshness, with dynamic filters, and after the
files have changed under the index. Partitions may share a location, or lie in one another's.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from tests.support.lake import age
from tests.support.planner_world import LAW, MODES, World, asked
from tests.support.strategies import Case, cases

FILES, PREDICATES = 10, 8


@LAW
@given(cases())
def test_no_matching_file_is_lost(tmp_path_factory: pytest.TempPathFactory, case: Case) -> None:
    world = World.make(case, tmp_path_factory.mktemp("law"))
    planner = world.lake.planner()
    world.lake.build(nan=world.rng.choice(("footer", "scan")))
    for _ in range(PREDICATES):
        node = world.predicate()
        for mode in MODES:
            world.check(planner, node, None, mode)
            world.check(planner, node, world.predicate(), mode)
    planner.lister.close()


@LAW
@given(cases())
def test_live_loses_nothing_while_files_change(
    tmp_path_factory: pytest.TempPathFactory, case: Case
) -> None:
    world = World.make(case, tmp_path_factory.mktemp("change"))
    lake, rng = world.lake, world.rng
    paths = [p for p in world.data.paths if p[0] in {c.name for c in world.data.columns}]
    planner = lake.planner()
    lake.build()
    fresh = [
        [{path: rng.choice([None, *world.data.pools[path]]) for path in paths} for _ in range(3)]
        for _ in range(4)
    ]
    for step in range(4):
        uris = [uri for _, uri in world.rows]
        match step % 4 if step < 3 else rng.randrange(3):
            case 0:
                world.write(f"n{step}.parquet", fresh[step], rng.choice(lake.partition_values))
            case 1:
                path = Path(rng.choice(uris).removeprefix("file://"))
                values = next(v for v in lake.owners(path) if lake.directory(v) == path.parent)
                before = path.stat()
                world.write(path.name, fresh[step], values)
                if path.stat().st_mtime_ns == before.st_mtime_ns:
                    age(path, 1.0)
            case 2:
                world.remove(rng.choice(uris))
        for _ in range(3):
            world.check(planner, world.predicate(), world.predicate(), "live")
        if rng.random() < 0.5:
            lake.build()
            for _ in range(2):
                world.check(planner, world.predicate(), None, "live")
    planner.lister.close()


def test_the_law_was_asked_and_pruning_did_happen() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["narrowed"] > 100
    assert asked["shared"] > 100
    for mode in MODES:
        assert asked[f"{mode} pruned"] > asked[mode] // 4, asked
