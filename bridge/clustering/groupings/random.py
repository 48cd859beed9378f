"""Files at random, the same ones whenever the files are the same."""

from __future__ import annotations

import hashlib

import numpy as np

from bridge.clustering.groupings.grouping import Candidates, cut


class AtRandom:
    """Implements `Grouping`."""

    name = "random"

    def groups(self, files: Candidates, most_bytes: int) -> list[list[int]]:
        drawn = [hashlib.sha256(path.encode()).digest() for path in files.paths]
        order = np.array(sorted(range(len(files)), key=drawn.__getitem__), np.int64)
        return cut(order.tolist(), files.sizes, most_bytes)


GROUPING = AtRandom()
