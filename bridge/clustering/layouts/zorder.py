"""Rows along a Z-order curve through the ranks of two to six columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.clustering.curves import z_order
from bridge.clustering.ranks import scaled_ranks

_BITS = 60
_MOST_BITS = 16


class ZOrder:
    """Implements `Layout`: predicates on any of the columns prune alike."""

    name = "zorder"
    fewest = 2
    most = 6

    def order(self, columns: pa.Table) -> npt.NDArray[np.int64] | None:
        bits = min(_MOST_BITS, _BITS // columns.num_columns)
        place = z_order([scaled_ranks(c, bits) for c in columns.columns], bits)
        return np.argsort(place, kind="stable").astype(np.int64)


LAYOUT = ZOrder()
