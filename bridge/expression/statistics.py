"""PruningStatistics: column-oriented statistics of many files.

The law: the statistics of a file hold for every row as the requesting engine reads it. Unknown
bounds are infinite, and unknown counts are -1. The interface follows DataFusion's trait of the same
name: one array per statistic, one slot per file, no object per file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.nodes import BoundReference, Op
from bridge.kernel.types import Type, Value

Mask: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.int64]
Places: TypeAlias = npt.NDArray[np.int64]
# Arrow arrays have no type information, so mypy sees Any here. The types are for readers.
Bounds: TypeAlias = "npt.NDArray[np.int64] | npt.NDArray[np.float64] | pa.Array"


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column in N files, in canonical values of ``type``.

    Attributes:
        type: the column's type in the table. Bounds are converted to it exactly or are unknown.
        lower, upper: bounds of the non-null, non-NaN values, both inclusive. int64 arrays for
            booleans, integers, dates, timestamps and decimals of at most 18 digits; float64 arrays
            for floats; Arrow arrays (large_binary, or decimal128(38, s) for wider decimals)
            otherwise. Unknown: the least or greatest int64, -inf or +inf, null in an Arrow array.
        lower_known, upper_known: False where unknown; None if all are known.
        exact: True where both bounds are values of the file; None if all are.
        null_count, nan_count, row_count: -1 where unknown. nan_count is 0 for types without NaN.
        all_null: files known to hold only NULLs in this column; None if there is none.
        ascending: lower and upper are numpy arrays, each in ascending order over the files.
        intervals: the same bounds for long lists of values, see `bridge.expression.intervals`.
        cells: the same bounds, quantised; see `bridge.expression.quantised_bounds`.
        expect: starts to read the bounds of some files (None: all files), without waiting.
    """

    type: Type
    lower: Bounds
    upper: Bounds
    lower_known: Mask | None
    upper_known: Mask | None
    exact: Mask | None
    null_count: Counts
    nan_count: Counts
    row_count: Counts
    all_null: Mask | None
    ascending: bool = False
    intervals: BoundIntervals | None = None
    cells: Rounded | None = None
    expect: Callable[[Places | None], None] | None = None


class BoundIntervals(Protocol):
    """Bounds in an order for binary search."""

    def none_of(self, values: tuple[Value, ...]) -> Mask | None:
        """Files whose bounds enclose none of the sorted values; None: check each file."""
        ...


class Rounded(Protocol):
    """Quantised bounds, which decide most files."""

    def never(
        self, op: Op, values: tuple[Value, ...], at: Places | None = None
    ) -> tuple[Mask, Mask] | None:
        """Files (all, or those at the places) without a value that satisfies a comparison.

        Returns:
            Masks of the sure and the doubtful files; None: compare the exact bounds.
        """
        ...


class PruningStatistics(Protocol):
    """The statistics of an index kind for the files of one batch."""

    @property
    def num_files(self) -> int: ...

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        """Bounds and counts of a column; None if the index has none."""
        ...
