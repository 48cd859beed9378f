"""The interface of group filters."""

from __future__ import annotations

from typing import Protocol

from bridge.clustering.groupings.grouping import Candidates


class GroupFilter(Protocol):
    """Decides whether a group is worth a rewrite.

    Attributes:
        name: unique, in lower case.
    """

    name: str

    def keeps(self, files: Candidates, target: int) -> bool:
        """Whether the files of a group are rewritten; otherwise they are left as they are.

        Args:
            files: of the group.
            target: size of new files in bytes.
        """
        ...
