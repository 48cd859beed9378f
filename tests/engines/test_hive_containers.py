"""Hive's tasks in containers, which find the hooks only if their jar is shipped to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhive.exc import OperationalError

from bridge.kernel.types import BIGINT, STRING
from bridge.table.model import CatalogTable, Column, TableName
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.hive_containers import (
    PATIENT,
    TASKS,
    HiveInContainers,
    Told,
    another_hive,
    ask,
    hive_in_containers,
)
from tests.engines.hive_sales import write_sales
from tests.engines.hive_stack import (
    FETCH,
    PRUNING,
    TEZ,
    HookedHive,
    age,
    index,
    planner_under_test,
    register,
)
from tests.support.hooked_records import hook_table
from tests.support.servers.hiveserver2 import HiveServer2Spec, start_hiveserver2

pytestmark = pytest.mark.nightly

SCHEMA = "containers"
FLAT = TableName(SCHEMA, "flat")
SALES = TableName(SCHEMA, "sales")
HOOKED = TableName(SCHEMA, "hooked")
UNPRUNED = {PRUNING: "false"}


@pytest.fixture(scope="module")
def containers(
    metastore_401: RunningMetastore, hive_jar: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HiveInContainers]:
    own = tmp_path_factory.mktemp("jar") / hive_jar.name
    own.write_bytes(hive_jar.read_bytes())
    directory = tmp_path_factory.mktemp("containers")
    with hive_in_containers(directory, metastore_401, own) as running:
        yield running


@pytest.fixture(scope="module")
def planner(
    metastore_401: RunningMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A planner, and the tables that it knows."""
    root = tmp_path_factory.mktemp("tables")
    sales, partitions = write_sales(root / "sales", SALES)
    for name in (FLAT, HOOKED):
        (root / name.table).mkdir()
        for i in range(10):
            keys = range(10 * i, 10 * i + 10)
            rows = pa.table({"k": pa.array(keys, pa.int64()), "s": [f"s{k}" for k in keys]})
            pq.write_table(rows, root / name.table / f"f{i}.parquet")
    age(root)
    register(metastore_401.uri, SALES, sales, partitions)
    columns = (Column("k", BIGINT), Column("s", STRING))
    for name in (FLAT, HOOKED):
        table = CatalogTable(name, columns, (), f"file://{root / name.table}")
        register(metastore_401.uri, name, table, [])
    for name in (FLAT, SALES, HOOKED):
        index(metastore_401.uri, name)
    hook_table(metastore_401.uri, HOOKED)
    with planner_under_test(metastore_401.uri, tmp_path_factory.mktemp("cache")) as running:
        yield running.endpoint


@pytest.fixture(scope="module")
def hive(containers: HiveInContainers, planner: str) -> Iterator[HookedHive]:
    running = HookedHive(containers.server, planner)
    yield running
    running.close()


@pytest.fixture
def fresh(containers: HiveInContainers, planner: str) -> Iterator[HookedHive]:
    """Its sessions have no application master yet."""
    running = HookedHive(containers.server, planner)
    yield running
    running.close()


def same_as_unpruned(
    hive: HookedHive, containers: HiveInContainers, sql: str, changes: dict[str, str] | None = None
) -> Told:
    unpruned = ask(hive, containers.yarn, sql, changes={**(changes or {}), **UNPRUNED})
    assert not unpruned.scans and not unpruned.scans_of_server
    told = ask(hive, containers.yarn, sql, changes=changes)
    assert sorted(told.rows, key=str) == sorted(unpruned.rows, key=str)
    assert not told.warnings and not told.scans_of_server
    return told


QUERIES = (
    (f"SELECT k, s FROM {FLAT} WHERE k = 77", 1),
    (f"SELECT count(*), max(s) FROM {FLAT} WHERE k < 15", 2),
    (f"SELECT count(*) FROM {FLAT} WHERE k > 1000", 0),
    (f"SELECT k, n, d FROM {SALES} WHERE k BETWEEN 75 AND 81", 2),
    (f"SELECT k FROM {FLAT} WHERE k = 1 UNION ALL SELECT k FROM {SALES} WHERE k = 239", 2),
)


@pytest.mark.parametrize(("sql", "files"), QUERIES, ids=[sql for sql, _ in QUERIES])
def test_the_application_master_skips_files(
    hive: HookedHive, containers: HiveInContainers, sql: str, files: int
) -> None:
    told = same_as_unpruned(hive, containers, sql)
    assert told.read == files and told.listed >= 10


@pytest.mark.parametrize("convert", ["true", "false"], ids=["map-join", "merge-join"])
def test_joins(hive: HookedHive, containers: HiveInContainers, convert: str) -> None:
    sql = f"SELECT a.k, b.s FROM {FLAT} a JOIN {SALES} b ON a.k = b.k WHERE a.k = 7 AND b.k < 20"
    told = same_as_unpruned(hive, containers, sql, {"hive.auto.convert.join": convert})
    assert told.rows == [(7, "a-007")]
    assert {(s.table, s.read, s.listed) for s in told.scans} == {
        (str(FLAT), 1, 10),
        (str(SALES), 1, 12),
    }


def test_splits_that_the_server_makes(hive: HookedHive, containers: HiveInContainers) -> None:
    """Then a planner beside HiveServer2 is enough."""
    sql = f"SELECT a.k, b.s FROM {FLAT} a JOIN {SALES} b ON a.k = b.k WHERE a.k = 7 AND b.k < 20"
    here = {"hive.compute.splits.in.am": "false"}
    told = ask(hive, containers.yarn, sql, {**TASKS, **here})
    assert told.rows == [(7, "a-007")] and not told.scans and not told.warnings
    assert {(s.table, s.read, s.listed) for s in told.scans_of_server} == {
        (str(FLAT), 1, 10),
        (str(SALES), 1, 12),
    }


def test_a_planner_that_only_the_server_reaches(
    containers: HiveInContainers, planner: str, tmp_path: Path
) -> None:
    """The plan is changed, and the application master reads every file."""
    with planner_under_test(containers.server.metastore.uri, tmp_path) as gone:
        hive = HookedHive(containers.server, gone.endpoint)
        sql = f"SELECT count(*), max(s) FROM {FLAT} WHERE k < "
        assert ask(hive, containers.yarn, f"{sql} 15").read == 2
    told = ask(hive, containers.yarn, f"{sql} 25")
    hive.close()
    assert told.rows == [(25, "s9")]
    assert [(s.read, s.listed) for s in told.scans] == [(10, 10)]


def test_insert_select(hive: HookedHive, containers: HiveInContainers, tmp_path: Path) -> None:
    made = TableName(SCHEMA, "made")
    hive.ask(
        f"CREATE EXTERNAL TABLE {made} (k bigint, s string) STORED AS PARQUET "
        f"LOCATION 'file://{tmp_path}/made'",
        TASKS,
    )
    told = ask(hive, containers.yarn, f"INSERT INTO {made} SELECT k, s FROM {FLAT} WHERE k < 10")
    assert (told.read, told.listed) == (1, 10) and not told.warnings
    assert sorted(hive.ask(f"SELECT * FROM {made}", FETCH).rows) == [
        (k, f"s{k}") for k in range(10)
    ]


def test_a_fetch_stays_in_the_server(hive: HookedHive, containers: HiveInContainers) -> None:
    told = ask(hive, containers.yarn, f"SELECT s FROM {FLAT} WHERE k = 77", {**FETCH, **PATIENT})
    assert told.rows == [("s77",)] and not told.scans
    assert [(s.read, s.listed) for s in told.scans_of_server] == [(1, 10)]


def test_the_jar_is_shipped_once_a_query_needs_it(
    fresh: HookedHive, containers: HiveInContainers
) -> None:
    """Also to an application master that runs already, and to containers that are used again."""
    sql = f"SELECT count(*) FROM {FLAT} WHERE k < 15"
    seen = shipped(containers)
    assert ask(fresh, containers.yarn, sql, changes=UNPRUNED).rows == [(15,)]
    assert not shipped(containers) - seen
    for _ in range(2):
        told = ask(fresh, containers.yarn, sql)
        assert told.rows == [(15,)] and told.read == 2
    assert shipped(containers) - seen


def shipped(containers: HiveInContainers) -> set[Path]:
    """Copies of the jar in the directories of containers."""
    return set(containers.yarn.server.log.parent.rglob(f"usercache/**/{containers.jar.name}"))


def test_a_jar_that_cannot_be_shipped(fresh: HookedHive, containers: HiveInContainers) -> None:
    """The server has loaded its classes, but the file is gone: the plan stays as it is."""
    aside = containers.jar.with_suffix(".aside")
    containers.jar.rename(aside)
    try:
        told = ask(fresh, containers.yarn, f"SELECT s FROM {FLAT} WHERE k = 78")
    finally:
        aside.rename(containers.jar)
    assert told.rows == [("s78",)] and not told.scans and not told.scans_of_server
    assert "tasks read all files: they cannot load the hooks" in told.warnings[0]


MAPREDUCE = {
    **TASKS,
    "hive.execution.engine": "mr",
    # Hive 4.0.1's own process for them ends with a NullPointerException, hook or not.
    "hive.exec.submit.local.task.via.child": "false",
}


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (f"SELECT count(*), max(s) FROM {FLAT} WHERE k < 15", [(15, "s9")]),
        (
            f"SELECT a.k, b.s FROM {FLAT} a JOIN {SALES} b ON a.k = b.k WHERE a.k = 7 AND b.k < 20",
            [(7, "a-007")],
        ),
    ],
    ids=["aggregate", "map-join"],
)
def test_mapreduce(
    hive: HookedHive, containers: HiveInContainers, sql: str, rows: list[tuple[object, ...]]
) -> None:
    """HiveServer2 makes the splits, tasks in containers read them."""
    told = ask(hive, containers.yarn, sql, MAPREDUCE)
    assert told.rows == rows and not told.warnings
    assert all(s.read < s.listed for s in told.scans_of_server) and told.scans_of_server
    assert ask(hive, containers.yarn, sql, MAPREDUCE, UNPRUNED).rows == rows


def test_mapreduce_on_the_file_system_of_the_jar(
    fresh: HookedHive, containers: HiveInContainers, tmp_path: Path
) -> None:
    """Hadoop does not copy such a jar, so the plan stays as it is."""
    local = {
        **MAPREDUCE,
        "fs.defaultFS": "file:///",
        "yarn.app.mapreduce.am.staging-dir": str(tmp_path / "staging"),
    }
    told = ask(fresh, containers.yarn, f"SELECT s FROM {FLAT} WHERE k = 78", local)
    assert told.rows == [("s78",)] and not told.scans_of_server
    assert "tasks read all files: they cannot load the hooks" in told.warnings[0]


def test_an_application_master_of_a_pool(
    containers: HiveInContainers, metastore_401: RunningMetastore, planner: str, tmp_path: Path
) -> None:
    """It runs before any session, and several use it in turn."""
    pool = {
        "hive.server2.tez.initialize.default.sessions": "true",
        "hive.server2.tez.default.queues": "default",
        "hive.server2.tez.sessions.per.default.queue": "1",
    }
    before = applications(containers)
    with another_hive(
        tmp_path, metastore_401, containers.jar, {**containers.properties, **pool}
    ) as server:
        for pruned in ("false", "true", "true"):
            hive = HookedHive(server, planner)
            sql = f"SELECT count(*) FROM {FLAT} WHERE k < 15"
            told = ask(hive, containers.yarn, sql, changes={PRUNING: pruned})
            assert told.rows == [(15,)] and not told.warnings
            assert [(s.read, s.listed) for s in told.scans] == [(2, 10)] * (pruned == "true")
            hive.close()
    assert len(applications(containers) - before) == 1


def applications(containers: HiveInContainers) -> set[str]:
    return {log.parent.parent.name for log in containers.yarn.logs()}


def test_a_hooked_table(containers: HiveInContainers, planner: str) -> None:
    """A version before 0.1.0 put our class into its record: tasks need the jar of
    hive.aux.jars.path.
    """
    sql = f"SELECT count(*), max(s) FROM {HOOKED} WHERE k < 15"
    hive = HookedHive(containers.server, planner, hook=False)
    try:
        named = {**TASKS, "hive.aux.jars.path": f"file://{containers.jar}"}
        told = ask(hive, containers.yarn, sql, named)
        assert told.rows == [(15, "s9")] and (told.read, told.listed) == (2, 10)
        with pytest.raises(OperationalError, match="BridgeParquetInputFormat"):
            ask(hive, containers.yarn, sql)
    finally:
        hive.close()


def test_a_jar_that_only_a_session_loads(
    metastore_401: RunningMetastore, planner: str, hive_jar: Path, tmp_path: Path
) -> None:
    """hive.aux.jars.path names it, HiveServer2's class path does not: the plan stays as it is."""
    spec = HiveServer2Spec(
        tmp_path / "auxiliary",
        metastore_401.uri,
        port=0,
        heap="900m",
        properties={"hive.aux.jars.path": f"file://{hive_jar}"},
        jvm_options=("-XX:TieredStopAtLevel=1",),
    )
    with start_hiveserver2(spec) as server:
        hive = HookedHive(RunningHiveServer2(server, metastore_401), planner)
        for turn in range(2):
            for settings in (FETCH, TEZ):
                answer = hive.ask(f"SELECT s FROM {FLAT} WHERE k = 77", {**settings, **PATIENT})
                assert answer.rows == [("s77",)] and not answer.scans, turn
                assert "the hooks are not on HiveServer2's class path" in answer.warnings[0]
            hive.close()  # the class loaders of its sessions, too
