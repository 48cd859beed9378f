from __future__ import annotations

import json
from typing import Any

from bridge.kernel.types import (
    BIGINT,
    BINARY,
    DATE,
    INTEGER,
    STRING,
    TIMESTAMP,
    Field,
    Type,
    array,
    char,
    decimal,
    map_of,
    struct,
)
from bridge.sync.schemas.spark_schema import updated_properties
from bridge.table.model import Column

FIELDS = [
    {"name": "Id", "type": "integer", "nullable": False, "metadata": {"comment": "the key"}},
    {"name": "s", "type": "string", "nullable": True, "metadata": {}},
    {"name": "day", "type": "date", "nullable": True, "metadata": {}},
]
BEFORE = [Column("id", INTEGER), Column("s", STRING)]
COLUMNS = [Column("id", BIGINT), Column("s", STRING), Column("new", decimal(10, 2))]
KEYS = [Column("day", DATE)]


def test_a_table_that_spark_did_not_make_needs_nothing() -> None:
    assert updated_properties({"EXTERNAL": "TRUE"}, BEFORE, COLUMNS, KEYS) == {"EXTERNAL": "TRUE"}
    broken = {"spark.sql.sources.schema": "{"}
    assert updated_properties(broken, BEFORE, COLUMNS, KEYS) == broken


def test_one_property_and_parts() -> None:
    text = json.dumps({"type": "struct", "fields": FIELDS})
    parts = {
        "spark.sql.sources.schema.numParts": "2",
        "spark.sql.sources.schema.part.0": text[:50],
        "spark.sql.sources.schema.part.1": text[50:],
        "spark.sql.sources.schema.partCol.0": "day",
    }
    for properties in ({"spark.sql.sources.schema": text}, parts):
        found = updated_properties(properties, BEFORE, COLUMNS, KEYS)
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

    def after(new: Type) -> Any:
        before = struct(Field("inner", INTEGER))
        found = updated_properties(properties, [Column("c", before)], [Column("c", new)], [])
        if found == properties:
            return old[0]["type"]
        return json.loads(found["spark.sql.sources.schema.part.0"])["fields"][0]["type"]

    assert after(struct(Field("inner", INTEGER))) == old[0]["type"]
    wide = after(struct(Field("inner", BIGINT), Field("more", STRING)))["fields"]
    assert wide[0] == {**inner, "type": "long"}
    assert wide[1] == {"name": "more", "type": "string", "nullable": True, "metadata": {}}
    assert after(map_of(STRING, array(INTEGER))) == {
        "type": "map",
        "keyType": "string",
        "valueType": {"type": "array", "elementType": "integer", "containsNull": True},
        "valueContainsNull": True,
    }


UDT = {"type": "udt", "class": "org.apache.spark.ml.linalg.VectorUDT", "sqlType": "string"}
SPARKS = [
    {"name": "v", "type": UDT, "nullable": True, "metadata": {}},
    {
        "name": "Code",
        "type": "string",
        "nullable": False,
        "metadata": {"__CHAR_VARCHAR_TYPE_STRING": "char(3)", "größe": 1},
    },
    {"name": "t", "type": "timestamp_ntz", "nullable": True, "metadata": {}},
    {"name": "p", "type": "string", "nullable": True, "metadata": {}},
]


def test_fields_of_columns_that_do_not_change_stay_byte_for_byte() -> None:
    text = json.dumps({"type": "struct", "fields": SPARKS}, separators=(",", ":"))
    text = text.replace("\\u00f6", "ö").replace("\\u00df", "ß")
    properties = {"spark.sql.sources.schema": text, "x": "y"}
    before = [Column("v", BINARY), Column("code", char(3)), Column("t", TIMESTAMP)]
    keys = [Column("p", STRING)]
    assert updated_properties(properties, before, before, keys) == properties
    found = updated_properties(properties, before, [*before, Column("new", INTEGER)], keys)
    made = found["spark.sql.sources.schema.part.0"]
    new = '{"name":"new","type":"integer","nullable":true,"metadata":{}},'
    assert made == text.replace('{"name":"p"', new + '{"name":"p"') and found["x"] == "y"


def test_within_a_changed_column_a_member_that_stays_keeps_its_field() -> None:
    members = [{**f, "name": n} for n, f in zip(("V", "Code", "n"), SPARKS, strict=False)]
    members[2] = {**members[2], "type": "integer"}
    kind = {"type": "struct", "fields": members}
    whole = {"name": "s", "type": {"type": "array", "elementType": kind, "containsNull": False}}
    field = {**whole, "nullable": True, "metadata": {}}
    properties = {"spark.sql.sources.schema": json.dumps({"type": "struct", "fields": [field]})}
    parts = (Field("v", BINARY), Field("code", char(3)))
    before = [Column("s", array(struct(*parts, Field("n", INTEGER))))]
    after = [Column("s", array(struct(*parts, Field("n", BIGINT))))]
    found = json.loads(
        updated_properties(properties, before, after, [])["spark.sql.sources.schema.part.0"]
    )
    members[2] = {**members[2], "type": "long"}
    assert found["fields"] == [field]


def test_long_schemas_are_cut_in_parts() -> None:
    properties = {"spark.sql.sources.schema": json.dumps({"type": "struct", "fields": FIELDS})}
    found = updated_properties(properties, [], [Column(f"c{i}", INTEGER) for i in range(300)], KEYS)
    count = int(found["spark.sql.sources.schema.numParts"])
    parts = [found[f"spark.sql.sources.schema.part.{i}"] for i in range(count)]
    assert count > 1 and all(len(p) <= 4000 for p in parts)
    assert len(json.loads("".join(parts))["fields"]) == 303
