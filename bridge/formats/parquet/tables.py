"""Tables of this program's own, kept as small Parquet files: lists of files, rows of indexes."""

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
