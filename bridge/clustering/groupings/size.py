"""The smallest files first, since merging them saves most."""

from __future__ import annotations

import numpy as np

from bridge.clustering.groupings.grouping import Candidates, cut


class BySize:
    """Implements `Grouping`."""

    name = "size"

    def groups(self, files: Candidates, most_bytes: int) -> list[list[int]]:
        order = np.argsort(files.sizes, kind="stable")
        return cut(order.tolist(), files.sizes, most_bytes)


GROUPING = BySize()
