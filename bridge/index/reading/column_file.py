"""The columns file of a shard in storage. Only the requested columns are read.

One request reads the footer, whose checksum is in the manifest. It says which row groups hold each
column. One more request per run of adjacent row groups reads the rows, whose pages have checksums.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

from bridge.formats.parquet.tables import table_file, table_metadata
from bridge.index.generations.manifest import Blob
from bridge.index.generations.shard import (
    COLUMNS,
    DIRECTORY,
    column_starts,
    footer_size,
    key_texts,
    parse_directory,
    read_columns,
    write_columns,
)
from bridge.index.generations.store import IndexStore
from bridge.kernel.errors import IndexCorrupt
from bridge.storage.reading.source import SeekableFile

_READ = ("file", "lower", "upper", "exact", "nulls", "nans", "basis", "size")
"""Columns of the Parquet file that pruning needs. They are adjacent in each row group."""
_GAP = 64 * 1024
"""Gaps of at most this many bytes are read, because another request would cost more."""
_REMEDY = "skipbridge index build rebuilds it"


def put_columns(store: IndexStore, name: str, columns: pa.Table) -> Blob:
    """Writes a shard's columns so that a `ColumnFile` can read single columns."""
    raw = write_columns(columns)
    return store.put_blob(name, raw, footer_size(raw))


class ColumnFile:
    """An opened columns file. Thread-safe.

    Attributes:
        keys: the row range (start, end) of each column.

    Errors:
        IndexCorrupt, StorageFailure: raised by the constructor and by `read`.
    """

    def __init__(self, store: IndexStore, blob: Blob) -> None:
        self._store, self._blob = store, blob
        self._whole: pa.Table | None = None
        self.keys: Mapping[str, tuple[int, int]]
        try:
            self._open()
        except (pa.ArrowException, ValueError, OSError) as error:
            raise IndexCorrupt(f"{blob.name}: its footer is damaged: {error}", _REMEDY) from error

    def _open(self) -> None:
        blob = self._blob
        if not blob.tail:  # written without a tail: the whole file is read once
            self._whole = read_columns(self._store.read_blob(blob))
            self.keys = _edges(key_texts(self._whole), column_starts(self._whole))
            return
        self._metadata = table_metadata(self._store.read_tail(blob))
        found = parse_directory(self._metadata.metadata[DIRECTORY])
        self.keys = _edges([k for k, _ in found], [0, *accumulate(rows for _, rows in found)])
        groups = [self._metadata.row_group(i) for i in range(self._metadata.num_row_groups)]
        self._rows = [0, *accumulate(group.num_rows for group in groups)]
        if self._rows[-1] != sum(rows for _, rows in found):
            raise IndexCorrupt(f"{blob.name}: its directory does not match its rows", _REMEDY)

    def read(self, wanted: Iterable[str]) -> dict[str, pa.Table]:
        """The rows of some columns, without ``column``. Omits columns it lacks.

        Reads only the row groups that hold them, and gaps of at most `_GAP` bytes between.
        """
        spans = {key: self.keys[key] for key in wanted if key in self.keys}
        spans = {key: span for key, span in spans.items() if span[1] > span[0]}
        if not spans:
            return {}
        if self._whole is not None:
            table = self._whole.select(_READ)
            return {key: table.slice(a, b - a) for key, (a, b) in spans.items()}
        needed = sorted({g for span in spans.values() for g in self._groups(*span)})
        table = self._read_groups(needed)
        first, base = {}, 0
        for group in needed:
            first[group] = base
            base += self._rows[group + 1] - self._rows[group]
        found = {}
        for key, (start, end) in spans.items():
            group = self._groups(start, end)[0]
            found[key] = table.slice(first[group] + start - self._rows[group], end - start)
        return found

    def sizes(self) -> dict[str, int]:
        """Bytes of each column. Columns that share a row group share its bytes by rows."""
        if self._whole is not None:
            share = self._blob.size / max(self._whole.num_rows, 1)
            return {key: round((b - a) * share) for key, (a, b) in self.keys.items()}
        groups = range(len(self._rows) - 1)
        rows = [self._rows[i + 1] - self._rows[i] for i in groups]
        bytes_ = [self._group_size(i) for i in groups]
        found = {}
        for key, (start, end) in self.keys.items():
            inside = self._groups(start, end) if end > start else range(0)
            found[key] = round(
                sum(
                    bytes_[i] * (min(end, self._rows[i + 1]) - max(start, self._rows[i])) / rows[i]
                    for i in inside
                )
            )
        return found

    def _group_size(self, group: int) -> int:
        chunks = self._metadata.row_group(group)
        return sum(chunks.column(i).total_compressed_size for i in range(chunks.num_columns))

    def _groups(self, start: int, end: int) -> range:
        """The row groups that hold these rows."""
        return range(bisect_right(self._rows, start) - 1, bisect_left(self._rows, end))

    def _read_groups(self, groups: Sequence[int]) -> pa.Table:
        pieces: list[tuple[int, int]] = []
        for group in groups:
            start, end = self._extent(group)
            if pieces and start - pieces[-1][1] <= _GAP:
                pieces[-1] = (pieces[-1][0], end)
            else:
                pieces.append((start, end))
        parts = [self._store.read_part(self._blob, start, end) for start, end in pieces]
        source = pa.PythonFile(_Parts(self._blob.size, pieces, parts), mode="r")
        try:
            file = table_file(source, self._metadata)
            rows = file.read_row_groups(list(groups), columns=list(_READ))
            return rows.cast(_SCHEMA)
        except (pa.ArrowException, OSError) as error:
            first = str(error).partition("\n")[0]
            raise IndexCorrupt(f"{self._blob.name} is damaged: {first}", _REMEDY) from error

    def _extent(self, group: int) -> tuple[int, int]:
        chunks = self._metadata.row_group(group)
        starts: list[int] = []
        ends: list[int] = []
        for i in range(chunks.num_columns):  # older shards have fewer
            chunk = chunks.column(i)
            if chunk.path_in_schema in _READ:
                first = chunk.data_page_offset
                if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                    first = min(first, chunk.dictionary_page_offset)
                starts.append(first)
                ends.append(first + chunk.total_compressed_size)
        return min(starts), max(ends)


_SCHEMA = pa.schema([COLUMNS.field(name) for name in _READ])


def no_rows() -> pa.Table:
    """What `ColumnFile.read` returns for a column without rows."""
    return _SCHEMA.empty_table()


def _edges(keys: Sequence[str], starts: Sequence[int]) -> dict[str, tuple[int, int]]:
    return {key: (starts[i], starts[i + 1]) for i, key in enumerate(keys)}


class _Parts(SeekableFile):
    """A file of which only the parts to be read are in memory."""

    def __init__(self, size: int, extents: Sequence[tuple[int, int]], parts: Sequence[Any]) -> None:
        super().__init__(size)
        self._extents, self._parts = extents, parts

    def read(self, count: int = -1) -> Any:
        end = self._size if count is None or count < 0 else self._at + count
        for (start, stop), part in zip(self._extents, self._parts, strict=True):
            if start <= self._at and end <= stop:
                found = memoryview(part)[self._at - start : end - start]
                self._at = end
                return found
        raise OSError(f"bytes {self._at} to {end} were not asked for")
