"""The catalog that is Trino's hive connector too, in a server that retries tasks: as Hive's."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import trino

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.servers.process import LOOPBACK
from tests.engines.catalogs import Catalogs, running_catalogs
from tests.engines.conftest import RunningMetastore
from tests.engines.stack import ask

pytestmark = pytest.mark.full

OPTIMIZE = {"non_transactional_optimize_enabled": "true"}


@pytest.fixture(scope="module")
def retrying(
    metastore: RunningMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Catalogs]:
    directory = tmp_path_factory.mktemp("retries")
    etc = directory / "trino" / "etc"
    etc.mkdir(parents=True)
    (etc / "exchange-manager.properties").write_text(
        "exchange-manager.name=filesystem\n"
        f"exchange.base-directories={directory / 'exchange'}\n"
        "exchange.sink-buffers-per-partition=2\n"
    )
    (directory / "exchange").mkdir()
    server = {
        "retry-policy": "TASK",
        # by default more than the test's server has
        "fault-tolerant-execution-task-memory": "200MB",
        "fault-tolerant-execution-coordinator-task-memory": "200MB",
    }
    plugins = ("hive", "exchange-filesystem")
    with running_catalogs(metastore.uri, directory, properties=server, stock=plugins) as running:
        assert _policies(running) == {"TASK"}
        yield running


def _policies(catalogs: Catalogs) -> set[str]:
    """How the server retries the queries that it ran."""
    request = urllib.request.Request(
        f"http://{LOOPBACK}:{catalogs.port}/v1/query", headers={"X-Trino-User": "test"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return {query["retryPolicy"] for query in json.load(answer)}


def _told(catalogs: Catalogs, sql: str, catalog: str, schema: str) -> Any:
    try:
        return sorted(map(repr, ask(catalogs.port, sql.format(s=schema), catalog, OPTIMIZE)))
    except trino.exceptions.TrinoQueryError as error:
        text = (error.message or "").replace(f"{catalog}.{schema}", "S")
        return error.error_name, text.replace(schema, "S")


def test_statements_do_what_the_hive_connector_does(retrying: Catalogs) -> None:
    statements = (
        "CREATE TABLE {s}.t WITH (partitioned_by = ARRAY['d']) AS"
        " SELECT n AS a, n / 100 AS d FROM UNNEST(sequence(0, 399)) AS u (n)",
        "INSERT INTO {s}.t VALUES (1000, 1), (2000, 9)",
        "SELECT d, count(*), sum(a) FROM {s}.t GROUP BY d",
        "INSERT INTO {s}.t SELECT a + 1, d FROM {s}.t WHERE a < 10",
        "SELECT x.a, y.d FROM {s}.t x JOIN {s}.t y ON x.a = y.a WHERE y.d = 2",
        "ALTER TABLE {s}.t EXECUTE optimize WHERE d = 1",
        "SELECT count(*), sum(a) FROM {s}.t",
        "DELETE FROM {s}.t WHERE d IN (SELECT max(d) FROM {s}.t)",
        "DELETE FROM {s}.t WHERE d = 0",
        "DELETE FROM {s}.t WHERE a = 150",
        "SELECT count(*), sum(a) FROM {s}.t",
        "ANALYZE {s}.t",
        "CREATE TABLE {s}.acid (a int) WITH (format = 'ORC', transactional = true)",
        "INSERT INTO {s}.acid VALUES 1",
        "DROP TABLE {s}.t",
    )
    told = {}
    for catalog in ("hive", "front"):
        schema = f"retried_{catalog}"
        ask(retrying.port, f"CREATE SCHEMA {schema}", catalog)
        told[catalog] = [_told(retrying, sql, catalog, schema) for sql in statements]
    for sql, ours, theirs in zip(statements, told["front"], told["hive"], strict=True):
        assert ours == theirs, sql


def test_native_reads_before_and_after_an_index(retrying: Catalogs) -> None:
    retrying.hive(
        "CREATE TABLE front.retried WITH (partitioned_by = ARRAY['d']) AS"
        " SELECT n AS a, n / 100 AS d FROM UNNEST(sequence(0, 399)) AS u (n)"
    )
    for _ in range(2):
        for sql in (
            "SELECT count(*), sum(a), min(d) FROM front.retried WHERE a % 7 = 1",
            "SELECT a FROM front.retried WHERE a = 250",
            "SELECT a FROM front.retried ORDER BY a DESC LIMIT 3",
            "SELECT d, sum(a) FROM front.retried GROUP BY d",
        ):
            retrying.same(sql, "native")
        joined = (
            "SELECT count(*) FROM front.retried x JOIN front.retried y ON x.a = y.a WHERE y.a < 5"
        )
        assert retrying.front(joined) == [[5]] == retrying.hive(joined)
        index_table(
            Config({"metastore.uri": Setting(retrying.metastore_uri, "test")}),
            "front.retried",
            local=True,
            progress=lambda done, total: None,
            say=lambda text: None,
        )
