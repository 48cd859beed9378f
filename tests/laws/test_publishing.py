"""The law of publishing: each row is read once, or lies in a file that is named with status 3.

Histories of writers, of clustering, publishing, reverting and cleaning, each of which may die at
any mutation of storage or metastore; of writers that are at work at each of these steps, and know
the directory of before; of operators who delete what `originals` lists, and put partitions back to
old directories by hand. After every step: engines that list the location in force, and the planner,
find each committed row once, or `left` names the file, or the directory, in which it is. A reader
by path of ``**/*.parquet`` finds no row twice.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.clustering.publication.left import AGAIN
from bridge.kernel.types import BIGINT, STRING
from bridge.table.model import Column
from tests.support.clustered import SMALL, executed, read, scheduled
from tests.support.index_builds import Killed
from tests.support.lake import Lake, age
from tests.support.published import Life, cleaned, left, published, reverted, unneeded
from tests.tiers import examples

EXAMPLES = examples(10, 10, 600)
STEPS = st.sampled_from(
    ["write", "write", "overwrite", "delete", "late", "late", "late overwrite", "refresh",
     "cluster", "cluster", "publish", "publish", "revert", "revert", "die publishing",
     "die reverting", "meet publishing", "meet publishing", "meet reverting", "clean",
     "die cleaning", "lose", "rm originals", "by hand", "move"]
)  # fmt: skip
SCHEMA = pa.schema([("x", pa.int64()), ("s", pa.string())])
Ids = Counter[int]


def ids_of(paths: Iterable[Path]) -> Ids:
    found: Ids = Counter()
    for path in paths:
        found.update(pq.ParquetFile(path).read()["x"].to_pylist())
    return found


def data_in(directory: Path) -> list[Path]:
    """What an engine reads as the directory's."""
    every = directory.iterdir() if directory.exists() else ()
    return sorted(p for p in every if p.is_file() and p.name[0] not in "._" and p.stat().st_size)


class Story:
    """A table, and what its writers have committed: every row has an id of its own.

    Attributes:
        live: rows that count.
        doubtful: rows that a writer deleted or replaced at a moment when nobody can tell which
            directory counts: they may be read, and need not.
    """

    def __init__(self, root: Path, draw: Callable[..., Any], partitioned: bool) -> None:
        keys = (Column("day", STRING),) if partitioned else ()
        self.lake = Lake(root, columns=(Column("x", BIGINT), Column("s", STRING)), keys=keys)
        if partitioned:
            self.lake.partition_values = [("1",), ("2",)]
        self.draw = draw
        self.live: set[int] = set()
        self.doubtful: set[int] = set()
        self.dead: set[int] = set()
        self.by_hand = False
        self.left: list[tuple[str, Path]] = []
        self.written = self.next = 0
        for place in self.places.values():
            place.mkdir(parents=True, exist_ok=True)

    @property
    def places(self) -> dict[str, Path]:
        every = self.lake.partition_values
        return {self.lake.name_of(values): self.lake.directory(values) for values in every}

    def files(self) -> list[Path]:
        return [path for place in self.places.values() for path in data_in(place)]

    def _put(self, path: Path) -> set[int]:
        count = self.draw(st.integers(1, 4))
        x = list(range(self.next, self.next + count))
        self.next += count
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"x": x, "s": [None if v % 3 == 0 else f"s{v}" for v in x]}
        pq.write_table(pa.table(data, SCHEMA), path)
        self.written += 1
        age(path, 50_000 - self.written)  # no two writes have one time
        return set(x)

    def _remember(self, before: dict[str, Path]) -> None:
        now = self.places
        self.left += [(n, d) for n, d in before.items() if now[n] != d and (n, d) not in self.left]
        self.left = [each for each in self.left if now[each[0]] != each[1]]

    def step(self, name: str) -> None:
        before = self.places
        getattr(self, f"_{name.replace(' ', '_')}")()
        if name != "move":
            self._remember(before)

    def _write(self) -> None:
        place = self.places[self.draw(st.sampled_from(sorted(self.places)))]
        self.live |= self._put(place / f"f{self.written}.parquet")

    def _overwrite(self) -> None:
        if files := self.files():
            path = self.draw(st.sampled_from(files))
            self._forget(path)
            self.live |= self._put(path)

    def _delete(self) -> None:
        if files := self.files():
            path = self.draw(st.sampled_from(files))
            self._forget(path)
            path.unlink()

    def _forget(self, path: Path) -> None:
        """Rows are gone; if the directory is not in force, a copy of them may be read."""
        gone = set(ids_of([path]))
        self.live -= gone
        known = path.parent in self.places.values() and not self.by_hand
        (self.dead if known else self.doubtful).update(gone - self.doubtful)

    def _late(self) -> None:
        if self.left:
            directory = self.draw(st.sampled_from(self.left))[1]
            self.live |= self._put(directory / f"late{self.written}.parquet")

    def _late_overwrite(self) -> None:
        files = [path for _, place in self.left for path in data_in(place)]
        if files:
            path = self.draw(st.sampled_from(files))
            self._forget(path)
            self.live |= self._put(path)

    def _refresh(self) -> None:
        self.lake.build(full=self.draw(st.booleans()))

    def _cluster(self) -> None:
        if self.lake.store().generations():
            given = {"limits": SMALL, "layout": "linear", "columns": ("x",), "grouping": "time"}
            plan = scheduled(self.lake, **given)
            if plan.groups:
                executed(self.lake, plan)

    def _publish(self) -> None:
        published(self.lake, refresh=self.draw(st.booleans()))

    def _revert(self) -> None:
        reverted(self.lake)

    def _die_publishing(self) -> None:
        self._die(lambda life: published(self.lake, life))

    def _die_reverting(self) -> None:
        self._die(lambda life: reverted(self.lake, life))

    def _die(self, run: Callable[[Life], Any]) -> None:
        with contextlib.suppress(Killed):
            run(Life(self.draw(st.integers(1, 16)), done=self.draw(st.booleans())))

    def _meet_publishing(self) -> None:
        self._meet(lambda life: published(self.lake, life))

    def _meet_reverting(self) -> None:
        self._meet(lambda life: reverted(self.lake, life))

    def _meet(self, run: Callable[[Life], Any]) -> None:
        """A writer that asked for the location before writes there while a run is at work."""
        place = self.places[self.draw(st.sampled_from(sorted(self.places)))]
        kind = self.draw(st.sampled_from(["append", "append", "overwrite", "delete", "publish"]))

        def meet() -> None:
            files = data_in(place)
            if kind == "publish":
                published(self.lake)
            elif kind == "append" or not files:
                self.live |= self._put(place / f"met{self.written}.parquet")
            else:
                path = self.draw(st.sampled_from(files))
                gone = set(ids_of([path]))
                self.live -= gone
                self.doubtful |= gone
                if kind == "overwrite":
                    self.live |= self._put(path)
                else:
                    path.unlink()

        run(Life(others={self.draw(st.integers(1, 14)): meet}))

    def _clean(self) -> None:
        if self.lake.store().generations():
            cleaned(self.lake)

    def _die_cleaning(self) -> None:
        if self.lake.store().generations():
            life = Life(self.draw(st.integers(1, 10)), done=self.draw(st.booleans()))
            with contextlib.suppress(Killed):
                cleaned(self.lake, life)

    def _lose(self) -> None:
        for path in self.lake.path(".skipbridge").rglob("*"):
            if path.is_file() and self.lake.path(".skipbridge") in path.parents:
                path.unlink()

    def _rm_originals(self) -> None:
        for uri in unneeded(self.lake).files:
            Path(uri.removeprefix("file://")).unlink()

    def _by_hand(self) -> None:
        """DROP PARTITION and ADD, or SET LOCATION, with a directory that was left."""
        if self.left:
            name, place = self.draw(st.sampled_from(self.left))
            self.lake.locations[name] = place
            self.by_hand = True
            self.doubtful |= self.dead
            self.dead.clear()

    def _move(self) -> None:
        """The table's directory is renamed, and the metastore told."""
        root, there = self.lake.root, self.lake.root.with_name(f"{self.lake.root.name}x")
        if self.lake.store().generations():
            return  # an index belongs to one location
        root.rename(there)

        def moved(path: Path) -> Path:
            return there / path.relative_to(root)

        self.lake.root = there
        self.lake.locations = {name: moved(place) for name, place in self.lake.locations.items()}
        self.left = [(name, moved(place)) for name, place in self.left]

    def check(self) -> None:
        stock = ids_of(self.files())
        assert max(stock.values(), default=1) == 1
        assert {int(row[1]): count for row, count in read(self.lake)[0].items()} == dict(stock)
        listed = left(self.lake)
        named: set[int] = set()
        for each in listed:
            path = Path(each.state.path.removeprefix("file://"))
            if each.is_file:
                named |= set(ids_of([path]))
            else:
                named |= set(ids_of(data_in(Path(each.tip.removeprefix("file://")))))
        lost = self.live - stock.keys() - named
        assert not lost, (lost, listed)
        again = any(each.why == AGAIN for each in listed)
        assert again or not self.dead & stock.keys(), self.dead & stock.keys()
        home = self.lake.path("")
        by_path = ids_of(p for p in home.glob("**/*.parquet") if ".skipbridge/" not in str(p))
        assert max(by_path.values(), default=1) == 1


@settings(max_examples=EXAMPLES)
@given(st.data(), st.booleans(), st.lists(STEPS, min_size=4, max_size=14))
def test_every_row_is_read_once_or_named(
    data: st.DataObject, partitioned: bool, steps: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as base:
        story = Story(Path(base) / "lake", data.draw, partitioned)
        first = ["write", "write", "write", "write", "refresh", "cluster", "write", "publish"]
        for name in [*first, *steps, "publish", "clean"]:
            story.step(name)
            story.check()
