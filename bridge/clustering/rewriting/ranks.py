"""Ranks of values among sampled quantiles: small integers of any orderable type.

Curves need numbers of equal width in every column. The bits of values would waste most of a curve
on values that do not occur, so each value is replaced by its rank among quantiles of a sample:
skewed numbers, strings and decimals fill the range alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.kernel.arrow_types import flat
from bridge.kernel.threads import Threads
from bridge.kernel.types import Kind, Type

Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
_MOST_DIGITS = 18
"""Decimals of more digits are no int64."""
SAMPLE = 100_000
"""Values of a column that are looked at to find its quantiles."""
_LOOKED_UP = 1 << 22
"""Whole numbers in a narrower range than this are ranked by a table."""
_T = TypeVar("_T")
_R = TypeVar("_R")


def in_threads(work: Callable[[_T], _R], parts: Sequence[_T]) -> list[_R]:
    """The results for all parts, in order, by as many threads as Arrow may use."""
    if len(parts) < 2 or pa.cpu_count() < 2:
        return [work(part) for part in parts]
    with Threads(pa.cpu_count(), "rank") as pool:
        return list(pool.map(work, parts))


def canonical_form(type: Type) -> pa.DataType:
    """The Arrow type of a column's canonical values and bounds."""
    if type.is_bytes:
        return pa.large_binary()
    if type.is_floating:
        return pa.float64()
    wide = type.kind is Kind.DECIMAL and type.precision > _MOST_DIGITS
    return pa.decimal128(38, type.scale) if wide else pa.int64()


def boundaries(column: pa.Array, buckets: int, sample: int = SAMPLE) -> pa.Array:
    """At most ``buckets`` ascending, distinct values that divide a sample into equal parts.

    A value that is frequent is one boundary, however frequent it is. NULL and NaN are left out.
    """
    taken = _sampled(column, max(1, len(column) // sample))
    taken = taken.drop_null()
    if pa.types.is_floating(taken.type):
        taken = taken.filter(pc.invert(pc.is_nan(taken)))
    ordered = taken.take(pc.sort_indices(taken))
    distinct = ordered.unique()
    if len(distinct) <= buckets:
        return distinct
    places = np.linspace(0, len(ordered) - 1, buckets).astype(np.int64)
    return ordered.take(pa.array(places)).unique()


def _sampled(column: pa.Array, step: int, first: int = 0) -> pa.Array:
    """Every ``step``-th value."""
    return column.take(pa.array(np.arange(first, len(column), step))) if step > 1 else column


def rank(column: pa.Array, edges: pa.Array) -> Int64:
    """The number of edges below each value. NaN ranks above all values, and NULL above NaN."""
    return _ranked(column, edges).astype(np.int64)


def _ranked(column: pa.Array, edges: pa.Array) -> UInt32:
    numbers, bounds = _numbers(column), _numbers(edges)
    if numbers is not None and bounds is not None:
        found = _below(numbers, bounds)
    else:
        coded = column.dictionary_encode()
        each = _by_sorting(coded.dictionary, edges)
        found = np.append(each, np.uint32(0))[pc.fill_null(coded.indices, len(each)).to_numpy()]
    if column.null_count:
        found[column.is_null().to_numpy(zero_copy_only=False)] = len(edges) + 1
    return found


def _numbers(array: pa.Array) -> npt.NDArray[np.generic] | None:
    """Values as numbers of the same order, anything in the place of NULL; None: there are none."""
    type = array.type
    if pa.types.is_null(type) or not len(array):
        return np.zeros(len(array), np.int64)
    if pa.types.is_decimal128(type):
        if type.precision > _MOST_DIGITS:
            return None
        words = np.frombuffer(array.buffers()[1], np.int64)
        return words[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    if pa.types.is_boolean(type):
        return np.asarray(pc.fill_null(array, False).cast(pa.uint8()))
    if pa.types.is_floating(type):
        kind: Any = {16: np.float16, 32: np.float32, 64: np.float64}[type.bit_width]
    elif pa.types.is_unsigned_integer(type):
        kind = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}[type.bit_width]
    elif pa.types.is_integer(type) or (pa.types.is_temporal(type) and type.bit_width in (32, 64)):
        kind = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}[type.bit_width]
    else:
        return None
    return np.frombuffer(
        array.buffers()[1], kind, len(array), array.offset * np.dtype(kind).itemsize
    )


def _below(numbers: npt.NDArray[np.generic], edges: npt.NDArray[np.generic]) -> UInt32:
    """How many edges are below each number; NaN is above all of them."""
    if not len(edges):
        return np.zeros(len(numbers), np.uint32)
    if numbers.dtype.kind in "iu":
        low, high = int(edges[0]), int(edges[-1])
        if high - low < min(_LOOKED_UP, 16 * len(numbers)) and high < 2**62 and low > -(2**62):
            values = np.arange(low, high + 2, dtype=np.int64)
            table = np.searchsorted(edges.astype(np.int64), values).astype(np.uint32)
            at = np.clip(numbers, low, high + 1) if _fits(numbers.dtype, low, high + 1) else None
            if at is not None:
                found: UInt32 = table[at.astype(np.int64) - low]
                return found
    return np.searchsorted(edges, numbers).astype(np.uint32)


def _fits(kind: Any, low: int, high: int) -> bool:
    limits = np.iinfo(kind)
    return limits.min <= low and high <= limits.max


def _by_sorting(values: pa.Array, edges: pa.Array) -> UInt32:
    count = len(values)
    order = pc.sort_indices(pa.concat_arrays([values, edges])).to_numpy().astype(np.int64)
    is_edge = order >= count
    below = np.cumsum(is_edge)
    found = np.empty(count, np.uint32)
    found[order[~is_edge]] = below[~is_edge]
    return found


def scaled_ranks(column: pa.Array | pa.ChunkedArray, bits: int) -> npt.NDArray[np.uint64]:
    """Ranks of a column's values, spread over all numbers of so many bits.

    A column of few values uses the whole range too, or a curve would hardly regard it.
    """
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [flat(chunk) for chunk in chunks] or [flat(column)]
    largest = (1 << bits) - 1
    step = max(1, sum(map(len, parts)) // SAMPLE)
    edges = boundaries(pa.concat_arrays([_sampled(each, step) for each in parts]), largest - 1)
    found = np.concatenate(in_threads(lambda each: _ranked(each, edges), parts))
    top = max(int(found.max(initial=0)), 1)
    scaled = np.arange(len(edges) + 2, dtype=np.uint64) * np.uint64(largest) // np.uint64(top)
    result: npt.NDArray[np.uint64] = scaled[found]
    return result
