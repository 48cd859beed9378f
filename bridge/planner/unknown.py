"""Files that the index says nothing of: written since, or not readable when it was built."""

from __future__ import annotations

import numpy as np

from bridge.planner.index_view import IndexView
from bridge.planner.listed import FileBatch
from bridge.planner.report import IndexNotUsed


class UnknownFiles:
    """Counts them over the batches of one plan."""

    def __init__(self, view: IndexView) -> None:
        self._view = view
        self._new = self._failed = 0

    def add(self, batch: FileBatch) -> None:
        """Counts in a batch as it was listed."""
        serving = self._view.serving
        if serving is None or batch.ordinals is self._view.everything:
            return
        unknown = np.flatnonzero(batch.ordinals < 0)
        if not len(unknown):
            return
        failed = serving.count_failed(batch.files, unknown)
        self._failed += failed
        self._new += len(unknown) - failed

    def told(self, table: str) -> tuple[IndexNotUsed, ...]:
        """Why the index was not used for them, and what mends it."""
        found = []
        if self._failed:
            found.append(
                IndexNotUsed(
                    "minmax",
                    "FAILED_FILES",
                    f"{_files(self._failed)} could not be read when the index was built, damaged "
                    "perhaps, and no query skips them",
                    f"skipbridge index show {table} --failed",
                )
            )
        if self._new:
            found.append(
                IndexNotUsed(
                    "minmax",
                    "STALE",
                    f"{_files(self._new)} newer than generation {self._view.generation} must be "
                    "read",
                    f"skipbridge index refresh {table}",
                )
            )
        return tuple(found)


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
