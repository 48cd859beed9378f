"""Rows along a Z-order curve through the ranks of two to six columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.clustering.rewriting.along import order_along
from bridge.clustering.rewriting.curves import z_order


class ZOrder:
    """Implements `Layout`: predicates on any of the columns prune alike."""

    name = "zorder"
    fewest = 2
    most = 6

    def order(self, columns: pa.Table) -> npt.NDArray[np.int64] | None:
        return order_along(z_order, columns)


LAYOUT = ZOrder()
