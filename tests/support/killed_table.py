"""A table that is clustered by processes that die, and what must hold of it meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.app.api.session import Session
from bridge.clustering.execution import DIRECTORY
from bridge.index.generations.replacements import read_replacements, replacements_of
from bridge.kernel.config import Config
from bridge.kernel.types import BIGINT, STRING
from bridge.table.model import Column
from tests.support.clustered import read, rows_in, timeline_of
from tests.support.forked_commands import Commands
from tests.support.lake import Lake, age


class Killed:
    """One table in three partitions, or as many as days are given."""

    def __init__(
        self, root: Path, commands: Commands, rng: random.Random, days: str = "abc"
    ) -> None:
        self.lake = Lake(
            root,
            (Column("x", BIGINT), Column("s", STRING)),
            (Column("day", STRING),),
        )
        self.lake.partition_values = [(day,) for day in days]
        self.commands, self.rng = commands, rng
        self.table = root / "t"
        self.written = 0
        for values in self.lake.partition_values:
            for _ in range(2):
                self.write(values)

    def write(self, values: tuple[str | None, ...]) -> None:
        path = self.lake.directory(values) / f"f{self.written}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        x = [self.rng.randrange(100) for _ in range(50)]
        table = pa.table({"x": pa.array(x, pa.int64()), "s": [f"s{v % 7}" for v in x]})
        hidden = path.with_name(f".{path.name}")  # no reader sees half of a file
        pq.write_table(table, hidden)
        self.written += 1
        age(hidden, 100_000 - self.written)
        hidden.rename(path)

    def files(self) -> list[Path]:
        return sorted(self.table.glob("day=*/*.parquet"))

    def rows(self) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for path in self.files():
            name = path.parent.name
            found.update((name, *map(repr, row.values())) for row in rows_in(path))
        return found

    def check(self) -> set[str]:
        """All readers see the committed rows; returns the files that they read."""
        expected = self.rows()
        rows, files = read(self.lake)
        assert rows == expected
        with Session(Config()) as session:
            found = session.table(str(self.table)).scan().to_arrow().to_pylist()
        assert Counter(
            (f"day={row['day']}", repr(row["x"]), repr(row["s"])) for row in found
        ) == Counter(expected)
        self.check_references()
        return files

    def check_references(self) -> None:
        """What a generation or a plan that waits names is in storage as it says."""
        store = self.lake.store()
        held = store.latest()
        assert held is not None and store.lacks(held.blobs()) is None
        replaced = replacements_of(read_replacements(store, held))
        named = [state for group in replaced for state in group.new]
        timeline = timeline_of(self.lake)
        for state in filter(lambda state: state.pending, timeline.states(held)):
            for group in timeline.plan(state.instant).groups:
                result = timeline.result(state.instant, group.id)
                named += () if result is None else result.new
        for file in named:
            stat = self.lake.storage.stat(file.path)
            assert stat is not None and (stat.size, stat.modified) == (file.size, file.modified)

    def records(self) -> dict[str, bytes]:
        """The records of groups that are done."""
        found = (self.table / ".skipbridge/clustering").glob("*.group-*.json")
        return {path.name: path.read_bytes() for path in found}

    def new_files(self) -> set[str]:
        """Files of plans, without those that were written aside."""
        return {str(path) for path in (self.table / DIRECTORY).rglob("c*.parquet-data")}

    def states(self) -> list[str]:
        return [s.state for s in timeline_of(self.lake).states(self.lake.store().latest())]
