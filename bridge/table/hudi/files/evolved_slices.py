"""Slices by the schema that their base files were written with, where a table keeps a history.

A slice is marked where some log may have been written under names or types that mean something else
in the version that is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from bridge.formats.hudi.by_id import FileColumns, LogColumns, encode
from bridge.table.hudi.files.file_slices import FileSlices, Int32, Mask
from bridge.table.hudi.schema.schema_history import SchemaHistory, SchemaVersion


@dataclass(frozen=True, slots=True)
class Evolution:
    """How the base file of each slice has the columns of the table.

    Attributes:
        columns: the distinct ways; the first is by name.
        way: of each slice, an index into ``columns``; int32[n].
        older_logs: some log may have other names or types than the table.
        oldest: for slices with such logs, the place of the oldest version of the schema that a log
            of theirs may have; int32[n].
        logs: how logs have the columns of the table.
    """

    columns: tuple[FileColumns, ...]
    way: Int32
    older_logs: Mask
    oldest: Int32
    logs: LogColumns

    def names(self, way: int) -> Mapping[str, str | None]:
        """Names in the files by the table's; None: not known, or not of the same values."""
        return {
            name: None if column is None or column.was or column.parts else column.name
            for name, column in self.columns[way].items()
        }


def evolve(
    slices: FileSlices, history: SchemaHistory, table: SchemaVersion, instant: str, completes: bool
) -> Evolution | None:
    """The ways of all slices; None if every file's columns are found by name.

    Args:
        table: the version of the schema that is read.
        instant: the newest that counts.
        completes: each log was written by the instant in its name.

    Errors:
        UnsupportedTable: the schema of some file is not known.
    """
    columns: list[FileColumns] = [{}]
    numbers = {encode({}): 0}

    @cache
    def way(written: str) -> int:
        found = history.columns(history.at(written), table)
        key = encode(found)
        if key not in numbers:
            numbers[key] = len(columns)
            columns.append(found)
        return numbers[key]

    @cache
    def since(begin: str) -> bool:
        return any(history.columns(v, table) for v in history.since(begin, instant))

    @cache
    def first(begin: str) -> int:
        return min(history.place(v) for v in history.since(begin, instant))

    of_base = _of_each(slices.base_instants, way, np.int32)
    of_base = np.where(slices.has_base, of_base, 0).astype(np.int32)
    older = np.zeros(len(slices), np.bool_)
    oldest = np.full(len(slices), np.iinfo(np.int32).max, np.int32)
    if len(slices.log_paths):
        owner = np.repeat(np.arange(len(slices)), slices.log_counts)
        known = slices.log_instants
        if completes or (len(known) and "" not in known.unique().to_pylist()):
            odd = _of_each(known, lambda at: bool(way(at)), np.bool_)
            place = _of_each(known, lambda at: history.place(history.at(at)), np.int32)
        else:  # a log may hold blocks of any instant since its base file
            odd = _of_each(slices.base_instants, since, np.bool_)[owner]
            place = _of_each(slices.base_instants, first, np.int32)[owner]
        np.logical_or.at(older, owner, odd)
        np.minimum.at(oldest, owner, place)
    if not of_base.any() and not older.any():
        return None
    return Evolution(tuple(columns), of_base, older, oldest, history.log_columns(table))


def _of_each(instants: pa.Array, told: Callable[[str], int], kind: type) -> np.ndarray:
    """What is told of each instant, computed once for each distinct one."""
    encoded = instants.dictionary_encode()
    values = [told(text) for text in encoded.dictionary.to_pylist()]
    found: np.ndarray = np.array(values, kind)
    return found[encoded.indices.to_numpy()] if len(found) else np.zeros(0, kind)
