"""Reads the rows of an ORC file in parts, so that no stripe of any length is held whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow.dataset import OrcFileFormat
from pyarrow.orc import ORCFile

from bridge.formats.rows import (
    BATCH_BYTES,
    BATCH_ROWS,
    Rows,
    all_rows,
    pieces,
    places_of,
    without_columns,
)
from bridge.formats.rows_in_child import damage_as_errors
from bridge.storage.child import ChildReader
from bridge.storage.port import Storage
from bridge.storage.reading.source import open_source

_PART_ROWS = 256
"""Rows that are decoded at once where values may be long."""
_PARTS = BATCH_ROWS // _PART_ROWS
_BY_PLACE = re.compile(r"_col(\d+)")


def read_rows(source: Any, uri: str, wanted: Sequence[str], table: Sequence[str]) -> Iterator[Rows]:
    """See `bridge.formats.file_format.RowReader`."""
    file = ORCFile(source)
    names = file.schema.names
    numbers = [_BY_PLACE.fullmatch(name) for name in names]
    if names and all(numbers):  # Hive before 2 wrote no names
        names = [table[i] if i < len(table) else name for i, name in enumerate(names)]
    places = places_of(names, wanted, uri)
    if not places:
        yield from without_columns(file.nrows)
        return
    stored = [file.schema.names[place] for place in places.values()]
    for batch in all_rows(batches(source, file, stored), file.nrows, uri):
        for start in range(0, batch.num_rows, BATCH_ROWS):
            for piece in pieces(batch.slice(start, BATCH_ROWS)):
                held = dict(zip(piece.schema.names, piece.columns, strict=True))
                part = {n: held[s] for n, s in zip(places, stored, strict=True)}
                yield part, piece.num_rows


def batches(source: Any, file: ORCFile, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of some columns, in the file's order: whole stripes if no value is long, or parts.

    A dictionary states each of its values once, and a few bytes state millions of its codes. So the
    size of a stripe says nothing about that of its values.
    """
    fields = [field for field in file.schema if field.name in names]
    if all(map(_is_narrow, fields)) or len(fields) > len(names) or "." in "".join(names):
        # The names of others are not columns' alone to the reader of parts.
        yield from (file.read_stripe(i, columns=list(names)) for i in range(file.nstripes))
        return
    fragment = OrcFileFormat().make_fragment(source)
    scanner = fragment.scanner(
        columns=[field.name for field in fields],
        batch_size=_PART_ROWS,
        batch_readahead=0,
        fragment_readahead=0,
        use_threads=False,
    )
    held: list[pa.RecordBatch] = []
    for part in scanner.to_batches():
        held.append(part)
        if sum(each.nbytes for each in held) >= BATCH_BYTES or len(held) >= _PARTS:
            yield pa.concat_batches(held)
            held = []
    if held:
        yield pa.concat_batches(held)


def _is_narrow(field: pa.Field) -> bool:
    return bool(pa.types.is_primitive(field.type) or pa.types.is_decimal(field.type))


def read_schema(storage: Storage, uri: str, size: int) -> pa.Schema:
    """The columns. Runs in the child. Errors: FileCorrupt."""
    with damage_as_errors(uri):
        return ORCFile(open_source(storage, uri, size)).schema


SCHEMA: ChildReader[pa.Schema] = ChildReader(read_schema)
