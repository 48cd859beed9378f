"""HiveServer2 over a table on HDFS: the hook skips files, and Hive's rows stay."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.kernel.types import BIGINT, STRING
from bridge.servers.embedded_metastore import MetastoreSpec
from bridge.storage.routed import open_storage
from bridge.table.model import CatalogTable, Column, TableName
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.hive_stack import FETCH, TEZ, HookedHive, hooked_hive, register
from tests.support.hdfs import start_hdfs
from tests.support.servers.hiveserver2 import (
    HiveServer2Spec,
    start_hiveserver2,
    start_metastore_for_hiveserver2,
)

pytestmark = pytest.mark.nightly
COLUMNS = (Column("k", BIGINT), Column("v", STRING))
NAME = TableName("stores", "t")
FILES, EACH = 12, 10


def _content(first: int) -> bytes:
    sink = io.BytesIO()
    numbers = range(first, first + EACH)
    pq.write_table(pa.table({"k": numbers, "v": [f"v{n}" for n in numbers]}), sink)
    return sink.getvalue()


@pytest.fixture(scope="module")
def hive(
    hive_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HookedHive, str]]:
    """Hive with the hook at plan level, and where the table lies."""
    directory = tmp_path_factory.mktemp("hive-hdfs")
    with ExitStack() as stack:
        hdfs = start_hdfs(directory / "hdfs")
        stack.enter_context(hdfs.server)
        spec = MetastoreSpec(directory / "metastore", port=0, in_memory=True)
        metastore = stack.enter_context(start_metastore_for_hiveserver2(spec))
        running = RunningMetastore(metastore, directory / "warehouse")
        server = stack.enter_context(
            start_hiveserver2(
                HiveServer2Spec(
                    directory / "hiveserver2",
                    running.uri,
                    port=0,
                    auxiliary_jars=(hive_jar,),
                    properties={"skipbridge.planner.by_session": "true"},
                    jvm_options=("-XX:TieredStopAtLevel=1",),
                )
            )
        )
        hive2 = RunningHiveServer2(server, running)
        stack.callback(hive2.close)
        hooked, _ = stack.enter_context(hooked_hive(hive2, directory / "cache"))
        place = f"{hdfs.uri}/t"
        for i in range(FILES):
            open_storage().put(f"{place}/f +%20ü{i:02d}.parquet", _content(i * EACH))
        time.sleep(2.1)  # an index takes a file for settled a while after it was written
        register(running.uri, NAME, CatalogTable(NAME, COLUMNS, (), place, "parquet"), [])
        hooked.build_index(NAME)
        yield hooked, place


@pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])
def test_the_hook_skips_files_and_rows_stay(
    hive: tuple[HookedHive, str], settings: Mapping[str, str]
) -> None:
    hooked, _ = hive
    for where in ("k = 57", "k >= 35 AND k < 52", "v = 'v101' OR k < 3"):
        sql = f"SELECT k, v FROM {NAME} WHERE {where}"
        answer = hooked.ask(sql, settings)
        assert answer.rows and sorted(answer.rows) == sorted(hooked.unhooked(sql, settings))
        assert (answer.listed, answer.read < FILES / 2) == (FILES, True), (sql, answer.scans)
        assert not answer.warnings
    assert hooked.ask(f"SELECT k FROM {NAME}", settings).ids == list(range(FILES * EACH))


def test_a_rewritten_file_is_read(hive: tuple[HookedHive, str]) -> None:
    hooked, place = hive
    open_storage().put(f"{place}/f +%20ü03.parquet", _content(500))
    assert hooked.ask(f"SELECT k FROM {NAME} WHERE k = 505").ids == [505]
