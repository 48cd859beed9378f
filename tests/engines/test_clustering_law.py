"""The law of clustering in four readers: Trino, Spark, DuckDB by path, and the Python API.

Random tables (types, NULL, NaN, partitions, files of fewer columns, damaged files) x random plans.
A command dies by SIGKILL at a random write of it, or a writer is at work there: an INSERT of Spark,
also one that began before the command, an INSERT of Trino, an INSERT OVERWRITE of Hive, a file that
is copied to where the partition lies or lay. Then each reader finds the rows of the locations in
force; a row that was committed is there once, or its file is named; a reader of ``**/*.parquet``
finds none twice.
"""

from __future__ import annotations

import datetime as dt
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bridge
from bridge.clustering.commands.places import MetastorePlaces
from bridge.clustering.commands.publish import accept, list_left_files
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, STRING, parse_hive_type
from bridge.metastore.catalog import HiveCatalog
from bridge.runtime.create_table import register_table
from bridge.table.model import CatalogTable, Column, Partition, TableName
from bridge.table.partition import partition_name
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.stack import ask
from tests.engines.stock_readers import RunningSpark
from tests.engines.test_publishing_hive import SETTINGS
from tests.support.forked_commands import MOMENTS, Commands, forked_commands
from tests.tiers import examples, seed

pytestmark = [pytest.mark.full, pytest.mark.engine]
DRAWS = examples(3, 3, 120)
KILLED, STOPPED = -signal.SIGKILL, -signal.SIGSTOP
DAMAGED = "damaged"
"""The partition with a file that nobody can read; engines are asked for the others."""
NUMBERS = [float("nan"), float("inf"), -0.0, 0.0, 1.5, -2.25]
TEXTS = ["", "a", "b" * 70, "ä", "null", "\U0001f600"]
TYPES: dict[str, tuple[pa.DataType, str, Callable[[random.Random], Any]]] = {
    "int": (pa.int32(), "7", lambda r: r.randrange(-4, 5)),
    "double": (pa.float64(), "CAST('NaN' AS DOUBLE)", lambda r: r.choice(NUMBERS)),
    "string": (pa.string(), "'written'", lambda r: r.choice(TEXTS)),
    "decimal(9,2)": (pa.decimal128(9, 2), "CAST(-1.5 AS DECIMAL(9,2))",
                     lambda r: Decimal(r.randrange(-999, 999)) / 100),
    "boolean": (pa.bool_(), "true", lambda r: r.random() < 0.5),
    "date": (pa.date32(), "CAST('2020-02-29' AS DATE)",
             lambda r: dt.date(2000, 1, 1) + dt.timedelta(r.randrange(-9999, 9999))),
    "timestamp": (pa.timestamp("us"), "CAST('2020-02-29 03:04:05' AS TIMESTAMP)",
                  lambda r: dt.datetime(2001, 1, 1) + dt.timedelta(seconds=r.randrange(10**9))),
    "array<int>": (pa.list_(pa.int32()), "array(1)", lambda r: [r.randrange(3)] * r.randrange(3)),
}  # fmt: skip
"""By type of the metastore: Arrow's, a literal of Spark and Hive, and how values are drawn."""
WRITTEN: dict[str, Any] = {
    "int": 7, "double": float("nan"), "string": "written", "decimal(9,2)": Decimal("-1.5"),
    "boolean": True, "date": dt.date(2020, 2, 29), "timestamp": dt.datetime(2020, 2, 29, 3, 4, 5),
    "array<int>": [1],
}  # fmt: skip
"""The values of these literals."""
IN_TRINO = {
    "double": "nan()", "timestamp": "TIMESTAMP '2020-02-29 03:04:05'", "array<int>": "ARRAY[1]",
}  # fmt: skip
"""These literals where Trino has others."""
AS_TEXT = ("decimal(9,2)", "date", "timestamp")
LAYOUTS = {0: ["binpack"], 1: ["linear"], 2: ["linear", "zorder", "hilbert", "kdtree"]}
Ids = Counter[int]
Row = tuple[object, ...]


def plain(type: str, value: Any) -> object:
    """A value in one form, whichever reader it is of."""
    if value is None:
        return None
    if type == "double":
        return repr(float(value))
    if type == "timestamp":
        text = value if isinstance(value, str) else value.isoformat(" ")
        return dt.datetime.fromisoformat(text).replace(tzinfo=None).isoformat()
    if type == "decimal(9,2)":
        return f"{Decimal(value):.2f}"
    return str(value) if type in ("date", "array<int>") else value


class World:
    """One table, its readers and writers, and what was committed.

    Attributes:
        rows: every row that was ever written, by its id.
        live: ids that count, by partition.
        first: of these, what the partition had first; of those that nobody has overwritten.
    """

    def __init__(self, root: Path, number: int, engines: Engines) -> None:
        self.rng = rng = random.Random(seed(3600) * 1_000 + number)
        self.name, self.root = TableName("clustering_law", f"t{number}"), root
        self.engines = engines
        self.types = rng.sample(list(TYPES), rng.randrange(1, 5))
        self.columns = ["x", *(f"c{i}" for i in range(len(self.types)))]
        days = rng.sample(["1", "2", "a b", "x/y", "é", "50%"], rng.randrange(1, 4))
        self.days = (
            [*days, *([DAMAGED] if rng.random() < 0.4 else [])] if rng.random() < 0.7 else []
        )
        names = [partition_name(["day"], [day]) for day in self.days] or [""]
        self.homes = {name: root / name for name in names}
        self.good = [name for name in names if DAMAGED not in name]
        self.rows: dict[int, Row] = {}
        self.live: dict[str, set[int]] = {name: set() for name in names}
        self.damage = b""
        self.next = self.files = 0
        self.config = Config({"metastore.uri": Setting(engines.uri, "test")})
        for name, home in self.homes.items():
            home.mkdir(parents=True, exist_ok=True)
            for _ in range(rng.randrange(2, 6)):
                self.put(name, home)
        self.first = {name: set(ids) for name, ids in self.live.items() if name in self.good}
        self._damage()
        self._register()

    def _damage(self) -> None:
        for name, home in self.homes.items():
            if name in self.good:
                continue
            path = self.put(name, home)
            self.live[name] -= set(pq.ParquetFile(path).read()["x"].to_pylist())
            raw = bytearray(path.read_bytes())
            if self.rng.random() < 0.5:
                raw = raw[: len(raw) - self.rng.randrange(1, 40)]
            else:
                raw[4:60] = bytes(56)  # the pages of the first column
            self.damage = bytes(raw)
            path.write_bytes(self.damage)
            os.utime(path, (1e9, 1e9))

    def _register(self) -> None:
        types = zip(self.columns[1:], self.types, strict=True)
        columns = (Column("x", BIGINT), *(Column(c, parse_hive_type(t)) for c, t in types))
        keys = (Column("day", STRING),) if self.days else ()
        self.table = CatalogTable(self.name, columns, keys, f"file://{self.root}")
        pairs = zip(self.days, self.homes, strict=True) if self.days else ()
        parts = [Partition(n, (day,), f"file://{self.homes[n]}") for day, n in pairs]
        with self.engines.metastore.client() as client:
            client.create_database(self.name.schema)
            register_table(client, self.name, self.table, parts)

    # writers

    def put(self, name: str, directory: Path) -> Path:
        """A file of some rows, and perhaps of fewer columns; as if it had always been there."""
        rng, first = self.rng, self.next
        self.next += rng.randrange(1, 30)
        ids = list(range(first, self.next))
        columns: dict[str, pa.Array] = {"x": pa.array(ids, pa.int64())}
        for column, type in zip(self.columns[1:], self.types, strict=True):
            values = [None if rng.random() < 0.2 else TYPES[type][2](rng) for _ in ids]
            columns[column] = pa.array(values, TYPES[type][0])
        if self.files and rng.random() < 0.3:
            columns.pop(self.columns[-1])
        whole = [
            columns[c].to_pylist() if c in columns else [None] * len(ids) for c in self.columns
        ]
        self._remember(name, zip(*whole, strict=True))
        order = list(columns)
        rng.shuffle(order)
        path = directory / f"f{self.files:03}.parquet"
        self.files += 1
        aside = path.with_name(f".{path.name}.tmp")
        pq.write_table(
            pa.table({c: columns[c] for c in order}),
            aside,
            row_group_size=rng.choice([3, 1000]),
            compression=rng.choice(["none", "snappy", "zstd"]),
        )
        os.utime(aside, (1e9 + self.files, 1e9 + self.files))
        aside.rename(path)
        return path

    def _remember(self, name: str, rows: Iterable[Sequence[Any]]) -> None:
        for x, *rest in rows:
            pairs = zip(self.types, rest, strict=True)
            self.rows[x] = (x, *(plain(type, value) for type, value in pairs))
            self.live[name].add(x)

    def _next_row(self, name: str) -> int:
        """The id of a row that is committed with a statement."""
        x = self.next
        self.next += 1
        self._remember(name, [(x, *(WRITTEN[type] for type in self.types))])
        return x

    def select(self, name: str, paused: Path | None = None) -> str:
        """A query of one row that is committed with the statement."""
        x = self._next_row(name)
        first = f"CAST({x} AS BIGINT)" if paused is None else f"pause({x}, '{paused}')"
        return f"SELECT {', '.join([first, *(TYPES[type][1] for type in self.types)])}"

    def into(self, name: str) -> str:
        if not self.days:
            return str(self.name)
        return f"{self.name} PARTITION (day='{self.days[list(self.homes).index(name)]}')"

    def append(self, name: str) -> None:
        self.engines.spark.ask(f"REFRESH TABLE {self.name}")
        self.engines.spark.ask(f"INSERT INTO {self.into(name)} {self.select(name)}")

    def append_by_trino(self, name: str) -> None:
        values = [str(self._next_row(name)), *(IN_TRINO.get(t, TYPES[t][1]) for t in self.types)]
        if self.days:
            values.append("'" + self.days[list(self.homes).index(name)] + "'")
        columns = ", ".join([*self.columns, *(["day"] if self.days else [])])
        statement = f"INSERT INTO {self.name} ({columns}) SELECT {', '.join(values)}"
        ask(self.engines.trino, statement, "hive")

    def overwrite(self, name: str) -> None:
        """What it replaces may be read afterwards, and need not."""
        self.live[name] = set()
        self.first.pop(name)
        query = self.select(name)
        self.engines.hive.query(f"INSERT OVERWRITE TABLE {self.into(name)} {query}", SETTINGS)

    def writer(self) -> Callable[[], object]:
        """Somebody who is ready to write, to a partition that is not damaged."""
        name = self.rng.choice(self.good)
        kind = self.rng.choice(["append", "trino", "begun", "overwrite", "copy", "copy before"])
        before = self.places()[name]
        if kind == "append":
            return lambda: self.append(name)
        if kind == "trino" and name.isascii():  # it writes to no other partition
            return lambda: self.append_by_trino(name)
        if kind == "begun":
            return self._begin(name)
        if kind == "overwrite" and name in self.first:
            return lambda: self.overwrite(name)
        if kind == "copy before":
            return lambda: self.put(name, before)
        return lambda: self.put(name, self.places()[name])

    def _begin(self, name: str) -> Callable[[], object]:
        place = self.root.with_name(f"{self.root.name}-pause{self.next}")
        place.mkdir()
        spark = self.engines.spark
        spark.ask(f"REFRESH TABLE {self.name}")
        spark.begin(f"INSERT INTO {self.into(name)} {self.select(name, place)}")
        while not (place / "begun").exists():
            assert spark.is_alive
            time.sleep(0.02)

        def go() -> None:
            (place / "go").touch()
            spark.end()

        return go

    # commands

    def command(self, *words: str) -> None:
        """Runs a command that dies, or meets a writer; and once more, until it ends."""
        run = ("cluster", *words, "--metastore-uri", self.engines.uri)
        commands, rng = self.engines.commands, self.rng
        die = ("any", rng.choice(MOMENTS), rng.randrange(1, 22))
        if rng.random() < 0.55:
            meet = self.writer()
            running = commands.start(*run, die=die, stop=True)
            status = running.wait()
            meet()
            if status == STOPPED:
                self.check()
                running.resume()
                status = running.wait()
        else:
            status = commands.run(*run, die=die)
        while status == KILLED:
            self.check()
            again = ("any", rng.choice(MOMENTS), rng.randrange(1, 30))
            status = commands.run(*run, die=again if rng.random() < 0.5 else None)
        assert status in (0, 3), commands.said()[-3000:]
        self.check()

    def cluster(self) -> None:
        rng = self.rng
        names = [c for c, t in zip(self.columns, ["bigint", *self.types], strict=True)
                 if t != "array<int>"]  # fmt: skip
        by = rng.sample(names, rng.randrange(0, min(3, len(names) + 1)))
        words = [word for column in by for word in ("--by", column)]
        words += ["--layout", rng.choice(LAYOUTS[len(by)])]
        words += ["--target", rng.choice(["2KiB", "1MiB"]), "--groups", str(rng.randrange(1, 4))]
        if rng.random() < 0.5:
            words += ["--group", rng.choice(["range", "time", "size", "random"])]
        words += rng.choice([[], ["--dearer"], ["--clustering-memory", "1KiB"]])
        self.command("run", str(self.name), "--now", "--local", *words)

    def publish(self) -> None:
        self.command("publish", str(self.name), "--local", "--settled", "0")

    def revert(self) -> None:
        self.command("revert", str(self.name), "--local", "--settled", "0")

    def write(self) -> None:
        name = self.rng.choice(self.good)
        for _ in range(self.rng.randrange(1, 4)):
            self.put(name, self.places()[name])

    def refresh(self) -> None:
        words = ("index", "build", str(self.name), "--local", "--metastore-uri", self.engines.uri)
        assert self.engines.commands.run(*words) in (0, 3), self.engines.commands.said()[-3000:]

    # readers

    def places(self) -> dict[str, Path]:
        with self.engines.metastore.client() as client, HiveCatalog(client) as catalog:
            found = MetastorePlaces(catalog, self.table, "").all()
        return {name: Path(place.removeprefix("file://")) for name, place in found.items()}

    def _sql(self, text: str) -> str:
        pairs = zip(self.columns[1:], self.types, strict=True)
        casts = [f"CAST({c} AS {text}) {c}" if t in AS_TEXT else c for c, t in pairs]
        where = f" WHERE day <> '{DAMAGED}'" if self.damage else ""
        return f"SELECT {', '.join(['x', *casts])} FROM {{}}{where}"

    def _ids(self, rows: Iterable[Sequence[Any]]) -> Ids:
        """The ids of some rows, each of which is as it was written."""
        found: Ids = Counter()
        for x, *rest in rows:
            pairs = zip(self.types, rest, strict=True)
            assert (x, *(plain(t, v) for t, v in pairs)) == self.rows[x]
            found[x] += 1
        return found

    def readers(self) -> Iterator[tuple[str, Ids]]:
        """What engines that ask the metastore find."""
        engines = self.engines
        yield "Trino", self._ids(ask(engines.trino, self._sql("VARCHAR").format(self.name), "hive"))
        engines.spark.ask(f"REFRESH TABLE {self.name}")
        yield "Spark", self._ids(engines.spark.ask(self._sql("STRING").format(self.name)))
        where = f"day <> '{DAMAGED}'" if self.damage else None
        with bridge.connect(metastore_uri=engines.uri) as session:
            found = session.table(str(self.name)).scan(where, self.columns).to_arrow()
        yield "Python", self._ids(zip(*(c.to_pylist() for c in found.columns), strict=True))

    def by_path(self, pattern: str) -> Ids:
        """What DuckDB finds below the table's directory."""
        globbed = duckdb.sql(f"SELECT file FROM glob('{self.root}/{pattern}')").fetchall()
        files = [file for (file,) in globbed if f"/day={DAMAGED}/" not in file]
        if not files:  # Hive has overwritten all of them, with names that have no ending
            return Counter()
        source = f"read_parquet({files}, union_by_name=true, hive_partitioning=false)"
        pairs = zip(self.columns[1:], self.types, strict=True)
        casts = [f"CAST({c} AS VARCHAR) {c}" if t in AS_TEXT else c for c, t in pairs]
        return self._ids(duckdb.sql(f"SELECT {', '.join(['x', *casts])} FROM {source}").fetchall())

    def listed(self) -> list[tuple[str, Ids, dict[str, Any]]]:
        found = []
        for each in list_left_files(self.config, str(self.name)):
            path = Path(each["path"].removeprefix("file://"))
            assert path.name != ".skipbridge_left", each
            found.append((each["partition"], self._in([path]), each))
        return found

    def _in(self, paths: Iterable[Path]) -> Ids:
        found: Ids = Counter()
        damaged = 0
        for path in paths:
            if path.stat().st_size and self.damage and path.read_bytes() == self.damage:
                damaged += 1
            elif path.stat().st_size:
                found.update(pq.ParquetFile(path).read(["x"])["x"].to_pylist())
        assert damaged <= 1
        return found

    def check(self) -> None:
        places = self.places()
        there = {name: self._in(sorted(place.glob("[!._]*"))) for name, place in places.items()}
        every: Ids = sum((there[name] for name in self.good), Counter())
        for reader, ids in self.readers():
            assert ids == every, reader
        named: dict[str, Ids] = {name: Counter() for name in places}
        for name, ids, _ in self.listed():
            named[name] += ids
        for name, live in self.live.items():
            assert max(there[name].values(), default=1) == 1, name
            assert live <= (there[name] + named[name]).keys(), name
            if name in self.first or name not in self.good:
                assert there[name] + named[name] == Counter(live), name
        if self.damage:
            held = places[f"day={DAMAGED}"].glob("[!._]*")
            assert sum(path.read_bytes() == self.damage for path in held) == 1
        for pattern in ("*/*.parquet" if self.days else "*.parquet", "**/*.parquet"):
            ids = self.by_path(pattern)
            assert max(ids.values(), default=1) == 1, pattern
            for name, first in self.first.items():
                assert first <= ids.keys(), (pattern, name)

    def bring_over(self) -> None:
        """Does what is listed, in that order; then each reader finds all that was committed."""
        for name, ids, each in self.listed():
            lost = (
                ids.keys() & self.live[name] - self._in(self.places()[name].glob("[!._]*")).keys()
            )
            if lost:
                self.engines.spark.ask(each["statement"].rstrip(";"))
            accept(self.config, str(self.name), [each["path"]])
            Path(each["path"].removeprefix("file://")).unlink()
        assert not self.listed()
        self.check()


class Engines:
    """What all draws share."""

    def __init__(
        self, metastore: RunningMetastore, trino: int, spark: RunningSpark,
        hive: RunningHiveServer2, commands: Commands,
    ) -> None:  # fmt: skip
        self.metastore, self.uri, self.trino = metastore, metastore.uri, trino
        self.spark, self.hive, self.commands = spark, hive, commands


@pytest.fixture(scope="module")
def engines(
    metastore_401: RunningMetastore,
    stock_trino: int,
    own_spark: RunningSpark,
    hiveserver2: RunningHiveServer2,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Engines]:
    with forked_commands(tmp_path_factory.mktemp("commands")) as commands:
        yield Engines(metastore_401, stock_trino, own_spark, hiveserver2, commands)


@pytest.mark.parametrize("number", range(DRAWS))
def test_four_readers_see_every_row_once(engines: Engines, tmp_path: Path, number: int) -> None:
    world = World(tmp_path / "t", number, engines)
    world.refresh()
    world.check()
    for name in ("cluster", "publish"):
        getattr(world, name)()
    for _ in range(world.rng.randrange(1, 3)):
        name = world.rng.choice(["revert", "revert", "again"])
        for step in ["write", "cluster", "publish"] if name == "again" else [name]:
            getattr(world, step)()
    for step in ("cluster", "publish", "bring_over"):
        getattr(world, step)()
