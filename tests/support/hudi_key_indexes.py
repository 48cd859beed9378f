"""Writes the indexes of keys and values of a Hudi metadata table, with right entries."""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro

from bridge.formats.hudi.bloom_filters import bits_of
from bridge.formats.hudi.index_keys import bloom_filter_key
from tests.support.hudi_tables import avro_body
from tests.support.hudi_writer import hfile

_SPACE = "org.apache.hudi.avro.model"
_FIELDS: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "recordIndexMetadata": (
        5,
        {
            "partitionName": "string",
            "fileIdHighBits": "long",
            "fileIdLowBits": "long",
            "fileIndex": "int",
            "fileId": "string",
            "instantTime": "long",
            "fileIdEncoding": "int",
            "position": "long",
        },
    ),
    "SecondaryIndexMetadata": (7, {"isDeleted": "boolean"}),
    "BloomFilterMetadata": (
        4,
        {
            "type": "string",
            "timestamp": "string",
            "bloomFilter": "bytes",
            "isDeleted": "boolean",
        },
    ),
}
_HASHES, _BITS_OF_KEY = 30, 44
"""Of Hudi's default, one wrong answer in 1,000,000,000."""
Entries = Iterable[tuple[bytes, Mapping[str, Any]]]


class KeyIndexes:
    """The metadata table of a table of version 9; each partition is one compacted HFile.

    Args:
        instants: all commits of the table.
    """

    def __init__(self, root: Path, instants: Sequence[str]) -> None:
        self._own, self._newest = root / ".hoodie" / "metadata", instants[-1]
        self._meta = root / ".hoodie"
        timeline = self._own / ".hoodie" / "timeline"
        timeline.mkdir(parents=True)
        body = avro_body("deltacommit", {"partitionToWriteStats": {}})
        for instant in instants:
            (timeline / f"{instant}_{instant}.deltacommit").write_bytes(body)

    def record_index(self, groups: Mapping[str, str]) -> None:
        """The file group of each key; its id is a UUID and a number."""

        def entry(group: str) -> dict[str, Any]:
            uuid, _, index = group.rpartition("-")
            high, low = struct.unpack(">qq", UUID(uuid).bytes)
            told = {"fileIdHighBits": high, "fileIdLowBits": low, "fileIndex": int(index)}
            return {**told, "partitionName": "", "fileIdEncoding": 0}

        found = ((key.encode(), entry(group)) for key, group in groups.items())
        self._write("record_index", "recordIndexMetadata", found)

    def secondary_index(self, column: str, values: Mapping[str, str]) -> None:
        """The value of each key; texts hold nothing that would be escaped."""
        name = f"secondary_index_{column}"
        found = ((f"{value}${key}".encode(), {"isDeleted": False}) for key, value in values.items())
        self._write(name, "SecondaryIndexMetadata", found)
        definition = {"sourceFields": [column], "version": "V2"}
        directory = self._meta / ".index_defs"
        directory.mkdir()
        text = json.dumps({"indexDefinitions": {name: definition}})
        (directory / "index.json").write_text(text)

    def bloom_filters(self, files: Mapping[str, Sequence[str]]) -> None:
        """The filter of the keys of each file of a table without partitions."""
        kept = {"type": "DYNAMIC_V0", "timestamp": self._newest, "isDeleted": False}
        found = (
            (bloom_filter_key(".", file), {**kept, "bloomFilter": bloom_filter(keys)})
            for file, keys in files.items()
        )
        self._write("bloom_filters", "BloomFilterMetadata", found)

    def _write(self, partition: str, field: str, entries: Entries) -> None:
        number, fields = _FIELDS[field]
        record = {
            "type": "record",
            "name": f"Hoodie{field}",
            "fields": [
                {"name": name, "type": ["null", type], "default": None}
                for name, type in fields.items()
            ],
        }
        schema = {
            "type": "record",
            "name": "HoodieMetadataRecord",
            "namespace": _SPACE,
            "fields": [
                {"name": "key", "type": "string"},
                {"name": "type", "type": "int"},
                {"name": field, "type": ["null", record], "default": None},
            ],
        }
        parsed, found = fastavro.parse_schema(schema), []
        for key, entry in sorted(entries, key=lambda each: each[0]):
            out = io.BytesIO()
            fastavro.schemaless_writer(out, parsed, {"key": "", "type": number, field: entry})
            found.append((key, out.getvalue()))
        directory = self._own / partition
        directory.mkdir()
        name = f"{partition.replace('_', '-')}-0000-0_0-5-4_{self._newest}.hfile"
        content = hfile(found, per_block=2000, info={b"schema": json.dumps(schema).encode()})
        (directory / name).write_bytes(content)


def bloom_filter(keys: Sequence[str]) -> bytes:
    """A dynamic filter of one row, in Base64."""
    size = _BITS_OF_KEY * max(1, len(keys))
    row = bytearray((size + 7) // 8)
    for key in keys:
        for bit in bits_of(key.encode(), _HASHES, size):
            row[bit >> 3] |= 1 << (bit & 7)
    head = struct.pack(">iibi", -1, _HASHES, 1, size)
    dynamic = struct.pack(">iii", len(keys), len(keys), 1)
    return base64.b64encode(head + dynamic + head + bytes(row))
