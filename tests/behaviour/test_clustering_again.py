"""Clustered files that are clustered again: by overlap depth, from their present files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bridge.clustering.execution import DIRECTORY
from bridge.expression.builders import eq
from bridge.index.generations.compact import MAX_SHARDS
from bridge.index.generations.replacements import read_replacements, replacements_of
from bridge.kernel.errors import InvalidRequest
from bridge.kernel.types import BIGINT, STRING
from bridge.table.model import Column
from tests.support.clustered import SMALL, clustered, executed, read, scheduled
from tests.support.lake import Lake

pytestmark = pytest.mark.full

BY_X: dict[str, Any] = {"layout": "linear", "columns": ("x",), "grouping": "overlap"}
DEEP: dict[str, Any] = {**BY_X, "depth": 1, "limits": replace(SMALL, target=10000)}
APART: dict[str, Any] = {**BY_X, "limits": replace(SMALL, target=1 << 13, small=1 << 11)}
"""Takes up the files of the second batch, and none of those that the first clustering wrote."""


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path, columns=(Column("x", BIGINT), Column("s", STRING)))


def batch(lake: Lake, name: str, begin: int, end: int, step: int = 1) -> None:
    """Four files whose values of x lie between two bounds and overlap."""
    for i in range(4):
        x = list(range(begin + i, end, 4 * step))
        lake.write(f"{name}{i}.parquet", {"x": x, "s": [f"s{v % 7}" for v in x]})


def groups(lake: Lake) -> list[Any]:
    held = lake.store().latest()
    assert held is not None
    return replacements_of(read_replacements(lake.store(), held))


def test_two_clusterings_that_overlap_become_one(lake: Lake) -> None:
    batch(lake, "a", 0, 4000)
    lake.build()
    clustered(lake, **{**DEEP, "depth": None})
    batch(lake, "b", 1000, 2000)
    lake.build()
    clustered(lake, **APART)
    before, files = read(lake)
    assert all(DIRECTORY in name for name in files) and len(groups(lake)) == 2
    found = read(lake, eq("x", 1500))[1]
    assert len(found) == 2
    plan = scheduled(lake, **DEEP)
    planned = {state.path for group in plan.groups for state in group.files}
    # Far away from the second batch the first clustering is not touched.
    assert planned and len(planned) < len(files)
    report = executed(lake, plan)
    assert report.state == "completed" and report.old_files == len(planned)
    rows, after = read(lake)
    assert rows == before and len(files - after) == len(planned)
    assert len(read(lake, eq("x", 1500))[1]) == 1
    (group,) = groups(lake)
    assert len(group.old) == 8 and {s.path.rpartition("/")[2][0] for s in group.old} == {"a", "b"}
    for request in ({"freshness": "snapshot"}, {"freshness": "cached(60s)"}):
        assert read(lake, **request)[0] == before
    assert scheduled(lake, **DEEP).groups == ()  # it ends


def test_losing_a_listed_file_brings_all_of_them_back(lake: Lake) -> None:
    batch(lake, "a", 0, 4000)
    lake.build()
    clustered(lake, **{**DEEP, "depth": None})
    batch(lake, "b", 1000, 2000)
    lake.build()
    clustered(lake, **DEEP)
    assert len(groups(lake)) == 1
    (lake.root / "t/b1.parquet").unlink()
    rows, files = read(lake)
    assert sum(rows.values()) == 4000 + 750
    assert files == {f"a{i}.parquet" for i in range(4)} | {f"b{i}.parquet" for i in (0, 2, 3)}
    lake.build()
    assert clustered(lake, **DEEP).state == "completed"
    assert read(lake)[0] == rows


def test_new_files_join_by_depth(lake: Lake) -> None:
    """Listed and clustered files are rewritten together."""
    batch(lake, "a", 0, 4000)
    lake.build()
    clustered(lake, **{**DEEP, "depth": None})
    batch(lake, "b", 100, 300)
    lake.build()
    before, files = read(lake)
    plan = scheduled(lake, **DEEP)
    held = {state.path.rpartition("/")[2][:1] for group in plan.groups for state in group.files}
    assert held == {"b", "c"}
    assert executed(lake, plan).state == "completed"
    rows, after = read(lake)
    assert rows == before and after & files and all(DIRECTORY in name for name in after)


def test_a_plan_of_files_that_are_no_longer_read_is_rejected(lake: Lake) -> None:
    batch(lake, "a", 0, 4000)
    lake.build()
    clustered(lake, **{**DEEP, "depth": None})
    batch(lake, "b", 0, 4000)
    lake.build()
    clustered(lake, **{**DEEP, "depth": None})
    plan = scheduled(lake, **DEEP)
    before, _ = read(lake)
    # Another one clusters all old files anew meanwhile.
    clustered(lake, **{**BY_X, "again": True})
    report = executed(lake, plan)
    assert report.state == "rejected" and report.rejected[0][1].startswith("FILE_CHANGED")
    assert read(lake)[0] == before


def test_depth_needs_columns(lake: Lake) -> None:
    batch(lake, "a", 0, 40)
    lake.build()
    with pytest.raises(InvalidRequest, match="without sort columns"):
        scheduled(lake, layout="binpack", depth=3)


def test_a_lone_file_is_not_rewritten_for_ever(lake: Lake) -> None:
    """Not even where groups of one file are asked for."""
    lake.write("a.parquet", {"x": [3, 1, 2], "s": ["a", "b", "c"]})
    lake.build()
    single = replace(SMALL, fewest_files=1)
    before, _ = read(lake)
    for strategy in (
        {"layout": "linear", "columns": ("x",), "grouping": "range", "limits": single},
        {"layout": "binpack", "limits": single},
        {**DEEP, "limits": single},
    ):
        plans = 0
        while (plan := scheduled(lake, **strategy)).groups:
            plans += 1
            assert plans < 3
            executed(lake, plan)
            assert read(lake)[0] == before
    assert len(groups(lake)) == 1


def test_entries_of_files_that_are_rewritten_again_do_not_pile_up(lake: Lake) -> None:
    """Neither do shards, however many plans are committed."""
    batch(lake, "a", 0, 400)
    lake.build()
    clustered(lake, **{**DEEP, "depth": None})
    for i in range(5):
        batch(lake, f"b{i}", 0, 400)
        lake.build()
        clustered(lake, **APART)
        assert clustered(lake, **DEEP).state == "completed"
    held = lake.store().latest()
    assert held is not None and held.clustering is not None
    named = {state.path for group in groups(lake) for state in group.new}
    assert sum(shard.num_files for shard in held.clustering.shards) == len(named)


def test_many_small_plans_do_not_make_many_shards(lake: Lake) -> None:
    for i in range(MAX_SHARDS + 3):
        lake.write(f"a{i}.parquet", {"x": [i], "s": ["a"]})
        lake.write(f"b{i}.parquet", {"x": [i], "s": ["b"]})
        lake.build()
        assert clustered(lake, **{**DEEP, "depth": None}).new_files == 1
    held = lake.store().latest()
    assert held is not None and held.clustering is not None
    assert len(held.clustering.shards) <= MAX_SHARDS
    assert read(lake)[0].total() == 2 * (MAX_SHARDS + 3)
    rows, files = read(lake, eq("x", 7))
    assert len(files) == 1 and DIRECTORY in next(iter(files))
    assert sum(count for row, count in rows.items() if row[1] == "7") == 2
