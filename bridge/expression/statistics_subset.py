"""Statistics of some of the files.

Each conjunct is evaluated only on the files that earlier ones kept. Of mapped bounds, only the
pages of those files are read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import ColumnStatistics, Places, PruningStatistics


def take_files(statistics: PruningStatistics, places: Places) -> PruningStatistics:
    """The statistics of the files at the given positions."""
    return _StatisticsSubset(statistics, places)


def bounds_of(column: ColumnStatistics, places: Places) -> ColumnStatistics:
    """The bounds and NaN counts of the files at the given places, without other counts."""
    if column.expect is not None:
        column.expect(places)
    unknown = np.broadcast_to(np.int64(-1), len(places))
    nans = _some(column.nan_count, places) if column.type.is_floating else unknown
    return ColumnStatistics(
        type=column.type,
        lower=_some(column.lower, places),
        upper=_some(column.upper, places),
        lower_known=_some(column.lower_known, places),
        upper_known=_some(column.upper_known, places),
        exact=_some(column.exact, places),
        null_count=unknown,
        nan_count=nans,
        row_count=unknown,
        all_null=None,
    )


@dataclass(frozen=True, slots=True)
class _StatisticsSubset:
    whole: PruningStatistics
    places: Places

    @property
    def num_files(self) -> int:
        return len(self.places)

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        found = self.whole.column(reference)
        if found is None:
            return None
        return replace(
            bounds_of(found, self.places),
            null_count=found.null_count[self.places],
            nan_count=found.nan_count[self.places],
            row_count=found.row_count[self.places],
            all_null=_some(found.all_null, self.places),
            ascending=found.ascending,  # places ascend
        )


def _some(array: Any, places: Places) -> Any:
    if array is None:
        return None
    if isinstance(array, pa.Array):
        return array.take(pa.array(places))
    return array[places]
