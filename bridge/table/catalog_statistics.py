"""Statistics that a catalog holds of a table, as ANALYZE left them.

They may be stale or wrong, so they serve estimates alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from bridge.table.model import CatalogTable


@dataclass(frozen=True, slots=True)
class CatalogColumn:
    """Statistics of one column; None where the catalog says nothing, or nonsense.

    Attributes:
        distinct: distinct values; NULL does not count.
        nulls: rows where it is NULL.
        length: average length of a value in bytes, for text and binary columns.
        low, high: the least and the greatest value: days for a date, microseconds for a timestamp.
    """

    distinct: float | None = None
    nulls: float | None = None
    length: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class CatalogStatistics:
    """Statistics of a table.

    Attributes:
        rows: None if unknown.
        columns: by name in lower case.
        whole: whether the columns' statistics cover the whole table. Otherwise they come from some
            partitions, and there may be more distinct values.
    """

    rows: float | None = None
    columns: Mapping[str, CatalogColumn] = field(default_factory=dict, hash=False)
    whole: bool = True


@runtime_checkable
class StatisticsCatalog(Protocol):
    """A catalog that holds statistics."""

    def statistics(self, table: CatalogTable, partitions: Sequence[str]) -> CatalogStatistics:
        """What it holds, fetched in at most one call.

        Args:
            partitions: names of the table's partitions, some or all.

        Errors:
            MetastoreUnavailable, MetastoreFailure.
        """
        ...


def number_in_range(value: float | int | str | None, most: float = math.inf) -> float | None:
    """The number, or None unless it is between 0 and ``most``.

    >>> [number_in_range(value, 8) for value in ("7", -1, "x", float("nan"), 9)]
    [7.0, None, None, None, None]
    """
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if 0 <= number <= most and math.isfinite(number) else None


_LARGEST = 1 << 56
_SPARK = "spark.sql.statistics."


@dataclass(frozen=True, slots=True)
class RecordedSize:
    """What a table's properties say of its size; 0 where they say nothing.

    A catalog that keeps no statistics often says 0, too.
    """

    rows: int = 0
    bytes: int = 0
    files: int = 0


def recorded_size(table: CatalogTable) -> RecordedSize:
    """Spark's statistics of a table, or Hive's, which of a partitioned table may be anything."""
    hive = {} if table.partition_keys else table.properties

    def find(name: str) -> int:
        for told in (table.properties.get(f"{_SPARK}{name}"), hive.get(name)):
            if number := number_in_range(told):
                return int(min(number, _LARGEST))
        return 0

    return RecordedSize(find("numRows"), find("totalSize"), find("numFiles"))
