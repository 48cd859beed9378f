"""What engines answer to statements that tables of segments do not have: each a clear refusal,
after which segments and fact files are as before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyhive.exc import OperationalError

import bridge
from tests.engines.conftest import RunningHiveServer2, RunningMetastore
from tests.engines.stack import Stack
from tests.support.built import built_jar
from tests.support.servers.hiveserver2 import HiveServer2Spec, start_hiveserver2

pytestmark = pytest.mark.full

ROWS = 30


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("facts")
    path = root / "0.parquet"
    pq.write_table(pa.table({"a": range(ROWS), "b": ["x"] * ROWS}), path)
    past = time.time() - 3600
    os.utime(path, (past, past))
    return root


def made(metastore_uri: str, facts: Path, name: str = "refused.t") -> Iterator[str]:
    """A table of segments; what it consists of is the same afterwards."""
    with bridge.connect(metastore_uri=metastore_uri) as session:
        session.sql(
            f"CREATE TABLE {name} (a bigint, b string) STORED AS parquet; "
            f"ALTER TABLE {name} ADD SEGMENT LOCATION '{facts}'",
            local=True,
        )
        shown = f"SHOW CREATE TABLE {name}; SHOW SEGMENTS ON {name}"
        before = [result.rows for result in session.sql(shown)]
        files = {p.name: p.read_bytes() for p in facts.iterdir()}
        yield name
        assert [result.rows for result in session.sql(shown)] == before
        assert {p.name: p.read_bytes() for p in facts.iterdir()} == files
        session.sql(f"DROP TABLE {name}")


@pytest.fixture(scope="module")
def in_trino(stack: Stack, facts: Path) -> Iterator[str]:
    yield from made(stack.metastore_uri, facts)


OURS = "is not possible on refused.t, a table of segments"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("INSERT INTO {t} VALUES (1, 'y')", f"INSERT {OURS}.*segment add refused.t PATH"),
        ("INSERT INTO {t} SELECT a, b FROM {t}", f"INSERT {OURS}.*segment add refused.t PATH"),
        ("UPDATE {t} SET a = 1", f"UPDATE, .* {OURS}.*segment delete refused.t ID"),
        ("DELETE FROM {t} WHERE a = 1", f"DELETE .* {OURS}.*segment delete refused.t ID"),
        ("DELETE FROM {t}", f"DELETE .* {OURS}.*segment delete refused.t ID"),
        (
            "MERGE INTO {t} USING {t} s ON s.a = 1 WHEN MATCHED THEN DELETE",
            f"MERGE .* {OURS}.*segment delete refused.t ID",
        ),
        ("TRUNCATE TABLE {t}", f"TRUNCATE {OURS}.*segment delete refused.t ID"),
        ("CREATE TABLE refused.u AS SELECT a FROM {t}", "not support creating tables with data"),
        ("CREATE OR REPLACE TABLE {t} AS SELECT 1 a", "not support replacing tables"),
        ("CREATE TABLE refused.u (a bigint)", "not support creating tables"),
        ("CREATE TABLE refused.u (LIKE {t})", "not support creating tables"),
        (
            "CREATE TABLE refused.u (a bigint) WITH (partitioned_by = ARRAY['a'])",
            "property 'partitioned_by' does not exist",
        ),
        (
            "CREATE TABLE refused.u (a bigint) WITH (bucketed_by = ARRAY['a'], bucket_count = 4)",
            "property 'bucket.*' does not exist",
        ),
        (
            "CALL bridge.system.sync_partition_metadata('refused', 't', 'ADD')",
            "Procedure not registered",
        ),
        (
            "CALL bridge.system.create_empty_partition('refused', 't', ARRAY['a'], ARRAY['1'])",
            "Procedure not registered",
        ),
        ("ALTER TABLE {t} ADD COLUMN c bigint", f"ADD COLUMN c {OURS}.*create another table"),
        ("ALTER TABLE {t} DROP COLUMN b", f"{OURS}.*ALTER TABLE refused.t DROP COLUMNS .b."),
        ("ALTER TABLE {t} RENAME COLUMN a TO c", f"RENAME COLUMN a {OURS}.*by name"),
        (
            "ALTER TABLE {t} ALTER COLUMN a SET DATA TYPE varchar",
            f"SET DATA TYPE {OURS}.*ALTER TABLE refused.t CHANGE a a TYPE",
        ),
        ("ALTER TABLE {t} RENAME TO refused.u", f"{OURS}.*refused.t RENAME TO refused.u"),
        ("ALTER TABLE {t} SET PROPERTIES x = 1", "property 'x' does not exist"),
        ("DROP TABLE {t}", f"DROP TABLE {OURS}.*skipbridge sql .DROP TABLE refused.t"),
        ("ALTER TABLE {t} EXECUTE optimize", "Table procedure not registered"),
        ("COMMENT ON TABLE {t} IS 'x'", f"COMMENT ON TABLE {OURS}.*when the table is made"),
        ("COMMENT ON COLUMN {t}.a IS 'x'", f"COMMENT ON COLUMN a {OURS}.*when the table is made"),
        ("CREATE MATERIALIZED VIEW refused.v AS SELECT a FROM {t}", "materialized views"),
        ("ANALYZE {t}", "ANALYZE is not supported"),
    ],
    ids=lambda value: value.split(" {t}")[0],
)
def test_trino_refuses(stack: Stack, in_trino: str, statement: str, said: str) -> None:
    """In our words where the statement names the table and Trino asks us; else in its own."""
    with pytest.raises(Exception, match=said):
        stack.query(statement.format(t=in_trino))


def test_trino_reads_it_nevertheless(stack: Stack, in_trino: str) -> None:
    """The refusals above are not those of a table that nobody can open."""
    assert stack.query(f"SELECT count(*), sum(a) FROM {in_trino} WHERE b = 'x'") == [
        [ROWS, sum(range(ROWS))]
    ]


@pytest.fixture(scope="module")
def in_hive(hiveserver2: RunningHiveServer2, facts: Path) -> Iterator[str]:
    yield from made(hiveserver2.metastore.uri, facts)


NOT_NATIVE = r"non-native table|Non-native"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("LOAD DATA LOCAL INPATH '{facts}/0.parquet' INTO TABLE {t}", NOT_NATIVE),
        ("LOAD DATA LOCAL INPATH '{facts}/0.parquet' OVERWRITE INTO TABLE {t}", NOT_NATIVE),
        ("INSERT INTO {t} VALUES (1, 'y')", "is a table of segments"),
        ("INSERT OVERWRITE TABLE {t} SELECT a, b FROM {t}", "is a table of segments"),
        ("UPDATE {t} SET a = 1", "update or delete"),
        ("DELETE FROM {t} WHERE a = 1", "update or delete"),
        ("MERGE INTO {t} USING {t} s ON s.a = 1 WHEN MATCHED THEN DELETE", "update or delete"),
        ("TRUNCATE TABLE {t}", NOT_NATIVE),
        (
            "CREATE EXTERNAL TABLE refused.u STORED BY "
            "'io.skipbridge.hive.SegmentStorageHandler' AS SELECT 1 a",
            "is a table of segments",
        ),
        (
            "CREATE EXTERNAL TABLE refused.u (a bigint) STORED BY "
            "'io.skipbridge.hive.SegmentStorageHandler'",
            "Hive does not make tables of segments",
        ),
        (
            "CREATE EXTERNAL TABLE refused.u (a bigint) PARTITIONED BY (p int) STORED BY "
            "'io.skipbridge.hive.SegmentStorageHandler'",
            "Hive does not make tables of segments",
        ),
        (
            "CREATE EXTERNAL TABLE refused.u (a bigint) CLUSTERED BY (a) INTO 4 BUCKETS STORED BY "
            "'io.skipbridge.hive.SegmentStorageHandler'",
            "Hive does not make tables of segments",
        ),
        ("ALTER TABLE {t} ADD COLUMNS (c bigint)", "is a table of segments"),
        ("ALTER TABLE {t} REPLACE COLUMNS (c bigint)", NOT_NATIVE),
        ("ALTER TABLE {t} CHANGE a c bigint", NOT_NATIVE),
        ("ALTER TABLE {t} RENAME TO refused.u", NOT_NATIVE),
        ("ALTER TABLE {t} ADD PARTITION (p=1)", "not partitioned"),
        ("ALTER TABLE {t} DROP PARTITION (p=1)", "not a partition key"),
        ("ALTER TABLE {t} EXCHANGE PARTITION (p=1) WITH TABLE {t}", "not partitioned"),
        ("ALTER TABLE {t} PARTITION (p=1) SET LOCATION 'file:///tmp'", "not partitioned"),
        ("ALTER TABLE {t} PARTITION COLUMN (p int)", NOT_NATIVE),
        ("SHOW PARTITIONS {t}", "not a partitioned table"),
        ("ALTER TABLE {t} COMPACT 'major'", NOT_NATIVE),
        ("ALTER TABLE {t} CLUSTERED BY (a) INTO 4 BUCKETS", NOT_NATIVE),
        ("ALTER TABLE {t} NOT CLUSTERED", NOT_NATIVE),
        ("ALTER TABLE {t} SKEWED BY (a) ON (1)", NOT_NATIVE),
        ("ALTER TABLE {t} SET SERDEPROPERTIES ('field.delim'='|')", NOT_NATIVE),
        ("ALTER TABLE {t} UNSET SERDEPROPERTIES ('field.delim')", NOT_NATIVE),
        ("ALTER TABLE {t} SET SERDE 'org.apache.hadoop.hive.serde2.OpenCSVSerde'", NOT_NATIVE),
        ("ALTER TABLE {t} SET FILEFORMAT PARQUET", NOT_NATIVE),
        ("ALTER TABLE {t} SET LOCATION 'file:///tmp'", "is a table of segments"),
        ("ALTER TABLE {t} CONCATENATE", NOT_NATIVE),
        ("ALTER TABLE {t} SET TBLPROPERTIES ('csv.null'='-')", "is a table of segments"),
        (
            "ALTER TABLE {t} UNSET TBLPROPERTIES ('skipbridge.table_format')",
            "is a table of segments",
        ),
    ],
    ids=lambda value: value if " {t}" in value else "",
)
def test_hive_refuses(
    hiveserver2: RunningHiveServer2, in_hive: str, facts: Path, statement: str, said: str
) -> None:
    """By Hive's own rules for tables of storage handlers, or by ours."""
    with pytest.raises(OperationalError, match=said):
        hiveserver2.query(statement.format(t=in_hive, facts=facts))


def test_a_copy_by_hive_is_no_table_of_segments(
    hiveserver2: RunningHiveServer2, in_hive: str
) -> None:
    """CREATE TABLE LIKE copies the record without what makes it one; the error names the way."""
    hiveserver2.query(f"CREATE TABLE refused.alike LIKE {in_hive}")
    try:
        with pytest.raises(OperationalError, match=r"CREATE TABLE LIKE.*skipbridge table create"):
            hiveserver2.query("SELECT * FROM refused.alike")
    finally:
        hiveserver2.query("DROP TABLE refused.alike")


def test_hive_finds_no_partition_to_repair(hiveserver2: RunningHiveServer2, in_hive: str) -> None:
    """Hive accepts the statement of every table; nothing changes, as the fixture checks."""
    hiveserver2.query(f"MSCK REPAIR TABLE {in_hive}")


@pytest.mark.nightly
def test_a_hive_without_the_jar_refuses_it(
    metastore_401: RunningMetastore, facts: Path, tmp_path: Path
) -> None:
    """It knows no class of the record, so that it reads no row, and none of a directory's files."""
    spec = HiveServer2Spec(tmp_path, metastore_401.uri, port=0)
    with start_hiveserver2(spec) as server:
        hive = RunningHiveServer2(server, metastore_401)
        for table in made(metastore_401.uri, facts):
            for statement in (
                "SELECT * FROM {t}",
                "SELECT count(*) FROM {t} WHERE a = 1",
                "INSERT INTO {t} VALUES (1, 'y')",
                "TRUNCATE TABLE {t}",
            ):
                with pytest.raises(OperationalError, match=r"SegmentStorageHandler|SegmentSerDe"):
                    hive.query(statement.format(t=table))
        hive.close()


_SPARK = """
import json, sys
from pyspark.sql import SparkSession
uri, table, jar = sys.argv[1:]
spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.sql.catalogImplementation", "hive")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
         .config("spark.driver.extraClassPath", jar).config("spark.sql.warehouse.dir", "spark")
         .config("spark.hadoop.hive.metastore.uris", uri).getOrCreate())
rows = spark.range(3).selectExpr("id AS a", "'x' AS b")
tries = {
    "insertInto": lambda: rows.write.insertInto(table),
    "overwrite": lambda: rows.write.insertInto(table, overwrite=True),
    "append": lambda: rows.write.mode("append").saveAsTable(table),
    "format": lambda: rows.write.format("hive").mode("append").saveAsTable(table),
    "nothing": lambda: rows.limit(0).write.insertInto(table, overwrite=True),
    "sql": lambda: spark.sql(f"INSERT INTO {table} VALUES (1, 'y')"),
    "sql overwrite": lambda: spark.sql(f"INSERT OVERWRITE {table} SELECT 1, 'y'"),
    "read": lambda: spark.table(table).collect(),
}
said = {}
for name, attempt in tries.items():
    try:
        said[name] = str(attempt())
    except Exception as error:
        said[name] = "refused: " + str(error)[:20000]
print(json.dumps(said))
"""


@pytest.mark.parametrize(
    "jar", [pytest.param(False, marks=pytest.mark.nightly), True], ids=["without the jar", "jar"]
)
def test_spark_does_not_write_it(
    metastore: RunningMetastore, facts: Path, tmp_path: Path, jar: bool
) -> None:
    """With Hive's jar it is told why; without, it knows no class of the record, nor reads it."""
    pytest.importorskip("pyspark")
    path = str(built_jar("2.3.10")) if jar else ""
    for table in made(metastore.uri, facts, "refused.of_spark"):
        done = subprocess.run(
            [sys.executable, "-c", _SPARK, metastore.uri, table, path],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        said = json.loads(done.stdout.splitlines()[-1])
        assert all(text.startswith("refused: ") for text in said.values()), said
        assert not jar or "existing table" in said["append"], said  # Spark asks for the format
        del said["read"], said["append"]
        other = {name: text for name, text in said.items() if "OPERATION_BLOCKED" not in text}
        assert not jar or not other, other
