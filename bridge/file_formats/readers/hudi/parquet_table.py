"""A Parquet file, or a block of a log that is one, as an Arrow table in the types of a schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from bridge.file_formats.readers.hudi.fit import fit
from bridge.file_formats.readers.parquet_rows import read_rows


def parquet_table(source: Any, schema: pa.Schema, uri: str) -> pa.Table:
    """All rows; a column that the file lacks is NULL.

    Args:
        source: a file object of pyarrow's.
        uri: for errors.

    Errors:
        FileCorrupt, SchemaConflict, StorageFailure; Arrow's own of a damaged file.
    """
    batches = [
        pa.RecordBatch.from_arrays(
            [
                fit(found[field.name], field.type, field.name, uri)
                if field.name in found
                else pa.nulls(rows, field.type)
                for field in schema
            ],
            schema=schema,
        )
        for found, rows in read_rows(source, uri, schema.names, schema.names)
    ]
    return pa.Table.from_batches(batches, schema)
