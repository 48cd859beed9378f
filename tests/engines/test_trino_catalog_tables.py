"""A catalog that is Trino's hive connector too: tables that only the planner knows, what others
change meanwhile, and who may read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trino

import bridge
from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from bridge.table.model import TableName
from tests.engines.catalogs import Catalogs
from tests.engines.stack import ask
from tests.support.hudi_fixtures import hudi_fixtures
from tests.support.hudi_registration import register

pytestmark = pytest.mark.full

NO_PLANNER = {"on_planner_failure": "hive"}


@pytest.fixture(scope="module", autouse=True)
def schema(catalogs: Catalogs) -> None:
    catalogs.hive("CREATE SCHEMA kinds")


@pytest.fixture(scope="module")
def segments(
    catalogs: Catalogs, schema: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A table over files where they lie; its own directory has no rows."""
    facts = tmp_path_factory.mktemp("facts")
    pq.write_table(pa.table({"a": range(30), "b": ["x"] * 30}), facts / "0.parquet")
    past = time.time() - 3600
    os.utime(facts / "0.parquet", (past, past))
    with bridge.connect(metastore_uri=catalogs.metastore_uri) as session:
        session.sql(
            "CREATE TABLE kinds.facts (a bigint, b string) STORED AS parquet; "
            f"ALTER TABLE kinds.facts ADD SEGMENT LOCATION '{facts}'",
            local=True,
        )
        yield "kinds.facts"
        session.sql("DROP TABLE kinds.facts")


def _error(catalogs: Catalogs, sql: str, **session: str) -> str:
    with pytest.raises(trino.exceptions.TrinoQueryError) as caught:
        catalogs.front(sql, **session)
    return f"{caught.value.error_name}: {caught.value.message}"


def test_a_table_of_segments_is_native_and_only_read(catalogs: Catalogs, segments: str) -> None:
    count = f"SELECT count(*), sum(a) FROM {segments}"
    assert catalogs.front(count) == [[30, 435]]
    for sql, operation in (
        (f"INSERT INTO {segments} VALUES (1, 'y')", "INSERT"),
        (f"DELETE FROM {segments}", "UPDATE, DELETE or MERGE"),
        (f"DROP TABLE {segments}", "DROP TABLE"),
        (f"ALTER TABLE {segments} ADD COLUMN c bigint", "ADD COLUMN"),
        (f"ALTER TABLE {segments} RENAME TO kinds.other", "RENAME"),
        (f"COMMENT ON TABLE {segments} IS 'x'", "COMMENT"),
    ):
        assert f"{operation}" in (error := _error(catalogs, sql)), error
        assert "a table of segments" in error
    assert catalogs.front(f"SHOW COLUMNS FROM {segments}") == [
        ["a", "bigint", "", ""],
        ["b", "varchar", "", ""],
    ]
    assert catalogs.front('SELECT count(*) FROM kinds."facts$segments"') == [[1]]
    assert catalogs.front(count) == [[30, 435]]


def test_a_table_of_segments_is_never_read_as_an_empty_directory(
    catalogs: Catalogs, segments: str
) -> None:
    """The planner's refusal and its absence are errors, not Hive's reader."""
    sql = f"SELECT * FROM {segments}"
    assert "SEGMENT_NOT_FOUND" in _error(catalogs, sql, segments=f"{segments}:99", **NO_PLANNER)
    catalogs.stop_planner()
    try:
        assert "SKIPBRIDGE_PLANNER_UNAVAILABLE" in _error(catalogs, sql, **NO_PLANNER)
    finally:
        catalogs.start_planner()
    assert len(catalogs.front(sql)) == 30


def test_a_hudi_table_stays_here(catalogs: Catalogs, tmp_path: Path) -> None:
    [fixture, *_] = hudi_fixtures(names=["cow_upserts"], bundle="1.2.0")
    with MetastoreClient(catalogs.metastore_uri) as client:
        name = TableName("kinds", "hudi")
        location = fixture.unpack(tmp_path)
        register(client, name, location, fixture.answers().snapshot.schema)
    count = "SELECT count(*) FROM kinds.hudi"
    answer = fixture.answers().snapshot
    assert catalogs.front(count) == [[answer.table(answer.schema.names).num_rows]]
    with pytest.raises(trino.exceptions.TrinoQueryError, match="Cannot query Hudi table"):
        catalogs.hive(count)
    assert "Hudi" in _error(catalogs, count, native_reads="false")
    for sql in ("INSERT INTO kinds.hudi SELECT * FROM kinds.hudi", "DROP TABLE kinds.hudi"):
        assert "NOT_SUPPORTED" in _error(catalogs, sql)
    other = {k: v for k, v in catalogs.properties.items() if k != "connector.name"}
    other["hive.metastore.impersonation-enabled"] = "true"
    text = ", ".join(f"\"{key}\" = '{value}'" for key, value in other.items())
    catalogs.hive(f"CREATE CATALOG other USING skipbridge WITH ({text})")
    try:  # where the planner's tables may not be the catalog's, it is asked for none
        for sql in (count, 'SELECT * FROM kinds."hudi$files"'):
            with pytest.raises(trino.exceptions.TrinoQueryError, match=r"Hudi|does not exist"):
                ask(catalogs.port, sql, "other")
    finally:
        catalogs.hive("DROP CATALOG other")
    shown = catalogs.front("SHOW COLUMNS FROM kinds.hudi")
    assert [row[0] for row in shown] == [f.name.lower() for f in answer.schema]
    catalogs.stop_planner()
    try:
        assert "SKIPBRIDGE_PLANNER_UNAVAILABLE" in _error(catalogs, count, **NO_PLANNER)
    finally:
        catalogs.start_planner()


def test_what_the_hive_catalog_changed_is_seen_at_once(catalogs: Catalogs) -> None:
    """By another connector, of which this one hears nothing."""
    table = "kinds.shared"
    catalogs.hive(
        f"CREATE TABLE {table} WITH (partitioned_by = ARRAY['k']) AS SELECT 1 AS a, 'x' AS k"
    )
    catalogs.same(f"SELECT * FROM {table}", "native")
    for sql in (
        f"INSERT INTO {table} VALUES (2, 'x'), (3, 'y')",
        f"DELETE FROM {table} WHERE k = 'x'",
        f"INSERT INTO {table} VALUES (4, 'z')",
    ):
        catalogs.hive(sql)
        catalogs.same(f"SELECT * FROM {table}", "native")
    catalogs.hive(f"ALTER TABLE {table} ADD COLUMN c varchar")
    rows = catalogs.front(f"SELECT * FROM {table}")
    assert sorted(map(repr, rows)) == sorted(map(repr, catalogs.hive(f"SELECT * FROM {table}")))


def test_an_insert_from_a_native_read_of_the_same_table(catalogs: Catalogs) -> None:
    table = "kinds.doubled"
    catalogs.hive(f"CREATE TABLE {table} AS SELECT * FROM UNNEST(sequence(1, 1000)) AS t (a)")
    assert catalogs.side(f"SELECT * FROM {table}") == "native"
    catalogs.front(f"INSERT INTO {table} SELECT * FROM {table}")
    assert catalogs.hive(f"SELECT count(*), sum(a) FROM {table}") == [[2000, 1001000]]
    catalogs.same(f"SELECT * FROM {table}", "native")


def test_a_partition_of_a_procedure_is_seen(catalogs: Catalogs) -> None:
    table = "kinds.called"
    catalogs.hive(
        f"CREATE TABLE {table} WITH (partitioned_by = ARRAY['k']) AS SELECT 1 AS a, 'x' AS k"
    )
    catalogs.same(f"SELECT * FROM {table}", "native")
    call = "CALL system.unregister_partition('kinds', 'called', ARRAY['k'], ARRAY['x'])"
    catalogs.front(call)
    assert catalogs.front(f"SELECT * FROM {table}") == []
    catalogs.front("CALL system.sync_partition_metadata('kinds', 'called', 'ADD')")
    catalogs.same(f"SELECT * FROM {table}", "native")


def test_statistics_of_analyze_serve_native_scans(catalogs: Catalogs) -> None:
    table = "kinds.analysed"
    catalogs.hive(
        f"CREATE TABLE {table} WITH (partitioned_by = ARRAY['k']) AS"
        " SELECT a, CAST(a % 4 AS bigint) AS k FROM UNNEST(sequence(1, 400)) AS t (a)"
    )
    assert catalogs.side(f"SELECT * FROM {table}") == "native"
    for sql in (f"SHOW STATS FOR {table}", f"SHOW STATS FOR (SELECT * FROM {table} WHERE k = 1)"):
        assert catalogs.front(sql)[-1][4] == catalogs.hive(sql)[-1][4]
    sql = f"SHOW STATS FOR {table}"
    assert catalogs.front(sql) == catalogs.hive(sql)


def test_grants_hold_for_native_reads(catalogs: Catalogs) -> None:
    """SQL standard's access control is asked before either side reads."""
    properties = {k: v for k, v in catalogs.properties.items() if k != "connector.name"}
    text = ", ".join(
        f"\"{k}\" = '{v}'" for k, v in {**properties, "hive.security": "sql-standard"}.items()
    )
    catalogs.hive(f"CREATE CATALOG guarded USING skipbridge WITH ({text})")
    try:
        catalogs.hive("CREATE TABLE kinds.guarded AS SELECT 1 AS a")
        sql = "SELECT * FROM kinds.guarded"
        assert _as(catalogs, sql, "test") == [[1]]
        assert catalogs.side(sql, "guarded") == "native"
        with pytest.raises(trino.exceptions.TrinoQueryError, match="Access Denied"):
            _as(catalogs, sql, "bob")
        _as(catalogs, "GRANT SELECT ON kinds.guarded TO USER bob", "test")
        assert _as(catalogs, sql, "bob") == [[1]]
        _as(catalogs, "CREATE VIEW kinds.theirs AS SELECT a + 1 AS b FROM kinds.guarded", "test")
    finally:
        catalogs.hive("DROP CATALOG guarded")


def _as(catalogs: Catalogs, sql: str, user: str) -> list[Any]:
    return ask(catalogs.port, sql, "guarded", user=user)


def test_an_index_skips_files_in_this_catalog(catalogs: Catalogs) -> None:
    """The planner's answers reach the scan: a filter that proves itself leaves the plan."""
    table = "kinds.indexed"
    for k in range(4):
        what = "CREATE TABLE kinds.indexed AS" if k == 0 else "INSERT INTO kinds.indexed"
        catalogs.hive(f"{what} SELECT a + {k * 100} AS a FROM UNNEST(sequence(1, 100)) AS t (a)")
    config = Config({"metastore.uri": Setting(catalogs.metastore_uri, "test")})
    time.sleep(1.1)  # entries of files written within the clock's grain are not trusted
    index_table(config, table, local=True, progress=lambda d, t: None, say=lambda text: None)
    catalogs.same(f"SELECT * FROM {table} WHERE a = 250", "native")
    text = catalogs.front(f"EXPLAIN ANALYZE VERBOSE SELECT * FROM {table} WHERE a = 250")[0][0]
    assert "Physical input: " in text and "skipbridge" in text
