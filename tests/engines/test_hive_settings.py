"""Whom Hive asks, and what it believes, is decided by the server's hive-site.xml alone."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.servers.process import LOOPBACK
from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.hive_stack import FETCH, TEZ, HookedHive, age, planner_under_test
from tests.support.servers.hiveserver2 import HiveServer2Spec, start_hiveserver2

pytestmark = pytest.mark.full
SCHEMA = "owned"
OWN, PLAIN, TITLED = (TableName(SCHEMA, n) for n in ("own", "plain", "titled"))
MAPREDUCE = {
    **TEZ,
    "hive.execution.engine": "mr",
    "hive.exec.submit.local.task.via.child": "false",
}


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[socket.socket]:
    """Where no Hive may connect to."""
    with socket.create_server((LOOPBACK, 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture(scope="module")
def hive(
    metastore_401: RunningMetastore,
    hive_jar: Path,
    elsewhere: socket.socket,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[HookedHive]:
    """Its sessions and one of its tables name another planner than hive-site.xml."""
    root = tmp_path_factory.mktemp("settings")
    other = f"{LOOPBACK}:{elsewhere.getsockname()[1]}"
    with planner_under_test(metastore_401.uri, root / "cache") as planner:
        spec = HiveServer2Spec(
            root / "hiveserver2",
            metastore_401.uri,
            port=0,
            auxiliary_jars=(hive_jar,),
            properties={
                "skipbridge.planner": planner.endpoint,
                "skipbridge.planner.timeout.ms": "20000",
            },
            jvm_options=("-XX:TieredStopAtLevel=1",),
        )
        with start_hiveserver2(spec) as server:
            hive = HookedHive(RunningHiveServer2(server, metastore_401), other)
            hive.forget(SCHEMA)
            hive.ask(f"CREATE DATABASE {SCHEMA}")
            for name in (OWN, PLAIN):
                directory = root / name.table
                directory.mkdir()
                for i in range(6):
                    pq.write_table(pa.table({"k": [i], "s": [f"s{i}"]}), directory / f"f{i}")
                age(directory)
                words = f"STORED AS PARQUET LOCATION 'file://{directory}'"
                if name is OWN:
                    told = {"skipbridge.planner": other, "skipbridge.told": f"{other} 9"}
                    pairs = ", ".join(f"'{key}'='{value}'" for key, value in told.items())
                    words += f" TBLPROPERTIES ({pairs})"
                hive.ask(f"CREATE EXTERNAL TABLE {name} (k bigint, s string) {words}")
                hive.build_index(name)
            yield hive
            hive.forget(SCHEMA)
            hive.close()


@pytest.mark.rule("42")
@pytest.mark.parametrize("settings", [FETCH, TEZ, MAPREDUCE], ids=["fetch", "tez", "mr"])
@pytest.mark.parametrize(
    ("sql", "ids"),
    [
        (f"SELECT k FROM {OWN} WHERE k = 3", [3]),
        (f"SELECT k FROM {PLAIN} WHERE k = 4", [4]),
        (f"SELECT k FROM {OWN} WHERE k = 3 UNION ALL SELECT k FROM {PLAIN} WHERE k = 4", [3, 4]),
        (f"SELECT a.k FROM {OWN} a JOIN {PLAIN} b ON a.k = b.k WHERE b.k = 3 AND a.k = 3", [3]),
    ],
)
def test_neither_tables_nor_sessions_choose_the_planner(
    hive: HookedHive, elsewhere: socket.socket, settings: dict[str, str], sql: str, ids: list[int]
) -> None:
    answer = hive.ask(sql, settings)
    assert answer.ids == ids and not answer.warnings
    assert answer.read < answer.listed
    with pytest.raises(BlockingIOError):
        elsewhere.accept()


def test_header_lines_in_mapreduce_do_not_depend_on_an_index(
    hive: HookedHive, tmp_path: Path
) -> None:
    for i in range(6):
        (tmp_path / f"f{i}").write_text(f"k,s\n{i},s{i}\n")
    age(tmp_path)
    hive.ask(
        f"CREATE EXTERNAL TABLE {TITLED} (k bigint, s string) ROW FORMAT DELIMITED FIELDS"
        f" TERMINATED BY ',' STORED AS TEXTFILE LOCATION 'file://{tmp_path}'"
        " TBLPROPERTIES ('skip.header.line.count'='1')"
    )
    hive.build_index(TITLED)
    for where in ("s = 's3'", "s >= 's' AND s < 's3'", "k IS NULL"):
        sql = f"SELECT count(*) FROM {TITLED} WHERE {where}"
        assert hive.ask(sql, MAPREDUCE).rows == hive.unhooked(sql, MAPREDUCE)
    assert hive.ask(f"SELECT s FROM {TITLED} WHERE s = 's3'", TEZ).read == 1
