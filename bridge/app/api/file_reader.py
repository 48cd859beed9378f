"""The rows of one data file, batch by batch, in the types of the table.

A damaged file is one error that names it; nothing of a file is ever passed over. A column that the
file lacks is NULL. Formats read their files in batches (`bridge.formats.rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from bridge.app.api.conform import conform
from bridge.formats.column_chunks import OTHER
from bridge.formats.lines.recipe import Recipe
from bridge.formats.registry import file_format
from bridge.formats.rows import Rows
from bridge.formats.rows_in_child import damage_as_errors, open_planned, rows_of
from bridge.kernel.arrow_types import arrow_type
from bridge.kernel.errors import FileAmbiguous, FileChanged, UnsupportedTable
from bridge.kernel.types import Kind
from bridge.storage.port import UNKNOWN_TIME, Storage, same_state
from bridge.storage.reading.one_version import OneVersion
from bridge.table.model import CatalogTable, Column
from bridge.table.registry import table_format
from bridge.table.snapshot import MergedSlice, MergesSlices

_ENGINE = "read it with the engine"
_WITHOUT = f"{_ENGINE}, or name the other columns: columns=[...]"


@dataclass(frozen=True, slots=True)
class ScannedFile:
    """One file of a plan, as it was listed.

    Attributes:
        recipe: how the table declares it; None if the file says so itself.
    """

    uri: str
    size: int
    modified: int
    format: str
    etag: str | None = None
    recipe: Recipe | None = None


def read_file(
    storage: Storage,
    file: ScannedFile,
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
        FileAmbiguous: engines may read another value than this reader.
        SchemaConflict: see `bridge.app.api.conform`.
        StorageFailure.
    """
    storage = OneVersion.of(storage, file, may_grow=file.recipe is not None)
    if file.recipe is not None and file_format(file.format).read_rows is None:
        yield from _declared_rows(storage, file, file.recipe, wanted)
        return
    with damage_as_errors(file.uri):
        known = file_format(file.format)
        if known.read_rows is None:
            raise UnsupportedTable(
                f"files of format {file.format} are not read here", "read them with the engine"
            )
        names = [c.name for c in wanted], [c.name for c in table]
        if known.in_child:
            parts = rows_of(storage, file.uri, file.size, file.format, *names)
        else:
            source = open_planned(storage, file.uri, file.size)
            parts = known.read_rows(source, file.uri, *names)
        for found, rows in parts:
            conformed = {
                c.name: conform(found[c.name], c.type, engine, c.name, file.uri)
                if c.name in found
                else pa.nulls(rows, arrow_type(c.type))
                for c in wanted
            }
            yield conformed, rows


def _declared_rows(
    storage: Storage, file: ScannedFile, recipe: Recipe, wanted: Sequence[Column]
) -> Iterator[Rows]:
    """Rows of a file whose meaning the table declares, as far as all engines read them alike."""
    read = file_format(file.format).chunks
    assert read is not None, f"{file.format} files are not declared"
    places = {name: i for i, (name, _) in enumerate(recipe.columns)}
    try:
        chunks = read(storage, file.uri, file.size, recipe)
        for rows, batch in chunks.batches():
            found = {}
            for column in wanted:
                place = places[column.name.lower()]
                values = batch.get(place)
                if values is None or (chunks.loose().get(place) and column.type.kind is Kind.FLOAT):
                    why = chunks.doubts.get(place) or _doubt(
                        column, chunks.leaves[place].type == OTHER, values is None
                    )
                    raise FileAmbiguous(
                        f"{file.uri}: engines may differ in values of {column.name!r}: {why}",
                        _WITHOUT,
                    )
                found[column.name] = values.combine_chunks().cast(arrow_type(column.type))
            yield found, rows
    except FileAmbiguous as error:
        hint = error.hint if error.hint == _WITHOUT else _ENGINE
        raise FileAmbiguous(error.message, hint) from error


def _doubt(column: Column, never: bool, missing: bool) -> str:
    """Why the values of a column are not returned.

    Args:
        never: of no file of this declaration. missing: they were not read.
    """
    if never:
        return f"stored as it is there, under {column.type}, only engines read it"
    if missing:
        return f"one of them does not fit {column.type}, which engines cut, round or refuse"
    return f"a number is rounded to {column.type} in more than one way"


def as_recorded(storage: Storage, file: ScannedFile, rows: Iterator[Rows]) -> Iterator[Rows]:
    """The rows; at their end it is certain that the file is the one that was planned.

    Errors:
        FileChanged: it has another size or time.
    """
    yield from rows
    if file.modified == UNKNOWN_TIME:
        return  # such files never change
    now = storage.stat(file.uri)
    if now is None or not same_state(file, now):
        raise FileChanged(
            f"{file.uri} is another file than was recorded"
            + (": it is gone" if now is None else ""),
            "run the query again; for a table of segments run skipbridge segment refresh first",
        )


def read_merged(
    storage: Storage, slice: MergedSlice, wanted: Sequence[Column], table: CatalogTable
) -> Iterator[Rows]:
    """Reads the wanted columns of a slice whose logs are merged; all of it is held in memory.

    Errors:
        UnsupportedTable: such slices of the table are not merged here.
        FileChanged, FileCorrupt, FileUnreadable, StorageFailure.
    """
    format = table_format(table)
    known = {c.name: arrow_type(c.type) for c in table.columns}
    if not isinstance(format, MergesSlices):
        raise UnsupportedTable(
            f"{table.name} has files with deletes or updates, which are not merged here",
            "read it with the engine",
        )
    schema = pa.schema([pa.field(name, kind) for name, kind in known.items() if kind is not None])
    with damage_as_errors(slice.base[0] if slice.base is not None else slice.logs[0][0]):
        merged = format.read_slice(storage, slice, schema)
    if not wanted:
        yield {}, merged.num_rows
        return
    for batch in merged.select([c.name for c in wanted]).to_batches():
        yield {c.name: batch.column(c.name) for c in wanted}, batch.num_rows
