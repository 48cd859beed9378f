"""The stages of a scan: each turns one iterator of slice batches into another.

Stages work on the iterator, not on single batches: top-N ranks all slices before it emits one,
LIMIT ends the iteration early, and early survivors precede the listing. To add a stage, add a
module here and an entry in `bridge.planner.planner`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bridge.planner.scan_context import ScanContext
from bridge.table.slices import SliceBatch

PlanStage = Callable[[ScanContext, Iterator[SliceBatch]], Iterator[SliceBatch]]
