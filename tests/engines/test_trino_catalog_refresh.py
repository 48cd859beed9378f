"""A catalog with `skipbridge.refresh-after-write`: the index follows what Trino writes.

Each write goes through that catalog and the planner refreshes in the background, so tests wait
for the index, never for a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trino

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.metastore.client import MetastoreClient
from tests.engines.catalogs import Catalogs, indexed_files, wait_for
from tests.engines.stack import ask

pytestmark = pytest.mark.full

CATALOG = "refreshing"
OPTIMIZE = {"non_transactional_optimize_enabled": "true"}
SNAPSHOT = "extra_properties = MAP(ARRAY['skipbridge.freshness'], ARRAY['snapshot'])"


@pytest.fixture(scope="module", autouse=True)
def refreshing(catalogs: Catalogs) -> Iterator[None]:
    properties = {k: v for k, v in catalogs.properties.items() if k != "connector.name"}
    properties["skipbridge.refresh-after-write"] = "true"
    text = ", ".join(f"\"{key}\" = '{value}'" for key, value in properties.items())
    catalogs.hive(f"CREATE CATALOG {CATALOG} USING skipbridge WITH ({text})")
    yield
    catalogs.hive(f"DROP CATALOG {CATALOG}")


def run(catalogs: Catalogs, sql: str, **session: str) -> list[Any]:
    """Through the catalog that asks for refreshes."""
    return ask(catalogs.port, sql, CATALOG, session)


def config(catalogs: Catalogs) -> Config:
    return Config({"metastore.uri": Setting(catalogs.metastore_uri, "test")})


def make(catalogs: Catalogs, name: str, more: str = "") -> str:
    """A table with an index: files of ``a`` 0 to 9 in ``d=0``, 10 to 19 in ``d=1``, and so on."""
    catalogs.hive(
        f"CREATE TABLE front.{name} WITH (partitioned_by = ARRAY['d']{more}) AS"
        " SELECT n AS a, n / 10 AS d FROM UNNEST(sequence(0, 39)) AS t (n)"
    )
    build(catalogs, f"front.{name}")
    return f"front.{name}"


def build(catalogs: Catalogs, table: str) -> None:
    index_table(
        config(catalogs), table, local=True, progress=lambda d, t: None, say=lambda text: None
    )


def indexed(catalogs: Catalogs, table: str) -> set[str]:
    return indexed_files(config(catalogs), table)


def stored(catalogs: Catalogs, table: str) -> set[str]:
    schema, _, name = table.partition(".")
    with MetastoreClient(catalogs.metastore_uri) as client:
        location = client.get_table(schema, name).sd.location
    found = Path(location.removeprefix("file:")).rglob("*")
    return {
        f"file://{file}"
        for file in found
        if file.is_file() and not any(part.startswith((".", "_")) for part in file.parts[-2:])
        and ".skipbridge" not in file.parts
    }  # fmt: skip


def wait_until_indexed(catalogs: Catalogs, table: str) -> None:
    wait_for(lambda: indexed(catalogs, table) == stored(catalogs, table), f"{table}: index")


def wait_until_read(catalogs: Catalogs, sql: str, rows: list[Any]) -> None:
    def told() -> bool:
        with suppress(trino.exceptions.TrinoQueryError):  # files of the old snapshot may be gone
            return run(catalogs, sql) == rows
        return False

    wait_for(told, sql)


def kept(catalogs: Catalogs, sql: str) -> int:
    session = {"metadata_answers_enabled": "false"}
    text = "\n".join(row[0] for row in run(catalogs, f"EXPLAIN ANALYZE VERBOSE {sql}", **session))
    [line] = [
        line for line in text.splitlines() if "skipbridge.files.kept" in line.replace(" ", ".")
    ]
    return int("".join(c for c in line.rpartition("=")[2] if c.isdigit()))


def test_a_query_skips_among_the_files_of_an_insert(catalogs: Catalogs) -> None:
    table = make(catalogs, "inserted")
    for n in (100, 200, 300):
        run(catalogs, f"INSERT INTO {table} VALUES ({n}, 1), ({n} + 1, 9)")
    wait_until_indexed(catalogs, table)
    assert len(indexed(catalogs, table)) == 10
    sql = f"SELECT a FROM {table} WHERE a = 201"
    wait_for(lambda: kept(catalogs, sql) == 1, sql)
    assert run(catalogs, sql) == [[201]]


def test_each_write_reaches_a_snapshot(catalogs: Catalogs) -> None:
    table = make(catalogs, "snapped", f", {SNAPSHOT}")
    total = f"SELECT count(*), sum(a), count(DISTINCT d) FROM {table}"
    assert run(catalogs, total) == [[40, 780, 4]]
    run(catalogs, f"INSERT INTO {table} VALUES (1000, 0), (2000, 7)")
    wait_until_read(catalogs, total, [[42, 3780, 5]])
    run(catalogs, f"DELETE FROM {table} WHERE d IN (7, 3)")
    wait_until_read(catalogs, total, [[31, 1435, 3]])
    wait_until_indexed(catalogs, table)
    run(catalogs, f"ALTER TABLE {table} EXECUTE optimize WHERE d = 0", **OPTIMIZE)
    wait_until_indexed(catalogs, table)
    wait_until_read(catalogs, total, [[31, 1435, 3]])
    overwrite = {"insert_existing_partitions_behavior": "OVERWRITE"}
    run(catalogs, f"INSERT INTO {table} SELECT a + 5, d FROM {table} WHERE d = 1", **overwrite)
    wait_until_indexed(catalogs, table)
    wait_until_read(catalogs, total, [[31, 1485, 3]])
    run(catalogs, f"DELETE FROM {table}")
    wait_until_read(catalogs, total, [[0, None, 0]])


def test_a_table_without_partitions_and_one_that_is_made_again(catalogs: Catalogs) -> None:
    catalogs.hive("CREATE TABLE front.whole AS SELECT 1 AS a")
    build(catalogs, "front.whole")
    run(catalogs, "INSERT INTO front.whole VALUES 2")
    wait_until_indexed(catalogs, "front.whole")
    run(catalogs, "DELETE FROM front.whole")
    wait_until_indexed(catalogs, "front.whole")
    assert indexed(catalogs, "front.whole") == set()
    catalogs.hive("DROP TABLE front.whole")
    run(catalogs, "CREATE TABLE front.whole AS SELECT 3 AS a")  # the index went with its directory
    run(catalogs, "INSERT INTO front.whole VALUES 4")
    assert run(catalogs, "SELECT sum(a) FROM front.whole") == [[7]]


def test_names_of_partitions_as_the_metastore_spells_them(catalogs: Catalogs) -> None:
    catalogs.hive(
        "CREATE TABLE front.spelled WITH (partitioned_by = ARRAY['k', 'd']) AS"
        " SELECT 1 AS a, CAST('x' AS varchar) AS k, DATE '2024-01-01' AS d"
    )
    build(catalogs, "front.spelled")
    run(
        catalogs,
        "INSERT INTO front.spelled VALUES (2, 'y z/=1:', DATE '2024-01-01'),"
        " (3, NULL, NULL), (4, 'X', DATE '2024-01-01')",
    )
    wait_until_indexed(catalogs, "front.spelled")
    assert len(indexed(catalogs, "front.spelled")) == 4


def test_without_the_property_nothing_is_refreshed_and_rows_are_right(catalogs: Catalogs) -> None:
    """Requests are answered in their order, so a later one shows that none was under way."""
    table = make(catalogs, "left_alone")
    before = indexed(catalogs, table)
    catalogs.front(f"INSERT INTO {table} VALUES (100, 1)")
    other = make(catalogs, "marker")
    run(catalogs, f"INSERT INTO {other} VALUES (100, 1)")
    wait_until_indexed(catalogs, other)
    assert indexed(catalogs, table) == before
    for sql in (f"SELECT sum(a) FROM {table}", f"SELECT d FROM {table} WHERE a = 100"):
        catalogs.same(sql, "native")
    build(catalogs, table)
    assert indexed(catalogs, table) == stored(catalogs, table)


def test_a_table_without_an_index_gets_none(catalogs: Catalogs) -> None:
    catalogs.hive("CREATE TABLE front.bare AS SELECT 1 AS a")
    run(catalogs, "INSERT INTO front.bare VALUES 2")
    other = make(catalogs, "bare_marker")
    run(catalogs, f"INSERT INTO {other} VALUES (100, 1)")
    wait_until_indexed(catalogs, other)
    assert indexed(catalogs, "front.bare") == set()
    assert run(catalogs, "SELECT sum(a) FROM front.bare") == [[3]]


def test_a_write_succeeds_without_a_planner(catalogs: Catalogs) -> None:
    """What was written meanwhile is in the index after the next refresh of its partitions."""
    table = make(catalogs, "unasked")
    catalogs.stop_planner()
    try:
        session = {"on_planner_failure": "hive"}
        run(catalogs, f"INSERT INTO {table} VALUES (100, 1)", **session)
        assert run(catalogs, f"SELECT count(*) FROM {table}", **session) == [[41]]
    finally:
        catalogs.start_planner()
    run(catalogs, f"INSERT INTO {table} VALUES (101, 1)")
    wait_until_indexed(catalogs, table)


def test_a_wrong_value_is_named(catalogs: Catalogs) -> None:
    properties = {k: v for k, v in catalogs.properties.items() if k != "connector.name"}
    properties["skipbridge.refresh-after-write"] = "sometimes"
    text = ", ".join(f"\"{key}\" = '{value}'" for key, value in properties.items())
    with pytest.raises(trino.exceptions.TrinoQueryError, match="'sometimes' is neither true nor"):
        catalogs.hive(f"CREATE CATALOG wrong USING skipbridge WITH ({text})")
