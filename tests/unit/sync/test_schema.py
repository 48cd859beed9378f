from __future__ import annotations

import pytest

from bridge.kernel.errors import SchemaConflict
from bridge.kernel.types import UNKNOWN, parse_hive_type
from bridge.sync.schemas.schema import evolve, is_narrower, refuse, thin_out
from bridge.table.infer import common_type
from bridge.table.model import Column


def columns(text: str) -> tuple[Column, ...]:
    return tuple(
        Column(part.split(" ", 1)[0], parse_hive_type(part.split(" ", 1)[1]))
        for part in text.split("; ")
        if part
    )


@pytest.mark.rule("48")
@pytest.mark.parametrize(
    ("table", "files", "after"),
    [
        ("a int", "a int", "a int"),
        ("a int", "A bigint", "a bigint"),
        ("a int; b string", "b string", "a int; b string"),
        ("b string", "a int; B string; c date", "b string; a int; c date"),
        ("a float", "a double", "a double"),
        ("a decimal(8,2)", "a decimal(12,2)", "a decimal(12,2)"),
        ("a struct<x:int>", "a struct<x:bigint,y:int>", "a struct<x:bigint,y:int>"),
        ("a struct<x:int,y:int>", "a struct<x:int>", "a struct<x:int,y:int>"),
        # Names without case at every depth; the table's spelling stays.
        ("a struct<X:int,b:string>", "a struct<x:int,b:string>", None),
        ("a array<struct<Id:int>>", "a array<struct<id:int>>", None),
        (
            "a map<string,struct<Id:int>>",
            "a map<string,struct<id:bigint>>",
            "a map<string,struct<Id:bigint>>",
        ),
        ("a struct<A:int>", "a struct<a:int,new:int>", "a struct<A:int,new:int>"),
        (
            "a array<struct<A:struct<B:int>>>",
            "a array<struct<a:struct<b:int,c:int>>>",
            "a array<struct<A:struct<B:int,c:int>>>",
        ),
        ("a array<varchar(5)>; b struct<X:binary>", "a array<string>; b struct<x:string>", None),
        ("a struct<x:uniontype<int>>", "a struct<x:int,y:int>", None),
        # The same bytes, declared otherwise.
        ("a varchar(5); b char(3); c binary", "a string; b string; c string", None),
        ("a string", "a binary", "a string"),
        ("a timestamp with local time zone", "a timestamp", None),
    ],
)
def test_a_table_follows_its_files(table: str, files: str, after: str | None) -> None:
    found = evolve(columns(table), columns(files))
    assert found.columns == columns(after if after is not None else table)
    assert not found.conflicting and not found.narrower
    assert found.changed == (found.columns != columns(table))


@pytest.mark.parametrize(
    ("table", "files"),
    [
        ("a bigint", "a int"),
        ("a double", "a float"),
        ("a decimal(12,2)", "a decimal(8,2)"),
        ("a struct<x:bigint,y:int>", "a struct<x:int>"),
        ("a array<struct<X:bigint>>", "a array<struct<x:int>>"),
    ],
)
def test_narrowing_is_refused(table: str, files: str) -> None:
    found = evolve(columns(table), columns(files))
    assert found.columns == columns(table) and found.narrower
    with pytest.raises(SchemaConflict, match="would narrow") as caught:
        refuse("db.t", found, columns(table), columns(files))
    assert f"table: {table}" in str(caught.value) and f"files: {files}" in str(caught.value)
    assert "--hold-wider" in caught.value.hint


@pytest.mark.parametrize(
    ("table", "files"),
    [
        ("a int", "a string"),
        ("a int", "a double"),
        ("a decimal(8,2)", "a decimal(8,3)"),
        ("a date", "a timestamp"),
        ("a array<int>", "a int"),
        ("a array<struct<X:int>>", "a array<struct<x:string>>"),
    ],
)
def test_conflicts_show_both_schemas(table: str, files: str) -> None:
    found = evolve(columns(table), columns(files))
    with pytest.raises(SchemaConflict) as caught:
        refuse("db.t", found, columns(table), columns(files))
    assert f"table: {table}" in str(caught.value) and f"files: {files}" in str(caught.value)


def test_keys_and_unknown_types_are_left_alone() -> None:
    found = evolve(
        columns("a int"), (*columns("p string; b int"), Column("u", UNKNOWN)), columns("p int")
    )
    assert found.appended == ("b",) and found.left_out == ("u",)
    held = (Column("u", UNKNOWN),)
    assert evolve(held, columns("u int")).columns == held


def test_a_comment_stays() -> None:
    (after,) = evolve((Column("a", parse_hive_type("int"), "note"),), columns("a bigint")).columns
    assert after.comment == "note"


def test_narrower_agrees_with_what_holds_what() -> None:
    types = [parse_hive_type(t) for t in ("tinyint", "int", "bigint", "float", "double", "string")]
    for left in types:
        for right in types:
            wider = common_type(left, right)
            assert is_narrower(left, right) == (left != right and wider == right)


def test_thinned() -> None:
    assert thin_out([5, 6, 7], 0) == [5, 6, 7] and thin_out([5, 6, 7], 1) == [7]
    chosen = thin_out(range(1000), 7)
    assert len(chosen) == 7 and chosen[0] == 0 and chosen[-1] == 999
