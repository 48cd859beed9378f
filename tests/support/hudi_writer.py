"""Writes Hudi's log blocks and HFiles, byte by byte, so that tests can damage them."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.formats.hudi.log_format import MAGIC, BlockType, Header


def log_block(
    type: int, header: Mapping[int, str], content: bytes = b"", *, version: int = 1
) -> bytes:
    """One block, from magic to its closing length."""
    entries = b"".join(
        struct.pack(">ii", number, len(text.encode())) + text.encode()
        for number, text in header.items()
    )
    body = struct.pack(">iii", version, type, len(header)) + entries
    body += struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    size = len(body) + 8
    return MAGIC + struct.pack(">q", size) + body + struct.pack(">q", size + len(MAGIC))


def avro_content(schema: Any, rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The content of a block of Avro records."""
    import fastavro

    parsed = fastavro.parse_schema(schema)
    records = []
    for row in rows:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, dict(row))
        records.append(buffer.getvalue())
    parts = [struct.pack(">ii", 3, len(records))]
    for record in records:
        parts += [struct.pack(">i", len(record)), record]
    return b"".join(parts)


def avro_block(instant: str, schema: Any, rows: Iterable[Mapping[str, Any]], **more: str) -> bytes:
    """A block of Avro records; ``more`` are further entries of the header by name."""
    header = {Header.INSTANT_TIME: instant, Header.SCHEMA: json.dumps(schema)}
    header.update({Header[name.upper()]: text for name, text in more.items()})
    return log_block(BlockType.AVRO_DATA, header, avro_content(schema, rows))


def hfile_block(instant: str, schema: Any, rows: Iterable[Mapping[str, Any]], key: str) -> bytes:
    """A block that is an HFile of Avro records. ``key``: the column with their keys."""
    import fastavro

    entries = []
    for row in sorted(rows, key=lambda row: row[key]):
        value = io.BytesIO()
        fastavro.schemaless_writer(value, fastavro.parse_schema(schema), dict(row))
        entries.append((row[key].encode(), value.getvalue()))
    header = {Header.INSTANT_TIME: instant, Header.SCHEMA: json.dumps(schema)}
    return log_block(BlockType.HFILE_DATA, header, hfile(entries))


def parquet_block(instant: str, schema: Any, rows: pa.Table) -> bytes:
    """A block that is a Parquet file."""
    content = io.BytesIO()
    pq.write_table(rows, content)
    header = {Header.INSTANT_TIME: instant, Header.SCHEMA: json.dumps(schema)}
    return log_block(BlockType.PARQUET_DATA, header, content.getvalue())


def rollback_block(instant: str, target: str) -> bytes:
    """A block that removes the blocks of another instant."""
    return log_block(
        BlockType.COMMAND,
        {
            Header.INSTANT_TIME: instant,
            Header.TARGET_INSTANT_TIME: target,
            Header.COMMAND_BLOCK_TYPE: "0",
        },
    )


def hfile(
    entries: Sequence[tuple[bytes, bytes]],
    *,
    compressed: bool = True,
    per_block: int = 4,
    levels: int = 1,
    checksums: bool = False,
    info: Mapping[bytes, bytes] | None = None,
    repeat: int = 1,
) -> bytes:
    """An HFile of version 3; the entries are sorted by key.

    Args:
        repeat: how often each level of the index names each block below it.
    """
    out = bytearray()

    def block(magic: bytes, content: bytes) -> tuple[int, int]:
        stored = gzip.compress(content, mtime=0) if compressed else content
        size = 33 + len(stored)
        chunks = -(-size // 16384)
        head = struct.pack(
            ">8siiqbii",
            magic,
            len(stored) + 4 * chunks,
            len(content),
            -1,
            1 if checksums else 0,
            16384,
            size,
        )
        whole = head + stored
        sums = b"".join(
            struct.pack(">I", zlib.crc32(whole[i : i + 16384]) if checksums else 0)
            for i in range(0, size, 16384)
        )
        start = len(out)
        out.extend(whole + sums)
        return start, len(whole) + len(sums)

    index: list[tuple[bytes, int, int]] = []
    for i in range(0, len(entries), per_block):
        part = entries[i : i + per_block]
        content = b"".join(_key_value(key, value) for key, value in part)
        index.append((part[0][0], *block(b"DATABLK*", content)))
    for level in range(levels - 1):
        magic = b"IDXLEAF2" if level == 0 else b"IDXINTE2"
        index = index * repeat
        index = [
            (part[0][0], *block(magic, _leaf(part)))
            for part in (index[i : i + per_block] for i in range(0, len(index), per_block))
        ]
    index = index * repeat
    load_on_open, _ = block(b"IDXROOT2", _root(index))
    block(b"IDXROOT2", b"")
    properties = {
        b"KEY_VALUE_VERSION": struct.pack(">i", 1),
        b"MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
        **(info or {}),
    }
    pairs = b"".join(
        _field(1, _field(1, name) + _field(2, value)) for name, value in properties.items()
    )
    place, _ = block(b"FILEINF2", b"PBUF" + _varint(len(pairs)) + pairs)
    fields = {1: place, 2: load_on_open, 5: len(index), 7: len(entries) * repeat**levels, 8: levels}
    fields[12] = 1 if compressed else 2
    message = b"".join(_varint(number << 3) + _varint(value) for number, value in fields.items())
    trailer = b'TRABLK"$' + _varint(len(message)) + message
    return bytes(out) + trailer.ljust(4092, b"\0") + struct.pack(">i", 3)


def _key(key: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key


def _key_value(key: bytes, value: bytes) -> bytes:
    whole = _key(key) + b"\0" + struct.pack(">qb", (1 << 63) - 1, 4)
    return struct.pack(">ii", len(whole), len(value)) + whole + value + b"\0"


def _root(index: Sequence[tuple[bytes, int, int]]) -> bytes:
    return b"".join(
        struct.pack(">qi", start, size) + _hadoop_varint(len(key) + 2) + _key(key)
        for key, start, size in index
    )


def _leaf(index: Sequence[tuple[bytes, int, int]]) -> bytes:
    parts = [struct.pack(">qi", start, size) + _key(key) for key, start, size in index]
    offsets = [0]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return struct.pack(f">{len(offsets) + 1}i", len(parts), *offsets) + b"".join(parts)


def _hadoop_varint(number: int) -> bytes:
    if number <= 127:
        return struct.pack(">b", number)
    size = (number.bit_length() + 7) // 8
    return struct.pack(">b", -112 - size) + number.to_bytes(size, "big")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value
