"""The hook at plan level in a real HiveServer2: files are skipped of tables whose records in the
metastore nobody touched, whatever shape the plan has.

The suites of predicates, ORC, failures and reads run in this way too: see the fixture `way`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyhive.exc import OperationalError

from bridge.hive.server import HiveSession
from bridge.kernel.types import BIGINT, STRING
from bridge.metastore.client import MetastoreClient
from bridge.servers.process import LOOPBACK
from bridge.service._gen import ttypes
from bridge.table.model import CatalogTable, Column, TableName
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_sales import write_sales
from tests.engines.hive_stack import (
    FETCH,
    HOOK,
    TEZ,
    Answer,
    HookedHive,
    PlannerUnderTest,
    age,
    hooked_hive,
    index,
    register,
)
from tests.engines.stock_readers import Rows, ask_spark, ask_trino
from tests.support.servers.hiveserver2 import HiveServer2Spec, start_hiveserver2

pytestmark = pytest.mark.full

SCHEMA = "plans"
SALES = TableName(SCHEMA, "sales")
FLAT = TableName(SCHEMA, "flat")
MODES = pytest.mark.parametrize("settings", [FETCH, TEZ], ids=["fetch", "tez"])
MAPREDUCE = {
    **TEZ,
    "hive.execution.engine": "mr",
    "hive.exec.submit.local.task.via.child": "false",  # there is no command `hadoop` here
}


@pytest.fixture(scope="module")
def both(
    hiveserver2: RunningHiveServer2, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[HookedHive, PlannerUnderTest]]:
    cache = tmp_path_factory.mktemp("cache")
    with hooked_hive(hiveserver2, cache) as running:
        hive = running[0]
        hive.forget(SCHEMA)
        sales = tmp_path_factory.mktemp("plans")
        table, partitions = write_sales(sales / "table", SALES)
        age(sales)
        register(hive.metastore_uri, SALES, table, partitions)
        index(hive.metastore_uri, SALES)
        write_flat(hive, tmp_path_factory.mktemp("flat"), FLAT)
        before = records(hive)
        yield running
        assert records(hive) == before


@pytest.fixture
def hive(both: tuple[HookedHive, PlannerUnderTest]) -> HookedHive:
    return both[0]


def write_flat(hive: HookedHive, directory: Path, name: TableName) -> None:
    """Ten files of ten rows, k from 0 to 99, in a table without partitions."""
    for i in range(10):
        keys = range(10 * i, 10 * i + 10)
        rows = pa.table({"k": pa.array(keys, pa.int64()), "s": [f"s{k}" for k in keys]})
        pq.write_table(rows, directory / f"f{i}.parquet")
    age(directory)
    columns = (Column("k", BIGINT), Column("s", STRING))
    register(hive.metastore_uri, name, CatalogTable(name, columns, (), f"file://{directory}"), [])
    index(hive.metastore_uri, name)


def records(hive: HookedHive) -> list[object]:
    """All that the metastore holds of the two tables."""
    with MetastoreClient(hive.metastore_uri) as client:
        names = client.get_partition_names(SALES.schema, SALES.table)
        partitions = client.get_partitions_by_names(SALES.schema, SALES.table, names).partitions
        tables = [client.get_table(n.schema, n.table) for n in (SALES, FLAT)]
        return [*tables, *partitions]


def same_as_unhooked(hive: HookedHive, sql: str, settings: dict[str, str]) -> Answer:
    answer = hive.ask(sql, settings)
    assert sorted(answer.rows, key=str) == sorted(hive.unhooked(sql, settings), key=str)
    assert not answer.warnings
    return answer


PLANS = (
    (f"SELECT k, s FROM {FLAT} WHERE k = 77", 1),
    (f"SELECT s FROM {FLAT} WHERE k = 77 AND INPUT__FILE__NAME LIKE '%f7.parquet'", 1),
    (f"SELECT s FROM {FLAT} WHERE k >= 90 LIMIT 20", 1),
    (f"SELECT count(*) FROM {FLAT} WHERE k < 15", 2),
    (f"SELECT k FROM {FLAT} WHERE k > 1000", 0),
    (f"SELECT k FROM {SALES} WHERE k = 77", 1),
    (f"SELECT x.k FROM (SELECT k, s FROM {FLAT} WHERE k = 5 OR k = 95) x WHERE s LIKE 's%'", 2),
)


@MODES
@pytest.mark.parametrize(("sql", "files"), PLANS, ids=[sql for sql, _ in PLANS])
def test_files_are_skipped(
    hive: HookedHive, sql: str, files: int, settings: dict[str, str]
) -> None:
    assert same_as_unhooked(hive, sql, settings).read == files


JOINS = (
    (f"SELECT a.k, b.s FROM {FLAT} a JOIN {SALES} b ON a.k = b.k WHERE a.k = 7 AND b.k < 20", 2),
    (f"SELECT count(*) FROM {SALES} WHERE k IN (SELECT k FROM {FLAT} WHERE k = 3) AND k < 20", 2),
    (f"SELECT k FROM {FLAT} WHERE k = 1 UNION ALL SELECT k FROM {SALES} WHERE k = 239", 2),
    (f"WITH c AS (SELECT k FROM {FLAT} WHERE k < 5) SELECT a.k FROM c a JOIN c b ON a.k = b.k", 2),
)
NO_MAP_JOIN = {"hive.auto.convert.join": "false"}


@pytest.mark.parametrize("more", [{}, NO_MAP_JOIN], ids=["map-join", "merge-join"])
@pytest.mark.parametrize(("sql", "files"), JOINS, ids=[sql for sql, _ in JOINS])
def test_several_tables_in_one_plan(
    hive: HookedHive, sql: str, files: int, more: dict[str, str]
) -> None:
    assert same_as_unhooked(hive, sql, {**TEZ, **more}).read <= files


@pytest.mark.parametrize("sql", [PLANS[0][0], PLANS[3][0], JOINS[0][0]])
def test_mapreduce(hive: HookedHive, sql: str) -> None:
    answer = same_as_unhooked(hive, sql, MAPREDUCE)
    assert 0 < answer.read < answer.listed


def test_what_reads_and_writes(hive: HookedHive) -> None:
    """CREATE TABLE AS, INSERT ... SELECT and views; nothing that Hive creates names our classes."""
    hive.ask(f"CREATE VIEW {SCHEMA}.late AS SELECT k, s FROM {FLAT} WHERE k >= 80")
    assert same_as_unhooked(hive, f"SELECT k FROM {SCHEMA}.late WHERE k < 85", FETCH).read == 1
    made = hive.ask(
        f"CREATE EXTERNAL TABLE {SCHEMA}.made STORED AS PARQUET AS "
        f"SELECT k, s FROM {FLAT} WHERE k < 10",
        TEZ,
    )
    assert made.read == 1
    added = hive.ask(f"INSERT INTO {SCHEMA}.made SELECT k, s FROM {SALES} WHERE k = 239", TEZ)
    assert added.read == 1
    assert sorted(hive.ask(f"SELECT k FROM {SCHEMA}.made").ids) == [*range(10), 239]
    hive.ask(f"CREATE EXTERNAL TABLE {SCHEMA}.like_flat LIKE {FLAT}")
    hive.ask(f"CREATE EXTERNAL TABLE {SCHEMA}.like_sales LIKE {SALES}")
    nonstrict = {**TEZ, "hive.exec.dynamic.partition.mode": "nonstrict"}
    hive.ask(
        f"INSERT INTO {SCHEMA}.like_sales PARTITION (p) SELECT * FROM {SALES} WHERE k = 77",
        nonstrict,
    )
    with MetastoreClient(hive.metastore_uri) as client:
        for name in client.get_all_tables(SCHEMA):
            assert "skipbridge" not in repr(client.get_table(SCHEMA, name).sd), name
        names = client.get_partition_names(SCHEMA, "like_sales")
        found = client.get_partitions_by_names(SCHEMA, "like_sales", names).partitions
        assert found and all("skipbridge" not in repr(p) for p in found)


def test_an_explained_plan_is_hives_own(hive: HookedHive) -> None:
    plan = str(hive.ask(f"EXPLAIN EXTENDED SELECT k FROM {FLAT} WHERE k = 77", TEZ).rows)
    assert "MapredParquetInputFormat" in plan and "skipbridge.hive.Bridge" not in plan
    answer = hive.ask(f"EXPLAIN ANALYZE SELECT count(*) FROM {FLAT} WHERE k = 77", TEZ)
    assert (answer.read, answer.listed) == (1, 10)


def test_prepared_statements(hive: HookedHive) -> None:
    """Hive 4.0.1 passes on filters with unbound parameters, so every file is read. It fails to
    execute statements without a reducer, hook or not.
    """
    hive.ask(f"PREPARE counting FROM SELECT count(*), max(s) FROM {FLAT} WHERE k = ?", TEZ)
    for k in (5, 55, 5):
        answer = hive.ask(f"EXECUTE counting USING {k}", TEZ)
        assert answer.rows == [(1, f"s{k}")] and answer.read == answer.listed == 10


def test_results_that_are_cached(hive: HookedHive) -> None:
    cached = {
        **TEZ,
        "hive.query.results.cache.enabled": "true",
        "hive.query.results.cache.nontransactional.tables.enabled": "true",
    }
    sql = f"SELECT count(*), max(s) FROM {FLAT} WHERE k BETWEEN 33 AND 35"
    first, second = hive.ask(sql, cached), hive.ask(sql, cached)
    assert first.rows == second.rows == [(3, "s35")]
    assert first.read == 1 and not second.warnings


def test_a_query_that_is_run_again(hive: HookedHive) -> None:
    """Hive compiles it anew, with other settings, after it failed."""
    limits = {"zzz": "1", "reexec.overlay.zzz": "2000", **TEZ}
    sql = f"SELECT k, assert_true(${{hiveconf:zzz}} > k) FROM {FLAT} WHERE k < 20"
    answer = hive.ask(sql, limits)
    assert answer.ids == list(range(20))
    assert [(s.read, s.listed) for s in answer.scans] == [(2, 10)] * 2


def test_bucketed_text_and_unknown_tables_stay_as_they_are(
    hive: HookedHive, tmp_path: Path
) -> None:
    hive.ask(
        f"CREATE EXTERNAL TABLE {SCHEMA}.buckets (k bigint) CLUSTERED BY (k) INTO 2 BUCKETS "
        f"STORED AS PARQUET LOCATION 'file://{tmp_path}/buckets'"
    )
    hive.ask(f"INSERT INTO {SCHEMA}.buckets SELECT k FROM {FLAT} WHERE k < 10", TEZ)
    for file in (tmp_path / "buckets").glob("0*"):  # Hive still clears up beside them
        os.utime(file, (time.time() - 60,) * 2)
    index(hive.metastore_uri, TableName(SCHEMA, "buckets"))
    hive.ask(f"CREATE EXTERNAL TABLE {SCHEMA}.plain LIKE {FLAT} LOCATION 'file://{tmp_path}/p'")
    hive.ask(f"INSERT INTO {SCHEMA}.plain VALUES (1, 's1')", TEZ)
    hive.ask(f"CREATE EXTERNAL TABLE {SCHEMA}.lines (k int) LOCATION 'file://{tmp_path}/lines'")
    hive.ask(f"INSERT INTO {SCHEMA}.lines VALUES (1)", TEZ)
    for table in ("buckets", "plain", "lines"):
        for settings in (FETCH, TEZ):
            answer = hive.ask(f"SELECT k FROM {SCHEMA}.{table} WHERE k = 1", settings)
            assert answer.rows == [(1,)] and not answer.scans and not answer.warnings


def test_a_new_index_is_found_and_a_dropped_one_forgotten(hive: HookedHive, tmp_path: Path) -> None:
    name = TableName(SCHEMA, "later")
    directory = tmp_path / "later"
    directory.mkdir()
    write_flat(hive, directory, name)
    sql = f"SELECT k FROM {name} WHERE k = 42"
    assert hive.ask(sql).read == 1  # a table that no query read before is asked about at once
    (directory / ".skipbridge").rename(tmp_path / "aside")
    until(lambda: not hive.ask(sql).scans)
    assert hive.ask(sql).rows == [(42,)]
    (tmp_path / "aside").rename(directory / ".skipbridge")
    until(lambda: hive.ask(sql).read == 1)


def test_another_table_of_that_name_is_not_read_through_the_index(
    hive: HookedHive, tmp_path: Path
) -> None:
    """A temporary table hides the one that the planner knows."""
    name = TableName(SCHEMA, "hidden")
    directory = tmp_path / "hidden"
    directory.mkdir()
    write_flat(hive, directory, name)
    assert hive.ask(f"SELECT s FROM {name} WHERE k = 42").read == 1
    hive.ask(f"CREATE TEMPORARY TABLE {name} STORED AS PARQUET AS SELECT 42 k, 'mine' s", TEZ)
    answer = hive.ask(f"SELECT s FROM {name} WHERE k = 42", TEZ)
    assert answer.rows == [("mine",)] and not answer.scans
    hive.ask(f"DROP TABLE {name}", TEZ)


@MODES
def test_a_temporary_table_over_the_same_files(
    hive: HookedHive, tmp_path: Path, settings: dict[str, str]
) -> None:
    """Hive finds ORC's columns by position, and its columns have other places."""
    name = TableName(SCHEMA, f"places_{settings['hive.fetch.task.conversion']}")
    for i in range(4):
        low, high = range(10 * i, 10 * i + 10), range(1000 - 10 * i, 1010 - 10 * i)
        rows = pa.table({"a": pa.array(low, pa.int64()), "b": pa.array(high, pa.int64())})
        orc.write_table(rows, tmp_path / f"f{i}.orc")
    age(tmp_path)
    at = f"STORED AS ORC LOCATION 'file://{tmp_path}'"
    hive.ask(f"CREATE EXTERNAL TABLE {name} (a bigint, b bigint) {at}", settings)
    index(hive.metastore_uri, name)
    assert hive.ask(f"SELECT b FROM {name} WHERE a = 5", settings).read == 1
    hive.ask(f"CREATE TEMPORARY EXTERNAL TABLE {name} (b bigint, a bigint) {at}", settings)
    answer = hive.ask(f"SELECT b FROM {name} WHERE a = 1005", settings)
    assert answer.rows == [(5,)] and not answer.scans
    for _ in range(2):  # the temporary one first
        hive.ask(f"DROP TABLE {name}", settings)


@MODES
@pytest.mark.parametrize("sample", ["50 PERCENT", "3 ROWS"])
def test_a_sample_is_of_all_files(hive: HookedHive, sample: str, settings: dict[str, str]) -> None:
    combining = "org.apache.hadoop.hive.ql.io.CombineHiveInputFormat"
    more = {"hive.input.format": combining, "hive.tez.input.format": combining}
    sql = f"SELECT k FROM {FLAT} TABLESAMPLE({sample}) WHERE k = 15"
    assert not same_as_unhooked(hive, sql, {**settings, **more}).scans


def test_a_count_of_nothing_in_a_fetch(hive: HookedHive) -> None:
    """Hive drops the row of such an aggregate if no task ran."""
    settings = {**FETCH, "hive.fetch.task.aggr": "true"}
    for table in (FLAT, SALES):
        sql = f"SELECT count(*) FROM {table} WHERE k > 1000"
        assert same_as_unhooked(hive, sql, settings).rows == [(0,)]
    assert same_as_unhooked(hive, f"SELECT count(*) FROM {FLAT} WHERE k = 5", settings).read == 1


def test_a_planner_that_lies_or_is_another_program(
    both: tuple[HookedHive, PlannerUnderTest],
) -> None:
    """Another place, or classes that are none of ours: Hive reads every file."""
    hive, planner = both
    handler = planner.service.handler
    own = handler.list_indexed_tables

    def elsewhere(tables: list[str], protocol: int) -> ttypes.IndexedTables:
        answer = own(tables, protocol)
        answer.locations = {name: f"{at}x" for name, at in answer.locations.items()}
        return answer

    def strings(tables: list[str], protocol: int) -> ttypes.IndexedTables:
        answer = own(tables, protocol)
        answer.input_formats = dict.fromkeys(answer.input_formats, "java.lang.String")
        return answer

    for number, lie in enumerate((elsewhere, strings)):
        handler.list_indexed_tables = lie  # type: ignore[method-assign]
        try:
            unheard = {"skipbridge.hook.refresh.ms": str(3000 + number)}  # so the hook asks
            answer = hive.ask(f"SELECT s FROM {FLAT} WHERE k = 78", {**FETCH, **unheard})
        finally:
            handler.list_indexed_tables = own  # type: ignore[method-assign]
        assert answer.rows == [("s78",)] and not answer.scans and not answer.warnings


def test_a_setting_that_is_no_number_is_named(hive: HookedHive) -> None:
    wrong = {**FETCH, "skipbridge.planner.timeout.ms": "soon"}
    answer = hive.ask(f"SELECT k FROM {FLAT} WHERE k = 77", wrong)
    assert answer.rows == [(77,)] and not answer.scans
    assert "skipbridge.planner.timeout.ms is 'soon'" in answer.warnings[0]


READ_ELSEWHERE = tuple(
    f"SELECT k, s FROM {table} WHERE {condition}"
    for table in (FLAT, SALES)
    for condition in ("k BETWEEN 18 AND 22", "k = 77", "k > 1000", "s LIKE '%7%' AND k < 50")
)


@pytest.mark.nightly
def test_engines_without_the_jar_read_the_same_tables(
    hive: HookedHive, stock_trino: int, tmp_path: Path
) -> None:
    """Hive, Trino and Spark as they come, at the same time: nothing there names our classes."""
    spec = HiveServer2Spec(
        tmp_path / "stock",
        hive.metastore_uri,
        port=0,
        heap="900m",
        jvm_options=("-XX:TieredStopAtLevel=1",),
    )

    def stock_hive() -> list[Rows]:
        with (
            start_hiveserver2(spec) as server,
            HiveSession(f"{LOOPBACK}:{server.port}", settings=TEZ) as stock,
        ):
            return [stock.query(sql) for sql in READ_ELSEWHERE]

    with ThreadPoolExecutor(3) as pool:
        others = [
            pool.submit(stock_hive),
            pool.submit(ask_trino, stock_trino, READ_ELSEWHERE),
            pool.submit(ask_spark, hive.metastore_uri, tmp_path, READ_ELSEWHERE),
        ]
        asked = 0
        while asked == 0 or not all(other.done() for other in others):
            answers = [hive.ask(sql, TEZ if asked % 2 else FETCH) for sql in READ_ELSEWHERE]
            asked += 1
            # A planner that answers too late, on a busy machine, is a warning.
            assert all(answer.read < answer.listed or answer.warnings for answer in answers)
    ours = [sorted(answer.rows) for answer in answers]
    for other in others:
        assert [sorted(rows) for rows in other.result()] == ours  # type: ignore[type-var]


def test_no_planner(hive: HookedHive) -> None:
    nobody = {"skipbridge.planner": f"{LOOPBACK}:1"}
    for settings in (FETCH, TEZ):
        answer = hive.ask(f"SELECT k FROM {FLAT} WHERE k = 77", {**settings, **nobody})
        assert answer.rows == [(77,)] and not answer.scans
        wrong = {**settings, "skipbridge.planner": "nonsense"}
        assert hive.ask(f"SELECT k FROM {FLAT} WHERE k = 77", wrong).rows == [(77,)]


def test_a_missing_class_fails_every_query(hive: HookedHive) -> None:
    """Hive itself refuses: so the configuration goes before the jar."""
    address = f"{LOOPBACK}:{hive.server.server.port}"
    settings = {"hive.exec.pre.hooks": HOOK.replace("SkipFilesHook", "IsGone")}
    with pytest.raises(
        OperationalError, match=r"ClassNotFoundException: io\.skipbridge\.\S+IsGone"
    ):
        HiveSession(address, settings=settings)


def until(true: object, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.2)
