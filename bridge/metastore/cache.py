"""A catalog that caches tables, partition names and partitions without returning stale data.

The law: an answer to a query is what the metastore held at some moment after the query's request
or, if the table's freshness allows an age, at most that long before it. A stale list of names lacks
a partition, and that loses rows. With an age of 0 the cache therefore answers only after the
metastore's notification events show that nothing has changed: one call of a millisecond or two
replaces fetching a hundred thousand names. Where events are not recorded, nothing is cached for an
age of 0.

Requests that wait at the same time share one call, which begins after all of them
(`bridge.metastore.shared_calls`, `bridge.metastore.shared_partitions`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar, cast

from bridge.kernel.bounded_cache import BoundedCache
from bridge.kernel.telemetry import METASTORE_CACHE
from bridge.metastore.catalog import HiveCatalog
from bridge.metastore.notifications import EventLog
from bridge.metastore.shared_calls import SharedCalls
from bridge.table.catalog_statistics import CatalogStatistics
from bridge.table.model import (
    CatalogTable,
    Partition,
    PartitionBatch,
    PartitionFetch,
    TableName,
    View,
)

T = TypeVar("T")
_TABLE = "table"
_NAMES = "names"
_PARTITIONS = "partitions"
_PARTITION_WEIGHT = 4


@dataclass(slots=True, eq=False)
class _Load:
    """A request in flight; void if its table was forgotten meanwhile."""

    began: float
    keep: bool
    void: bool = False


@dataclass(slots=True)
class _Remembered:
    """The cached answers for one table, each with the time of its request."""

    answers: dict[str, tuple[float, Any]] = field(default_factory=dict)
    partitions: dict[str, tuple[float, Partition]] = field(default_factory=dict)
    loads: set[_Load] = field(default_factory=set)

    def weigh(self) -> int:
        """The weight in names; a partition with its location counts as four."""
        if not (self.answers or self.partitions):
            return 0
        names = self.answers.get(_NAMES)
        held = len(names[1]) if names is not None else 0
        return 1 + held + _PARTITION_WEIGHT * len(self.partitions)


class CachedCatalog:
    """Implements `bridge.table.model.Catalog`; shared by all threads of a planner.

    Args:
        catalog: the catalog to cache; closed with this one.
        capacity: maximum weight in names; a partition counts as four. The least recently used
            tables go first.
        vouched: every writer of the metastore records notification events, including those that
            cannot be asked.
    """

    def __init__(self, catalog: HiveCatalog, capacity: int, *, vouched: bool = False) -> None:
        self._catalog = catalog
        self._capacity = capacity
        self._tables: BoundedCache[TableName, _Remembered] = BoundedCache(
            capacity=capacity, weigh=_Remembered.weigh, on_drop=self._void
        )
        self._lock = self._tables.lock
        self._calls = SharedCalls()
        self._events = EventLog(catalog.client, self._forget, vouched=vouched)

    def close(self) -> None:
        self._catalog.close()

    def __enter__(self) -> CachedCatalog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def schemas(self) -> list[str]:
        return self._catalog.schemas()

    def tables(self, schema: str) -> list[str]:
        return self._catalog.tables(schema)

    def views(self, schema: str) -> list[str]:
        return self._catalog.views(schema)

    def view(self, name: TableName) -> View | None:
        return self._catalog.view(name)

    def table(self, name: TableName, age: float = 0.0) -> CatalogTable:
        return self._remembered(name, _TABLE, age, lambda: self._catalog.table(name))

    def partition_names(self, table: CatalogTable, age: float = 0.0) -> list[str]:
        if not table.partition_keys:
            return self._catalog.partition_names(table)
        return self._remembered(
            table.name, _NAMES, age, lambda: self._catalog.partition_names(table)
        )

    def partitions(self, table: CatalogTable, names: list[str], age: float = 0.0) -> PartitionFetch:
        if not table.partition_keys:
            return self._catalog.partitions(table, names)
        known = self._events.catch_up(age)
        oldest = _oldest(known, age)
        found: dict[str, Partition] = {}
        with self._lock:
            entry = self._entry(table.name)
            for name in names if entry.partitions else ():
                held = entry.partitions.get(name)
                if held is not None and held[0] >= oldest:
                    found[name] = held[1]
            load = self._begin(entry, known or age > 0)
        missing = [n for n in names if n not in found] if found else names
        METASTORE_CACHE.labels(_PARTITIONS, "hit").inc(len(found))
        METASTORE_CACHE.labels(_PARTITIONS, "miss").inc(len(missing))

        def remember(batch: PartitionBatch) -> None:
            with self._lock:
                kept = self._kept(table.name, load)
                if kept is not None:
                    kept.partitions.update((p.name, (load.began, p)) for p in batch.partitions)
                    self._shrink(table.name, kept)

        def end() -> None:
            with self._lock:
                self._end(table.name, load)

        return _Merged(names, found, self._catalog.partitions(table, missing), remember, end)

    def statistics(self, table: CatalogTable, partitions: Sequence[str]) -> CatalogStatistics:
        """Not cached here: no event tells of new statistics, and estimates may be older."""
        return self._catalog.statistics(table, partitions)

    def forget(self, name: TableName) -> None:
        """Makes the next requests for this table go to the metastore."""
        self._forget(name.schema, name.table)

    def _remembered(self, name: TableName, kind: str, age: float, ask: Callable[[], T]) -> T:
        known = self._events.catch_up(age)
        with self._lock:
            entry = self._entry(name)
            held = entry.answers.get(kind)
            if held is not None and held[0] >= _oldest(known, age):
                METASTORE_CACHE.labels(kind, "hit").inc()
                return cast(T, held[1])
            load = self._begin(entry, known or age > 0)
        METASTORE_CACHE.labels(kind, "miss").inc()
        try:
            answer = self._calls.ask((name, kind), ask)
            with self._lock:
                kept = self._kept(name, load)
                if kept is not None:
                    kept.answers[kind] = (load.began, answer)
                    self._shrink(name, kept)
            return answer
        finally:
            with self._lock:
                self._end(name, load)

    @property
    def weight(self) -> int:
        """The weight of the cache, in names."""
        return self._tables.weight

    # callers of these hold the lock

    def _entry(self, name: TableName) -> _Remembered:
        return self._tables.get_or_put(name, _Remembered)

    def _begin(self, entry: _Remembered, keep: bool) -> _Load:
        load = _Load(time.monotonic(), keep)
        entry.loads.add(load)
        return load

    def _kept(self, name: TableName, load: _Load) -> _Remembered | None:
        """Where to cache an answer; None if the table has changed since the request."""
        entry: _Remembered | None = self._tables.get(name)
        return entry if load.keep and not load.void else None

    def _end(self, name: TableName, load: _Load) -> None:
        entry = self._tables.get(name)
        if entry is None:
            return
        entry.loads.discard(load)
        if not (entry.answers or entry.partitions or entry.loads):
            self._tables.pop(name)

    def _shrink(self, name: TableName, entry: _Remembered) -> None:
        self._tables.put(name, entry)
        if entry.weigh() > self._capacity:
            self._void(name, self._tables.pop(name))

    def _void(self, _: TableName, entry: _Remembered) -> None:
        for load in entry.loads:
            load.void = True

    def _forget(self, schema: str | None, table: str | None) -> None:
        with self._lock:
            gone = [
                name
                for name in self._tables
                if schema in (None, name.schema) and table in (None, name.table)
            ]
            for name in gone:
                self._void(name, self._tables.pop(name))


def _oldest(known: bool, age: float) -> float:
    """The earliest request time of an answer that may be used."""
    if known:
        return float("-inf")
    return time.monotonic() - age if age > 0 else float("inf")


class _Merged:
    """Cached and fetched partitions, in the order of the names."""

    def __init__(
        self,
        names: list[str],
        found: dict[str, Partition],
        fetched: PartitionFetch,
        remember: Callable[[PartitionBatch], None],
        end: Callable[[], None],
    ) -> None:
        self._names = iter(names)
        self._found = found
        self._fetched = fetched
        self._remember = remember
        self._end = end

    def __iter__(self) -> _Merged:
        return self

    def __next__(self) -> PartitionBatch:
        try:
            batch = next(self._fetched, None)
        except BaseException:
            self._end()
            raise
        if batch is None:
            self._end()
            rest = tuple(self._found[n] for n in self._names) if self._found else ()
            if not rest:
                raise StopIteration
            return PartitionBatch(rest)
        self._remember(batch)
        return self._found_before(batch) if self._found else batch

    def _found_before(self, batch: PartitionBatch) -> PartitionBatch:
        """The batch, together with the cached partitions that are named before its last one."""
        fetched = {p.name: p for p in batch.partitions}
        awaited = len(batch.partitions) + len(batch.missing)
        merged: list[Partition] = []
        while awaited:
            name = next(self._names)
            held = self._found.get(name)
            if held is None:
                awaited -= 1
                held = fetched.get(name)
            if held is not None:
                merged.append(held)
        return PartitionBatch(tuple(merged), batch.missing)

    def close(self) -> None:
        self._fetched.close()
        self._end()
