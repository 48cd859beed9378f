"""The stages of a scan: each turns an iterator of slice batches into another.

Over the iterator, and not batch by batch, because top-N ranks all slices before it hands out one,
LIMIT stops the flow early, and early survivors overtake the listing. A new stage is a new module
here and an entry in `bridge.planner.planner`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bridge.planner.scan_context import ScanContext
from bridge.table.slices import SliceBatch

Stage = Callable[[ScanContext, Iterator[SliceBatch]], Iterator[SliceBatch]]
