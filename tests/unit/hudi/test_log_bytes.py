"""Any bytes in a log block: rows, or an error that names it, in memory that the bytes allow."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bridge.formats import rows as formats_rows
from bridge.formats.avro import skipping
from bridge.formats.hudi.log_format import BlockType, Header, LogBlock, parse_blocks
from bridge.formats.hudi.log_records import deletes_of, field_names, rows_of
from bridge.formats.hudi.parquet_table import parquet_table
from bridge.kernel.errors import BridgeError, FileCorrupt, FileUnreadable, UnsupportedTable
from bridge.storage.child import storage_in_memory
from bridge.table.hudi.files import column_bounds, metadata_table
from tests.support.hudi_writer import avro_block, hfile_block, log_block, parquet_block
from tests.tiers import examples, seed
from tests.unit.file_formats.test_avro_container import number, record, text
from tests.unit.hudi.test_merge import deletes

pytestmark = pytest.mark.rule("32")
_MANY = 1 << 16
_LARGE = 1 << 18
_ITEMS = {"type": "array", "items": record(["null", "long"], name="one")}
_NULLS = pa.list_(pa.struct([("f0", pa.int64())]))


def block(type: BlockType, content: bytes, schema: Any = None) -> LogBlock:
    header = {Header.INSTANT_TIME: "1", Header.SCHEMA: json.dumps(schema)}
    (found,) = parse_blocks(log_block(type, header, content), "file:/log")
    return found


def deletions(data: bytes) -> LogBlock:
    return block(BlockType.DELETE, struct.pack(">ii", 3, len(data)) + data)


def records(schema: Any, found: Sequence[bytes]) -> LogBlock:
    parts = [struct.pack(">ii", 3, len(found))]
    parts += (struct.pack(">i", len(each)) + each for each in found)
    return block(BlockType.AVRO_DATA, b"".join(parts), schema)


def peak(read: Callable[[], object]) -> float:
    """MiB."""
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1] / (1 << 20)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (number(_MANY) + b"\0\0\0" * _MANY + b"\0", "without a key"),
        (number(1 << 40) + bytes(3), "items"),
        (number(-(1 << 40)) + number(5) + bytes(3), "items"),
        (number(1) + b"\2" + number(-5) + bytes(4), "log block at byte 0"),
        (number(1) + b"\2" + number(1 << 62) + bytes(4), "log block at byte 0"),
        (number(1) + b"\2" + text(b"k") + b"\0\0", "log block at byte 0"),
        (number(1) + b"\2" + text(b"k") + b"\0\0\0\0", "longer"),
        (b"", "log block at byte 0"),
    ],
)
def test_32_what_a_block_of_deletions_states_is_held_against_its_bytes(
    data: bytes, told: str
) -> None:
    def read() -> None:
        with pytest.raises(FileCorrupt, match=told):
            deletes_of(deletions(data))

    assert peak(read) < 8


def test_32_deletions_take_few_times_their_bytes() -> None:
    data = number(_MANY) + b"\2\0\0\0" * _MANY + b"\0"
    assert peak(lambda: deletes_of(deletions(data))) < 12
    large = "k" * (4 << 20)
    (found,) = deletes_of(*parse_blocks(deletes("1", (large, None)), "file:/log"))
    assert found.key == large


def test_32_records_are_objects_a_few_at_a_time() -> None:
    """A null of a byte becomes a part of a dictionary, which has hundreds."""
    schema = record(*[["null", "long"]] * 8)
    columns = pa.schema([(f"f{i}", pa.int64()) for i in range(8)])
    many = records(schema, [bytes(8)] * _MANY)
    assert peak(lambda: rows_of(many, columns)) < 40


@pytest.mark.parametrize("wanted", [True, False])
def test_32_a_record_with_many_items_is_decoded_in_a_child(wanted: bool) -> None:
    schema = record("string", _ITEMS)
    columns = pa.schema([("f0", pa.string()), ("f1", _NULLS)][: 1 + wanted])
    some = [text(b"small") + bytes(1), text(b"large") + number(_LARGE) + bytes(_LARGE + 1)]
    both = records(schema, some)
    found: list[pa.Table] = []
    assert peak(lambda: found.append(rows_of(both, columns))) < 16
    assert found[0]["f0"].to_pylist() == ["small", "large"]
    if wanted:
        assert [len(each) for each in found[0]["f1"]] == [0, _LARGE]


@pytest.mark.full
def test_32_a_child_gets_what_a_record_allows() -> None:
    schema, count = record(_ITEMS), 8 << 20
    with pytest.raises(FileUnreadable, match="MemoryError"):
        rows_of(records(schema, [number(count) + bytes(count + 1)]), pa.schema([("f0", _NULLS)]))


def test_32_damage_in_a_child_is_told_as_damage() -> None:
    schema = record(_ITEMS)
    cut = number(_LARGE) + bytes(_LARGE)
    with pytest.raises(FileCorrupt, match="log block at byte 0 is damaged"):
        rows_of(records(schema, [cut]), pa.schema([("f0", _NULLS)]))


def test_32_a_symbol_that_a_byte_stands_for_is_short() -> None:
    kind = {"type": "enum", "name": "e", "symbols": ["a" * 255, "b" * 256]}
    columns = pa.schema([("f0", pa.string())])
    with pytest.raises(UnsupportedTable, match="a symbol of which has 256 characters"):
        rows_of(records(record(kind), [b"\0"]), columns)
    kind["symbols"] = ["a" * 255]
    assert rows_of(records(record(kind), [b"\0"]), columns)["f0"].to_pylist() == ["a" * 255]


def test_32_rows_of_a_block_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An HFile is compressed, so its entries may be any number of times its bytes."""
    schema, columns = record("string"), pa.schema([("f0", pa.string())])
    rows = [{"f0": f"{i:05}" + "x" * 1000} for i in range(400)]
    (packed,) = parse_blocks(hfile_block("1", schema, rows, "f0"), "file:/log")
    assert rows_of(packed, columns).num_rows == 400
    monkeypatch.setattr(formats_rows, "_MOST", 1 << 16)
    monkeypatch.setattr(formats_rows, "_PER_BYTE", 0)
    with pytest.raises(FileCorrupt, match="become more than are held"):
        rows_of(packed, columns)


def test_32_columns_without_values_are_not_held_against_the_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sound table may have hundreds of them."""
    monkeypatch.setattr(formats_rows, "_MOST", 1 << 22)
    count = 1 << 18
    keys = pa.array([f"{i:06}" for i in range(count)])
    wide = {f"n{i}": pa.nulls(count, pa.int64()) for i in range(40)}
    (packed,) = parse_blocks(
        parquet_block("1", record("string"), pa.table({"f0": keys})), "file:/log"
    )
    columns = pa.schema([("f0", pa.string()), *((name, pa.int64()) for name in wide)])
    found = rows_of(packed, columns)
    assert found.nbytes > (1 << 22) + 32 * len(packed.content)
    assert found.num_rows == count


def test_32_rows_have_a_limit_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats_rows, "_MOST_ROWS", 1 << 10)
    numbers = pa.table({"f0": pa.array(np.zeros(1 << 20, np.int64))})
    (packed,) = parse_blocks(parquet_block("1", record("long"), numbers), "file:/log")
    with pytest.raises(FileCorrupt, match="become more than are held"):
        rows_of(packed, pa.schema([("f0", pa.int64())]))


@pytest.mark.parametrize("in_log", [True, False])
def test_32_a_text_that_is_stored_once_for_all_rows(
    in_log: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kilobyte of Parquet may be gigabytes of text."""
    monkeypatch.setattr(formats_rows, "_MOST", 1 << 26)
    codes = pa.array(np.zeros(1 << 16, np.int32))
    stored = pa.DictionaryArray.from_arrays(codes, pa.array(["y" * 10_000]))
    (packed,) = parse_blocks(
        parquet_block("1", record("string"), pa.table({"f0": stored})), "file:/log"
    )
    columns = pa.schema([("f0", pa.string())])
    assert len(packed.content) < 2000
    before = pa.total_allocated_bytes()
    with pytest.raises(FileCorrupt, match="become more than are held"):
        if in_log:
            rows_of(packed, columns)
        else:
            content = bytes(packed.content)
            parquet_table(storage_in_memory(content), "file:/base", len(content), columns)
    assert pa.total_allocated_bytes() - before < 64 << 20


def test_32_a_record_of_the_metadata_table_has_few_values_for_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A block of an HFile unpacks a thousandfold, and each zero would become an item."""
    monkeypatch.setattr(skipping, "_FEW", 1 << 14)
    zeros = number(_MANY) + bytes(_MANY + 1)
    reads = (
        lambda: column_bounds._record(json.dumps(record(_ITEMS)), zeros, "file:/h"),
        lambda: metadata_table._apply({}, [(b"p", zeros)], json.dumps(record(_ITEMS)), "file:/h"),
    )
    for read in reads:
        with pytest.raises(FileCorrupt, match=f"{len(zeros)} bytes state"):
            read()


@pytest.mark.parametrize("schema", ["[" * 5000, '{"fields":' * 5000, "7", '{"type":"record"}'])
def test_32_a_header_without_a_schema_is_damage(schema: str) -> None:
    header = {Header.INSTANT_TIME: "1", Header.SCHEMA: schema}
    content = struct.pack(">ii", 3, 0)
    (odd,) = parse_blocks(log_block(BlockType.AVRO_DATA, header, content), "file:/log")
    with pytest.raises(FileCorrupt):
        rows_of(odd, pa.schema([("f0", pa.string())]))
    with pytest.raises(FileCorrupt):
        field_names(odd)


def test_32_any_bytes_of_a_log_are_rows_or_an_error() -> None:
    schema = record("string", ["null", "long"], _ITEMS, {"type": "map", "values": "bytes"})
    pairs = pa.map_(pa.string(), pa.binary())
    columns = pa.schema([("f0", pa.string()), ("f1", pa.int64()), ("f2", _NULLS), ("f3", pairs)])
    rows = [
        {"f0": f"k{i}", "f1": i, "f2": [{"f0": i}, {"f0": None}], "f3": {"a": b"\0"}}
        for i in range(9)
    ]
    whole = [
        avro_block("1", schema, rows),
        hfile_block("1", schema, rows, "f0"),
        deletes("1", ("a", None), ("b", ("Long", 7))),
    ]
    draw, told = random.Random(seed(33)), 0
    for _ in range(examples(2000, 10_000, 200_000)):
        content = bytearray(draw.choice(whole))
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(content))
            match draw.randrange(4):
                case 0:
                    content[at] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
                case 1:
                    content[at : at + 4] = draw.randbytes(4)
                case 2:
                    content[at:at] = b"\xff" * draw.choice((1, 9))
                case _:
                    del content[at : at + draw.choice((1, 8, 60))]
            if not content:
                break
        try:
            for each in parse_blocks(bytes(content), "file:/log"):
                if each.type is BlockType.DELETE:
                    deletes_of(each)
                elif each.type is not BlockType.CORRUPT:
                    rows_of(each, columns)
        except BridgeError as error:
            told += "file:/log" in error.message
    assert told
