"""The Avro schema that commits carry: columns, or an error, whatever it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge.kernel.errors import FileCorrupt
from bridge.table.hudi.schema.avro_schema import META_COLUMNS, avro_columns


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": k, "type": t} for k, t in fields.items()],
    }


def columns(schema: Any) -> list[tuple[str, str]]:
    found = avro_columns(json.dumps(schema), "t")[len(META_COLUMNS) :]
    return [(column.name, str(column.type)) for column in found]


def test_a_named_type_is_known_in_the_columns_behind_it() -> None:
    point = record("point", x="int", y=["null", "double"])
    schema = record("t", a=point, b=["null", "point"], c={"type": "array", "items": "point"})
    struct = "struct<x:int,y:double>"
    assert columns(schema) == [("a", struct), ("b", struct), ("c", f"array<{struct}>")]


def test_more_columns_than_any_table_has() -> None:
    assert len(columns(record("t", **{f"c{n}": ["null", "long"] for n in range(30_000)}))) == 30_000


def _twice(levels: int) -> Any:
    schema: Any = "long"
    for n in range(levels):
        again = schema if isinstance(schema, str) else schema["name"]
        schema = record(f"r{n}", a=schema, b=again)
    return schema


def _deep(levels: int) -> Any:
    schema: Any = "long"
    for n in range(levels):
        schema = record(f"r{n}", a=schema)
    return schema


@pytest.mark.rule("32")
@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (record("t", a=_twice(40)), "stand for too many others"),
        (record("t", a=_deep(300)), "levels deep"),
        (record("t", a=["null", record("r", b=["null", "r"])]), "levels deep"),
        (record("t", a="t"), "t"),
    ],
    ids=["doubled at each level", "deep", "in itself", "the table in itself"],
)
def test_32_a_small_schema_that_stands_for_a_large_one_is_refused(schema: Any, told: str) -> None:
    with pytest.raises(FileCorrupt, match=told):
        columns(schema)
