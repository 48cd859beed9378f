"""PruningStatistics: statistics of many files, as columns over ALL of them.

The law: statistics of a file hold for every row of that file as the asking engine reads it. What is
not known is marked as unknown: an unknown bound is infinite, an unknown count is -1. The shape
follows DataFusion's trait of the same name: one array per question, one slot per file, no object
per file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.expression.nodes import BoundReference, Op
from bridge.types import Type, Value

Mask: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.int64]
Places: TypeAlias = npt.NDArray[np.int64]
# An Arrow array comes without type information, so this is Any for mypy; the types are for readers.
Bounds: TypeAlias = "npt.NDArray[np.int64] | npt.NDArray[np.float64] | pa.Array"


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column over N files, in canonical values of ``type``.

    Attributes:
        type: the column's type in the table; bounds were converted to it exactly or are unknown.
        lower, upper: bounds of the non-null, non-NaN values, both inclusive. int64 arrays for
            booleans, integers, dates, timestamps and decimals of at most 18 digits; float64 arrays
            for floats; Arrow arrays (large_binary, or decimal128(38, s) for wider decimals)
            otherwise. Unknown: the smallest or largest int64, -inf or +inf, null in an Arrow array.
        lower_known, upper_known: False where unknown; None means all are known.
        exact: True where both bounds are values that occur in the file; None means all are.
        null_count, nan_count, row_count: -1 where unknown. nan_count is 0 for types without NaN.
        all_null: files known to hold nothing but NULLs of this column; None means there is none.
        ascending: lower and upper are numpy arrays, each in ascending order over the files.
        intervals: the same bounds for long lists of values, see `bridge.expression.intervals`.
        cells: the same bounds, rounded, see `bridge.expression.quantised_bounds`.
        expect: begins to read the bounds of some files, or of all (None), and does not wait.
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
    """Bounds in an order that is fast to search."""

    def none_of(self, values: tuple[Value, ...]) -> Mask | None:
        """Files whose bounds enclose none of the sorted values; None: ask them one by one."""
        ...


class Rounded(Protocol):
    """Bounds in few bytes, which decide most files."""

    def never(
        self, op: Op, values: tuple[Value, ...], at: Places | None = None
    ) -> tuple[Mask, Mask] | None:
        """Files, of all or those at the places, without a value that satisfies a comparison:
        surely, and perhaps. None: compare the bounds themselves.
        """
        ...


class PruningStatistics(Protocol):
    """What an index kind knows about the files of one batch."""

    @property
    def num_files(self) -> int: ...

    def column(self, reference: BoundReference) -> ColumnStatistics | None:
        """Bounds and counts of a column, None where the index holds nothing about it."""
        ...
