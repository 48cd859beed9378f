"""Parquet: indexed by footers and data, for all index kinds, Hive and Trino."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bridge.formats.data_files import DataFiles
from bridge.formats.file_format import EntryBuilder, FileFormat, HiveClasses
from bridge.formats.rows import Rows
from bridge.storage.port import Storage
from bridge.storage.reading.ahead import Job
from bridge.storage.reading.source import TAIL

if TYPE_CHECKING:
    from bridge.formats.parquet.statistics import Footer

_HIVE = "org.apache.hadoop.hive.ql.io.parquet."


def _recognise(head: bytes, tail: bytes) -> bool:
    return tail[-4:] in (b"PAR1", b"PARE")  # PARE: its footer is encrypted


def _read_schema(storage: Storage, uri: str, size: int) -> pa.Schema:
    from bridge.formats.parquet.tail import open_footer, read_tail

    # Offsets in a footer count from the file's start, but its schema needs none of them.
    return open_footer(read_tail(storage, uri, size), uri).schema.to_arrow_schema()


def _read_rows(
    source: Any,
    uri: str,
    wanted: Sequence[str],
    table: Sequence[str],
    *,
    nanoseconds: bool = True,
) -> Iterator[Rows]:
    from bridge.formats.parquet.rows import read_rows

    return read_rows(source, uri, wanted, table, nanoseconds=nanoseconds)


def _collect(entry: EntryBuilder) -> Job:
    return entry.from_footer(_open_reader, TAIL)


def _open_reader() -> Callable[[Storage, str, int], Footer]:
    from bridge.formats.parquet.statistics import FooterReader

    return FooterReader().read_file


def _rewriting() -> DataFiles:
    from bridge.formats.parquet.rewriting import FILES

    return FILES


FORMAT = FileFormat(
    name="parquet",
    spelled="Parquet",
    hive=HiveClasses(
        input_formats=(
            f"{_HIVE}MapredParquetInputFormat",
            "parquet.hive.DeprecatedParquetInputFormat",
        ),
        output_format=f"{_HIVE}MapredParquetOutputFormat",
        serdes=(f"{_HIVE}serde.ParquetHiveSerDe",),
        hook="io.skipbridge.hive.BridgeParquetInputFormat",
    ),
    begins=(b"PAR1", b"PARE"),
    recognise=_recognise,
    read_schema=_read_schema,
    read_rows=_read_rows,
    in_child=True,
    collect=_collect,
    index_kinds=True,
    splittable=True,
    rewriting=_rewriting,
    trino_reader="parquet",
)
