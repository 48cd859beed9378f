"""A real HiveServer2 over tables that `skipbridge hive` hooks and unhooks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bridge.cli.main import cli
from bridge.clients.hive import HiveSession
from bridge.jobs.diagnostic import Diagnostic
from bridge.jobs.doctor_hive import HiveAddress, examine_filters, examine_hive
from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient
from bridge.metastore.hooks import is_hooked
from tests.engines.conftest import RunningHiveServer2
from tests.engines.test_hiveserver2 import FETCH, TEZ
from tests.engines.test_metastore import SPECIAL, Shop

pytestmark = pytest.mark.full

PARQUET_HOOK = "io.skipbridge.hive.BridgeParquetInputFormat"
DATABASE = "hooked"


@pytest.fixture(scope="module")
def hive(hiveserver2: RunningHiveServer2) -> Iterator[RunningHiveServer2]:
    hiveserver2.query(f"CREATE DATABASE {DATABASE}")
    yield hiveserver2
    hiveserver2.query(f"DROP DATABASE {DATABASE} CASCADE")


@pytest.fixture
def client(hive: RunningHiveServer2) -> Iterator[MetastoreClient]:
    with hive.metastore.client() as client:
        yield client


def run(hive: RunningHiveServer2, *words: str, status: int = 0) -> Result:
    result = CliRunner().invoke(cli, [*words, "--metastore-uri", hive.metastore.uri])
    assert result.exit_code == status, result.output
    return result


def partitions(client: MetastoreClient, schema: str, table: str) -> dict[str, ttypes.Partition]:
    names = client.get_partition_names(schema, table)
    found = client.get_partitions_by_names(schema, table, names)
    return dict(zip(found.names, found.partitions, strict=True))


def described(hive: RunningHiveServer2, table: str) -> dict[str, list[str]]:
    """All that Hive's own client tells of table, partitions and a column's statistics."""
    told: dict[str, list[str]] = {}
    for what in ("", "PARTITION (p=1)", "PARTITION (p=1) k", "PARTITION (p=2)"):
        told[what] = [str(row) for row in hive.query(f"DESCRIBE FORMATTED {table} {what}")]
    told["create"] = [str(row) for row in hive.query(f"SHOW CREATE TABLE {table}")]
    return told


def test_hive_finds_everything_as_it_was(hive: RunningHiveServer2) -> None:
    """Owner, statistics, what 4.0 translates: what the client's part of the protocol leaves out
    must not get lost.
    """
    table = f"{DATABASE}.kept"
    hive.query(
        f"CREATE TABLE {table} (k int COMMENT 'ä', v string) PARTITIONED BY (p int) "
        "STORED AS PARQUET TBLPROPERTIES ('note'='a=b;c')"
    )
    hive.query(f"INSERT INTO {table} PARTITION (p) VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 2)")
    hive.query(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR COLUMNS")
    hive.query(f"ALTER TABLE {table} SET OWNER ROLE analysts")
    before = described(hive, table)
    assert any("ROLE" in row for row in before[""]) and any("analysts" in r for r in before[""])
    run(hive, "hive", "hook", table)
    hooked = described(hive, table)
    assert any(PARQUET_HOOK in row for row in hooked["PARTITION (p=2)"])
    for what, rows in before.items():
        new = [row for row in hooked[what] if row not in rows]
        gone = [row for row in rows if row not in hooked[what]]
        assert len(gone) <= 1 and len(new) <= 2, (what, gone, new)
        assert all("MapredParquetInputFormat" in row for row in gone)
        assert all("io.skipbridge" in row or "original_input_format" in row for row in new)
    run(hive, "hive", "unhook", table)
    assert described(hive, table) == before


def test_a_hooked_table_is_written_and_read(
    hive: RunningHiveServer2, client: MetastoreClient
) -> None:
    """Without a planner: every row is there all along, and what Hive adds is hooked."""
    table = f"{DATABASE}.written"
    hive.query(f"CREATE EXTERNAL TABLE {table} (k int) PARTITIONED BY (p int) STORED AS PARQUET")

    def rows() -> list[int]:
        found = [
            sorted(k for (k,) in hive.query(f"SELECT k FROM {table} WHERE k > 0", settings))
            for settings in (FETCH, TEZ)
        ]
        assert found[0] == found[1]
        return found[0]

    hive.query(f"INSERT INTO {table} PARTITION (p=1) VALUES (1), (2)")
    assert rows() == [1, 2]
    run(hive, "hive", "hook", table)
    assert rows() == [1, 2]
    hive.query(f"INSERT INTO {table} PARTITION (p) VALUES (3, 1), (4, 2), (5, NULL)")
    hive.query(f"ALTER TABLE {table} ADD PARTITION (p=3)")
    found = partitions(client, DATABASE, "written")
    assert len(found) == 4 and all(is_hooked(p.sd) for p in found.values())
    assert rows() == [1, 2, 3, 4, 5]
    assert "nothing to do" in run(hive, "hive", "hook", table).stdout
    run(hive, "hive", "unhook", table)
    assert not any(is_hooked(p.sd) for p in partitions(client, DATABASE, "written").values())
    hive.query(f"INSERT OVERWRITE TABLE {table} PARTITION (p=2) SELECT 40")
    assert rows() == [1, 2, 3, 5, 40]


def test_ddl_run_by_hive_does_what_hook_does(
    hive: RunningHiveServer2, client: MetastoreClient, tmp_path: Path
) -> None:
    shop = Shop(client, tmp_path)
    shop.table("it", "p", "q")
    values = [*SPECIAL, ("it's", "a;b"), ("back\\slash", "--x")]
    client.add_partitions(shop.name, "it", [shop.partition("it", list(v)) for v in values])
    table = f"{shop.name}.it"
    before = client.get_table(shop.name, "it"), partitions(client, shop.name, "it")

    def by_hand(*words: str) -> None:
        lines = run(hive, "hive", "ddl", table, *words).stdout.splitlines()
        assert len(lines) == 2 + len(values)
        for line in lines:
            hive.query(line.removesuffix(";"))

    by_hand()
    now = client.get_table(shop.name, "it"), partitions(client, shop.name, "it")
    assert now[0].sd.inputFormat == PARQUET_HOOK
    for name, partition in now[1].items():
        assert partition.sd.inputFormat == PARQUET_HOOK
        partition.sd.inputFormat = before[1][name].sd.inputFormat
        assert partition.sd == before[1][name].sd
    assert "nothing to do" in run(hive, "hive", "hook", table).stdout
    by_hand("--undo")
    now = client.get_table(shop.name, "it"), partitions(client, shop.name, "it")
    assert now[0].sd == before[0].sd and set(now[0].parameters) <= {
        *before[0].parameters,
        "last_modified_by",  # Hive's own clients sign what they alter
        "last_modified_time",
    }
    assert {n: p.sd for n, p in now[1].items()} == {n: p.sd for n, p in before[1].items()}


def test_doctor_knows_hooks(hive: RunningHiveServer2, client: MetastoreClient) -> None:
    table = f"{DATABASE}.examined"
    hive.query(f"CREATE EXTERNAL TABLE {table} (k int) PARTITIONED BY (p int) STORED AS PARQUET")
    hive.query(f"INSERT INTO {table} PARTITION (p) VALUES (1, 1), (2, 2)")
    address = f"127.0.0.1:{hive.server.port}"

    def findings(*words: str) -> dict[str, dict[str, str]]:
        result = CliRunner().invoke(
            cli, ["doctor", *words, "--output", "json", "--metastore-uri", hive.metastore.uri]
        )
        return {f["check"]: f for f in json.loads(result.stdout)}

    check = f"Hive hooks of {table}"
    found = findings(table)[check]
    assert found["status"] == "ok" and "not hooked" in found["detail"]

    run(hive, "hive", "hook", table)
    found = findings(table, "--hive", address)
    assert found[check]["status"] == "ok" and "2 partitions" in found[check]["detail"]
    assert found["Hive"]["status"] == "ok" and "4.0.1" in found["Hive"]["detail"]
    assert found["Hive filters"]["status"] == "ok"

    left = partitions(client, DATABASE, "examined")["p=2"]
    left.sd.inputFormat = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
    client.alter_partitions(DATABASE, "examined", [left])
    found = findings(table)[check]
    assert (found["status"], found["remedy"]) == ("warning", f"skipbridge hive hook {table}")
    assert "1 of 2 partitions" in found["detail"] and "p=2" in found["detail"]

    record = client.get_table(DATABASE, "examined")
    record.sd.inputFormat = left.sd.inputFormat
    client.alter_table(DATABASE, "examined", record)
    found = findings(table)[check]
    assert (found["status"], found["remedy"]) == ("warning", f"skipbridge hive unhook {table}")

    hive.query(f"ALTER TABLE {table} CLUSTERED BY (k) INTO 4 BUCKETS")
    found = findings(table)[check]
    assert found["status"] == "error" and "bucketed" in found["detail"]
    assert found["remedy"] == f"skipbridge hive unhook {table}"


def test_doctor_sees_which_jar_hive_has(hive: RunningHiveServer2) -> None:
    address = HiveAddress(f"127.0.0.1:{hive.server.port}", "NONE")

    def told() -> Diagnostic:
        return next(f for f in examine_hive(address) if f.check == "Hive")

    ((class_path,),) = hive.query(
        "SELECT reflect('java.lang.System', 'getProperty', 'java.class.path')"
    )
    assert told().status == "ok" and "with hooks for 4.0.1" in told().detail
    try:
        for jars, status, word, remedy in (
            ("/lib/x.jar", "warning", "without the hooks' jar", "skipbridge hive jar"),
            ("/lib/skipbridge-hive-2.3.10.jar", "error", "hooks for Hive 2.3.10", "version 4.0.1"),
            ("/skipbridge-hive-4.0.1.jar:/b/skipbridge-hive-3.1.3.jar", "warning", "3.1.3", "one"),
        ):
            hive.query(f"SET system:java.class.path={jars}")
            found = told()
            assert found.status == status and word in found.detail and remedy in found.remedy
    finally:
        hive.query(f"SET system:java.class.path={class_path}")


def test_doctor_sees_that_no_filter_is_handed_over(hive: RunningHiveServer2) -> None:
    address = f"127.0.0.1:{hive.server.port}"
    for value, status in (("false", "warning"), ("true", "ok")):
        with HiveSession(address, settings={"hive.optimize.index.filter": value}) as session:
            assert examine_filters(session).status == status


def test_doctor_finds_no_hive(hive: RunningHiveServer2) -> None:
    there = f"127.0.0.1:{hive.server.port}"
    for words, told in (
        (["127.0.0.1:1"], "127.0.0.1:1"),
        (["nowhere"], "'nowhere'"),
        ([there, "--hive-authentication", "NOSASL"], "with authentication NOSASL"),
    ):
        result = CliRunner().invoke(cli, ["doctor", "--hive", *words, "--output", "json"])
        assert result.exit_code == 1
        (found,) = [f for f in json.loads(result.stdout) if f["check"] == "Hive"]
        assert found["status"] == "error" and told in found["detail"] and found["remedy"]
