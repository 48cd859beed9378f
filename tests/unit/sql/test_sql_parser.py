"""Each statement, word for word as the design document spells it, and in today's spelling."""

from __future__ import annotations

import pytest

from bridge.kernel.errors import BridgeError, InvalidStatement, UnsupportedType
from bridge.segments.sql import statements as s
from bridge.segments.sql.parser import parse

FACT = s.Name("fact_table")
COLUMNS = (s.ColumnDefinition("col1", "bigint"), s.ColumnDefinition("col2", "string"))
CSV = (("csv.delimiter", ","), ("csv.header", "col1,col2,col100"))
VIEW = s.CreateView(
    s.Name("fact_mv"),
    FACT,
    ("col1", "col2", "col20"),
    ("col1", "col5"),
    (
        ("DICTIONATY_INCLUDE", "col5, col10"),
        ("NO_INVERTED_INDEX", "col1, col5"),
        ("TABLE_BLOCKSIZE", "128MB"),
        ("SORT_SCOPE", "local_sort"),
    ),
)
DMPROPERTIES = """DMPROPERTIES(
  'SORT_COLUMNS'='col1, col5',
  'DICTIONATY_INCLUDE'='col5, col10',
  'NO_INVERTED_INDEX'='col1, col5',
  'TABLE_BLOCKSIZE'='128MB',
  'SORT_SCOPE'='local_sort')
as
  'SELECT col1, col2, col20 FROM fact_table';
"""
DATAMAP, INDEX, MV = s.ObjectKind.DATAMAP, s.ObjectKind.INDEX, s.ObjectKind.VIEW


def test_the_documents_statements_word_for_word() -> None:
    for key in ("sourceType", "format"):
        assert parse(f"""CREATE TABLE fact_table (
  col1 bigint, col2 string)
STORED BY 'CarbonData'
TBLPROPERTIES(
  '{key}'='csv',
  'csv.delimiter'=',',
  'csv.header'='col1,col2,col100');""") == (s.CreateTable(FACT, COLUMNS, "csv", CSV),)
    assert parse("""CREATE DATAMAP fact_dm1
ON TABLE fact_table
using 'minmax';

CREATE DATAMAP fact_dm2
ON TABLE fact_table
using 'bloomfilter'
DMPROPERTIES(
  'INDEX_COLUMNS'='col1');""") == (
        s.CreateIndex("fact_dm1", FACT, "minmax"),
        s.CreateIndex("fact_dm2", FACT, "bloomfilter", ("col1",)),
    )
    assert parse(f"CREATE DATAMAP fact_mv\nusing 'mv'\n{DMPROPERTIES}") == (VIEW,)
    assert parse(f"CREATE MATERIALIZE VIEW fact_mv\n{DMPROPERTIES}") == (VIEW,)
    assert parse("""ALTER TABLE fact_table
ADD SEGMENT LOCATION 'path/to/data1,path/to/data2'""") == (
        s.AddSegment(FACT, "path/to/data1,path/to/data2"),
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("alter table db.t add segment 'p1,p2'", s.AddSegment(s.Name("t", "db"), "p1,p2")),
        (
            "ALTER TABLE t ADD SEGMENT OPTIONS ('path'='p', 'format'='JSON', 'json.x'='1')",
            s.AddSegment(s.Name("t"), "p", "json", (("json.x", "1"),)),
        ),
        (
            "ALTER TABLE t ADD SEGMENT FROM TABLE h.old PARTITION (day='2024-05-01', n=3) "
            "OPTIONS ('strict'='true')",
            s.AddSegment(
                s.Name("t"),
                "",
                None,
                (("strict", "true"),),
                s.Name("old", "h"),
                (("day", "2024-05-01"), ("n", "3")),
            ),
        ),
        ("SHOW SEGMENTS FOR TABLE fact_table", s.ShowSegments(FACT)),
        ("show segments on fact_table limit 5", s.ShowSegments(FACT, 5)),
        (
            "SHOW SEGMENTS ON fact_table AS SELECT id FROM fact_table_segments",
            s.ShowSegments(FACT, None, "SELECT id FROM fact_table_segments"),
        ),
        (
            "DELETE FROM TABLE fact_table WHERE SEGMENT.ID IN (0,1)",
            s.DeleteSegments(FACT, ("0", "1")),
        ),
        (
            "DELETE FROM fact_table WHERE segment.id IN ('0.1', 2)",
            s.DeleteSegments(FACT, ("0.1", "2")),
        ),
        (
            "DELETE FROM TABLE fact_table WHERE SEGMENT.STARTTIME BEFORE '2019-09-11 12:05:06'",
            s.DeleteSegmentsBefore(FACT, "2019-09-11 12:05:06"),
        ),
        ("REBUILD DATAMAP d ON TABLE fact_table", s.RebuildObject(DATAMAP, s.Name("d"), FACT)),
        ("REBUILD DATAMAP v", s.RebuildObject(DATAMAP, s.Name("v"))),
        ("REFRESH MATERIALIZED VIEW db.v", s.RebuildObject(MV, s.Name("v", "db"))),
        ("REFRESH INDEX i ON fact_table", s.RebuildObject(INDEX, s.Name("i"), FACT)),
        ("ALTER MATERIALIZED VIEW v REBUILD", s.RebuildObject(MV, s.Name("v"))),
        (
            "DROP DATAMAP IF EXISTS d ON TABLE fact_table",
            s.DropObject(DATAMAP, s.Name("d"), FACT, True),
        ),
        ("DROP DATAMAP v", s.DropObject(DATAMAP, s.Name("v"))),
        ("DROP INDEX i ON fact_table", s.DropObject(INDEX, s.Name("i"), FACT)),
        ("DROP MATERIALIZED VIEW v", s.DropObject(MV, s.Name("v"))),
        ("SHOW DATAMAP ON TABLE fact_table", s.ShowObjects(DATAMAP, FACT)),
        ("SHOW DATAMAPS", s.ShowObjects(DATAMAP)),
        ("SHOW INDEXES ON fact_table", s.ShowObjects(INDEX, FACT)),
        ("SHOW MATERIALIZED VIEWS ON TABLE fact_table", s.ShowObjects(MV, FACT)),
        (
            "CREATE DATAMAP d ON TABLE t USING 'minmax' WITH DEFERRED REBUILD "
            "DMPROPERTIES('index_columns'='a, b', 'x'='y')",
            s.CreateIndex("d", s.Name("t"), "minmax", ("a", "b"), (("x", "y"),), True),
        ),
        (
            "CREATE INDEX IF NOT EXISTS i ON TABLE t (a, `b c`) AS 'bloomfilter' "
            "WITH DEFERRED REFRESH PROPERTIES ('BLOOM_FPP'='0.001')",
            s.CreateIndex(
                "i", s.Name("t"), "bloomfilter", ("a", "b c"), (("BLOOM_FPP", "0.001"),), True, True
            ),
        ),
        (
            "CREATE INDEX i ON t USING values (a)",
            s.CreateIndex("i", s.Name("t"), "values", ("a",)),
        ),
        (
            "CREATE MATERIALIZED VIEW v ON t (a, b) SORT BY (b)",
            s.CreateView(s.Name("v"), s.Name("t"), ("a", "b"), ("b",)),
        ),
        (
            "CREATE MATERIALIZED VIEW IF NOT EXISTS v WITH DEFERRED REFRESH AS "
            "SELECT f.a, b FROM db.t AS f SORT BY a, b",
            s.CreateView(
                s.Name("v"), s.Name("t", "db"), ("a", "b"), ("a", "b"), (), True, True
            ),
        ),
        (
            "CREATE DATAMAP v USING 'mv' AS SELECT * FROM t",
            s.CreateView(s.Name("v"), s.Name("t")),
        ),
        ("ALTER TABLE t DISABLE SEGMENT (1)", s.SwitchSegments(s.Name("t"), ("1",), False)),
        ("ALTER TABLE t ENABLE SEGMENTS (1, 2)", s.SwitchSegments(s.Name("t"), ("1", "2"), True)),
        ("ALTER TABLE t REFRESH SEGMENTS", s.RefreshSegments(s.Name("t"))),
        ("ALTER TABLE t REFRESH SEGMENT (3)", s.RefreshSegments(s.Name("t"), ("3",))),
        (
            "ALTER INDEX i ON TABLE t INVISIBLE",
            s.SwitchObject(INDEX, s.Name("i"), s.IndexSwitch.INVISIBLE, s.Name("t")),
        ),
        (
            "ALTER MATERIALIZED VIEW v DISABLE REWRITE",
            s.SwitchObject(MV, s.Name("v"), s.IndexSwitch.DISABLE),
        ),
        ("DESC fact_table", s.Describe(FACT)),
        ("DESC FORMATTED fact_table", s.Describe(FACT, True)),
        ("DESCRIBE EXTENDED db.t", s.Describe(s.Name("t", "db"), True)),
        ("DESC formatted", s.Describe(s.Name("formatted"))),
        ("SHOW CREATE TABLE t", s.ShowCreateTable(s.Name("t"))),
        ("ALTER TABLE t COMPACT 'MINOR'", s.Compact(s.Name("t"), s.CompactionKind.MINOR)),
        ("ALTER TABLE t COMPACT 'major'", s.Compact(s.Name("t"), s.CompactionKind.MAJOR)),
        (
            "ALTER TABLE t COMPACT 'CUSTOM' WHERE SEGMENT.ID IN (2,3,0.1)",
            s.Compact(s.Name("t"), s.CompactionKind.CUSTOM, ("2", "3", "0.1")),
        ),
        (
            "ALTER TABLE t COMPACT 'MINOR' AND CLEAN FILES",
            s.Compact(s.Name("t"), s.CompactionKind.MINOR, clean=True),
        ),
        (
            "ALTER TABLE t COMPACT 'CUSTOM' WHERE SEGMENT.ID IN (2,3) and clean files",
            s.Compact(s.Name("t"), s.CompactionKind.CUSTOM, ("2", "3"), True),
        ),
        ("SHOW HISTORY SEGMENTS ON t", s.ShowSegments(s.Name("t"), history=True)),
        ("CLEAN FILES FOR TABLE t", s.CleanFiles(s.Name("t"))),
        (
            "CLEAN FILES FOR TABLE t OPTIONS('DryRun'='true', 'force'='FALSE')",
            s.CleanFiles(s.Name("t"), (("DryRun", "true"), ("force", "FALSE"))),
        ),
        ("ALTER TABLE t RENAME TO u", s.RenameTable(s.Name("t"), s.Name("u"))),
        ("ALTER TABLE t DROP COLUMNS(a, b)", s.DropColumns(s.Name("t"), ("a", "b"))),
        ("ALTER TABLE t DROP COLUMN a", s.DropColumns(s.Name("t"), ("a",))),
        ("ALTER TABLE t CHANGE a a bigint", s.ChangeType(s.Name("t"), "a", "bigint")),
        (
            "ALTER TABLE t ALTER COLUMN a SET DATA TYPE decimal(10, 2)",
            s.ChangeType(s.Name("t"), "a", "decimal(10,2)"),
        ),
        (
            "ALTER TABLE t SET TBLPROPERTIES ('csv.null'='\\\\N')",
            s.SetProperties(s.Name("t"), (("csv.null", "\\N"),)),
        ),
        (
            "ALTER TABLE t UNSET TBLPROPERTIES IF EXISTS ('csv.null')",
            s.UnsetProperties(s.Name("t"), ("csv.null",)),
        ),
        ("DROP TABLE IF EXISTS db.t", s.DropTable(s.Name("t", "db"), True)),
        (
            "CREATE TABLE IF NOT EXISTS t (a struct<x:int, y:array<string>> COMMENT 'n') "
            "COMMENT 'calls' STORED AS json LOCATION 's3://b/t'",
            s.CreateTable(
                s.Name("t"),
                (s.ColumnDefinition("a", "struct<x:int,y:array<string>>", "n"),),
                "json", (), "calls", "s3://b/t", True,
            ),
        ),
        (
            "CREATE TABLE t (a double precision, b char(3)) STORED AS TEXTFILE",
            s.CreateTable(
                s.Name("t"),
                (s.ColumnDefinition("a", "double"), s.ColumnDefinition("b", "char(3)")),
                "text",
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_statement_is_understood_and_printed(text: str, wanted: s.Statement) -> None:
    assert parse(text) == (wanted,)
    assert parse(str(wanted)) == (wanted,)
    assert parse(f" /* so */ {text} -- it ends\n;;") == (wanted,)


def test_strings_have_the_escapes_of_hiveql() -> None:
    (found,) = parse(
        r"""ALTER TABLE t SET TBLPROPERTIES ('a'='it''s', 'b'='\t\u0001\001', "c"="d'\"e")"""
    )
    assert found == s.SetProperties(
        s.Name("t"), (("a", "it's"), ("b", "\t\1\1"), ("c", "d'\"e"))
    )  # fmt: skip


def test_several_statements_in_one_text() -> None:
    assert parse("DESC `a;b`; ;\n-- none; here\nDESC c") == (
        s.Describe(s.Name("a;b")),
        s.Describe(s.Name("c")),
    )
    assert parse(" -- nothing\n /* ; */ ;") == ()


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("SHOW SEGMNTS ON t", "line 1, column 6", "found SEGMNTS"),
        ("DESC t;\nDROP TABLE", "line 2, column 11", "found the end"),
        ("CREAT TABLE t", "line 1, column 1", "did you mean CREATE?"),
        ("SELECT 1", "line 1, column 8", "Trino or Hive"),
        ("SET carbon.input.segments.db.t = 1,3", "line 1", "SET SESSION bridge.segments"),
        ("DESC t u", "line 1, column 8", "expected the end of the statement"),
        ("DESC 'a", "line 1, column 6", "a string that starts here has no end"),
        ("DESC t /* a", "line 1, column 8", "a comment that starts here has no end"),
        ("DESC `a", "line 1, column 6", "a name that starts here has no end"),
        ("DESC ‘a’", "line 1, column 6", "typographic"),
        ("DESC #", "line 1, column 6", "'#'"),
        ("DESC 't'", "line 1, column 6", "write ` around names"),
        ("DESC a.b.c", "line 1, column 9", "schema.table"),
        ("CREATE TABLE t (a int, ..., b int) STORED AS csv", "line 1, column 24", "in full"),
        ("CREATE TABLE t (a int, A int) STORED AS csv", "line 1", "column A is named twice"),
        ("CREATE TABLE t (a int)", "t has no format", "'format'='csv'"),
        ("CREATE TABLE t (a int) TBLPROPERTIES('format'='csv')", "stores", "STORED BY"),
        ("CREATE TABLE t STORED AS csv", "no columns", "in brackets"),
        ("CREATE TABLE t (a int) STORED BY 'hbase'", "'hbase'", "'CarbonData'"),
        (
            "CREATE TABLE t (a int) STORED AS csv TBLPROPERTIES('format'='json')",
            "csv, json",
            "give one",
        ),
        (
            "CREATE TABLE t (a int) STORED AS csv TBLPROPERTIES('csv.x'='1', 'CSV.X'='2')",
            "CSV.X",
            "twice",
        ),
        ("CREATE TABLE t (a int) COMMENT 'x' COMMENT 'y'", "COMMENT", "twice"),
        ("ALTER TABLE t ADD SEGMENT LOCATION ''", "no path", "file:///data"),
        ("ALTER TABLE t ADD SEGMENT 'a' OPTIONS('path'='b')", "two paths", "LOCATION"),
        ("DELETE FROM TABLE t WHERE SEGMENT.ID IN ()", "column 42", "SHOW SEGMENTS"),
        ("DELETE FROM TABLE t WHERE SEGMENT.ID IN (x)", "found x", "SHOW SEGMENTS"),
        ("DELETE FROM TABLE t WHERE SEGMENT.ID IN (1,1)", "segment 1", "twice"),
        ("ALTER TABLE t COMPACT 'HUGE'", "'HUGE'", "'MINOR'"),
        ("ALTER TABLE t COMPACT 'MINOR' WHERE SEGMENT.ID IN (1)", "WHERE", "'CUSTOM'"),
        ("ALTER TABLE t COMPACT 'CUSTOM'", "expected WHERE", ""),
        ("ALTER TABLE t COMPACT 'MINOR' AND", "expected CLEAN", ""),
        ("CLEAN FILES FOR TABLE t OPTIONS('purge'='true')", "'purge'", "dryrun, force"),
        ("CLEAN FILES FOR TABLE t OPTIONS('force'='now')", "force is 'now'", "'true'"),
        ("SHOW HISTORY INDEXES ON t", "expected SEGMENTS", ""),
        ("ALTER TABLE t SET OWNER USER x", "expected TBLPROPERTIES", ""),
        ("CREATE DATAMAP d ON TABLE t", "no kind", "'minmax'"),
        ("CREATE DATAMAP d USING 'minmax'", "no table", "CREATE INDEX"),
        ("CREATE DATAMAP d ON TABLE t USING 'minmax' AS SELECT a FROM t", "minmax", "'mv'"),
        ("CREATE DATAMAP d ON TABLE u USING 'mv' AS SELECT a FROM t", "reads t", "ON TABLE"),
        ("CREATE DATAMAP v USING 'mv'", "no columns", "AS SELECT"),
        ("CREATE DATAMAP v USING 'mv' AS ''", "in the SELECT", ""),
        ("CREATE INDEX i ON t (a) AS 'minmax' PROPERTIES ('INDEX_COLUMNS'='a')", "repeats", ""),
        ("CREATE INDEX i ON t AS 'minmax' PROPERTIES ('INDEX_COLUMNS'='a,,b')", "a,,b", "'a, b'"),
        ("DROP INDEX i", "expected ON", ""),
        ("ALTER INDEX i ON t SHINY", "found SHINY", ""),
    ],
)  # fmt: skip
def test_a_wrong_text_is_told_with_its_place(text: str, place: str, said: str) -> None:
    with pytest.raises(InvalidStatement) as caught:
        parse(text)
    assert place in str(caught.value) and said in str(caught.value), str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("type", ["nonsense", "uniontype<int,string>", "decimal(x)", "array<int"])
def test_a_wrong_type_is_told(type: str) -> None:
    with pytest.raises((UnsupportedType, InvalidStatement)) as caught:
        parse(f"CREATE TABLE t (a {type}) STORED AS csv")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT a FROM t JOIN u ON t.x = u.x", "a join"),
        ("SELECT a FROM t f, u", "a join"),
        ("SELECT a FROM t LEFT OUTER JOIN u", "a join"),
        ("SELECT sum(a) FROM t", "an aggregate sum"),
        ("SELECT a, count(*) FROM t GROUP BY a", "an aggregate count"),
        ("SELECT a FROM t GROUP BY a", "an aggregate"),
        ("SELECT lower(a) FROM t", "a function lower"),
        ("SELECT a FROM t WHERE a > 1", "a condition"),
        ("SELECT DISTINCT a FROM t", "DISTINCT"),
        ("SELECT a FROM t ORDER BY a", "ORDER BY"),
        ("SELECT a FROM t LIMIT 5", "LIMIT"),
        ("SELECT a FROM t UNION SELECT a FROM u", "UNION"),
        ("SELECT a AS b FROM t", "another name for a"),
        ("SELECT a b FROM t", "another name for a"),
        ("SELECT a + 1 FROM t", "an expression"),
        ("SELECT 1 FROM t", "an expression"),
        ("SELECT CASE a WHEN 1 THEN 2 END FROM t", "an expression"),
        ("SELECT a FROM (SELECT a FROM t)", "a subquery"),
        ("SELECT u.a FROM t", "u.a"),
        ("SELECT a, a FROM t", "twice"),
        ("SELECT a, ..., b FROM t", "in full"),
        ("SELECT a FROM t extra words", "found words"),
    ],
)
def test_a_view_holds_columns_of_one_table(query: str, what: str) -> None:
    quoted = s.literal(query)
    for text in (
        f"CREATE MATERIALIZED VIEW v AS {query}",
        f"CREATE DATAMAP v USING 'mv' AS {quoted}",
    ):
        with pytest.raises(BridgeError) as caught:
            parse(text)
        assert what in str(caught.value)
        assert caught.value.code == "INVALID_STATEMENT" and caught.value.hint
