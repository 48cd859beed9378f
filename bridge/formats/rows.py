"""Rows of a file in batches: code shared by the readers of all formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.errors import FileCorrupt

BATCH_ROWS = 64 * 1024
BATCH_BYTES = 16 * 1024 * 1024
_MOST, _PER_BYTE = 512 << 20, 32
"""Bytes of texts and nested values that are held together, and for each byte of their file."""
_MOST_ROWS, _ROWS_PER_BYTE = 4 << 20, 16
"""The same of rows. Columns without values take no bytes, so a sound file has many for each."""
Rows = tuple[Mapping[str, pa.Array], int]
"""Columns by name, and the number of rows, because there may be no column."""


def places_of(names: Sequence[str], wanted: Sequence[str], uri: str) -> dict[str, int]:
    """The position of each requested column in a file, by name, ignoring case (rule 14).

    Errors:
        FileCorrupt: two columns of the file match.
    """
    places: dict[str, int] = {}
    found: dict[str, list[int]] = {}
    for place, each in enumerate(names):
        found.setdefault(each.lower(), []).append(place)
    for name in wanted:
        match found.get(name.lower(), []):
            case [place]:
                places[name] = place
            case [_, _, *_]:
                raise FileCorrupt(
                    f"{uri}: two columns differ only in case from {name!r}", "rewrite the file"
                )
    return places


def expect_rows(found: int, stated: int, uri: str) -> None:
    """Errors: FileCorrupt: other rows were read than the file states."""
    if found != stated:
        raise FileCorrupt(
            f"{uri}: {found} rows were read where {stated} are stated",
            "restore it or write it again",
        )


def all_rows(batches: Iterable[pa.RecordBatch], stated: int, uri: str) -> Iterator[pa.RecordBatch]:
    """The batches, which end only after the rows that are stated. Errors: as `expect_rows`."""
    found = 0
    for batch in batches:
        found += batch.num_rows
        yield batch
    expect_rows(found, stated, uri)


class Held:
    """Counts decoded rows that are held together. What is stored once may be there any number of
    times, so there is as much as the file's own bytes allow.

    Args:
        size: bytes of the file, or of the part that is read.
    """

    def __init__(self, uri: str, size: int) -> None:
        self._uri, self._size = uri, size
        self._bytes = _MOST + _PER_BYTE * size
        self._rows = _MOST_ROWS + _ROWS_PER_BYTE * size

    def add(self, batch: pa.RecordBatch) -> None:
        """Errors: FileCorrupt: there is more."""
        self._rows -= batch.num_rows
        self._bytes -= sum(array.nbytes for array in batch.columns if not _is_number(array.type))
        if self._rows < 0 or self._bytes < 0:
            raise FileCorrupt(
                f"{self._uri}: {self._size} bytes become more than are held together",
                "compact the table, or read it with the engine",
            )


def _is_number(held: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(held) or pa.types.is_decimal(held) or pa.types.is_null(held))


def without_columns(rows: int) -> Iterator[Rows]:
    """Batches with ``rows`` rows in total, for requests without columns."""
    for start in range(0, rows, BATCH_ROWS):
        yield {}, min(BATCH_ROWS, rows - start)


def pieces(batch: pa.RecordBatch, most: int = BATCH_BYTES) -> Iterator[pa.RecordBatch]:
    """The rows in order, in batches of so many bytes or of one row, without dictionaries.

    Sizes are those of decoded values: what is stored once counts in each row that has it.
    """
    pending = [batch]
    while pending:
        part = pending.pop()
        if part.num_rows > 1 and sum(map(decoded_bytes, part.columns)) > most:
            half = part.num_rows // 2
            pending += [part.slice(half), part.slice(0, half)]
            continue
        columns = [without_dictionaries(column) for column in part.columns]
        yield pa.RecordBatch.from_arrays(columns, names=part.schema.names)


def without_dictionaries(array: pa.Array) -> pa.Array:
    """The values themselves in place of codes, at any depth."""
    if pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    plain = _plain(array.type)
    return array if plain == array.type else array.cast(plain)


def _plain(held: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(held):
        return held.value_type
    if not _has_dictionary(held):
        return held
    fields = [held.field(i) for i in range(held.num_fields)]
    fields = [field.with_type(_plain(field.type)) for field in fields]
    if pa.types.is_struct(held):
        return pa.struct(fields)
    if pa.types.is_map(held):
        return pa.map_(
            _plain(held.key_field.type), held.item_field.with_type(_plain(held.item_type))
        )
    if pa.types.is_fixed_size_list(held):
        return pa.list_(fields[0], held.list_size)
    return pa.large_list(fields[0]) if pa.types.is_large_list(held) else pa.list_(fields[0])


def _has_dictionary(held: pa.DataType) -> bool:
    if pa.types.is_dictionary(held):
        return True
    return any(_has_dictionary(held.field(i).type) for i in range(held.num_fields))


def decoded_bytes(array: pa.Array) -> int:
    """The bytes of an array, and of what a dictionary's codes stand for, at any depth."""
    held = array.type
    if not _has_dictionary(held):
        return int(array.nbytes)
    if pa.types.is_struct(held):
        return sum(map(decoded_bytes, array.flatten()))
    if pa.types.is_nested(held):
        if pa.types.is_map(held):
            first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
            parts = [each.slice(first, last - first) for each in (array.keys, array.items)]
        else:
            parts = [array.flatten()]
        return 8 * len(array) + sum(map(decoded_bytes, parts))
    values = array.dictionary
    if pa.types.is_nested(values.type) or not len(values):
        return int(array.nbytes)
    each = values.nbytes / len(values)
    if not pa.types.is_fixed_size_binary(values.type) and not pa.types.is_primitive(values.type):
        lengths = pc.take(pc.binary_length(values), array.indices)
        return int(pc.sum(lengths).as_py() or 0) + 4 * len(array)
    return int(each * len(array))
