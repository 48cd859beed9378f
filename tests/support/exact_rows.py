"""Rows that can be compared bit by bit: NaN equals NaN, and 0.0 is not -0.0."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any

import pyarrow as pa


def exact_rows(table: pa.Table) -> list[str]:
    """The rows as sorted texts; equal if and only if the tables hold the same rows."""
    columns = [
        [value for chunk in column.chunks for value in _values(chunk)] for column in table.columns
    ]
    if not columns:
        return [""] * table.num_rows
    return sorted(map(repr, zip(*columns, strict=True)))


def _values(array: pa.Array) -> list[Any]:
    kind = array.type
    if pa.types.is_timestamp(kind):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_date(kind):
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_floating(kind):
        return [None if v is None else struct.pack("<d", v).hex() for v in array.to_pylist()]
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(kind):
        fields = [_values(array.field(i)) for i in range(kind.num_fields)]
        rows = zip(*fields, strict=True) if fields else [()] * len(array)
        return [row if known else None for row, known in zip(rows, valid, strict=True)]
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        bounds = array.offsets.to_pylist()
        inner = _values(array.values if pa.types.is_list(kind) else _entries(array))
        return [
            inner[begin:end] if known else None
            for (begin, end), known in zip(pairwise(bounds), valid, strict=True)
        ]
    return list(array.to_pylist())


def _entries(array: Any) -> pa.Array:
    return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
