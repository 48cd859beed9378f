"""Statements: any text parses or is refused; what is printed parses to the same statement."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bridge.kernel.errors import BridgeError
from bridge.segments.sql import statements as s
from bridge.segments.sql.parser import parse

WORDS = (
    "ALTER TABLE ADD SEGMENT LOCATION SHOW SEGMENTS FOR ON DELETE FROM WHERE . ID IN ( ) , ; = < > "
    "CREATE DATAMAP INDEX MATERIALIZED VIEW USING 'mv' 'minmax' 'bloomfilter' AS SELECT a b t * "
    "DMPROPERTIES TBLPROPERTIES 'format'='csv' 'INDEX_COLUMNS'='a' STORED BY 'CarbonData' COMPACT "
    "'CUSTOM' 'MINOR' DROP COLUMNS CHANGE int decimal(10,2) array<int> REBUILD CLEAN FILES DESC IF "
    "NOT EXISTS SORT WITH DEFERRED `x` 'SELECT a FROM t' 0 0.1 /* -- ' ` \" ... STARTTIME BEFORE "
    "HISTORY AND OPTIONS SET UNSET SKEWED LOCATION SERDEPROPERTIES FILEFORMAT 'force'='true'"
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(WORDS.split()), max_size=25).map(" ".join),
    st.lists(st.one_of(st.sampled_from(WORDS.split()), st.text(max_size=5)), max_size=15).map(
        " ".join
    ),
)

name = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
value = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
table = st.builds(s.Name, name, st.none() | name)


def unique(of: st.SearchStrategy[str], least: int = 1) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(of, min_size=least, max_size=3, unique_by=str.lower).map(tuple)


def properties(least: int = 0) -> st.SearchStrategy[s.Properties]:
    """Keys that no statement has a meaning for."""
    keys = value.map(lambda key: f"csv.{key}")
    pairs = st.lists(st.tuples(keys, value), min_size=least, max_size=3,
                     unique_by=lambda pair: pair[0].lower())  # fmt: skip
    return pairs.map(tuple)


types = st.sampled_from(["int", "string", "decimal(10,2)", "map<string,array<struct<a:int>>>"])
columns = st.lists(
    st.builds(s.ColumnDefinition, name, types, st.none() | value),
    min_size=1, max_size=3, unique_by=lambda c: c.name.lower(),
).map(tuple)  # fmt: skip
ids = unique(st.from_regex(r"[0-9]{1,3}(\.[0-9])?", fullmatch=True))
kinds = st.sampled_from(["minmax", "bloomfilter", "values"])
path = value.filter(str.strip)


def object_statement(of: type, **more: st.SearchStrategy[object]) -> st.SearchStrategy[s.Statement]:
    """Indexes are named with their table; others may be."""
    return st.one_of(
        st.builds(of, st.just(s.ObjectKind.INDEX), table, table=table, **more),
        st.builds(of, st.sampled_from([s.ObjectKind.VIEW, s.ObjectKind.DATAMAP]), table,
                  table=st.none() | table, **more),
    )  # fmt: skip


STATEMENTS: st.SearchStrategy[s.Statement] = st.one_of(
    st.builds(
        s.CreateTable, table, columns, st.sampled_from(["csv", "json"]), properties(),
        st.none() | value, st.none() | value, st.booleans(),
    ),
    st.builds(
        s.CreateTable, table, columns.map(lambda c: c[:1]), st.just("csv"),
        partition_columns=st.builds(
            s.ColumnDefinition, name.map(lambda n: f"p_{n}"), types, st.none() | value
        ).map(lambda c: (c,)),
    ).filter(lambda t: t.columns[0].name.lower() != t.partition_columns[0].name.lower()),
    st.builds(s.DropTable, table, st.booleans()),
    st.builds(s.RenameTable, table, table),
    st.builds(s.DropColumns, table, unique(name)),
    st.builds(s.ChangeType, table, name, types),
    st.builds(s.SetProperties, table, properties(1)),
    st.builds(s.UnsetProperties, table, unique(value)),
    st.builds(s.Describe, table, st.booleans()),
    st.builds(s.ShowCreateTable, table),
    st.builds(s.AddSegment, table, path, st.none() | st.just("json"), properties()),
    st.builds(
        s.AddSegment, table, st.just(""), st.none(), properties(), table, properties()
    ),
    st.builds(
        s.ShowSegments, table, st.none() | st.integers(0, 99), st.none(), st.booleans()
    ),
    st.builds(s.DeleteSegments, table, ids),
    st.builds(s.DeleteSegmentsBefore, table, st.datetimes().map(str)),
    st.builds(s.SwitchSegments, table, ids, st.booleans()),
    st.builds(s.RefreshSegments, table, st.just(()) | ids),
    st.builds(s.Compact, table, st.just(s.CompactionKind.CUSTOM), ids, st.booleans()),
    st.builds(
        s.Compact, table, st.sampled_from([s.CompactionKind.MINOR, s.CompactionKind.MAJOR]),
        st.just(()), st.booleans(),
    ),
    st.builds(s.CleanFiles, table, st.lists(
        st.tuples(st.sampled_from(s.CLEAN_OPTIONS), st.sampled_from(["true", "FALSE"])),
        max_size=3, unique_by=lambda pair: pair[0],
    ).map(tuple)),
    st.builds(
        s.CreateIndex, name, table, kinds, unique(name, 0), properties(), st.booleans(),
        st.booleans(),
    ),
    st.builds(
        s.CreateView, table, table, unique(name, 0), unique(name, 0), properties(), st.booleans(),
        st.booleans(),
    ),
    object_statement(s.DropObject, if_exists=st.booleans()),
    object_statement(s.RebuildObject),
    object_statement(s.SwitchObject, switch=st.sampled_from(list(s.IndexSwitch))),
    st.builds(s.ShowObjects, st.sampled_from(list(s.ObjectKind)), st.none() | table),
)  # fmt: skip


@given(TEXTS)
def test_any_text_parses_or_is_refused_with_a_remedy(text: str) -> None:
    try:
        found = parse(text)
    except BridgeError as e:
        assert e.code in ("INVALID_STATEMENT", "OPERATION_BLOCKED", "UNSUPPORTED_TYPE")
        assert e.message and e.hint
        return
    assert parse(";".join(map(str, found))) == found


@given(st.lists(STATEMENTS, max_size=3).map(tuple))
def test_what_is_printed_parses_to_the_same_statements(wanted: tuple[s.Statement, ...]) -> None:
    assert parse(";\n".join(map(str, wanted))) == wanted
