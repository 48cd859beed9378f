"""Statements run: over directories, without a metastore."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import bridge
from bridge.app.cli.main import cli
from bridge.kernel.errors import BridgeError
from bridge.segments.statements.context import SqlResult
from bridge.storage.local_disk.local import LocalStorage
from bridge.table.segments.log import SegmentLog

Sql = Callable[[str], list[SqlResult]]
Run = Callable[..., Result]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table's name in statements: its directory. Facts lie beside it, two files a day."""
    for day in range(4):
        for part in range(2):
            path = tmp_path / f"day{day}" / f"{part}.parquet"
            path.parent.mkdir(exist_ok=True)
            first = 100 * day + 10 * part
            pq.write_table(
                pa.table({"caller": range(first, first + 10), "place": ["rome", "oslo"] * 5}), path
            )
            past = time.time() - 3600
            os.utime(path, (past, past))
    return f"`{tmp_path}/calls`"


@pytest.fixture
def sql(table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sql:
    """Runs statements, T being the table, on a table with two segments."""
    monkeypatch.setenv("SKIPBRIDGE_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setenv("SKIPBRIDGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run(text: str) -> list[SqlResult]:
        with bridge.connect(metastore_uri="thrift://127.0.0.1:1") as session:
            return session.sql(text.replace("T!", table), local=True)

    run(
        "CREATE TABLE T! (caller bigint COMMENT 'who', place string) COMMENT 'calls' "
        "STORED AS parquet; ALTER TABLE T! ADD SEGMENT LOCATION 'day0'; "
        "ALTER TABLE T! ADD SEGMENT 'day1'"
    )
    return run


@pytest.fixture
def run(sql: Sql) -> Run:
    return lambda *words: CliRunner().invoke(cli, ["sql", "--local", *map(str, words)])


def rows(result: SqlResult) -> list[dict[str, object]]:
    return [dict(zip(result.columns, row, strict=True)) for row in result.rows]


def ids(sql: Sql) -> list[object]:
    """Of the segments that queries read, oldest first."""
    found = rows(sql("SHOW SEGMENTS ON T!")[0])
    return [row["id"] for row in reversed(found) if row["status"] == "Success"]


def facts(tmp_path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.glob("day*/*")}


def test_segments_are_shown_newest_first(sql: Sql) -> None:
    (shown,) = sql("SHOW SEGMENTS FOR TABLE T!")
    assert [(r["id"], r["status"], r["format"], r["files"]) for r in rows(shown)] == [
        ("1", "Success", "parquet", 2),
        ("0", "Success", "parquet", 2),
    ]
    assert all(isinstance(r["bytes"], int) and r["bytes"] > 0 for r in rows(shown))
    assert len(sql("SHOW SEGMENTS FOR TABLE T! LIMIT 1")[0].rows) == 1


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT id FROM calls_segments", [("1",), ("0",)]),
        ("SELECT id, files FROM calls_segments WHERE id = '0' AND files > 1", [("0", 2)]),
        ("(SELECT ID FROM calls_segments ORDER BY id LIMIT 1)", [("0",)]),
        ("SELECT id FROM calls_segments WHERE merged_into IS NULL AND id IN ('1', '7')", [("1",)]),
        ("SELECT id FROM calls_segments WHERE status LIKE 'X%' OR NOT files >= 2", []),
        ("SELECT id FROM calls_segments WHERE merged_into <> 'x'", []),
        ("SELECT id FROM calls_segments WHERE files BETWEEN 1 AND 2 ORDER BY bytes, id", None),
    ],
)
def test_a_query_over_the_listing(
    sql: Sql, query: str, wanted: list[tuple[object, ...]] | None
) -> None:
    found = sql(f"SHOW SEGMENTS ON T! AS {query}")[0]
    assert list(found.rows) == wanted if wanted is not None else len(found.rows) == 2


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT count(*) FROM calls_segments", "COUNT"),
        ("SELECT id FROM other", "other"),
        ("SELECT id FROM db.calls_segments", "db.calls_segments"),
        ("SELECT id FROM calls_segments JOIN calls_segments", "JOIN"),
        ("SELECT DISTINCT id FROM calls_segments", "DISTINCT"),
        ("SELECT status FROM calls_segments GROUP BY status", "GROUP"),
        ("SELECT id FROM calls_segments WHERE id IN (SELECT id FROM calls_segments)", "subquery"),
        ("SELECT nothing FROM calls_segments", "nothing"),
        ("SELECT id FROM calls_segments UNION SELECT id FROM calls_segments", "UNION"),
        ("SELECT id FROM", "not a query"),
    ],
)
def test_a_query_that_is_not_simple_is_refused_before_anything_runs(
    sql: Sql, query: str, what: str
) -> None:
    with pytest.raises(BridgeError) as caught:
        sql(f"DELETE FROM TABLE T! WHERE SEGMENT.ID IN (0); SHOW SEGMENTS ON T! AS {query}")
    assert caught.value.code == "INVALID_STATEMENT" and what in str(caught.value)
    assert ids(sql) == ["0", "1"]


def test_delete_disable_compact_and_clean_leave_every_fact_file(sql: Sql, tmp_path: Path) -> None:
    before = facts(tmp_path)
    sql("ALTER TABLE T! ADD SEGMENT 'day2,day3/0.parquet'")
    sql("ALTER TABLE T! DISABLE SEGMENTS (1)")
    assert ids(sql) == ["0", "2"]
    assert "already" in sql("ALTER TABLE T! DISABLE SEGMENTS (1)")[0].summary
    sql("ALTER TABLE T! ENABLE SEGMENTS (1); DELETE FROM TABLE T! WHERE SEGMENT.ID IN (0)")
    assert ids(sql) == ["1", "2"]
    (done,) = sql("ALTER TABLE T! COMPACT 'CUSTOM' WHERE SEGMENT.ID IN (1, 2)")
    assert "segments 1, 2 became 1.1" in done.summary
    assert ids(sql) == ["1.1"]
    assert "nothing to merge" in sql("ALTER TABLE T! COMPACT 'MINOR'")[0].summary
    assert "nothing to merge" in sql("ALTER TABLE T! COMPACT 'MAJOR'")[0].summary
    sql("ALTER TABLE T! REFRESH SEGMENTS; CLEAN FILES FOR TABLE T!")
    sql("DELETE FROM TABLE T! WHERE SEGMENT.STARTTIME BEFORE '2000-01-01 00:00:00'")
    assert ids(sql) == ["1.1"]
    sql("DELETE FROM TABLE T! WHERE SEGMENT.STARTTIME BEFORE '2999-01-01'; DROP TABLE T!")
    assert facts(tmp_path) == before


def test_clean_forgets_segments_and_history_tells_of_them(sql: Sql, tmp_path: Path) -> None:
    before = facts(tmp_path)

    def history() -> list[tuple[object, object]]:
        (shown,) = sql("SHOW HISTORY SEGMENTS ON T!")
        return [(row["id"], row["status"]) for row in reversed(rows(shown))]

    def own() -> set[str]:
        return {str(p) for p in (tmp_path / "calls").rglob("*") if p.is_file()}

    (done,) = sql("ALTER TABLE T! COMPACT 'CUSTOM' WHERE SEGMENT.ID IN (0, 1) AND CLEAN FILES")
    assert "became 0.1; segments 0, 1 forgotten, 0 of skipbridge's own files" in done.summary
    assert [row["id"] for row in rows(sql("SHOW SEGMENTS ON T!")[0])] == ["0.1"]
    assert sorted(history()) == [("0", "Compacted"), ("0.1", "Success"), ("1", "Compacted")]
    named = "SHOW HISTORY SEGMENTS ON T! AS SELECT id FROM calls_segments WHERE merged_into = '0.1'"
    assert sorted(sql(named)[0].rows) == [("0",), ("1",)]

    sql("ALTER TABLE T! ADD SEGMENT 'day2'; DELETE FROM TABLE T! WHERE SEGMENT.ID IN (2)")
    held = own()
    (young,) = sql("CLEAN FILES FOR TABLE T! OPTIONS('dryrun'='true')")
    assert "segment 2 would be forgotten, 0 of" in young.summary
    (dry,) = sql("CLEAN FILES FOR TABLE T! OPTIONS('dryrun'='true', 'force'='true')")
    assert own() == held and dry.report is not None and dry.report["segments"] == ["2"]
    assert ("2", "Marked for Delete") in history()
    (done,) = sql("CLEAN FILES FOR TABLE T! OPTIONS('force'='true', 'statistics'='true')")
    assert done.report is not None and dry.report["deleted_files"] == done.report["deleted_files"]
    assert len(held - own()) == done.report["deleted_files"] > 0
    assert "statistics" in done.notices[0]
    assert history() == [("0.1", "Success")]
    assert ids(sql) == ["0.1"] and facts(tmp_path) == before


def test_times_are_in_utc_unless_they_say_else(sql: Sql) -> None:
    started = str(rows(sql("SHOW SEGMENTS ON T!")[0])[0]["started"])
    sql(f"DELETE FROM TABLE T! WHERE SEGMENT.STARTTIME BEFORE '{started}'")
    assert ids(sql) == ["1"] and started.endswith("+00:00")
    started = started.removesuffix("+00:00")
    sql(f"DELETE FROM TABLE T! WHERE SEGMENT.STARTTIME BEFORE '{started}'")
    assert ids(sql) == ["1"]
    sql(f"DELETE FROM TABLE T! WHERE SEGMENT.STARTTIME BEFORE '{started}+02:00'")
    assert ids(sql) == ["1"]
    sql(f"DELETE FROM TABLE T! WHERE SEGMENT.STARTTIME BEFORE '{started}-02:00'")
    assert ids(sql) == []
    with pytest.raises(BridgeError, match="'yesterday' is not a time"):
        sql("DROP TABLE T!; DELETE FROM TABLE T! WHERE SEGMENT.STARTTIME BEFORE 'yesterday'")
    sql("DESC T!")


def test_describe_and_show_create_table(sql: Sql) -> None:
    assert sql("DESC T!")[0].rows == (("caller", "bigint", "who"), ("place", "string", ""))
    told = {row[0]: row[1] for row in sql("DESC FORMATTED T!")[0].rows}
    assert told["## format"] == "parquet"
    assert (told["## segments"], told["## files"], told["## comment"]) == ("2", "4", "calls")
    (shown,) = sql("SHOW CREATE TABLE T!")
    text = str(shown.rows[0][0])
    assert "STORED BY 'CarbonData'" in text and "'format'='parquet'" in text
    sql(f"DROP TABLE T!; {text}")
    assert sql("SHOW CREATE TABLE T!")[0].rows == shown.rows


def test_columns_change(sql: Sql) -> None:
    sql("ALTER TABLE T! DROP COLUMNS(place)")
    assert sql("DESC T!")[0].rows == (("caller", "bigint", "who"),)
    with pytest.raises(BridgeError) as caught:
        sql("ALTER TABLE T! CHANGE caller caller string")
    assert caught.value.code == "INVALID_REQUEST" and "caller" in str(caught.value)
    with pytest.raises(BridgeError, match="COLUMN_NOT_FOUND"):
        sql("ALTER TABLE T! DROP COLUMNS(place)")


def test_indexes_by_name(sql: Sql) -> None:
    (made,) = sql("CREATE DATAMAP r ON TABLE T! USING 'minmax'")
    assert made.report is not None and made.report["created"]
    (made,) = sql(
        "CREATE DATAMAP b ON TABLE T! USING 'bloomfilter' DMPROPERTIES("
        "'INDEX_COLUMNS'='caller, place', 'BLOOM_FPP'='0.001', 'BLOOM_SIZE'='640000')"
    )
    assert made.notices == (
        "BLOOM_SIZE changes nothing: the size of a bloom filter follows from the number of values",
    )
    sql("CREATE INDEX v ON T! (place) AS 'values' WITH DEFERRED REFRESH")
    sql("ALTER INDEX b ON T! INVISIBLE; REBUILD DATAMAP v ON TABLE T!")
    for shown in sql("SHOW DATAMAP ON TABLE T!; SHOW INDEXES ON T!"):
        assert [(r["name"], r["kind"], r["columns"], r["properties"]) for r in rows(shown)] == [
            ("r", "minmax", "", ""),
            ("b", "bloom", "caller, place", "fpp=0.001"),
            ("v", "values", "place", ""),
        ]
        assert [(r["deferred"], r["visible"]) for r in rows(shown)] == [
            (False, True),
            (False, False),
            (True, True),
        ]
    assert sql("SHOW MATERIALIZED VIEWS ON T!")[0].rows == ()
    assert "already" in sql("CREATE INDEX IF NOT EXISTS v ON T! (place) AS 'values'")[0].summary
    sql("ALTER DATAMAP b ON TABLE T! ENABLE; DROP INDEX b ON T!; DROP DATAMAP r ON TABLE T!")
    assert [r["name"] for r in rows(sql("SHOW INDEXES ON T!")[0])] == ["v"]
    assert "not there" in sql("DROP DATAMAP IF EXISTS b ON TABLE T!")[0].summary


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("DROP INDEX x ON T!", "INVALID_STATEMENT", "SHOW INDEXES"),
        ("REBUILD DATAMAP x ON TABLE T!", "INVALID_STATEMENT", "no datamap x"),
        ("ALTER MATERIALIZED VIEW x ON T! DISABLE", "INVALID_STATEMENT", "materialized view x"),
        ("CREATE INDEX i ON T! AS 'minmax' PROPERTIES('a'='b')", "INVALID_STATEMENT", "property a"),
        ("CREATE INDEX i ON T! (place) AS 'nonsense'", "INVALID_CONFIGURATION", "nonsense"),
        ("CREATE INDEX i ON T! (nothing) AS 'bloom'", "COLUMN_NOT_FOUND", "nothing"),
        ("ALTER TABLE T! SET TBLPROPERTIES('sort_scope'='x')", "OPERATION_BLOCKED", "sort_scope"),
        ("ALTER TABLE T! UNSET TBLPROPERTIES('comment')", "OPERATION_BLOCKED", "comment"),
        ("ALTER TABLE T! ADD SEGMENT 'day0'", "SEGMENT_OVERLAP", "day0"),
        ("ALTER TABLE T! ADD SEGMENT 'day2,day2'", "SEGMENT_OVERLAP", "day2"),
        ("ALTER TABLE T! ADD SEGMENT 'nowhere'", "FILE_UNREADABLE", "nowhere"),
        ("DELETE FROM TABLE T! WHERE SEGMENT.ID IN (7)", "SEGMENT_NOT_FOUND", "7"),
        ("ALTER TABLE T! COMPACT 'CUSTOM' WHERE SEGMENT.ID IN (1)", "INVALID_REQUEST", "two"),
        ("ALTER TABLE T! REFRESH SEGMENTS (9)", "SEGMENT_NOT_FOUND", "9"),
        ("DESC `a.b`", "INVALID_STATEMENT", "schema.table"),
        ("CREATE TABLE u (a int) STORED AS xml", "INVALID_REQUEST", "xml"),
        (
            "CREATE TABLE `./u` (a int) STORED AS csv TBLPROPERTIES('csv.header'='b')",
            "INVALID_REQUEST",
            "csv.header",
        ),
        (
            "CREATE TABLE `./u` (a int) STORED AS csv TBLPROPERTIES('SORT_COLUMNS'='a')",
            "INVALID_REQUEST",
            "sort_columns",
        ),
    ],
    ids=lambda value: value,
)
def test_a_mistake_is_told_with_its_remedy(sql: Sql, text: str, code: str, said: str) -> None:
    with pytest.raises(BridgeError) as caught:
        sql(text)
    assert caught.value.code == code and said in str(caught.value), str(caught.value)
    assert caught.value.hint
    assert ids(sql) == ["0", "1"]


def test_segments_are_refused_on_a_plain_directory(sql: Sql, tmp_path: Path) -> None:
    plain = f"`{tmp_path}/day2`"
    for text in (
        f"ALTER TABLE {plain} ADD SEGMENT LOCATION 'day3'",
        f"SHOW SEGMENTS ON {plain}",
        f"CREATE DATAMAP d ON TABLE {plain} USING 'minmax'",
        f"DESC FORMATTED {plain}",
        f"DROP TABLE {plain}",
    ):
        with pytest.raises(BridgeError) as caught:
            sql(text)
        assert caught.value.code == "OPERATION_BLOCKED" and caught.value.hint
    assert len(facts(tmp_path)) == 8


def test_a_statement_that_fails_names_itself_and_leaves_the_others(sql: Sql) -> None:
    with pytest.raises(BridgeError) as caught:
        sql("ALTER TABLE T! ADD SEGMENT 'day2'; ALTER TABLE T! ADD SEGMENT 'day1'; DROP TABLE T!")
    assert caught.value.message.startswith("statement 2 of 3: ")
    assert ids(sql) == ["0", "1", "2"]


def test_the_command_prints_rows_sentences_and_json(run: Run, table: str, tmp_path: Path) -> None:
    done = run(f"SHOW SEGMENTS ON {table}; ALTER TABLE {table} DISABLE SEGMENTS (0)")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["id", "status", "started"] and lines[1].startswith("1 ")
    assert lines[-1] == f"disabled segment 0 of {tmp_path}/calls"
    script = tmp_path / "calls.sql"
    script.write_text(f"DESC {table}; DESC {table} -- twice")
    done = run("--output", "json", "--file", script)
    found = json.loads(done.stdout)
    assert [len(one["rows"]) for one in found] == [2, 2]
    assert found[0]["rows"][0] == {"col_name": "caller", "data_type": "bigint", "comment": "who"}
    assert run("--file", "-").exit_code == 0
    assert run(" -- nothing").output == ""


def test_the_command_tells_what_is_wrong(run: Run, table: str, tmp_path: Path) -> None:
    for words, code, said in (
        ((f"INSERT INTO {table} VALUES (1)",), "OPERATION_BLOCKED", "ADD SEGMENT LOCATION"),
        (("SHOW SEGMENTS IN t",), "INVALID_STATEMENT", "line 1, column 15"),
        ((), "INVALID_REQUEST", "--file"),
        (("DESC t", "--file", "x"), "INVALID_REQUEST", "--file"),
        (("--file", tmp_path / "none.sql"), "INVALID_REQUEST", "none.sql"),
        (("DESC t",), "METASTORE_UNAVAILABLE", "127.0.0.1:1"),
    ):
        done = CliRunner().invoke(
            cli,
            ["sql", "--metastore-uri", "thrift://127.0.0.1:1", *map(str, words)],
        )
        assert f"error {code}: " in done.stderr and said in done.stderr, done.output
        assert "\n  -> " in done.stderr and done.stdout == "" and "Traceback" not in done.output
    done = run("--output", "json", f"DESC {table}; DESC `{tmp_path}/nothing`")
    assert done.exit_code == 2 and len(json.loads(done.stdout)) == 1


def test_explain_advises_statements(sql: Sql, table: str) -> None:
    """An index that `index build` makes would not know the segments that are added later."""
    place = table.strip("`")

    def advice(where: str) -> list[str]:
        found = CliRunner().invoke(cli, ["explain", place, where, "--output", "json"])
        return [each["remedy"] for each in json.loads(found.stdout)["not_used"]]

    (first,) = advice("caller = 105")
    words = shlex.split(first)
    assert words[:2] == ["skipbridge", "sql"] and words[2].startswith("CREATE INDEX bounds ON")
    done = CliRunner().invoke(cli, [*words[1:], "--local"])
    assert done.exit_code == 0, done.output
    assert advice("caller = 105") == []
    for text in advice("place LIKE '%sl%'"):
        assert CliRunner().invoke(cli, [*shlex.split(text)[1:], "--local"]).exit_code == 0
    assert advice("place LIKE '%sl%'") == []
    sql("DROP INDEX bounds ON T!")


def test_a_deferred_index_is_advised_to_be_built(sql: Sql, table: str) -> None:
    sql("CREATE INDEX later ON T! AS 'minmax' WITH DEFERRED REBUILD")
    shown = CliRunner().invoke(cli, ["explain", table.strip("`"), "caller = 105"]).stdout
    assert "skipbridge sql 'REFRESH INDEX later ON `./calls`'" in shown


def test_an_index_of_a_view_of_a_directory(sql: Sql, table: str) -> None:
    """The view's schema is the table's directory."""
    sql("CREATE MATERIALIZED VIEW T!.hot ON T! (caller) SORT BY (caller)")
    with pytest.raises(BridgeError, match="of another schema than its table"):
        sql("CREATE MATERIALIZED VIEW other.hot ON T! (caller)")
    sql("CREATE MATERIALIZED VIEW cold ON T! (place); DROP MATERIALIZED VIEW T!.cold")
    sql(
        "CREATE DATAMAP b ON TABLE T!.hot USING 'bloomfilter' "
        "DMPROPERTIES('INDEX_COLUMNS'='caller')"
    )
    (shown,) = sql("SHOW INDEXES ON T!.hot")
    assert [(row["name"], row["on"]) for row in rows(shown)] == [("b", "hot")]
    sql("REBUILD DATAMAP b ON T!.hot; ALTER INDEX b ON T!.hot INVISIBLE; REBUILD DATAMAP T!.hot")
    sql("DROP INDEX b ON T!.hot; ALTER MATERIALIZED VIEW T!.hot DISABLE")
    assert rows(sql("SHOW INDEXES ON T!.hot")[0]) == []
    with pytest.raises(BridgeError, match="no view cold"):
        sql("CREATE INDEX b ON TABLE T!.cold (caller) AS 'bloomfilter'")
    sql("DROP MATERIALIZED VIEW T!.hot")
    with pytest.raises(BridgeError, match="no view"):
        sql("DROP DATAMAP T!.hot")


def test_the_report_of_an_index_advises_statements(sql: Sql, table: str, tmp_path: Path) -> None:
    log = tmp_path / "predicates.log"
    sql("CREATE INDEX m ON T! AS 'minmax'")
    place = table.strip("`")
    with bridge.connect(planner_predicate_log=str(log)) as session:
        for _ in range(3):
            session.table(place).scan("place = 'paris'").explain()
        advice = {one.kind: one.how for one in session.table(place).index.report(log).advice}
    words = shlex.split(advice["bloom"])
    assert words[:2] == ["skipbridge", "sql"]
    sql(words[2])
    assert advice.get("cluster", "") == ""


def test_properties_of_a_view_act_on_its_files(sql: Sql, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    (tmp_path / "much").mkdir()
    for part in range(2):
        facts = {
            "caller": random.integers(0, 2**60, 200_000),
            "place": random.choice(["rome", "oslo", "bern"], 200_000),
        }
        pq.write_table(pa.table(facts), tmp_path / f"much/{part}.parquet")
    sql("ALTER TABLE T! ADD SEGMENT 'much'; DELETE FROM TABLE T! WHERE SEGMENT.ID IN (0, 1)")
    for name, scope in (("g", "global_sort"), ("n", "no_sort")):
        sql(
            f"CREATE DATAMAP T!.{name} USING 'mv' DMPROPERTIES('SORT_COLUMNS'='caller', "
            f"'SORT_SCOPE'='{scope}', 'DICTIONARY_INCLUDE'='place', 'TABLE_BLOCKSIZE'='1MB', "
            "'NO_INVERTED_INDEX'='caller') AS 'SELECT caller, place FROM T!'"
        )
    views = SegmentLog(LocalStorage(), f"file://{tmp_path}/calls").latest().definition.views
    for view, ordered in zip(views, (True, False), strict=True):
        directory = tmp_path / "calls/_segments/views" / view.id
        files = [path for path in directory.rglob("*.parquet") if ".skipbridge" not in path.parts]
        assert len(files) > 1 and max(path.stat().st_size for path in files) < 3 << 20
        ranges = []
        for path in files:
            group = pq.ParquetFile(path).metadata.row_group(0)
            encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in (0, 1)}
            assert "RLE_DICTIONARY" in encodings["place"]
            assert "RLE_DICTIONARY" not in encodings["caller"]
            values = pq.read_table(path)["caller"].to_pylist()
            assert (values == sorted(values)) == ordered
            ranges.append((values[0], values[-1]))
        if ordered:
            ranges.sort()
            assert all(a[1] <= b[0] for a, b in itertools.pairwise(ranges))
