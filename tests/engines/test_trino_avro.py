"""Avro in Trino, beside Trino's own hive connector over the same tables: schemas in the table's
properties, evolution, ranges, damage.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pytest

from bridge.metastore import records
from bridge.metastore.client import MetastoreClient
from bridge.runtime.create_table import thrift_table
from bridge.table.model import CatalogTable, TableName
from tests.engines.stack import Stack
from tests.engines.test_trino_orc import answer, columns, ours, theirs
from tests.tiers import nightly

pytestmark = pytest.mark.full

AVRO_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "i", "type": ["null", "int"], "default": None},
    {"name": "b", "type": ["null", "boolean"], "default": None},
    {"name": "f", "type": ["null", "float"], "default": None},
    {"name": "x", "type": ["null", "double"], "default": None},
    {"name": "s", "type": ["null", "string"], "default": None},
    {"name": "bin", "type": ["null", "bytes"], "default": None},
    {"name": "d", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
    {
        "name": "ts",
        "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
        "default": None,
    },
    {
        "name": "m",
        "type": [
            "null",
            {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        ],
        "default": None,
    },
    {"name": "l", "type": ["null", {"type": "array", "items": ["null", "int"]}], "default": None},
    {"name": "mp", "type": ["null", {"type": "map", "values": "long"}], "default": None},
]
AVRO_TYPES = (
    "id bigint; i int; b boolean; f float; x double; s string; bin binary; d date; ts timestamp;"
    " m decimal(10,2); l array<int>; mp map<string,bigint>"
)


def schema(fields: list[dict[str, Any]], name: str = "row") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def write(
    path: Path, fields: list[dict[str, Any]], rows: list[dict[str, Any]], codec: str = "deflate"
) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, schema(fields), rows, codec=codec, sync_interval=2_000)


def registered(
    stack: Stack, name: str, directory: Path, types: str, properties: Mapping[str, str]
) -> None:
    table = CatalogTable(TableName("laws", name), columns(types), (), f"file://{directory}", "avro")
    made = thrift_table(table.name, table)
    made.parameters.update(properties)
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_table(made)


def rows(start: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": i,
            "i": i * 3 if i % 7 else None,
            "b": i % 2 == 0,
            "f": i / 4,
            "x": float("nan") if i == 3 else i / 8,
            "s": f"text {i}" if i % 5 else None,
            "bin": bytes([i % 256]),
            "d": dt.date(1968, 1, 1) + dt.timedelta(days=i),
            "ts": dt.datetime(1969, 12, 31, 23, 59, 59, 5_000, dt.UTC) + dt.timedelta(hours=i),
            "m": Decimal(i - 5).scaleb(-2),
            "l": [i, None] if i % 3 else [],
            "mp": {"k": i},
        }
        for i in range(start, start + count)
    ]


@pytest.mark.parametrize("declared", ["columns", "literal", "url", "path"])
def test_every_type_and_codec_and_range(stack: Stack, tmp_path: Path, declared: str) -> None:
    directory = tmp_path / "table"
    directory.mkdir()
    for number, codec in enumerate(("null", "deflate", "bzip2")):
        write(directory / f"f{number}.avro", AVRO_FIELDS, rows(number * 40, 40), codec)
    large = 6_000 if declared == "columns" else 0
    if large:
        # Cut into ranges: each row is in one of them.
        write(directory / "large.avro", AVRO_FIELDS, rows(1000, large), "null")
    (directory / "empty.avro").touch()
    (tmp_path / "schema.avsc").write_text(json.dumps(schema(AVRO_FIELDS)))
    properties = {
        "columns": {},
        "literal": {"avro.schema.literal": json.dumps(schema(AVRO_FIELDS))},
        "url": {"avro.schema.url": f"file://{tmp_path}/schema.avsc"},
        "path": {"avro.schema.url": f"{tmp_path}/schema.avsc"},
    }[declared]
    name = f"avro_{declared}"
    registered(stack, name, directory, AVRO_TYPES, properties)
    for where in ("id < 200", "id = 77", "s = 'text 6998'", "ts < TIMESTAMP '1970-01-01'"):
        sql = f"SELECT * FROM laws.{name} WHERE {where} ORDER BY id"
        assert repr(ours(stack, sql)) == repr(theirs(stack, sql)), where
    sql = f"SELECT count(*), sum(id), count(s), min(d) FROM laws.{name}"
    assert ours(stack, sql) == theirs(stack, sql)
    assert stack.query(f"SELECT count(*) FROM laws.{name}") == [[120 + large]]
    assert len(stack.query(f"SELECT 1 FROM laws.{name} LIMIT 7")) == 7


def test_files_are_resolved_to_the_tables_schema(stack: Stack, tmp_path: Path) -> None:
    """Missing fields take their defaults; order, wider types and aliases are Avro's business."""
    table = [
        {"name": "Id", "type": "long"},
        {"name": "x", "type": "double", "default": 2.5},
        {"name": "s", "type": ["null", "string"], "default": None, "aliases": ["old"]},
    ]
    properties = {"avro.schema.literal": json.dumps(schema(table))}
    write(
        tmp_path / "a.avro",
        [{"name": "s", "type": "string"}, {"name": "Id", "type": "int"}],
        [{"Id": 1, "s": "one"}],
    )
    write(
        tmp_path / "b.avro",
        [
            {"name": "x", "type": "float"},
            {"name": "old", "type": "string"},
            {"name": "Id", "type": "long"},
        ],
        [{"Id": 2, "old": "two", "x": 1.5}],
    )
    registered(stack, "avro_evolved", tmp_path, "id bigint; x double; s string", properties)
    sql = "SELECT * FROM laws.avro_evolved ORDER BY id"
    assert ours(stack, sql) == theirs(stack, sql)
    assert ours(stack, sql)[0] == [1, 2.5, "one"]
    # A file that lacks a field without a default cannot be read.
    write(tmp_path / "c.avro", [{"name": "s", "type": "string"}], [{"s": "three"}])
    assert answer(theirs, stack, sql) == "error"
    with pytest.raises(Exception, match=r"c\.avro"):
        stack.query(sql)


_NESTED = {"type": "record", "name": "inner", "fields": [{"name": "a", "type": ["null", "long"]}]}
_SAME: list[tuple[str, Any, str, list[Any]]] = [
    ("enum", {"type": "enum", "name": "e", "symbols": ["A", "B"]}, "string", ["A", "B"]),
    ("fixed", {"type": "fixed", "name": "f", "size": 3}, "binary", [b"abc", b"\0\xff1"]),
    ("nullable_last", ["int", "null"], "int", [7, None]),
    ("null_alone", "null", "string", [None, None]),
    ("two_numbers", ["int", "long"], "bigint", [7, 2**40]),
    ("number_or_text", ["null", "int", "string"], "string", [None, 7, "x"]),
    ("bytes_or_text", ["bytes", "string"], "string", [b"x", "y"]),
    ("one_branch", ["long"], "bigint", [1, 2]),
    ("record", _NESTED, "struct<a:bigint>", [{"a": 1}, {"a": None}]),
    ("record_or_null", ["null", _NESTED], "struct<a:bigint>", [None, {"a": 3}]),
    ("list_of_unions", {"type": "array", "items": ["null", "long"]}, "array<bigint>", [[1, None]]),
    ("union_type", ["int", "string"], "uniontype<int,string>", [7, "x"]),
    ("micros", {"type": "long", "logicalType": "timestamp-micros"}, "timestamp", [1, -1]),
    ("time", {"type": "int", "logicalType": "time-millis"}, "int", [1000]),
    ("uuid", {"type": "string", "logicalType": "uuid"}, "string", ["a", "b"]),
]


_OF_THE_SCHEMA = {"two_numbers", "number_or_text", "bytes_or_text", "micros"}
"""Where the hive connector takes the column's type from the schema. The connector refuses it."""


@pytest.mark.parametrize(("name", "stored", "hive", "values"), _SAME, ids=[e[0] for e in _SAME])
@pytest.mark.parametrize("declared", ["columns", "url"] if nightly() else ["url"])
def test_unions_and_other_types(
    stack: Stack,
    tmp_path: Path,
    declared: str,
    name: str,
    stored: Any,
    hive: str,
    values: list[Any],
) -> None:
    """The rows of the hive connector, or an error of both."""
    directory = tmp_path / "table"
    directory.mkdir()
    fields = [{"name": "id", "type": "long"}, {"name": "v", "type": stored}]
    plain = stored["type"] if isinstance(stored, dict) and "logicalType" in stored else stored
    with (directory / "a.avro").open("wb") as file:
        written = schema([fields[0], {"name": "v", "type": plain}])
        fastavro.writer(file, written, [{"id": i, "v": value} for i, value in enumerate(values)])
    (tmp_path / "s.avsc").write_text(json.dumps(schema(fields)))
    table = f"avro_{name}_{declared}"
    made = CatalogTable(
        TableName("laws", table), columns("id bigint"), (), f"file://{directory}", "avro"
    )
    record = thrift_table(made.name, made)
    record.sd.cols.append(records.FieldSchema("v", hive, ""))
    if declared == "url":
        record.parameters["avro.schema.url"] = f"file://{tmp_path}/s.avsc"
    with MetastoreClient(stack.metastore_uri) as client:
        client.create_table(record)
    sql = f"SELECT id FROM laws.{table} ORDER BY id"
    assert answer(ours, stack, sql) == answer(theirs, stack, sql)
    sql = f"SELECT v FROM laws.{table} ORDER BY id"
    if declared == "url" and name in _OF_THE_SCHEMA:
        with pytest.raises(Exception, match=r"column 'v' is .* in the table and .* in its Avro"):
            stack.query(sql)
    elif hive.startswith("uniontype"):  # the column is left out
        assert answer(ours, stack, sql) == "error"
    else:
        assert repr(answer(ours, stack, sql)) == repr(answer(theirs, stack, sql))


def test_a_schema_that_grows_in_its_file(stack: Stack, tmp_path: Path) -> None:
    """A schema is read anew by each query: files of both ages are resolved to it."""
    directory = tmp_path / "table"
    directory.mkdir()
    first = [{"name": "id", "type": "int"}]
    write(directory / "a.avro", first, [{"id": 1}])
    url = tmp_path / "s.avsc"
    url.write_text(json.dumps(schema(first)))
    registered(
        stack, "avro_grown", directory, "id bigint; s string", {"avro.schema.url": f"file://{url}"}
    )
    grown = [
        {"name": "id", "type": "long"},
        {"name": "s", "type": ["string", "null"], "default": "none"},
    ]
    write(directory / "b.avro", grown, [{"id": 2**40, "s": "x"}, {"id": 3, "s": None}])
    url.write_text(json.dumps(schema(grown)))
    sql = "SELECT * FROM laws.avro_grown ORDER BY id"
    found = answer(ours, stack, sql)
    assert found == answer(theirs, stack, sql)
    assert found == [[1, "none"], [3, None], [2**40, "x"]]


def test_what_cannot_be_read_names_its_file(stack: Stack, tmp_path: Path) -> None:
    write(tmp_path / "a.avro", AVRO_FIELDS, rows(0, 2_000), "null")
    registered(stack, "avro_damaged", tmp_path, AVRO_TYPES, {})
    sql = "SELECT count(s), sum(id) FROM laws.avro_damaged"
    whole = (tmp_path / "a.avro").read_bytes()
    for damaged in (whole[:-30], b"Obj\x02" + whole[4:], whole[: len(whole) // 2]):
        (tmp_path / "a.avro").write_bytes(damaged)
        assert answer(theirs, stack, sql) == "error"
        with pytest.raises(
            Exception, match=r"FILE_CORRUPT.*a\.avro cannot be read as Avro|a\.avro"
        ):
            stack.query(sql)
    (tmp_path / "a.avro").write_bytes(whole)
    # Trino's reader gives values of the schema's types: the connector refuses other columns.
    literal = {"avro.schema.literal": json.dumps(schema([{"name": "id", "type": "long"}]))}
    registered(stack, "avro_mismatch", tmp_path, "id string", literal)
    with pytest.raises(Exception, match=r"TYPE_MISMATCH|id.*is varchar in the table"):
        stack.query("SELECT id FROM laws.avro_mismatch")
    # The file is sound: it is not to be restored.
    letters = [{"name": "e", "type": {"type": "enum", "name": "letter", "symbols": ["a", "b"]}}]
    (tmp_path / "enum").mkdir()
    write(tmp_path / "enum" / "a.avro", letters, [{"e": "b"}])
    registered(stack, "avro_enum", tmp_path / "enum", "e string", {})
    with pytest.raises(Exception, match=r"TYPE_MISMATCH.*a\.avro|a\.avro.*column's type"):
        stack.query("SELECT e FROM laws.avro_enum")
