"""Arrow tables as Parquet files: this program's own (lists of files, indexes, views), and logs."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def table_to_bytes(table: pa.Table, **options: Any) -> bytes:
    """The table as a file; ``options`` of Arrow's writer."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", **options)
    return sink.getvalue()


def table_from_bytes(raw: bytes, **options: Any) -> pa.Table:
    """The table in a file; ``options`` of Arrow's reader. Errors: those of Arrow."""
    return pq.read_table(pa.BufferReader(raw), **options)


def table_writer(sink: io.BytesIO, schema: pa.Schema, **options: Any) -> pq.ParquetWriter:
    """Writes a file's row groups one after another; ``options`` of Arrow's writer."""
    return pq.ParquetWriter(sink, schema, **options)


def table_file(source: Any, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """A file whose pages are held against their checksums. Errors: those of Arrow."""
    return pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True)


def table_metadata(tail: bytes) -> pq.FileMetaData:
    """Of the last bytes of a file. Errors: those of Arrow."""
    return pq.read_metadata(pa.BufferReader(tail))


def stored_columns(source: Any) -> tuple[pa.Schema, list[Any]]:
    """The columns of a file, and its leaves as they are stored. Errors: those of Arrow."""
    reader = pq.core.ParquetReader()
    reader.open(source)
    leaves = reader.metadata.schema
    return reader.schema_arrow, [leaves.column(i) for i in range(len(leaves))]
