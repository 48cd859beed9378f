"""The decisions of a sync of Hudi tables: keys, values, columns, Spark's schema, the timeline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from bridge.kernel.errors import InvalidRequest, SchemaConflict, UnsupportedTable
from bridge.kernel.types import BIGINT, DATE, INTEGER, TIMESTAMP, parse_hive_type
from bridge.sync.extractors import UnparsableDirectory
from bridge.sync.hudi.avro_spark_schema import spark_properties
from bridge.sync.hudi.partitions import key_columns, partition_extractor
from bridge.sync.hudi.table import follow_schema
from bridge.sync.hudi.timeline import (
    HudiSyncState,
    Position,
    commits_since,
    parse_hudi_state,
    touched_partitions,
)
from bridge.table.hudi.table_config import HudiTableConfig, parse_table_config
from bridge.table.hudi.timeline.commit_metadata import CommitMetadata
from bridge.table.hudi.timeline.instant import parse_instant
from bridge.table.hudi.timeline.timeline import HudiTimeline, make_timeline
from bridge.table.model import Column

_GENERATORS = "org.apache.hudi.keygen"


def config(fields: str, **more: str) -> HudiTableConfig:
    said = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "COPY_ON_WRITE",
        "hoodie.table.version": "9",
        "hoodie.table.partition.fields": fields,
    }
    names = {
        "hive": "hoodie.datasource.write.hive_style_partitioning",
        "encoded": "hoodie.datasource.write.partitionpath.urlencode",
        "slashes": "hoodie.datasource.write.slash.separated.date.partitioning",
        "generator": "hoodie.table.keygenerator.class",
    }
    return parse_table_config("file:///t", said | {names[k]: v for k, v in more.items()})


@pytest.mark.parametrize(
    ("fields", "settings", "path", "values"),
    [
        ("dt", {}, "2024-01-31", ["2024-01-31"]),
        ("dt", {"hive": "true"}, "dt=2024-01-31", ["2024-01-31"]),
        ("Dt", {"hive": "true"}, "Dt=a=b", ["a=b"]),
        ("dt", {}, "2024/01/31", ["2024-01-31"]),
        ("dt", {"slashes": "true"}, "2024/01/31", ["2024-01-31"]),
        ("dt", {"slashes": "true", "hive": "true"}, "dt=2024/01/31", ["2024-01-31"]),
        ("dt", {"encoded": "true"}, "a%2Fb%20c", ["a/b c"]),
        ("dt", {}, "50%25", ["50%25"]),
        ("dt", {"hive": "true"}, "dt=__HIVE_DEFAULT_PARTITION__", [None]),
        ("a,b", {}, "x/y", ["x", "y"]),
        ("a,b", {"hive": "true", "encoded": "true"}, "a=x%3D1/b=y", ["x=1", "y"]),
        ("", {}, "", []),
    ],
)
def test_values_of_a_path(
    fields: str, settings: dict[str, str], path: str, values: list[str | None]
) -> None:
    found = config(fields, **settings)
    keys = key_columns(found, {})
    assert list(partition_extractor(found, keys, None)(path).values()) == values


@pytest.mark.parametrize(
    ("fields", "settings", "path", "reason"),
    [
        ("dt", {"hive": "true"}, "2024-01-31", "not named dt=value"),
        ("dt", {"hive": "true"}, "day=2024-01-31", "not named dt=value"),
        ("a,b", {}, "x", "1 levels, not 2"),
        ("a,b", {}, "x/", "is empty"),
        ("", {}, "2024", "without partitions"),
    ],
)
def test_paths_that_tell_no_values(
    fields: str, settings: dict[str, str], path: str, reason: str
) -> None:
    found = config(fields, **settings)
    with pytest.raises(UnparsableDirectory, match=reason):
        partition_extractor(found, key_columns(found, {}), None)(path)


def test_a_chosen_extractor_takes_the_place_of_the_settings() -> None:
    found = config("dt")
    extractor = partition_extractor(found, key_columns(found, {}), "hour")
    assert extractor("2024/01/31/05") == {"dt": "2024-01-31-05"}


def test_keys_have_the_types_of_their_columns_where_paths_hold_them() -> None:
    columns = {
        "n": Column("n", INTEGER),
        "d": Column("d", DATE),
        "at": Column("at", BIGINT),
        "t": Column("t", TIMESTAMP),
    }

    def types(fields: str, **settings: str) -> list[str]:
        return [str(k.type) for k in key_columns(config(fields, **settings), columns)]

    assert types("n,D,t,gone") == ["int", "date", "string", "string"]
    timestamps = f"{_GENERATORS}.TimestampBasedKeyGenerator"
    assert types("at", generator=timestamps) == ["string"]
    custom = f"{_GENERATORS}.CustomKeyGenerator"
    assert types("n:SIMPLE,at:TIMESTAMP", generator=custom) == ["int", "string"]
    given = (Column("n", BIGINT),)
    assert key_columns(config("n"), columns, given) == given
    assert key_columns(config(""), columns, given) == given
    with pytest.raises(InvalidRequest):
        key_columns(config("d"), columns, given)
    with pytest.raises(UnsupportedTable, match="struct"):
        key_columns(config("a.b"), columns)


def columns(text: str) -> tuple[Column, ...]:
    pairs = (part.split(" ", 1) for part in text.split("; ") if part)
    return tuple(Column(name, parse_hive_type(type_)) for name, type_ in pairs)


@pytest.mark.parametrize(
    ("table", "schema", "after"),
    [
        ("a int", "a bigint", "a bigint"),
        ("a float", "a double", "a double"),
        ("a bigint", "a int", "a bigint"),
        ("a smallint", "a int", "a smallint"),
        ("a varchar(5)", "a string", "a varchar(5)"),
        ("a bigint", "a timestamp", "a bigint"),
        ("a int; b int", "b int; c date", "b int; c date"),
        ("a struct<x:int>", "a struct<x:bigint,y:int>", "a struct<x:bigint,y:int>"),
        ("a array<int>", "a array<bigint>", "a array<bigint>"),
        ("a map<string,int>", "a map<string,int>", "a map<string,int>"),
        (
            "a struct<x:bigint,t:bigint>",
            "a struct<x:int,t:timestamp,y:int>",
            "a struct<x:bigint,t:bigint,y:int>",
        ),
        ("a array<struct<X:smallint>>", "a array<struct<x:int>>", "a array<struct<X:smallint>>"),
    ],
)
def test_columns_follow_the_newest_schema(table: str, schema: str, after: str) -> None:
    assert follow_schema("t", columns(table), columns(schema)).columns == columns(after)


@pytest.mark.parametrize(
    ("table", "schema"),
    [
        ("a string", "a int"),
        ("a int", "a string"),
        ("a double", "a float"),
        ("a array<string>", "a array<int>"),
        ("a timestamp", "a bigint"),
        ("a struct<x:double>", "a struct<x:float>"),
        ("a struct<X:struct<y:string>>", "a struct<x:struct<y:int>>"),
        ("a array<struct<x:decimal(9,2)>>", "a array<struct<x:decimal(5,2)>>"),
    ],
)
def test_types_that_hive_cannot_follow_are_refused(table: str, schema: str) -> None:
    with pytest.raises(SchemaConflict, match="drop the table"):
        follow_schema("t", columns(table), columns(schema))


AVRO: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "Key", "type": "string"},
        {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}]},
        {"name": "n", "type": {"type": "long", "logicalType": "timestamp-micros"}, "doc": "when"},
        {"name": "f", "type": {"type": "fixed", "name": "fx", "size": 5, "logicalType": "decimal"}
         | {"precision": 9, "scale": 2}},
        {"name": "list", "type": {"type": "array", "items": ["null", "int"]}},
        {"name": "map", "type": {"type": "map", "values": {"type": "record", "name": "v",
         "fields": [{"name": "X", "type": ["null", "float"]}]}}},
        {"name": "again", "type": ["null", "v"]},
        {"name": "odd", "type": ["int", "string"]},
    ],
}  # fmt: skip


def spark(known: Mapping[str, str]) -> dict[str, str]:
    return spark_properties(json.dumps(AVRO), ["day"], ["odd"], known)


def test_sparks_schema_is_made_from_avro() -> None:
    found = spark({})
    assert found["spark.sql.sources.provider"] == "hudi"
    assert found["spark.sql.sources.schema.numPartCols"] == "1"
    assert found["spark.sql.sources.schema.partCol.0"] == "day"
    fields = json.loads(found["spark.sql.sources.schema.part.0"])["fields"]
    names = [f["name"] for f in fields]
    assert names[0] == "_hoodie_commit_time"
    assert names[5:] == ["Key", "n", "f", "list", "map", "again", "day"]
    struct = {"name": "X", "type": "float", "nullable": True, "metadata": {}}
    types = {f["name"]: (f["type"], f["nullable"]) for f in fields}
    assert types["Key"] == ("string", False) and types["day"] == ("date", True)
    assert types["n"] == ("timestamp", False) and types["f"] == ("decimal(9,2)", False)
    array = {"type": "array", "elementType": "integer", "containsNull": True}
    assert types["list"] == (array, False)
    assert types["again"] == ({"type": "struct", "fields": [struct]}, True)
    assert fields[6]["metadata"] == {"comment": "when"}


def test_an_equal_schema_of_spark_keeps_its_spelling() -> None:
    found = spark({})
    other = json.dumps(json.loads(found["spark.sql.sources.schema.part.0"]), indent=1)
    known = found | {"spark.sql.sources.schema.part.0": other}
    assert spark(known) == known
    assert spark(found | {"spark.sql.sources.schema.part.0": "{}"}) == found


_UDT = {"type": "udt", "class": "org.apache.spark.ml.linalg.VectorUDT", "sqlType": "string"}


def _fields(properties: Mapping[str, str]) -> list[dict[str, Any]]:
    count = int(properties["spark.sql.sources.schema.numParts"])
    text = "".join(properties[f"spark.sql.sources.schema.part.{i}"] for i in range(count))
    fields: list[dict[str, Any]] = json.loads(text)["fields"]
    return fields


def test_what_sync_did_not_change_of_sparks_schema_stays() -> None:
    """As Spark's own CREATE TABLE writes it: its types say more than Avro's."""

    def field(name: str, type_: Any, nullable: bool = True, **metadata: str) -> dict[str, Any]:
        return {"name": name, "type": type_, "nullable": nullable, "metadata": metadata}

    inner = {"type": "struct", "fields": [field("S", "short"), field("n", "integer", note="x")]}
    known_fields = [
        field("Code", "string", False, __CHAR_VARCHAR_TYPE_STRING="varchar(7)"),
        field("flag", "string", __CHAR_VARCHAR_TYPE_STRING="char(1)", comment="of others"),
        field("small", "short"),
        field("v", _UDT),
        field("grows", "integer", False, note="kept"),
        field("list", {"type": "array", "elementType": inner, "containsNull": False}),
        field("gone", "date"),
        field("day", "date"),
    ]
    text = json.dumps({"type": "struct", "fields": known_fields}, indent=1)
    known = {
        "spark.sql.sources.provider": "HUDI",
        "spark.sql.sources.schema.numParts": "2",
        "spark.sql.sources.schema.part.0": text[:70],
        "spark.sql.sources.schema.part.1": text[70:],
        "spark.sql.sources.schema.numPartCols": "1",
        "spark.sql.sources.schema.partCol.0": "Day",
        "spark.sql.sources.schema.numBuckets": "4",
        "note": "of others",
    }
    record = {
        "type": "record",
        "name": "e",
        "fields": [
            {"name": "S", "type": "int"},
            {"name": "n", "type": "long"},
            {"name": "More", "type": "string"},
        ],
    }
    small = {**record, "fields": [{"name": "S", "type": "int"}, {"name": "n", "type": "int"}]}
    names = ("Code", "flag", "small", "v", "grows", "list")

    def avro(longer: bool) -> str:
        list_ = {"type": "array", "items": record if longer else small}
        types = ("string", "string", "int", "bytes", "long" if longer else "int", list_)
        described = [{"name": n, "type": t} for n, t in zip(names, types, strict=True)]
        described.append({"name": "day", "type": {"type": "int", "logicalType": "date"}})
        described += [{"name": "New", "type": "double"}] if longer else []
        described += [] if longer else [{"name": "gone", "type": "int"}]
        return json.dumps({"type": "record", "name": "r", "fields": described})

    base = "code varchar(7); flag char(1); small smallint; v binary"
    before = columns(f"{base}; grows int; list array<struct<s:smallint,n:int>>; gone date")
    longer = "list array<struct<s:smallint,n:bigint,more:string>>; new double"
    after = columns(f"{base}; grows bigint; {longer}")
    meta = ["_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key"]
    meta += ["_hoodie_partition_path", "_hoodie_file_name"]
    found = spark_properties(avro(False), ["day"], meta, known, before, before)
    assert found == known
    found = spark_properties(avro(True), ["day"], meta, known, before, after)
    others = {k: v for k, v in known.items() if ".part." not in k and "numParts" not in k}
    assert others.items() <= found.items()
    told = _fields(found)
    assert told[:4] == known_fields[:4] and told[-1] == known_fields[-1]
    assert [f["name"] for f in told[4:-1]] == ["grows", "list", "New"]
    assert told[4] == {**known_fields[4], "type": "long"}
    element = told[5]["type"]["elementType"]
    assert element["fields"] == [
        field("S", "short"),
        field("n", "long", note="x"),
        field("More", "string", False),
    ]
    assert told[5]["type"]["containsNull"] is False
    assert spark_properties(avro(True), ["day"], meta, found, after, after) == found


def test_a_long_schema_is_cut() -> None:
    many = {**AVRO, "fields": [{"name": f"c{i}", "type": "int"} for i in range(200)]}
    found = spark_properties(json.dumps(many), [], [], {})
    count = int(found["spark.sql.sources.schema.numParts"])
    parts = [found[f"spark.sql.sources.schema.part.{i}"] for i in range(count)]
    assert count > 1 and all(len(p) <= 4000 for p in parts)
    assert len(json.loads("".join(parts))["fields"]) == 205
    assert "spark.sql.sources.schema.numPartCols" not in found


def timeline(*names: str, layout: int = 2, times: Mapping[str, int] | None = None) -> HudiTimeline:
    found = (parse_instant(n, layout, 1, (times or {}).get(n, 0)) for n in names)
    return make_timeline("file:///t", (i for i in found if i is not None))


def state(at: Position) -> HudiSyncState:
    return HudiSyncState(at.last, at.completion, at.modified, at.pending, "", "", "", 0, 0)


def since(later: HudiTimeline, before: HudiTimeline, completes: bool = True) -> list[str] | None:
    found = commits_since(later, state(Position.of(before)), completes)
    return found if found is None else [i.requested for i in found]


def test_commits_since_the_last_sync() -> None:
    before = timeline("1_2.commit", "3_5.commit", "4.commit.requested")
    assert since(before, before) == []
    assert Position.of(before).is_reached(state(Position.of(before)), True)
    # One that was pending completes, another begins and completes.
    later = timeline("1_2.commit", "3_5.commit", "4_8.commit", "6_7.deltacommit")
    assert since(later, before) == ["4", "6"]
    assert not Position.of(later).is_reached(state(Position.of(before)), True)
    hollow = timeline("1_2.commit", "2_6.commit", "3_5.commit")
    assert since(hollow, timeline("1_2.commit", "3_5.commit")) == ["2"]
    # Archived, undone, or one that was pending may be archived.
    assert since(timeline("6_7.commit"), before) is None
    assert since(timeline("1_2.commit", "6_7.commit"), before) is None
    pending = timeline("1.commit.requested", "3_5.commit")
    assert since(timeline("3_5.commit", "6_7.commit"), pending) is None
    assert since(timeline("1_2.commit"), timeline()) is None


def test_before_version_8_the_times_of_files_tell_what_completed_late() -> None:
    before = timeline("1.commit", "3.commit", layout=1, times={"1.commit": 10, "3.commit": 30})
    times = {"1.commit": 10, "2.commit": 40, "3.commit": 30}
    later = timeline("1.commit", "2.commit", "3.commit", layout=1, times=times)
    assert "2" in (since(later, before, completes=False) or [])
    assert not Position.of(later).is_reached(state(Position.of(before)), False)


def test_a_write_that_is_archived_as_soon_as_it_ends_is_not_passed_over() -> None:
    pending, done = ["1.commit.requested", "3_5.commit"], ["3_5.commit"]
    for layout in (1, 2):
        names = [
            [n.replace("_5", "") if layout == 1 else n for n in each] for each in (pending, done)
        ]
        before, later = (timeline(*each, layout=layout) for each in names)
        assert Position.of(before).is_reached(state(Position.of(before)), layout == 2)
        assert not Position.of(later).is_reached(state(Position.of(before)), layout == 2)
        assert since(later, before, layout == 2) is None
        # What began since then does not matter until it ends.
        new = timeline(*names[1], "4.commit.requested", layout=layout)
        assert Position.of(new).is_reached(state(Position.of(later)), layout == 2)


def commit(files: dict[str, list[int]], replaced: dict[str, list[str]]) -> CommitMetadata:
    counts = [len(sizes) for sizes in files.values()]
    sizes = [size for found in files.values() for size in found]
    names = [f"f{i}" for i in range(len(sizes))]
    return CommitMetadata("", {}, list(files), counts, names, sizes, frozenset(), False, replaced)


def test_partitions_of_commits() -> None:
    found = touched_partitions(
        [
            commit({"a": [1, 2], "b": [4]}, {}),
            commit({"c": [8]}, {"b": ["x"], "c": ["y"], "d": ["z"]}),
            commit({"d": [16], "a": [32]}, {}),
        ]
    )
    assert found.written == {"a": (3, 35), "c": (1, 8), "d": (1, 16)}
    assert found.emptied == {"b"}


def test_a_broken_state_is_none() -> None:
    good = state(Position("1", "2", 3, ""))
    assert parse_hudi_state(good.to_text()) == good
    for text in (None, "", "begun 1", "{}", good.to_text().replace('"hudi":1', '"hudi":2')):
        assert parse_hudi_state(text) is None
    assert parse_hudi_state(good.to_text().replace('"1"', "1")) is None
