"""Computes bounds and NaN counts of a leaf from its values, where the footer lacks them."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.formats.physical_column import PhysicalType
from bridge.formats.statistics import COUNTED, SEEN, LeafStatistics


class LeafValues(Protocol):
    """Values of some rows of a file, by leaf number."""

    def __getitem__(self, leaf: int, /) -> pa.ChunkedArray: ...


class LeafScan:
    """Counts NaN in a float leaf, or computes missing bounds, in place.

    The bounds are values of the file, so they are exact. Leaves below lists, INT96, and types that
    Arrow orders differently are skipped.

    Args:
        groups: rows of each row group; none: where NULLs lie is not sought.
    """

    def __init__(self, number: int, leaf: LeafStatistics, groups: Sequence[int] = ()) -> None:
        self.leaves = (number,)
        self._leaf = leaf
        self._nulls = self._nans = 0
        self._bounds: tuple[Any, Any] | None = None
        self._ends = np.cumsum(groups, dtype=np.int64)
        self._rows = 0
        self._places: dict[int, tuple[int, int]] = {}  # first and last NULL of each row group

    def update(self, arrays: LeafValues) -> None:
        values = arrays[self.leaves[0]]
        self._nulls += values.null_count
        if len(self._ends) and values.null_count:
            self._place(np.flatnonzero(values.is_null().to_numpy()) + self._rows)
        self._rows += len(values)
        if self._leaf.column.type.is_floating:
            numbers = values.drop_null().to_numpy()
            nan = np.isnan(numbers)
            count = int(np.count_nonzero(nan))
            self._nans += count
            if count:
                numbers = numbers[~nan]
            if len(numbers):
                self._widen(float(numbers.min()), float(numbers.max()))
        elif values.null_count < len(values):
            comparable = _comparable(values, self._leaf.column.type)
            if comparable is not None:
                bounds = pc.min_max(comparable).as_py()
                self._widen(bounds["min"], bounds["max"])

    def _place(self, nulls: npt.NDArray[np.int64]) -> None:
        of = np.searchsorted(self._ends, nulls, "right")
        found, first = np.unique(of, return_index=True)
        last = np.append(first[1:], len(nulls)) - 1
        for group, low, high in zip(found.tolist(), nulls[first], nulls[last], strict=True):
            begin, _ = self._places.get(group, (int(low), 0))
            self._places[group] = begin, int(high)

    def _widen(self, low: Any, high: Any) -> None:
        held = self._bounds or (low, high)
        self._bounds = min(held[0], low), max(held[1], high)

    def finish(self) -> tuple[()]:
        leaf = self._leaf
        leaf.nulls, leaf.basis = self._nulls, leaf.basis | COUNTED
        spans = [high - low + 1 for low, high in self._places.values()]
        leaf.null_span, leaf.null_groups = max(spans, default=0), len(spans)
        if leaf.column.type.is_floating:
            leaf.nans = self._nans
        if self._bounds is not None:
            leaf.lower, leaf.upper, leaf.exact = *self._bounds, True
            leaf.basis = COUNTED | SEEN
        return ()


def _comparable(values: pa.ChunkedArray, stored: PhysicalType) -> Any:
    """Values in a comparable type; None if the file's Arrow schema made Arrow read another type."""
    held = values.type
    if stored.logical in ("string", "binary"):
        return values.cast(pa.large_binary())
    if stored.logical == "date":
        return values.cast(pa.int32()) if pa.types.is_date32(held) else None
    if stored.logical == "int" and stored.width <= (32 if stored.physical == "INT32" else 64):
        return values if pa.types.is_signed_integer(held) else None
    if stored.logical == "bool":
        return values if pa.types.is_boolean(held) else None
    return values  # readers of other formats return comparable values


def unscaled_digits(value: Decimal, scale: int) -> int:
    """The digits of a decimal at a scale, exactly.

    >>> unscaled_digits(Decimal("-1.5"), 2)
    -150
    """
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole: int = int("".join(map(str, digits))) * 10 ** (exponent + scale)
    return -whole if sign else whole
