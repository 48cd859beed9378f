"""Rows along a Hilbert curve through the ranks of two to six columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bridge.clustering.rewriting.along import order_along
from bridge.clustering.rewriting.curves import hilbert


class HilbertCurve:
    """Implements `Layout`: predicates on any of the columns prune alike."""

    name = "hilbert"
    fewest = 2
    most = 6

    def order(self, columns: pa.Table) -> npt.NDArray[np.int64] | None:
        return order_along(hilbert, columns)


LAYOUT = HilbertCurve()
