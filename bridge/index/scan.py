"""The one read of a file's data: every index that needs values takes them from the same pass.

Footers cannot tell NaN counts, and lack some bounds: `LeafScan` takes these from the data like any
other kind. Nothing is read where nobody needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bridge.errors import FileCorrupt
from bridge.index.footer import Footer, LeafStatistics
from bridge.index.kinds.kind import Arrays, Gathering, Row
from bridge.index.physical_column import PhysicalType
from bridge.storage.port import Storage
from bridge.storage.source import is_passing, open_source

_ROWS = 1_000_000
"""Rows of a file that are read at once; a larger file is read in batches."""
_BATCH = 128 * 1024
_BOUNDED = frozenset({"bool", "int", "float", "double", "date", "string", "binary"})


def leaf_scans(footer: Footer) -> list[LeafScan]:
    """What the data must tell about a file's leaves that its footer does not."""
    wanted = [(i, leaf) for i, leaf in enumerate(footer.leaves) if _lacks(leaf, footer.rows)]
    names = [".".join(footer.leaves[i].column.path) for i, _ in wanted]
    # Two leaves that share a spelling cannot be told apart: nothing is said of them.
    return [
        LeafScan(i, leaf) for (i, leaf), n in zip(wanted, names, strict=True) if _once(n, names)
    ]


def _once(name: str, names: list[str]) -> bool:
    return names.count(name) == 1


def scan(
    footer: Footer,
    gatherings: Sequence[Gathering],
    storage: Storage,
    uri: str,
    size: int,
    tail: bytes,
) -> None:
    """Reads the leaves that anyone needs, once, and hands them to all.

    Args:
        tail: the end of the file, as far as it was read for the footer.

    Errors:
        FileCorrupt: the data cannot be decoded.
    """
    leaves = sorted({leaf for gathering in gatherings for leaf in gathering.leaves})
    if not leaves or not footer.rows:
        return
    source = pa.BufferReader(tail) if len(tail) == size else open_source(storage, uri, size)
    try:
        for table in _tables(source, footer, leaves):
            paths = {i: footer.leaves[i].column.path for i in leaves}
            arrays = Arrays({i: _values(table, path) for i, path in paths.items()})
            for gathering in gatherings:
                if gathering.leaves:
                    gathering.update(arrays)
    except (pa.ArrowException, OSError, KeyError) as error:
        if is_passing(error):
            raise
        first = str(error).partition("\n")[0]
        raise FileCorrupt(f"{uri}: its data cannot be decoded: {first}", "rewrite it") from error


def _tables(source: Any, footer: Footer, leaves: list[int]) -> Iterator[pa.Table]:
    reader, metadata = pq.core.ParquetReader(), footer.metadata
    if footer.rows <= _ROWS:
        coded = [footer.leaves[i].column.path[0] for i in leaves if _coded(footer, i)]
        reader.open(source, metadata=metadata, read_dictionary=coded)
        yield reader.read_all(column_indices=leaves, use_threads=False)
        return
    reader.open(source, metadata=metadata)
    groups = list(range(metadata.num_row_groups))
    for batch in reader.iter_batches(_BATCH, groups, column_indices=leaves, use_threads=False):
        yield pa.Table.from_batches([batch])


def _coded(footer: Footer, leaf: int) -> bool:
    """Whether text is stored with dictionaries so small that most values repeat.

    Not of fields: Arrow does not put those of several row groups together.
    """
    column = footer.leaves[leaf].column
    if column.type.physical != "BYTE_ARRAY" or len(column.path) > 1 or "." in column.path[0]:
        return False
    for _, chunks in footer.groups:
        chunk = chunks[leaf]
        if chunk.dictionary <= 0 or not 0 < chunk.data - chunk.dictionary <= chunk.values:
            return False
    return True


def _values(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    column = table.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column


def _lacks(leaf: LeafStatistics, rows: int) -> bool:
    stored = leaf.column.type
    if stored.is_floating:
        return True
    return leaf.lower is None and stored.logical in _BOUNDED and leaf.nulls != rows


class LeafScan:
    """Counts NaN in a float leaf, or finds bounds that the footer lacks, in place.

    Bounds found here are values of the file, hence exact. Nothing is done for leaves below lists,
    for INT96 and for types whose order Arrow does not share.
    """

    def __init__(self, number: int, leaf: LeafStatistics) -> None:
        self.leaves = (number,)
        self._leaf = leaf
        self._nulls = self._nans = 0
        self._bounds: tuple[Any, Any] | None = None

    def update(self, arrays: Arrays) -> None:
        values = arrays[self.leaves[0]]
        self._nulls += values.null_count
        if self._leaf.column.type.is_floating:
            numbers = values.drop_null().to_numpy()
            nan = np.isnan(numbers)
            count = int(np.count_nonzero(nan))
            self._nans += count
            if count:
                numbers = numbers[~nan]
            if len(numbers):
                self._widen(float(numbers.min()), float(numbers.max()))
        elif values.null_count < len(values):
            comparable = _comparable(values, self._leaf.column.type)
            if comparable is not None:
                bounds = pc.min_max(comparable).as_py()
                self._widen(bounds["min"], bounds["max"])

    def _widen(self, low: Any, high: Any) -> None:
        held = self._bounds or (low, high)
        self._bounds = min(held[0], low), max(held[1], high)

    def finish(self) -> tuple[Row, ...]:
        leaf = self._leaf
        leaf.nulls = self._nulls
        if leaf.column.type.is_floating:
            leaf.nans = self._nans
        if self._bounds is not None:
            leaf.lower, leaf.upper, leaf.exact = *self._bounds, True
        return ()


def _comparable(values: pa.ChunkedArray, stored: PhysicalType) -> Any:
    """As what compares; None where Arrow was told, by the file, to read another type."""
    held = values.type
    if stored.logical in ("string", "binary"):
        return values.cast(pa.large_binary())
    if stored.logical == "date":
        return values.cast(pa.int32()) if pa.types.is_date32(held) else None
    if stored.logical == "int" and stored.width <= (32 if stored.physical == "INT32" else 64):
        return values if pa.types.is_signed_integer(held) else None
    if stored.logical == "bool":
        return values if pa.types.is_boolean(held) else None
    return values  # of other formats, whose readers hand over what compares
