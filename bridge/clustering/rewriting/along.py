"""Rows in the order of their places on a curve through the ranks of several columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.clustering.rewriting.ranks import in_threads, scaled_ranks

UInt64 = npt.NDArray[np.uint64]
_WORD = 64
_MOST_BITS = 16
_PART = 1 << 16
"""Rows whose places are computed together: they fit into the processor's cache."""


def order_along(
    curve: Callable[[Sequence[UInt64], int], UInt64], columns: pa.Table
) -> npt.NDArray[np.int64]:
    """The rows along a curve; rows at the same place stay in their order.

    Each row's place and position are one number, so that numbers alone are sorted.
    """
    count = len(columns)
    positions = max(count - 1, 1).bit_length()
    bits = max(1, min(_MOST_BITS, (_WORD - positions) // columns.num_columns))
    axes = [scaled_ranks(column, bits) for column in columns.columns]
    shift = np.uint64(positions)
    keys = np.empty(count, np.uint64)

    def place(begin: int) -> None:
        end = min(begin + _PART, count)
        keys[begin:end] = curve([axis[begin:end] for axis in axes], bits) << shift

    in_threads(place, range(0, count, _PART))
    keys |= np.arange(count, dtype=np.uint64)
    keys.sort()
    keys &= np.uint64((1 << positions) - 1)
    return keys.view(np.int64)
