"""How views are defined: columns, order, layout, and what is refused by name."""

from __future__ import annotations

import pytest

from bridge.kernel.errors import ColumnNotFound, InvalidRequest, UnsupportedType
from bridge.kernel.types import BIGINT, INTEGER, STRING, array
from bridge.segments.views.definition import SortScope, define_view
from bridge.segments.views.query import parse_view_query
from bridge.table.model import Column

COLUMNS = (
    Column("a", INTEGER),
    Column("b", STRING),
    Column("c", BIGINT),
    Column("l", array(INTEGER)),
)


def test_the_properties_of_the_document_are_taken() -> None:
    defined = define_view(
        "Hot",
        COLUMNS,
        ["A", "b", "c"],
        properties={
            "sort_columns": "b, a",
            "SORT_SCOPE": "local_sort",
            "TABLE_BLOCKSIZE": "64MB",
            "DICTIONATY_INCLUDE": "b",
            "NO_INVERTED_INDEX": "a",
        },
    )
    view = defined.view
    assert (view.name, view.columns, view.sort_columns) == ("hot", ("a", "b", "c"), ("b", "a"))
    assert view.sort_scope is SortScope.LOCAL_SORT
    assert view.file_bytes == 64 << 20 and view.dictionary == ("b",)
    assert "NO_INVERTED_INDEX has no effect" in defined.notices[0]


def test_without_sort_columns_the_order_stays() -> None:
    assert define_view("v", COLUMNS, ["a"]).view.sort_scope is SortScope.NO_SORT
    unsorted = define_view("v", COLUMNS, ["a"], ["a"], {"SORT_SCOPE": "NO_SORT"}).view
    assert unsorted.sort_columns == ()


@pytest.mark.parametrize(
    ("columns", "sort", "properties", "error", "text"),
    [
        (["x"], [], {}, ColumnNotFound, "'x'"),
        ([], [], {}, InvalidRequest, "no column"),
        (["a", "A"], [], {}, InvalidRequest, "twice"),
        (["a"], ["b"], {}, InvalidRequest, "'b'"),
        (["l"], ["l"], {}, UnsupportedType, "array<int>"),
        (["a"], ["a"], {"SORT_COLUMNS": "a"}, InvalidRequest, "both"),
        (["a"], ["a"], {"SORT_SCOPE": "BATCH_SORT"}, InvalidRequest, "BATCH_SORT"),
        (["a"], [], {"SORT_SCOPE": "GLOBAL_SORT"}, InvalidRequest, "without a sort column"),
        (["a"], [], {"TABLE_BLOCKSIZE": "many"}, InvalidRequest, "'many'"),
        (["a"], [], {"DICTIONARY_INCLUDE": "b"}, InvalidRequest, "'b'"),
        (["a"], [], {"COLOUR": "red"}, InvalidRequest, "COLOUR"),
    ],
)
def test_what_is_wrong_is_named(
    columns: list[str], sort: list[str], properties: dict[str, str], error: type, text: str
) -> None:
    with pytest.raises(error, match=text):
        define_view("v", COLUMNS, columns, sort, properties)


def test_a_query_names_columns() -> None:
    asked = parse_view_query("SELECT t.a, `B` FROM db.T AS t")
    assert (asked.schema, asked.table, asked.columns) == ("db", "t", ("a", "b"))
    assert parse_view_query("select * from t").columns == ("*",)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("SELECT a FROM t JOIN u ON t.a = u.a", "JOIN"),
        ("SELECT a FROM t, u", "JOIN"),
        ("SELECT max(a) FROM t", "aggregate"),
        ("SELECT a, count(*) FROM t GROUP BY a", "GROUP BY"),
        ("SELECT 1 + sum(a) FROM t", "aggregate"),
        ("SELECT a + 1 FROM t", "expression"),
        ("SELECT a AS b FROM t", "renames"),
        ("SELECT DISTINCT a FROM t", "DISTINCT"),
        ("SELECT a FROM t WHERE a > 1", "WHERE"),
        ("SELECT a FROM t ORDER BY a", "ORDER BY"),
        ("SELECT a FROM t LIMIT 1", "LIMIT"),
        ("SELECT a FROM t UNION SELECT a FROM t", "UNION"),
        ("SELECT a FROM (SELECT a FROM t)", "one table"),
        ("WITH u AS (SELECT 1) SELECT a FROM u", "WITH"),
        ("SELECT a, row_number() OVER (ORDER BY a) FROM t", "expression|aggregate"),
        ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE|reads|one table"),
        ("DROP TABLE t", "DROP"),
        ("SELECT a FROM t; SELECT a FROM t", "one query"),
        ("SELECT FROM", "parse|one table"),
    ],
)
def test_more_than_columns_is_refused_by_name(query: str, text: str) -> None:
    with pytest.raises(InvalidRequest, match=text):
        parse_view_query(query)
