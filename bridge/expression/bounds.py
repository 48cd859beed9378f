"""Comparisons of bounds with literals over all files: numpy arrays, or Arrow where values are wide.

The law: where a bound is unknown the answer is False, whatever the question. Unknown bounds of a
numpy array are infinite and NaN compares false, so only Arrow's nulls need care.
"""

from __future__ import annotations

import bisect
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.statistics import Bounds, ColumnStatistics, Mask
from bridge.types import Value

_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_ARROW = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
# All digits of decimal128, without rounding.
_DIGITS = decimal.Context(prec=76)


def compare(bounds: Bounds, sign: str, value: Value) -> Mask:
    """``bounds sign value`` for each file, False where the bound is unknown."""
    if isinstance(bounds, np.ndarray):
        mask: Mask = _NUMPY[sign](bounds, value)
        return mask
    answers = _ARROW[sign](bounds, arrow_scalar(value, bounds.type))
    return _mask(answers)


def _mask(answers: pa.Array) -> Mask:
    filled = pc.fill_null(answers, False) if answers.null_count else answers
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.bool_)


def arrow_scalar(value: Value, type: pa.DataType) -> pa.Scalar:
    """A canonical value as a scalar of a bound's Arrow type."""
    if pa.types.is_decimal(type):
        assert isinstance(value, int)
        return pa.scalar(decimal.Decimal(value).scaleb(-type.scale, _DIGITS), type)
    return pa.scalar(value, type)


def between_neighbours(lower: Bounds, upper: Bounds, values: tuple[Value, ...]) -> Mask:
    """Files whose known bounds enclose none of the sorted values.

    Whole range first; only files that it leaves are searched for the values one by one.
    """
    never = compare(upper, "<", values[0])
    np.logical_or(never, compare(lower, ">", values[-1]), out=never)
    left = np.flatnonzero(np.logical_not(never))
    if len(values) == 1 or not len(left):
        return never
    if isinstance(lower, np.ndarray) and isinstance(upper, np.ndarray):
        low, high = lower[left], upper[left]
        sought = np.asarray(values, dtype=lower.dtype)
        # The least value at or above the lower bound; the range check left one.
        least = sought[np.minimum(np.searchsorted(sought, low, side="left"), len(sought) - 1)]
        never[left] = (least > high) & (low <= high)
        return never
    # Per file in Python: wide values only, and only files within the whole range.
    indices = pa.array(left)
    for i, low, high in zip(
        left, _canonical(lower.take(indices)), _canonical(upper.take(indices)), strict=True
    ):
        if low is None or high is None or low > high:
            continue  # one known bound was already used
        place = bisect.bisect_left(values, low)
        never[i] = place == len(values) or values[place] > high
    return never


def _canonical(bounds: pa.Array) -> list[Any]:
    if not pa.types.is_decimal(bounds.type):
        return list(bounds.to_pylist())
    scale = bounds.type.scale
    return [None if v is None else int(v.scaleb(scale, _DIGITS)) for v in bounds.to_pylist()]


def single_value_in(column: ColumnStatistics, values: tuple[Value, ...]) -> Mask:
    """Files whose one and only non-null, non-NaN value is among the sorted values.

    Only exact and known bounds say so: a truncated one is no value of the file (rule 3).
    """
    lower, upper = column.lower, column.upper
    if isinstance(lower, np.ndarray):
        same: Mask = np.equal(lower, upper)
    else:
        same = _mask(pc.equal(lower, upper))
    for known in (column.lower_known, column.upper_known, column.exact):
        if known is not None:
            same = np.logical_and(same, known)
    left = np.flatnonzero(same)
    if not len(left):
        return same
    if isinstance(lower, np.ndarray):
        same[left] = np.isin(lower[left], np.asarray(values, dtype=lower.dtype))
    else:
        found = set(values)
        same[left] = [v in found for v in _canonical(lower.take(pa.array(left)))]
    return same


def holds_one_of(column: ColumnStatistics, values: tuple[Value, ...]) -> Mask:
    """Files that may hold one of the sorted values, by their bounds."""
    return np.logical_not(between_neighbours(column.lower, column.upper, values))
