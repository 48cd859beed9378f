"""A catalog that is Trino's hive connector too: which side answers each statement, and that the
rows are those of the hive connector in the same server.

A native handle prints as ``schema.table``, Hive's as ``schema:table``.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trino

from bridge.metastore._gen import ttypes
from bridge.servers.process import LOOPBACK
from tests.engines.catalogs import Catalogs
from tests.engines.conftest import RunningMetastore
from tests.engines.stack import ask

pytestmark = pytest.mark.full

FORMATS = (
    "PARQUET",
    "ORC",
    "AVRO",
    "JSON",
    "OPENX_JSON",
    "TEXTFILE",
    "RCBINARY",
    "RCTEXT",
    "SEQUENCEFILE",
)
ROWS = """VALUES
    (1, 'x', TIMESTAMP '2024-01-01 01:02:03.123456', DATE '2024-01-01'),
    (2, NULL, NULL, DATE '2024-01-01'),
    (3, 'z', TIMESTAMP '1969-12-31 23:59:59.999999', DATE '2024-01-02')"""


@pytest.fixture(scope="module")
def table(catalogs: Catalogs) -> str:
    """A partitioned table that the hive connector wrote; no test changes it."""
    return _make(catalogs, "shop")


def _make(catalogs: Catalogs, name: str, format: str = "PARQUET", more: str = "") -> str:
    catalogs.hive(
        f"CREATE TABLE front.{name} WITH (format = '{format}', partitioned_by = ARRAY['d']{more})"
        f" AS SELECT * FROM ({ROWS}) AS t (a, b, t, d)"
    )
    return f"front.{name}"


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_is_read_natively_with_the_same_rows(catalogs: Catalogs, format: str) -> None:
    name = _make(catalogs, f"all_{format}".lower(), format)
    for sql in (
        f"SELECT * FROM {name}",
        f"SELECT a FROM {name} WHERE b = 'x'",
        f"SELECT a, d FROM {name} WHERE d = DATE '2024-01-02'",
        f'SELECT a, "$partition", "$path", "$file_size", "$file_modified_time" FROM {name}',
        f'SELECT b, "$partition" FROM {name} WHERE "$partition" = \'d=2024-01-01\'',
    ):
        catalogs.same(sql, "native")
    catalogs.same(f"SELECT * FROM {name}", "hive", native_reads="false")


def test_both_sides_meet_in_one_query(catalogs: Catalogs, table: str) -> None:
    catalogs.hive(
        "CREATE TABLE front.buckets WITH (bucketed_by = ARRAY['a'], bucket_count = 2) AS"
        f" SELECT a, b FROM {table}"
    )
    sql = f"SELECT n.a, n.b, h.b FROM {table} n JOIN front.buckets h ON n.a = h.a"
    text = catalogs.front(f"EXPLAIN {sql}")[0][0]
    assert "front:front:buckets" in text and "front:front.shop" in text
    assert sorted(catalogs.front(sql), key=repr) == sorted(catalogs.hive(sql), key=repr)
    catalogs.same('SELECT a, "$bucket" FROM front.buckets', "hive")


def test_what_the_planner_refuses_is_read_by_hives_reader(
    catalogs: Catalogs, metastore: RunningMetastore, table: str, tmp_path: Path
) -> None:
    [[path]] = catalogs.hive(f"SELECT min(\"$path\") FROM {table} WHERE d = DATE '2024-01-02'")
    (tmp_path / "manifest").write_text(f"{path}\n")
    columns = [ttypes.FieldSchema("a", "int", ""), ttypes.FieldSchema("b", "string", "")]
    serde = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
    with metastore.client() as client:
        client.create_table(
            ttypes.Table(
                dbName="front",
                tableName="manifest",
                owner="test",
                createTime=0,
                lastAccessTime=0,
                retention=0,
                partitionKeys=[],
                parameters={"EXTERNAL": "TRUE"},
                tableType="EXTERNAL_TABLE",
                sd=ttypes.StorageDescriptor(
                    cols=columns,
                    location=f"file:{tmp_path}",
                    inputFormat="org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat",
                    outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
                    numBuckets=-1,
                    serdeInfo=ttypes.SerDeInfo("", serde, {}),
                    bucketCols=[],
                    sortCols=[],
                    parameters={},
                ),
            )
        )
    catalogs.same("SELECT a, b FROM front.manifest", "hive")
    assert catalogs.front("SELECT a FROM front.manifest") == [[3]]
    handle = catalogs.handle("SELECT a FROM front.manifest")
    assert "read by Hive's reader: front.manifest" in handle and "Symlink" in handle
    catalogs.hive(
        "CREATE TABLE front.acid (a int) WITH (format = 'ORC', transactional = true,"
        " bucketed_by = ARRAY['a'], bucket_count = 1)"
    )
    assert catalogs.side("SELECT * FROM front.acid") == "hive"


@pytest.mark.parametrize(
    "session",
    [
        {"parquet_use_column_names": "false"},
        {"orc_use_column_names": "true"},
        {"ignore_absent_partitions": "true"},
        {"query_partition_filter_required": "true"},
        {"parquet_ignore_statistics": "true"},
        {"timestamp_precision": "MILLISECONDS"},
    ],
)
def test_a_session_that_changes_what_rows_are_read_goes_hives_way(
    catalogs: Catalogs, table: str, session: dict[str, str]
) -> None:
    sql = f"SELECT a, t FROM {table} WHERE d = DATE '2024-01-01'"
    assert catalogs.side(sql, **session) == "hive"
    rows = ask(catalogs.port, sql, "hive", session)
    assert sorted(catalogs.front(sql, **session), key=repr) == sorted(rows, key=repr)


def test_statements_pass_through_to_hive(catalogs: Catalogs) -> None:
    """The same statements by both connectors, each in a schema of its own."""
    statements = (
        f"CREATE TABLE {{s}}.n WITH (partitioned_by = ARRAY['d']) AS SELECT * FROM ({ROWS})"
        " AS t (a, b, t, d)",
        "CREATE TABLE {s}.m (LIKE {s}.n INCLUDING PROPERTIES)",
        "INSERT INTO {s}.m SELECT a + 10, b, t, d FROM {s}.n",
        "INSERT INTO {s}.n (a, d) VALUES (4, DATE '2024-01-03')",
        "INSERT INTO {s}.n SELECT a + 20, b, t, d FROM {s}.n",
        "SELECT count(*), sum(a), count(b) FROM {s}.n",
        "ALTER TABLE {s}.n ADD COLUMN z varchar FIRST",
        "ALTER TABLE {s}.n ADD COLUMN z varchar",
        "SELECT a, z FROM {s}.n",
        "INSERT INTO {s}.n (z, a, d) VALUES ('new', 5, DATE '2024-01-03')",
        "SELECT a, z FROM {s}.n",
        "ALTER TABLE {s}.n RENAME COLUMN z TO y",
        "ALTER TABLE {s}.n DROP COLUMN y",
        "COMMENT ON TABLE {s}.n IS 'a table'",
        "COMMENT ON COLUMN {s}.n.a IS 'a column'",
        "SHOW CREATE TABLE {s}.n",
        "DESCRIBE {s}.n",
        'SELECT * FROM {s}."n$partitions"',
        "CREATE VIEW {s}.v AS SELECT a, d FROM {s}.n",
        "SELECT sum(a) FROM {s}.v",
        "CREATE OR REPLACE VIEW {s}.v SECURITY INVOKER AS SELECT a FROM {s}.n",
        "SHOW CREATE VIEW {s}.v",
        "ALTER VIEW {s}.v RENAME TO {s}.w",
        "SHOW TABLES FROM {s}",
        "DROP VIEW {s}.w",
        "ANALYZE {s}.m",
        "SHOW STATS FOR {s}.m",
        "CALL system.create_empty_partition('{schema}', 'n', ARRAY['d'], ARRAY['2030-01-01'])",
        "CALL system.sync_partition_metadata('{schema}', 'n', 'FULL')",
        'SELECT * FROM {s}."n$partitions"',
        "TRUNCATE TABLE {s}.m",
        "ALTER TABLE {s}.m SET PROPERTIES auto_purge = true",
        "SELECT table_name, column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = '{schema}'",
        "CREATE ROLE r",
        "SHOW CREATE SCHEMA {s}",
        "DROP TABLE {s}.m",
        "SELECT * FROM {s}.m",
        "DROP SCHEMA {s}",
        "DROP SCHEMA {s} CASCADE",
    )
    told: dict[str, list[Any]] = {}
    for catalog in ("hive", "front"):
        schema = f"through_{catalog}"
        ask(catalogs.port, f"CREATE SCHEMA {schema}", catalog)
        told[catalog] = [_told(catalogs.port, text, catalog, schema) for text in statements]
    for text, ours, theirs in zip(statements, told["front"], told["hive"], strict=True):
        assert ours == theirs, text


def _told(port: int, text: str, catalog: str, schema: str) -> Any:
    """The rows in order, or the error, without the names of catalog and schema."""
    sql = text.replace("{schema}", schema).replace("{s}", f"{catalog}.{schema}")
    try:
        found = sorted(map(repr, ask(port, sql, catalog)))
    except trino.exceptions.TrinoQueryError as error:
        found = [f"{error.error_name}: {error.message}"]
    return [row.replace(schema, "S").replace(f"{catalog}.S", "C.S") for row in found]


def test_without_native_reads_they_are_hives(catalogs: Catalogs) -> None:
    """As is a statement on a table that was just changed."""
    name = _make(catalogs, "given")
    off = {"native_reads": "false"}
    catalogs.front(f"DELETE FROM {name} WHERE d = DATE '2024-01-01'", **off)
    assert catalogs.hive(f"SELECT a FROM {name}") == [[3]]
    with pytest.raises(Exception, match="Modifying Hive table rows is only supported"):
        catalogs.front(f"DELETE FROM {name} WHERE a = 3", **off)
    catalogs.front(f"INSERT INTO {name} VALUES (7, 'n', NULL, DATE '2024-01-02')")
    optimize = f"ALTER TABLE {name} EXECUTE optimize"
    catalogs.front(optimize, non_transactional_optimize_enabled="true", **off)
    catalogs.same(f"SELECT * FROM {name}", "native")
    assert catalogs.hive(f'SELECT count(DISTINCT "$path") FROM {name}') == [[1]]


def test_a_changed_table_is_read_natively_as_it_is_now(catalogs: Catalogs) -> None:
    """Whatever the planner holds of what was before."""
    name = _make(catalogs, "moved")
    catalogs.same(f"SELECT * FROM {name}", "native")
    for sql in (
        f"ALTER TABLE {name} ADD COLUMN more bigint",
        f"ALTER TABLE {name} RENAME COLUMN more TO other",
        f"DROP TABLE {name}",
        f"CREATE TABLE {name} (b varchar, a bigint) WITH (format = 'ORC')",
        f"INSERT INTO {name} VALUES ('new', 9)",
        f"ALTER TABLE {name} RENAME TO front.elsewhere",
        f"CREATE TABLE {name} AS SELECT 5 AS only",
        f"INSERT INTO {name} VALUES 6",
        "DROP TABLE front.elsewhere",
        f"ALTER TABLE {name} RENAME TO front.elsewhere",
    ):
        catalogs.front(sql)
        shown = "front.elsewhere" if "RENAME TO" in sql else name
        if not sql.startswith("DROP"):
            catalogs.same(f"SELECT * FROM {shown}", "native")


def test_a_change_is_seen_although_the_planner_caches(catalogs: Catalogs) -> None:
    """The planner may use listings of an hour, but none from before a change of this catalog."""
    catalogs.stop_planner()
    catalogs.start_planner(SKIPBRIDGE_PLANNER_FRESHNESS="cached(1h)")
    try:
        name = _make(catalogs, "kept")
        sql = f"SELECT a, b, d FROM {name}"
        catalogs.same(sql, "native")
        catalogs.hive(f"INSERT INTO {name} VALUES (50, 'u', NULL, DATE '2024-01-01')")
        seen = sorted(catalogs.front(sql), key=repr)
        assert seen != sorted(catalogs.hive(sql), key=repr), "the planner caches nothing"
        for change in (
            f"INSERT INTO {name} VALUES (4, 'n', NULL, DATE '2024-01-01')",
            f"INSERT INTO {name} VALUES (5, 'n', NULL, DATE '2024-02-01')",
            "CALL system.unregister_partition('front', 'kept', ARRAY['d'], ARRAY['2024-02-01'])",
            "CALL system.sync_partition_metadata('front', 'kept', 'ADD')",
            "CALL system.create_empty_partition('front', 'kept', ARRAY['d'], ARRAY['2030-01-01'])",
            f"ALTER TABLE {name} ADD COLUMN more bigint",
            f"INSERT INTO {name} VALUES (6, 'n', NULL, 1, DATE '2030-01-01')",
        ):
            catalogs.front(change)
            catalogs.same(sql, "native")
            catalogs.same(f"SELECT count(*), count(DISTINCT d) FROM {name}", "native")
        files = catalogs.front('SELECT count(*) FROM front."kept$files"')
        assert files == catalogs.hive(f'SELECT count(DISTINCT "$path") FROM {name}')
        # after a change, what is listed is kept again
        catalogs.hive(f"INSERT INTO {name} VALUES (7, 'u', NULL, 1, DATE '2030-01-01')")
        assert len(catalogs.front(sql)) == len(catalogs.hive(sql)) - 1
    finally:
        catalogs.stop_planner()
        catalogs.start_planner()


@pytest.mark.parametrize(
    ("sql", "session", "reason"),
    [
        ("SELECT * FROM {t}", {"native_reads": "false"}, "native_reads is false"),
        (
            "SELECT a FROM {t} WHERE d = DATE '2024-01-01'",
            {"native_reads": "false"},
            "native_reads is",
        ),
        ("SELECT b FROM {t}", {"parquet_use_column_names": "false"}, "found by position"),
        (
            "SELECT b FROM {t} WHERE a = 1",
            {"timestamp_precision": "MILLISECONDS"},
            "other names or types",
        ),
        ("SELECT * FROM front.reasoned", {}, "it is bucketed"),
        ("SELECT a FROM front.reasoned WHERE b = 'x'", {}, "it is bucketed"),
    ],
)
def test_explain_says_why_hives_reader_reads(
    catalogs: Catalogs, table: str, sql: str, session: dict[str, str], reason: str
) -> None:
    catalogs.hive(
        "CREATE TABLE IF NOT EXISTS front.reasoned WITH (bucketed_by = ARRAY['a'],"
        f" bucket_count = 2) AS SELECT a, b FROM {table}"
    )
    handle = catalogs.handle(sql.format(t=table), **session)
    assert "(read by Hive's reader: " in handle and reason in handle


def test_a_transaction_reads_what_it_wrote_as_the_hive_connector_does(catalogs: Catalogs) -> None:
    told = {}
    for catalog in ("hive", "front"):
        name = _make(catalogs, f"in_{catalog}")
        steps: list[Any] = []
        with trino.dbapi.connect(
            host=LOOPBACK,
            port=catalogs.port,
            user="test",
            catalog=catalog,
            isolation_level=trino.transaction.IsolationLevel.READ_UNCOMMITTED,
        ) as connection:
            for sql in (
                f"SELECT sum(a) FROM {name}",
                f"INSERT INTO {name} VALUES (10, 'in', NULL, DATE '2024-01-01')",
                f"SELECT sum(a) FROM {name}",
            ):
                cursor = connection.cursor()
                try:
                    steps.append(cursor.execute(sql).fetchall())
                except trino.exceptions.TrinoQueryError as error:
                    steps.append(error.message.replace(name, "T"))
        told[catalog] = steps
    assert told["front"] == told["hive"]


def test_a_catalog_is_made_while_the_server_runs(catalogs: Catalogs, table: str) -> None:
    """With Hive's own default of milliseconds, tables with timestamps are Hive's."""
    properties = dict(catalogs.properties)
    del properties["connector.name"], properties["hive.timestamp-precision"]
    _create(catalogs, "coarse", properties)
    try:
        sql = f"SELECT * FROM {table}"
        assert catalogs.side(sql, "coarse") == "hive"
        assert ask(catalogs.port, f"SELECT t FROM {table} WHERE a = 1", "coarse")[0][0].microsecond
        catalogs.hive("CREATE TABLE front.untimed AS SELECT 1 AS a")
        assert catalogs.side("SELECT * FROM front.untimed", "coarse") == "native"
    finally:
        catalogs.hive("DROP CATALOG coarse")


def _create(catalogs: Catalogs, name: str, properties: Mapping[str, str]) -> None:
    text = ", ".join(f"\"{key}\" = '{value}'" for key, value in properties.items())
    catalogs.hive(f"CREATE CATALOG {name} USING skipbridge WITH ({text})")


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"hive.no-such": "1"}, "Configuration property 'hive.no-such' was not used"),
        ({"hive.max-split-size": "huge"}, "hive.max-split-size"),
        ({"skipbridge.no-such": "1"}, "Unknown catalog property 'skipbridge.no-such'"),
        ({"skipbridge.on-planner-failure": "hope"}, "'hope' is neither fail nor hive"),
    ],
)
def test_a_wrong_property_fails_at_once(
    catalogs: Catalogs, more: dict[str, str], error: str
) -> None:
    properties = {k: v for k, v in catalogs.properties.items() if k != "connector.name"}
    with pytest.raises(trino.exceptions.TrinoQueryError) as caught:
        _create(catalogs, "wrong", {**properties, **more})
    assert error in str(caught.value)


@pytest.mark.parametrize(
    "more",
    [
        {"hive.recursive-directories": "true"},
        {"hive.s3-glacier-filter": "READ_NON_GLACIER"},
        {"hive.orc.read-legacy-short-zone-id": "true"},
        {"parquet.ignore-statistics": "true"},
    ],
)
def test_a_property_that_only_hives_reader_honours_sends_all_to_it(
    catalogs: Catalogs, table: str, more: dict[str, str]
) -> None:
    properties = {k: v for k, v in catalogs.properties.items() if k != "connector.name"}
    _create(catalogs, "flat", {**properties, **more})
    try:
        assert catalogs.side(f"SELECT * FROM {table}", "flat") == "hive"
    finally:
        catalogs.hive("DROP CATALOG flat")


@pytest.mark.parametrize(("recursive", "side"), [("true", "hive"), ("false", "native")])
def test_subdirectories_are_read_as_the_catalog_says(
    catalogs: Catalogs, tmp_path: Path, recursive: str, side: str
) -> None:
    """The planner's own setting of the same meaning is off, as Trino's is unless it is set."""
    catalogs.hive(
        f"CREATE TABLE front.deep_{recursive} (a varchar) WITH (format = 'TEXTFILE',"
        f" external_location = 'file:{tmp_path}')"
    )
    (tmp_path / "below").mkdir()
    (tmp_path / "f").write_text("1\n")
    (tmp_path / "below" / "f").write_text("2\n")
    properties = {k: v for k, v in catalogs.properties.items() if k != "connector.name"}
    _create(catalogs, "deep", {**properties, "hive.recursive-directories": recursive})
    try:
        sql = f"SELECT a FROM front.deep_{recursive} ORDER BY a"
        assert catalogs.side(sql, "deep") == side
        rows = [["1"], ["2"]] if recursive == "true" else [["1"]]
        assert ask(catalogs.port, sql, "deep") == rows
    finally:
        catalogs.hive("DROP CATALOG deep")


def test_without_a_planner_a_query_fails_or_is_hives(catalogs: Catalogs, table: str) -> None:
    sql = f"SELECT * FROM {table}"
    catalogs.stop_planner()
    try:
        with pytest.raises(trino.exceptions.TrinoQueryError) as caught:
            catalogs.front(sql)
        assert caught.value.error_name == "SKIPBRIDGE_PLANNER_UNAVAILABLE"
        catalogs.same(sql, "hive", on_planner_failure="hive")
        catalogs.same(sql, "hive", native_reads="false")
        catalogs.front("CREATE TABLE front.unplanned AS SELECT 1 AS a")
        catalogs.front("INSERT INTO front.unplanned VALUES 2", on_planner_failure="hive")
        catalogs.same("SELECT * FROM front.unplanned", "hive", on_planner_failure="hive")
    finally:
        catalogs.start_planner()
    catalogs.same(sql, "native")


def test_a_query_waits_for_an_absent_planner_once(catalogs: Catalogs, table: str) -> None:
    """However many tables it reads: what answers at the address hangs up, and counts."""
    for number in range(3):
        catalogs.hive(f"CREATE TABLE front.once_{number} AS SELECT {number} AS a")
    calls = 0
    with socket.create_server((LOOPBACK, 0)) as listener:

        def hang_up() -> None:
            nonlocal calls
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()
                    calls += 1

        threading.Thread(target=hang_up, daemon=True).start()
        properties = {k: v for k, v in catalogs.properties.items() if k != "connector.name"}
        properties["skipbridge.planner"] = f"{LOOPBACK}:{listener.getsockname()[1]}"
        properties["skipbridge.on-planner-failure"] = "hive"
        _create(catalogs, "lost", properties)
        try:
            assert ask(catalogs.port, "SELECT * FROM front.once_0", "lost") == [[0]]
            alone, calls = calls, 0
            sql = "SELECT sum(a) FROM (" + " UNION ALL ".join(
                f"SELECT a FROM front.once_{number}" for number in range(3)
            )
            assert ask(catalogs.port, f"{sql})", "lost") == [[3]]
            assert 0 < calls < 2 * alone
        finally:
            catalogs.hive("DROP CATALOG lost")
