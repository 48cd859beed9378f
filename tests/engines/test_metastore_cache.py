"""What a planner remembers of a metastore, against real ones, with other clients at work."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bridge.kernel.config import Config, Setting
from bridge.kernel.errors import BridgeError
from bridge.kernel.telemetry import METASTORE_CACHE
from bridge.metastore.cache import CachedCatalog
from bridge.metastore.catalog import HiveCatalog
from bridge.metastore.client import MetastoreClient
from bridge.metastore.notifications import EventLog
from bridge.planner.request import ScanRequest
from bridge.runtime.compose import cache_catalog, hive_catalog_of, planner_of, storage_of
from bridge.servers.embedded_metastore import MetastoreSpec, start_embedded_metastore
from bridge.servers.java import find_jdk
from bridge.servers.maven import Artifact, artifact_file, class_path
from bridge.servers.metastore_401 import ARTIFACTS, start_metastore_401
from bridge.servers.process import LOOPBACK
from bridge.storage.local_disk.local import LocalStorage
from bridge.sync.state import parse_state
from bridge.sync.state_file import StateFiles
from bridge.table.model import CatalogTable, TableName
from tests.engines.sync_real_lake import write
from tests.engines.test_metastore import Shop
from tests.support.servers.postgres import driver, find_postgres, start_postgres

pytestmark = pytest.mark.full

OF_HIVE_2 = "org.apache.hive.hcatalog.listener.DbNotificationListener"
OF_HIVE_2_JAR = Artifact("org.apache.hive.hcatalog", "hive-hcatalog-server-extensions", "2.3.10")
# Hive's own schema has it. The tables that DataNucleus makes have not, and it would then look for
# the newest entry of the log from a second connection, while the first holds the log's lock.
SEQUENCE = """INSERT INTO "SEQUENCE_TABLE" VALUES
    ('org.apache.hadoop.hive.metastore.model.MNotificationLog', 1)"""
LISTENER = Path(__file__).parent / "java" / "RecordingDbNotificationListener.java"


@pytest.fixture(scope="module", params=["2.3.10 on Derby", "4.0.1 on PostgreSQL"])
def recording(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of a metastore that records notification events."""
    directory = tmp_path_factory.mktemp("recording")
    with ExitStack() as stack:
        if request.param.startswith("2.3.10"):
            spec = MetastoreSpec(
                directory,
                port=0,
                in_memory=True,
                properties={"hive.metastore.transactional.event.listeners": OF_HIVE_2},
                class_path=(artifact_file(OF_HIVE_2_JAR),),
            )
            server = stack.enter_context(start_embedded_metastore(spec))
        else:
            if find_postgres() is None:
                pytest.skip("PostgreSQL is not installed; 4.0.1's log of events needs a row in it")
            database = stack.enter_context(start_postgres())
            properties = {
                **database.metastore("recording"),
                "metastore.transactional.event.listeners": LISTENER.stem,
                # Else only a proxy user may read events.
                "hive.metastore.event.db.notification.api.auth": "false",
            }
            spec = MetastoreSpec(
                directory,
                port=0,
                properties=properties,
                class_path=(compiled_listener(directory), driver()),
            )
            server = stack.enter_context(start_metastore_401(spec))
            with MetastoreClient(f"thrift://{LOOPBACK}:{server.port}") as client:
                # Makes the log's tables: not possible while an alteration holds their locks.
                client.get_current_notification_id()
                client.get_next_notifications(0, 1)
            database.execute("recording", SEQUENCE)
        yield f"thrift://{LOOPBACK}:{server.port}"


def compiled_listener(directory: Path) -> Path:
    classes = directory / "classes"
    jars = ":".join(map(str, class_path(*ARTIFACTS)))
    compiler = [find_jdk(17, 24).javac, "-cp", jars, "-d", str(classes), str(LISTENER)]
    subprocess.run(compiler, check=True, capture_output=True)
    return classes


@pytest.fixture
def shop(recording: str, tmp_path: Path) -> Iterator[Shop]:
    with MetastoreClient(recording) as client:
        yield Shop(client, tmp_path)


class Planner:
    """What one planner asks of the metastore, and how often."""

    def __init__(self, uri: str, capacity: int = 1_000_000) -> None:
        self.catalog = CachedCatalog(HiveCatalog(MetastoreClient(uri)), capacity)

    def see(self, shop: Shop, table: str = "t", age: float = 0.0) -> dict[str, str]:
        """Locations by partition name."""
        found: CatalogTable = self.catalog.table(TableName(shop.name, table), age)
        names = self.catalog.partition_names(found, age)
        batches = list(self.catalog.partitions(found, names, age))
        assert [p.name for b in batches for p in b.partitions] == names
        assert not any(b.missing for b in batches)
        return {p.name: p.location.rpartition("/")[2] for b in batches for p in b.partitions}


def count(kind: str, outcome: str) -> float:
    return float(METASTORE_CACHE.labels(kind, outcome)._value.get())


def test_what_did_not_change_is_asked_for_once(shop: Shop, recording: str) -> None:
    shop.table("t", "p")
    shop.client.add_partitions(shop.name, "t", [shop.partition("t", [str(i)]) for i in range(15)])
    planner = Planner(recording)
    first = planner.see(shop)
    hits, misses = count("names", "hit"), count("partitions", "miss")
    assert len(first) == 15
    for _ in range(3):
        assert planner.see(shop) == first
    assert count("names", "hit") == hits + 3
    assert count("partitions", "miss") == misses
    # A part of what is known, and a part that is not.
    shop.table("other", "p")
    assert planner.see(shop) == first
    assert count("partitions", "miss") == misses


def test_what_another_client_changes_is_seen_by_the_next_query(shop: Shop, recording: str) -> None:
    """Two planners and a writer: after each alteration both see it, at once."""
    client = shop.client
    shop.table("t", "p")
    planners = [Planner(recording), Planner(recording)]

    def both() -> list[dict[str, str]]:
        return [p.see(shop) for p in planners]

    assert both() == [{}, {}]
    client.add_partitions(shop.name, "t", [shop.partition("t", [v]) for v in "ab"])
    assert both() == [{"p=a": "p=a", "p=b": "p=b"}] * 2
    (moved,) = client.get_partitions_by_names(shop.name, "t", ["p=a"]).partitions
    moved.sd.location = f"file:{shop.root}/elsewhere"
    client.alter_partitions(shop.name, "t", [moved])
    assert both() == [{"p=a": "elsewhere", "p=b": "p=b"}] * 2
    client.drop_partitions(shop.name, "t", ["p=b"])
    assert both() == [{"p=a": "elsewhere"}] * 2
    client.drop_table(shop.name, "t")
    shop.table("t", "p")
    assert both() == [{}, {}]

    description = client.get_table(shop.name, "t")
    description.parameters["skipbridge.freshness"] = "snapshot"
    client.alter_table(shop.name, "t", description)
    for planner in planners:
        table = planner.catalog.table(TableName(shop.name, "t"))
        assert table.properties["skipbridge.freshness"] == "snapshot"


def test_a_renamed_table_is_forgotten_under_both_names(shop: Shop, recording: str) -> None:
    shop.table("t", "p")
    shop.table("u", "p")
    shop.client.add_partitions(shop.name, "t", [shop.partition("t", ["1"])])
    planner = Planner(recording)
    assert (planner.see(shop), planner.see(shop, "u")) == ({"p=1": "p=1"}, {})
    shop.client.drop_table(shop.name, "u")
    renamed = shop.client.get_table(shop.name, "t")
    renamed.tableName = "u"
    shop.client.alter_table(shop.name, "t", renamed)
    shop.table("t", "p")
    assert list(planner.see(shop)) == []
    assert list(planner.see(shop, "u")) == ["p=1"]


def test_events_of_the_log_are_told_apart(shop: Shop, recording: str) -> None:
    told: list[tuple[str | None, str | None]] = []
    log = EventLog(shop.client, lambda database, table: told.append((database, table)))
    shop.table("t", "p")
    assert log.catch_up()
    assert told == [(None, None)]  # the first time, all that came before
    for i in range(30):
        shop.client.add_partitions(shop.name, "t", [shop.partition("t", [str(i)])])
    assert log.catch_up()
    assert set(told[1:]) == {(shop.name, "t")} and len(told) == 31
    table = shop.client.get_table(shop.name, "t")
    shop.client.alter_table(shop.name, "t", table)
    assert log.catch_up()
    assert set(told[31:]) == {(shop.name, "t")}


def test_a_cache_without_room_still_answers(shop: Shop, recording: str) -> None:
    shop.table("t", "p")
    shop.client.add_partitions(shop.name, "t", [shop.partition("t", [str(i)]) for i in range(15)])
    planner = Planner(recording, capacity=20)
    assert len(planner.see(shop)) == 15
    assert len(planner.see(shop)) == 15
    assert planner.catalog.weight <= 20


@pytest.mark.parametrize("name", ["metastore", "metastore_401"])
def test_without_events_only_what_may_be_old_is_remembered(
    request: pytest.FixtureRequest, tmp_path: Path, name: str
) -> None:
    """No listener: `live` asks each time; `cached(60s)` is told how old an answer may be."""
    running = request.getfixturevalue(name)
    with running.client() as client:
        shop = Shop(client, tmp_path)
        shop.table("t", "p")
        planner = Planner(running.uri)
        assert planner.see(shop) == {}
        assert planner.see(shop, age=60) == {}
        client.add_partitions(shop.name, "t", [shop.partition("t", ["1"])])
        assert list(planner.see(shop)) == ["p=1"]
        client.drop_partitions(shop.name, "t", ["p=1"])
        client.add_partitions(shop.name, "t", [shop.partition("t", ["2"])])
        assert planner.see(shop, age=60) == {}
        planner.catalog.forget(TableName(shop.name, "t"))
        assert list(planner.see(shop, age=60)) == ["p=2"]
        assert list(planner.see(shop)) == ["p=2"]


def test_a_request_for_fresh_answers_bypasses_what_is_remembered(
    metastore: Any, tmp_path: Path
) -> None:
    """Through the planner: a table of freshness cached(1h), its partition added by another."""
    config = Config({"metastore.uri": Setting(metastore.uri, "test")})
    with metastore.client() as client, hive_catalog_of(config) as catalog:
        shop = Shop(client, tmp_path)
        shop.table("t", "p", parameters={"EXTERNAL": "TRUE", "skipbridge.freshness": "cached(1h)"})
        planner = planner_of(config, cache_catalog(config, catalog), storage_of(config))

        def partitions(freshness: str | None = None) -> int:
            plan = planner.plan(ScanRequest(TableName(shop.name, "t"), freshness=freshness))
            list(plan.batches())
            return plan.report().stages[0].total

        try:
            assert partitions() == 0
            client.add_partitions(shop.name, "t", [shop.partition("t", ["1"])])
            assert (partitions(), partitions("live")) == (0, 1)
            client.add_partitions(shop.name, "t", [shop.partition("t", ["2"])])
            assert (partitions(), partitions("fresh"), partitions()) == (0, 2, 2)
        finally:
            planner.lister.close()


def test_a_sync_that_listens(recording: str, tmp_path: Path) -> None:
    """It mends what others change, at the event and without a look at storage in between."""
    root = tmp_path / "t"
    write(root, "p=1", "p=2")
    database = f"listened{uuid.uuid4().hex[:8]}"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "bridge", "sync", f"{database}.t", "--location", str(root)),
            *("--listen", "--relocate", "--metastore-uri", recording, "--output", "json"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "SKIPBRIDGE_CONFIG": os.devnull},
    )
    try:
        with MetastoreClient(recording) as client:

            def until(wanted: Callable[[], bool]) -> None:
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline and process.poll() is None:
                    with contextlib.suppress(BridgeError):
                        if wanted():
                            return
                    time.sleep(0.05)
                process.terminate()
                raise AssertionError(process.communicate(timeout=30))

            def names() -> list[str]:
                return client.get_partition_names(database, "t")

            def settled() -> bool:
                record = client.get_table(database, "t")
                states = StateFiles(LocalStorage(), root.as_uri())
                state = parse_state(states.read(record))
                return state is not None and state.compared > 0

            until(lambda: names() == ["p=1", "p=2"] and settled())
            write(root, "p=3")
            client.drop_partitions(database, "t", ["p=1"])
            until(lambda: names() == ["p=1", "p=2", "p=3"] and settled())
            (altered,) = client.get_partitions_by_names(database, "t", ["p=2"]).partitions
            altered.sd.location = (tmp_path / "away").as_uri()
            client.alter_partitions(database, "t", [altered])

            def back() -> bool:
                (found,) = client.get_partitions_by_names(database, "t", ["p=2"]).partitions
                return bool(found.sd.location.endswith(f"{root}/p=2"))

            until(lambda: back() and settled())
            client.drop_table(database, "t")
            time.sleep(3)  # longer than it waits between events
            assert client.get_all_tables(database) == [], "a table that is dropped stays so"
    finally:
        process.terminate()
        _, told = process.communicate(timeout=60)
    assert process.returncode == 0 and "was dropped by another job" in told, told
