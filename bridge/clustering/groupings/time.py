"""Files in the order in which they were written."""

from __future__ import annotations

import numpy as np

from bridge.clustering.groupings.grouping import Candidates, cut


class CommitTime:
    """Implements `Grouping`."""

    name = "time"

    def groups(self, files: Candidates, most_bytes: int) -> list[list[int]]:
        order = np.argsort(files.modified, kind="stable")
        return cut(order.tolist(), files.sizes, most_bytes)


GROUPING = CommitTime()
