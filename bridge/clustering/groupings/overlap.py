"""Files whose values of the sort columns overlap, directly or through other files."""

from __future__ import annotations

import numpy as np

from bridge.clustering.groupings.grouping import Candidates, cut


class Overlap:
    """Implements `Grouping`. A file that overlaps no other one is left alone: no rewrite would let
    a predicate on the sort columns skip more of it."""

    name = "overlap"

    def groups(self, files: Candidates, most_bytes: int) -> list[list[int]]:
        if not len(files.low):
            return cut(range(len(files)), files.sizes, most_bytes)
        number = np.full(len(files), -1, np.int64)
        found: list[list[int]] = []
        for first in np.argsort(files.low[0], kind="stable").tolist():
            if number[first] >= 0:
                continue
            members, open_ = [first], [first]
            number[first] = len(found)
            while open_:
                i = open_.pop()
                near = number < 0
                for low, high in zip(files.low, files.high, strict=True):
                    near &= (low <= high[i]) & (low[i] <= high)
                reached = np.flatnonzero(near).tolist()
                number[reached] = len(found)
                members += reached
                open_ += reached
            found.append(members)
        groups: list[list[int]] = []
        for members in found:
            if len(members) > 1:
                members.sort(key=lambda i: (int(files.low[0][i]), i))
                groups += cut(members, files.sizes, most_bytes)
        return groups


GROUPING = Overlap()
