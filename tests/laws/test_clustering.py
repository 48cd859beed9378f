"""The law of clustering: at every moment each reader sees exactly the rows that were committed.

Histories of writers (write, overwrite, delete, drop and add partitions; some ask before), of
clustering (schedule, also as advised, execute, die at any mutation, cancel) and of the index
(refresh, rebuild, clean, loss) over random tables, and cleaning of what plans have left, which may
die. After every step the rows that readers find are compared with those of the listed files.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.plan import ClusteringPlan
from bridge.clustering.timeline import PlanState
from bridge.clustering.writers import check_write
from bridge.expression.builders import eq, ge
from bridge.expression.nodes import AlwaysTrue
from bridge.index.kinds.registry import kind
from bridge.kernel.errors import GenerationNotFound, IndexCorrupt, InvalidRequest
from bridge.kernel.types import BIGINT, STRING
from bridge.planner.answers.aggregate_pushdown import aggregate
from bridge.planner.answers.aggregates import Aggregate, AggregateRequest
from bridge.planner.predicate_log import Logged
from bridge.planner.request import ScanRequest
from bridge.table.model import Column
from tests.support.clustered import SMALL, advised, executed, read, rows_in, scheduled, timeline_of
from tests.support.index_builds import Dying, Killed
from tests.support.lake import NAME, Lake, age
from tests.support.published import Life, cleaned
from tests.tiers import examples

EXAMPLES = examples(5, 5, 300)
STEPS = st.sampled_from(
    ["write", "write", "write", "overwrite", "delete", "drop", "refresh", "refresh", "full",
     "schedule", "schedule", "execute", "execute", "die", "die", "cancel", "clean", "lose", "bloom",
     "advised", "forget", "die forgetting"]
)  # fmt: skip
SCANS = [
    Logged("t", 0.0, 1, 1, (("x", "="),), (), "", ["x", "=", [4]]),
    Logged("t", 0.0, 1, 1, (("s", ">="), ("x", "<")), ()),
    Logged("t", 0.0, 1, 1, (("s", "="),), (), "", ["s", "=", 1]),
]
STRATEGIES: list[dict[str, Any]] = [
    {"layout": "binpack"},
    {"layout": "linear", "columns": ("x",), "grouping": "overlap"},
    {"layout": "hilbert", "columns": ("x", "s"), "grouping": "range"},
    {"layout": "zorder", "columns": ("s", "x"), "grouping": "random", "again": True},
    {"layout": "kdtree", "columns": ("s", "x"), "grouping": "size"},
    {"layout": "linear", "columns": ("s",), "grouping": "time"},
    {"layout": "linear", "columns": ("x",), "grouping": "overlap", "depth": 1},
    {"layout": "hilbert", "columns": ("s", "x"), "grouping": "size", "depth": 1},
]


class Story:
    """One table and what happens to it."""

    def __init__(self, root: Path, draw: Any, partitioned: bool) -> None:
        keys = (Column("day", STRING),) if partitioned else ()
        columns = (Column("x", BIGINT), Column("s", STRING))
        self.lake = Lake(root, columns=columns, keys=keys)
        if partitioned:
            self.lake.partition_values = [("1",), ("2",)]
        self.draw = draw
        self.plans: list[ClusteringPlan] = []
        self.written = 0
        for values in self.lake.partition_values:
            self.lake.directory(values).mkdir(parents=True, exist_ok=True)

    def files(self) -> list[Path]:
        every = [self._files_of(values) for values in self.lake.partition_values]
        return sorted(path for each in every for path in each)

    def _files_of(self, values: tuple[str | None, ...]) -> list[Path]:
        return list(self.lake.directory(values).glob("*.parquet"))

    def rows(self) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for values in self.lake.partition_values:
            name = self.lake.name_of(values)
            for path in self._files_of(values):
                found.update((name, *map(repr, row.values())) for row in rows_in(path))
        return found

    def _put(self, path: Path) -> None:
        numbers = st.one_of(st.none(), st.integers(-3, 9))
        x = self.draw(st.lists(numbers, min_size=0, max_size=6))
        data = {"x": x, "s": [None if v == 3 else f"s{v}" for v in x]}
        schema = pa.schema([("x", pa.int64()), ("s", pa.string())])
        pq.write_table(pa.table(data, schema), path)
        self.written += 1
        age(path, 5000 - self.written)  # no two writes have one time

    def step(self, name: str) -> None:
        lake, draw = self.lake, self.draw
        files = self.files()
        if name == "write":
            values = draw(st.sampled_from(lake.partition_values)) if lake.partition_values else None
            if values is not None:
                self._put(lake.directory(values) / f"f{self.written}.parquet")
        elif name in ("overwrite", "delete") and files:
            path = draw(st.sampled_from(files))
            if draw(st.booleans()):  # a writer that cooperates
                uri = f"file://{path}"
                check_write(timeline_of(lake), lake.store(), {uri}, "allow")
                assert check_write(timeline_of(lake), lake.store(), {uri}, "allow") == []
            if name == "delete":
                path.unlink()
            else:
                self._put(path)
        elif name == "drop" and lake.keys:
            gone = len(lake.partition_values) == 1
            lake.partition_values = [("1",), ("2",)] if gone else [("1",)]
        elif name in ("refresh", "full"):
            lake.build(full=name == "full", files_per_commit=draw(st.sampled_from([0, 1])))
        elif name == "bloom":
            bloom = kind("bloom").define("s")
            held = lake.store().latest()
            there = held is not None and bloom in held.settings.definitions
            lake.build(settings=lambda s: s.without("bloom(s)") if there else s.adding([bloom]))
        elif name == "schedule" and lake.store().generations():
            chosen = draw(st.sampled_from(STRATEGIES))
            plan = scheduled(lake, limits=SMALL, **chosen)
            self.plans += [plan] if plan.groups else []
        elif name == "advised" and lake.store().generations():
            asked = draw(st.lists(st.sampled_from(SCANS), min_size=1, max_size=5))
            depth = draw(st.sampled_from([None, 1]))
            candidates = advised(lake, asked).candidates
            if candidates:
                best = candidates[0]
                deep = depth if best.columns else None
                plan = scheduled(lake, layout=best.layout, columns=best.columns, depth=deep)
                self.plans += [plan] if plan.groups else []
        elif name in ("execute", "die") and self.plans:
            plan = draw(st.sampled_from(self.plans))
            storage = None
            if name == "die":
                storage = Dying(lake.storage, draw(st.integers(1, 12)), done=draw(st.booleans()))
            try:
                executed(lake, plan, storage)  # type: ignore[arg-type]
            except (Killed, InvalidRequest, GenerationNotFound, IndexCorrupt):
                return
        elif name == "cancel" and self.plans:
            timeline_of(lake).end(draw(st.sampled_from(self.plans)).instant, "cancelled")
        elif name == "clean" and lake.store().generations():
            lake.store().clean(keep=1, older_than=-5)
        elif name in ("forget", "die forgetting"):
            pending = {s.instant for s in self._states() if s.pending}
            last = draw(st.integers(1, 12)) if name == "die forgetting" else 0
            with suppress(Killed):
                cleaned(lake, Life(last, done=draw(st.booleans())))
            assert {s.instant for s in self._states() if s.pending} == pending
        elif name == "lose":
            for path in (lake.root / "t/.skipbridge/generations").glob("*.json"):
                path.unlink()

    def _states(self) -> list[PlanState]:
        return timeline_of(self.lake).states(self.lake.store().latest())

    def check(self) -> None:
        expected = self.rows()
        lake = self.lake
        assert read(lake)[0] == expected
        for predicate in (eq("x", 4), eq("s", "s4"), ge("s", "s5")):
            some, _ = read(lake, predicate)
            assert some <= expected
            for row, count in expected.items():
                text = row[2].strip("'")
                matches = row[2] != "None" and text >= "s5"
                if predicate != ge("s", "s5"):
                    matches = row[1] == "4"
                if matches:
                    assert some[row] == count
        plan = lake.planner().plan(ScanRequest(NAME, AlwaysTrue()))
        counted = aggregate(plan, AggregateRequest((Aggregate("count"),))).rows
        assert counted is None or counted == ((sum(expected.values()),),)
        if self.fresh():
            assert read(lake, freshness="snapshot")[0] == expected

    def fresh(self) -> bool:
        """Whether the newest generation was built from just these files."""
        numbers = self.lake.store().generations()
        return bool(numbers) and not self.lake.build().committed


@settings(max_examples=EXAMPLES)
@given(
    st.data(),
    st.booleans(),
    st.lists(STEPS, min_size=6, max_size=16),
)
def test_every_reader_sees_exactly_the_committed_rows(
    data: st.DataObject, partitioned: bool, steps: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        story = Story(Path(root), data.draw, partitioned)
        for name in ["write", "write", "refresh", "schedule", "execute", *steps]:
            story.step(name)
            story.check()
