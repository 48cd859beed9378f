"""Stock engines read a table in a loop while it is clustered, published, written and cleaned.

``--tier=nightly`` asks until Trino's hive connector and Hive have answered 1,000 queries
in each story, spread over all its steps.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bridge
from bridge.app.cli.main import cli
from bridge.clustering.commands import run as cluster
from bridge.clustering.commands.places import MetastorePlaces
from bridge.clustering.commands.publish import clean, list_left_files, originals, publish, revert
from bridge.clustering.commands.watch import watched_round
from bridge.clustering.planning.eligibility import Limits
from bridge.clustering.planning.scheduling import Strategy
from bridge.clustering.planning.triggers import Triggers
from bridge.indexing.table import drop_from_index, index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, STRING
from bridge.metastore.catalog import HiveCatalog
from bridge.runtime.create_table import register_table
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.request import SyncRequest, SyncSettings
from bridge.sync.table import TableSync
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.hive_stack import FETCH
from tests.engines.stack import ask
from tests.tiers import examples

pytestmark = [pytest.mark.full, pytest.mark.engine]
STOCK = ("trino", "hive")
PER_TURN, AT_LEAST = examples((0, 0), (0, 0), (110, 1000))
"""Queries of stock readers between two steps of the story, and in all of it."""
COLUMNS = (Column("x", BIGINT), Column("s", STRING))
Answer = tuple[int, int]


@dataclass
class Loop:
    """Readers that ask again and again; each answer with what was committed meanwhile.

    Attributes:
        committed: answers that are right now: one, or two while a writer is at work.
    """

    committed: list[Answer]
    wrong: list[str] = field(default_factory=list)
    rounds: dict[str, int] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def ask(self, name: str, query: Callable[[], Answer]) -> None:
        while not self.stop.is_set():
            before = list(self.committed)
            try:
                answer = query()
            except Exception as error:  # a reader's thread must not end silently
                # Hadoop's local file system runs `ls` on each file that it has listed: it fails
                # where Hive's INSERT has moved the file meanwhile.
                if "command to get file permissions" in str(error):
                    continue
                self.wrong.append(f"{name}: {error!r}")
                return
            if answer not in (*before, *self.committed):
                self.wrong.append(f"{name}: {answer}, not {before} or {self.committed}")
            self.rounds[name] = self.rounds.get(name, 0) + 1

    def turn(self) -> None:
        """Waits until each reader has asked and been answered since now."""
        seen = {name: count + 2 for name, count in self.rounds.items()}
        asked = self.by_stock + PER_TURN
        while not self.wrong and (
            any(self.rounds[name] < count for name, count in seen.items()) or self.by_stock < asked
        ):
            time.sleep(0.02)
        assert not self.wrong, self.wrong[:5]

    @property
    def by_stock(self) -> int:
        """Queries that stock readers have asked, and that were answered."""
        return sum(self.rounds[name] for name in STOCK)

    def becomes(self, answer: Answer) -> None:
        """A write of which readers may see nothing or all, from now on."""
        self.committed = [*self.committed, answer]

    def is_now(self, answer: Answer) -> None:
        self.committed = [answer]
        self.turn()


@contextmanager
def reading(loop: Loop, readers: dict[str, Callable[[], Answer]]) -> Iterator[None]:
    loop.rounds = dict.fromkeys(readers, 0)
    threads = [threading.Thread(target=loop.ask, args=each) for each in readers.items()]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        loop.stop.set()
        for thread in threads:
            thread.join()


def put(path: Path, first: int, count: int) -> None:
    x = list(range(first, first + count))
    table = pa.table({"x": x, "s": [f"s{v % 7}" for v in x]})
    aside = path.with_name(f".{path.name}.tmp")
    pq.write_table(table, aside)
    os.utime(aside, (time.time() - 60, time.time() - 60))
    aside.rename(path)


def rows(*spans: tuple[int, int]) -> Answer:
    every = [x for first, count in spans for x in range(first, first + count)]
    return len(every), sum(every)


@pytest.mark.parametrize("partitioned", [False, True])
def test_stock_readers_see_every_row_once(
    metastore_401: RunningMetastore,
    hiveserver2: RunningHiveServer2,
    stock_trino: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    partitioned: bool,
) -> None:
    name = TableName("published", "parts" if partitioned else "whole")
    root = tmp_path / name.table
    directories = [root / "day=1", root / "day=2"] if partitioned else [root]
    for number, directory in enumerate(directories):
        directory.mkdir(parents=True)
        for i in range(4):
            put(directory / f"f{i}.parquet", number * 400 + i * 100, 100)
    spans = [(0, 400 * len(directories))]
    keys = (Column("day", STRING),) if partitioned else ()
    table = CatalogTable(name, COLUMNS, keys, f"file://{root}")
    parts = [Partition(d.name, (d.name[4:],), f"file://{d}") for d in directories if partitioned]
    with metastore_401.client() as client:
        client.create_database(name.schema)
        register_table(client, name, table, parts)
    config = Config({"metastore.uri": Setting(metastore_401.uri, "test")})
    index_table(config, str(name), local=True, progress=_quiet, say=print)
    query = f"SELECT count(*), sum(x) FROM {name}"

    def by_trino() -> Answer:
        ((count, total),) = ask(stock_trino, query, "hive")
        return count, total

    def by_hive() -> Answer:
        ((count, total),) = hiveserver2.query(query)
        return count, total

    def place() -> Path:
        with metastore_401.client() as client, HiveCatalog(client) as catalog:
            places = MetastorePlaces(catalog, table, "").all()
        return Path(places["day=1" if partitioned else ""].removeprefix("file://"))

    def clustered() -> None:
        strategy = Strategy("linear", ("x",), "time", Limits())
        made = cluster.schedule(config, str(name), strategy, print)
        done = cluster.run(config, str(name), made["instant"], local=True, progress=_quiet)
        assert done["state"] == "completed" and not done["rejected"], done["rejected"]

    def publish_all() -> dict[str, object]:
        return publish(config, str(name), local=True, settled=0.0, progress=_quiet, say=print)

    def add(directory: Path, first: int) -> None:
        loop.becomes(rows(*spans, (first, 10)))
        put(directory / f"f{first}.parquet", first, 10)
        spans.append((first, 10))

    def sync() -> None:
        request = SyncRequest(name, str(root), adopt=True, relocate=True, full=True)
        with metastore_401.client() as client:
            report = TableSync(client, LocalStorage(), request, SyncSettings()).run()
        assert not report.added and not report.dropped and not report.updated

    def repaired() -> None:
        """What repairs the metastore from storage changes nothing."""
        before = place()
        for option in ("ADD", "DROP", "SYNC"):
            hiveserver2.query(f"MSCK REPAIR TABLE {name} {option} PARTITIONS", FETCH)
            assert place() == before, option
        for mode in ("ADD", "DROP", "FULL"):
            call = f"CALL system.sync_partition_metadata('{name.schema}', '{name.table}', '{mode}')"
            ask(stock_trino, call, "hive")
            assert place() == before, mode

    loop = Loop([rows(*spans)])
    with bridge.connect(metastore_uri=metastore_401.uri) as session:

        def by_python() -> Answer:
            found = session.table(str(name)).scan(columns=["x"]).to_arrow()
            return found.num_rows, sum(found["x"].to_pylist())

        with reading(loop, {"trino": by_trino, "hive": by_hive, "python": by_python}):
            clustered()
            add(root / "day=1" if partitioned else root, 1000)  # is not clustered: copied
            loop.is_now(rows(*spans))
            made = publish_all()
            assert sorted(made["published"]) == [d.name if partitioned else "" for d in directories]
            first = place()
            assert ".skipbridge_clustered" in str(first)
            assert (first / "f1000.parquet-data").exists()
            loop.turn()
            sync()
            assert place() == first
            add(first, 3000)
            loop.is_now(rows(*spans))
            loop.becomes(rows(*spans, (4000, 1)))
            into = f"{name} PARTITION (day='1')" if partitioned else str(name)
            hiveserver2.query(f"INSERT INTO {into} VALUES (4000, 'hive')", FETCH)
            spans.append((4000, 1))
            loop.is_now(rows(*spans))
            if partitioned:
                repaired()
                assert place() == first
            clustered()
            assert publish_all()["published"] == ["day=1" if partitioned else ""]
            assert place() not in (first, directories[0])
            loop.turn()
            back = revert(
                config, str(name), ["day=1" if partitioned else ""],
                local=True, settled=0.0, progress=_quiet, say=print,
            )  # fmt: skip
            assert len(back["published"]) == 1 and place() == first
            loop.turn()
            clustered()
            assert len(publish_all()["published"]) == 1
            # A writer that still knows the old directory: no engine reads its file.
            put(directories[0] / "late.parquet", 2000, 10)
            loop.turn()
            (late,) = list_left_files(config, str(name))
            assert late["path"].endswith("/late.parquet")
            time.sleep(1.1)
            clean(config, str(name), -5.0, dry_run=False)
            listed = originals(config, str(name), -5.0)["files"]
            assert len(listed) >= 8
            for uri in listed:
                Path(uri.removeprefix("file://")).unlink()
            loop.turn()
            sync()
            if partitioned:
                repaired()
            drop_from_index(config, str(name), None)
            loop.turn()
    assert not loop.wrong
    assert loop.by_stock >= AT_LEAST and min(loop.rounds.values()) >= 20
    with capsys.disabled():
        print(f"{name}: no wrong answer; queries by reader: {loop.rounds}")


def test_what_another_table_reads_is_not_published(
    metastore_401: RunningMetastore, tmp_path: Path
) -> None:
    name, twin = TableName("published", "mine"), TableName("published", "twin")
    root = tmp_path / "shared"
    root.mkdir()
    for i in range(3):
        put(root / f"f{i}.parquet", i * 100, 100)
    with metastore_401.client() as client:
        client.create_database(name.schema)
        for each in (name, twin):
            register_table(client, each, CatalogTable(each, COLUMNS, (), f"file://{root}"), [])
    config = Config({"metastore.uri": Setting(metastore_401.uri, "test")})
    index_table(config, str(name), local=True, progress=_quiet, say=print)
    strategy = Strategy("linear", ("x",), "time", Limits())
    made = cluster.schedule(config, str(name), strategy, print)
    cluster.run(config, str(name), made["instant"], local=True, progress=_quiet)

    def published() -> dict[str, Any]:
        return publish(config, str(name), local=True, settled=0.0, progress=_quiet, say=print)

    assert f"table {twin} reads" in published()["kept"][0]["reason"]
    far = TableName("published", "far")
    with metastore_401.client() as client:
        client.drop_table(twin.schema, twin.table, delete_data=False)
        key, place = Column("day", STRING), f"file://{tmp_path}/far"
        theirs = Partition("day=1", ("1",), f"file://{root}")
        register_table(client, far, CatalogTable(far, COLUMNS, (key,), place), [theirs])
    assert f"table {far} reads" in published()["kept"][0]["reason"]
    with metastore_401.client() as client:
        client.drop_table(far.schema, far.table, delete_data=False)
    assert published()["published"] == [""] and len(list(root.glob("*.parquet"))) == 3


def test_what_was_not_quiet_when_it_was_clustered_is_published_later(
    metastore: RunningMetastore, tmp_path: Path
) -> None:
    """By the command that found nothing to rewrite, and by the watch that has not ended."""
    address = ("--metastore-uri", metastore.uri)
    with metastore.client() as client:
        client.create_database("later")
    for kind in ("now", "watch"):
        name, root = TableName("later", kind), tmp_path / kind
        staging = root / "_temporary"
        staging.mkdir(parents=True)
        for i in range(3):
            put(root / f"f{i}.parquet", i * 100, 100)
            os.utime(root / f"f{i}.parquet", (1e9, 1e9))
        with metastore.client() as client:
            register_table(client, name, CatalogTable(name, COLUMNS, (), f"file://{root}"), [])
        config = Config({"metastore.uri": Setting(metastore.uri, "test")})
        index_table(config, str(name), local=True, progress=_quiet, say=print)
        words = ["cluster", "run", str(name), "--local", "--publish", *address]
        if kind == "now":
            first = CliRunner().invoke(cli, [*words, "--now"])
            assert first.exit_code == 3 and "3 files -> 1 file" in first.stdout, first.output
            assert "_temporary" in first.stderr
            staging.rmdir()
            again = CliRunner().invoke(cli, [*words, "--now"])
            assert again.exit_code == 0 and "nothing is worth a rewrite" in again.stderr
            assert "1 partitions published" in again.stdout, again.output
            continue
        process = subprocess.Popen(
            [sys.executable, "-m", "bridge", *words, "--watch", "200ms"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            assert any("_temporary" in line for line in process.stdout)
            staging.rmdir()
            assert any("1 partitions published" in line for line in process.stdout)
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        finally:
            process.kill()
        assert process.returncode == 0 and "1 clusterings, 0 failures" in rest


def test_a_published_table_at_rest_rests(metastore: RunningMetastore, tmp_path: Path) -> None:
    """A watch that publishes in each round rewrites nothing that it wrote, and keeps few bytes."""
    name, root = TableName("later", "rest"), tmp_path / "rest"
    for day in ("1", "2"):
        (root / f"day={day}").mkdir(parents=True)
        for i in range(5):
            put(root / f"day={day}/f{i}.parquet", int(day) * 1000 + i * 10, 10)
    days = [Partition(f"day={day}", (day,), f"file://{root}/day={day}") for day in "12"]
    table = CatalogTable(name, COLUMNS, (Column("day", STRING),), f"file://{root}")
    with metastore.client() as client:
        client.create_database(name.schema)
        register_table(client, name, table, days)
    config = Config({"metastore.uri": Setting(metastore.uri, "test")})

    def watch() -> tuple[bool, list[str]]:
        report = watched_round(
            config, str(name), Strategy("", ("x",)), Triggers(commits=1),
            local=True, progress=_quiet, say=print,
        )  # fmt: skip
        made = publish(config, str(name), local=True, settled=0.0, progress=_quiet, say=print)
        return bool(report["committed"]), sorted(made["published"])

    def data() -> dict[Path, int]:
        every = (p for p in root.rglob("*") if p.name.endswith((".parquet", "-data")))
        return {path: path.stat().st_size for path in every}

    assert watch() == (True, ["day=1", "day=2"])
    held = data()
    assert [watch() for _ in range(19)] == [(False, [])] * 19 and data() == held
    with metastore.client() as client, HiveCatalog(client) as catalog:
        place = Path(MetastorePlaces(catalog, table, "").all()["day=1"].removeprefix("file://"))
    for i in range(50):
        put(place / f"g{i}.parquet", 5000 + i * 10, 10)
    assert watch() == (True, ["day=1"])
    with bridge.connect(metastore_uri=metastore.uri) as session:
        found = session.table(str(name)).scan(columns=["x"])
        assert len(found.files()) == 2 and found.to_arrow().num_rows == 600


def _quiet(done: int, total: int) -> None:
    """No progress is shown."""
