"""Neighbours in the order of the first sort column's least values."""

from __future__ import annotations

import numpy as np

from bridge.clustering.groupings.grouping import Candidates, cut


class KeyRange:
    """Implements `Grouping`."""

    name = "range"

    def groups(self, files: Candidates, most_bytes: int) -> list[list[int]]:
        order = np.argsort(files.low[0], kind="stable") if len(files.low) else np.arange(len(files))
        return cut(order.tolist(), files.sizes, most_bytes)


GROUPING = KeyRange()
