"""Three engines, a copying shell and two operators at one table, all at once.

Spark and Trino append, Hive appends and overwrites, files are copied to where partitions lie or
have been. Meanwhile two operators cluster, publish, revert and clean, and are killed at times. When
all have ended, the operator does what is listed: then each reader finds every committed row once.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import bridge
from bridge.clustering.commands.places import MetastorePlaces
from bridge.clustering.commands.publish import accept, list_left_files
from bridge.kernel.config import Config, Setting, variable_of
from bridge.kernel.types import STRING
from bridge.metastore.catalog import HiveCatalog
from bridge.runtime.create_table import register_table
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.stack import ask
from tests.engines.stock_readers import RunningSpark
from tests.engines.test_publishing import COLUMNS, put
from tests.engines.test_publishing_hive import SETTINGS
from tests.support.forked_commands import Commands, forked_commands
from tests.tiers import seed

pytestmark = [pytest.mark.nightly, pytest.mark.engine]
COMMANDS = 60
DAYS = ("1", "2", "3")
REPLACED = "3"
"""The partition that Hive overwrites, and only Hive writes to."""
Ids = Counter[int]


class Storm:
    """The table, and what each writer has committed.

    Attributes:
        live: ids of rows whose statement has ended well.
        replaced: those in the partition that Hive overwrites.
        doubtful: those of statements that failed, and rows that Hive has replaced; these may be
            read.
    """

    def __init__(
        self, metastore: RunningMetastore, trino: int, spark: RunningSpark,
        hive: RunningHiveServer2, root: Path, number: int,
    ) -> None:  # fmt: skip
        self.metastore, self.trino, self.spark, self.hive = metastore, trino, spark, hive
        self.root, self.name = root, TableName("storms", f"t{number}")
        self.rng = random.Random(seed(3800) * 1_000 + number)
        self.config = Config({"metastore.uri": Setting(metastore.uri, "test")})
        self.live: set[int] = set()
        self.doubtful: set[int] = set()
        self.failed: Counter[str] = Counter()
        self.wrote: Counter[str] = Counter()
        self.done = threading.Event()
        self._next, self._lock = 0, threading.Lock()
        self.replaced: set[int] = set()
        self.known = {day: [root / f"day={day}"] for day in DAYS}
        for day in DAYS:
            self.known[day][0].mkdir(parents=True)
            for _ in range(4):
                self.copy(self.known[day][0], 20)
        self.replaced = set(self.ids_in([self.known[REPLACED][0]]))
        self.table = CatalogTable(self.name, COLUMNS, (Column("day", STRING),), f"file://{root}")
        parts = [Partition(f"day={d}", (d,), f"file://{root}/day={d}") for d in DAYS]
        with metastore.client() as client:
            client.create_database(self.name.schema)
            register_table(client, self.name, self.table, parts)

    def take(self, count: int = 1) -> int:
        """The first of so many new ids."""
        with self._lock:
            self._next += count
            return self._next - count

    def copy(self, directory: Path, count: int) -> None:
        first = self.take(count)
        directory.mkdir(parents=True, exist_ok=True)
        put(directory / f"w{first:06}.parquet", first, count)
        self.live.update(range(first, first + count))

    # writers

    def begin(self) -> list[threading.Thread]:
        def loop(name: str, write: Callable[[random.Random], None]) -> None:
            rng = random.Random(f"{name} {self.rng.random()}")
            while not self.done.is_set():
                try:
                    write(rng)
                    self.wrote[name] += 1
                except Exception as error:  # files or locations that changed under a statement
                    self.failed[f"{name} {type(error).__name__}: {str(error)[:300]}"] += 1
                time.sleep(rng.random() * 0.3)

        kinds = {"spark": self._spark, "trino": self._trino, "hive": self._hive, "cp": self._cp}
        threads = [threading.Thread(target=loop, args=each) for each in kinds.items()]
        for thread in threads:
            thread.start()
        return threads

    def _committed(self, statement: Callable[[int], object]) -> None:
        x = self.take()
        self.doubtful.add(x)
        statement(x)
        self.live.add(x)

    def _spark(self, rng: random.Random) -> None:
        into = f"{self.name} PARTITION (day='{rng.choice(DAYS[:2])}')"
        self.spark.ask(f"REFRESH TABLE {self.name}")
        self._committed(lambda x: self.spark.ask(f"INSERT INTO {into} SELECT {x}L, 'spark'"))

    def _trino(self, rng: random.Random) -> None:
        day = rng.choice(DAYS[:2])
        into = f"INSERT INTO {self.name} (x, s, day) SELECT"
        self._committed(lambda x: ask(self.trino, f"{into} {x}, 'trino', '{day}'", "hive"))

    def _hive(self, rng: random.Random) -> None:
        if rng.random() < 0.6:
            into = f"INTO TABLE {self.name} PARTITION (day='{rng.choice(DAYS[:2])}')"
            statement = f"INSERT {into} VALUES ({{}}, 'hive')"
            self._committed(lambda x: self.hive.query(statement.format(x), SETTINGS))
            return
        self.doubtful |= self.replaced
        self.live -= self.replaced
        x = self.take()
        self.replaced.add(x)
        self.doubtful.add(x)
        into = f"OVERWRITE TABLE {self.name} PARTITION (day='{REPLACED}')"
        self.hive.query(f"INSERT {into} VALUES ({x}, 'hive')", SETTINGS)
        self.live.add(x)

    def _cp(self, rng: random.Random) -> None:
        day = rng.choice(DAYS[:2])
        now = self.places()[f"day={day}"]
        self.known[day].append(now)
        late = rng.random() < 0.3
        self.copy(rng.choice(self.known[day][-4:]) if late else now, rng.randrange(1, 40))

    # operators

    def operate(self, commands: Commands) -> Counter[tuple[str, int]]:
        address = ("--metastore-uri", self.metastore.uri)
        words: dict[str, tuple[object, ...]] = {
            "run": ("run", self.name, "--now", "--local", "--by", "x", "--publish"),
            "publish": ("publish", self.name, "--local"),
            "revert": ("revert", self.name, "--local"),
            "clean": ("clean", self.name, "--retain", "1s"),
        }
        ended: Counter[tuple[str, int]] = Counter()
        rng = self.rng
        while sum(ended.values()) < COMMANDS:
            verbs = [rng.choice(["run", "publish", "publish", "revert", "clean"]) for _ in "12"]
            running = [(v, commands.start("cluster", *words[v], *address)) for v in verbs]
            for verb, each in running:
                if rng.random() < 0.25:
                    time.sleep(rng.random())
                    each.kill()
                status = each.wait()
                ended[verb, status] += 1
                assert status in (0, 1, 3, -signal.SIGKILL), commands.said()[-3000:]
        return ended

    def bring_over(self) -> int:
        """Does what is listed, in that order, until nothing is; how many entries there were."""
        count = 0
        while entries := list_left_files(self.config, str(self.name)):
            each = entries[0]
            path = Path(each["path"].removeprefix("file://"))
            if path.name == ".skipbridge_left":
                self.hive.query(each["statement"].rstrip(";"), SETTINGS)
            else:
                there = self.ids_in([self.places()[each["partition"]]])
                if not self.ids_of([path]) & there:  # as the page says: compare first
                    self.spark.ask(f"REFRESH TABLE {self.name}")
                    self.spark.ask(each["statement"].rstrip(";"))
                accept(self.config, str(self.name), [each["path"]])
            count += 1
            assert count < 500
        return count

    # readers

    def places(self) -> dict[str, Path]:
        with self.metastore.client() as client, HiveCatalog(client) as catalog:
            found = MetastorePlaces(catalog, self.table, "").all()
        return {name: Path(place.removeprefix("file://")) for name, place in found.items()}

    def ids_of(self, paths: Iterable[Path]) -> Ids:
        found: Ids = Counter()
        for path in paths:
            if path.is_file() and path.stat().st_size:
                found.update(pq.ParquetFile(path).read(["x"])["x"].to_pylist())
        return found

    def ids_in(self, directories: Iterable[Path]) -> Ids:
        return self.ids_of(path for each in directories for path in each.glob("[!._]*"))

    def readers(self) -> dict[str, Ids]:
        query = f"SELECT x FROM {self.name}"
        self.spark.ask(f"REFRESH TABLE {self.name}")
        with bridge.connect(metastore_uri=self.metastore.uri) as session:
            of_api = session.table(str(self.name)).scan(columns=["x"]).to_arrow()["x"].to_pylist()
        return {
            "Trino": Counter(x for (x,) in ask(self.trino, query, "hive")),
            "Spark": Counter(x for (x,) in self.spark.ask(query)),
            "Hive": Counter(x for (x,) in self.hive.query(query)),
            "Python": Counter(of_api),
        }


@pytest.mark.parametrize("number", range(2))
def test_every_committed_row_is_read_once_in_the_end(
    metastore_401: RunningMetastore,
    stock_trino: int,
    own_spark: RunningSpark,
    hiveserver2: RunningHiveServer2,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    number: int,
) -> None:
    storm = Storm(metastore_401, stock_trino, own_spark, hiveserver2, tmp_path / "t", number)
    address = ("--metastore-uri", metastore_401.uri)
    settings = {variable_of("clustering.settled"): "0s"}
    with forked_commands(tmp_path, settings) as commands:
        assert commands.run("index", "build", storm.name, "--local", *address) == 0
        writers = storm.begin()
        try:
            ended = storm.operate(commands)
        finally:
            storm.done.set()
            for thread in writers:
                thread.join()
        for verb in ("publish", "revert", "publish"):  # what was begun is ended
            done = commands.run("cluster", verb, storm.name, "--local", *address)
            assert done in (0, 3), commands.said()[-3000:]
        assert "Traceback" not in commands.said()
    with capsys.disabled():
        print(storm.wrote, dict(storm.failed), dict(ended))
    brought = storm.bring_over()
    for reader, ids in storm.readers().items():
        assert not storm.live - ids.keys(), reader
        assert not ids.keys() - storm.live - storm.doubtful, reader
        assert max(ids.values()) == 1, reader
    with capsys.disabled():
        print(f"{storm.name}: {len(storm.live)} rows, {brought} entries were listed")
    assert min(storm.wrote[name] for name in ("spark", "trino", "hive", "cp")) > 3
