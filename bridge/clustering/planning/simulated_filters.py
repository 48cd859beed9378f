"""What bloom filters and value lists would let simulated files skip.

A sample tells little about a value that few rows have. So a file counts as skipped only if none of
its sampled rows has the value, and if either the sample would have found the value there, or
(nearly) every row has a value of its own. In such a column, a value that was not sampled counts as
one in a single file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bridge.clustering.planning.row_sample import SampledColumn
from bridge.expression.bounds import arrow_scalar
from bridge.expression.nodes import BoundExpression, BoundPredicate, BoundReference, Op
from bridge.index.kinds.definition import column_path
from bridge.index.kinds.evaluate_indexes import Ask, never
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.types import TRINO, Field, Value
from bridge.planner.file_pruner import KindIndex, MinMaxIndex

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
MEMBERS = frozenset({Op.EQ, Op.NULL_SAFE_EQ, Op.IN})
"""What filters and lists answer here. Lists answer more; bounds do most of that."""
_OWN = 0.9
"""From this share of distinct values on, every row counts as having a value of its own."""
_SURE = 3
"""With so many sampled rows per file, a value that is in a file was sampled there."""


@dataclass(frozen=True, slots=True)
class Filter:
    """An index that tells whether a file has a value of a column.

    Attributes:
        column: in lower case.
        most: distinct values; of a file with more it knows nothing.
    """

    column: str
    most: int


def filters_of(index: IndexSnapshot) -> tuple[Filter, ...]:
    """The filters and lists of an index that are visible and of plain columns."""
    found = []
    for opened in index.kinds:
        most = opened.kind.most_values(opened.definition)
        path = column_path(opened.definition.on)
        if most is not None and len(path) == 1:
            found.append(Filter(path[0].lower(), most))
    return tuple(found)


class IndexedFiles:
    """The files of an index, asked by bounds, filters and lists."""

    def __init__(self, index: IndexSnapshot, fields: Sequence[Field]) -> None:
        self._index = index
        self._bounds = MinMaxIndex(index, fields, TRINO)
        kinds = [k for k in index.kinds if k.kind.most_values(k.definition) is not None]
        indexes: list[MinMaxIndex | KindIndex] = [self._bounds]
        indexes += [KindIndex(kind, TRINO, index, fields) for kind in kinds]
        self._asks = [partial(_ask, each) for each in indexes] if kinds else []

    def never(self, predicate: BoundExpression) -> Mask:
        """The files that hold no matching row."""
        found = self._bounds.over_all(predicate)
        if found is None:
            found = np.zeros(self._index.num_files, np.bool_)
        return narrow(predicate, found, self._asks)


class SimulatedFilter:
    """A `Filter` over simulated files.

    Args:
        order, edges: see `SimulatedFiles`.
        rows: of the real files for which the simulated ones stand.
    """

    def __init__(
        self,
        filter: Filter,
        column: SampledColumn,
        order: Int64,
        edges: Int64,
        rows: npt.NDArray[np.float64],
    ) -> None:
        self._name, self._column = filter.column, column
        files, values = len(edges) - 1, max(len(column.distinct), 1)
        rank, file = column.rank[order], np.repeat(np.arange(files), np.diff(edges))
        self._rank, self._file = rank[rank >= 0], file[rank >= 0]
        self._counts = np.bincount(self._rank, minlength=values)
        self._own = len(column.distinct) >= _OWN * max(len(self._rank), 1)
        held = np.bincount(np.unique(self._file * values + self._rank) // values, minlength=files)
        sampled = np.bincount(self._file, minlength=files)
        repeated = 2 * held <= sampled  # then most values were seen
        real = np.where(repeated, held, held * np.maximum(rows / np.diff(edges), 1))
        self._knows = real <= filter.most

    def never(self, expression: BoundExpression, files: Int64) -> Mask | None:
        """The files that it would skip; None: it does not know."""
        if not isinstance(expression, BoundPredicate) or expression.op not in MEMBERS:
            return None
        reference = expression.reference
        if not isinstance(reference, BoundReference) or reference.type != self._column.type:
            return None
        if tuple(name.lower() for name in reference.path) != (self._name,):
            return None
        places = [self._place(value) for value in expression.values]
        found = [place for place in places if place >= 0]
        counts = [int(self._counts[place]) for place in found] + [0] * (len(places) - len(found))
        if not self._own and min(counts) < _SURE * len(files):
            return None
        holding = np.zeros(len(self._knows), np.bool_)
        holding[self._file[np.isin(self._rank, found)]] = True
        skipped = self._knows[files] & ~holding[files]
        free = np.flatnonzero(skipped)
        unseen = min(len(places) - len(found), len(free))
        skipped[free[np.linspace(0, len(free) - 1, unseen).astype(int)]] = False
        return skipped

    def _place(self, value: Value) -> int:
        distinct = self._column.distinct
        if isinstance(value, bool):
            value = int(value)
        sought = pa.array([arrow_scalar(value, distinct.type).as_py()], distinct.type)
        return int(pc.fill_null(pc.index_in(sought, distinct), -1)[0].as_py())


def narrow(predicate: BoundExpression, found: Mask, asks: Sequence[Ask]) -> Mask:
    """Files that bounds or other indexes prove to hold no matching row.

    Args:
        found: those that bounds prove.
        asks: bounds first; empty: there are no other indexes.
    """
    left = np.flatnonzero(~found) if asks else np.empty(0, np.int64)
    if not len(left):
        return found
    result = found.copy()
    result[left] = never(predicate, left, asks)
    return result


def _ask(
    index: MinMaxIndex | KindIndex, expression: BoundExpression, ordinals: Int64
) -> Mask | None:
    return index.never(expression, ordinals) if index.concerns(expression) else None
