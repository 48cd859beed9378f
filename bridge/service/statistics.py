"""Estimates for optimisers, cached per index generation and bounded in time.

An optimiser requests the same table repeatedly and must not wait for index columns on slow storage.
It gets the row count at once, and column estimates as soon as they are loaded.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as Late

from bridge.expression.nodes import BoundExpression
from bridge.planner.index_view import IndexView
from bridge.planner.scan_plan import ScanPlan
from bridge.planner.table_statistics import Estimate, estimate, row_estimate
from bridge.table.model import TableName

_MAX_KEPT = 256
_SECONDS = 1.0


class Estimates:
    """Estimates by (table, predicate, generation); safe for threads."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._kept: OrderedDict[
            tuple[TableName, str, BoundExpression, IndexView], Future[Estimate]
        ] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, plan: ScanPlan) -> Estimate:
        """Estimates for the plan's predicate; after one second, only the table's row count."""
        key = (plan.table.name, str(plan.request.read), plan.context.predicate, plan.view)
        with self._lock:
            future = self._kept.get(key)
            if future is None or (future.done() and future.exception() is not None):
                future = self._pool.submit(estimate, plan.context)
                self._kept[key] = future
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        try:
            return future.result(_SECONDS)
        except Late:
            return Estimate(row_estimate(plan.view))
