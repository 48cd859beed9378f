"""Rows divided among files by a k-d tree: each split halves the files of a box of values.

A curve passes through boxes that its files then cut anywhere. A tree cuts where files end: at the
value of one column that brings the boxes of both halves down most. So a column of few values is
divided between its values, and columns that rise together are not divided twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.clustering.rewriting.ranks import in_threads

Int64 = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]
_ASKED = 0.75
"""The chance that a predicate names a column. With all of them certain, predicates on one column
would keep more than along a curve."""
_RANGE = 0.1
"""Share of the rows that a range is taken to hold."""
_FEW = 32
"""A column of fewer values is asked for one of them."""
_SLACK = 0.2
"""By so much of the mean a file may be larger or smaller, to end between two values."""
_SAMPLE = 4096
"""Rows of a box that are looked at to choose the column."""
_PIECES = 8
"""Boxes in a file: its row groups skip, too."""
_PIECE = 8192
"""Rows of a box that is not divided any more."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A way to divide a box: how many files the lower part gets, and the price of both parts."""

    column: int
    files: int
    price: float


class _Tree:
    """Args: ranks: of the rows, one array per column."""

    def __init__(self, ranks: Sequence[Ranks]) -> None:
        self._ranks = ranks
        self._ends: list[Floats] = []
        self._widths = np.zeros(len(ranks))
        for i, counts in enumerate(in_threads(np.bincount, list(ranks))):
            ends = np.concatenate(([0], np.cumsum(counts))) / max(len(ranks[i]), 1)
            self._ends.append(ends)
            self._widths[i] = _RANGE if np.count_nonzero(counts) >= _FEW else 0.0

    def divide(self, rows: Int64, files: int, mean: float, threads: int) -> list[Int64]:
        """The rows of each file, in order."""
        if files == 1:
            return [self._inside(rows)]
        if len(rows) <= files:
            return np.array_split(rows, files)
        cut = self._best(rows, files, mean)
        parts = self._cut(rows, cut, files, mean)
        each = [(parts[0], cut.files), (parts[1], files - cut.files)]
        if threads > 1:
            halves = in_threads(lambda p: self.divide(p[0], p[1], mean, threads // 2), each)
        else:
            halves = [self.divide(part, count, mean, 1) for part, count in each]
        return halves[0] + halves[1]

    def _inside(self, rows: Int64) -> Int64:
        """The rows of one file: small boxes one after another, each sorted by its widest column."""
        pieces = min(_PIECES, len(rows) // _PIECE)
        return np.concatenate(list(self._pieces(rows, pieces)) or [rows])

    def _pieces(self, rows: Int64, pieces: int) -> Iterator[Int64]:
        if pieces > 1:
            mean = len(rows) / pieces
            cut = self._best(rows, pieces, mean)
            low, high = self._cut(rows, cut, pieces, mean)
            yield from self._pieces(low, cut.files)
            yield from self._pieces(high, pieces - cut.files)
        elif len(rows):
            widest = int(np.argmax(self._extents(self._seen(rows))))
            yield rows[np.argsort(self._ranks[widest][rows], kind="stable")]

    def _seen(self, rows: Int64) -> list[Ranks]:
        some = rows[:: max(1, len(rows) // _SAMPLE)]
        return [ranks[some] for ranks in self._ranks]

    def _extents(self, seen: Sequence[Ranks]) -> Floats:
        """The share of all rows whose value lies between the least and greatest of each column."""
        return np.array(
            [
                ends[int(ranks.max()) + 1] - ends[int(ranks.min())]
                for ends, ranks in zip(self._ends, seen, strict=True)
            ]
        )

    def _price(self, seen: Sequence[Ranks]) -> float:
        """Rows times the chance that a predicate reads their file."""
        read = 1 - _ASKED + _ASKED * (self._extents(seen) + self._widths)
        return len(seen[0]) * float(np.prod(read))

    def _best(self, rows: Int64, files: int, mean: float) -> _Cut:
        seen = self._seen(rows)
        scale = len(rows) / len(seen[0])
        found = [self._cheapest(seen, i, files, mean / scale) for i in range(len(seen))]
        return min(found, key=lambda cut: cut.price)

    def _cheapest(self, seen: Sequence[Ranks], column: int, files: int, mean: float) -> _Cut:
        """The cut of one column that divides the files most evenly between two values."""
        order = np.argsort(seen[column], kind="stable")
        ordered = seen[column][order]
        count = len(order)
        bounds = np.flatnonzero(np.diff(ordered)) + 1
        near, half = _nearest(bounds, files, count, mean)
        at = near if near else round(count * half / files)
        at = min(max(at, 1), count - 1)
        low, high = order[:at], order[at:]
        price = self._price([r[low] for r in seen]) + self._price([r[high] for r in seen])
        return _Cut(column, half, price)

    def _cut(self, rows: Int64, cut: _Cut, files: int, mean: float) -> tuple[Int64, Int64]:
        """Divides a box: between two values if the files' sizes allow it."""
        ranks = self._ranks[cut.column][rows]
        below = np.cumsum(np.bincount(ranks))
        wanted = len(rows) * cut.files / files
        value = int(np.searchsorted(below, wanted))
        bounds = [value - 1, value] if value else [value]
        bound = min(bounds, key=lambda v: abs(float(below[v]) - wanted))
        if _fits(int(below[bound]), cut.files, len(rows), files, mean):
            under = ranks <= bound
            return rows[under], rows[~under]
        # One value is in most of the rows: it is divided by another column.
        under, here = ranks < value, np.flatnonzero(ranks == value)
        missing = round(wanted) - (int(below[value - 1]) if value else 0)
        if len(self._ranks) > 1:
            extents = self._extents(self._seen(rows[here]))
            extents[cut.column] = 0
            other = self._ranks[int(np.argmax(extents))][rows[here]]
            here = here[np.argsort(other, kind="stable")]
        under[here[:missing]] = True
        return rows[under], rows[~under]


def _fits(below: int, low: int, count: int, files: int, mean: float) -> bool:
    """Whether the files of both parts would be near the mean size."""
    sizes = (below / low, (count - below) / (files - low))
    return min(sizes) >= mean * (1 - _SLACK) and max(sizes) <= mean * (1 + _SLACK)


def _nearest(bounds: Int64, files: int, count: int, mean: float) -> tuple[int, int]:
    """The bound nearest to the middle that fits, and the files below it.

    Returns:
        0 and half of the files if none fits.
    """
    half = files // 2
    for at in bounds[np.argsort(np.abs(bounds - count * half / files), kind="stable")].tolist():
        low = min(max(round(files * at / count), 1), files - 1)
        if _fits(at, low, count, files, mean):
            return at, low
    return 0, half


def divide_rows(ranks: Sequence[Ranks], files: int) -> tuple[Int64, Int64]:
    """The rows in their new order, and where each file begins in it, with the number of rows.

    Args:
        ranks: of the rows, one array per column, all of one length.
    """
    count = len(ranks[0])
    tree = _Tree(ranks)
    rows = np.arange(count, dtype=np.int64)
    parts = tree.divide(rows, files, max(count / files, 1), pa.cpu_count())
    edges = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return np.concatenate(parts), edges
