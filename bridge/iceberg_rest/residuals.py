"""Residuals with a long list of values: each file has those within its bounds alone.

The law: a row of the file satisfies its residual exactly if it satisfies the filter.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from bridge.expression.nodes import BoundReference
from bridge.iceberg_rest.expressions import (
    SEMANTICS,
    Condition,
    Filter,
    IcebergColumn,
    Junction,
)
from bridge.iceberg_rest.layout import IcebergLayout
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.types import Kind
from bridge.table.slices import SliceBatch

_LONG = 500


@dataclass(frozen=True, slots=True)
class LongList:
    """The longest list of whole numbers or texts in a filter.

    Attributes:
        values: as the client spells them, in ascending order.
        keys: the same as bounds have them.
    """

    filter: Filter
    condition: Condition
    column: IcebergColumn
    values: list[Any]
    keys: list[Any]

    def places(self, batch: SliceBatch) -> list[tuple[int, int]]:
        """Of each file the first value within its bounds, and that after the last one."""
        whole = [(0, len(self.values))] * len(batch)
        index = batch.index
        if not isinstance(index, IndexSnapshot) or not index.num_files:
            return whole
        reference = BoundReference(self.column.path, self.column.type)
        known = index.statistics((), SEMANTICS).column(reference)
        if known is None:
            return whole
        at = np.where(batch.ordinals >= 0, batch.ordinals, 0)
        bounds = zip(
            batch.ordinals.tolist(), _bounds(known.lower, at), _bounds(known.upper, at), strict=True
        )
        return [
            all if i < 0 else self._within(low, high)
            for (i, low, high), all in zip(bounds, whole, strict=True)
        ]

    def _within(self, low: Any, high: Any) -> tuple[int, int]:
        begin = 0 if low is None else bisect_left(self.keys, low)
        return begin, len(self.keys) if high is None else bisect_right(self.keys, high)

    def bytes_of(self, residual: bytes) -> tuple[float, float]:
        """Of a whole residual, the bytes of one value and of all else, about."""
        each = len(repr(self.values)) / len(self.values)  # and a separator
        return each, max(0.0, len(residual) - each * len(self.condition.values))

    def spell(self, spell: Callable[[Filter], bytes], begin: int, end: int) -> orjson.Fragment:
        """The filter with some of the values; with one, if there are none."""
        begin = min(begin, len(self.values) - 1)
        some = self.values[begin : max(end, begin + 1)]
        told = self.condition
        node = {"type": told.op, "term": told.term, "values": some}
        part = replace(told, values=tuple(some), node=node, negated=False)
        return orjson.Fragment(spell(_with(self.filter, told, part)))


def longest_list(filter: Filter, layout: IcebergLayout) -> LongList | None:
    """The list by which residuals differ, if there is a long one.

    Not one of a key: bounds of its name would be those of a column that clients do not read.
    """
    keys = {key.name.lower() for key in layout.table.partition_keys}
    found: LongList | None = None
    pending = [filter]
    while pending:
        one = pending.pop()
        if isinstance(one, Junction):
            pending.extend(one.children)
        elif isinstance(one, Condition) and one.op in ("in", "not-in"):
            least = _LONG if found is None else len(found.condition.values) + 1
            column = layout.resolve(one.term) if len(one.values) >= least else None
            if column is not None and column.path[0].lower() not in keys:
                found = _list(filter, one, column) or found
    return found


def _list(filter: Filter, condition: Condition, column: IcebergColumn) -> LongList | None:
    values = condition.values
    kinds = set(map(type, values))
    spelled: Sequence[Any] = values
    if column.type.kind is Kind.STRING and kinds == {str}:
        spelled = [value.encode("utf-8", "surrogatepass") for value in values]
    elif not (column.type.is_integer and kinds == {int}):
        return None
    pairs = sorted(dict(zip(spelled, values, strict=True)).items())
    return LongList(filter, condition, column, [v for _, v in pairs], [key for key, _ in pairs])


def _bounds(bounds: Any, at: Any) -> list[Any]:
    """Of some files; None in Arrow's, and the least or greatest number, where unknown."""
    found: list[Any] = (
        bounds.take(at).to_pylist() if isinstance(bounds, pa.Array) else bounds[at].tolist()
    )
    return found


def _with(filter: Filter, old: Condition, new: Condition) -> Filter:
    if isinstance(filter, Junction):
        return replace(filter, children=tuple(_with(c, old, new) for c in filter.children))
    return new if filter is old else filter
