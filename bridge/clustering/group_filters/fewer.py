"""Groups of which fewer files remain."""

from __future__ import annotations

from bridge.clustering.groupings.grouping import Candidates


class FewerFiles:
    """Implements `GroupFilter`."""

    name = "fewer"

    def keeps(self, files: Candidates, target: int) -> bool:
        return max(1, -(-int(files.sizes.sum()) // target)) < len(files)


FILTER = FewerFiles()
