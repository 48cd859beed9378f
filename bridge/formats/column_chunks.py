"""Typed values of a file's columns in one pass, for formats that store no statistics.

A reader yields batches of values. Every index takes what it needs from the same batches, so a file
is read once. A reader may find late that a column is doubtful: that engines may read one of its
values differently. Nothing is then known of the column in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import pyarrow as pa

from bridge.formats.lines.recipe import Recipe
from bridge.formats.physical_column import PhysicalColumn, PhysicalType
from bridge.formats.statistics import FileStatistics
from bridge.kernel.types import Kind, Type
from bridge.storage.port import Storage

Batch = Mapping[int, pa.ChunkedArray]
OTHER = PhysicalType("BYTE_ARRAY", "other")
"""The type of a column of which nothing is known."""


class ColumnChunks(Protocol):
    """One file, being read.

    Attributes:
        leaves: its columns, in the order of their numbers. A column without known values has the
            type `OTHER` and is in no batch.
        doubts: why columns have become doubtful, as far as the reader tells.
    """

    @property
    def leaves(self) -> tuple[PhysicalColumn, ...]: ...

    @property
    def doubts(self) -> Mapping[int, str]: ...

    def batches(self) -> Iterator[tuple[int, Batch]]:
        """The number of rows of each batch, and its values by column, in arrays of equal length.

        A column that is missing in a batch is doubtful. Integers, booleans, floats, dates
        (date32), timestamps (microseconds), decimals (decimal128) and text have Arrow's types.

        Errors:
            FileAmbiguous: engines may find other rows in the file.
            FileCorrupt, FileUnreadable, StorageFailure.
        """
        ...

    def loose(self) -> Mapping[int, float]:
        """Columns whose values engines may read with a small relative error, after the last batch.

        Their bounds are widened by it, and no other index is built on them.
        """
        ...


ChunkReader = Callable[[Storage, str, int, Recipe], ColumnChunks]
"""Called with the storage, a file's URI, its size in bytes, and how the table declares it.

The law: each value is the one that every engine reads from the file under the declaration. What is
not certain is left out, and the file is read.
"""


class ValueSink(Protocol):
    """Takes the values of a file's columns, for indexes other than min/max."""

    def begin(self, leaves: tuple[PhysicalColumn, ...], sure: set[int]) -> None:
        """Called once, with all columns and the numbers of those whose values will come."""
        ...

    def add(self, batch: Batch) -> None:
        """The values of more rows, of some of the columns; of each column all rows come."""
        ...

    def drop(self, leaf: int) -> None:
        """Engines may read a value of the column differently: it has no indexes."""
        ...


ValueReader = Callable[[Storage, str, int, ValueSink], FileStatistics]
"""Called with the storage, a file's URI, its size in bytes, and what takes its values."""

_STORED = {
    Kind.BOOLEAN: PhysicalType("BOOLEAN", "bool", 1),
    Kind.TINYINT: PhysicalType("INT32", "int", 8),
    Kind.SMALLINT: PhysicalType("INT32", "int", 16),
    Kind.INTEGER: PhysicalType("INT32", "int", 32),
    Kind.BIGINT: PhysicalType("INT64", "int", 64),
    Kind.FLOAT: PhysicalType("FLOAT", "float"),
    Kind.DOUBLE: PhysicalType("DOUBLE", "double"),
    Kind.DATE: PhysicalType("INT32", "date"),
    Kind.TIMESTAMP: PhysicalType("INT64", "timestamp", 64, unit="us"),
    Kind.STRING: PhysicalType("BYTE_ARRAY", "string"),
    Kind.VARCHAR: PhysicalType("BYTE_ARRAY", "string"),
}


def stored_type(declared: Type) -> PhysicalType:
    """The stored type of a declared one; `OTHER` if its values are not read here."""
    if declared.kind is Kind.DECIMAL:
        return PhysicalType(
            "FIXED_LEN_BYTE_ARRAY", "decimal", 16, declared.precision, declared.scale
        )
    return _STORED.get(declared.kind, OTHER)


def declared_leaves(recipe: Recipe) -> tuple[PhysicalColumn, ...]:
    """The leaves of a file whose columns are those that the table declares."""
    names = [name for name, _ in recipe.columns]
    return tuple(
        PhysicalColumn((name,), stored_type(type) if names.count(name) == 1 else OTHER)
        for name, type in recipe.columns
    )
