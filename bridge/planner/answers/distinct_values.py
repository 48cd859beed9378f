"""How many distinct values a column has, by the best of what is known.

The law: an estimate is never above the number of values, nor above what the files' bounds allow. A
file whose bounds are equal holds one value; a file of integers holds no more values than lie
between its bounds; files together hold no more than lie between the bounds of all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.statistics import ColumnStatistics, Mask
from bridge.index.building.sample import ColumnSample
from bridge.kernel.types import Kind, Type
from bridge.table.catalog_statistics import CatalogColumn, CatalogStatistics, number_in_range

CountSource = Literal["exact", "sketch", "sample", "catalog", "bounds"]
"""Partition keys; a sketch of all values; a sample of the values; statistics that the catalog
holds; bounds and counts alone."""

_FRESH = 0.2
"""Statistics of the catalog are fresh if their row count differs by no more than this share."""


@dataclass(frozen=True, slots=True)
class TableDistinct:
    """What is known of a column's distinct values in the whole table.

    Attributes:
        rows: of the table, as of the index.
        sketch: from a sketch of all values, see `bridge.index.kinds.distinct`.
        sample: from the values that builds read, see `bridge.index.building.sample`.
        catalog: what the catalog holds of the column, and ``held`` of the table.
        width: from the least to the greatest value, by the index's bounds; None if unknown.
    """

    rows: float
    sketch: float | None = None
    sample: ColumnSample | None = None
    catalog: CatalogColumn | None = None
    held: CatalogStatistics = field(default_factory=CatalogStatistics)
    width: float | None = None

    def best(self) -> tuple[float | None, CountSource]:
        """The best number and its source: the one that covers most of the present rows.

        What the catalog holds of some partitions is less than there is in all.
        """
        if self.sketch is not None:
            return self.sketch, "sketch"
        sampled = None if self.sample is None else self.sample.distinct_in(self.rows, self.width)
        told = None if self.catalog is None else number_in_range(self.catalog.distinct, self.rows)
        if told is None or (self.sample is not None and self.sample.rows >= self.rows):
            return sampled, "sample"
        if sampled is None or (self.held.whole and self._fresh()) or sampled < told:
            return told, "catalog"
        return sampled, "sample"

    def _fresh(self) -> bool:
        rows = self.held.rows
        return rows is not None and abs(rows - self.rows) <= _FRESH * self.rows

    def nulls_fraction(self) -> float | None:
        """The share of rows where it is NULL, if the index has no counts."""
        if self.sample is not None and self.sample.rows:
            return 1.0 - self.sample.values / self.sample.rows
        known = None if self.catalog is None else number_in_range(self.catalog.nulls, self.rows)
        return None if known is None or not self.rows else known / self.rows

    def range(self) -> tuple[float | None, float | None]:
        """Where the values lie, if the index has no bounds."""
        known = self.sample or self.catalog
        if known is None or known.low is None or known.high is None:
            return None, None
        other = self.catalog
        if other is None or other.low is None or other.high is None:
            return known.low, known.high
        return min(known.low, other.low), max(known.high, other.high)

    def length(self) -> float | None:
        """The average length of a value in bytes."""
        sample = self.sample
        if sample is not None and sample.bytes is not None and sample.values:
            return sample.bytes / sample.values
        return None if self.catalog is None else self.catalog.length


def bounded_distinct(
    found: ColumnStatistics, present: float, estimated: float | None, source: CountSource
) -> tuple[float | None, CountSource | None]:
    """The estimate within the limits that bounds and counts set; these alone if there is none.

    Args:
        found: of the files in question.
        present: rows in them where the column is not NULL.
        estimated: distinct values of the whole table; None if unknown.

    Returns:
        The number, or None where nothing is known, and its source.
    """
    if not present:
        return 0.0, "bounds"
    least, most = _limits(found)
    if estimated is not None:
        return min(max(estimated, least), most, present), source
    if np.isfinite(most):
        return min(most, present), "bounds"
    return None, None


def _limits(found: ColumnStatistics) -> tuple[float, float]:
    """The least and the greatest number of distinct values that the bounds allow."""
    if found.type.kind is Kind.BOOLEAN:
        return 1.0, 2.0
    lower, upper, known = _known_bounds(found)
    if not known.any():
        return 0.0, np.inf
    everywhere = bool(known.all())
    if not isinstance(lower, np.ndarray):
        same = np.asarray(pc.equal(lower, upper).to_numpy(zero_copy_only=False), bool)
        values = len(constants(lower, known & same))
        return max(1.0, values), float(values) if everywhere and same.all() else np.inf
    lower, upper = lower[known], upper[known]
    same = lower == upper
    values = len(np.unique(lower[same]))
    if everywhere and same.all():
        return float(values), float(values)
    if not everywhere or not _discrete(found.type):
        return max(1.0, values), np.inf
    span = float(upper.max()) - float(lower.min()) + 1.0
    counts = found.row_count[_with_values(found)]
    each = upper.astype(np.float64) - lower.astype(np.float64) + 1.0
    each = np.where(counts >= 0, np.minimum(each, counts), each)
    return max(1.0, values), float(min(span, each[~same].sum() + values))


def _known_bounds(found: ColumnStatistics) -> tuple[Any, Any, Mask]:
    """The bounds of the files that hold values, and where both are known."""
    place = np.flatnonzero(_with_values(found))
    known = np.ones(len(place), np.bool_)
    for mask in (found.lower_known, found.upper_known, found.exact):
        if mask is not None:
            known &= mask[place]
    if isinstance(found.lower, np.ndarray):
        return found.lower[place], found.upper[place], known
    at = pa.array(place)
    return found.lower.take(at), found.upper.take(at), known


def _with_values(found: ColumnStatistics) -> Mask:
    some: Mask = found.row_count != 0
    return some if found.all_null is None else some & ~found.all_null


def _discrete(type: Type) -> bool:
    """Whether few values lie between two: integers, dates and decimals."""
    return type.is_integer or type.kind in (Kind.DATE, Kind.DECIMAL)


def constants(values: Any, known: Mask | None) -> npt.NDArray[Any]:
    """The distinct values among those that are known."""
    if isinstance(values, np.ndarray):
        return np.unique(values if known is None else values[known])
    held = values if known is None else values.filter(pa.array(known))
    found: npt.NDArray[Any] = held.unique().drop_null().to_numpy(zero_copy_only=False)
    return found
