"""Avro files: what they state is held against their bytes, before a library decodes them."""

from __future__ import annotations

import bz2
import json
import lzma
import random
import tracemalloc
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from bridge.formats.avro import container as avro_container
from bridge.formats.avro import skipping
from bridge.formats.avro.container import Container, Plain, checked_schema
from bridge.formats.hudi.avro_rows import row_decoder
from bridge.kernel.errors import FileCorrupt
from bridge.table.hudi.timeline.commit_metadata import read_avro, read_commit
from tests.tiers import examples, seed

_FLAT = {"type": "record", "name": "r", "fields": [{"name": "x", "type": "long"}]}


def number(value: int) -> bytes:
    out, value = bytearray(), value << 1 if value >= 0 else (-value << 1) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def text(value: bytes) -> bytes:
    return number(len(value)) + value


def avro(schema: Any, blocks: list[tuple[int, bytes]], codec: str = "null") -> bytes:
    meta = {b"avro.schema": json.dumps(schema).encode(), b"avro.codec": codec.encode()}
    head = b"Obj\1" + number(2) + b"".join(text(k) + text(v) for k, v in meta.items()) + b"\0"
    sync = b"S" * 16
    return head + sync + b"".join(number(n) + text(data) + sync for n, data in blocks)


def rows(content: bytes) -> list[Any]:
    """What the container gives to fastavro, which must be what fastavro reads by itself."""
    return list(fastavro.reader(Plain(Container(BytesIO(content), len(content)))))


def record(*types: Any, name: str = "r") -> dict[str, Any]:
    fields = [{"name": f"f{i}", "type": type} for i, type in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


def nested(levels: int) -> Any:
    type: Any = "long"
    for i in range(levels):
        type = record(type, name=f"r{i}")
    return type


def doubling(levels: int) -> Any:
    """Each type has the one before it twice: few bytes of schema, any number of values."""
    type: Any = record("null", "long", name="r0")
    for i in range(1, levels):
        type = record(type, f"r{i - 1}", name=f"r{i}")
    return type


HOSTILE = {
    "itself": record("r"),
    "itself in a union": record(["null", "r"]),
    "itself in a list": record({"type": "array", "items": "r"}),
    "itself by two": record(record("r", name="s")),
    "deep": nested(70),
    "deep lists": record(json.loads('{"type":"array","items":' * 70 + '"int"' + "}" * 70)),
    "nulls in a list": record({"type": "array", "items": "null"}),
    "empty records in a list": record({"type": "array", "items": record(name="s")}),
    "no bytes in a list": record(
        {"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}}
    ),
    "doubling": doubling(40),
    "nulls": record(*["null"] * 5000),
    "a union of nothing": record([]),
    "a negative size": record({"type": "fixed", "name": "f", "size": -1}),
    "an unknown type": record("strange"),
    "no schema": 7,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.rule("32")
def test_32_a_schema_is_walked_before_a_library_decodes_by_it(name: str) -> None:
    schema = json.dumps(HOSTILE[name])
    with pytest.raises((ValueError, KeyError, TypeError)):
        checked_schema(schema)
    with pytest.raises(Exception, match=r"schema|list"):
        row_decoder(schema)
    with pytest.raises(FileCorrupt):
        read_commit(avro(HOSTILE[name], [(1, bytes(16))]), "20260101000000000.commit")


def test_a_schema_of_very_many_levels_is_refused() -> None:
    for opening in ('{"type":"array","items":', "["):
        with pytest.raises(ValueError, match="more than 64 levels"):
            checked_schema(opening * 50_000)


@pytest.mark.parametrize("levels", [1, 20, 60])
def test_a_schema_within_the_limits_is_read(levels: int) -> None:
    assert rows(avro(nested(levels), [(2, number(5) + number(6))]))


_CODECS: dict[str, Any] = {
    "null": bytes,
    "deflate": lambda data: zlib.compress(data, wbits=-15),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": lambda data: pa.compress(data, "zstd", asbytes=True),
    "snappy": lambda data: (
        pa.compress(data, "snappy", asbytes=True) + zlib.crc32(data).to_bytes(4, "big")
    ),
}


@pytest.mark.parametrize("codec", _CODECS)
@pytest.mark.rule("32")
def test_32_a_block_is_unpacked_up_to_a_limit(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 1 << 16
    monkeypatch.setattr(avro_container, "MAX_BLOCK", most)
    pack = _CODECS[codec]
    data = b"".join(map(number, range(1000)))
    assert [r["x"] for r in rows(avro(_FLAT, [(1000, pack(data))], codec))] == list(range(1000))
    if codec != "null":
        bomb = avro(_FLAT, [(most + 1, pack(bytes(most + 1)))], codec)
        with pytest.raises(ValueError, match="unpacks to more"):
            rows(bomb)


@pytest.mark.parametrize(
    "blocks",
    [
        [(1 << 62, b"")],
        [(-5, b"")],
        [(3, b"\2\2")],
        [(1 << 62, b"\2\2")],
    ],
)
@pytest.mark.rule("32")
def test_32_rows_stated_are_held_against_the_bytes_of_their_block(
    blocks: list[tuple[int, bytes]],
) -> None:
    with pytest.raises(ValueError, match="states"):
        rows(avro(_FLAT, blocks))


@pytest.mark.rule("32")
@pytest.mark.parametrize("codec", _CODECS)
def test_32_a_part_is_not_held_before_its_length_is_known(codec: str) -> None:
    """A sparse file has gigabytes that no disk holds."""
    data = b"".join(map(number, range(100)))
    content = avro(_FLAT, [(100, _CODECS[codec](data))], codec)
    assert len(list(fastavro.reader(Plain(Container(BytesIO(content), len(content), 1 << 16)))))
    header = content[: content.index(b"S" * 16) + 16]
    for start in (
        header + number(1) + number(3 << 30),
        b"Obj\1" + number(1) + number(3 << 30),
        b"Obj\1" + number(1) + text(b"avro.schema") + number(3 << 30),
    ):
        source = Sparse(start)
        with pytest.raises(ValueError, match="at most 65536 are read"):
            list(Container(source, 4 << 30, 1 << 16).blocks())
        assert source.most < 1 << 10
    with pytest.raises(ValueError, match="header has"):
        Container(Sparse(b"Obj\1" + number(1 << 40)), 4 << 30)


class Sparse(BytesIO):
    """Zeros follow the bytes.

    Attributes:
        most: the most bytes that were read at once.
    """

    most = 0

    def read(self, count: int | None = -1) -> bytes:
        assert count is not None
        self.most = max(self.most, count)
        return super().read(count).ljust(count, b"\0")


def test_32_rows_of_no_bytes_have_a_limit_in_all_blocks_together() -> None:
    nothing = record("null", "null")
    assert rows(avro(nothing, [(3, b""), (2, b"")])) == [{"f0": None, "f1": None}] * 5
    for blocks in ([(1 << 62, b"")], [(1 << 19, b"")] * 3):
        with pytest.raises(ValueError, match="states"):
            list(read_avro(avro(nothing, blocks)))


def _body(more: Any, content: bytes) -> bytes:
    """Of a commit that has another field behind its statistics."""
    fields = [
        *((name, ["null", "string"]) for name in ("path", "prevCommit")),
        *((name, ["null", "long"]) for name in ("fileSizeInBytes", "logOffset")),
    ]
    stat = record(*(type for _, type in fields), name="stat")
    for field, (name, _) in zip(stat["fields"], fields, strict=True):
        field["name"] = name
    stats = {"type": "map", "values": {"type": "array", "items": stat}}
    whole = record(["null", stats], more)
    whole["fields"][0]["name"] = "partitionToWriteStats"
    return avro(whole, [(1, zlib.compress(content, wbits=-15))], "deflate")


_LARGE = 1 << 20
_OBJECTS = {"type": "array", "items": record(["null", "long"], name="one")}
_BODIES: dict[str, tuple[Any, Callable[[], bytes]]] = {
    "statistics": (
        "null",
        lambda: b"\2\2\0" + number(_LARGE // 4) + bytes(_LARGE + 2),
    ),
    "statistics one by one": (
        "null",
        lambda: b"\2\2\0" + b"\2\0\0\0\0" * (_LARGE // 5) + bytes(2),
    ),
    "partitions": (
        "null",
        lambda: b"\2" + number(_LARGE // 4) + text(b"pp") * (_LARGE // 4) + b"\0",
    ),
    "records": (_OBJECTS, lambda: b"\0" + number(_LARGE) + bytes(_LARGE + 1)),
    "records one by one": (_OBJECTS, lambda: b"\0" + b"\2\0" * (_LARGE // 2) + b"\0"),
    "behind sound statistics": (
        _OBJECTS,
        lambda: b"\2\2\0\2\2" + text(b"f") + bytes(5) + number(_LARGE) + bytes(_LARGE + 1),
    ),
}


@pytest.mark.parametrize("name", _BODIES)
@pytest.mark.rule("32")
def test_32_the_body_of_an_instant_does_not_become_more_than_it_is(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kilobyte of zeros, deflated, would take the planner's memory: each becomes an object."""
    monkeypatch.setattr(skipping, "_FEW", 1 << 14)
    more, make = _BODIES[name]
    content = _body(more, make())
    assert len(content) < 80_000
    tracemalloc.start()
    try:
        with pytest.raises(FileCorrupt, match="bytes state"):
            read_commit(content, "1.commit")
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.rule("32")
def test_32_records_that_are_held_together_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skipping, "_FEW", 1 << 10)
    schema = checked_schema(json.dumps(record(_OBJECTS))).parsed
    zeros, sound = number(500) + bytes(501), number(1) + b"\2" + number(7) + b"\0"
    few = skipping.Few()
    for _ in range(2):
        few.add(schema, zeros)
    with pytest.raises(ValueError, match="bytes state"):
        for _ in range(3):
            few.add(schema, zeros)
    few = skipping.Few()
    for _ in range(900):
        few.add(schema, sound)
    with pytest.raises(IndexError):
        few.add(schema, number(1))


@pytest.mark.rule("32")
def test_32_any_bytes_end_in_rows_or_an_error() -> None:
    """Random changes of whole files, of a schema with lists, maps, unions and named types."""
    schema = record(
        "long",
        ["null", "string"],
        {"type": "array", "items": record("int", ["null", "double"], name="s")},
        {"type": "map", "values": "bytes"},
        {"type": "enum", "name": "e", "symbols": ["a", "b"]},
        ["null", "s"],
    )
    held = [
        {"f0": i, "f1": "x" * i, "f2": [{"f0": i, "f1": 0.5}], "f3": {"k": b"v"}, "f4": "b",
         "f5": None}
        for i in range(20)
    ]  # fmt: skip
    draw, died = random.Random(seed(5)), 0
    for codec in ("null", "deflate"):
        sink = BytesIO()
        fastavro.writer(sink, schema, held, codec=codec, sync_interval=64)
        whole = sink.getvalue()
        assert rows(whole) == held == list(fastavro.reader(BytesIO(whole)))
        for _ in range(examples(300, 1500, 50_000)):
            content = bytearray(whole)
            for _ in range(draw.randint(1, 4)):
                content[draw.randrange(len(content))] = draw.choice((0, 1, 0x7F, 0xFF, 3))
            if draw.random() < 0.3:
                del content[draw.randrange(len(content)) :]
            try:
                rows(bytes(content))
            except (MemoryError, SystemError):
                raise
            except Exception:
                died += 1
    assert died
