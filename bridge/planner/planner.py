"""The planner: predicate -> partitions -> files, as pure stages over one partition batch.

``plan`` binds and returns at once; the stages run when ``ScanPlan.batches`` is drawn, so that a
split loader can drive them in the background and ``explain`` can drive the same to the end.
``apply_dynamic_filter`` adds a conjunct that arrives later; it holds for every batch not yet handed
out.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from bridge.errors import IndexCorrupt, TableChanged
from bridge.expression.bind import Scope, bind_in
from bridge.expression.nodes import (
    AlwaysTrue,
    BoundExpression,
    BoundFalse,
    BoundReference,
    BoundTrue,
    Expression,
    Predicate,
    Reference,
)
from bridge.expression.prune import prune
from bridge.expression.residual import references
from bridge.expression.text import brief, format_bound
from bridge.expression.unwrap import unwrap
from bridge.index.kinds.opened import OpenedKind
from bridge.planner.composite_statistics import CompositePruningStatistics, exact_statistics
from bridge.planner.directory_lister import DirectoryLister
from bridge.planner.disabled_indexes import disabled_indexes
from bridge.planner.early_survivors import early_survivors, without
from bridge.planner.files import (
    HIDDEN_COLUMNS,
    FilePruner,
    keep_by_attributes,
    split_by_source,
    take,
)
from bridge.planner.freshness import (
    LIVE,
    PROPERTY,
    SNAPSHOT,
    Freshness,
    is_fresh,
    parse_freshness,
)
from bridge.planner.index_view import IndexViews, argument
from bridge.planner.listed import FileBatch, FileSource, materialised
from bridge.planner.partitions import (
    PARTITION_COLUMN,
    PartitionStatistics,
    Typed,
    partition_residual,
    select_partitions,
)
from bridge.planner.pins import Pin, Pins
from bridge.planner.predicate_log import PredicateLog
from bridge.planner.report import IndexNotUsed, PruneReport, SplitTotals, StageCounter
from bridge.planner.request import ScanRequest
from bridge.planner.sufficient import always, stops_early, sufficient
from bridge.planner.table_cache import TableCache
from bridge.planner.unknown import UnknownFiles
from bridge.storage.port import FileStat
from bridge.table.model import (
    Catalog,
    Partition,
    PartitionBatch,
    PartitionFetch,
    Table,
    TableName,
)
from bridge.types import Field


class ScanPlan:
    """One scan under way.

    One thread draws `batches`; any thread calls `apply_dynamic_filter` and `report`.
    """

    def __init__(self, planner: Planner, request: ScanRequest, pin: Pin, mode: Freshness) -> None:
        self.request = request
        self.table = pin.table
        self.freshness = mode
        self.view = pin.view
        self._planner = planner
        self._pin = pin
        self._files = FileSource(
            planner.listings, pin, mode, absent_is_empty=request.absent_is_empty
        )
        # Neither the metastore nor storage is asked: the file set is the index's own.
        self.plans_without_io = mode == SNAPSHOT and not pin.table.partition_keys
        self._lock = threading.Lock()
        self._fetch: PartitionFetch | None = None
        self._closed = False
        self._complete = False
        self._values: dict[str, Typed] = {}
        asked = request.pruning or request.enforced  # what nobody else filters by is never dropped
        lost: list[Predicate] = []
        self.predicate = self._bind(request.predicate if asked else AlwaysTrue(), lost)
        self._dropped = tuple(dict.fromkeys((*request.dropped, *map(brief, lost))))
        self._narrowed: tuple[BoundExpression, ...] = ()
        self._pruner = FilePruner(self.table, self.view, request.semantics)
        self._exact = exact_statistics(self.table, self.view, request.semantics)
        self._partition_stage = StageCounter("partitions", "values")
        self._listing_stage = StageCounter("files", "listing")
        self._attribute_stage = StageCounter("files", "attributes")
        self._index_stage = StageCounter("files", "minmax", self._pruner.columns(self.predicate))
        self._kind_stages: dict[OpenedKind, StageCounter] = {}
        self._narrow_stage = StageCounter("files", "narrowed")
        self.stop_stage = StageCounter("files", "top-n" if request.order else "limit")
        self._unknown = UnknownFiles(self.view)
        self._files_kept = 0

    def _bind(self, predicate: Expression, lost: list[Predicate] | None = None) -> BoundExpression:
        if isinstance(predicate, AlwaysTrue):
            return BoundTrue()
        scope, request = self._planner.scope(self.table), self.request
        if request.strict and request.engine == "trino":  # typed: Trino's planner never saw it
            predicate = unwrap(predicate, lambda column: scope.resolve(column).type)
        return bind_in(scope, predicate, request.semantics, strict=request.strict, dropped=lost)

    def apply_dynamic_filter(self, predicate: Expression) -> None:
        """Conjoins a predicate for every batch not yet handed out.

        Errors:
            ColumnNotFound: it names a column that the table does not have.
        """
        if not self.request.pruning or stops_early(self):
            return
        bound = self._bind(predicate)
        if not isinstance(bound, BoundTrue):
            with self._lock:
                self._narrowed = (*self._narrowed, bound)

    def known(self, batch: FileBatch) -> CompositePruningStatistics:
        """What is known of a batch's files, by any column of the table."""
        names = [p.name for p in batch.partitions]
        values = [self.values_of(p) for p in batch.partitions]
        serving = self.view.serving
        return CompositePruningStatistics(
            batch.files,
            batch.ordinals,
            self._exact,
            serving.rows if serving is not None else None,
            (self.table.partition_keys, names, values),
            whole=serving is not None and batch.ordinals is self.view.everything,
        )

    def values_of(self, partition: Partition) -> Typed:
        """Typed values of a partition of a batch that was drawn."""
        return self._values.get(partition.name, ())

    def look_at(self, uris: Sequence[str]) -> list[FileStat | None]:
        """Single files as they are now. Errors: StorageFailure."""
        return self._planner.listings.look_at(uris)

    def listed(self, partition: Partition) -> bool:
        """Whether the partition's listing for this query is there as a whole."""
        return self._files.listed(partition)

    def by_index(self, partition: Partition) -> FileBatch:
        """What is left of the index's own file set; counted nowhere, for storage was not asked."""
        return self._prune(self._files.indexed((partition,)), self.predicate, count=False)

    def index_listed(self, count: int) -> None:
        """The index's file set stood in for a listing: what of it is read was looked at itself."""
        self._listing_stage.index = "index"
        self._listing_stage.add(count, count, self.view.total_bytes, 0.0)
        self._files_kept += count

    def partitions_match(self) -> bool:
        """Whether every partition left satisfies the predicate by its values; lists nothing."""
        keys = self.table.partition_keys
        asked = references(self.predicate)
        if not all(r.partition or r.path[0] == PARTITION_COLUMN for r in asked):
            return False
        names = self._planner.names(self._pin, self.freshness)
        found = select_partitions(names, keys, self.predicate, self.request.semantics)
        columns = [[found.values[n][i] for n in found.names] for i in range(len(keys))]
        known = PartitionStatistics(found.names, keys, columns)
        return bool(prune(self.predicate, known, self.request.semantics).always.all())

    def resolve(self, column: str) -> BoundReference:
        """A column of the table, a partition key or a hidden column. Errors: ColumnNotFound."""
        return self._planner.scope(self.table).resolve(Reference((column,)))

    def batches(self) -> Iterator[FileBatch]:
        """The survivors, a partition batch at a time, as far as the request needs them.

        Errors:
            TableChanged: the engine relies on every file matching, and one may not.
            see `_survivors`.
        """
        early = early_survivors(self)
        survivors = sufficient(self, self._survivors())
        if early is not None and len(early.files):
            yield early
            survivors = without(survivors, early)
        for batch in survivors:
            if self.request.enforced and not always(self, self.known(batch)).all():
                raise TableChanged(
                    f"{self.table.name} was written to while the query was planned",
                    "run the query again",
                )
            yield batch
        self._complete = not self._closed
        with self._lock:
            if self._fetch is not None:
                self._fetch.close()

    def _survivors(self) -> Iterator[FileBatch]:
        """Files that partition values, attributes and indexes leave.

        Errors:
            MetastoreUnavailable, StorageFailure and their like: the scan fails; nothing is taken as
                empty.
        """
        started = time.perf_counter()
        table = self.table
        names = self._planner.names(self._pin, self.freshness)
        selection = select_partitions(
            names, table.partition_keys, self.predicate, self.request.semantics
        )
        self._partition_stage.columns = selection.columns
        self._partition_stage.add(
            selection.total, len(selection.names), 0, time.perf_counter() - started
        )
        if not selection.names or isinstance(self.predicate, BoundFalse):
            if selection.names:
                self._partition_stage.kept = 0
            return
        for batch in self._partitions(selection.names):
            if self._closed:
                return
            for survivors in self._static(batch, selection.values):
                if self._closed:
                    return
                if len(survivors.files):
                    yield survivors

    def _partitions(self, names: list[str]) -> Iterator[PartitionBatch]:
        """Fetched in batches, unless an earlier scan of this query has fetched them all."""
        pinned = self._pin.partitions
        if all(name in pinned for name in names):
            yield PartitionBatch(tuple(pinned[name] for name in names))
            return
        with self._lock:
            if self._closed:
                return
            self._fetch = self._planner.catalog.partitions(self.table, names, self.freshness.ttl)
        for batch in self._fetch:
            pinned.update({p.name: p for p in batch.partitions})
            yield batch

    def refine(self, batch: FileBatch) -> FileBatch:
        """Applies the dynamic filters that came by now; called when the batch is handed out."""
        with self._lock:
            narrowed = self._narrowed
        if not narrowed or not len(batch.files):
            return batch
        started = time.perf_counter()
        left = batch
        for predicate in narrowed:
            left = self._prune(left, predicate, count=False)
        self._narrow_stage.add(
            len(batch.files),
            len(left.files),
            int(left.files.sizes.sum()),
            time.perf_counter() - started,
        )
        return left

    def close(self) -> None:
        """Stops metastore calls under way; `batches` ends at its next step."""
        with self._lock:
            first, self._closed = not self._closed, True
            fetch = self._fetch
        if fetch is not None:
            fetch.close()
        log = self._planner.predicate_log
        if first and log is not None and self._complete:
            log.record(self.predicate, self.report())

    def report(self, splits: SplitTotals | None = None, paths: object | None = None) -> PruneReport:
        """The funnel as it stands; complete once `batches` was drawn to its end."""
        narrowed, stopped = self._narrow_stage, self.stop_stage
        stages = [self._partition_stage.freeze()] if self.table.partition_keys else []
        stages += [
            c.freeze()
            for c in (
                self._listing_stage,
                self._attribute_stage,
                self._index_stage,
                *self._kind_stages.values(),
                self.stop_stage,
                self._narrow_stage,
            )
            if c.total or c is self._listing_stage
        ]
        return PruneReport(
            table=str(self.table.name),
            engine=self.request.engine,
            generation=self.view.generation,
            freshness=str(self.freshness),
            predicate=format_bound(self.predicate),
            dropped=self._dropped,
            stages=tuple(stages),
            files_total=self._listing_stage.total,
            # Each is counted by a thread of its own: what was listed, and what was handed out.
            files_kept=self._files_kept
            - narrowed.total
            + narrowed.kept
            - stopped.total
            + stopped.kept,
            splits=splits or SplitTotals(),
            not_used=self._not_used(),
            complete=self._complete,
            paths=paths,
        )

    def _not_used(self) -> tuple[IndexNotUsed, ...]:
        name = argument(self.table)
        found = list(self.view.not_used)
        if not self.request.pruning:
            found.append(IndexNotUsed("minmax", "DISABLED", "pruning is switched off"))
        found += disabled_indexes(self.view, name)
        problems = self.view.serving.problems if self.view.serving is not None else {}
        for column in self._pruner.unindexed(split_by_source(self.predicate).data):
            error = problems.get(column.lower())
            if error is not None:
                damaged = isinstance(error, IndexCorrupt)
                remedy = f"skipbridge index build {name}" if damaged else error.hint
                found.append(IndexNotUsed(f"minmax({column})", error.code, error.message, remedy))
                continue
            found.append(
                IndexNotUsed(
                    f"minmax({column})",
                    "NO_STATISTICS",
                    "the index holds no bounds of this column",
                    f"skipbridge index build {name} --nan scan",
                )
            )
        for text, option in self._pruner.unindexed_functions(self.predicate):
            command = f"skipbridge index build {name} {option}"
            detail = "no index holds values of this function"
            found.append(IndexNotUsed(f"expression({text})", "NO_INDEX", detail, command))
        for kind in list(self._kind_stages):
            if kind.problem is not None:
                remedy = f"skipbridge index build {name}"
                problem = kind.problem
                found.append(IndexNotUsed(kind.name, problem.code, problem.message, remedy))
        found += self._unknown.told(name)
        return tuple(found)

    def _static(self, batch: PartitionBatch, values: dict[str, Typed]) -> Iterator[FileBatch]:
        """Lists one batch of partitions and prunes its files, as they come."""
        self._values.update({p.name: values.get(p.name, ()) for p in batch.partitions})
        listed = self._files.batches(batch.partitions)
        try:
            while True:
                started = time.perf_counter()
                found = next(listed, None)
                if found is None:
                    break
                n = len(found.files)
                self._listing_stage.add(n, n, self._bytes(found), time.perf_counter() - started)
                self._unknown.add(found)
                kept = self._prune(found, self.predicate)
                self._files_kept += len(kept.files)
                yield from materialised(kept)
        finally:
            self._planner.pins.trim()  # also where the scan needs no more of it

    def _bytes(self, batch: FileBatch) -> int:
        if batch.ordinals is self.view.everything:
            return self.view.total_bytes
        return int(batch.files.sizes.sum())

    def _prune(
        self, batch: FileBatch, predicate: BoundExpression, *, count: bool = True
    ) -> FileBatch:
        if isinstance(predicate, BoundTrue) or not len(batch.files):
            return batch
        parts = split_by_source(predicate)
        if not isinstance(parts.attributes, BoundTrue):
            started = time.perf_counter()
            kept = self._select(
                batch, keep_by_attributes(batch.files, parts.attributes, self.request.semantics)
            )
            if count:
                self._count(self._attribute_stage, batch, kept, started)
            batch = kept
        started = time.perf_counter()
        kept = self._select(batch, self._keep_by_index(batch, parts.data))
        if count and (self.view.serving is not None or len(kept.files) != len(batch.files)):
            self._count(self._index_stage, batch, kept, started)
        for kind in self._pruner.kinds(parts.data):
            if not len(kept.files):
                break
            batch, started = kept, time.perf_counter()
            kept = self._select(batch, self._keep_by_index(batch, parts.data, kind))
            if count:
                stage = StageCounter("files", kind.definition.kind, (kind.definition.on,))
                self._count(self._kind_stages.setdefault(kind, stage), batch, kept, started)
        return kept

    def _count(
        self, stage: StageCounter, before: FileBatch, after: FileBatch, started: float
    ) -> None:
        seconds = time.perf_counter() - started
        stage.add(len(before.files), len(after.files), int(after.files.sizes.sum()), seconds)

    def _keep_by_index(
        self, batch: FileBatch, predicate: BoundExpression, kind: OpenedKind | None = None
    ) -> npt.NDArray[np.bool_] | None:
        keys = self.table.partition_keys
        if not keys:
            return self._pruner.keep(batch.ordinals, predicate, kind)
        residuals = [
            partition_residual(predicate, keys, p.name, self._values.get(p.name, ()))
            for p in batch.partitions
        ]
        if all(r == residuals[0] for r in residuals[1:]) and not isinstance(
            residuals[0], BoundFalse
        ):
            return self._pruner.keep(batch.ordinals, residuals[0], kind)
        keep = np.ones(len(batch.files), np.bool_)
        for i, left in enumerate(residuals):
            inside = batch.files.partition == i
            if isinstance(left, BoundFalse):
                keep[inside] = False
                continue
            mask = self._pruner.keep(batch.ordinals[inside], left, kind)
            if mask is not None:
                keep[inside] = mask
        return keep

    def _select(self, batch: FileBatch, keep: npt.NDArray[np.bool_] | None) -> FileBatch:
        if keep is None:
            return batch
        chosen = np.flatnonzero(keep)
        if len(chosen) == len(keep):
            return batch
        return FileBatch(take(batch.files, chosen), batch.ordinals[chosen], batch.partitions)


class Planner:
    """Plans scans over the tables of one catalogue; shared by all threads of a process.

    Args:
        catalog: where tables are described.
        views: the indexes.
        listings: lists storage.
        freshness: of tables that say nothing themselves.
        metadata_ttl: seconds for which a table's definition is taken as known.
        predicate_log: notes what finished scans asked.
    """

    def __init__(
        self,
        catalog: Catalog,
        views: IndexViews,
        listings: DirectoryLister,
        *,
        freshness: Freshness = LIVE,
        metadata_ttl: float = 1.0,
        predicate_log: PredicateLog | None = None,
    ) -> None:
        self.predicate_log = predicate_log
        self.catalog = catalog
        self.views = views
        self.listings = listings
        self._freshness = freshness
        self._definitions = TableCache(catalog, metadata_ttl)
        self._scopes: dict[TableName, tuple[Table, Scope]] = {}
        self.pins = Pins()

    def table(self, name: TableName) -> Table:
        """A table of any format that can be indexed; whether an engine can read it is another
        question, see `bridge.engines.registry.refuse_unreadable`.

        Errors:
            SchemaNotFound, TableNotFound, UnsupportedTable, MetastoreUnavailable.
        """
        return self._definitions.table(name)

    def scope(self, table: Table) -> Scope:
        """The names of a table, its hidden columns included."""
        held = self._scopes.get(table.name)
        if held is not None and held[0] is table:
            return held[1]
        if len(self._scopes) > 10_000:
            self._scopes.clear()
        columns = [*(Field(c.name, c.type) for c in table.columns), *HIDDEN_COLUMNS]
        keys = [Field(c.name, c.type) for c in table.partition_keys]
        scope = Scope(columns, keys, case_sensitive=False)
        self._scopes[table.name] = (table, scope)
        return scope

    def plan(self, request: ScanRequest) -> ScanPlan:
        """Opens a plan: resolves the table and binds the predicate; nothing is listed yet.

        Errors:
            TableNotFound, ColumnNotFound, GenerationNotFound, InvalidConfiguration and their like.
        """
        return self.open(request, self.pin(request))

    def pin(self, request: ScanRequest) -> Pin:
        """What a scan sees of its table: asks the metastore and the index's store where it must.

        Errors:
            TableNotFound, GenerationNotFound and their like.
        """
        if is_fresh(request.freshness):
            self._definitions.forget(request.table)
        return self._pin(request.query_id, request.table, request.generation)

    def open(self, request: ScanRequest, pin: Pin) -> ScanPlan:
        """Opens the plan of a pinned table; waits for nothing.

        Errors:
            ColumnNotFound, InvalidConfiguration and their like.
        """
        return ScanPlan(self, request, pin, self._mode(request.freshness, pin))

    def look_ahead(self, query_id: str, name: TableName) -> None:
        """Begins what the scans of the table in this query ask first, while the engine plans.

        That is the listing of a table without partitions, the partition names of another one.
        Nothing is answered here; what fails now fails, or is tried again, when the scan asks.

        Errors:
            TableNotFound and its like, as `table` has them.
        """
        if not query_id:
            return
        pin = self._pin(query_id, name, None)
        mode = self._mode(None, pin)
        if mode.mode == "live" or pin.table.partition_keys:
            self.listings.background(lambda: self._begin(pin, mode))

    def _begin(self, pin: Pin, mode: Freshness) -> None:
        names = self.names(pin, mode)
        if not pin.table.partition_keys:
            with contextlib.closing(self.catalog.partitions(pin.table, names, mode.ttl)) as batches:
                for batch in batches:
                    FileSource(self.listings, pin, mode).begin(batch.partitions)

    def names(self, pin: Pin, mode: Freshness) -> list[str]:
        """The partition names that the query sees. Errors: MetastoreUnavailable and its like."""
        with pin.lock:
            if pin.names is None:
                pin.names = self.catalog.partition_names(pin.table, mode.ttl)
            return pin.names

    def _pin(self, query_id: str, name: TableName, generation: int | None) -> Pin:
        pin = self.pins.get(query_id, name, generation)
        if pin is None:
            table = self.table(name)
            view = self.views.view(table, generation)
            pin = self.pins.put(query_id, generation, Pin(table, view))
        return pin

    def _mode(self, asked: str | None, pin: Pin) -> Freshness:
        text = asked or pin.table.properties.get(PROPERTY)
        mode = parse_freshness(text) if text else self._freshness
        if mode.mode == "snapshot":
            # Without an index there is no file set to take: storage is the only truth.
            # Nor while a build commits as it goes: what it has not come to is no part of its set.
            # Nor where an old one names but one owner of a file: the others would lose it.
            manifest = pin.view.serving.manifest if pin.view.serving is not None else None
            if manifest is None or not manifest.complete:
                return LIVE
            return SNAPSHOT if manifest.knows_owners or not pin.table.partition_keys else LIVE
        return mode
