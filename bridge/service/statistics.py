"""Estimates for optimisers, cached per index generation and bounded in time.

An optimiser requests the same table repeatedly and must not wait for index columns on slow storage,
nor for the catalog. It gets what is known in time.
"""

from __future__ import annotations

import time
from concurrent.futures import Executor, Future, wait
from concurrent.futures import TimeoutError as Late
from dataclasses import dataclass

from bridge.expression.nodes import BoundExpression, BoundTrue
from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.errors import BridgeError
from bridge.planner.answers.table_statistics import Estimate, estimate, rough_estimate
from bridge.planner.index_view import IndexView
from bridge.planner.scan_plan import ScanPlan
from bridge.table.catalog_statistics import CatalogStatistics, StatisticsCatalog
from bridge.table.model import Catalog, CatalogTable, TableName
from bridge.table.read_version import ReadVersion

_MAX_KEPT = 256
_SECONDS = 1.0
_MAX_TABLES = 1000
_PAUSE = 100.0
_NOTHING = CatalogStatistics()


class Estimates:
    """Estimates by (table, predicate, generation, statistics of the catalog); for all threads.

    Args:
        pool: makes estimates.
        asking: another one, which asks the catalog: that may take long.
    """

    def __init__(self, pool: Executor, asking: Executor, catalog: Catalog) -> None:
        self._pool = pool
        self._catalog = HeldStatistics(asking, catalog)
        self._kept: BoundedCache[
            tuple[TableName, str, BoundExpression, IndexView, CatalogStatistics], Future[Estimate]
        ] = BoundedCache(_MAX_KEPT)
        self._whole: BoundedCache[
            tuple[TableName, str], tuple[IndexView, CatalogStatistics, Estimate]
        ] = BoundedCache(_MAX_TABLES)

    def expect(self, table: CatalogTable, view: IndexView) -> None:
        """Starts to ask the catalog, before the optimiser does."""
        self._catalog.begin(table, view)

    def of(self, plan: ScanPlan) -> Estimate:
        """Estimates for the plan's predicate; after one second, rough ones of the whole table."""
        future, held = self._begun(plan)
        try:
            found = future.result(_SECONDS)
        except Late:
            return rough_estimate(plan.table, plan.view, held)
        self._keep_whole(plan, held, found)
        return found

    def begin(self, plan: ScanPlan) -> None:
        """Starts the estimate, without a wait: for threads of the pool that makes estimates."""
        self._begun(plan)

    def _begun(self, plan: ScanPlan) -> tuple[Future[Estimate], CatalogStatistics]:
        held = self._catalog.of(plan.table, plan.view)
        key = (plan.table.name, str(plan.request.read), plan.context.predicate, plan.view, held)
        with self._kept.lock:
            future = self._kept.get(key)
            if future is None or (future.done() and future.exception() is not None):
                future = self._pool.submit(self._make, plan, held)
                self._kept.put(key, future)
        return future, held

    def _make(self, plan: ScanPlan, held: CatalogStatistics) -> Estimate:
        found = estimate(plan.context, held)
        self._keep_whole(plan, held, found)
        return found

    def _keep_whole(self, plan: ScanPlan, held: CatalogStatistics, found: Estimate) -> None:
        if isinstance(plan.context.predicate, BoundTrue):
            key = plan.table.name, str(plan.request.read)
            self._whole.put(key, (plan.view, held, found))

    def at_hand(self, table: CatalogTable, view: IndexView, read: ReadVersion) -> Estimate | None:
        """The estimate of the whole table, if it was made before and nothing has changed."""
        kept = self._whole.get((table.name, str(read)))
        if kept is None or kept[0] is not view or kept[1] != self._catalog.last_known(table):
            return None
        return kept[2]


@dataclass(slots=True)
class _Held:
    """A table's statistics: the last answer and the request that is under way, if any."""

    location: str
    answer: CatalogStatistics | None = None
    due: float = float("-inf")
    under_way: Future[None] | None = None


class HeldStatistics:
    """The catalog's statistics by table: known ones at once, new ones in the background.

    Args:
        fresh: seconds after which they are requested again; longer where the metastore works long
            for them. The former ones are used meanwhile.
        patience: seconds that the first request waits.
    """

    def __init__(
        self, pool: Executor, catalog: Catalog, *, fresh: float = 10.0, patience: float = 0.25
    ) -> None:
        self._pool = pool
        self._source = catalog if isinstance(catalog, StatisticsCatalog) else None
        self._fresh, self._patience = fresh, patience
        self._tables: BoundedCache[TableName, _Held] = BoundedCache(_MAX_TABLES)
        self._lock = self._tables.lock

    def of(self, table: CatalogTable, view: IndexView) -> CatalogStatistics:
        """What the catalog holds. Nothing if it does not answer in time, or cannot."""
        held = self.begin(table, view)
        if held is None:
            return _NOTHING
        under_way = held.under_way
        if held.answer is None and under_way is not None:
            wait([under_way], self._patience)
        return held.answer or _NOTHING

    def last_known(self, table: CatalogTable) -> CatalogStatistics:
        """The last answer of the catalog, without asking it."""
        held = self._tables.get(table.name)
        return (
            _NOTHING if held is None or held.location != table.location else held.answer or _NOTHING
        )

    def begin(self, table: CatalogTable, view: IndexView) -> _Held | None:
        """Asks for statistics that are missing or old, without waiting."""
        if self._source is None:
            return None
        with self._lock:
            held = self._tables.get(table.name)
            if held is None or held.location != table.location:
                held = _Held(table.location)
                self._tables.put(table.name, held)
            if held.under_way is None and time.monotonic() > held.due:
                held.under_way = self._pool.submit(self._ask, self._source, held, table, view)
        return held

    def _ask(
        self, source: StatisticsCatalog, held: _Held, table: CatalogTable, view: IndexView
    ) -> None:
        started = time.monotonic()
        try:
            held.answer = source.statistics(table, _partitions(view))
        except BridgeError:  # the query itself meets the error, if it needs the catalog
            held.answer = held.answer or _NOTHING
        finally:
            with self._lock:
                held.under_way = None
                ended = time.monotonic()
                held.due = ended + max(self._fresh, _PAUSE * (ended - started))


def _partitions(view: IndexView) -> list[str]:
    """The partitions whose statistics are worth the metastore's work: none if there is a sample."""
    index = view.index
    return [] if index is None or index.sample else index.list_owned()[2]
