"""Residuals with a long list of values: each file has those within its bounds alone.

The law: a row of the file satisfies its residual exactly if it satisfies the filter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson

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
from bridge.kernel.types import INTEGER_RANGE
from bridge.table.slices import SliceBatch

_LONG = 500


@dataclass(frozen=True, slots=True)
class LongList:
    """The longest list of whole numbers in a filter.

    Attributes:
        values: in ascending order.
    """

    filter: Filter
    condition: Condition
    column: IcebergColumn
    values: list[int]

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
        there = batch.ordinals >= 0
        at = np.where(there, batch.ordinals, 0)
        values = np.array(self.values, np.int64)
        low = np.searchsorted(values, known.lower[at], "left")
        high = np.searchsorted(values, known.upper[at], "right")
        found = zip(there.tolist(), low.tolist(), high.tolist(), strict=True)
        return [(b, e) if ok else all for (ok, b, e), all in zip(found, whole, strict=True)]

    def bytes_of(self, residual: bytes) -> tuple[float, float]:
        """Of a whole residual, the bytes of one value and of all else, about."""
        each = len(repr(self.values)) / len(self.values)
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
            if column is None or column.path[0].lower() in keys:
                continue
            if _are_numbers(one.values, column):
                found = LongList(filter, one, column, [])
    return found and replace(found, values=sorted(set(found.condition.values)))


def _are_numbers(values: tuple[Any, ...], column: IcebergColumn) -> bool:
    if not column.type.is_integer or set(map(type, values)) != {int}:
        return False
    least, greatest = INTEGER_RANGE[column.type.kind]
    return bool(least <= min(values) and max(values) <= greatest)


def _with(filter: Filter, old: Condition, new: Condition) -> Filter:
    if isinstance(filter, Junction):
        return replace(filter, children=tuple(_with(c, old, new) for c in filter.children))
    return new if filter is old else filter
