"""What is asked of an index is judged before a file is read or Spark begins."""

from __future__ import annotations

import pytest

from bridge.errors import InvalidConfiguration
from bridge.index.kinds.definition import IndexSettings
from bridge.index.kinds.request import Asked
from bridge.table.model import Column, Table, TableName
from bridge.types import BIGINT, DATE, STRING, Field, array, struct

TABLE = Table(
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
        ([("bloom", "id"), ("bloom", "ID")], [], "asked for twice, first as bloom.id."),
        ([("bloom", "id:fpp=0.1"), ("bloom", "id")], [], "asked for twice"),
        ([], ["id=none2"], "none2"),
    ],
)
def test_useless_indexes_are_refused(
    kinds: list[tuple[str, str]], modes: list[str], words: str
) -> None:
    with pytest.raises(InvalidConfiguration, match=words):
        Asked(tuple(kinds), tuple(modes)).check(TABLE)


def test_useful_ones_are_taken() -> None:
    kinds = [
        ("bloom", "id"),
        ("values", "st.a"),
        ("values", "Name"),
        ("expression", "lower(name)"),
        ("expression", "year(day)"),
    ]
    asked = Asked(tuple(kinds), ("id=counts", "*=truncate(16)"))
    asked.check(TABLE)
    assert len(asked.change(IndexSettings()).definitions) == len(kinds)
