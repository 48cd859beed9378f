"""Partition columns of tables of segments: whatever directories, types and commands, a scan returns
the rows whose values the directories name, and no file is left out that holds one.
"""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.kernel.config import Config
from bridge.segments.commands import add, compaction, indexes, manage, refresh, tables, views
from bridge.table.partition import NULL_MARKER, escape
from tests.tiers import examples, seed

CONFIG = Config()
happened: Counter[str] = Counter()
Draw = Callable[[random.Random], Any]
DAY = dt.date(2024, 5, 1)
# By type: a value, its spellings in a directory, its literal.
TYPES: dict[str, tuple[Draw, Callable[[Any], list[str]], Callable[[Any], str]]] = {
    "int": (lambda r: r.randint(-3, 3), lambda v: [str(v), f"{v:03}", f"{v:+}"], str),
    "date": (
        lambda r: DAY + dt.timedelta(r.randint(0, 4)),
        lambda v: [v.isoformat()],
        lambda v: f"date '{v}'",
    ),
    "string": (
        lambda r: r.choice(["a/b", "a=b", "%41", "A", "ä", " ", "1", "null", "it's"]),
        lambda v: [escape(v)],
        lambda v: "'" + v.replace("'", "''") + "'",
    ),
    "boolean": (
        lambda r: r.random() < 0.5,
        lambda v: [str(v), str(v).lower()],
        lambda v: str(v).lower(),
    ),
}


class World:
    """A table, and the rows that its files hold: ``x`` and a value of each key."""

    def __init__(self, rng: random.Random, root: Path) -> None:
        self.rng, self.root = rng, root
        self.keys = rng.sample(list(TYPES), rng.choice((1, 2)))
        self.table = str(root / "t")
        self.files: dict[str, tuple[str, list[int], tuple[Any, ...]]] = {}  # by uri: segment, rows
        self.next = 0
        columns = [(f"k_{type}", type) for type in self.keys]
        self.create(columns)

    def create(self, keys: list[tuple[str, str]]) -> None:
        tables.create_table(
            CONFIG,
            self.table,
            format="parquet",
            columns=[("x", "bigint"), ("y", "string")],
            partition_columns=keys,
        )
        if self.rng.random() < 0.6:
            indexes.create_index(CONFIG, self.table, name="m", kind="minmax", local=True)
        if self.rng.random() < 0.6:
            scope = self.rng.choice(["local_sort", "global_sort"])
            views.create_view(
                CONFIG,
                self.table,
                name="v",
                columns=["x"],
                sort_by=["x"],
                properties={"SORT_SCOPE": scope},
                local=True,
            )
            happened["view"] += 1

    def write(self, path: Path) -> list[int]:
        first = self.rng.randrange(100)
        rows = list(range(first, first + self.rng.choice((1, 4))))
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"x": pa.array(rows, pa.int64()), "y": [str(x) for x in rows]}
        pq.write_table(pa.table(data), path)
        return rows

    def add(self) -> None:
        self.next += 1
        root = self.root / "facts" / str(self.next)
        made = {}
        for i in range(self.rng.randint(1, 4)):
            values, levels = [], []
            for type in self.keys:
                draw, spellings, _ = TYPES[type]
                value = None if self.rng.random() < 0.2 else draw(self.rng)
                text = NULL_MARKER if value is None else self.rng.choice(spellings(value))
                key = self.rng.choice([f"k_{type}", f"K_{type.upper()}"])
                values.append(value)
                levels.append(f"{key}={text}")
            self.rng.shuffle(levels)
            path = root.joinpath(*levels) / f"f{i}.parquet"
            made[f"file://{path}"] = (self.write(path), tuple(values))
        report = add.add_segment(CONFIG, self.table, paths=[str(root)], local=True)
        for uri, (rows, of) in made.items():
            self.files[uri] = (report["segment"], rows, of)

    def merge(self) -> None:
        ids = sorted({segment for segment, _, _ in self.files.values()})
        if len(ids) < 2:
            return
        chosen = self.rng.sample(ids, self.rng.randint(2, len(ids)))
        report = compaction.compact(CONFIG, self.table, kind="custom", ids=chosen)
        (new,) = report["merged"]
        for uri, (segment, rows, of) in self.files.items():
            if segment in chosen:
                self.files[uri] = (new, rows, of)
        happened["merged"] += 1

    def rewrite(self) -> None:
        if not self.files:
            return
        uri = self.rng.choice(list(self.files))
        segment, _, of = self.files[uri]
        self.files[uri] = (segment, self.write(Path(uri.removeprefix("file://"))), of)
        refresh.refresh_segments(CONFIG, self.table, local=True)
        happened["rewritten"] += 1

    def delete(self) -> None:
        ids = sorted({segment for segment, _, _ in self.files.values()})
        if len(ids) > 1:
            gone = self.rng.choice(ids)
            manage.delete_segments(CONFIG, self.table, ids=[gone])
            self.files = {u: f for u, f in self.files.items() if f[0] != gone}

    def predicate(self) -> tuple[str, Callable[[int, tuple[Any, ...]], bool]]:
        """A condition, and whether it holds for a row."""
        place = self.rng.randrange(len(self.keys))
        draw, _, literal = TYPES[self.keys[place]]
        key, value = f"k_{self.keys[place]}", draw(self.rng)
        bound = self.rng.randrange(100)
        text = literal(value)
        simple: list[tuple[str, Callable[[int, tuple[Any, ...]], bool]]] = [
            (f"{key} = {text}", lambda x, k: k[place] == value),
            (f"{key} <> {text}", lambda x, k: k[place] is not None and k[place] != value),
            (f"{key} IS NULL", lambda x, k: k[place] is None),
            (f"{key} IS NOT NULL", lambda x, k: k[place] is not None),
            (f"x < {bound}", lambda x, k: x < bound),
        ]
        (one, p), (two, q) = self.rng.sample(simple, 2)
        return self.rng.choice(
            [
                (one, p),
                (f"({one}) AND ({two})", lambda x, k: p(x, k) and q(x, k)),
                (f"({one}) OR ({two})", lambda x, k: p(x, k) or q(x, k)),
            ]
        )

    def check(self) -> None:
        with bridge.connect() as session:
            for _ in range(3):
                where, holds = self.predicate()
                columns = self.rng.choice([None, ["x", *(f"k_{k}" for k in self.keys)]])
                scan = session.table(self.table).scan(where, columns=columns)
                names = ["x", *(f"k_{k}" for k in self.keys)]
                found = [tuple(row[n] for n in names) for row in scan.to_arrow().to_pylist()]
                rows = [(x, *of) for _, xs, of in self.files.values() for x in xs]
                wanted = [row for row in rows if holds(row[0], row[1:])]
                assert sorted(map(repr, found)) == sorted(map(repr, wanted)), where
                report = scan.explain()
                happened["skipped"] += report.files_kept < len(self.files)


@pytest.mark.rule("18")
@pytest.mark.parametrize("number", range(examples(15, 30, 600)))
def test_18_scans_return_the_rows_of_the_directories_that_are_asked_for(
    number: int, tmp_path: Path
) -> None:
    world = World(random.Random(seed(180_000 + number)), tmp_path)
    world.add()
    for _ in range(4):
        world.rng.choice([world.add, world.add, world.merge, world.rewrite, world.delete])()
        world.check()


def test_18_all_of_it_happened() -> None:
    assert min(happened[key] for key in ("skipped", "merged", "rewritten", "view")) > 0
