"""Comparisons of all files' bounds with literals: numpy arrays, or Arrow for wide values.

The law: every comparison is False where a bound is unknown. Numpy arrays hold unknown bounds as
infinities, and NaN compares false, so only Arrow's nulls need care here.
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
from bridge.kernel.types import Value

_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_ARROW = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_MANY, _LONG, _BUCKET_BITS = 50_000, 16, 16
INT_MAX = 2**63 - 1
# All digits of decimal128, without rounding.
_DIGITS = decimal.Context(prec=76)


def compare(bounds: Bounds, sign: str, value: Value) -> Mask:
    """``bounds sign value`` for each file; False where the bound is unknown."""
    if isinstance(bounds, np.ndarray):
        mask: Mask = _NUMPY[sign](bounds, value)
        return mask
    answers = _ARROW[sign](bounds, arrow_scalar(value, bounds.type))
    return _mask(answers)


def compare_lower(column: ColumnStatistics, sign: str, value: Value) -> Mask:
    """`compare` of a column's lower bounds, by binary search if they ascend."""
    return _compare(column, column.lower, sign, value)


def compare_upper(column: ColumnStatistics, sign: str, value: Value) -> Mask:
    """`compare` of a column's upper bounds, by binary search if they ascend."""
    return _compare(column, column.upper, sign, value)


def _compare(column: ColumnStatistics, bounds: Bounds, sign: str, value: Value) -> Mask:
    if not column.ascending or not isinstance(bounds, np.ndarray):
        return compare(bounds, sign, value)
    mask = np.zeros(len(bounds), np.bool_)
    at = int(np.searchsorted(bounds, value, side="left" if sign in ("<", ">=") else "right"))
    if sign in ("<", "<="):
        mask[:at] = True
    else:
        mask[at:] = True
    return mask


def enclosing_none(column: ColumnStatistics, values: tuple[Value, ...]) -> Mask:
    """Files whose known bounds enclose none of the sorted values."""
    if column.intervals is not None:
        if column.expect is not None:
            column.expect(None)  # a search for many values touches most pages
        found = column.intervals.none_of(values)
        if found is not None:
            return found
    return between_neighbours(column.lower, column.upper, values)


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

    Checks the whole range of the values first. Searches only the remaining files.
    """
    never = compare(upper, "<", values[0])
    np.logical_or(never, compare(lower, ">", values[-1]), out=never)
    left = np.flatnonzero(np.logical_not(never))
    if len(values) == 1 or not len(left):
        return never
    if isinstance(lower, np.ndarray) and isinstance(upper, np.ndarray):
        sought = np.asarray(values, dtype=lower.dtype)
        if len(left) >= _MANY and lower.dtype == np.int64 and len(values) >= _LONG:
            near = _near(lower, upper, left, sought)
            never[left[~near]] = True
            left = left[near]
        low, high = lower[left], upper[left]
        # The least value at or above the lower bound; it exists after the range check.
        least = sought[np.minimum(np.searchsorted(sought, low, side="left"), len(sought) - 1)]
        never[left] = least > high
        return never
    assert not isinstance(lower, np.ndarray) and not isinstance(upper, np.ndarray)
    indices = pa.array(left)
    search = _sought_in_python if pa.types.is_decimal(lower.type) else _SEARCH
    never[left] = search(lower.take(indices), upper.take(indices), values)
    return never


def _near(lower: Any, upper: Any, left: Any, sought: Any) -> Mask:
    """Files that may enclose a value, by counting values in buckets instead of searching.

    A file that is not returned encloses none.
    """
    first, last = int(sought[0]), int(sought[-1])
    shift = max((last - first).bit_length() - _BUCKET_BITS, 0)
    edges = first + (np.arange(((last - first) >> shift) + 2, dtype=np.object_) << shift)
    below = np.searchsorted(sought, np.minimum(edges, INT_MAX).astype(np.int64))
    below[-1] = len(sought)  # the last edge is above all values, perhaps outside the type
    whole = len(left) == len(lower)
    low = _bucket(lower if whole else lower[left], first, last, shift)
    high = _bucket(upper if whole else upper[left], first, last, shift)
    # Number of values before the lower bound's bucket, and up to the end of the upper bound's.
    near: Mask = np.not_equal(below[low], below[high + 1])
    return near


def _bucket(bounds: Any, first: int, last: int, shift: int) -> Any:
    """The buckets of bounds. Distances are unsigned, because they may need all 64 bits."""
    inside = np.clip(bounds, first, last).view(np.uint64) - np.uint64(first % 2**64)
    return (inside >> np.uint64(shift)).astype(np.int64)


def _sought_by_arrow(lower: pa.Array, upper: pa.Array, values: tuple[Value, ...]) -> Mask:
    """For wide values: whether the least value at or above a lower bound exceeds the upper one."""
    sought = pa.array(values, lower.type)
    known = pc.and_(lower.is_valid(), upper.is_valid())
    low, high = lower.filter(known), upper.filter(known)
    first = pc.min_element_wise(
        pc.call_function("search_sorted", [sought, low]).cast(pa.int64()), len(sought) - 1
    )
    beyond = pc.greater(sought.take(first), high)
    result = np.zeros(len(lower), dtype=np.bool_)
    result[known.to_numpy(zero_copy_only=False)] = _mask(beyond)
    return result


def _sought_in_python(lower: pa.Array, upper: pa.Array, values: tuple[Value, ...]) -> Mask:
    """The same in Python: Arrow's ``search_sorted`` is recent and lacks decimals."""
    result = np.zeros(len(lower), dtype=np.bool_)
    for i, (low, high) in enumerate(zip(_canonical(lower), _canonical(upper), strict=True)):
        if low is not None and high is not None:
            place = bisect.bisect_left(values, low)
            result[i] = place == len(values) or values[place] > high
    return result


_SEARCH = _sought_by_arrow if "search_sorted" in pc.list_functions() else _sought_in_python


def _canonical(bounds: pa.Array) -> list[Any]:
    if not pa.types.is_decimal(bounds.type):
        return list(bounds.to_pylist())
    scale = bounds.type.scale
    return [None if v is None else int(v.scaleb(scale, _DIGITS)) for v in bounds.to_pylist()]


def single_value_in(column: ColumnStatistics, values: tuple[Value, ...]) -> Mask:
    """Files with a single non-null, non-NaN value that is among the sorted values.

    Only known, exact bounds prove this: a truncated bound is not a value of the file (rule 3).
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


def successor(prefix: bytes) -> bytes | None:
    """The least byte string greater than all that start with the prefix; None if there is none."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
