"""kill -9 at random writes of commands, over a table on S3 that a metastore has.

Each command dies at a write of its own, or stands still there while a writer or another command is
at work, and then goes on. After each of these: every committed row is once in a location in force,
or its file is named with status 3, and the Python API reads what the locations hold.
"""

from __future__ import annotations

import io
import random
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.app.api.session import Session
from bridge.clustering.commands.places import MetastorePlaces
from bridge.clustering.commands.publish import accept, list_left_files, originals
from bridge.kernel.config import Config, Setting, variable_of
from bridge.kernel.types import BIGINT, STRING
from bridge.metastore.catalog import HiveCatalog
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.servers.embedded_metastore import start_embedded_metastore
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.support.forked_commands import Commands, forked_commands
from tests.support.s3_metastore import s3_metastore
from tests.support.versitygw import BUCKET, versitygw_or_skip
from tests.tiers import examples, seed

pytestmark = [pytest.mark.full, pytest.mark.engine]
DRAWS, STEPS = examples(2, 2, 60), examples(5, 5, 14)
KILLED, STOPPED = -signal.SIGKILL, -signal.SIGSTOP
BUSY = 1
"""The status of a command that finds another one at work."""
DAYS = ("1", "2")
COLUMNS = (Column("x", BIGINT), Column("s", STRING))
VERBS = ("run", "run", "publish", "publish", "publish", "revert", "revert", "clean")
Ids = Counter[int]


@dataclass(frozen=True, slots=True)
class Place:
    """A store and a metastore, and commands that know them."""

    storage: Storage
    uri: str
    config: Config
    commands: Commands


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("publishing-s3")
    gateway = versitygw_or_skip(directory / "s3")
    tables = [f"t{number}" for number in range(DRAWS)]
    spec = s3_metastore(directory / "metastore", BUCKET, tables)
    with ExitStack() as stack:
        stack.enter_context(gateway.server)
        metastore = stack.enter_context(start_embedded_metastore(spec))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in gateway.environment.items():
            patch.setenv(name, value)
        uri = f"thrift://127.0.0.1:{metastore.port}"
        values = {"metastore.uri": uri, "clustering.settled": "0s"}
        for key in ("endpoint", "region", "allow_http"):
            values[f"storage.{key}"] = gateway.options[key]
        settings = {variable_of(key): value for key, value in values.items()}
        commands = stack.enter_context(forked_commands(directory, settings))
        config = Config({key: Setting(value, "test") for key, value in values.items()})
        yield Place(open_storage(options=gateway.options), uri, config, commands)


class World:
    """One table, and the rows that were committed to it.

    Attributes:
        live: by partition, the ids that count.
        loose: partitions that somebody has overwritten: rows of before may be read, or named, too.
        known: every place where a partition has been.
    """

    def __init__(self, place: Place, number: int) -> None:
        self.place, self.storage = place, place.storage
        self.rng = random.Random(seed(3700) * 1_000 + number)
        self.name, self.root = TableName("lake", f"t{number}"), f"s3://{BUCKET}/t{number}"
        homes = {f"day={day}": f"{self.root}/day={day}" for day in DAYS}
        self.live: dict[str, set[int]] = {name: set() for name in homes}
        self.loose: set[str] = set()
        self.known = {name: {home} for name, home in homes.items()}
        self.next = self.files = 0
        for name, home in homes.items():
            for _ in range(4):
                self.put(name, home)
        key = (Column("day", STRING),)
        self.table = CatalogTable(self.name, COLUMNS, key, self.root)
        parts = [Partition(name, (name[4:],), home) for name, home in homes.items()]
        with MetastoreClient(place.uri) as client:
            client.create_database(self.name.schema)
            register_table(client, self.name, self.table, parts)

    # writers

    def put(self, name: str, directory: str) -> None:
        """A file of some rows."""
        ids = range(self.next, self.next + self.rng.randrange(1, 30))
        self.next = ids.stop
        self._write(directory, ids)
        self.live[name].update(ids)

    def _write(self, directory: str, ids: Iterable[int]) -> None:
        sink = io.BytesIO()
        pq.write_table(pa.table({"x": list(ids), "s": [f"s{v % 7}" for v in ids]}), sink)
        self.storage.put(f"{directory}/w{self.files:04}.parquet", sink.getvalue())
        self.files += 1

    def overwrite(self, name: str, directory: str) -> None:
        """As an engine that replaces what it finds; it may have asked for the place before."""
        for path in self.data_in(directory):
            self.storage.delete(path)
        self.live[name].clear()
        self.loose.add(name)
        self.put(name, directory)

    def write(self) -> None:
        """To where a partition lies, or has been."""
        name = self.rng.choice(list(self.live))
        now = self.places()[name]
        self.known[name].add(now)
        late = self.rng.random() < 0.4
        directory = self.rng.choice(sorted(self.known[name])) if late else now
        (self.overwrite if self.rng.random() < 0.2 else self.put)(name, directory)

    # commands

    def step(self) -> None:
        verb = self.rng.choice([*VERBS, "delete", "bring over"])
        if verb == "delete":
            self.delete_originals()
        elif verb == "bring over":
            self.bring_over()
        else:
            self.command(verb)
        self.check()
        if self.rng.random() < 0.5:
            self.write()
            self.check()

    def command(self, verb: str) -> None:
        """Runs a command that dies, or meets others; then once more, until it ends."""
        rng, commands, run = self.rng, self.place.commands, self.words(verb)
        die = ("any", rng.choice(["before", "after"]), rng.randrange(1, 26))
        if rng.random() < 0.5:
            running = commands.start(*run, die=die, stop=True)
            status = running.wait()
            if status == STOPPED:
                if rng.random() < 0.5:
                    self.write()
                else:
                    other = rng.choice(VERBS)
                    met = commands.run(*self.words(other))
                    assert met in (0, BUSY, 3), (other, met, commands.said()[-3000:])
                self.check()
                running.resume()
                status = running.wait()
                assert status in (0, BUSY, 3), (verb, status, commands.said()[-3000:])
                return
        else:
            status = commands.run(*run, die=die)
        while status == KILLED:
            self.check()
            again = ("any", rng.choice(["before", "after"]), rng.randrange(1, 40))
            status = commands.run(*run, die=again if rng.random() < 0.5 else None)
        assert status in (0, 3), (verb, status, commands.said()[-3000:])

    def words(self, verb: str) -> list[object]:
        if verb == "clean":
            return ["cluster", "clean", self.name, "--retain", "0s"]
        if verb == "run":
            sizes = ["--target", self.rng.choice(["2KiB", "1MiB"]), "--groups", "1"]
            return ["cluster", "run", self.name, "--now", "--local", "--by", "x", *sizes]
        return ["cluster", verb, self.name, "--local"]

    def delete_originals(self) -> None:
        for path in originals(self.place.config, str(self.name), 0.0)["files"]:
            self.storage.delete(path)

    def bring_over(self) -> None:
        """Does what is listed: the rows of a file go to where its partition lies."""
        for each in list_left_files(self.place.config, str(self.name)):
            name, path = each["partition"], each["path"]
            self._write(self.places()[name], self._ids([path]))
            accept(self.place.config, str(self.name), [path])
            self.storage.delete(path)

    # readers

    def places(self) -> dict[str, str]:
        with MetastoreClient(self.place.uri) as client, HiveCatalog(client) as catalog:
            return MetastorePlaces(catalog, self.table, "").all()

    def data_in(self, directory: str) -> list[str]:
        """What an engine reads as the directory's."""
        paths: list[str] = self.storage.list_all(directory, recursive=False).paths.to_pylist()
        return [path for path in paths if path.rpartition("/")[2][0] not in "._"]

    def _ids(self, paths: Iterable[str]) -> Ids:
        found: Ids = Counter()
        for path in paths:
            table = pq.read_table(pa.BufferReader(self.storage.read(path)), columns=["x"])
            found.update(table["x"].to_pylist())
        return found

    def check(self) -> None:
        there = {name: self._ids(self.data_in(at)) for name, at in self.places().items()}
        named: dict[str, Ids] = {name: Counter() for name in there}
        listed = list_left_files(self.place.config, str(self.name))
        for each in listed:
            assert not each["path"].endswith("/.skipbridge_left"), each
            named[each["partition"]] += self._ids([each["path"]])
        for name, live in self.live.items():
            assert live <= (there[name] + named[name]).keys(), name
            assert max(there[name].values()) == 1, name
            if name not in self.loose:
                assert there[name] + named[name] == Counter(live), name
        with Session(self.place.config) as session:
            found = session.table(str(self.name)).scan(columns=["x"]).to_arrow()["x"]
        assert Counter(found.to_pylist()) == sum(there.values(), Counter())
        commands = self.place.commands
        assert commands.run("cluster", "show", self.name) == (3 if listed else 0)
        assert "Traceback" not in commands.said()


@pytest.mark.parametrize("number", range(DRAWS))
def test_every_row_is_read_once_or_named(place: Place, number: int) -> None:
    world = World(place, number)
    assert place.commands.run("index", "build", world.name, "--local") == 0
    world.check()
    for verb in ("run", "publish"):
        world.command(verb)
        world.check()
    for _ in range(STEPS):
        world.step()
    for verb in ("run", "publish"):
        assert place.commands.run(*world.words(verb)) in (0, 3), place.commands.said()[-3000:]
    world.bring_over()
    world.check()
    assert not list_left_files(place.config, str(world.name))
