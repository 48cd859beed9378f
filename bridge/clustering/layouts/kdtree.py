"""Rows in the boxes of a k-d tree over the ranks of several columns, one box per file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.clustering.rewriting.ranks import scaled_ranks
from bridge.clustering.rewriting.tree import divide_rows

_BITS = 16


class KdTree:
    """Implements `Layout` and `Divides`: predicates on any of the columns prune, and those on
    several keep less than along a curve. Files end between values, where sizes allow it."""

    name = "kdtree"
    fewest = 2
    most = 16

    def order(self, columns: pa.Table) -> npt.NDArray[np.int64] | None:
        return self.divide(columns, 1)[0]

    def divide(
        self, columns: pa.Table, files: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        ranks = [scaled_ranks(column, _BITS).astype(np.uint16) for column in columns.columns]
        return divide_rows(ranks, files)


LAYOUT = KdTree()
