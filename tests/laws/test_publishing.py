"""The law of publishing: every reader sees exactly the committed rows, at every moment.

Histories of writers (write, overwrite, delete), of clustering, publishing and cleaning, which may
die at any mutation of storage or metastore, and of the index. Writers also compact directories that
were left, and may take long for it: that changes nothing. The stock reader lists the locations that
the metastore has. After every step it, and the planner, find the rows that writers have committed.
A file that is put into a directory that was left counts from the publish run that brings it over,
in the state in which it was brought over; until then it may be missing, and never comes
twice. Half of it is never seen.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.publishing import PublishReport
from bridge.expression.builders import ge
from bridge.table.model import Column
from bridge.types import BIGINT, STRING
from tests.support.clustered import SMALL, executed, read, scheduled
from tests.support.index_builds import Killed
from tests.support.lake import Lake, age
from tests.support.published import Life, cleaned, published
from tests.tiers import examples

EXAMPLES = examples(6, 6, 300)
Rows = Counter[tuple[Any, ...]]
STEPS = st.sampled_from(
    ["write", "write", "overwrite", "delete", "late", "late", "refresh", "cluster", "cluster",
     "publish", "publish", "die publishing", "die publishing", "clean", "die cleaning", "lose",
     "compact", "slow compact", "late again", "half late"]
)  # fmt: skip
SCHEMA = pa.schema([("x", pa.int64()), ("s", pa.string())])


def rows_of(partition: str, path: Path) -> Rows:
    table = pq.ParquetFile(path).read()
    return Counter((partition, *map(repr, row.values())) for row in table.to_pylist())


def _whole(directory: Path) -> list[Path]:
    """The files whose writers have ended."""
    every = sorted(directory.glob("*.parquet"))
    return [path for path in every if not path.name.startswith("half")]


class Story:
    """A table, the rows that were committed, and those in directories that were left."""

    def __init__(self, root: Path, draw: Any, partitioned: bool) -> None:
        keys = (Column("day", STRING),) if partitioned else ()
        self.lake = Lake(root, columns=(Column("x", BIGINT), Column("s", STRING)), keys=keys)
        if partitioned:
            self.lake.partition_values = [("1",), ("2",)]
        self.draw = draw
        self.committed: Rows = Counter()
        # Late files: the rows that they hold, and those that readers see of them.
        self.late: dict[Path, tuple[Rows, Rows]] = {}
        self.left: list[tuple[str, Path]] = []
        self.written = 0
        for values in self.lake.partition_values:
            self.lake.directory(values).mkdir(parents=True, exist_ok=True)

    @property
    def places(self) -> dict[str, Path]:
        return {
            self.lake.name_of(values): self.lake.directory(values)
            for values in self.lake.partition_values
        }

    def files(self) -> list[tuple[str, Path]]:
        every = [(name, path) for name, d in self.places.items() for path in d.glob("*.parquet")]
        return sorted(each for each in every if not each[1].name.startswith("."))

    def stock(self) -> Rows:
        """What an engine reads that lists the metastore's locations."""
        found: Rows = Counter()
        for name, path in self.files():
            found.update(rows_of(name, path))
        return found

    def _put(self, name: str, path: Path) -> Rows:
        x = self.draw(st.lists(st.one_of(st.none(), st.integers(-3, 9)), max_size=6))
        data = {"x": x, "s": [None if v == 3 else f"s{v}{self.written}" for v in x]}
        pq.write_table(pa.table(data, SCHEMA), path)
        self.written += 1
        age(path, 5000 - self.written)  # no two writes have one time
        return rows_of(name, path)

    def step(self, step: str) -> None:
        lake, draw, files = self.lake, self.draw, self.files()
        before = self.places
        if step == "write":
            name = draw(st.sampled_from(sorted(before)))
            made = self._put(name, before[name] / f"f{self.written}.parquet")
            self.committed += made
        elif step == "overwrite" and files:
            name, path = draw(st.sampled_from(files))
            self.committed -= rows_of(name, path)
            self.committed += self._put(name, path)
        elif step == "delete" and files:
            name, path = draw(st.sampled_from(files))
            self.committed -= rows_of(name, path)
            path.unlink()
        elif step == "late" and self.left:
            name, directory = draw(st.sampled_from(self.left))
            path = directory / f"late{self.written}.parquet"
            self.late[path] = (self._put(name, path), Counter())
        elif step == "late again" and (there := self._late_there()):
            name, path = draw(st.sampled_from(there))
            self.late[path] = (self._put(name, path), self.late[path][1])
        elif step == "half late" and self.left:
            _, directory = draw(st.sampled_from(self.left))
            path = directory / f"half{self.written}.parquet"
            self._put("", path)
            path.write_bytes(path.read_bytes()[: draw(st.integers(1, 200))])
            age(path, 5000 - self.written)
        elif step == "compact" and self.left and all(a == b for a, b in self.late.values()):
            chosen = draw(st.sampled_from(self.left))
            held = _whole(chosen[1])
            rows = [pq.ParquetFile(path).read() for path in held]
            if rows:
                made = chosen[1] / f"compacted{self.written}.parquet"
                pq.write_table(pa.concat_tables(rows), made)
            for path in held:
                path.unlink()
            self.left = [each for each in self.left if each != chosen]
        elif step == "slow compact" and self.left and all(a == b for a, b in self.late.values()):
            self._compact_slowly(*draw(st.sampled_from(self.left)))
        elif step == "refresh":
            lake.build(full=draw(st.booleans()))
        elif step == "cluster" and lake.store().generations():
            plan = scheduled(lake, limits=SMALL, layout="linear", columns=("x",), grouping="time")
            if plan.groups:
                executed(lake, plan)
        elif step == "publish":
            self._told(published(lake, refresh=draw(st.booleans())))
        elif step == "die publishing":
            self._die()
        elif step == "clean" and lake.store().generations():
            cleaned(lake)
            self._forget()
        elif step == "die cleaning" and lake.store().generations():
            life = Life(draw(st.integers(1, 12)), done=draw(st.booleans()))
            with contextlib.suppress(Killed):
                cleaned(lake, life)
            self._forget()
        elif step == "lose":
            for path in (lake.root / "t/.skipbridge/generations").glob("*.json"):
                path.unlink()
        self.left += [(name, d) for name, d in before.items() if d != self.places[name]]

    def _compact_slowly(self, name: str, directory: Path) -> None:
        """A compaction of some files ends after its new file was brought over.

        Publishing takes it back, or names it: then somebody deletes the copy.
        """
        held = _whole(directory)
        chosen = self.draw(st.lists(st.sampled_from(held), unique=True, min_size=1)) if held else []
        made = directory / f"slow{self.written}.parquet"
        rows = [pq.ParquetFile(path).read() for path in chosen]
        if not sum(map(len, rows)):
            return
        pq.write_table(pa.concat_tables(rows), made)
        self.written += 1
        age(made, 5000 - self.written)
        before = self.stock()
        published(self.lake)
        for path in chosen:
            path.unlink()
        report = published(self.lake)
        if self.stock() != before:
            assert f"file://{made}" in report.doubtful
            (copy,) = self.places[name].glob(f"*{made.name}")
            copy.unlink()
        self.left = [each for each in self.left if each != (name, directory)]

    def _forget(self) -> None:
        """The retention has ended: writers know the new directories."""
        self.left = []

    def _late_there(self) -> list[tuple[str, Path]]:
        return [(n, path) for n, d in self.left for path in self.late if path.parent == d]

    def _die(self) -> None:
        life = Life(self.draw(st.integers(1, 30)), done=self.draw(st.booleans()))
        try:
            report = published(self.lake, life)
        except Killed:
            self._settle()
        else:
            self._told(report)

    def _told(self, report: PublishReport) -> None:
        """Late files count, but for those that the run names."""
        named = {*report.overwritten, *report.withheld}
        for path, (rows, seen) in self.late.items():
            if f"file://{path}" not in named and rows != seen:
                self._bring(path, rows, seen)

    def _bring(self, path: Path, rows: Rows, seen: Rows) -> None:
        self.committed -= seen
        self.committed += rows
        self.late[path] = (rows, rows)

    def _settle(self) -> None:
        """Late files may have been brought over by a run that died: any of them, each once."""
        news = [(p, *both) for p, both in self.late.items() if both[0] != both[1]]
        stock, before = self.stock(), self.committed
        for chosen in itertools.product([False, True], repeat=len(news)):
            self.committed = before.copy()
            brought = [each for each, wanted in zip(news, chosen, strict=True) if wanted]
            for _, rows, seen in brought:
                self.committed -= seen
                self.committed += rows
            if self.committed == stock:
                self.late |= {path: (rows, rows) for path, rows, _ in brought}
                return
        raise AssertionError(stock - before)

    def check(self) -> None:
        assert self.stock() == self.committed
        assert read(self.lake)[0] == self.committed
        some, _ = read(self.lake, ge("x", 4))
        assert some <= self.committed
        for row, count in self.committed.items():
            if row[1] != "None" and int(row[1]) >= 4:
                assert some[row] == count
        if self.lake.store().generations() and not self.lake.build().committed:
            assert read(self.lake, freshness="snapshot")[0] == self.committed


@settings(max_examples=EXAMPLES)
@given(st.data(), st.booleans(), st.lists(STEPS, min_size=4, max_size=14))
def test_every_reader_sees_exactly_the_committed_rows(
    data: st.DataObject, partitioned: bool, steps: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        story = Story(Path(root), data.draw, partitioned)
        first = ["write", "write", "write", "write", "refresh", "cluster", "write", "publish"]
        for name in [*first, *steps, "publish", "clean"]:
            story.step(name)
            story.check()
