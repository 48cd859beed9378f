from __future__ import annotations

import json

from bridge.sync.spark_schema import follow
from bridge.table.model import Column
from bridge.types import BIGINT, DATE, INTEGER, STRING, Field, array, decimal, map_of, struct

FIELDS = [
    {"name": "Id", "type": "integer", "nullable": False, "metadata": {"comment": "the key"}},
    {"name": "s", "type": "string", "nullable": True, "metadata": {}},
    {"name": "day", "type": "date", "nullable": True, "metadata": {}},
]
COLUMNS = [Column("id", BIGINT), Column("s", STRING), Column("new", decimal(10, 2))]
KEYS = [Column("day", DATE)]


def test_a_table_that_spark_did_not_make_needs_nothing() -> None:
    assert follow({"EXTERNAL": "TRUE"}, COLUMNS, KEYS) == {"EXTERNAL": "TRUE"}
    broken = {"spark.sql.sources.schema": "{"}
    assert follow(broken, COLUMNS, KEYS) == broken


def test_one_property_and_parts() -> None:
    text = json.dumps({"type": "struct", "fields": FIELDS})
    parts = {
        "spark.sql.sources.schema.numParts": "2",
        "spark.sql.sources.schema.part.0": text[:50],
        "spark.sql.sources.schema.part.1": text[50:],
        "spark.sql.sources.schema.partCol.0": "day",
    }
    for properties in ({"spark.sql.sources.schema": text}, parts):
        found = follow(properties, COLUMNS, KEYS)
        assert "spark.sql.sources.schema" not in found
        count = int(found["spark.sql.sources.schema.numParts"])
        whole = "".join(found[f"spark.sql.sources.schema.part.{i}"] for i in range(count))
        fields = json.loads(whole)["fields"]
        assert [(f["name"], f["type"]) for f in fields] == [
            ("Id", "long"),
            ("s", "string"),
            ("new", "decimal(10,2)"),
            ("day", "date"),
        ]
        assert fields[0]["metadata"] == {"comment": "the key"} and not fields[0]["nullable"]
    assert found["spark.sql.sources.schema.partCol.0"] == "day"


def test_nested_fields_keep_spark_s_spelling_unless_their_type_changes() -> None:
    inner = {"name": "Inner", "type": "integer", "nullable": False, "metadata": {}}
    old = [
        {
            "name": "c",
            "type": {"type": "struct", "fields": [inner]},
            "nullable": True,
            "metadata": {},
        }
    ]
    properties = {"spark.sql.sources.schema": json.dumps({"type": "struct", "fields": old})}

    def after(type_: object) -> object:
        found = follow(properties, [Column("c", type_)], [])  # type: ignore[arg-type]
        return json.loads(found["spark.sql.sources.schema.part.0"])["fields"][0]["type"]

    assert after(struct(Field("inner", INTEGER))) == old[0]["type"]
    assert after(struct(Field("inner", BIGINT)))["fields"][0]["type"] == "long"  # type: ignore[index]
    assert after(map_of(STRING, array(INTEGER))) == {
        "type": "map",
        "keyType": "string",
        "valueType": {"type": "array", "elementType": "integer", "containsNull": True},
        "valueContainsNull": True,
    }


def test_long_schemas_are_cut_in_parts() -> None:
    properties = {"spark.sql.sources.schema": json.dumps({"type": "struct", "fields": FIELDS})}
    found = follow(properties, [Column(f"c{i}", INTEGER) for i in range(300)], KEYS)
    count = int(found["spark.sql.sources.schema.numParts"])
    parts = [found[f"spark.sql.sources.schema.part.{i}"] for i in range(count)]
    assert count > 1 and all(len(p) <= 4000 for p in parts)
    assert len(json.loads("".join(parts))["fields"]) == 301
