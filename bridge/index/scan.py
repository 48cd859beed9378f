"""What footers cannot tell, taken from the data: NaN counts, and bounds that are missing."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bridge.errors import FileCorrupt
from bridge.index.footer import Footer, LeafStatistics
from bridge.index.stored import StoredType
from bridge.storage.port import Storage

_WHOLE = 8 * 1024 * 1024
_BOUNDED = frozenset({"bool", "int", "float", "double", "date", "string", "binary"})


def complete_from_data(footer: Footer, storage: Storage, uri: str, size: int, tail: bytes) -> None:
    """Counts NaN in float leaves and finds bounds that the footer lacks, in place.

    Bounds found here are values of the file, hence exact. Nothing is done for leaves below lists,
    for INT96 and for types whose order Arrow does not share.

    Errors:
        FileCorrupt: the data cannot be decoded.
    """
    wanted = [leaf for leaf in footer.leaves if _lacks(leaf, footer.rows)]
    if not wanted or not footer.rows:
        for leaf in wanted:
            leaf.nans = 0
        return
    source = pa.BufferReader(tail) if len(tail) == size else _open(storage, uri, size)
    try:
        file = pq.ParquetFile(source)
        names = sorted({leaf.column.path[0] for leaf in wanted})
        dotted = [".".join(leaf.column.path) for leaf in wanted]
        table = file.read(columns=dotted, use_threads=False)
        if sorted(table.column_names) != names:  # dots in names: two leaves share a spelling
            return
        for leaf in wanted:
            _complete(leaf, _values(table, leaf.column.path))
    except (pa.ArrowException, OSError, KeyError) as error:
        first = str(error).partition("\n")[0]
        raise FileCorrupt(f"{uri}: its data cannot be decoded: {first}", "rewrite it") from error


def _lacks(leaf: LeafStatistics, rows: int) -> bool:
    stored = leaf.column.type
    if stored.is_floating:
        return True
    return leaf.lower is None and stored.logical in _BOUNDED and leaf.nulls != rows


def _values(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    column = table.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column


def _complete(leaf: LeafStatistics, values: pa.ChunkedArray) -> None:
    stored = leaf.column.type
    leaf.nulls = values.null_count
    if stored.is_floating:
        numbers = values.drop_null().to_numpy()
        nan = np.isnan(numbers)
        leaf.nans = int(np.count_nonzero(nan))
        if leaf.nans:
            numbers = numbers[~nan]
        if len(numbers):
            leaf.lower, leaf.upper = float(numbers.min()), float(numbers.max())
            leaf.exact = True
        return
    if isinstance(values.type, pa.DictionaryType) or values.null_count == len(values):
        return
    bounds = pc.min_max(_comparable(values, stored)).as_py()
    leaf.lower, leaf.upper, leaf.exact = bounds["min"], bounds["max"], True


def _comparable(values: pa.ChunkedArray, stored: StoredType) -> Any:
    if stored.logical in ("string", "binary"):
        return values.cast(pa.large_binary())
    if stored.logical == "date":
        return values.cast(pa.int32())
    return values


class _Ranges(io.RawIOBase):
    """A file of the storage port as pyarrow reads it."""

    def __init__(self, storage: Storage, uri: str, size: int) -> None:
        self._storage, self._uri, self._size, self._at = storage, uri, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, count: int = -1) -> bytes:
        end = self._size if count is None or count < 0 else min(self._size, self._at + count)
        if end <= self._at:
            return b""
        (part,) = self._storage.read_ranges(self._uri, [(self._at, end)])
        self._at = end
        return part


def _open(storage: Storage, uri: str, size: int) -> Any:
    if size <= _WHOLE:
        return pa.BufferReader(storage.read(uri))
    return pa.PythonFile(_Ranges(storage, uri, size), mode="r")
