"""Checks that every slice still matches as a whole, since the engine dropped its filter."""

from __future__ import annotations

from collections.abc import Iterator

from bridge.kernel.errors import TableChanged
from bridge.planner.scan_context import ScanContext
from bridge.table.slices import SliceBatch


def require_enforced(context: ScanContext, batches: Iterator[SliceBatch]) -> Iterator[SliceBatch]:
    """Yields the batches unchanged.

    Errors:
        TableChanged: a slice may hold a row that does not satisfy the predicate.
    """
    for batch in batches:
        if not context.always(context.statistics(batch)).all():
            raise TableChanged(
                f"{context.table.name} was written to while the query was planned",
                "run the query again",
            )
        yield batch
