"""Real Trino over real files, planned by a real planner over a real metastore; the oracle is
pyarrow.
"""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bridge.table.model import TableName
from tests.engines.everything import CASES, Case
from tests.engines.stack import Stack

TABLE = TableName("laws", "everything")


def ids(stack: Stack, where: str, *, session: dict[str, str] | None = None) -> list[int]:
    rows = stack.query(f"SELECT id FROM laws.everything WHERE {where}", session)
    return sorted(row[0] for row in rows)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.sql)
def test_predicate(stack: Stack, case: Case) -> None:
    expected = sorted(stack.everything.rows.filter(case.arrow)["id"].to_pylist())
    assert ids(stack, case.sql) == expected
    if case.prunes:
        kept = stack.kept_files(f"SELECT count(*) FROM laws.everything WHERE {case.sql}")
        assert kept < stack.everything.files, f"{kept} files kept"


def test_every_column_reads_as_pyarrow_reads_it(stack: Stack) -> None:
    columns = "id, flag, tiny, small, num, maybe, r, d, dec, wide, day, ts, name, code, raw, p, q"
    rows = stack.query(f"SELECT {columns} FROM laws.everything ORDER BY id")
    expected = stack.everything.rows.select(columns.split(", ")).to_pylist()
    assert len(rows) == len(expected)
    for got, want in zip(rows, expected, strict=True):
        assert [repr(_plain(v)) for v in got] == [repr(_plain(v)) for v in want.values()]


def _plain(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


def test_nested_values(stack: Stack) -> None:
    rows = stack.query("SELECT st.a, st.b, list, tags['k'] FROM laws.everything WHERE id = 22")
    assert rows == [[22, "s22", [22, 23], 22]]


def test_unpruned_is_the_same(stack: Stack) -> None:
    off = {"pruning_enabled": "false"}
    assert ids(stack, "id < 30", session=off) == list(range(30))


def test_counts_and_no_columns(stack: Stack) -> None:
    total = stack.everything.rows.num_rows
    assert stack.query("SELECT count(*) FROM laws.everything") == [[total]]
    assert stack.query("SELECT count(*), sum(id) FROM laws.everything WHERE q = 2") == [
        [150, 33675]
    ]
    assert stack.query("SELECT DISTINCT p, q FROM laws.everything WHERE q = 2") == [["x=y/z", 2]]


def test_hidden_columns(stack: Stack) -> None:
    rows = stack.query(
        'SELECT DISTINCT "$path", "$file_size", "$partition" FROM laws.everything WHERE id = 3'
    )
    (path, size, partition) = rows[0]
    assert path.startswith("file:///") and size > 0 and partition == "p=a b/q=1"
    again = stack.query(f"""SELECT count(*) FROM laws.everything WHERE "$path" = '{path}'""")
    assert again == [[25]]
    kept = stack.kept_files(f"""SELECT id FROM laws.everything WHERE "$path" = '{path}'""")
    assert kept == 1
    assert stack.query(
        f'SELECT count(*) FROM laws.everything WHERE "$file_size" <> {size} AND id = 3'
    ) == [[0]]
    moment = 'SELECT count(*) FROM laws.everything WHERE "$file_modified_time" > TIMESTAMP '
    assert stack.query(moment + "'2001-01-01 00:00:00 UTC'") == [[750]]
    assert stack.query(moment + "'2999-01-01 00:00:00 UTC'") == [[0]]


def test_join_with_dynamic_filter(stack: Stack) -> None:
    sql = (
        "SELECT count(*), min(e.id), max(e.id) FROM laws.everything e "
        "JOIN (VALUES BIGINT '5', BIGINT '6', BIGINT '700') AS v(k) ON e.id = v.k"
    )
    assert stack.query(sql) == [[3, 5, 700]]
    assert stack.kept_files(sql) < stack.everything.files


def test_a_join_filter_on_a_key_prunes_partitions(stack: Stack) -> None:
    sql = (
        "SELECT count(*), count(DISTINCT e.q) FROM laws.everything e "
        "JOIN (SELECT q + 0 AS k FROM laws.everything WHERE id = 3) AS v ON e.q = v.k"
    )
    assert stack.query(sql) == [[150, 1]]
    text = stack.analyzed(sql)
    counts = re.findall(r"skipbridge partitions dynamic-filters (\w+).*?(?:total=|=\s*)(\d+)", text)
    found = {name: int(n) for name, n in counts}
    assert 0 < found["kept"] < found["total"], text


def test_self_join_sees_one_file_set(stack: Stack) -> None:
    sql = "SELECT count(*) FROM laws.everything a JOIN laws.everything b ON a.id = b.id"
    assert stack.query(sql) == [[750]]


def test_limit(stack: Stack) -> None:
    assert len(stack.query("SELECT id FROM laws.everything LIMIT 7")) == 7


def test_tables_and_columns_are_listed(stack: Stack) -> None:
    assert ["laws"] in stack.query("SHOW SCHEMAS")
    assert ["everything"] in stack.query("SHOW TABLES FROM laws")
    described = {row[0]: row[1] for row in stack.query("DESCRIBE laws.everything")}
    assert described["dec"] == "decimal(10,2)"
    assert described["fixed"] == "char(4)"
    assert described["code"] == "varchar(5)"
    assert "$path" not in described


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM laws.nothing", "does not exist"),
        ("SELECT nothing FROM laws.everything", "cannot be resolved"),
        ("INSERT INTO laws.everything (id) VALUES (1)", "not support"),
        ("DELETE FROM laws.everything WHERE id = 1", "not support"),
        ("CREATE TABLE laws.t AS SELECT 1 x", "not support"),
        ("DROP TABLE laws.everything", "not support"),
    ],
)
def test_refusals(stack: Stack, sql: str, words: str) -> None:
    with pytest.raises(Exception, match=words):
        stack.query(sql)


def test_new_file_is_read_at_once(stack: Stack) -> None:
    """Correctness rule 19: the index does not know it, so it is read."""
    directory = stack.everything.partitions[0].location.removeprefix("file://")
    source = pq.read_table(f"{directory}/f0.parquet").slice(0, 1)
    index = source.schema.get_field_index("id")
    source = source.set_column(index, source.schema.field("id"), [[5_000_000]])
    path = f"{directory}/late.parquet"
    pq.write_table(source, path)
    try:
        assert ids(stack, "id = 5000000") == [5_000_000]
    finally:
        Path(path).unlink()


def test_statistics_reach_the_optimiser(stack: Stack) -> None:
    rows = {row[0]: row for row in stack.query("SHOW STATS FOR laws.everything")}
    assert rows[None][4] == 750.0
    assert rows["id"][5:7] == ["0", "749"]
    assert rows["num"][3] == pytest.approx(108 / 750)


def test_planner_restarted_between_queries(stack: Stack) -> None:
    assert ids(stack, "id = 77") == [77]
    stack.restart_planner()
    assert ids(stack, "id = 77") == [77]


def test_planner_down_is_one_clear_error(stack: Stack) -> None:
    stack.stop_planner()
    try:
        with pytest.raises(Exception, match="skipbridge serve") as error:
            stack.query("SELECT count(*) FROM laws.everything")
        assert stack.planner_address in str(error.value)
    finally:
        stack.start_planner()
    assert stack.query("SELECT count(*) FROM laws.everything") == [[750]]


def test_planner_killed_in_the_middle_loses_no_row(stack: Stack) -> None:
    """A query either answers completely or fails; it is never short of rows."""
    sql = (
        "SELECT count(*) FROM laws.everything a CROSS JOIN laws.everything b "
        "CROSS JOIN (VALUES 1, 2, 3, 4) v(x)"
    )
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(stack.query(sql))
        except Exception as e:
            outcome.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.15)
    stack.restart_planner()
    thread.join(60)
    (result,) = outcome
    assert isinstance(result, Exception) or result == [[750 * 750 * 4]]
    assert stack.query("SELECT count(*) FROM laws.everything") == [[750]]
