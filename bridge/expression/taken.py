"""Statistics of some of the files: a conjunct is asked only about what the ones before have left.

Of mapped bounds only the pages of those files are ever read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.nodes import BoundReference
from bridge.expression.statistics import ColumnStatistics, Mask, PruningStatistics
from bridge.storage import ahead
from bridge.types import Value

Ordinals = npt.NDArray[np.int64]


def taken(statistics: PruningStatistics, ordinals: Ordinals) -> PruningStatistics:
    """The statistics of the files at the given positions."""
    return _Taken(statistics, ordinals)


@dataclass(frozen=True, slots=True)
class _Taken:
    whole: PruningStatistics
    ordinals: Ordinals

    @property
    def num_files(self) -> int:
        return len(self.ordinals)

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        found = self.whole.column(reference)
        if found is None:
            return None
        for array in (found.lower, found.upper, found.row_count, found.null_count):
            if isinstance(array, np.ndarray):
                ahead.some(array, self.ordinals)
        return ColumnStatistics(
            type=found.type,
            lower=self._some(found.lower),
            upper=self._some(found.upper),
            lower_known=self._some(found.lower_known),
            upper_known=self._some(found.upper_known),
            exact=self._some(found.exact),
            null_count=self._some(found.null_count),
            nan_count=self._some(found.nan_count),
            row_count=self._some(found.row_count),
            all_null=self._some(found.all_null),
            ascending=found.ascending,  # ordinals ascend
        )

    def may_contain(self, reference: BoundReference, values: tuple[Value, ...]) -> Mask | None:
        found = self.whole.may_contain(reference, values)
        return None if found is None else found[self.ordinals]

    def _some(self, array: Any) -> Any:
        if array is None:
            return None
        if isinstance(array, pa.Array):
            return array.take(pa.array(self.ordinals))
        return array[self.ordinals]
