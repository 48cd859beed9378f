"""Files that the index does not cover: written later, or unreadable when it was built."""

from __future__ import annotations

import numpy as np

from bridge.index.reading.snapshot import IndexSnapshot
from bridge.planner.reports.report import IndexNotUsed, Remedy
from bridge.planner.reports.text import count_files
from bridge.table.slices import SliceBatch


class UnknownFiles:
    """Counts uncovered files over the batches of one scan.

    Args:
        generation: of the index; -1 without one.
    """

    def __init__(self, generation: int) -> None:
        self._generation = generation
        self._new = self._failed = 0

    def add(self, batch: SliceBatch) -> None:
        """Adds a batch as it was listed."""
        index = batch.index
        if not isinstance(index, IndexSnapshot) or batch.is_whole_index:
            return
        unknown = np.flatnonzero(batch.ordinals < 0)
        if not len(unknown):
            return
        failed = index.count_failed(batch.files, unknown)
        self._failed += failed
        self._new += len(unknown) - failed

    def reasons(self, table: str) -> tuple[IndexNotUsed, ...]:
        """Why the index was not used for these files, and the remedy.

        Args:
            table: as commands name it.
        """
        found = []
        if self._failed:
            found.append(
                IndexNotUsed(
                    "minmax",
                    "FAILED_FILES",
                    f"{count_files(self._failed)} could not be read when the index was built; "
                    f"every query reads {'it' if self._failed == 1 else 'them'}",
                    Remedy("show", table, ("--failed",)),
                )
            )
        if self._new:
            found.append(
                IndexNotUsed(
                    "minmax",
                    "STALE",
                    f"{count_files(self._new)} newer than generation {self._generation} must be "
                    "read",
                    Remedy("refresh", table),
                )
            )
        return tuple(found)
