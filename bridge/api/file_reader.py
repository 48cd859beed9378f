"""The rows of one data file, batch by batch, in the types of the table.

A damaged file is one error that names it; nothing of a file is ever passed over. A column that the
file lacks is NULL. Parquet is read row group by row group, ORC stripe by stripe, so that memory is
bounded by those and not by the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq

from bridge.api.arrow_types import arrow_type
from bridge.api.conform import conform
from bridge.errors import BridgeError, FileChanged, FileCorrupt, UnsupportedTable
from bridge.storage.port import Storage
from bridge.storage.source import WHOLE, is_passing, open_source
from bridge.table.model import Column

BATCH_ROWS = 64 * 1024
_BATCH_BYTES = 16 * 1024 * 1024
_FEWEST_ROWS = 1024
_BY_PLACE = re.compile(r"_col(\d+)")
Rows = tuple[Mapping[str, pa.Array], int]
"""Columns by name, and the number of rows: there may be no column at all."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a plan, as it was listed."""

    uri: str
    size: int
    modified: int


def read_file(
    storage: Storage,
    file: DataFile,
    format: str,
    wanted: Sequence[Column],
    table: Sequence[Column],
    engine: str,
) -> Iterator[Rows]:
    """Reads the wanted columns.

    Args:
        wanted: data columns of the table.
        table: all data columns, in order: a few ORC files name columns by their place.

    Errors:
        FileCorrupt: it cannot be decoded.
        FileUnreadable, FileChanged: it is gone, or another one than was planned.
        SchemaConflict: see `bridge.api.conform`.
        StorageFailure.
    """
    with _damage_is_told(file.uri):
        source = open_source(storage, file.uri, file.size)
        if file.size <= WHOLE and source.size() != file.size:
            raise FileChanged(
                f"{file.uri} has {source.size()} bytes and not the {file.size} that were planned",
                "scan again",
            )
        if format == "parquet":
            parts = _parquet(source, file.uri, [c.name for c in wanted])
        elif format == "orc":
            parts = _orc(source, file.uri, [c.name for c in wanted], [c.name for c in table])
        else:
            raise UnsupportedTable(
                f"files of format {format} are not read here", "read them with the engine"
            )
        for found, rows in parts:
            conformed = {
                c.name: conform(found[c.name], c.type, engine, c.name, file.uri)
                if c.name in found
                else pa.nulls(rows, arrow_type(c.type))
                for c in wanted
            }
            yield conformed, rows


@contextmanager
def _damage_is_told(uri: str) -> Iterator[None]:
    try:
        yield
    except (BridgeError, GeneratorExit):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
        if is_passing(error):
            raise
        first = str(error).partition("\n")[0]
        raise FileCorrupt(
            f"{uri} cannot be read: {first}", "restore it or write it again"
        ) from error


def _found(names: Sequence[str], wanted: Sequence[str], uri: str) -> dict[str, int]:
    """The place of each wanted column in a file, by name without regard to case (rule 14).

    Errors:
        FileCorrupt: two columns of the file may be meant.
    """
    places: dict[str, int] = {}
    lowered = [name.lower() for name in names]
    for name in wanted:
        count = lowered.count(name.lower())
        if count > 1:
            raise FileCorrupt(
                f"{uri}: two columns differ only in case from {name!r}", "rewrite the file"
            )
        if count:
            places[name] = lowered.index(name.lower())
    return places


def _parquet(source: Any, uri: str, wanted: Sequence[str]) -> Iterator[Rows]:
    reader = pq.core.ParquetReader()
    reader.open(source, coerce_int96_timestamp_unit="us")
    metadata, schema = reader.metadata, reader.schema_arrow
    places = _found(schema.names, wanted, uri)
    leaves: list[int] = []
    first = 0
    for place, field in enumerate(schema):
        count = _leaves(field.type)
        if place in places.values():
            leaves += range(first, first + count)
        first += count
    if not leaves:
        yield from _empty(metadata.num_rows)
        return
    names = {place: name for name, place in places.items()}
    order = [names[place] for place in sorted(names)]
    for group in range(metadata.num_row_groups):
        about = metadata.row_group(group)
        size = sum(about.column(leaf).total_uncompressed_size for leaf in leaves)
        rows = int(_BATCH_BYTES * about.num_rows / max(size, 1))
        rows = max(_FEWEST_ROWS, min(BATCH_ROWS, rows))
        for batch in reader.iter_batches(rows, [group], column_indices=leaves, use_threads=False):
            yield dict(zip(order, batch.columns, strict=True)), batch.num_rows


def _leaves(type: pa.DataType) -> int:
    if isinstance(type, pa.BaseExtensionType):
        return _leaves(type.storage_type)
    if not pa.types.is_nested(type):
        return 1
    return sum(_leaves(type.field(i).type) for i in range(type.num_fields))


def _empty(rows: int) -> Iterator[Rows]:
    for start in range(0, rows, BATCH_ROWS):
        yield {}, min(BATCH_ROWS, rows - start)


def _orc(source: Any, uri: str, wanted: Sequence[str], table: Sequence[str]) -> Iterator[Rows]:
    file = po.ORCFile(source)
    names = file.schema.names
    numbers = [_BY_PLACE.fullmatch(name) for name in names]
    if names and all(numbers):  # Hive before 2 wrote no names
        names = [table[i] if i < len(table) else name for i, name in enumerate(names)]
    places = _found(names, wanted, uri)
    if not places:
        yield from _empty(file.nrows)
        return
    stored = [file.schema.names[place] for place in places.values()]
    for stripe in range(file.nstripes):
        batch = file.read_stripe(stripe, columns=stored)
        held = dict(zip(batch.schema.names, batch.columns, strict=True))
        for start in range(0, batch.num_rows, BATCH_ROWS):
            part = {
                n: held[s].slice(start, BATCH_ROWS) for n, s in zip(places, stored, strict=True)
            }
            yield part, min(BATCH_ROWS, batch.num_rows - start)
