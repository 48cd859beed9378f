"""Reads the rows of a Parquet file in batches, bounded by what is stored and by what is decoded.

A value of a dictionary is stored once and may be in each row. Text that takes few bytes a row is
therefore read as codes, or in batches of few rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.formats.parquet.int96 import has_int96, with_nanoseconds
from bridge.formats.rows import (
    BATCH_BYTES,
    BATCH_ROWS,
    Rows,
    all_rows,
    expect_rows,
    pieces,
    places_of,
    without_columns,
)

_FEWEST_ROWS = 16
_REPEATED_ROWS = 4096
_REPEATED = 8
"""Stored bytes of a text, below which it is stored less often than it is there."""
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8}


def read_rows(
    source: Any,
    uri: str,
    wanted: Sequence[str],
    table: Sequence[str],
    *,
    nanoseconds: bool = True,
) -> Iterator[Rows]:
    """See `bridge.formats.file_format.RowReader`.

    Args:
        nanoseconds: INT96 keeps its nanoseconds where it has some; otherwise they are cut.
    """
    reader = pq.core.ParquetReader()
    reader.open(source, coerce_int96_timestamp_unit="us")
    coded = sorted(_coded(reader.metadata))
    if coded:
        reader = pq.core.ParquetReader()
        reader.open(source, coerce_int96_timestamp_unit="us", read_dictionary=coded)
    metadata, schema = reader.metadata, reader.schema_arrow
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    expect_rows(sum(groups), metadata.num_rows, uri)
    places = places_of(schema.names, wanted, uri)
    names = {place: name for name, place in places.items()}
    leaves: list[int] = []
    first = 0
    for place, field in enumerate(schema):
        count = _leaves(field.type)
        if place in names:
            leaves += range(first, first + count)
        first += count
    if not leaves:
        yield from without_columns(metadata.num_rows)
        return
    exact = None
    if nanoseconds and has_int96(metadata, leaves):
        exact = pq.core.ParquetReader()
        exact.open(source, coerce_int96_timestamp_unit="ns")
    order = [names[place] for place in sorted(names)]
    for group, stated in enumerate(groups):
        about = metadata.row_group(group)
        # Of all columns: asked for one column of some damaged footers, Arrow ends the process.
        rows = int(BATCH_BYTES * stated / max(about.total_byte_size, 1))
        rows = min(rows, _rows_of(about, leaves, coded))
        rows = max(_FEWEST_ROWS, min(BATCH_ROWS, rows))
        read = reader.iter_batches(rows, [group], column_indices=leaves, use_threads=False)
        batches = all_rows(read, stated, uri)
        if exact:
            finer = exact.iter_batches(rows, [group], column_indices=leaves, use_threads=False)
            batches = _finer(batches, finer, order, uri)
        for batch in batches:
            for piece in pieces(batch):
                yield dict(zip(order, piece.columns, strict=True)), piece.num_rows


def _finer(
    batches: Iterator[pa.RecordBatch],
    finer: Iterator[pa.RecordBatch],
    names: Sequence[str],
    uri: str,
) -> Iterator[pa.RecordBatch]:
    """The batches, their INT96 columns with nanoseconds where there are some."""
    for batch, fine in zip(batches, finer, strict=True):
        both = zip(names, batch.columns, fine.columns, strict=True)
        columns = [with_nanoseconds(a, b, name, uri) for name, a, b in both]
        yield pa.RecordBatch.from_arrays(columns, names=list(names))


def _coded(metadata: pq.FileMetaData) -> set[str]:
    """Columns of text that are read as codes, because their values may be repeated."""
    schema = metadata.schema
    flat = {
        i: schema.column(i).path
        for i in range(len(schema))
        if schema.column(i).physical_type == "BYTE_ARRAY"
        and schema.column(i).logical_type.type in ("NONE", "STRING")
        and schema.column(i).path == schema.column(i).name
        and not schema.column(i).max_repetition_level
    }
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return {path for i, path in flat.items() if any(_is_coded(group.column(i)) for group in groups)}


def _is_coded(chunk: pq.ColumnChunkMetaData) -> bool:
    return bool(chunk.has_dictionary_page) and _is_repeated(chunk)


def _is_repeated(chunk: pq.ColumnChunkMetaData) -> bool:
    return bool(chunk.total_uncompressed_size < _REPEATED * chunk.num_values)


def _rows_of(group: pq.RowGroupMetaData, leaves: Sequence[int], coded: Sequence[str]) -> int:
    """How many rows of a row group are read at once, so that they fit when they are decoded."""
    width, rows = 0.0, BATCH_ROWS
    for leaf in leaves:
        chunk = group.column(leaf)
        if chunk.physical_type in _WIDTHS:
            each = _WIDTHS[chunk.physical_type]
        elif _is_repeated(chunk) and chunk.path_in_schema not in coded:
            each, rows = 0, _REPEATED_ROWS
        else:
            each = chunk.total_uncompressed_size / max(chunk.num_values, 1)
        width += each * chunk.num_values / max(group.num_rows, 1)
    return min(rows, int(BATCH_BYTES / max(width, 1)))


def _leaves(type: pa.DataType) -> int:
    if isinstance(type, pa.BaseExtensionType):
        return _leaves(type.storage_type)
    if not pa.types.is_nested(type):
        return 1
    return sum(_leaves(type.field(i).type) for i in range(type.num_fields))
