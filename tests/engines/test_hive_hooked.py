"""Doctor beside a real HiveServer2, and tables whose records a version before 0.1.0 altered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from bridge.app.cli.main import cli
from bridge.hive.checks import HiveAddress, examine_filters, examine_hive
from bridge.hive.server import HiveSession
from bridge.metastore._gen import ttypes
from bridge.metastore.client import MetastoreClient
from bridge.runtime.diagnostic import Diagnostic
from bridge.table.model import TableName
from tests.engines.conftest import RunningHiveServer2
from tests.engines.hive_stack import planner_under_test
from tests.engines.test_metastore import SPECIAL, Shop
from tests.support.hooked_records import hook_table

pytestmark = pytest.mark.full

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


def findings(hive: RunningHiveServer2, *words: str) -> dict[str, dict[str, str]]:
    result = CliRunner().invoke(
        cli, ["doctor", *words, "--output", "json", "--metastore-uri", hive.metastore.uri]
    )
    return {f["check"]: f for f in json.loads(result.stdout)}


def test_doctor_frees_a_table_that_an_earlier_release_hooked(
    hive: RunningHiveServer2, client: MetastoreClient, tmp_path: Path
) -> None:
    """Hive runs the statements that doctor prints, and all records name what they named before."""
    shop = Shop(client, tmp_path)
    shop.table("it", "p", "q")
    values = [*SPECIAL, ("it's", "a;b"), ("back\\slash", "--x")]
    client.add_partitions(shop.name, "it", [shop.partition("it", list(v)) for v in values])
    table, name = f"{shop.name}.it", TableName(shop.name, "it")

    def records() -> tuple[ttypes.Table, dict[str, ttypes.Partition]]:
        names = client.get_partition_names(shop.name, "it")
        found = client.get_partitions_by_names(shop.name, "it", names)
        return client.get_table(shop.name, "it"), dict(
            zip(found.names, found.partitions, strict=True)
        )

    before = records()
    check = f"Hive hooks of {table}"
    assert "not hooked" in findings(hive, table)[check]["detail"]
    hook_table(hive.metastore.uri, name)
    late = shop.partition("it", ["late", "1"])  # as Hive adds one: with the table's class
    late.sd.inputFormat = client.get_table(shop.name, "it").sd.inputFormat
    client.add_partitions(shop.name, "it", [late])
    found = findings(hive, table)[check]
    assert found["status"] == "warning" and "altered its records" in found["detail"]
    statements = found["remedy"].removeprefix("run in Hive: ").removesuffix(";").split("; ")
    assert len(statements) == 2 + len(values) + 1
    for statement in statements:
        hive.query(statement)
    now = records()
    assert "not hooked" in findings(hive, table)[check]["detail"]
    assert now[0].sd == before[0].sd and set(now[0].parameters) <= {
        *before[0].parameters,
        "last_modified_by",  # Hive's own clients sign what they alter
        "last_modified_time",
    }
    assert now[1].pop("p=late/q=1").sd.inputFormat == before[0].sd.inputFormat
    assert {n: p.sd for n, p in now[1].items()} == {n: p.sd for n, p in before[1].items()}


def test_doctor_names_the_plans_hook(hive: RunningHiveServer2) -> None:
    table = f"{DATABASE}.examined"
    hive.query(f"CREATE EXTERNAL TABLE {table} (k int) STORED AS PARQUET")
    found = findings(hive, table, "--hive", f"127.0.0.1:{hive.server.port}")
    assert found["Hive"]["status"] == "ok" and "4.0.1" in found["Hive"]["detail"]
    assert found["Hive filters"]["status"] == "ok"
    assert "no hook" in found["Hive plans"]["detail"]
    assert found[f"Hive hooks of {table}"]["detail"] == "not hooked: Hive reads every file"


def test_doctor_finds_all_well_but_a_trino_without_the_connector(
    hive: RunningHiveServer2, stock_trino: int, tmp_path: Path
) -> None:
    table = f"{DATABASE}.healthy"
    hive.query(f"CREATE EXTERNAL TABLE {table} (k int) STORED AS PARQUET")
    hive.query(f"INSERT INTO {table} VALUES (1)")
    words = [table, "--hive", f"127.0.0.1:{hive.server.port}"]
    with planner_under_test(hive.metastore.uri, tmp_path / "cache") as planner:
        port = planner.endpoint.split(":")[1]
        address = ["--metastore-uri", hive.metastore.uri, "--port", port]
        assert CliRunner().invoke(cli, ["index", "build", table, *address[:2]]).exit_code == 0
        healthy = CliRunner().invoke(cli, ["doctor", *words, *address])
        assert (healthy.exit_code, healthy.stdout) == (0, "all is well\n")
        words += ["--trino", f"127.0.0.1:{stock_trino}"]
        done = CliRunner().invoke(cli, ["doctor", *words, *address])
    first, remedy, verdict = done.stdout.splitlines()
    assert first.startswith("warning  Trino: ") and "no catalog" in first
    assert "plugin build --trino-version 476" in remedy
    assert (done.exit_code, verdict) == (0, "works, but: Trino")


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
