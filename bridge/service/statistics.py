"""Estimates for optimisers, kept while their index generation is the newest, and bounded in time.

An optimiser asks for the same table again and again, and must not wait for columns of the index
that lie on slow storage: it is told the number of rows, and the rest when it is there.
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
        self._kept: OrderedDict[tuple[TableName, BoundExpression, IndexView], Future[Estimate]] = (
            OrderedDict()
        )
        self._lock = threading.Lock()

    def of(self, plan: ScanPlan) -> Estimate:
        """Of the rows that the plan's predicate leaves; after a second, rows of the whole table."""
        key = (plan.table.name, plan.context.predicate, plan.view)
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
