"""Writes the partition ``column_stats`` of a Hudi metadata table, right or wrong as a test says."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro

from bridge.formats.hudi.index_keys import column_statistics_key
from bridge.formats.hudi.log_format import BlockType, Header
from tests.support.hudi_writer import hfile, log_block

_SPACE = "org.apache.hudi.avro.model"
_WRAPPERS = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "StringWrapper": "string",
    "DateWrapper": "int",
}
_COUNTS = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_VALUE_TYPE = {
    "type": "record",
    "name": "HoodieValueTypeInfo",
    "fields": [{"name": "typeOrdinal", "type": "int"}],
}
_ORDINALS = {"BooleanWrapper": 2, "IntWrapper": 3, "LongWrapper": 4, "DoubleWrapper": 6}
_ORDINALS |= {"StringWrapper": 7, "DateWrapper": 12}


def _schema(added: Sequence[str]) -> dict[str, Any]:
    wrappers = [
        {"type": "record", "name": name, "fields": [{"name": "value", "type": kind}]}
        for name, kind in _WRAPPERS.items()
    ]
    fields: list[dict[str, Any]] = [
        {"name": "fileName", "type": ["null", "string"]},
        {"name": "columnName", "type": ["null", "string"]},
        {"name": "minValue", "type": ["null", *wrappers]},
        {"name": "maxValue", "type": ["null", *_WRAPPERS]},
        *({"name": name, "type": ["null", "long"], "default": None} for name in _COUNTS),
        {"name": "isDeleted", "type": "boolean"},
    ]
    for name in added:
        kind = _VALUE_TYPE if name == "valueType" else "boolean"
        fields.append({"name": name, "type": ["null", kind], "default": None})
    record = {
        "type": "record",
        "name": "HoodieMetadataColumnStats",
        "namespace": _SPACE,
        "fields": fields,
    }
    return {
        "type": "record",
        "name": "HoodieMetadataRecord",
        "namespace": _SPACE,
        "fields": [
            {"name": "key", "type": "string"},
            {"name": "type", "type": "int"},
            {"name": "ColumnStatsMetadata", "type": ["null", record]},
        ],
    }


class Entry:
    """One record. ``key_file``: the file in its key, if it is not that in the record."""

    def __init__(
        self,
        partition: str,
        file: str,
        column: str,
        bounds: tuple[str, Any, Any] | None,
        *,
        nulls: int = 0,
        deleted: bool = False,
        key_file: str = "",
        said_column: str = "",
    ) -> None:
        self.key = column_statistics_key(column, partition or ".", key_file or file)
        wrapper, least, greatest = bounds or ("", None, None)
        name = f"{_SPACE}.{wrapper}"
        self.wrapper = wrapper
        self.record = {
            "fileName": file,
            "columnName": said_column or column,
            "minValue": None if bounds is None else (name, {"value": least}),
            "maxValue": None if bounds is None else (name, {"value": greatest}),
            "nullCount": nulls,
            "isDeleted": deleted,
        }


class ColumnStats:
    """The metadata table of a table below a directory.

    Args:
        added: fields of a record besides those of 0.15.
        per_block: records in a block of an HFile.
    """

    def __init__(self, root: Path, version: int, added: Sequence[str], per_block: int = 4) -> None:
        self._per_block = per_block
        own = root / ".hoodie" / "metadata"
        self._version, self._added = version, frozenset(added)
        self._timeline = own / ".hoodie" / ("timeline" if version >= 8 else "")
        self._files = own / "column_stats"
        self._timeline.mkdir(parents=True)
        self._files.mkdir(parents=True)
        self._schema = _schema(added)
        self._parsed = fastavro.parse_schema(self._schema)

    def _complete(self, instant: str, action: str) -> None:
        end = f"_{instant}" if self._version >= 8 else ""
        (self._timeline / f"{instant}{end}.{action}").write_bytes(b"{}")

    def _content(self, entries: Sequence[Entry]) -> bytes:
        found = []
        for entry in sorted(entries, key=lambda each: each.key):
            out = io.BytesIO()
            held: dict[str, Any] = dict(entry.record)
            if "valueType" in self._added and entry.wrapper:
                said = {"typeOrdinal": _ORDINALS[entry.wrapper]}
                held["valueType"] = (f"{_SPACE}.HoodieValueTypeInfo", said)
                if entry.wrapper == "DateWrapper":  # such a release writes a date as a number
                    for side in ("minValue", "maxValue"):
                        held[side] = (f"{_SPACE}.IntWrapper", held[side][1])
            record = {"key": "", "type": 3, "ColumnStatsMetadata": held}
            fastavro.schemaless_writer(out, self._parsed, record)
            found.append((entry.key, out.getvalue()))
        info = {b"schema": json.dumps(self._schema).encode()}
        return hfile(found, per_block=self._per_block, info=info)

    def base(self, instant: str, entries: Sequence[Entry], group: int = 0) -> Path:
        """A base file of a file group, as a compaction writes it."""
        self._complete(instant, "commit")
        path = self._files / f"col-stats-000{group}-0_0-5-4_{instant}.hfile"
        path.write_bytes(self._content(entries))
        return path

    def log(
        self, instant: str, entries: Sequence[Entry], group: int = 0, *, base: str, done: bool
    ) -> Path:
        """A log with one block. ``base``: the instant of the group's base file."""
        if done:
            self._complete(instant, "deltacommit")
        block = log_block(
            BlockType.HFILE_DATA,
            {Header.INSTANT_TIME: instant, Header.SCHEMA: json.dumps(self._schema)},
            self._content(entries),
        )
        named = instant if self._version >= 8 else base
        number = 1 + len(list(self._files.glob(f".col-stats-000{group}*")))
        path = self._files / f".col-stats-000{group}-0_{named}.log.{number}_0-1-2"
        path.write_bytes(block)
        return path
