"""What dashboards ask before they show anything: SQLAlchemy's crawl of a catalog's metadata, which
is that of the hive connector in the same server.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.engine import Connection, Inspector

from bridge.servers.process import LOOPBACK
from tests.engines.catalogs import Catalogs

pytestmark = pytest.mark.full

SCHEMA = "crawled"
STATEMENTS = (
    "CREATE TABLE {s}.typed (a tinyint COMMENT 'small', b smallint, c integer, d bigint, e real,"
    " f double, g decimal(38, 10), h varchar, i varchar(7), j char(3), k varbinary, l boolean,"
    " m timestamp(6), n array(integer), o map(varchar, bigint), p row(x integer, y array(date)),"
    " q date) COMMENT 'of every type'"
    " WITH (format = 'ORC', partitioned_by = ARRAY['q'])",
    "INSERT INTO {s}.typed (c, h, m, q) VALUES"
    " (1, 'x', TIMESTAMP '2024-01-01 01:02:03.123456', DATE '2024-01-01'),"
    " (2, NULL, NULL, DATE '2024-01-02')",
    "CREATE TABLE {s}.\"select\" WITH (format = 'CSV') AS SELECT CAST('x' AS varchar) AS \"from\"",
    "CREATE TABLE {s}.bucketed WITH (bucketed_by = ARRAY['a'], bucket_count = 2) AS SELECT 1 AS a",
    "CREATE TABLE {s}.acid (a integer) WITH (format = 'ORC', transactional = true,"
    " bucketed_by = ARRAY['a'], bucket_count = 1)",
    "CREATE VIEW {s}.seen COMMENT 'a view' AS SELECT h, count(*) AS n FROM {s}.typed GROUP BY h",
    "CREATE VIEW {s}.invoked SECURITY INVOKER AS SELECT c FROM {s}.typed",
)


@pytest.fixture(scope="module", autouse=True)
def schema(catalogs: Catalogs) -> None:
    catalogs.hive(f"CREATE SCHEMA {SCHEMA}")
    catalogs.hive(f"CREATE SCHEMA {SCHEMA}_empty")
    for statement in STATEMENTS:
        catalogs.front(statement.replace("{s}", SCHEMA))


@contextmanager
def _open(catalogs: Catalogs, catalog: str) -> Iterator[tuple[Connection, Inspector]]:
    url = f"trino://test@{LOOPBACK}:{catalogs.port}/{catalog}"
    engine = sqlalchemy.create_engine(url)
    try:
        with engine.connect() as connection:
            yield connection, sqlalchemy.inspect(connection)
    finally:
        engine.dispose()


def _crawl(inspector: Inspector) -> dict[str, Any]:
    found: dict[str, Any] = {"schemas": inspector.get_schema_names()}
    for schema in (SCHEMA, f"{SCHEMA}_empty"):
        tables = inspector.get_table_names(schema)
        views = inspector.get_view_names(schema)
        found[schema] = {"tables": tables, "views": views}
        for name in (*tables, *views):
            found[f"{schema}.{name}"] = {
                "columns": [repr(sorted(c.items())) for c in inspector.get_columns(name, schema)],
                "indexes": inspector.get_indexes(name, schema),
                "comment": inspector.get_table_comment(name, schema),
                "keys": (
                    inspector.get_pk_constraint(name, schema),
                    inspector.get_foreign_keys(name, schema),
                ),
                "exists": inspector.has_table(name, schema),
            }
        for name in views:
            found[f"{schema}.{name}"]["sql"] = inspector.get_view_definition(name, schema)
    return found


def test_the_crawl_finds_what_it_finds_in_the_hive_connector(catalogs: Catalogs) -> None:
    found = {}
    for catalog in ("front", "hive"):
        with _open(catalogs, catalog) as (_, inspector):
            found[catalog] = _crawl(inspector)
    said = repr(found["front"]).replace("front.", "hive.")
    assert said == repr(found["hive"])
    names = {"acid", "bucketed", "select", "typed"}
    assert names <= set(found["front"][SCHEMA]["tables"])
    assert found["front"][f"{SCHEMA}.typed"]["indexes"][0]["column_names"] == ["q"]
    assert found["front"][f"{SCHEMA}.typed"]["comment"] == {"text": "of every type"}


def test_a_query_over_reflected_tables_has_the_same_rows(catalogs: Catalogs) -> None:
    """Bound values and quoted names, as a dashboard sends them."""
    rows = {}
    for catalog in ("front", "hive"):
        with _open(catalogs, catalog) as (connection, _):
            lake = sqlalchemy.MetaData(schema=SCHEMA)
            typed = sqlalchemy.Table("typed", lake, autoload_with=connection)
            odd = sqlalchemy.Table("select", lake, autoload_with=connection)
            seen = sqlalchemy.Table("seen", lake, autoload_with=connection)
            queries = (
                sqlalchemy.select(typed.c.c, typed.c.m).where(typed.c.h == "x"),
                sqlalchemy.select(typed.c.q, sqlalchemy.func.count()).group_by(typed.c.q),
                sqlalchemy.select(odd.c["from"], seen.c.n).join(seen, odd.c["from"] == seen.c.h),
            )
            rows[catalog] = [sorted(map(repr, connection.execute(sql))) for sql in queries]
    assert rows["front"] == rows["hive"]
    assert catalogs.side(f"SELECT c, m FROM {SCHEMA}.typed WHERE h = 'x'") == "native"
