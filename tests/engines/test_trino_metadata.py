"""Pruning beyond filters on a real Trino: answers from statistics, LIMIT, top-N, joins, estimates.

What is answered, left out or kept is told by the engine's own plans and counters. That no file is
read is proven by files that cannot be: their bytes are spoiled under the same size and time.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.indexing.table import index_table
from bridge.kernel.config import Config, Setting
from bridge.kernel.types import BIGINT, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, decimal
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import register_table
from bridge.table.model import CatalogTable, Column, Partition, TableName
from tests.engines.everything import COLUMNS
from tests.engines.stack import Stack

pytestmark = pytest.mark.full

OFF = {"metadata_answers_enabled": "false"}
DAYS, FILES, ROWS = 4, 5, 20
TOTAL = DAYS * FILES * ROWS


@dataclass(frozen=True)
class Steps:
    """Table laws.steps: by day, files of 20 consecutive ids; ``d`` has NaN, ``n`` NULLs."""

    root: Path
    stack: Stack

    def file(self, day: int, number: int) -> Path:
        return self.root / f"day={day}" / f"f{number}.parquet"

    def index(self) -> None:
        config = Config({"metastore.uri": Setting(self.stack.metastore_uri, "test")})
        index_table(
            config,
            "laws.steps",
            local=True,
            nan="scan",
            progress=lambda done, total: None,
            say=lambda text: None,
        )
        time.sleep(1.1)  # the planner looks for a newer generation once a second


def rows(first: int, count: int = ROWS) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array([-i for i in ids], pa.int32()),
            "n": pa.array([None if i % 4 == 0 or i < 40 else i for i in ids], pa.int64()),
            "d": pa.array([math.nan if i % 100 == 7 else i / 2 for i in ids], pa.float64()),
            "e": pa.array([i / 4 + 1 for i in ids], pa.float64()),
            "s": pa.array([f"k{i:06d}" for i in ids], pa.string()),
            "c": pa.array([i * 25 for i in ids], pa.int64()).cast(pa.decimal128(20, 0)),
            "t": pa.array([i * 3_600_000_000 + i for i in ids], pa.timestamp("us")),
            "w": pa.array(ids, pa.int32()).cast(pa.date32()),
        }
    )


def write(path: Path, data: pa.Table, *, age: float = 60.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without text bounds in the footer the build reads the text, and knows them exactly.
    known = [name for name in data.column_names if name != "s"]
    pq.write_table(data, path, write_statistics=known)
    past = time.time() - age
    os.utime(path, (past, past))


@pytest.fixture(scope="module")
def steps(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steps]:
    root = tmp_path_factory.mktemp("steps") / "table"
    columns = (
        Column("id", BIGINT),
        Column("v", INTEGER),
        Column("n", BIGINT),
        Column("d", DOUBLE),
        Column("e", DOUBLE),
        Column("s", STRING),
        Column("c", decimal(20, 0)),
        Column("t", TIMESTAMP),
        Column("w", DATE),
    )
    made = Steps(root, stack)
    for day in range(DAYS):
        for number in range(FILES):
            write(made.file(day, number), rows((day * FILES + number) * ROWS))
    name = TableName("laws", "steps")
    table = CatalogTable(name, columns, (Column("day", INTEGER),), f"file://{root}")
    partitions = [Partition(f"day={d}", (str(d),), f"file://{root}/day={d}") for d in range(DAYS)]
    with MetastoreClient(stack.metastore_uri) as client:
        register_table(client, name, table, partitions)
    made.index()
    yield made
    with MetastoreClient(stack.metastore_uri) as client:
        client.drop_table("laws", "steps")


def plan(steps: Steps, sql: str, session: dict[str, str] | None = None) -> str:
    return "\n".join(row[0] for row in steps.stack.query(f"EXPLAIN {sql}", session))


def answered(steps: Steps, sql: str) -> list[Any]:
    """The rows of a query that must be answered from statistics, and be what reading gives."""
    assert "answered from statistics" in plan(steps, sql), plan(steps, sql)
    found = steps.stack.query(sql)
    assert "answered from statistics" not in plan(steps, sql, OFF)
    key = [json.dumps(row, default=str) for row in found]
    assert sorted(key) == sorted(
        json.dumps(row, default=str) for row in steps.stack.query(sql, OFF)
    )
    return found


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT count(*) FROM laws.steps", [[TOTAL]]),
        ("SELECT count(1), count(id) FROM laws.steps", [[TOTAL, TOTAL]]),
        ("SELECT count(n), min(n), max(n) FROM laws.steps", [[270, 41, 399]]),
        ("SELECT min(id), max(id), min(v), max(v) FROM laws.steps", [[0, 399, -399, 0]]),
        ("SELECT count(d), max(e), min(e) FROM laws.steps", [[400, 100.75, 1.0]]),
        ("SELECT min(s), max(s) FROM laws.steps", [["k000000", "k000399"]]),
        ("SELECT min(c), max(c), max(w) FROM laws.steps", None),
        ("SELECT min(t), max(t) FROM laws.steps", None),
        ("SELECT min(day), max(day), count(day) FROM laws.steps", [[0, 3, TOTAL]]),
        ("SELECT day, count(*), max(id) FROM laws.steps GROUP BY day", None),
        ("SELECT DISTINCT day FROM laws.steps", None),
        ('SELECT "$partition", min(id) FROM laws.steps GROUP BY 1', None),
        ("SELECT max(id) FROM laws.steps WHERE day = 2", [[299]]),
        ("SELECT count(*) FROM laws.steps WHERE day IN (1, 3)", [[200]]),
        ("SELECT count(*) FROM laws.steps WHERE id >= 100 AND id < 160", [[60]]),
        ("SELECT count(*) FROM laws.steps WHERE id < 20 OR id >= 380", [[40]]),
        ("SELECT count(*) FROM laws.steps WHERE n IS NULL AND id < 40", [[40]]),
        ("SELECT count(*) FROM laws.steps WHERE day = 9", [[0]]),
        ("SELECT count(*) FROM laws.steps WHERE id > 100000", [[0]]),
        ("SELECT day, count(*) FROM laws.steps WHERE id >= 300 GROUP BY day", [[3, 100]]),
        (
            "SELECT count(*) FROM laws.steps GROUP BY day HAVING count(*) > 1000",
            [],
        ),
        (
            "SELECT a.m - b.m FROM (SELECT max(id) m FROM laws.steps) a, "
            "(SELECT min(id) m FROM laws.steps WHERE day = 1) b",
            [[299]],
        ),
    ],
)
def test_answered_from_statistics(steps: Steps, sql: str, expected: list[Any] | None) -> None:
    found = answered(steps, sql)
    assert expected is None or found == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT max(d) FROM laws.steps",  # NaN
        "SELECT count(*) FROM laws.steps WHERE id < 25",
        "SELECT count(*) FROM laws.steps WHERE id % 2 = 0",
        "SELECT count(DISTINCT day) + count(*) FROM laws.steps",
        "SELECT count(*) FILTER (WHERE id < 20) FROM laws.steps",
        "SELECT sum(id), count(*) FROM laws.steps",
        "SELECT v, count(*) FROM laws.steps GROUP BY v",
        "SELECT min(id, 2) FROM laws.steps",
        "SELECT count(*) FROM laws.steps WHERE d > 5",
    ],
)
def test_what_statistics_cannot_answer_is_read(steps: Steps, sql: str) -> None:
    assert "answered from statistics" not in plan(steps, sql) or "DISTINCT" in sql
    on, off = steps.stack.query(sql), steps.stack.query(sql, {"pruning_enabled": "false"})
    assert sorted(map(repr, on)) == sorted(map(repr, off))


def test_answers_over_every_type_agree_with_reading(stack: Stack) -> None:
    for column in [column.name for column in COLUMNS[:16]] + ["p", "q"]:
        sql = f"SELECT count({column}), min({column}), max({column}) FROM laws.everything"
        assert repr(stack.query(sql)) == repr(stack.query(sql, OFF)), column
        by = f"SELECT q, count({column}) FROM laws.everything WHERE q <> 3 GROUP BY q"
        assert sorted(stack.query(by)) == sorted(stack.query(by, OFF)), column


def test_a_filter_that_files_enforce_is_dropped(steps: Steps) -> None:
    text = plan(steps, "SELECT s FROM laws.steps WHERE day = 2 AND id >= 220")
    assert "enforced constraint on [day, id]" in text and "filterPredicate" not in text
    sql = "SELECT count(*), min(s) FROM (SELECT s FROM laws.steps WHERE day = 2 AND id >= 220)"
    assert steps.stack.query(sql) == [[80, "k000220"]]
    loose = plan(steps, "SELECT s FROM laws.steps WHERE id >= 221")
    assert "enforced" not in loose and "filterPredicate" in loose


def test_no_byte_is_read_for_an_answer(steps: Steps) -> None:
    """Damaged files: what statistics know exactly is still answered, what is read fails."""
    path = steps.file(1, 2)
    before, content = path.stat(), path.read_bytes()
    path.write_bytes(b"\0" * len(content))
    os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))
    try:
        sql = "SELECT count(*), max(id) FROM laws.steps WHERE day = 1"
        assert steps.stack.query(sql) == [[100, 199]]
        with pytest.raises(Exception, match=r"f2\.parquet"):
            steps.stack.query(sql, OFF)
        assert len(steps.stack.query("SELECT id FROM laws.steps WHERE day <> 1 LIMIT 20")) == 20
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))


def test_a_new_file_is_counted_at_once(steps: Steps) -> None:
    """Correctness 19 and 22: live freshness; the index does not know it, so all is read."""
    sql = "SELECT count(*), max(id), min(v) FROM laws.steps"
    path = steps.file(3, 99)
    write(path, rows(9000, 3))
    try:
        assert "answered" not in plan(steps, sql)
        assert steps.stack.query(sql) == [[TOTAL + 3, 9002, -9002]]
        assert steps.stack.query("SELECT count(*) FROM laws.steps WHERE day = 2") == [[100]]
        assert "answered" in plan(steps, "SELECT count(*) FROM laws.steps WHERE day = 2")
        top = "SELECT id FROM laws.steps ORDER BY id DESC LIMIT 2"
        assert steps.stack.query(top) == [[9002], [9001]]
        steps.index()
        assert answered(steps, sql) == [[TOTAL + 3, 9002, -9002]]
    finally:
        path.unlink()
        steps.index()
    assert steps.stack.query(sql) == [[TOTAL, 399, -399]]


def test_a_rewritten_file_is_not_answered_for(steps: Steps) -> None:
    path = steps.file(0, 0)
    before, content = path.stat(), path.read_bytes()
    try:
        write(path, rows(-500), age=30.0)
        assert steps.stack.query("SELECT count(*), min(id) FROM laws.steps") == [[TOTAL, -500]]
        where = "SELECT count(*) FROM laws.steps WHERE id >= 0 AND id < 40"
        assert steps.stack.query(where) == [[20]]
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(before.st_mtime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("sql", "at_most", "rows_found"),
    [
        ("SELECT * FROM laws.steps LIMIT 10", 1, 10),
        ("SELECT id FROM laws.steps LIMIT 21", 2, 21),
        ("SELECT id FROM laws.steps WHERE day = 2 LIMIT 10", 1, 10),
        ("SELECT id FROM laws.steps WHERE id >= 200 LIMIT 30", 2, 30),
        ("SELECT s FROM laws.steps LIMIT 100000", 20, TOTAL),
        ("SELECT id FROM laws.steps WHERE id < 25 LIMIT 10", 2, 10),
        ("SELECT id FROM laws.steps WHERE day = 1 OFFSET 3 LIMIT 5", 1, 5),
    ],
)
def test_limit_reads_what_suffices(steps: Steps, sql: str, at_most: int, rows_found: int) -> None:
    assert len(steps.stack.query(sql)) == rows_found
    assert steps.stack.kept_files(sql, answers=True) <= at_most
    off = {"limit_pruning_enabled": "false"}
    assert len(steps.stack.query(sql, off)) == rows_found
    assert " limit " not in plan(steps, sql, off)


def test_a_limit_beside_a_join_loses_no_row(steps: Steps) -> None:
    sql = (
        "SELECT x.id FROM (SELECT id FROM laws.steps LIMIT 400) x "
        "JOIN (VALUES BIGINT '3', BIGINT '398') v(k) ON x.id = v.k"
    )
    assert sorted(steps.stack.query(sql)) == [[3], [398]]
    sql = (
        "SELECT a.id, v.k FROM laws.steps a LEFT JOIN (VALUES BIGINT '3') v(k) ON a.id = v.k "
        "LIMIT 12"
    )
    assert len(steps.stack.query(sql)) == 12


@pytest.mark.parametrize(
    ("order", "at_most"),
    [
        ("id DESC LIMIT 10", 1),
        ("id LIMIT 25", 2),
        ("v LIMIT 10", 1),
        ("t DESC, s LIMIT 20", 1),
        ("s DESC LIMIT 3", 1),
        ("c DESC LIMIT 3", 1),
        ("n DESC NULLS LAST, id LIMIT 16", 2),
        ("n NULLS FIRST, id LIMIT 10", 20),
        ("n NULLS LAST, id LIMIT 10", 20),
        ("day DESC, id LIMIT 3", 5),
        ("e DESC LIMIT 4", 1),
        ("d DESC, id LIMIT 7", 20),
        ("d, id LIMIT 7", 20),
        ('"$path" DESC, id LIMIT 7', 1),
        ("id DESC LIMIT 1000", 20),
    ],
)
def test_top_n_reads_what_may_be_first(steps: Steps, order: str, at_most: int) -> None:
    sql = f"SELECT id, v, n, s, day FROM laws.steps ORDER BY {order}"
    found = steps.stack.query(sql)
    assert found == steps.stack.query(sql, {"top_n_pruning_enabled": "false"})
    assert steps.stack.kept_files(sql) <= at_most
    assert " by " in plan(steps, sql)
    assert " by " not in plan(steps, sql, {"top_n_pruning_enabled": "false"})


def test_top_n_under_filters(steps: Steps) -> None:
    whole = "SELECT id FROM laws.steps WHERE day < 3 ORDER BY id DESC LIMIT 5"
    assert steps.stack.query(whole) == [[299], [298], [297], [296], [295]]
    assert steps.stack.kept_files(whole, answers=True) == 1
    part = "SELECT id FROM laws.steps WHERE v <= -33 AND id % 3 = 0 ORDER BY id LIMIT 3"
    assert steps.stack.query(part) == [[33], [36], [39]]


def test_joins_narrow_by_list_and_by_range(steps: Steps) -> None:
    few = "SELECT count(*), max(a.s) FROM laws.steps a JOIN (VALUES BIGINT '5', BIGINT '395') v(k) "
    few += "ON a.id = v.k"
    assert steps.stack.query(few) == [[2, "k000395"]]
    # Two single values, not the range between them: the other 18 files are left out.
    assert steps.stack.kept_files(few) == 2
    span = "SELECT count(*) FROM laws.steps a JOIN (VALUES BIGINT '380') v(k) ON a.id > v.k"
    assert steps.stack.query(span) == [[19]]
    self_join = "SELECT count(*) FROM laws.steps a JOIN laws.steps b ON a.id = b.id WHERE b.day = 2"
    assert steps.stack.query(self_join) == [[100]]
    assert steps.stack.query(
        "SELECT count(*) FROM laws.steps WHERE id IN (SELECT id + 360 FROM laws.steps WHERE id < 3)"
    ) == [[3]]


def test_estimates_follow_the_filter(steps: Steps) -> None:
    stats = {row[0]: row for row in steps.stack.query("SHOW STATS FOR laws.steps")}
    assert stats[None][4] == TOTAL
    assert stats["id"][5:7] == ["0", "399"] and stats["day"][2] == DAYS
    assert stats["n"][3] == pytest.approx(130 / TOTAL)
    some = {
        row[0]: row
        for row in steps.stack.query("SHOW STATS FOR (SELECT * FROM laws.steps WHERE id >= 300)")
    }
    assert some[None][4] == 100 and some["id"][5] == "300"
    off = {
        row[0]: row
        for row in steps.stack.query("SHOW STATS FOR laws.steps", {"statistics_enabled": "false"})
    }
    assert off[None][4] is None


def test_system_tables(steps: Steps) -> None:
    query = steps.stack.query
    files = query('SELECT path, partition, size, rows, indexed, bounds FROM laws."steps$files"')
    assert len(files) == DAYS * FILES and all(f[4] and f[3] == ROWS and f[2] > 0 for f in files)
    last = next(f for f in files if f[0].endswith("day=3/f4.parquet"))
    told = json.loads(last[5])["id"]
    assert 0 < told.pop("bytes") < last[2]
    assert told == {"min": "380", "max": "399", "nulls": 0}
    assert query(
        "SELECT count(*), sum(rows) FROM laws.\"steps$files\" WHERE partition = 'day=1'"
    ) == [[FILES, FILES * ROWS]]
    partitions = query('SELECT partition, files, rows, indexed_files FROM laws."steps$partitions"')
    assert sorted(partitions) == [[f"day={d}", FILES, FILES * ROWS, FILES] for d in range(DAYS)]
    indexes = query(
        'SELECT "column", files_exact, problem FROM laws."steps$indexes" WHERE kind = \'minmax\''
    )
    assert ["id", DAYS * FILES, None] in indexes
    moment = query('SELECT max(modified) < current_timestamp FROM laws."steps$files"')
    assert moment == [[True]]
    for missing in ('"steps$nothing"', '"nothing$files"'):
        with pytest.raises(Exception, match="does not exist"):
            query(f"SELECT * FROM laws.{missing}")


def test_every_switch_gives_the_same_rows(steps: Steps) -> None:
    queries = (
        "SELECT count(*), min(id), max(s) FROM laws.steps WHERE day >= 1",
        "SELECT id FROM laws.steps ORDER BY id DESC LIMIT 5",
        "SELECT count(*) FROM (SELECT id FROM laws.steps LIMIT 33)",
    )
    for name in (
        "pruning_enabled",
        "limit_pruning_enabled",
        "top_n_pruning_enabled",
        "metadata_answers_enabled",
        "statistics_enabled",
    ):
        for sql in queries:
            assert steps.stack.query(sql, {name: "false"}) == steps.stack.query(sql), (name, sql)
    late = {"metadata_wait": "0s"}
    for sql in queries:
        assert steps.stack.query(sql, late) == steps.stack.query(sql)


def test_one_listing_serves_a_query(steps: Steps) -> None:
    """The files that are answered for are those that are scanned: a query sees one file set."""
    sql = (
        "SELECT (SELECT count(*) FROM laws.steps), "
        "(SELECT count(*) FROM laws.steps WHERE id % 1 = 0)"
    )
    assert steps.stack.query(sql) == [[TOTAL, TOTAL]]
    text = plan(steps, sql)
    assert re.search(r"answered from statistics: count\(\*\) of 20 files", text)


def test_the_newest_family(steps: Steps, stack_483: Stack) -> None:
    """The same on Trino 483, whose interface to splits and dynamic filters is another."""
    newest = Steps(steps.root, stack_483)
    for sql in (
        "SELECT count(*), count(n), min(id), max(s), min(t), max(c), max(e) FROM laws.steps",
        "SELECT day, count(*), max(v) FROM laws.steps WHERE id >= 100 GROUP BY day",
        "SELECT DISTINCT day FROM laws.steps",
    ):
        answered(newest, sql)
    limit = "SELECT s FROM laws.steps WHERE day = 2 LIMIT 10"
    assert len(stack_483.query(limit)) == 10 and stack_483.kept_files(limit, answers=True) == 1
    top = "SELECT id FROM laws.steps ORDER BY v LIMIT 3"
    assert stack_483.query(top) == [[399], [398], [397]] and stack_483.kept_files(top) == 1
    join = "SELECT count(*) FROM laws.steps a JOIN (VALUES BIGINT '5', BIGINT '395') v(k) "
    join += "ON a.id = v.k"
    assert stack_483.query(join) == [[2]] and stack_483.kept_files(join) == 2
    beside = "SELECT x.id FROM (SELECT id FROM laws.steps LIMIT 400) x "
    beside += "JOIN (VALUES BIGINT '398') v(k) ON x.id = v.k"
    assert stack_483.query(beside) == [[398]]
    assert stack_483.query('SELECT count(*) FROM laws."steps$files"') == [[DAYS * FILES]]
    stats = stack_483.query("SHOW STATS FOR (SELECT * FROM laws.steps WHERE day = 1)")
    assert stats[-1][4] == 100.0
