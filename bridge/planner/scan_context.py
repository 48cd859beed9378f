"""State shared by the stages of one scan: request, snapshot, predicate and counts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from bridge.expression.bind import Scope, TextExpected, bind_in
from bridge.expression.fold import conjunction
from bridge.expression.function_catalog import columns_of
from bridge.expression.nodes import (
    AlwaysTrue,
    BoundAnd,
    BoundExpression,
    BoundReference,
    BoundTrue,
    Expression,
    Predicate,
    Reference,
)
from bridge.expression.parsing.text import brief
from bridge.expression.prune import prune
from bridge.expression.residual import references
from bridge.expression.statistics import Mask
from bridge.expression.unwrap import unwrap
from bridge.index.reading.snapshot import IndexSnapshot
from bridge.kernel.types import TRINO
from bridge.planner.answers.composite_statistics import CompositePruningStatistics
from bridge.planner.file_pruner import FilePruner, Index
from bridge.planner.open_snapshots import OpenSnapshot
from bridge.planner.own_indexes import FormatIndex
from bridge.planner.partitions import Typed, exclude_partitions, split_by_keys
from bridge.planner.reports.report import StageCounter
from bridge.planner.request import ScanRequest
from bridge.planner.similar_keys import similar_value
from bridge.planner.unknown_files import UnknownFiles
from bridge.table.model import Partition, PartitionFetch
from bridge.table.slices import SliceBatch
from bridge.table.snapshot import Columns, HasOwnIndexes, HasViews, ViewUse


class ScanCounters:
    """What each stage received and kept. Each counter is used by one thread at a time."""

    def __init__(self, request: ScanRequest) -> None:
        self.partitions = StageCounter("partitions", "values")
        self.bounded_partitions = StageCounter("partitions", "minmax")
        self.filtered_partitions = StageCounter("partitions", "dynamic-filters")
        self.views: list[StageCounter] = []
        self.listing = StageCounter("files", "listing")
        self.attributes = StageCounter("files", "attributes")
        self.by_index: dict[str, StageCounter] = {}
        self.stop = StageCounter("files", "top-n" if request.order else "limit")
        self.dynamic_filters = StageCounter("files", "dynamic-filters")
        self.files_kept = 0

    def in_order(self) -> list[StageCounter]:
        """The counters of files, in the order of the funnel."""
        return [
            *self.views,
            self.listing,
            self.attributes,
            *self.by_index.values(),
            self.stop,
            self.dynamic_filters,
        ]


class ScanContext:
    """A scan in progress.

    One thread draws the stages; any thread may add dynamic filters, read the counts or cancel.

    Attributes:
        opened: held for the duration of the scan, so that it cannot expire meanwhile.
        view: the table's index, or why there is none.
        predicate: the request's predicate and the snapshot's row filter; other rows do not exist.
        row_filter: the snapshot's row filter; inexact if part of it could not be translated.
        columns: all that the scan reads or compares; None: any.
        own_indexes: what the table's format itself knows of files.
        dropped: parts of the request's predicate that no stage evaluates.
    """

    def __init__(self, request: ScanRequest, opened: OpenSnapshot, scope: Scope) -> None:
        snapshot = opened.snapshot
        self.opened = opened
        self.request = request
        self.snapshot = snapshot
        self.table = snapshot.table
        self.view = view = opened.view
        self.scope = scope
        self.counters = ScanCounters(request)
        self.unknown = UnknownFiles(view.generation)
        self.complete = False
        self._lock = threading.Lock()
        self._cancelled = False
        self._running: PartitionFetch | None = None
        self._filters: tuple[BoundExpression, ...] = ()
        self._key_filters: BoundExpression = BoundTrue()
        self._values: dict[str, Typed] = {}
        self._pruners: dict[int, FilePruner] = {}
        self._views = snapshot if isinstance(snapshot, HasViews) else None
        own = snapshot.own_indexes if isinstance(snapshot, HasOwnIndexes) else ()
        self.own_indexes = [FormatIndex(each, request.semantics) for each in own]
        asked = request.pruning or request.enforced  # an enforced predicate has no other filter
        lost: list[Predicate] = []
        bound = self.bind(request.predicate if asked else AlwaysTrue(), lost)
        self.row_filter = self.bind(snapshot.row_filter)
        self.predicate = conjunction((bound, self.row_filter))
        self.columns = self._columns()
        self.dropped = tuple(dict.fromkeys((*request.dropped, *map(brief, lost))))

    def _columns(self) -> Columns:
        """The request's columns and those of every part of it that is evaluated here.

        With an enforced predicate any: it was enforced for the files of the facts.
        """
        request = self.request
        if request.columns is None or request.enforced or not request.pruning:
            return None
        own = _top_level(self.predicate)
        ordered = {key.column.lower() for key in request.order}
        found = request.columns | own | ordered | request.dynamic_filter_columns
        return None if self.unlike_columns(found) else found

    def unlike_columns(self, columns: frozenset[str]) -> list[str]:
        """Those that the engine may read otherwise from a view; partition columns never are."""
        alike = self.request.reads_alike
        formats = () if self._views is None else self._views.fact_formats()
        return [
            column.name
            for column in self.table.columns
            if column.name in columns and not all(alike(one, column.type) for one in formats)
        ]

    # predicates

    def bind(self, predicate: Expression, lost: list[Predicate] | None = None) -> BoundExpression:
        """Errors: ColumnNotFound, AmbiguousColumn."""
        if isinstance(predicate, AlwaysTrue):
            return BoundTrue()
        scope, request = self.scope, self.request
        if request.strict and request.semantics == TRINO:  # typed text did not pass Trino's planner
            predicate = unwrap(predicate, lambda column: scope.resolve(column).type)
        try:
            return bind_in(scope, predicate, request.semantics, strict=request.strict, dropped=lost)
        except TextExpected as error:
            names, keys = self.snapshot.partition_names(), self.table.partition_keys
            found = similar_value(names, keys, error.reference, str(error.value).encode())
            if found is not None:
                error.hint = f"write {'.'.join(error.reference.path)} = '{found}'"
            raise

    def resolve(self, column: str) -> BoundReference:
        """A column of the table, a partition key or a hidden column. Errors: ColumnNotFound."""
        return self.scope.resolve(Reference((column,)))

    @property
    def stops_early(self) -> bool:
        """Whether the scan may omit files that hold matching rows (LIMIT and top-N)."""
        return self.request.limit is not None and self.request.pruning

    @property
    def dynamic_filters(self) -> tuple[BoundExpression, ...]:
        with self._lock:
            return self._filters

    def add_dynamic_filter(self, predicate: Expression) -> None:
        """A filter on a column that was not announced is ignored: files may lack that column.

        Errors:
            ColumnNotFound.
        """
        bound = self.bind(predicate)
        if self.columns is not None:
            known = self.columns
            conjuncts = bound.children if isinstance(bound, BoundAnd) else (bound,)
            told = [c for c in conjuncts if _top_level(c) <= known]
            bound = conjunction(tuple(told))
        if not isinstance(bound, BoundTrue):
            with self._lock:
                self._filters = (*self._filters, bound)
                if self.table.partition_keys:
                    decided = split_by_keys(bound)[0]
                    self._key_filters = conjunction((self._key_filters, decided))

    # views

    def view_uses(self) -> Sequence[ViewUse]:
        """What the scan makes of the table's views."""
        return () if self._views is None else self._views.view_uses(self.columns)

    # what is known of slices

    def pruner(self, batch: SliceBatch) -> FilePruner | None:
        """The indexes of the generation that the batch's ordinals refer to."""
        index = batch.index
        return self.pruner_of(index) if isinstance(index, IndexSnapshot) else None

    def pruner_of(self, index: IndexSnapshot) -> FilePruner:
        """The indexes of a generation."""
        found = self._pruners.get(id(index))
        if found is None:
            found = FilePruner(self.table, index, self.request.semantics)
            self._pruners[id(index)] = found
        return found

    def statistics(self, batch: SliceBatch) -> CompositePruningStatistics:
        """What is known of a batch's slices, for any column of the table."""
        pruner = self.pruner(batch)
        return CompositePruningStatistics(
            batch,
            None if pruner is None else pruner.statistics,
            None if pruner is None else pruner.index.counted_rows,
            self.table.partition_keys,
            [self.values_of(p) for p in batch.partitions],
        )

    def always(self, known: CompositePruningStatistics) -> Mask:
        """Slices in which every row satisfies the predicate."""
        return prune(self.predicate, known, self.request.semantics).always

    def values_of(self, partition: Partition) -> Typed:
        """Typed values of a partition from a batch that was drawn."""
        return self._values.get(partition.name, ())

    def exclude(self, partitions: Sequence[Partition], predicate: BoundExpression) -> Mask:
        """Marks the partitions in which no row satisfies the predicate, by their values alone."""
        return exclude_partitions(
            [p.name for p in partitions],
            [self.values_of(p) for p in partitions],
            self.table.partition_keys,
            predicate,
            self.request.semantics,
        )

    @property
    def key_filters(self) -> BoundExpression:
        """The conjuncts of all dynamic filters that partition values alone decide."""
        return self._key_filters

    @property
    def awaits_key_filters(self) -> bool:
        """Whether a dynamic filter on a partition key was announced and has not arrived."""
        expected = self.request.dynamic_filter_columns
        return isinstance(self._key_filters, BoundTrue) and any(
            k.name.lower() in expected for k in self.table.partition_keys
        )

    def note_values(self, partitions: Sequence[Partition], values: dict[str, Typed]) -> None:
        """Keeps the typed values of partitions before they are listed."""
        self._values.update({p.name: values.get(p.name, ()) for p in partitions})

    def counter(self, index: Index | FormatIndex, predicate: BoundExpression) -> StageCounter:
        """The counter of an index's stage, created with the index's first batch."""
        found = self.counters.by_index.get(index.name)
        if found is None:
            found = StageCounter("files", index.kind, index.columns(predicate))
            self.counters.by_index[index.name] = found
        return found

    def problems(self) -> list[Index]:
        """Indexes that failed during this scan."""
        pruners = list(self._pruners.values())
        return [i for pruner in pruners for i in pruner.indexes if i.problem is not None]

    # cancelling

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def fetch(self, open: Callable[[], PartitionFetch]) -> PartitionFetch | None:
        """Opens a fetch that `cancel` stops; None if the scan is already cancelled."""
        if self._cancelled:
            return None
        opened = open()  # may call the metastore: a filter that arrives does not wait for it
        with self._lock:
            if not self._cancelled:
                self._running = opened
                return opened
        opened.close()
        return None

    def finish(self) -> None:
        """Marks the scan as complete: the last stage has ended."""
        self.complete = not self._cancelled
        with self._lock:
            if self._running is not None:
                self._running.close()

    def cancel(self) -> bool:
        """Stops calls in flight; True only for the first caller."""
        with self._lock:
            first, self._cancelled = not self._cancelled, True
            running = self._running
        if running is not None:
            running.close()
        return first


def _top_level(expression: BoundExpression) -> set[str]:
    """Names of the columns that an expression looks at, in lower case."""
    return {
        column.path[0].lower()
        for reference in references(expression)
        for column in columns_of(reference)
    }
