"""The merge of a file slice: rules, deletions, keys, types and damage."""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bridge.formats.hudi.avro_rows import row_decoder
from bridge.formats.hudi.by_id import FileColumn, FileColumns, LogColumns
from bridge.formats.hudi.log_format import BlockType, Header, parse_blocks
from bridge.formats.hudi.log_records import _delete_schema
from bridge.kernel.errors import (
    BridgeError,
    FileChanged,
    FileCorrupt,
    SchemaConflict,
    UnsupportedTable,
)
from bridge.storage.routed import open_storage
from bridge.storage.uri import canonical
from bridge.table.hudi.merging.merge import read_slice
from bridge.table.hudi.merging.merge_mode import MergeMode
from bridge.table.hudi.merging.merge_rules import MergeRules
from bridge.table.hudi.merging.reader_properties import MERGED, read_merged
from bridge.table.reader_spec import ReaderSpec
from bridge.table.snapshot import MergedSlice
from tests.support.hudi_writer import avro_block, log_block

KEY = "_hoodie_record_key"
AVRO = {
    "type": "record",
    "name": "row",
    "fields": [
        {"name": KEY, "type": ["null", "string"]},
        {"name": "v", "type": ["null", "string"]},
        {"name": "ts", "type": ["null", "long"]},
        {"name": "_hoodie_is_deleted", "type": ["null", "boolean"], "default": None},
        {"name": "_hoodie_operation", "type": ["null", "string"], "default": None},
    ],
}
SCHEMA = pa.schema(
    [
        (KEY, pa.string()),
        ("v", pa.string()),
        ("ts", pa.int64()),
        ("_hoodie_is_deleted", pa.bool_()),
        ("_hoodie_operation", pa.string()),
    ]
)
EVENT = MergeRules(MergeMode.EVENT_TIME_ORDERING, ordering_fields=("ts",))
COMMIT = MergeRules(MergeMode.COMMIT_TIME_ORDERING, ordering_fields=("ts",))
OLD_EVENT = MergeRules(MergeMode.EVENT_TIME_ORDERING, True, ("ts",))
OLD_COMMIT = MergeRules(MergeMode.COMMIT_TIME_ORDERING, True, ("ts",))
Row = tuple[str, str, int | None]


def rows(instant: str, *found: Row, **more: Any) -> bytes:
    schema = [{KEY: key, "v": v, "ts": ts, **more} for key, v, ts in found]
    return avro_block(instant, AVRO, schema)


def deletes(
    instant: str, *keys: tuple[str, Any], version: int = 3, header: Mapping[int, str] | None = None
) -> bytes:
    """Keys with their ordering values: None, or the wrapper's name and the value."""
    found = [
        {
            "recordKey": key,
            "partitionPath": "",
            "orderingVal": None if value is None else (value[0] + "Wrapper", {"value": value[1]}),
        }
        for key, value in keys
    ]
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, _delete_schema(), {"deleteRecordList": found})
    content = struct.pack(">ii", version, len(buffer.getvalue())) + buffer.getvalue()
    return log_block(BlockType.DELETE, {Header.INSTANT_TIME: instant, **(header or {})}, content)


class Slice:
    def __init__(self, path: Path, base: str = "base.parquet") -> None:
        self.path = path
        self._name = base
        self.base: tuple[str, int] | None = None
        self.logs: list[tuple[str, int]] = []

    def with_base(self, *found: Row, table: pa.Table | None = None) -> Slice:
        table = table or pa.table(
            {
                KEY: pa.array([row[0] for row in found], pa.string()),
                "v": pa.array([row[1] for row in found], pa.string()),
                "ts": pa.array([row[2] for row in found], pa.int64()),
            }
        )
        path = self.path / self._name
        pq.write_table(table, path)
        self.base = canonical(str(path)), path.stat().st_size
        return self

    def log(self, *blocks: bytes) -> Slice:
        path = self.path / f".f_1.log.{len(self.logs) + 1}_0-0-0"
        path.write_bytes(b"".join(blocks))
        self.logs.append((canonical(str(path)), path.stat().st_size))
        return self

    def read(
        self,
        rules: MergeRules,
        valid: str = "123456789",
        schema: pa.Schema = SCHEMA,
        columns: Sequence[str] | None = None,
        log_columns: LogColumns | None = None,
    ) -> pa.Table:
        return read_slice(
            open_storage(),
            self.base,
            self.logs,
            schema,
            rules,
            set(valid).__contains__,
            columns,
            log_columns=log_columns,
        )

    def values(self, rules: MergeRules, valid: str = "123456789") -> dict[str, str]:
        read = self.read(rules, valid)
        keys = read.column(KEY).to_pylist()
        assert len(set(keys)) == len(keys)
        return dict(zip(keys, read.column("v").to_pylist(), strict=True))


@pytest.fixture
def slice(tmp_path: Path) -> Slice:
    return Slice(tmp_path)


def test_a_slice_without_logs_is_its_base(slice: Slice) -> None:
    slice.with_base(("a", "base", 1))
    assert slice.values(EVENT) == {"a": "base"}


def test_a_slice_of_logs_alone(slice: Slice) -> None:
    slice.log(rows("1", ("a", "x", 1), ("b", "y", 1)), rows("2", ("a", "z", 2)))
    assert slice.values(EVENT) == {"a": "z", "b": "y"}


def test_what_came_later_counts_by_commit_time(slice: Slice) -> None:
    slice.with_base(("a", "base", 9), ("b", "base", 9), ("c", "base", 9))
    slice.log(rows("1", ("a", "x", 5), ("b", "x", 5))).log(rows("2", ("a", "y", 1)))
    assert slice.values(COMMIT) == {"a": "y", "b": "x", "c": "base"}


def test_the_greatest_ordering_value_counts_by_event_time(slice: Slice) -> None:
    slice.with_base(("a", "base", 9), ("b", "base", 1), ("c", "base", 5))
    slice.log(rows("1", ("a", "x", 5), ("b", "x", 5), ("c", "x", 5)))
    slice.log(rows("2", ("b", "y", 4), ("c", "y", 5)))
    assert slice.values(EVENT) == {"a": "base", "b": "x", "c": "y"}
    assert slice.values(OLD_EVENT) == {"a": "base", "b": "x", "c": "y"}


def test_hudi_0_orders_logs_among_each_other_but_not_with_the_base(slice: Slice) -> None:
    slice.with_base(("a", "base", 9), ("b", "base", 9))
    slice.log(rows("1", ("a", "x", 5))).log(rows("2", ("a", "y", 1), ("b", "y", 1)))
    assert slice.values(OLD_COMMIT) == {"a": "x", "b": "y"}


def test_a_deletion_without_an_ordering_value_always_counts(slice: Slice) -> None:
    slice.with_base(("a", "base", 9), ("b", "base", 9), ("c", "base", 1))
    slice.log(rows("1", ("a", "x", 99)), deletes("2", ("a", None), ("b", ("Int", 0))))
    for rules in (EVENT, COMMIT, OLD_EVENT, OLD_COMMIT):
        assert slice.values(rules) == {"c": "base"}


def test_a_deletion_with_an_ordering_value_may_be_late(slice: Slice) -> None:
    slice.with_base(("a", "base", 1), ("b", "base", 9), ("c", "base", 1))
    slice.log(rows("1", ("a", "x", 9)))
    slice.log(deletes("2", ("a", ("Long", 5)), ("b", ("Long", 5)), ("c", ("Long", 5))))
    assert slice.values(EVENT) == {"a": "x", "b": "base"}
    assert slice.values(COMMIT) == {}
    # Hudi 0.x does not compare a deleted key with the base file.
    assert slice.values(OLD_EVENT) == {"a": "x"}


def test_a_row_after_a_deletion(slice: Slice) -> None:
    slice.with_base(("a", "base", 1))
    slice.log(deletes("1", ("a", ("Long", 5)))).log(rows("2", ("a", "x", 4)))
    assert slice.values(EVENT) == {}
    assert slice.values(COMMIT) == {"a": "x"}
    assert slice.values(OLD_EVENT) == {"a": "x"}


def test_a_row_over_a_deletion_without_order_meets_the_base_again(slice: Slice) -> None:
    slice.with_base(("a", "base", 7))
    slice.log(deletes("1", ("a", None))).log(rows("2", ("a", "x", 4)))
    assert slice.values(EVENT) == {"a": "base"}


def test_rows_that_say_they_are_deleted(slice: Slice) -> None:
    slice.with_base(("a", "base", 1), ("b", "base", 9))
    slice.log(rows("1", ("a", "x", 5), ("b", "x", 5), ("c", "x", 5), _hoodie_is_deleted=True))
    slice.log(rows("2", ("c", "y", 4)))
    assert slice.values(EVENT) == {"b": "base"}
    assert slice.values(COMMIT) == {"c": "y"}


@pytest.mark.parametrize(("operation", "left"), [("D", {}), ("-U", {}), ("I", {"a": "x"})])
def test_rows_that_are_deletions_by_their_operation(
    slice: Slice, operation: str, left: Mapping[str, str]
) -> None:
    slice.with_base(("a", "base", 1)).log(rows("1", ("a", "x", 5), _hoodie_operation=operation))
    assert slice.values(EVENT) == left


def test_rows_that_are_deletions_by_a_marker(slice: Slice) -> None:
    slice.with_base(("a", "base", 1), ("b", "base", 1))
    slice.log(rows("1", ("a", "gone", 5), ("b", "stays", 5)))
    marked = MergeRules(MergeMode.COMMIT_TIME_ORDERING, delete_marker=("v", "gone"))
    assert slice.values(marked) == {"b": "stays"}


def test_marks_that_the_catalogue_does_not_know(slice: Slice) -> None:
    fields = [*AVRO["fields"], {"name": "Op", "type": ["null", "string"], "default": None}]
    avro = {**AVRO, "fields": fields}
    slice.with_base(("a", "base", 1), ("b", "base", 1), ("c", "base", 1))
    found = [
        {KEY: "a", "v": "x", "ts": 2, "_hoodie_is_deleted": True},
        {KEY: "b", "v": "x", "ts": 2, "Op": "D"},
        {KEY: "c", "v": "x", "ts": 2, "Op": "U"},
    ]
    slice.log(avro_block("1", avro, found))
    delete = "hoodie.record.merge.property.hoodie.payload.delete"
    properties = {
        "hoodie.table.version": "9",
        "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
        f"{delete}.field": "Op",
        f"{delete}.marker": "D",
        "skipbridge.hudi.schema": json.dumps(avro),
        "skipbridge.hudi.instant": "9",
    }
    reader = ReaderSpec(MERGED, tuple(sorted(properties.items())))
    merged = MergedSlice(slice.base, tuple(slice.logs), reader)
    catalog = pa.schema([("v", pa.string()), ("ts", pa.int64())])
    assert read_merged(open_storage(), merged, catalog).to_pylist() == [{"v": "x", "ts": 2}]


def test_blocks_of_other_instants_do_not_count(slice: Slice) -> None:
    slice.with_base(("a", "base", 1)).log(rows("1", ("a", "x", 5)), rows("2", ("a", "y", 6)))
    assert slice.values(EVENT, valid="1") == {"a": "x"}
    assert slice.values(EVENT, valid="") == {"a": "base"}


def test_rows_without_an_ordering_value(slice: Slice) -> None:
    slice.with_base(("a", "base", None)).log(rows("1", ("a", "x", None)))
    assert slice.values(EVENT) == {"a": "x"}
    slice.log(rows("2", ("a", "y", 1)))
    with pytest.raises(UnsupportedTable, match="ordering values"):
        slice.values(EVENT)


def test_only_the_first_of_two_rows_with_a_key_meets_the_logs(slice: Slice) -> None:
    slice.with_base(("a", "one", 1), ("a", "two", 1)).log(rows("1", ("a", "x", 5)))
    assert sorted(slice.read(EVENT).column("v").to_pylist()) == ["two", "x"]


def test_keys_of_a_table_without_meta_columns(slice: Slice) -> None:
    schema = pa.schema([("id", pa.int32()), ("part", pa.string()), ("v", pa.string())])
    table = pa.table({"id": [1, 2], "part": ["p", None], "v": ["base", "base"]}, schema)
    avro = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "part", "type": ["null", "string"]},
            {"name": "v", "type": "string"},
        ],
    }
    slice.with_base(table=table)
    slice.log(avro_block("1", avro, [{"id": 1, "part": "p", "v": "x"}]))
    slice.log(deletes("2", ("2", None), ("id:2,part:__null__", None)))
    one = MergeRules(MergeMode.COMMIT_TIME_ORDERING, key_fields=("id",))
    two = MergeRules(MergeMode.COMMIT_TIME_ORDERING, key_fields=("id", "part"))
    for rules in (one, two):
        read = slice.read(rules, schema=schema)
        assert read.to_pylist() == [{"id": 1, "part": "p", "v": "x"}]
    dates = MergeRules(MergeMode.COMMIT_TIME_ORDERING, key_fields=("v", "id"))
    with pytest.raises(UnsupportedTable, match="no meta columns"):
        slice.read(dates, schema=schema.set(0, pa.field("id", pa.float64())))


@pytest.mark.rule("48")
def test_names_may_differ_in_case(slice: Slice) -> None:
    schema = pa.schema([("id", pa.int32()), ("part", pa.string()), ("ts", pa.int64())])
    fields = [("Id", "int"), ("Part", "string"), ("Ts", "long")]
    avro = {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": type} for name, type in fields],
    }
    slice.with_base(table=pa.table({"ID": [1, 2], "PART": ["p", "q"], "TS": [5, 5]}))
    slice.log(avro_block("1", avro, [{"Id": 1, "Part": "p", "Ts": 4}]))
    slice.log(deletes("2", ("Id:2,Part:q", None)))
    rules = MergeRules(MergeMode.EVENT_TIME_ORDERING, False, ("Ts",), ("Id", "Part"))
    assert slice.read(rules, schema=schema).to_pylist() == [{"id": 1, "part": "p", "ts": 5}]


def test_columns_may_be_chosen(slice: Slice) -> None:
    slice.with_base(("a", "base", 9)).log(rows("1", ("a", "x", 5)))
    read = slice.read(EVENT, columns=["v"])
    assert read.to_pydict() == {"v": ["base"]}
    assert slice.read(COMMIT, columns=["ts", KEY]).to_pydict() == {"ts": [5], KEY: ["a"]}
    with pytest.raises(UnsupportedTable, match="'nope' is no column"):
        slice.read(COMMIT, columns=["nope"])


def test_meta_columns_are_added(slice: Slice) -> None:
    slice.with_base(("a", "base", 9)).log(rows("1", ("a", "x", 5)))
    read = slice.read(COMMIT, schema=pa.schema([("v", pa.string())]))
    assert read.column_names[:5] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        KEY,
        "_hoodie_partition_path",
        "_hoodie_file_name",
    ]
    assert read.column("v").to_pylist() == ["x"]


def test_parquet_blocks(slice: Slice) -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({KEY: ["a"], "v": ["x"], "ts": [5]}), buffer)
    header = {Header.INSTANT_TIME: "1", Header.SCHEMA: json.dumps(AVRO)}
    slice.with_base(("a", "base", 1))
    slice.log(log_block(BlockType.PARQUET_DATA, header, buffer.getvalue()))
    assert slice.values(EVENT) == {"a": "x"}


def test_what_is_not_merged_is_refused(slice: Slice) -> None:
    for block in (
        avro_block("1", AVRO, [{KEY: "a", "v": "x", "ts": 1}], is_partial="true"),
        deletes("1", ("a", None), version=2),
    ):
        slice.logs.clear()
        slice.log(block)
        with pytest.raises(UnsupportedTable):
            slice.read(EVENT)


def _since(*versions: tuple[int, FileColumns, set[str]], **exceptions: int) -> LogColumns:
    return LogColumns(
        tuple(since for since, _, _ in versions),
        tuple((columns, frozenset(names)) for _, columns, names in versions),
        {instant.removeprefix("at"): place for instant, place in exceptions.items()},
    )


def test_each_block_of_a_log_has_the_columns_of_its_own_instant(slice: Slice) -> None:
    """The table's ``w`` was called ``v`` until the instant 2, and 3 still wrote so."""
    slice.log(rows("1", ("a", "x", 5)), rows("2", ("b", "y", 5)), rows("3", ("c", "z", 5)))
    table = pa.schema([(KEY, pa.string()), ("w", pa.string()), ("ts", pa.int64())])
    older = {"w": FileColumn("v")}
    told = _since((0, older, {"v", "ts"}), (2, {"w": None}, {"v", "ts"}), at3=0)
    assert LogColumns.decode(told.encode()) == told
    read = slice.read(COMMIT, schema=table, log_columns=told)
    assert read.sort_by(KEY).column("w").to_pylist() == ["x", None, "z"]
    swapped = {"v": FileColumn("w"), "w": FileColumn("v")}
    told = _since((0, swapped, {"v", "ts"}))
    both = pa.schema([*table, ("v", pa.string())])
    read = slice.read(COMMIT, schema=both, log_columns=told)
    assert read.column("w").to_pylist() == ["x", "y", "z"] and read.column("v").null_count == 3


def test_a_log_whose_older_schema_is_not_sure_is_refused(slice: Slice) -> None:
    slice.log(rows("1", ("a", "x", 5)))
    for rules, told in (
        (COMMIT, _since((0, {}, {"v", "ts", "lost"}))),  # the block's own schema lacks a column
        (COMMIT, _since((2, {}, {"v", "ts"}))),  # no version is as old as the block
        (EVENT, _since((0, {"ts": FileColumn("ts", "int")}, {"v", "ts"}))),
    ):
        with pytest.raises(UnsupportedTable, match="older schema"):
            slice.read(rules, log_columns=told)


def test_types_of_log_and_table_may_differ(slice: Slice) -> None:
    slice.log(rows("1", ("a", "x", 5)))
    wider = pa.schema([(KEY, pa.string()), ("ts", pa.float64()), ("new", pa.int32())])
    read = slice.read(
        MergeRules(MergeMode.COMMIT_TIME_ORDERING), schema=wider, columns=["ts", "new"]
    )
    assert read.to_pylist() == [{"ts": 5.0, "new": None}]
    narrow = pa.schema([(KEY, pa.string()), ("v", pa.int32())])
    with pytest.raises(SchemaConflict, match="'v' is int32"):
        slice.read(MergeRules(MergeMode.COMMIT_TIME_ORDERING), schema=narrow)


def test_a_log_cut_at_every_byte_keeps_whole_blocks(slice: Slice) -> None:
    blocks = [rows("1", ("a", "x", 5)), rows("2", ("a", "y", 6), ("b", "y", 6))]
    data = b"".join(blocks)
    slice.with_base(("a", "base", 1))
    path = slice.path / ".f_1.log.1_0-0-0"
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        slice.logs = [(canonical(str(path)), length)]
        expected = {"a": "base"}
        if length >= len(blocks[0]):
            expected = {"a": "x"}
        if length == len(data):
            expected = {"a": "y", "b": "y"}
        assert slice.values(EVENT) == expected, length
        if length:
            slice.logs = [(canonical(str(path)), length + 1)]
            with pytest.raises(FileChanged):
                slice.read(EVENT)


def test_a_flipped_bit_is_an_error_or_changes_values_only(slice: Slice) -> None:
    data = rows("1", ("a", "x", 5), ("b", "y", 6)) + deletes("2", ("c", ("Long", 9)))
    slice.with_base(("a", "base", 1), ("c", "base", 1))
    path = slice.path / ".f_1.log.1_0-0-0"
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(bytes(damaged))
        slice.logs = [(canonical(str(path)), len(data))]
        try:
            read = slice.read(EVENT)
        except BridgeError as error:
            assert error.code in ("FILE_CORRUPT", "UNSUPPORTED_TABLE", "SCHEMA_CONFLICT"), place
        else:
            assert 1 <= read.num_rows <= 4, place


def test_a_base_file_of_another_length_has_changed(slice: Slice) -> None:
    slice.with_base(("a", "base", 1))
    assert slice.base is not None
    slice.base = slice.base[0], slice.base[1] - 1
    with pytest.raises(FileChanged):
        slice.read(EVENT)
    Path(slice.base[0].removeprefix("file://")).write_bytes(b"x" * slice.base[1])
    with pytest.raises(FileCorrupt):
        slice.read(EVENT)


def logical(type: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": type, "logicalType": name, **more}


TYPES: dict[str, tuple[Any, pa.DataType, Sequence[Any], Sequence[Any]]] = {
    "date": (
        logical("int", "date"),
        pa.date32(),
        [-1, 0],
        [dt.date(1969, 12, 31), dt.date(1970, 1, 1)],
    ),
    "millis": (
        logical("long", "timestamp-millis"),
        pa.timestamp("us", "UTC"),
        [-1],
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999000, dt.UTC)],
    ),
    "micros": (
        logical("long", "timestamp-micros"),
        pa.timestamp("us", "UTC"),
        [-1],
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC)],
    ),
    "local": (
        logical("long", "local-timestamp-micros"),
        pa.timestamp("us"),
        [1],
        [dt.datetime(1970, 1, 1, 0, 0, 0, 1)],
    ),
    "decimal": (
        logical("bytes", "decimal", precision=38, scale=2),
        pa.decimal128(38, 2),
        [b"\xff", (10**38 - 1).to_bytes(16, "big", signed=True)],
        [Decimal("-0.01"), Decimal("9" * 36 + ".99")],
    ),
    "enum": ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, pa.string(), ["B"], ["B"]),
    "fixed": ({"type": "fixed", "name": "f", "size": 2}, pa.binary(), [b"ab"], [b"ab"]),
    "map": (
        {"type": "map", "values": ["null", "int"]},
        pa.map_(pa.string(), pa.int32()),
        [{"a": 1, "b": None}],
        [[("a", 1), ("b", None)]],
    ),
}


def raw(schema: Any, values: Iterable[Any]) -> list[dict[str, Any]]:
    return [{KEY: str(i), "c": value} for i, value in enumerate(values)]


@pytest.mark.parametrize("name", TYPES)
def test_logical_types(slice: Slice, name: str) -> None:
    avro, arrow, stored, expected = TYPES[name]
    fields = [{"name": KEY, "type": "string"}, {"name": "c", "type": ["null", avro]}]
    plain = json.loads(json.dumps(avro).replace("logicalType", "was"))
    written = {
        "type": "record",
        "name": "r",
        "fields": [fields[0], {"name": "c", "type": ["null", plain]}],
    }
    declared = {"type": "record", "name": "r", "fields": fields}
    block = avro_block("1", written, raw(written, [*stored, None]))
    # The same bytes under the schema with logical types.
    header = {Header.INSTANT_TIME: "1", Header.SCHEMA: json.dumps(declared)}
    content = bytes(parse_blocks(block, "file:/x")[0].content)
    slice.log(log_block(BlockType.AVRO_DATA, header, content))
    schema = pa.schema([(KEY, pa.string()), ("c", arrow)])
    read = slice.read(MergeRules(MergeMode.COMMIT_TIME_ORDERING), schema=schema, columns=["c"])
    assert read.column("c").to_pylist() == [*expected, None]


@pytest.mark.parametrize(
    "type",
    [
        ["int", "string"],
        {"type": "array", "items": "null"},
        {"type": "array", "items": {"type": "record", "name": "empty", "fields": []}},
        {"type": "fixed", "name": "none", "size": 0},
    ],
)
def test_types_that_are_not_read(type: Any) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "c", "type": type}]}
    with pytest.raises(UnsupportedTable):
        row_decoder(json.dumps(schema))


@pytest.mark.parametrize("schema", ["", "{", "[]", '"int"', '{"type": "record"}', "null"])
def test_what_is_no_schema_is_damage(schema: str) -> None:
    with pytest.raises(FileCorrupt):
        row_decoder(schema)
