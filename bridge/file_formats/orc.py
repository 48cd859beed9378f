"""ORC: indexed by its data, which a child process reads. Hive can be hooked; Trino reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from bridge.file_formats.column_chunks import ValueSink
from bridge.file_formats.file_format import FileFormat, HiveClasses, StatisticsReader
from bridge.file_formats.rows import Rows
from bridge.file_formats.statistics import FileStatistics
from bridge.storage.port import Storage

_HIVE = "org.apache.hadoop.hive.ql.io.orc."


def _recognise(head: bytes, tail: bytes) -> bool:
    return tail[-4:-1] == b"ORC"


def _read_schema(storage: Storage, uri: str, size: int) -> pa.Schema:
    from pyarrow.orc import ORCFile

    from bridge.storage.source import open_source

    return ORCFile(open_source(storage, uri, size)).schema


def _read_rows(
    source: Any, uri: str, wanted: Sequence[str], table: Sequence[str]
) -> Iterator[Rows]:
    from bridge.file_formats.readers.orc_rows import read_rows

    return read_rows(source, uri, wanted, table)


def _statistics() -> StatisticsReader:
    from bridge.file_formats.readers.orc_statistics import READER

    return READER.read


def _values(storage: Storage, uri: str, size: int, sink: ValueSink) -> FileStatistics:
    from bridge.file_formats.readers.orc_statistics import read

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
    statistics=_statistics,
    trino_reader="orc",
    values=_values,
    index_kinds=True,
    by_position=True,
    splittable=True,
)
