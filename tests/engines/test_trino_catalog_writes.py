"""A catalog that is Trino's hive connector too: statements that plan over a native handle, DELETE,
``EXECUTE optimize`` and an INSERT that overwrites, do what they do through the hive connector.
"""

from __future__ import annotations

import pytest
import trino
from trino.transaction import IsolationLevel

from tests.engines.catalog_shapes import NUMBERS, WORDS
from tests.engines.catalog_writes import OPTIMIZE, Copies, Draw, Law
from tests.engines.catalogs import Catalogs
from tests.engines.stack import ask
from tests.tiers import examples, seed

pytestmark = pytest.mark.full

STATEMENTS = examples(60, 60, 600)


@pytest.fixture(scope="module")
def copies(catalogs: Catalogs) -> Copies:
    return Copies(catalogs)


def test_the_law_of_writes(copies: Copies) -> None:
    """Where the hive connector succeeds so does this catalog, and the rest is the same; where it
    refuses, this one refuses with its words and changes nothing.
    """
    draw = Draw(seed(42))
    law = Law(copies)
    kept = {}
    for _ in range(STATEMENTS):
        shape = draw.shape()
        indexed = draw.yes(0.4)
        pair = kept.pop((shape.name, indexed), None) or copies.pair(shape, indexed)
        if law.ask(shape, draw.statement(shape), pair):
            kept[shape.name, indexed] = pair
    assert law.succeeded * 3 >= STATEMENTS, law.texts
    assert law.refused * 5 >= STATEMENTS, law.texts


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET b = 'new'",
        "UPDATE {t} SET b = 'new' WHERE n = 1",
        "DELETE FROM {t} WHERE a = 1",
        "DELETE FROM {t} WHERE n = 1 AND a >= 0",
        "MERGE INTO {t} USING (VALUES 1) AS v (w) ON a = w WHEN MATCHED THEN DELETE",
        "MERGE INTO {t} USING {o} AS o ON n = w WHEN MATCHED THEN UPDATE SET b = 'new'"
        " WHEN NOT MATCHED THEN INSERT (a, n) VALUES (w, v)",
    ],
)
def test_what_changes_rows_is_refused_as_by_the_hive_connector(
    copies: Copies, statement: str
) -> None:
    shape = NUMBERS
    pair = copies.pair(shape, indexed=True)
    law = Law(copies)
    law.ask(shape, statement, pair)
    assert law.refused == 1
    assert "Modifying Hive table rows is only supported" in law.message
    # Nothing began, so nothing says that the table changed.
    assert copies.catalogs.side(f"SELECT * FROM {pair.ours}") == "native"


def test_a_filter_that_the_index_proves_deletes_nothing(copies: Copies) -> None:
    """All rows of a partition match, so a native scan has no filter left; the hive connector
    knows nothing of that, and refuses.
    """
    catalogs = copies.catalogs
    shape = NUMBERS
    pair = copies.pair(shape, indexed=True)
    where = "n = 1 AND a >= 0 AND a < 50"
    assert "Filter" not in catalogs.front(f"EXPLAIN SELECT * FROM {pair.ours} WHERE {where}")[0][0]
    law = Law(copies)
    for verb in ("DELETE FROM {t} WHERE ", "ALTER TABLE {t} EXECUTE optimize WHERE "):
        law.ask(shape, verb + where, pair)
        pair = copies.pair(shape, indexed=True)
    assert law.refused == 2


def test_the_handle_of_a_statement_is_hives(copies: Copies) -> None:
    """Under the filter that the hive connector's own plan has."""
    catalogs = copies.catalogs
    shape = WORDS
    for verb in ("DELETE FROM {t}", "ALTER TABLE {t} EXECUTE optimize"):
        pair = copies.pair(shape)
        table = pair.ours.replace(".", ":")
        where = "WHERE k = 'x' AND d IN (DATE '2024-01-01', DATE '1999-01-01')"
        assert catalogs.side(f"SELECT * FROM {pair.ours} {where}") == "native"
        sql = f"EXPLAIN {verb.format(t=pair.ours)} {where}"
        [[text]] = catalogs.front(sql, **OPTIMIZE)
        assert f"front:{table}" in text and f"front:{pair.ours}" not in text
        sql = sql.replace(pair.ours, pair.theirs)
        [[theirs]] = ask(catalogs.port, sql, "hive", OPTIMIZE)
        lines = [line for line in text.splitlines() if table in line]
        same = theirs.replace("hive:", "front:").replace(pair.theirs.replace(".", ":"), table)
        assert [line.strip() for line in lines if line in same.splitlines()], (text, theirs)


def test_optimize_rewrites_the_small_files_of_the_partitions_that_are_named(
    copies: Copies,
) -> None:
    shape = WORDS
    for size, rewritten in (("", True), ("(file_size_threshold => '1B')", False)):
        pair = copies.pair(shape, indexed=True)
        law = Law(copies)
        law.ask(shape, f"ALTER TABLE {{t}} EXECUTE optimize{size} WHERE k = 'x'", pair)
        assert law.succeeded == 1
        named = {file for file in pair.files if file.startswith("k=x/")}
        assert len(named) == 4
        assert pair.files - pair.left(pair.ours) == (named if rewritten else set())


def test_a_query_after_the_statement_sees_it(copies: Copies) -> None:
    """Whatever freshness the table has, which bounds how long the planner holds a listing."""
    catalogs = copies.catalogs
    shape = NUMBERS
    for freshness in ("live", "cached(60s)"):
        pair = copies.pair(shape, properties={"skipbridge.freshness": freshness})
        count = f"SELECT count(*), min(a) FROM {pair.ours}"
        assert catalogs.front(count) == [[32, 0]]
        assert catalogs.side(f"SELECT * FROM {pair.ours}") == "native"
        catalogs.front(f"DELETE FROM {pair.ours} WHERE n = 1")
        assert catalogs.front(count) == [[24, 100]]
        catalogs.front(f"ALTER TABLE {pair.ours} EXECUTE optimize", **OPTIMIZE)
        assert catalogs.front(count) == [[24, 100]]
        assert catalogs.side(f"SELECT * FROM {pair.ours}") == "native"


def test_what_fails_half_way_leaves_what_the_hive_connector_leaves(copies: Copies) -> None:
    """A file that cannot be read fails ``optimize`` after other files were written."""
    shape = WORDS
    pair = copies.pair(shape)
    broken = sorted(pair.files)[-1]
    for directory in pair.directories.values():
        (directory / broken).write_bytes(b"PAR1 and nothing else PAR1")
    law = Law(copies)
    told = law.tell(shape, "ALTER TABLE {t} EXECUTE optimize", pair)
    assert told[pair.ours].error == told[pair.theirs].error != ""
    found = {name: copies.files(directory) for name, directory in pair.directories.items()}
    assert found[pair.ours] == found[pair.theirs] == pair.files
    law.ask(shape, "DELETE FROM {t} WHERE k = 'x'", copies.pair(shape))
    assert law.succeeded == 1


def test_a_statement_needs_no_planner(copies: Copies) -> None:
    """It fails as a query does, or is the hive connector's, and never deletes more."""
    catalogs = copies.catalogs
    shape = NUMBERS
    pair = copies.pair(shape)
    delete = f"DELETE FROM {pair.ours} WHERE n = 1"
    catalogs.stop_planner()
    try:
        with pytest.raises(trino.exceptions.TrinoQueryError) as caught:
            catalogs.front(delete)
        assert caught.value.error_name == "SKIPBRIDGE_PLANNER_UNAVAILABLE"
        assert pair.left(pair.ours) == pair.files
        catalogs.front(delete, on_planner_failure="hive")
    finally:
        catalogs.start_planner()
    assert catalogs.hive(f"SELECT count(*), min(a) FROM {pair.ours}") == [[24, 100]]


@pytest.mark.parametrize("freshness", ["cached(1h)", "snapshot"])
@pytest.mark.parametrize(
    "select",
    [
        "SELECT a, b, x, n FROM {t}",
        "SELECT * FROM {t} WHERE n = 1",
        "SELECT max(a), max(b), count(*), n FROM {t} GROUP BY n",
        "SELECT t.* FROM {t} AS t JOIN {o} ON n = v WHERE a >= 0 AND a < 100000",
    ],
)
def test_what_a_statement_overwrites_it_has_read(
    copies: Copies, select: str, freshness: str
) -> None:
    """The planner may know the files of before; one that came since is overwritten too."""
    catalogs = copies.catalogs
    pair = copies.pair(NUMBERS, indexed=True, properties={"skipbridge.freshness": freshness})
    catalogs.same(f"SELECT * FROM {pair.ours}", "native")
    for table in (pair.ours, pair.theirs):
        catalogs.hive(f"INSERT INTO {table} VALUES (9000, 'z', 1.5, 1)")
    overwrite = {"insert_existing_partitions_behavior": "OVERWRITE"}
    for table, catalog in ((pair.theirs, "hive"), (pair.ours, "front")):
        sql = f"INSERT INTO {{t}} {select}".format(t=table, o=f"{copies.schema}.numbers_o")
        ask(catalogs.port, sql, catalog, overwrite)
    rows = sorted(catalogs.hive(f"SELECT * FROM {pair.theirs}"), key=repr)
    assert any(row[0] == 9000 for row in rows)
    assert sorted(catalogs.hive(f"SELECT * FROM {pair.ours}"), key=repr) == rows


def test_a_query_after_explain_of_a_statement_has_its_rows(copies: Copies) -> None:
    """In one transaction: to explain a statement begins its write, as in Trino's own planner."""
    pair = copies.pair(WORDS)
    connection = trino.dbapi.connect(
        host="127.0.0.1",
        port=copies.catalogs.port,
        user="test",
        catalog="front",
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        session_properties={f"front.{name}": value for name, value in OPTIMIZE.items()},
    )
    with connection:
        cursor = connection.cursor()
        cursor.execute(f"EXPLAIN ALTER TABLE {pair.ours} EXECUTE optimize WHERE k = 'x'")
        assert f"front:{pair.ours.replace('.', ':')}" in cursor.fetchall()[0][0]
        for where in ("", " WHERE k = 'x'", " WHERE a > 100"):
            cursor.execute(f"SELECT a FROM {pair.ours}{where}")
            rows = sorted(cursor.fetchall(), key=repr)
            assert rows
            assert rows == sorted(
                copies.catalogs.hive(f"SELECT a FROM {pair.theirs}{where}"), key=repr
            )
