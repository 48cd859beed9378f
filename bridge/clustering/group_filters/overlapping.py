"""Groups of files that overlap: a rewrite lets predicates on the sort columns skip more."""

from __future__ import annotations

from bridge.clustering.groupings.grouping import Candidates
from bridge.clustering.planning.depth import overlap_depth


class Overlapping:
    """Implements `GroupFilter`: at least two files share values of the sort columns."""

    name = "overlapping"

    def keeps(self, files: Candidates, target: int) -> bool:
        return bool(len(files.low)) and int(overlap_depth(files.low, files.high).max()) > 1


FILTER = Overlapping()
