"""How views are defined: columns, order, layout, and what is refused by name."""

from __future__ import annotations

import pytest

from bridge.kernel.errors import ColumnNotFound, InvalidRequest, UnsupportedType
from bridge.kernel.types import BIGINT, INTEGER, STRING, array
from bridge.segments.views.definition import SortScope, define_view
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
