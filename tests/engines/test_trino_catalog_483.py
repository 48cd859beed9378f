"""The catalog that is Trino's hive connector too, on Trino 483: as in `test_trino_catalog`.

Maven has no Hadoop of this release, so the tables lie in a store. Maven has no distribution with
the stock connector either: ``native_reads=false`` is what is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trino

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.servers.embedded_metastore import start_embedded_metastore
from bridge.servers.planner import start_planner
from bridge.servers.process import LOOPBACK
from bridge.trino.server import TrinoSpec, start_trino
from tests.engines.catalogs import indexed_files, wait_for
from tests.engines.stack import LIGHT_JVM, ask
from tests.support.built import built_plugin
from tests.support.s3_metastore import s3_metastore
from tests.support.versitygw import BUCKET, versitygw_or_skip

pytestmark = pytest.mark.full

ROWS = """VALUES
    (1, 'x', TIMESTAMP '2024-01-01 01:02:03.123456', DATE '2024-01-01'),
    (2, NULL, NULL, DATE '2024-01-01'),
    (3, 'z', TIMESTAMP '1969-12-31 23:59:59.999999', DATE '2024-01-02')"""
FORMATS = ("PARQUET", "ORC", "AVRO", "JSON", "TEXTFILE", "RCBINARY", "SEQUENCEFILE")
OPTIMIZE = {"non_transactional_optimize_enabled": "true"}


@dataclass(frozen=True, slots=True)
class Front:
    """A server whose catalog ``front`` is under test."""

    port: int
    properties: dict[str, str]
    config: Config

    def ask(self, sql: str, catalog: str = "front", **session: str) -> list[Any]:
        return ask(self.port, sql, catalog, session)

    def side(self, sql: str, catalog: str = "front", **session: str) -> str:
        text = self.ask(f"EXPLAIN {sql}", catalog, **session)[0][0]
        [line] = [line for line in text.splitlines() if "table = " in line]
        handle = line.split(f"table = {catalog}:", 1)[1]
        return "hive" if ":" in handle.split(" ")[0].rstrip("]") else "native"

    def same(self, sql: str, side: str = "native", **session: str) -> None:
        """The side reads, and both sides read the same rows."""
        assert self.side(sql, **session) == side
        hives = {"native_reads": "false"}
        assert self.side(sql, **hives) == "hive"
        rows = sorted(map(repr, self.ask(sql, **session)))
        assert rows == sorted(map(repr, self.ask(sql, **hives))) and rows

    def make(self, name: str, format: str = "PARQUET", more: str = "") -> str:
        self.ask(
            f"CREATE TABLE s.{name} WITH (format = '{format}', partitioned_by = ARRAY['d']{more})"
            f" AS SELECT * FROM ({ROWS}) AS t (a, b, t, d)"
        )
        return f"s.{name}"

    def index(self, table: str) -> None:
        index_table(
            self.config, table, local=True, progress=lambda d, t: None, say=lambda text: None
        )


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    directory: Path = tmp_path_factory.mktemp("catalog483")
    plugin = built_plugin("483", hive=True)
    gateway = versitygw_or_skip(directory / "s3")
    with gateway.server, pytest.MonkeyPatch.context() as patch:
        for name, value in gateway.environment.items():
            patch.setenv(name, value)
        spec = s3_metastore(directory / "metastore", BUCKET, ["w"])
        with start_embedded_metastore(spec) as metastore:
            settings = {
                "metastore.uri": f"thrift://{LOOPBACK}:{metastore.port}",
                "storage.endpoint": gateway.options["endpoint"],
                "storage.region": "us-east-1",
                "storage.allow_http": "true",
            }
            environment = {
                "SKIPBRIDGE_CACHE": str(directory / "cache"),
                "SKIPBRIDGE_STORAGE_ENDPOINT": gateway.options["endpoint"],
                "SKIPBRIDGE_STORAGE_REGION": "us-east-1",
                "SKIPBRIDGE_STORAGE_ALLOW_HTTP": "true",
                **gateway.environment,
            }
            uri = settings["metastore.uri"]
            with start_planner(directory / "planner", uri, environment=environment) as planner:
                properties = {
                    "connector.name": "skipbridge",
                    "skipbridge.planner": f"{LOOPBACK}:{planner.port}",
                    "skipbridge.refresh-after-write": "true",
                    "hive.metastore.uri": uri,
                    "hive.timestamp-precision": "MICROSECONDS",
                    "hive.non-managed-table-writes-enabled": "true",
                    "hive.max-concurrent-metastore-drops": "1",
                    "hive.parquet.time-zone": "UTC",
                    "hive.orc.time-zone": "UTC",
                    "hive.rcfile.time-zone": "UTC",
                    "fs.native-s3.enabled": "true",
                    "s3.endpoint": gateway.options["endpoint"],
                    "s3.region": "us-east-1",
                    "s3.path-style-access": "true",
                    "s3.aws-access-key": gateway.options["access_key_id"],
                    "s3.aws-secret-key": gateway.options["secret_access_key"],
                }
                trino_spec = TrinoSpec(
                    directory=directory / "trino",
                    catalogs={"front": properties},
                    plugins={"skipbridge": plugin},
                    version="483",
                    port=0,
                    jvm_options=LIGHT_JVM,
                )
                config = Config({key: Setting(value, "test") for key, value in settings.items()})
                with start_trino(trino_spec) as server:
                    made = Front(server.port, properties, config)
                    made.ask(f"CREATE SCHEMA s WITH (location = 's3://{BUCKET}/w')")
                    yield made


@pytest.mark.parametrize("format", FORMATS)
def test_a_table_is_read_natively_with_the_same_rows(front: Front, format: str) -> None:
    name = front.make(f"all_{format}".lower(), format)
    for sql in (
        f"SELECT * FROM {name}",
        f"SELECT a FROM {name} WHERE b = 'x'",
        f"SELECT a, d FROM {name} WHERE d = DATE '2024-01-02'",
        f'SELECT a, "$partition", "$path", "$file_size", "$file_modified_time" FROM {name}',
    ):
        front.same(sql)


def test_both_sides_meet_in_one_query(front: Front) -> None:
    name = front.make("joined")
    front.ask(
        "CREATE TABLE s.buckets WITH (bucketed_by = ARRAY['a'], bucket_count = 2) AS"
        f" SELECT a, b FROM {name}"
    )
    sql = f"SELECT n.a, n.b, h.b FROM {name} n JOIN s.buckets h ON n.a = h.a"
    text = front.ask(f"EXPLAIN {sql}")[0][0]
    assert "front:s:buckets" in text and "front:s.joined" in text
    rows = sorted(front.ask(sql), key=repr)
    assert rows == sorted(front.ask(sql, native_reads="false"), key=repr) and len(rows) == 3
    front.same('SELECT a, "$bucket" FROM s.buckets', "hive")


@pytest.mark.parametrize("indexed", [False, True])
def test_writes_of_tables_that_are_read_natively(front: Front, indexed: bool) -> None:
    name = front.make(f"written_{indexed}".lower())
    if indexed:
        front.index(name)
    front.same(f"SELECT * FROM {name}")
    front.ask(f"INSERT INTO {name} VALUES (4, 'n', NULL, DATE '2024-01-02')")
    front.ask(f"INSERT INTO {name} (a, d) VALUES (5, DATE '2024-01-03')")
    front.same(f"SELECT * FROM {name}")
    front.ask(f"ALTER TABLE {name} EXECUTE optimize WHERE d = DATE '2024-01-02'", **OPTIMIZE)
    front.same(f"SELECT * FROM {name}")
    files = f'SELECT d, count(DISTINCT "$path") FROM {name} GROUP BY d ORDER BY d'
    assert [count for _, count in front.ask(files)] == [1, 1, 1]
    front.ask(f"DELETE FROM {name} WHERE d = DATE '2024-01-01'")
    front.same(f"SELECT * FROM {name}")
    assert front.ask(f"SELECT sum(a) FROM {name}") == [[12]]
    for sql in (
        f"DELETE FROM {name} WHERE a = 4",
        f"UPDATE {name} SET b = 'x'",
        f"ALTER TABLE {name} EXECUTE optimize WHERE a = 4",
    ):
        told = []
        for native in ("true", "false"):
            with pytest.raises(trino.exceptions.TrinoQueryError) as caught:
                front.ask(sql, native_reads=native, **OPTIMIZE)
            told.append((caught.value.error_name, caught.value.message))
        assert told[0][0] == told[1][0], told
    front.same(f"SELECT * FROM {name}")
    front.ask(f"DELETE FROM {name}")
    assert front.ask(f"SELECT * FROM {name}") == []


def test_the_index_follows_writes(front: Front) -> None:
    name = front.make("followed")
    front.index(name)
    front.ask(f"INSERT INTO {name} VALUES (4, 'n', NULL, DATE '2024-02-01')")

    def told() -> bool:
        files = {path for [path] in front.ask(f'SELECT DISTINCT "$path" FROM {name}')}
        return indexed_files(front.config, name) == files

    wait_for(told, name)
    front.ask(f"ALTER TABLE {name} EXECUTE optimize", **OPTIMIZE)
    front.ask(f"DELETE FROM {name} WHERE d = DATE '2024-02-01'")
    wait_for(told, name)
    front.same(f"SELECT * FROM {name}")


def test_changes_and_descriptions_pass_through(front: Front) -> None:
    name = front.make("changing")
    for sql in (
        f"ALTER TABLE {name} ADD COLUMN more bigint",
        f"ALTER TABLE {name} RENAME COLUMN more TO other",
        f"COMMENT ON TABLE {name} IS 'a table'",
        f"COMMENT ON COLUMN {name}.a IS 'a column'",
        f"ANALYZE {name}",
        "CREATE VIEW s.seen AS SELECT a, d FROM s.changing",
        "CALL system.sync_partition_metadata('s', 'changing', 'FULL')",
    ):
        front.ask(sql)
        front.same(f"SELECT * FROM {name}")
    told = front.ask(f"SHOW CREATE TABLE {name}")[0][0]
    assert "other bigint" in told and "partitioned_by" in told and "a table" in told
    assert front.ask("SELECT sum(a) FROM s.seen") == [[6]]
    assert len(front.ask('SELECT * FROM s."changing$partitions"')) == 2
    assert len(front.ask('SELECT * FROM s."changing$files"')) == 2
    front.ask("DROP VIEW s.seen")
    front.ask(f"DROP TABLE {name}")
    assert [name] not in front.ask("SHOW TABLES FROM s")


def test_a_catalog_is_made_while_the_server_runs(front: Front) -> None:
    name = front.make("dynamic")
    properties = {k: v for k, v in front.properties.items() if k != "connector.name"}
    text = ", ".join(f"\"{key}\" = '{value}'" for key, value in properties.items())
    front.ask(f"CREATE CATALOG made USING skipbridge WITH ({text})")
    try:
        assert front.side(f"SELECT * FROM {name}", "made") == "native"
        front.ask(f"INSERT INTO {name} VALUES (9, 'm', NULL, DATE '2024-01-02')", "made")
        assert front.ask(f"SELECT sum(a) FROM {name}", "made") == [[15]]
    finally:
        front.ask("DROP CATALOG made")
    with pytest.raises(trino.exceptions.TrinoQueryError, match=r"hive\.no-such"):
        front.ask(f"CREATE CATALOG made USING skipbridge WITH ({text}, \"hive.no-such\" = '1')")
