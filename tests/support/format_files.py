"""The same rows as a file of ORC, Avro or delimited text."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import fastavro
import pyarrow as pa
import pyarrow.csv
import pyarrow.orc as po


def orc_bytes(table: pa.Table, stripe_size: int = 64 << 20) -> bytes:
    buffer = io.BytesIO()
    po.write_table(table, buffer, stripe_size=stripe_size)
    return buffer.getvalue()


def text_bytes(table: pa.Table) -> bytes:
    """Fields are separated as by default in Hive."""
    buffer = io.BytesIO()
    options = pa.csv.WriteOptions(include_header=False, delimiter="\x01", quoting_style="none")
    pa.csv.write_csv(table, buffer, options)
    return buffer.getvalue()


def avro_bytes(table: pa.Table) -> bytes:
    """Of columns of text and of 64-bit numbers."""
    buffer = io.BytesIO()
    fields = [
        {"name": field.name, "type": "string" if field.type == pa.string() else "long"}
        for field in table.schema
    ]
    schema = {"type": "record", "name": "row", "fields": fields}
    fastavro.writer(buffer, schema, table.to_pylist(), codec="null")
    return buffer.getvalue()


WRITERS: Mapping[str, Callable[[pa.Table], bytes]] = {
    "orc": orc_bytes,
    "text": text_bytes,
    "avro": avro_bytes,
}
"""By the name of the format."""
