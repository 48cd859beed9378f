"""Spark's statements before each write of clustering, of a publication and of a revert.

INSERT INTO, ``insertInto`` of a DataFrame, and INSERT OVERWRITE, static and dynamic: statements
that begin at that write, and such that began before the first look and commit then.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import bridge
from bridge.clustering.commands import run as cluster
from bridge.clustering.commands.places import MetastorePlaces
from bridge.clustering.commands.publish import accept, list_left_files, publish, revert
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import STRING
from bridge.metastore.catalog import HiveCatalog
from bridge.runtime.create_table import register_table
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.engines.conftest import RunningMetastore
from tests.engines.stock_readers import RunningSpark
from tests.engines.test_publishing import COLUMNS, put
from tests.support.forked_commands import kind_of

pytestmark = [pytest.mark.nightly, pytest.mark.engine]
MUTATIONS = ("put", "put_if_absent", "copy", "delete")
STEPS = 6
"""Writes before which a statement runs, in each partition; a publication makes fewer."""
FILES, ROWS = 3, 10
WRITTEN = ("plan", "data", "group", "ended", "replacements", "generation")
"""Kinds of files that clustering writes."""
WRITES: dict[str, tuple[str, ...]] = {
    "append": ("INSERT INTO {table} PARTITION (day='{day}') SELECT {x}, 'new'",),
    "insertInto": ("insertInto append {table} SELECT {x}, 'new', '{day}'",),
    "static": ("INSERT OVERWRITE {table} PARTITION (day='{day}') SELECT {x}, 'new'",),
    "dynamic": (
        "SET spark.sql.sources.partitionOverwriteMode=dynamic",
        "insertInto overwrite {table} SELECT {x}, 'new', '{day}'",
    ),
}
ALL = list(product(WRITES, (False, True), range(1, STEPS + 1)))


@dataclass(frozen=True)
class Writer:
    """A statement on one partition; with ``began`` it began before the first look there."""

    kind: str
    began: bool
    step: int
    day: int

    @property
    def old(self) -> Counter[int]:
        """The rows that the partition has before."""
        return Counter(range(self.day * 100, self.day * 100 + FILES * ROWS))

    @property
    def new(self) -> int:
        return self.day * 100 + 99


class World:
    """A table with a partition for each writer."""

    def __init__(self, metastore: RunningMetastore, spark: RunningSpark, root: Path) -> None:
        self.name = TableName("spark_steps", root.name)
        self.writers = {n: Writer(*each, n) for n, each in enumerate(ALL, 1)}
        self.config = Config(
            {
                "metastore.uri": Setting(metastore.uri, "test"),
                "metastore.timeout": Setting("10m", "test"),
            }
        )
        self._metastore, self._spark, self._root = metastore, spark, root
        self._open: dict[int, Path] = {}
        self.ran: set[int] = set()
        homes = {day: root / f"day={day}" for day in self.writers}
        for day, home in homes.items():
            home.mkdir(parents=True)
            for i in range(FILES):
                put(home / f"f{i}.parquet", day * 100 + i * ROWS, ROWS)
        keys = (Column("day", STRING),)
        self._table = CatalogTable(self.name, COLUMNS, keys, f"file://{root}")
        parts = [Partition(f"day={d}", (str(d),), f"file://{home}") for d, home in homes.items()]
        with metastore.client() as client:
            client.create_database(self.name.schema)
            register_table(client, self.name, self._table, parts)
        index_table(self.config, str(self.name), local=True, progress=_quiet, say=print)

    # writers

    def write(self, writer: Writer) -> None:
        """Runs its statement, or lets it go on."""
        self.ran.add(writer.day)
        if writer.began:
            (self._open.pop(writer.day) / "go").touch()
            self._spark.end()
            return
        for each in WRITES[writer.kind]:
            self._spark.ask(each.format(table=self.name, day=writer.day, x=writer.new))

    def begin(self, writer: Writer) -> None:
        """Begins its statement, and waits until Spark has planned it and computes rows."""
        place = self._root.with_name(f"{self._root.name}-pause{writer.day}")
        place.mkdir()
        *settings, last = WRITES[writer.kind]
        for each in settings:
            self._spark.ask(each)
        x = f"pause({writer.new}, '{place}')"
        self._spark.begin(last.format(table=self.name, day=writer.day, x=x))
        while not (place / "begun").exists():
            assert self._spark.is_alive
        self._open[writer.day] = place

    def end_all(self) -> None:
        """Lets statements go on whose step did not come."""
        for day in list(self._open):
            self.write(self.writers[day])

    # commands

    def clustered(self) -> dict[str, Any]:
        strategy = Strategy("", ("x",), "time", Limits(most_groups=1000))
        made = cluster.schedule(self.config, str(self.name), strategy, print)
        return cluster.run(
            self.config, str(self.name), made["instant"], local=True, progress=_quiet
        )

    def published(self) -> None:
        publish(self.config, str(self.name), local=True, settled=0.0, progress=_quiet, say=print)

    def reverted(self) -> None:
        revert(self.config, str(self.name), local=True, settled=0.0, progress=_quiet, say=print)

    # readers

    def places(self) -> dict[int, Path]:
        with self._metastore.client() as client, HiveCatalog(client) as catalog:
            found = MetastorePlaces(catalog, self._table, "").all()
        return {int(n[4:]): Path(p.removeprefix("file://")) for n, p in found.items()}

    def there(self) -> dict[int, Counter[int]]:
        """The rows in the locations in force by partition, as all readers find them."""
        found = {day: _rows(place.glob("[!._]*")) for day, place in self.places().items()}
        every = sum(found.values(), Counter[int]())
        with bridge.connect(metastore_uri=self._metastore.uri) as session:
            of_api = session.table(str(self.name)).scan(columns=["x"]).to_arrow()["x"]
        assert Counter(of_api.to_pylist()) == every
        self._spark.ask(f"REFRESH TABLE {self.name}")
        assert Counter(x for (x,) in self._spark.ask(f"SELECT x FROM {self.name}")) == every
        return found

    def named(self) -> dict[int, Counter[int]]:
        """The rows of the listed files, by partition."""
        found: dict[int, Counter[int]] = defaultdict(Counter)
        for each in list_left_files(self.config, str(self.name)):
            path = Path(each["path"].removeprefix("file://"))
            assert path.name != ".skipbridge_left", each
            found[int(each["partition"][4:])] += _rows([path])
        return found

    def check(self) -> None:
        """Each row is read once or named; after what the listing says, each is read."""
        there, named = self.there(), self.named()
        for day, writer in self.writers.items():
            new = Counter([writer.new])
            seen = there[day] + named[day]
            assert max(there[day].values()) == 1, writer
            if day not in self.ran:
                assert there[day] == writer.old and not named[day], writer
            elif writer.kind in ("append", "insertInto"):
                assert seen == writer.old + new and writer.old <= there[day], writer
            else:
                assert new <= seen, writer
                assert there[day] in (writer.old, new, writer.old + new), writer

    def bring_over(self) -> int:
        """Does what is listed, in that order; the number of files."""
        entries = list_left_files(self.config, str(self.name))
        for each in entries:
            self._spark.ask(each["statement"].rstrip(";"))
            accept(self.config, str(self.name), [each["path"]])
        assert not list_left_files(self.config, str(self.name))
        there = self.there()
        for day, writer in self.writers.items():
            if writer.kind in ("append", "insertInto") and day in self.ran:
                assert there[day] == writer.old + Counter([writer.new]), writer
        return len(entries)


class Steps:
    """Lets the writer of each partition write before a write of the command that works there."""

    def __init__(self, patch: pytest.MonkeyPatch, world: World) -> None:
        self._world, self._count = world, 0
        self._writer: Writer | None = None
        self._keys = {
            hashlib.sha256(f"day={day}".encode()).hexdigest()[:16]: day for day in world.writers
        }
        _before_writes(patch, self._before)

    def _before(self, uri: str) -> None:
        last = uri.rpartition("/")[2]
        if "/switches/" in uri and last.endswith(".begun.json"):
            self._writer = self._world.writers[self._keys[last[:16]]]
            self._count = 0
            self._world.end_all()
            if self._writer.began:
                self._world.begin(self._writer)
        self._count += 1
        if self._writer is not None and self._count == self._writer.step:
            self._world.write(self._writer)


def _before_writes(patch: pytest.MonkeyPatch, meet: Callable[[str], None]) -> None:
    """Calls a function with the URI of each file that is written, before it is."""
    lock = threading.Lock()
    for name in MUTATIONS:
        method = getattr(LocalStorage, name)

        def write(storage: Any, *rest: Any, _method: Any = method) -> Any:
            with lock:
                meet(str(rest[0]))
            return _method(storage, *rest)

        patch.setattr(LocalStorage, name, write)


def test_clustering(
    metastore_401: RunningMetastore, own_spark: RunningSpark, tmp_path: Path
) -> None:
    """Before the first write of each kind, one statement of each kind in a partition of its own."""
    world = World(metastore_401, own_spark, tmp_path / "clustered")
    now = [each for each in world.writers.values() if not each.began]
    waiting = {kind: [w for w in now if w.step == step] for step, kind in enumerate(WRITTEN, 1)}

    def meet(uri: str) -> None:
        for each in waiting.pop(kind_of(uri), ()):
            world.write(each)

    with pytest.MonkeyPatch.context() as patch:
        _before_writes(patch, meet)
        report = world.clustered()
    assert not waiting and report["rejected"] and report["old_files"] > FILES * len(world.ran)
    for _ in range(2):
        there = world.there()
        for day, writer in world.writers.items():
            kept = day not in world.ran or writer.kind in ("append", "insertInto")
            new = Counter([writer.new] if day in world.ran else [])
            assert there[day] == (writer.old if kept else Counter[int]()) + new, writer
        index_table(world.config, str(world.name), local=True, progress=_quiet, say=print)


@pytest.mark.parametrize("back", [False, True])
def test_publications(
    metastore_401: RunningMetastore, own_spark: RunningSpark, tmp_path: Path, back: bool
) -> None:
    world = World(metastore_401, own_spark, tmp_path / ("back" if back else "there"))
    assert not world.clustered()["rejected"]
    run: Callable[[], None] = world.published
    if back:
        run()
        run = world.reverted
    with pytest.MonkeyPatch.context() as patch:
        Steps(patch, world)
        run()
    world.end_all()
    world.check()
    run()  # what was begun is ended
    world.check()
    assert len(world.ran) > len(world.writers) * 3 // 4
    assert world.bring_over() > 5


def _rows(paths: Any) -> Counter[int]:
    found: Counter[int] = Counter()
    for path in paths:
        found.update(pq.ParquetFile(path).read()["x"].to_pylist())
    return found


def _quiet(done: int, total: int) -> None:
    """No progress is shown."""
