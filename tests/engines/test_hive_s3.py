"""HiveServer2 over a table on S3, by ``s3a://``: the hook skips files, and Hive's rows stay."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.metastore.client import MetastoreClient
from bridge.servers.embedded_metastore import MetastoreSpec
from bridge.storage.port import Storage
from bridge.storage.routed import open_storage
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.hive_stack import FETCH, PRUNING, TEZ, HookedHive, hooked_hive
from tests.support.hive_s3 import s3a_class_path, s3a_properties
from tests.support.servers.hiveserver2 import (
    HiveServer2Spec,
    start_hiveserver2,
    start_metastore_for_hiveserver2,
)
from tests.support.slow_store import SlowStore
from tests.support.versitygw import BUCKET, versitygw_or_skip

pytestmark = pytest.mark.nightly
LOCATION = f"s3a://{BUCKET}/t"
DAYS, FILES, EACH = 3, 12, 10
SETTLED = 2.1  # seconds after which an index trusts a file's time


@dataclass(frozen=True, slots=True)
class World:
    """Hive with the hook at plan level.

    Attributes:
        proxy: before the store, for Hive alone.
    """

    hive: HookedHive
    proxy: SlowStore
    storage: Storage

    def put(self, number: int, keys: Sequence[int]) -> None:
        sink = io.BytesIO()
        pq.write_table(pa.table({"k": keys, "v": [f"v{n}" for n in keys]}), sink)
        self.storage.put(_uri(number), sink.getvalue())

    def read(self, sql: str, settings: Mapping[str, str]) -> set[str]:
        """The files whose bytes Hive asks the store for."""
        self.proxy.take()
        assert self.hive.ask(sql, settings).rows
        return {key for verb, key in self.proxy.take().requests if verb == "GET" and key}


def _uri(number: int) -> str:
    return f"s3://{BUCKET}/{_key(number)}"


def _key(number: int) -> str:
    return f"t/day={number % DAYS}/city=x%3Ay z/f +%20ü{number:02d}.parquet"


def skipbridge(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(cli, [*words, "--output", "json"])
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def world(hive_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("hive-s3")
    with ExitStack() as stack:
        gateway = versitygw_or_skip(directory / "s3")
        stack.enter_context(gateway.server)
        proxy = stack.enter_context(SlowStore(gateway.server.port))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in gateway.environment.items():
            patch.setenv(name, value)
        client = s3a_class_path()
        spec = MetastoreSpec(
            directory / "metastore",
            port=0,
            in_memory=True,
            properties=s3a_properties(gateway.options),
            class_path=client,
        )
        metastore = stack.enter_context(start_metastore_for_hiveserver2(spec))
        running = RunningMetastore(metastore, directory / "warehouse")
        for name, value in {
            "AWS_ENDPOINT_URL": gateway.options["endpoint"],
            "AWS_REGION": gateway.options["region"],
            "AWS_ALLOW_HTTP": "true",
            "SKIPBRIDGE_METASTORE_URI": running.uri,
            "SKIPBRIDGE_CONFIG": str(directory / "none.toml"),
            "SKIPBRIDGE_CACHE": str(directory / "cache"),
        }.items():
            patch.setenv(name, value)
        server = stack.enter_context(
            start_hiveserver2(
                HiveServer2Spec(
                    directory / "hiveserver2",
                    running.uri,
                    port=0,
                    auxiliary_jars=(hive_jar,),
                    library_jars=client,
                    properties={
                        "skipbridge.planner.by_session": "true",
                        **s3a_properties(gateway.through(proxy.port)),
                    },
                    jvm_options=("-XX:TieredStopAtLevel=1",),
                )
            )
        )
        hive = RunningHiveServer2(server, running)
        stack.callback(hive.close)
        hooked, _ = stack.enter_context(hooked_hive(hive, directory / "planner"))
        made = World(hooked, proxy, open_storage())
        for i in range(FILES):
            made.put(i, range(i * EACH, i * EACH + EACH))
        time.sleep(SETTLED)
        report = skipbridge("sync", "stores.t", "--location", LOCATION, "--index")
        assert (report["counts"]["added"], report["index"]["files"]) == (DAYS, FILES), report
        yield made


@pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])
def test_the_hook_skips_files_and_rows_stay(world: World, settings: Mapping[str, str]) -> None:
    for where in (
        "k = 57",
        "k >= 35 AND k < 52",
        "v = 'v101' OR k < 3",
        "day = 1 AND city = 'x:y z' AND k < 30",
    ):
        sql = f"SELECT k, v, day, city FROM stores.t WHERE {where}"
        answer = world.hive.ask(sql, settings)
        assert answer.rows and sorted(answer.rows) == sorted(world.hive.unhooked(sql, settings))
        assert answer.listed and answer.read <= answer.listed / 2, (sql, answer.scans)
        assert not answer.warnings
    whole = world.hive.ask("SELECT k FROM stores.t", settings)
    assert whole.ids == list(range(FILES * EACH))


@pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])
def test_the_store_gives_no_bytes_of_skipped_files(
    world: World, settings: Mapping[str, str]
) -> None:
    sql = "SELECT v FROM stores.t WHERE k = 57"
    assert world.read(sql, settings) == {_key(5)}
    off = {**settings, PRUNING: "false"}
    assert world.read(sql, off) == {_key(i) for i in range(FILES)}


def test_changed_new_and_deleted_files(world: World) -> None:
    """Hive lists the store itself: what the index does not know is read."""
    hive = world.hive
    world.put(3, range(500, 500 + EACH))  # as large as before
    assert hive.ask("SELECT k FROM stores.t WHERE k = 505").ids == [505]
    assert hive.ask("SELECT k FROM stores.t WHERE k = 35").ids == []
    world.put(FILES, [35, 999])
    assert hive.ask("SELECT k FROM stores.t WHERE k = 35 OR k > 505").ids == [
        35,
        *range(506, 510),
        999,
    ]
    world.storage.delete(_uri(5))
    assert hive.ask("SELECT k FROM stores.t WHERE k BETWEEN 55 AND 61").ids == [60, 61]
    time.sleep(SETTLED)
    assert skipbridge("sync", "stores.t", "--index")["index"]["files"] == FILES
    before = time.monotonic()
    while hive.ask("SELECT k FROM stores.t WHERE k = 32").read:
        # planners look for a newer generation every second
        assert time.monotonic() < before + 30
    for key, ids, read in ((505, [505], 2), (32, [], 0)):  # the new file goes from 35 to 999
        answer = hive.ask(f"SELECT k FROM stores.t WHERE k = {key}")
        assert (answer.ids, answer.read, answer.listed) == (ids, read, FILES), answer.scans


def test_sync_registers_as_hive_can_open_it(world: World) -> None:
    with MetastoreClient(world.hive.metastore_uri) as client:
        assert client.get_table("stores", "t").sd.location == LOCATION
