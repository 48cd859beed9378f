"""A Parquet file, or the records of a log, as an Arrow table in the types of a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType

import pyarrow as pa

from bridge.formats.hudi.by_id import FileColumns, column_of
from bridge.formats.hudi.fit import convert_column
from bridge.formats.hudi.times import Times, repair_times, times_of_columns
from bridge.formats.rows import Held, Rows
from bridge.formats.rows_in_child import rows_of
from bridge.storage.port import Storage


def parquet_table(
    storage: Storage,
    uri: str,
    size: int,
    schema: pa.Schema,
    by_id: FileColumns = MappingProxyType({}),
    times: Times = MappingProxyType({}),
) -> pa.Table:
    """All rows; a column that the file lacks is NULL.

    Args:
        storage: of the file; see `bridge.storage.child.storage_in_memory`.
        by_id: columns that the file has under other names or types.
        times: units of the table's times, by which the file's columns of the same names are read.

    Errors:
        FileCorrupt, SchemaConflict, StorageFailure; Arrow's own of a damaged file.
    """
    return fit_pieces(
        lambda names: rows_of(storage, uri, size, "parquet", names, names, nanoseconds=False),
        uri,
        size,
        schema,
        by_id,
        times,
    )


def fit_pieces(
    read: Callable[[list[str]], Iterable[Rows]],
    uri: str,
    size: int,
    schema: pa.Schema,
    by_id: FileColumns,
    times: Times,
) -> pa.Table:
    """All rows of a file or block in the types of a schema; see `parquet_table`.

    Args:
        read: yields the named columns of some rows at a time.
        size: bytes, by which what is held together is bounded.
    """
    own = [column_of(by_id, field.name) for field in schema]
    names = [column.name for column in own if column is not None]
    if times:
        pairs = zip(own, schema, strict=True)
        times = times_of_columns(
            times, {column.name: field.type for column, field in pairs if column}
        )
    batches = []
    together = Held(uri, size)
    for found, rows in read(names):
        held = {n: repair_times(a, times.get(n.lower()), n, uri) for n, a in found.items()}
        columns = [
            convert_column(held[column.name], field.type, field.name, uri, column)
            if column is not None and column.name in held
            else pa.nulls(rows, field.type)
            for field, column in zip(schema, own, strict=True)
        ]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        together.add(batches[-1])
    return pa.Table.from_batches(batches, schema)
