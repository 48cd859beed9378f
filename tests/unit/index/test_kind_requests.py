"""What is asked of an index is judged before a file is read or Spark begins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.registry import kind
from bridge.index.kinds.request import RequestedIndexes
from bridge.kernel.errors import AmbiguousColumn, ColumnNotFound, InvalidConfiguration
from bridge.kernel.types import BIGINT, DATE, STRING, Field, array, struct
from bridge.table.model import CatalogTable, Column, TableName

TABLE = CatalogTable(
    TableName("db", "t"),
    (
        Column("id", BIGINT),
        Column("name", STRING),
        Column("day", DATE),
        Column("tags", array(STRING)),
        Column("st", struct(Field("a", BIGINT))),
    ),
    (),
    "file:///t",
)


@pytest.mark.parametrize(
    ("kinds", "modes", "words"),
    [
        ([("bloom", "tags")], [], "bloom.tags.: tags is array<string>"),
        ([("values", "tags")], [], "tags is array<string>"),
        ([("bloom", "st")], [], "st is struct"),
        ([("expression", "lower(id)")], [], "id is bigint, and lower is not defined"),
        ([("bloom", "lower(id)")], [], "id is bigint, and lower is not defined"),
        ([("bloom", "lower(tags)")], [], "tags is array<string>, and lower is not defined"),
        ([("geo", "id,st.a"), ("geo", "ID,st.a")], [], "asked for twice"),
        ([("bloom", "id"), ("bloom", "ID")], [], "asked for twice, first as bloom.id."),
        ([("bloom", "id:fpp=0.1"), ("bloom", "id")], [], "asked for twice"),
        ([], ["id=none2"], "none2"),
    ],
)
def test_useless_indexes_are_refused(
    kinds: list[tuple[str, str]], modes: list[str], words: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        RequestedIndexes(tuple(kinds), tuple(modes)).check(TABLE)


def test_a_property_that_asks_for_what_cannot_be_built_stops_nothing() -> None:
    """Each is judged alone: the others are built."""
    kinds = (
        ("values", "tags"),
        ("bloom", "id"),
        ("bloom", "ID"),
        ("bloom", "lower("),
        ("no_such_kind", "id"),
        ("values", "dropped_column"),
        ("values", "name:limit=x"),
        ("expression", "lower(name)"),
    )
    kept, reasons = RequestedIndexes(kinds, ("id=none2", "name=counts", "nothing")).sift(TABLE)
    assert kept == RequestedIndexes(
        (("bloom", "id"), ("expression", "lower(name)")), ("name=counts",)
    )
    assert len(reasons) == 8 and "tags is array<string>" in reasons[0]
    asked = RequestedIndexes((("bloom", "id"),), ("id=none",))
    assert asked.sift(replace(TABLE, format="orc"))[0] == asked
    rcfile = replace(TABLE, format="rcfile")
    assert asked.sift(rcfile)[0] == RequestedIndexes(modes=("id=none",))


def test_another_spelling_is_the_same_index() -> None:
    bloom, values = kind("bloom"), kind("values")
    held = IndexSettings().adding([bloom.define("id"), bloom.define("lower(name)")])
    assert held.adding([bloom.define("ID"), bloom.define("lower(NAME)")]) == held
    changed = held.adding([bloom.define("Id:fpp=0.1"), values.define("ID")])
    assert [d.name for d in changed.definitions] == [
        "bloom(id)",
        "bloom(lower(name))",
        "values(ID)",
    ]
    assert changed.find("bloom(id)").option("fpp") == "0.1"


DOTTED = replace(TABLE, columns=(*TABLE.columns, Column("x.Y", STRING), Column("st.a", BIGINT)))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("x.y:limit=3", ('"x.y"', ("x.y",))),
        ('"x.y"', ('"x.y"', ("x.y",))),
        ('"st.a"', ('"st.a"', ("st.a",))),
        ('"st"."a"', ('"st"."a"', ("st", "a"))),
    ],
)
def test_m14_a_column_whose_name_has_a_dot(text: str, columns: tuple[str, tuple[str]]) -> None:
    for name in ("values", "ndv"):
        on = text if name == "values" else text.partition(":")[0]
        asked = RequestedIndexes(((name, on),), ("x.y=counts",)).check(DOTTED)
        assert asked.check(DOTTED) == asked
        (definition,) = asked.change(IndexSettings()).definitions
        assert (definition.on, *kind(name).columns(definition)) == columns
        if ":" in on:
            assert definition.option("limit") == "3"
    properties = RequestedIndexes((("values", text),))
    assert properties.sift(DOTTED) == (properties.check(DOTTED), ())


def test_m14_what_may_be_a_column_or_a_field_is_refused() -> None:
    asked = RequestedIndexes((("values", "ST.a"),))
    with pytest.raises(AmbiguousColumn, match=r'may be the column "ST\.a" or') as found:
        asked.check(DOTTED)
    assert found.value.hint == 'write "ST.a" for the column, "ST"."a" for the field'
    assert asked.check(TABLE) == asked
    assert "AMBIGUOUS" not in asked.sift(DOTTED)[1][0] and len(asked.sift(DOTTED)[1]) == 1
    with pytest.raises(ColumnNotFound) as missing:
        RequestedIndexes((("expression", "lower(x.y)"),)).check(DOTTED)
    assert missing.value.hint == 'a column whose name has a dot is written "x.y"'
    RequestedIndexes((("expression", 'lower("x.y")'), ("bloom", 'lower("x.y")'))).check(DOTTED)


def test_useful_ones_are_taken() -> None:
    kinds = [
        ("bloom", "id"),
        ("values", "st.a"),
        ("values", "Name"),
        ("expression", "lower(name)"),
        ("expression", "year(day)"),
    ]
    asked = RequestedIndexes(tuple(kinds), ("id=counts", "*=truncate(16)"))
    asked.check(TABLE)
    assert len(asked.change(IndexSettings()).definitions) == len(kinds)
