"""Reads the rows of an ORC file stripe by stripe, so that stripes bound the memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow.orc import ORCFile

from bridge.file_formats.rows import (
    BATCH_ROWS,
    Rows,
    all_rows,
    pieces,
    places_of,
    without_columns,
)
from bridge.file_formats.rows_in_child import damage_is_told
from bridge.storage.child import ChildReader
from bridge.storage.port import Storage
from bridge.storage.source import open_source

_BY_PLACE = re.compile(r"_col(\d+)")


def read_rows(source: Any, uri: str, wanted: Sequence[str], table: Sequence[str]) -> Iterator[Rows]:
    """See `bridge.file_formats.file_format.RowReader`."""
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
    stripes = (file.read_stripe(i, columns=stored) for i in range(file.nstripes))
    for batch in all_rows(stripes, file.nrows, uri):
        for start in range(0, batch.num_rows, BATCH_ROWS):
            for piece in pieces(batch.slice(start, BATCH_ROWS)):
                held = dict(zip(piece.schema.names, piece.columns, strict=True))
                part = {n: held[s] for n, s in zip(places, stored, strict=True)}
                yield part, piece.num_rows


def read_schema(storage: Storage, uri: str, size: int) -> pa.Schema:
    """The columns. Runs in the child. Errors: FileCorrupt."""
    with damage_is_told(uri):
        return ORCFile(open_source(storage, uri, size)).schema


SCHEMA: ChildReader[pa.Schema] = ChildReader(read_schema)
