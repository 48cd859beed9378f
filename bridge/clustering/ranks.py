"""Ranks of values among sampled quantiles: small integers of any orderable type.

Curves need numbers of equal width in every column. The bits of values would waste most of a curve
on values that do not occur, so each value is replaced by its rank among quantiles of a sample:
skewed numbers, strings and decimals fill the range alike.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.types import Kind, Type

Int64 = npt.NDArray[np.int64]
_MOST_DIGITS = 18
"""Decimals of more digits are no int64."""
SAMPLE = 100_000
"""Values of a column that are looked at to find its quantiles."""


def canonical_form(type: Type) -> pa.DataType:
    """The Arrow type of a column's canonical values and bounds."""
    if type.is_bytes:
        return pa.large_binary()
    if type.is_floating:
        return pa.float64()
    wide = type.kind is Kind.DECIMAL and type.precision > _MOST_DIGITS
    return pa.decimal128(38, type.scale) if wide else pa.int64()


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array that can be sorted: without chunks, dictionaries and 32-bit offsets."""
    type = column.type
    if pa.types.is_dictionary(type):
        column, type = column.cast(type.value_type), type.value_type
    if pa.types.is_string(type):
        column = column.cast(pa.large_string())
    elif pa.types.is_binary(type) or pa.types.is_fixed_size_binary(type):
        column = column.cast(pa.large_binary())
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def boundaries(column: pa.Array, buckets: int, sample: int = SAMPLE) -> pa.Array:
    """At most ``buckets`` ascending, distinct values that divide a sample into equal parts.

    A value that is frequent is one boundary, however frequent it is. NULL and NaN are left out.
    """
    step = max(1, len(column) // sample)
    taken = column.take(pa.array(np.arange(0, len(column), step))) if step > 1 else column
    taken = taken.drop_null()
    if pa.types.is_floating(taken.type):
        taken = taken.filter(pc.invert(pc.is_nan(taken)))
    ordered = taken.take(pc.sort_indices(taken))
    distinct = ordered.unique()
    if len(distinct) <= buckets:
        return distinct
    places = np.linspace(0, len(ordered) - 1, buckets).astype(np.int64)
    return ordered.take(pa.array(places)).unique()


def rank(column: pa.Array, edges: pa.Array) -> Int64:
    """The number of edges below each value. NaN ranks above all values, and NULL above NaN."""
    count = len(column)
    order = pc.sort_indices(pa.concat_arrays([column, edges])).to_numpy().astype(np.int64)
    is_edge = order >= count
    below = np.cumsum(is_edge)
    found = np.empty(count, np.int64)
    found[order[~is_edge]] = below[~is_edge]
    if column.null_count:
        found[column.is_null().to_numpy(zero_copy_only=False)] = len(edges) + 1
    return found


def scaled_ranks(column: pa.Array | pa.ChunkedArray, bits: int) -> npt.NDArray[np.uint64]:
    """Ranks of a column's values, spread over all numbers of so many bits.

    A column of few values uses the whole range too, or a curve would hardly regard it.
    """
    values = flat(column)
    largest = (1 << bits) - 1
    edges = boundaries(values, largest - 1)
    found = rank(values, edges)
    top = max(int(found.max(initial=0)), 1)
    return (found * largest // top).astype(np.uint64)
