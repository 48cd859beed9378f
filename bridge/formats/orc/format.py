"""ORC: indexed by its data, which a child process reads. Hive can be hooked; Trino reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from bridge.formats.column_chunks import ValueSink
from bridge.formats.file_format import EntryBuilder, FileFormat, HiveClasses
from bridge.formats.rows import Rows
from bridge.formats.statistics import FileStatistics
from bridge.storage.port import Storage
from bridge.storage.reading.ahead import Job

_HIVE = "org.apache.hadoop.hive.ql.io.orc."


def _recognise(head: bytes, tail: bytes) -> bool:
    if tail[-4:-1] == b"ORC":
        return True
    # The first writers had the magic at the head alone; readers take such files.
    return head.startswith(b"ORC") and _is_postscript(tail[-1 - tail[-1] : -1])


def _is_postscript(raw: bytes) -> bool:
    """Whether bytes are a whole message that states the length of a footer and a compression."""
    found: dict[int, int] = {}
    at = 0
    while at < len(raw):
        key, value, shift, at = raw[at], 0, 0, at + 1
        while at < len(raw):
            value, shift, at = value | (raw[at] & 127) << shift, shift + 7, at + 1
            if raw[at - 1] < 128:
                break
        found[key] = value
        at += value if key & 7 == 2 else 0
    return at == len(raw) and {0x08, 0x10} <= found.keys() <= {0x08, 0x10, 0x18, 0x22, 0x28, 0x30}


def _read_schema(storage: Storage, uri: str, size: int) -> pa.Schema:
    from bridge.formats.orc.rows import SCHEMA

    return SCHEMA.read(storage, uri, size)


def _read_rows(
    source: Any, uri: str, wanted: Sequence[str], table: Sequence[str]
) -> Iterator[Rows]:
    from bridge.formats.orc.rows import read_rows

    return read_rows(source, uri, wanted, table)


def _collect(entry: EntryBuilder) -> Job:
    from bridge.formats.orc.statistics import READER

    if entry.has_kinds:
        return entry.from_values(_values)
    return entry.from_statistics(READER.read)


def _values(storage: Storage, uri: str, size: int, sink: ValueSink) -> FileStatistics:
    from bridge.formats.orc.statistics import read

    return read(storage, uri, size, sink)


FORMAT = FileFormat(
    name="orc",
    spelled="ORC",
    hive=HiveClasses(
        input_formats=(f"{_HIVE}OrcInputFormat",),
        output_format=f"{_HIVE}OrcOutputFormat",
        serdes=(f"{_HIVE}OrcSerde",),
        hook="io.skipbridge.hive.BridgeOrcInputFormat",
    ),
    begins=(b"ORC",),
    recognise=_recognise,
    read_schema=_read_schema,
    read_rows=_read_rows,
    in_child=True,
    collect=_collect,
    trino_reader="orc",
    index_kinds=True,
    by_position=True,
    wide_times="ORC keeps times in the zone of their writer, so bounds are two days wider on each "
    "side",
    no_times="ORC's times with a zone have none",
    splittable=True,
)
