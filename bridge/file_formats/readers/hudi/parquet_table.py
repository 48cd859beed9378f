"""A Parquet file, or a block of a log that is one, as an Arrow table in the types of a schema."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pyarrow as pa

from bridge.file_formats.readers.hudi.by_id import FileColumns, column_of
from bridge.file_formats.readers.hudi.fit import fit
from bridge.file_formats.readers.parquet_rows import read_rows


def parquet_table(
    source: Any, schema: pa.Schema, uri: str, by_id: FileColumns = MappingProxyType({})
) -> pa.Table:
    """All rows; a column that the file lacks is NULL.

    Args:
        source: a file object of pyarrow's.
        uri: for errors.
        by_id: columns that the file has under other names or types.

    Errors:
        FileCorrupt, SchemaConflict, StorageFailure; Arrow's own of a damaged file.
    """
    own = [column_of(by_id, field.name) for field in schema]
    names = [column.name for column in own if column is not None]
    batches = [
        pa.RecordBatch.from_arrays(
            [
                fit(found[column.name], field.type, field.name, uri, column)
                if column is not None and column.name in found
                else pa.nulls(rows, field.type)
                for field, column in zip(schema, own, strict=True)
            ],
            schema=schema,
        )
        for found, rows in read_rows(source, uri, names, names)
    ]
    return pa.Table.from_batches(batches, schema)
