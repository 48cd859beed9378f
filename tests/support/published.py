"""Publishing and cleaning of a `Lake`, in this process, also by runs that die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bridge.clustering.cleaning import Cleaner, CleanReport
from bridge.clustering.publication.left import Left, left_files
from bridge.clustering.publication.originals import Originals, originals
from bridge.clustering.publication.places import OtherTable
from bridge.clustering.publication.publisher import Publisher, PublishReport
from bridge.clustering.publication.switches import Switches
from bridge.index.generations.replacements import (
    Replacement,
    forget_replacements,
    read_replacements,
    replacements_of,
)
from bridge.index.generations.store import now_micros
from bridge.kernel.types import BIGINT, STRING
from bridge.storage.port import FileStat
from bridge.table.model import Column
from tests.support.clustered import clustered, read
from tests.support.index_builds import Killed
from tests.support.lake import Lake, age

COLUMNS = (Column("x", BIGINT), Column("s", STRING))
SORTED: dict[str, Any] = {"layout": "linear", "columns": ("x",), "grouping": "time"}
_MUTATIONS = frozenset({"put", "put_if_absent", "delete", "copy", "move"})


class Life:
    """How long a run lives, and what others do meanwhile.

    Args:
        last: the mutation at which it dies, from 1; 0: it does not.
        done: whether that mutation is still made.
        others: what is done before the mutation of each number.
    """

    def __init__(
        self,
        last: int = 0,
        *,
        done: bool = False,
        others: dict[int, Callable[[], Any]] | None = None,
    ) -> None:
        self.last, self.done, self.mutations = last, done, 0
        self.others = others or {}

    def of(self, thing: Any) -> Any:
        """The storage, or the places, of this run."""
        return _Mortal(thing, self)


@dataclass(frozen=True)
class _Mortal:
    thing: Any
    life: Life

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.thing, name)
        if name not in _MUTATIONS:
            return method

        def mutate(*arguments: Any) -> Any:
            life = self.life
            life.mutations += 1
            life.others.get(life.mutations, lambda: None)()
            if life.last and life.mutations > life.last:
                raise Killed
            if life.mutations == life.last and not life.done:
                raise Killed
            result = method(*arguments)
            if life.mutations == life.last:
                raise Killed
            return result

        return mutate


@dataclass(frozen=True)
class LakePlaces:
    """The metastore of a lake; implements `Places`.

    Attributes:
        tables: locations of other tables by name.
        partitions: of these tables, elsewhere.
        unreadable: names of tables whose records are broken.
    """

    lake: Lake
    tables: dict[str, str] = field(default_factory=dict)
    partitions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()

    def all(self) -> dict[str, str]:
        return {p.name: p.location for p in self.lake.all_partitions()}

    def of(self, partition: str) -> str | None:
        return self.all().get(partition)

    def move(self, partition: str, old: str, new: str) -> bool:
        if self.of(partition) != old:
            return False
        self.lake.locations[partition] = Path(new.removeprefix("file://"))
        return True

    def others(self, near: Callable[[str], bool]) -> list[OtherTable]:
        return [
            OtherTable(
                name,
                place,
                name in self.unreadable,
                tuple(filter(near, self.partitions.get(name, ()))),
            )
            for name, place in self.tables.items()
        ]


def publisher(lake: Lake, life: Life | None = None, *, settled: float = 0.0) -> Publisher:
    """Of a run that lives so long."""
    life = life or Life()
    storage, places = life.of(lake.storage), life.of(LakePlaces(lake))
    return Publisher(lake.table(), storage, places, recursive=lake.recursive, settled=settled)


def published(
    lake: Lake, life: Life | None = None, *, refresh: bool = True, settled: float = 0.0
) -> PublishReport:
    """What `skipbridge cluster publish` does; by default without waiting until all is quiet."""
    life = life or Life()
    manifest = lake.store().latest()
    groups = [] if manifest is None else replacements_of(read_replacements(lake.store(), manifest))
    report = publisher(lake, life, settled=settled).publish(groups)
    if refresh and manifest is not None:
        _refreshed(lake, life, report)
    return report


def reverted(
    lake: Lake, life: Life | None = None, *, refresh: bool = True, settled: float = 0.0
) -> PublishReport:
    """What `skipbridge cluster revert` does."""
    life = life or Life()
    report = publisher(lake, life, settled=settled).revert()
    if refresh and lake.store().latest() is not None:
        _refreshed(lake, life, report)
    return report


def _refreshed(lake: Lake, life: Life, report: PublishReport) -> None:
    storage = life.of(lake.storage)
    lake.build(storage)
    gone = set(report.published)
    forget_replacements(lake.store(storage), lambda group: group.partition not in gone)


def left(lake: Lake) -> list[Left]:
    """What is listed with status 3."""
    switches = Switches(lake.storage, lake.location, "db.t")
    places = LakePlaces(lake).all()
    return left_files(lake.storage, switches, switches.load(), places)


def unneeded(
    lake: Lake, places: LakePlaces | None = None, *, older_than: float = -5.0
) -> Originals:
    """What `skipbridge cluster originals` lists; by default without a retention."""
    places = places or LakePlaces(lake)
    before = now_micros() - int(older_than * 1e6)
    in_use = Cleaner(lake.table(), lake.store(), places, before, dry_run=True).files_in_use()
    switches = Switches(lake.storage, lake.location, "db.t")
    return originals(lake.storage, switches, places, in_use, before, recursive=lake.recursive)


def cleaned(
    lake: Lake, life: Life | None = None, *, older_than: float = -5.0, dry_run: bool = False
) -> CleanReport:
    """What `skipbridge cluster clean` does; by default without a retention."""
    life = life or Life()
    store = lake.store(life.of(lake.storage))
    before = now_micros() - int(older_than * 1e6)
    return Cleaner(lake.table(), store, LakePlaces(lake), before, dry_run=dry_run).run()


def stat(lake: Lake, path: Path) -> FileStat:
    found = lake.storage.stat(f"file://{path}")
    assert found is not None
    return found


def five_files(root: Path) -> Lake:
    """Four files of two rows, clustered into one; a fifth that was written afterwards."""
    made = Lake(root, columns=COLUMNS)
    for i in range(4):
        fill_one(made, i)
    made.build()
    clustered(made, **SORTED)
    fill_one(made, 4)
    return made


def fill_one(lake: Lake, number: int) -> Path:
    """The same at the home of the table."""
    return lake.write(f"f{number}.parquet", {"x": [number * 10, number * 10 + 9], "s": ["a", "b"]})


def fill_at(path: Path, number: int) -> None:
    """Writes a file of `every` of this number."""
    x = [number * 10, number * 10 + 9]
    pq.write_table(pa.table({"x": x, "s": ["a", "b"]}), path)
    age(path, 50)


def place(lake: Lake) -> Path:
    """Where the table lies now."""
    return Path(lake.location.removeprefix("file://"))


def stock(lake: Lake) -> Counter[int]:
    """What a reader that lists the location finds."""
    found: Counter[int] = Counter()
    for path in place(lake).glob("*"):
        if path.is_file() and not path.name.startswith((".", "_")):
            found.update(pq.ParquetFile(path).read()["x"].to_pylist())
    return found


def by_path(lake: Lake, pattern: str) -> list[tuple[int]]:
    """What DuckDB finds without the table's index."""
    found = duckdb.sql(f"SELECT file FROM glob('{lake.path(pattern)}')").fetchall()
    files = [file for (file,) in found if "/.skipbridge/" not in file]
    return duckdb.sql(f"SELECT x FROM read_parquet({files})").fetchall()


def every(*numbers: int) -> Counter[int]:
    """The values of x in files of these numbers."""
    return Counter(x for n in numbers for x in (n * 10, n * 10 + 9))


def numbers(lake: Lake) -> Counter[int]:
    """What the planner finds."""
    rows, _ = read(lake)
    return Counter({int(row[1]): count for row, count in rows.items()})


def groups_of(lake: Lake) -> list[Replacement]:
    """The replacements of the newest generation."""
    manifest = lake.store().latest()
    assert manifest is not None
    return replacements_of(read_replacements(lake.store(), manifest))
