"""A random table on disk, and what the planner must keep of it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

from bridge.expression.evaluate import Oracle, Rounding, Row, Truth
from bridge.expression.nodes import And, Expression, Unknown
from bridge.kernel.types import BIGINT, INTEGER, STRING, TIMESTAMP_TZ, Value
from bridge.planner.planner import Planner
from bridge.planner.request import ScanRequest
from bridge.table.model import Column
from tests.support.arrow import arrow_table
from tests.support.lake import NAME, Lake, age, owned
from tests.support.strategies import Case, Table, expression, table
from tests.tiers import drawn_anew

FILES = 10
MODES = ("live", "cached(60s)", "snapshot")


# What a directory says of the key p (an int), and the values that engines may make of it.
KEYS: dict[str | None, tuple[Value | None, ...]] = {
    "1": (1,),
    "02": (2,),
    "-5": (-5,),
    None: (None,),
    "abc": (None, 0, 1, 2, -5, 2**31 - 1),
    "99999999999": (None, 0, 1, 2**31 - 1),
}


TEXTS = ("a", "b=c/d", "ä %", "__x", "%61", "b%3Dc%252Fd")


asked: Counter[str] = Counter()


LAW = settings(
    deadline=None,
    max_examples=40,
    derandomize=not drawn_anew(),
    suppress_health_check=list(HealthCheck),
)


def unknown(node: Unknown, row: Row) -> Truth:
    shown = sorted((k, str(v)) for k, v in row.items())
    return random.Random(f"{node.text}{shown}").choice((True, False, None))


@dataclass
class World:
    """One random table on disk.

    Attributes:
        rows: by partition and URI, one variant for each reading of the keys.
        mixed: its files are not all as the table says, see `arrow_table`.
        keys: what a directory may say of the key p, with all that engines make of it.
    """

    case: Case
    rng: random.Random
    lake: Lake
    data: Table
    rows: dict[tuple[str, str], list[Row]]
    mixed: bool
    keys: Mapping[str | None, tuple[Value | None, ...]]

    @classmethod
    def make(
        cls, case: Case, root: Path, keys: Mapping[str | None, tuple[Value | None, ...]] = KEYS
    ) -> World:
        rng = case.rng()
        mixed = rng.random() < 0.5
        data = table(rng, case.types, FILES, alike=mixed)
        columns = tuple(Column(c.name, c.type) for c in data.columns)
        lake = Lake(root, columns, (Column("p", INTEGER), Column("q", STRING)))
        texts, numbers = rng.sample(TEXTS, 2), rng.sample(list(keys), 3)
        lake.partition_values = [(p, q) for p in numbers for q in texts]
        lake.recursive = rng.random() < 0.3
        for values in lake.partition_values[1:]:
            other = lake.directory(rng.choice(lake.partition_values))
            lake.locations[lake.name_of(values)] = rng.choice(
                (lake.directory(values), lake.directory(values), other, other / "below")
            )
        for values in lake.partition_values:  # without files too: one that is absent is an error
            lake.directory(values).mkdir(parents=True, exist_ok=True)
        world = cls(case, rng, lake, data, {}, mixed, keys)
        for i in range(FILES):
            world.write(f"f{i}.parquet", data.files[i], rng.choice(lake.partition_values))
        data.paths.update(
            {
                ("p",): INTEGER,
                ("q",): STRING,
                ("$partition",): STRING,
                ("$path",): STRING,
                ("$file_size",): BIGINT,
                ("$file_modified_time",): TIMESTAMP_TZ,
            }
        )
        world.learn()
        return world

    def write(self, name: str, rows: list[Row], values: tuple[str | None, ...]) -> None:
        """Writes a file and notes its rows, with all that hidden columns say of them."""
        rng = self.rng
        content = arrow_table(self.data, rows, rng if self.mixed else None)
        path = self.lake.write(name, content, values, row_group_size=rng.choice((1, 2, 100)))
        age(path, rng.choice((0, 60, 3600, 86400)))
        uri = f"file://{path}"
        found = path.stat()
        for p, q in self.lake.owners(path):
            partition = self.lake.name_of((p, q))
            hidden: dict[Any, Any] = {
                ("q",): str(q).encode(),
                ("$partition",): partition.encode(),
                ("$path",): uri.encode(),
                ("$file_size",): found.st_size,
                ("$file_modified_time",): found.st_mtime_ns // 1_000_000 * 1000,
            }
            self.rows[partition, uri] = [
                {**r, **hidden, ("p",): k} for r in rows for k in self.keys[p]
            ]

    def remove(self, uri: str) -> None:
        Path(uri.removeprefix("file://")).unlink()
        self.rows = {key: rows for key, rows in self.rows.items() if key[1] != uri}

    def learn(self) -> None:
        """Literals are drawn from values that are there, floats' NaN among them."""
        every = [row for rows in self.rows.values() for row in rows]
        for path in self.data.paths:
            values = {row[path] for row in every if row[path] is not None}
            if values and path not in self.data.pools:
                self.data.pools[path] = sorted(values, key=str)
            self.data.pools.setdefault(path, [0] if path[0] != "q" else [b"a"])

    def predicate(self) -> Expression:
        return expression(self.rng, self.data, depth=self.rng.choice((0, 1, 2, 3)))

    def check(
        self, planner: Planner, node: Expression, narrow: Expression | None, mode: str
    ) -> None:
        oracle = Oracle(
            self.case.semantics, self.data.paths, self.rng.choice(list(Rounding)), unknown
        )
        whole = node if narrow is None else And((node, narrow))
        must = {
            file
            for file, rows in self.rows.items()
            if any(oracle.truth(whole, row) is True for row in rows)
        }
        chance = random.Random(f"{mode} {node} {narrow}")  # the world's own draws stay as they are
        announced = frozenset(chance.choice(((), ("p",), ("q",), ("p", "q"))))
        request = ScanRequest(
            NAME,
            node,
            freshness=mode,
            semantics=self.case.semantics,
            dynamic_filter_columns=announced,
        )
        found = owned(planner.plan(request), narrow, chance.choice((-1, 0, 0, 1, 2)))
        assert must <= found, (mode, node, narrow, must - found)
        assert found <= set(self.rows) or mode != "live"
        asked[mode] += len(self.rows)
        asked[f"{mode} pruned"] += len(self.rows) - len(found)
        asked["shared"] += len(found) > len({uri for _, uri in found})
        asked["narrowed"] += narrow is not None
