"""Bounds rounded to 65,536 cells: two bytes per bound decide most of a million files.

Cell edges are quantiles of the bounds, so all cells hold about the same number of bounds. A value's
cell is the number of edges at or below it. Cells keep the order of values:

    cell(upper) < cell(v)   proves   upper < v
    cell(upper) = cell(v)   proves nothing: these few files are compared exactly

The law: every file that `QuantisedBounds.never` reports as sure is NEVER by the exact comparison,
and every file that is NEVER by the exact comparison is reported as sure or doubtful. The idea is
the vector approximation file (Weber, Schek, Blott: A quantitative analysis and performance study
for similarity-search methods in high-dimensional spaces, VLDB 1998).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.expression.bounds import successor
from bridge.expression.nodes import Op
from bridge.expression.statistics import Bounds, Mask, Places
from bridge.kernel.types import Value

Small = npt.NDArray[np.uint16]
CELLS = 1 << 16
_SAMPLE = 1 << 18
FEWEST_EDGES = 16
_WORD = 8
_MANY, _SLOT_BITS = 50_000, 20
_SLOTS = 1 << _SLOT_BITS
_GREATEST = 2**64 - 1
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True, eq=False)
class QuantisedBounds:
    """The cells of one column's bounds in all files.

    Attributes:
        lower, upper: each file's cells. Unknown bounds are in the first and the last cell.
        edges: ascending; int64, float64, or uint64 for text, see `prefix`.
        prefix: for text, the common prefix of all bounds. Edges are the eight bytes after it.
    """

    lower: Small
    upper: Small
    edges: npt.NDArray[Any]
    prefix: bytes | None = None

    @classmethod
    def of(
        cls, lower: Bounds, upper: Bounds, most: int = CELLS, fewest: int = FEWEST_EDGES
    ) -> QuantisedBounds | None:
        """Quantises bounds; None if too few bounds differ or the type is not supported.

        Args:
            lower, upper: as in `ColumnStatistics`: int64, float64, or Arrow binary.
            most: greatest number of cells.
            fewest: least number of edges. With fewer, a value shares its cell with too many files.
        """
        prefix: bytes | None = None
        if not isinstance(lower, np.ndarray):
            if not pa.types.is_binary(lower.type) and not pa.types.is_large_binary(lower.type):
                return None
            prefix = _common(lower, upper)
            lower, upper = _words(lower, prefix, 0), _words(upper, prefix, _GREATEST)
        elif lower.dtype == np.float64:  # NaN is not a bound
            lower = np.where(np.isnan(lower), -np.inf, lower)
            upper = np.where(np.isnan(upper), np.inf, upper)
        step = max(1, 2 * len(lower) // _SAMPLE)
        sample = np.sort(np.concatenate([lower[::step], upper[::step]]))
        if not len(sample):
            return None
        edges = np.unique(sample[np.arange(1, most) * len(sample) // most])
        if len(edges) < min(fewest, most - 1):
            return None
        return cls(_many_cells(edges, lower), _many_cells(edges, upper), edges, prefix)

    def never(
        self, op: Op, values: tuple[Value, ...], at: Places | None = None
    ) -> tuple[Mask, Mask] | None:
        """Files without a value that satisfies a comparison: the sure ones and the doubtful ones.

        Args:
            values: sorted, as in `BoundPredicate`.
            at: the positions of the files; None: all files.

        Returns:
            Two masks with one slot per file; None for operators and values that cells cannot
            decide.
        """
        sought = self._cells_of(op, values)
        if sought is None:
            return None
        first, last = int(sought[0]), int(sought[-1])  # numpy integers would widen the arrays
        if op in (Op.LT, Op.LE):
            low = self.lower if at is None else self.lower[at]
            return low > first, low == first
        high = self.upper if at is None else self.upper[at]
        if op in (Op.GT, Op.GE):
            return high < first, high == first
        low = self.lower if at is None else self.lower[at]
        if op in (Op.NE, Op.NOT_IN):  # NEVER if the file's only value is one of these
            doubt = low == high
            doubt &= low == first if first == last else _table(sought)[low]
            return np.zeros(len(low), np.bool_), doubt
        if op is Op.IN:
            return _in_list(low, high, sought)
        never = high < first
        never |= low > last
        doubt = (high == first) | (low == last)
        doubt &= ~never
        return never, doubt

    def _cells_of(self, op: Op, values: tuple[Value, ...]) -> Places | None:
        """The cells of the values; None if cells cannot decide the comparison."""
        if op not in _OPERATORS:
            return None
        if self.prefix is not None:
            texts = [value for value in values if isinstance(value, bytes)]
            if len(texts) < len(values):
                return None
            if op is Op.STARTS_WITH:
                after = successor(texts[0])
                texts += [] if after is None else [after]
            words = np.array([_word(text, self.prefix) for text in texts], np.uint64)
            sought = _cells(self.edges, words).astype(np.int64)
            if op is Op.STARTS_WITH and len(texts) == 1:
                return np.append(sought, CELLS)  # no value follows the prefix
            return sought
        if op is Op.STARTS_WITH:
            return None
        if self.edges.dtype == np.int64:
            if values[0] not in _INT64 or values[-1] not in _INT64:
                return None
        elif any(value != value for value in values):
            return None
        return _cells(self.edges, np.asarray(values, self.edges.dtype)).astype(np.int64)


_OPERATORS = frozenset(
    (Op.EQ, Op.NULL_SAFE_EQ, Op.NE, Op.IN, Op.NOT_IN, Op.LT, Op.LE, Op.GT, Op.GE, Op.STARTS_WITH)
)


def _table(sought: Places) -> Mask:
    """A table by cell: whether the cell is one of these."""
    table = np.zeros(CELLS, np.bool_)
    table[sought] = True
    return table


def _in_list(low: Small, high: Small, sought: Places) -> tuple[Mask, Mask]:
    """Decides an IN list by counts of values in the cells before and between the bounds."""
    if len(low) < CELLS:
        never = sought.searchsorted(high, side="right") <= sought.searchsorted(low)
        inside = sought.searchsorted(high) > sought.searchsorted(low, side="right")
        return never, ~(never | inside)
    before = np.searchsorted(sought, np.arange(CELLS + 1)).astype(np.int32)
    below, upto = before[:-1], before[1:]
    never = upto[high] <= below[low]
    inside = below[high] > upto[low]
    return never, ~(never | inside)


def _cells(edges: npt.NDArray[Any], values: npt.NDArray[Any]) -> Small:
    return edges.searchsorted(values, side="right").astype(np.uint16)


def _many_cells(edges: npt.NDArray[Any], values: npt.NDArray[Any]) -> Small:
    """`_cells` of many values. A slot of equal width gives the cell unless an edge is in it."""
    begin, end = edges[len(edges) // 64], edges[-1 - len(edges) // 64]  # the ends may be infinite
    slots = _slots(edges, begin, end)
    if len(values) < _MANY or slots is None:
        return _cells(edges, values)
    before = np.searchsorted(slots, np.arange(_SLOTS)).astype(np.uint16)
    cut = np.zeros(_SLOTS, np.bool_)
    cut[slots] = True
    mine = _slots(values, begin, end)
    found = before[mine]
    rest = np.flatnonzero(cut[mine])
    found[rest] = _cells(edges, values[rest])
    return found


def _slots(values: npt.NDArray[Any], begin: Any, end: Any) -> Places | None:
    """The slot of each value, in value order; None if the range is empty."""
    if not begin < end:
        return None
    inside = np.clip(values, begin, end)
    if values.dtype == np.float64:
        scale = (_SLOTS - 1) / (float(end) - float(begin))
        if not 0 < scale < np.inf:
            return None
        return np.asarray((inside - begin) * scale, np.int64)
    width = int(end) - int(begin)
    shift = np.uint64(max(0, (width >> _SLOT_BITS).bit_length()))
    apart = inside.view(np.uint64) - np.uint64(int(begin) % 2**64)  # unsigned, to avoid overflow
    return np.asarray(apart >> shift, np.int64)


def _common(lower: pa.Array, upper: pa.Array) -> bytes:
    """The common prefix of all bounds."""
    ends = [pc.min_max(bounds).as_py() for bounds in (lower, upper)]
    texts = [text for end in ends for text in end.values() if text is not None]
    if not texts:
        return b""
    first, last = min(texts), max(texts)
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return bytes(first[: sum(1 for _ in same)])


def _word(text: bytes, prefix: bytes) -> int:
    """Maps text with the prefix to a number, keeping order."""
    if not text.startswith(prefix):
        return 0 if text < prefix else _GREATEST
    return int.from_bytes(text[len(prefix) : len(prefix) + _WORD].ljust(_WORD, b"\0"), "big")


def _words(texts: pa.Array, prefix: bytes, unknown: int) -> npt.NDArray[np.uint64]:
    """`_word` of many texts with the prefix; ``unknown`` for null."""
    texts = texts.cast(pa.large_binary())
    _, starts, data = texts.buffers()
    offsets = np.frombuffer(starts, np.int64, len(texts) + 1, texts.offset * 8)
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    found = np.zeros(len(texts), np.uint64)
    if len(raw):
        begins, ends = offsets[:-1] + len(prefix), offsets[1:]
        for place in range(_WORD):
            at = begins + place
            byte = np.where(at < ends, raw[np.minimum(at, len(raw) - 1)], 0).astype(np.uint64)
            found = (found << np.uint64(8)) | byte
    if texts.null_count:
        found[~texts.is_valid().to_numpy(zero_copy_only=False)] = unknown
    return found
