"""Partitions that the index's entries leave out before they are fetched, under each freshness.

The law: whatever happened to files between index and plan, ``live`` and ``cached`` read every file
with a matching row, and ``snapshot`` every such file of the index's generation. Under ``snapshot``
the metastore is asked for no partition that the entries leave out; under the others for all that
the keys leave.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from bridge.expression.parsing.text import parse_where
from bridge.kernel.types import BIGINT, INTEGER, STRING
from bridge.planner.request import ScanRequest
from bridge.table.model import CatalogTable, Column
from tests.support.lake import NAME, Fetch, Lake, age
from tests.tiers import examples, seed

HISTORIES, CHANGES = examples((12, 6), (40, 8), (600, 12))
FRESHNESS = ("live", "cached(60s)", "snapshot")
Rows = list[tuple[int, str | None]]
asked: Counter[str] = Counter()


class Asked(Lake):
    """Notes which partitions are fetched."""

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> Fetch:
        self.fetched.extend(names)
        return super().partitions(table, names, age)

    fetched: list[str]


class Changing:
    """A table whose files change, with the rows of each file, now and in the index."""

    def __init__(self, rng: random.Random, root: Path) -> None:
        self.rng = rng
        self.lake = Asked(root, (Column("x", BIGINT), Column("c", STRING)), (Column("p", INTEGER),))
        self.lake.fetched = []
        self.lake.partition_values = [(str(p),) for p in range(8)]
        self.rows: dict[str, Rows] = {}
        for p in range(8):
            for f in range(rng.choice((1, 1, 2))):
                self.write(p, f"f{f}")
        self.indexed = dict(self.rows)

    def write(self, p: int, name: str) -> None:
        rng = self.rng
        x = rng.randrange(6)
        constant = rng.random() < 0.5
        rows: Rows = [
            (x if constant else rng.randrange(6), rng.choice((None, f"c{x}", f"c{x}")))
            for _ in range(rng.choice((1, 3)))
        ]
        columns = {"x": pa.array([r[0] for r in rows], pa.int64()), "c": [r[1] for r in rows]}
        table = pa.table({"x": columns["x"], "c": pa.array(columns["c"], pa.string())})
        path = self.lake.write(name, table, (str(p),))
        age(path, self.rng.choice((20.0, 40.0, 60.0)))
        self.rows[str(path)] = rows

    def change(self) -> None:
        rng = self.rng
        match rng.choice(("add", "add", "write", "delete", "partition")):
            case "add":
                self.write(rng.randrange(8), f"new{len(self.rows)}")
            case "write":
                path = Path(rng.choice(list(self.rows)))
                self.write(int(path.parent.name.removeprefix("p=")), path.name)
                self.indexed.pop(str(path), None)  # of another state: it says nothing of this one
            case "delete":
                path = Path(rng.choice(list(self.rows)))
                path.unlink()
                del self.rows[str(path)]
                self.indexed.pop(str(path), None)
            case "partition":
                p = len(self.lake.partition_values)
                self.lake.partition_values.append((str(p),))
                self.write(p, "f0")


CONDITIONS = (
    ("x = 3", lambda p, x, c: x == 3),
    ("x > 4 AND p < 6", lambda p, x, c: x > 4 and p < 6),
    ("x = 2 OR p = 1", lambda p, x, c: x == 2 or p == 1),
    ("x % 4 = 1", lambda p, x, c: x % 4 == 1),
    ("c IS NULL", lambda p, x, c: c is None),
    ("c = 'c1' AND x < 4", lambda p, x, c: c == "c1" and x < 4),
    ("x + 1 = 9", lambda p, x, c: False),
    ('"$file_size" > 0 AND x = 2', lambda p, x, c: x == 2),
    ("lower(\"$path\") > 'a' AND x < 3", lambda p, x, c: x < 3),
    ("p % 3 = 1 AND x > 1", lambda p, x, c: p % 3 == 1 and x > 1),
)


def matching(files: dict[str, Rows], test: object) -> set[str]:
    assert callable(test)
    return {
        path
        for path, rows in files.items()
        if any(test(int(Path(path).parent.name.removeprefix("p=")), *row) for row in rows)
    }


@pytest.mark.parametrize("number", range(HISTORIES))
@pytest.mark.rule("19")
def test_partitions_are_left_out_only_where_their_files_are_known(
    number: int, tmp_path: Path
) -> None:
    rng = random.Random(seed(9000 + number))
    world = Changing(rng, tmp_path)
    assert not world.lake.build(nan="scan").failed
    for _ in range(rng.randrange(CHANGES)):
        world.change()
    for freshness in FRESHNESS:
        planner = world.lake.planner()
        for where, test in rng.sample(CONDITIONS, 4):
            world.lake.fetched.clear()
            predicate = parse_where(where)[0]
            plan = planner.plan(ScanRequest(NAME, predicate, freshness=freshness))
            found = {
                path.removeprefix("file://")
                for batch in plan.batches()
                for path in batch.files.paths.to_pylist()
            }
            known = world.indexed if freshness == "snapshot" else world.rows
            assert matching(known, test) <= found, (freshness, where)
            stages = [s for s in plan.report().stages if s.name == "partitions"]
            left = stages[-1].kept
            assert len(stages) == 1 + (freshness == "snapshot" and stages[-1].index == "minmax")
            assert len(world.lake.fetched) in (0, left), (freshness, where)
            asked[freshness] += stages[0].kept - left
        planner.lister.close()


@pytest.mark.parametrize("number", range(HISTORIES))
@pytest.mark.rule("19")
def test_listings_that_are_reused_are_read_as_they_were(number: int, tmp_path: Path) -> None:
    """Under ``cached`` a query sees what was listed within its time to live, and nothing older."""
    rng = random.Random(seed(9500 + number))
    world = Changing(rng, tmp_path)
    assert not world.lake.build(nan="scan").failed
    planner = world.lake.planner()

    def read(where: str, freshness: str) -> set[str]:
        plan = planner.plan(ScanRequest(NAME, parse_where(where)[0], freshness=freshness))
        batches = list(plan.batches())
        return {path.removeprefix("file://") for b in batches for path in b.files.paths.to_pylist()}

    read('"$file_size" > 0', "cached(60s)")  # lists all
    then = dict(world.rows)
    for _ in range(rng.randrange(CHANGES)):
        world.change()
    for where, test in rng.sample(CONDITIONS, 4):
        assert matching(then, test) <= read(where, "cached(60s)"), where
    for where, test in rng.sample(CONDITIONS, 4):
        time.sleep(0.002)
        assert matching(world.rows, test) <= read(where, "cached(1ms)"), where
    planner.lister.close()


def test_partitions_were_left_out_under_snapshot_alone() -> None:
    if not asked:
        pytest.skip("the law was not asked in this run")
    assert asked["snapshot"] > 3 * HISTORIES and not asked["live"] and not asked["cached(60s)"]
