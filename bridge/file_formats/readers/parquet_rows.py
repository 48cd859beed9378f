"""Reads the rows of a Parquet file row group by row group, so that these bound the memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bridge.file_formats.readers.parquet_int96 import has_int96, with_nanoseconds
from bridge.file_formats.rows import (
    BATCH_BYTES,
    BATCH_ROWS,
    Rows,
    all_rows,
    expect_rows,
    places_of,
    without_columns,
)

_FEWEST_ROWS = 16


def read_rows(
    source: Any,
    uri: str,
    wanted: Sequence[str],
    table: Sequence[str],
    *,
    nanoseconds: bool = True,
) -> Iterator[Rows]:
    """See `bridge.file_formats.file_format.RowReader`.

    Args:
        nanoseconds: INT96 keeps its nanoseconds where it has some; otherwise they are cut.
    """
    reader = pq.core.ParquetReader()
    reader.open(source, coerce_int96_timestamp_unit="us")
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
        rows = max(_FEWEST_ROWS, min(BATCH_ROWS, rows))
        read = reader.iter_batches(rows, [group], column_indices=leaves, use_threads=False)
        batches = all_rows(read, stated, uri)
        if not exact:
            for batch in batches:
                yield dict(zip(order, batch.columns, strict=True)), batch.num_rows
            continue
        finer = exact.iter_batches(rows, [group], column_indices=leaves, use_threads=False)
        for batch, fine in zip(batches, finer, strict=True):
            both = zip(order, batch.columns, fine.columns, strict=True)
            yield {n: with_nanoseconds(a, b, n, uri) for n, a, b in both}, batch.num_rows


def _leaves(type: pa.DataType) -> int:
    if isinstance(type, pa.BaseExtensionType):
        return _leaves(type.storage_type)
    if not pa.types.is_nested(type):
        return 1
    return sum(_leaves(type.field(i).type) for i in range(type.num_fields))
